"""What the page cache did: never more than it can have done, exact where the disk's counters are."""

import os
from array import array
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.protocol.counters import Count
from ivypy.slave.devices.diskstats import read_charged
from ivypy.slave.gate.cached_io import (
    AHEAD,
    CacheAccount,
    CachedInstance,
    CachedIo,
    ChargedReads,
    Moved,
    attributed,
)

MIB = 1 << 20
S = 1_000_000_000
BLOCK = 4096
DISK, OTHER, WITHOUT = os.makedev(8, 0), os.makedev(8, 16), 0
BUFFERED, DIRECT = CachedInstance(DISK, False, BLOCK), CachedInstance(DISK, True, BLOCK)

Step = tuple[tuple[int, int], tuple[int, int], int, tuple[int, int]]  # MiB: ours, the disk's, uncertain; the answer


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("all reads from the disk", [((50, 0), (50, 0), 0, (0, 0)), ((50, 0), (50, 0), 0, (0, 0))]),
        ("all reads from memory", [((50, 0), (0, 0), 0, (50, 0)), ((70, 0), (0, 0), 0, (70, 0))]),
        ("half of the reads from memory", [((50, 0), (25, 0), 0, (25, 0))]),
        ("read ahead, and then read by us", [((50, 0), (60, 0), 0, (0, 0)), ((50, 0), (40, 0), 0, (0, 0))]),
        ("others read 100 MiB: 16 count as ahead", [((0, 0), (100, 0), 0, (0, 0)), ((50, 0), (0, 0), 0, (34, 0))]),
        ("much done since the boundary", [((0, 0), (100, 0), 84, (0, 0)), ((100, 0), (0, 0), 0, (0, 0))]),
        ("direct reads that the disk completed early", [((0, 0), (8, 0), 8, (0, 0)), ((20, 0), (12, 0), 0, (0, 0))]),
        ("written and not yet by the disk", [((0, 50), (0, 0), 0, (0, 50)), ((0, 50), (0, 20), 0, (0, 80))]),
        ("flushed", [((0, 50), (0, 0), 0, (0, 50)), ((0, 0), (0, 52), 0, (0, 0))]),
        ("overwritten in the cache", [((0, 90), (0, 0), 0, (0, 90)), ((0, 0), (0, 30), 0, (0, 60))]),
        ("a journal is no credit", [((0, 0), (0, 30), 0, (0, 0)), ((0, 50), (0, 0), 0, (0, 50))]),
        ("written since the boundary", [((0, 0), (0, 30), 30, (0, 0)), ((0, 50), (0, 0), 0, (0, 20))]),
        ("both", [((40, 60), (10, 50), 0, (30, 10))]),
    ],
)
def test_what_was_cached_and_is_dirty(name: str, steps: list[Step]) -> None:
    account = CacheAccount()
    for ours, disk, uncertain, answer in steps:
        moved = Moved(ours[0] * MIB, ours[1] * MIB), Moved(disk[0] * MIB, disk[1] * MIB)
        assert account.add(moved[0], moved[1], uncertain * MIB, True) == tuple(part * MIB for part in answer), name


def counts(*rows: dict[Count, int]) -> bytes:
    return array("q", [row.get(column, 0) for row in rows for column in Count]).tobytes()


def column(packed: bytes, which: Count) -> list[int]:
    return array("q", packed)[which :: len(Count)].tolist()


def diskstats(root: Path, **transferred: tuple[int, int]) -> None:
    """`transferred`: by minor number of major 8, bytes read and written."""
    lines = [
        f"   8 {minor[1:]} sd{minor[1:]} 1 0 {read // 512} 5 1 0 {written // 512} 5 0 10 10 0 0 0 0 0 0\n"
        for minor, (read, written) in transferred.items()
    ]
    (root / "proc").mkdir(exist_ok=True)
    (root / "proc/diskstats").write_text("".join(lines))


def read(size: int) -> dict[Count, int]:
    return {Count.BYTES: size}


def wrote(size: int) -> dict[Count, int]:
    return {Count.BYTES: size, Count.WRITTEN: size}


