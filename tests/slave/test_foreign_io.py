"""Other I/O on a disk: never more than there was, and all of it but what cannot be told from ours."""

import mmap
import os
import sys
from array import array
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.protocol.counters import Count
from ivypy.slave.gate.foreign_io import ForeignIo, read_bytes
from tests.support.loop_devices import loop_device, needs_loops

MIB = 1 << 20
S = 1_000_000_000
BLOCK = 4096
DISK = os.makedev(8, 0)


def counts(*rows: dict[Count, int]) -> bytes:
    return array("q", [row.get(column, 0) for row in rows for column in Count]).tobytes()


def foreign(packed: bytes) -> list[int]:
    return array("q", packed)[Count.FOREIGN_BYTES :: len(Count)].tolist()


def diskstats(root: Path, **sectors: tuple[int, int]) -> None:
    """`sectors`: by minor number of major 8, read and written."""
    lines = [
        f"   8 {minor[1:]} sd{minor[1:]} 1 0 {read} 5 1 0 {written} 5 0 10 10 0 0 0 0 0 0\n"
        for minor, (read, written) in sectors.items()
    ]
    (root / "proc").mkdir(exist_ok=True)
    (root / "proc/diskstats").write_text("".join(lines))


@dataclass
class Part:
    """Of one subinterval, in blocks."""

    ours: int
    others: int
    in_flight: int  # at its end
    early: float  # the part of these that the disk had completed by then
    missing: bool  # a thread's counts come with the next result


PARTS = st.builds(
    Part, st.integers(0, 1000), st.integers(0, 300), st.integers(0, 64), st.floats(0, 1), st.booleans()
)  # fmt: skip


@given(st.lists(PARTS, min_size=1, max_size=30))
def test_what_is_counted_is_certain_and_nearly_all(tmp_path_factory: pytest.TempPathFactory, parts: list[Part]) -> None:
    root = tmp_path_factory.mktemp("root")
    diskstats(root, n0=(0, 0))
    account = ForeignIo([DISK], [BLOCK], root)
    account.begin()
    ours = others = told = late = early = 0
    for part in parts:
        completed = max(part.ours, early)  # what the disk had done before is found now
        early = int(part.early * part.in_flight)
        ours, others = ours + completed, others + part.others
        done = ours + others + early
        diskstats(root, n0=(done * 4, done * 4))
        said = completed + late
        late = completed // 2 if part.missing else 0
        row = {Count.BYTES: (said - late) * BLOCK, Count.IN_FLIGHT: part.in_flight}
        told += sum(foreign(account.add(counts(row), S, 0, complete=not part.missing)))
        assert told <= others * BLOCK
    if not parts[-1].missing:
        assert told >= (others - 2 * 64) * BLOCK


def test_instances_on_one_disk_share_it_by_what_they_did(tmp_path: Path) -> None:
    diskstats(tmp_path, n0=(0, 0), n16=(0, 0))
    account = ForeignIo([DISK, DISK, os.makedev(8, 16), 0], [BLOCK] * 4, tmp_path)
    account.begin()
    diskstats(tmp_path, n0=(1200 * 8, 100 * 8), n16=(500 * 8, 0))
    rows = [{Count.BYTES: blocks * BLOCK} for blocks in (300, 700, 500, 9)]
    assert foreign(account.add(counts(*rows), S, 0, True)) == [90 * BLOCK, 210 * BLOCK, 0, 0]


def test_where_the_kernel_does_not_count_ours_all_is_others(tmp_path: Path) -> None:
    diskstats(tmp_path, n0=(0, 0))
    account = ForeignIo([DISK], [BLOCK], tmp_path, ours_counted=False)
    account.begin()
    diskstats(tmp_path, n0=(30 * 8, 0))
    assert foreign(account.add(counts({Count.BYTES: 500 * BLOCK, Count.IN_FLIGHT: 64}), S, 0, True)) == [30 * BLOCK]


def test_what_ours_may_have_done_since_the_boundary_is_not_foreign(tmp_path: Path) -> None:
    diskstats(tmp_path, n0=(0, 0))
    account = ForeignIo([DISK], [BLOCK], tmp_path)
    account.begin()
    diskstats(tmp_path, n0=(1200 * 8, 0))
    row = {Count.BYTES: 1000 * BLOCK}
    assert foreign(account.add(counts(row), S, S // 10, True)) == [0]


def test_a_disk_that_is_gone_or_not_shown_is_passed_over(tmp_path: Path) -> None:
    assert read_bytes(tmp_path) == {}
    account = ForeignIo([DISK], [BLOCK], tmp_path)
    account.begin()
    packed = counts({Count.BYTES: 5})
    assert account.add(packed, S, 0, True) == packed
    diskstats(tmp_path, n0=(8000, 0))  # it appears, with a past
    assert foreign(account.add(packed, S, 0, True)) == [0]
    diskstats(tmp_path, n0=(8, 0))  # it began again
    assert foreign(account.add(packed, S, 0, True)) == [0]


@needs_loops
def test_the_kernels_counters_are_read(shm: Path) -> None:
    with loop_device(shm) as device:
        number = os.stat(device).st_rdev
        before = read_bytes()[number]
        fd = os.open(device, os.O_WRONLY | os.O_DIRECT)
        with mmap.mmap(-1, MIB) as page:
            os.write(fd, page)
        os.close(fd)
        assert read_bytes()[number] - before >= MIB


def lines_run(disks: int, root: Path) -> int:
    """How many lines of Python a subinterval costs, with an instance on each of so many disks."""
    diskstats(root, **{f"n{n}": (n, n) for n in range(disks)})
    account = ForeignIo([os.makedev(8, n) for n in range(disks)], [BLOCK] * disks, root)
    account.begin()
    packed = counts(*[{Count.BYTES: BLOCK}] * disks)
    lines = 0

    def count(frame: object, event: str, argument: object) -> object:
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)  # type: ignore[arg-type]
    try:
        account.add(packed, S, 0, True)
    finally:
        sys.settrace(before)
    return lines


def test_a_thousand_disks_cost_ten_times_a_hundred(tmp_path: Path) -> None:
    """And little each: each is looked at once, whatever the others are."""
    few, many = lines_run(100, tmp_path), lines_run(1000, tmp_path)
    assert 9 * few < many < 10 * few and many < 50 * 1000