def test_direct_instances_are_not_the_caches(tmp_path: Path) -> None:
    diskstats(tmp_path, n0=(0, 0))
    account = CachedIo([BUFFERED, DIRECT], tmp_path)
    diskstats(tmp_path, n0=(90 * MIB, 50 * MIB))
    rows = [
        {Count.BYTES: 70 * MIB, Count.WRITTEN: 20 * MIB},
        {Count.BYTES: 120 * MIB, Count.WRITTEN: 40 * MIB},
    ]
    after = account.add(counts(*rows), S, 0, True)
    assert column(after, Count.CACHED) == [40 * MIB, 0]  # 50 read, and the disk 90 less 80
    assert column(after, Count.DIRTY) == [10 * MIB, 0]  # 20 written, and by the disk 50 less 40
    assert column(after, Count.UNSEEN) == [0, 0]


def test_instances_on_one_disk_share_it_by_what_they_did(tmp_path: Path) -> None:
    diskstats(tmp_path, n0=(0, 0), n16=(0, 0))
    other = CachedInstance(OTHER, False, BLOCK)
    account = CachedIo([BUFFERED, BUFFERED, other], tmp_path)
    first = account.add(counts(wrote(30 * MIB), wrote(10 * MIB), read(5 * MIB)), S, 0, True)
    assert column(first, Count.DIRTY) == [30 * MIB, 10 * MIB, 0]
    diskstats(tmp_path, n0=(10 * MIB, 20 * MIB), n16=(5 * MIB, 0))
    second = account.add(counts(read(20 * MIB), read(10 * MIB), read(5 * MIB)), S, 0, True)
    assert column(second, Count.DIRTY) == [15 * MIB, 5 * MIB, 0], "by all that they wrote in the step"
    assert column(second, Count.CACHED) == [20 * MIB * 2 // 3, 20 * MIB - 20 * MIB * 2 // 3, 0]
    assert column(first, Count.CACHED) == [0, 0, 5 * MIB]


def charge(root: Path, size: int) -> None:
    """Charge this process with so many bytes read, in all."""
    (root / "proc/self").mkdir(parents=True, exist_ok=True)
    (root / "proc/self/io").write_text(f"rchar: 1\nwchar: 2\nread_bytes: {size}\nwrite_bytes: 3\n")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("all reads from the disk", [(50, 50, 0), (50, 50, 0)]),
        ("all reads from memory", [(50, 0, 50), (70, 0, 70)]),
        ("read far ahead, and then read by us", [(10, 200, 0), (90, 0, 0), (100, 0, 0), (5, 0, 5)]),
        ("read ahead and never used", [(0, 900, 0), (50, 0, 0)]),
        ("direct reads that no disk did", [(0, -50, 0), (50, 50, 0)]),
    ],
)
def test_what_is_charged_serves_our_reads(name: str, parts: list[tuple[int, int, int]]) -> None:
    reads = ChargedReads()
    assert [reads.add(ours, charged) for ours, charged, _ in parts] == [cached for *_, cached in parts], name


@pytest.mark.parametrize(
    ("name", "total", "certain", "read", "parts"),
    [
        ("as the disks say", 50, {1: 50, 2: 0}, {1: 50, 2: 70}, {1: 50, 2: 0}),
        ("others read both disks", 60, {1: 0, 2: 0}, {1: 20, 2: 100}, {1: 10, 2: 50}),
        ("others read one of them", 80, {1: 50, 2: 0}, {1: 50, 2: 70}, {1: 50, 2: 30}),
        ("the process read more than the disks know", 20, {1: 30, 2: 10}, {1: 30, 2: 70}, {1: 15, 2: 5}),
        ("nothing", 0, {1: 0}, {1: 0}, {1: 0}),
        ("no disk", 0, {}, {}, {}),
    ],
)
def test_disks_share_what_memory_served(
    name: str, total: int, certain: dict[int, int], read: dict[int, int], parts: dict[int, int]
) -> None:
    assert attributed(total, certain, read) == parts, name


DISKS = st.lists(st.tuples(st.integers(0, 10**12), st.floats(0, 1)), min_size=1, max_size=9)


@given(DISKS, st.floats(0, 1))
def test_no_disk_served_more_than_was_read_there(disks: list[tuple[int, float]], part: float) -> None:
    read = {number: size for number, (size, _) in enumerate(disks)}
    certain = {number: min(int(size * sure), size) for number, (size, sure) in enumerate(disks)}
    total = min(int(sum(read.values()) * part), sum(read.values()))
    parts = attributed(total, certain, read)
    assert sum(parts.values()) == total and all(0 <= parts[disk] <= read[disk] for disk in read)
    assert total < sum(certain.values()) or all(parts[disk] >= certain[disk] for disk in read)


@pytest.mark.parametrize(
    ("name", "charged", "disk", "cached"),
    [
        ("others read the disk", 120, 900, 70),
        ("nobody else does", 120, 120, 70),
        ("read ahead", 990, 990, 0),
        ("by the disk alone", None, 140, 50),
    ],
)
def test_what_others_read_hides_nothing(name: str, charged: int | None, disk: int, cached: int, tmp_path: Path) -> None:
    """70 MiB through the cache, and 120 past it."""
    diskstats(tmp_path, n0=(0, 0))
    if charged is not None:
        charge(tmp_path, 7)
    account = CachedIo([BUFFERED, DIRECT], tmp_path)
    diskstats(tmp_path, n0=(disk * MIB, 0))
    if charged is not None:
        charge(tmp_path, 7 + charged * MIB)
    after = account.add(counts(read(70 * MIB), read(120 * MIB)), S, 0, True)
    assert column(after, Count.CACHED) == [cached * MIB, 0], name


def test_a_direct_instance_on_another_disk_is_charged_too(tmp_path: Path) -> None:
    diskstats(tmp_path, n0=(0, 0), n16=(0, 0))
    charge(tmp_path, 0)
    account = CachedIo([BUFFERED, CachedInstance(OTHER, True, BLOCK), CachedInstance(WITHOUT, True, BLOCK)], tmp_path)
    charge(tmp_path, 100 * MIB)
    after = account.add(counts(read(30 * MIB), read(90 * MIB), read(9 * MIB)), S, 0, True)
    assert column(after, Count.CACHED) == [20 * MIB, 0, 0], "what no disk counts may not be charged"


def test_what_is_charged_is_not_asked_for_again_once_it_is_not_shown(tmp_path: Path) -> None:
    diskstats(tmp_path, n0=(0, 0))
    charge(tmp_path, 0)
    account = CachedIo([BUFFERED], tmp_path)
    (tmp_path / "proc/self/io").unlink()
    diskstats(tmp_path, n0=(5 * MIB, 0))
    assert column(account.add(counts(read(9 * MIB)), S, 0, True), Count.CACHED) == [4 * MIB]
    charge(tmp_path, 0)
    diskstats(tmp_path, n0=(10 * MIB, 0))
    assert column(account.add(counts(read(5 * MIB)), S, 0, True), Count.CACHED) == [0]


@pytest.mark.parametrize("text", [None, "", "rchar: 5\n", "read_bytes: many\n"])
def test_what_is_not_shown_is_not_known(text: str | None, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "proc/self").mkdir(parents=True)
        (tmp_path / "proc/self/io").write_text(text)
    assert read_charged(tmp_path) is None


@pytest.mark.parametrize(("read_ahead_kib", "instances", "credit"), [(128, 4, 16), (4096, 40, 320), (65536, 1, 128)])
def test_a_disk_alone_may_be_ahead_by_the_readahead_of_all(
    read_ahead_kib: int, instances: int, credit: int, tmp_path: Path
) -> None:
    """MiB that may be ahead of us, where the kernel charges nothing."""
    folder = tmp_path / "sys/dev/block/8:0/queue"
    folder.mkdir(parents=True)
    (folder / "read_ahead_kb").write_text(f"{read_ahead_kib}\n")
    diskstats(tmp_path, n0=(0, 0))
    account = CachedIo([BUFFERED] * instances, tmp_path)
    diskstats(tmp_path, n0=(999 * MIB, 0))
    nothing = [read(0)] * (instances - 1)
    account.add(counts(read(0), *nothing), S, 0, True)
    after = account.add(counts(read(500 * MIB), *nothing), S, 0, True)
    assert sum(column(after, Count.CACHED)) == (500 - credit) * MIB


def test_dirty_pages_are_those_of_the_lun_that_instances_wrote(tmp_path: Path) -> None:
    """Others write to the disk meanwhile; one LUN is overwritten, one flushed, and one cannot be counted."""
    on = [CachedInstance(DISK, False, BLOCK, lun) for lun in (3, 3, 4)] + [CachedInstance(OTHER, False, BLOCK, 5)]
    diskstats(tmp_path, n0=(0, 0), n16=(0, 0))
    account = CachedIo(on, tmp_path, count_dirty={3: 40 * MIB, 4: 0, 5: None}.get)
    diskstats(tmp_path, n0=(0, 999 * MIB), n16=(0, 8 * MIB))
    rows = [wrote(size * MIB) for size in (30, 50, 60, 10)]
    after = account.add(counts(*rows), S, 0, True)
    assert column(after, Count.DIRTY) == [15 * MIB, 25 * MIB, 0, 2 * MIB]


@pytest.mark.parametrize(
    ("name", "more", "last", "dirty"),
    [
        ("goes on", {}, False, 50 - 2 * 5),
        ("has ended", {Count.ENDED_NS: 1}, False, 50),
        ("the step's last boundary", {}, True, 50),
        ("in flight at the last", {Count.IN_FLIGHT: 3 * MIB // BLOCK}, True, 47),
    ],
)
def test_what_may_have_been_written_since_the_boundary_is_not_dirty(
    name: str, more: dict[Count, int], last: bool, dirty: int, tmp_path: Path
) -> None:
    diskstats(tmp_path, n0=(0, 0))
    account = CachedIo([CachedInstance(DISK, False, BLOCK, 3)], tmp_path, count_dirty={3: 50 * MIB}.get)
    after = account.add(counts({**wrote(50 * MIB), **more}), S, S // 10, True, last)
    assert column(after, Count.DIRTY) == [dirty * MIB], name


@pytest.mark.parametrize(
    ("name", "unflushed", "by_disk", "dirty"),
    [
        ("flushed often", (8 * BLOCK, 0), 78, (1, 1)),
        ("flushed often, others write", (8 * BLOCK, 0), 900, (0, 0)),
        ("flushed seldom", (AHEAD + 1, 8 * BLOCK), 900, (20, 0)),
        ("never", (None, None), 900, (20, 20)),
        ("flushed often, and all is dirty", (8 * BLOCK, 8 * BLOCK), 0, (20, 20)),
    ],
)
def test_a_lun_that_is_flushed_has_no_more_dirty_than_its_disk_did_not_write(
    name: str, unflushed: tuple[int | None, int | None], by_disk: int, dirty: tuple[int, int], tmp_path: Path
) -> None:
    """MiB of two LUNs, with 40 written to each, and 20 in pages that are dirty at least in part."""
    diskstats(tmp_path, n0=(0, 0))
    on = [CachedInstance(DISK, False, BLOCK, lun, size) for lun, size in zip(range(2), unflushed, strict=True)]
    account = CachedIo(on, tmp_path, count_dirty=lambda lun: 20 * MIB)
    diskstats(tmp_path, n0=(0, by_disk * MIB))
    after = account.add(counts(wrote(40 * MIB), wrote(40 * MIB)), S, 0, True)
    assert column(after, Count.DIRTY) == [part * MIB for part in dirty], name


@pytest.mark.parametrize("why", ["no disk is known", "not in diskstats", "iostats is 0"])
def test_without_counters_all_is_unseen(why: str, tmp_path: Path) -> None:
    diskstats(tmp_path, **({} if why == "not in diskstats" else {"n0": (0, 0)}))
    if why == "iostats is 0":
        folder = tmp_path / "sys/dev/block/8:0"
        (folder / "mq").mkdir(parents=True)
        (folder / "queue").mkdir()
        (folder / "queue/iostats").write_text("0\n")
    on = CachedInstance(WITHOUT if why == "no disk is known" else DISK, False, BLOCK)
    account = CachedIo([on, CachedInstance(on.disk, True, BLOCK)], tmp_path)
    after = account.add(counts(wrote(3 * MIB), read(5 * MIB)), S, 0, True)
    assert column(after, Count.UNSEEN) == [3 * MIB, 0]
    assert column(after, Count.CACHED) == column(after, Count.DIRTY) == [0, 0]


def test_counters_that_begin_anew_leave_one_subinterval_unseen(tmp_path: Path) -> None:
    diskstats(tmp_path, n0=(100 * MIB, 0))
    account = CachedIo([BUFFERED], tmp_path)
    diskstats(tmp_path, n0=(MIB, 0))
    assert column(account.add(counts(read(5 * MIB)), S, 0, True), Count.UNSEEN) == [5 * MIB]
    after = account.add(counts(read(5 * MIB)), S, 0, True)
    assert column(after, Count.UNSEEN) == [0] and column(after, Count.CACHED) == [5 * MIB]


@pytest.mark.parametrize("ours_counted", [True, False])
def test_nothing_is_looked_at_without_buffered_io_that_reaches_disks(ours_counted: bool, tmp_path: Path) -> None:
    account = CachedIo([DIRECT if ours_counted else BUFFERED], tmp_path, ours_counted)
    packed = counts(read(MIB))
    assert account.add(packed, S, 0, True) == packed


@dataclass
class Part:
    """Of one subinterval, in blocks."""

    from_memory: int
    from_disk: int
    wasted: int  # that the disk read for others
    written: int
    by_disk: float  # the part of what is dirty that the disk writes
    in_flight: int  # direct reads at its end
    early: float  # the part of these that the disk had completed by then
    missing: bool  # a thread's counts come with the next result


BLOCKS = st.integers(0, 9000)
PARTS = st.builds(
    Part, BLOCKS, BLOCKS, st.integers(0, 500), BLOCKS, st.floats(0, 1), st.integers(0, 64), st.floats(0, 1),
    st.booleans(),
)  # fmt: skip


@given(st.lists(PARTS, min_size=1, max_size=20))
def test_what_is_counted_is_certain(tmp_path_factory: pytest.TempPathFactory, parts: list[Part]) -> None:
    root = tmp_path_factory.mktemp("root")
    diskstats(root, n0=(0, 0))
    account = CachedIo([BUFFERED, DIRECT], root)
    disk_read = disk_written = dirty = late_read = late_written = early = 0
    cached = from_memory = reads = written = 0
    for part in parts:
        direct, early = early, int(part.early * part.in_flight)  # what was done before is found now
        disk_read += part.from_disk + part.wasted + early
        dirty += part.written
        to_disk = int(part.by_disk * dirty)
        dirty, disk_written = dirty - to_disk, disk_written + to_disk
        diskstats(root, n0=(disk_read * BLOCK, disk_written * BLOCK))
        now_read, now_written = part.from_memory + part.from_disk + late_read, part.written + late_written
        late_read, late_written = (now_read // 2, now_written // 2) if part.missing else (0, 0)
        now_read, now_written = now_read - late_read, now_written - late_written
        row = {Count.BYTES: (now_read + now_written) * BLOCK, Count.WRITTEN: now_written * BLOCK}
        flying = {Count.BYTES: direct * BLOCK, Count.IN_FLIGHT: part.in_flight}
        after = account.add(counts(row, flying), S, 0, complete=not part.missing)
        (said, none), (left, nothing) = column(after, Count.CACHED), column(after, Count.DIRTY)
        assert none == nothing == 0 and 0 <= said <= now_read * BLOCK
        cached, from_memory, reads = cached + said, from_memory + part.from_memory, reads + now_read
        written += now_written
        assert cached <= from_memory * BLOCK, "never more than came from memory"
        assert 0 <= left <= min(written, dirty) * BLOCK, "never more than is dirty"
        assert part.missing or left >= (dirty - 2 * 64) * BLOCK
    if not parts[-1].missing:
        wasted = sum(part.wasted for part in parts)
        assert cached >= (from_memory - wasted - 64) * BLOCK


@given(st.lists(BLOCKS, min_size=1), st.integers(0, 2 * AHEAD // BLOCK))
def test_all_reads_from_memory_are_cached_but_for_the_credit(reads: list[int], ahead: int) -> None:
    account = CacheAccount()
    account.add(Moved(), Moved(ahead * BLOCK), 0, True)
    cached = sum(account.add(Moved(size * BLOCK), Moved(), 0, True)[0] for size in reads)
    assert cached == max(sum(reads) * BLOCK - min(ahead * BLOCK, AHEAD), 0)
