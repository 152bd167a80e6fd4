"""The page cache between steps: written back, dropped, counted; and a LUN that hangs is given up."""

import mmap
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ivypy.protocol.parameters import Parameters
from ivypy.protocol.payload import Array, ArrayType, NoticeKind
from ivypy.slave.luns import page_cache
from ivypy.slave.luns.page_cache import CachedLun, cached_bytes, settle
from ivypy.slave.worker_progress import WORK
from ivypy.slave.workloads.workloads import Workloads
from tests.support.fake_engine import FakeEngine
from tests.support.loop_devices import loop_device, mounted, need, needs_loops, run
from tests.support.slave_client import u32
from tests.support.workloads import workloads_on

MIB = 1 << 20
SIZE = 24 * MIB + 777


def lun(path: Path | str, drop: bool = True) -> CachedLun:
    return CachedLun(str(path), lambda: os.open(path, os.O_RDONLY), drop)


def cached(path: Path | str) -> int:
    fd = os.open(path, os.O_RDONLY)
    try:
        found = cached_bytes(fd, os.lseek(fd, 0, os.SEEK_END))
    finally:
        os.close(fd)
    assert found is not None
    return found


def written_by(device: str) -> int:
    """Bytes that a block device was written, by the kernel's counters."""
    return int((Path("/sys/class/block") / Path(device).name / "stat").read_text().split()[6]) * 512


@pytest.fixture
def device(shm: Path) -> Iterator[str]:
    with loop_device(shm, 64 * MIB) as path:
        yield path


@pytest.fixture
def folder(device: str, shm: Path) -> Iterator[Path]:
    need("mkfs.ext4")
    run("mkfs.ext4", "-q", "-F", device)
    with mounted(device, shm / "point") as point:
        yield point


@needs_loops
@pytest.mark.parametrize("drop", [True, False])
def test_a_file_is_written_back_and_dropped_if_it_is_to_be(drop: bool, folder: Path, device: str) -> None:
    path = folder / "lun"
    path.write_bytes(os.urandom(SIZE))
    before = written_by(device)
    assert settle([lun(path, drop)]) == [None]
    assert written_by(device) - before >= SIZE
    assert (cached(path) == 0) is drop and cached(path) <= SIZE + mmap.PAGESIZE


@needs_loops
def test_a_device_is_written_back_and_dropped(device: str) -> None:
    with open(device, "r+b") as held:  # the last who closes a device writes it back
        held.write(os.urandom(SIZE))
        held.flush()
        before = written_by(device)
        assert cached(device) >= SIZE
        assert settle([lun(device)]) == [None]
        assert written_by(device) - before >= SIZE and cached(device) == 0


@needs_loops
def test_what_another_has_mapped_stays_and_is_noticed(folder: Path) -> None:
    path = folder / "lun"
    path.write_bytes(os.urandom(SIZE))
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), SIZE) as mapped:
        assert sum(mapped[at] for at in range(0, SIZE // 2, mmap.PAGESIZE)) > 0  # its pages are in the page tables
        (notice,) = settle([lun(path)])
    assert notice is not None and notice.kind is NoticeKind.STAYS_CACHED
    percent, _, rest = notice.text.partition(" % of ")
    assert 40 <= int(percent) <= 70 and rest.startswith(f"{path} stays in the page cache")


def test_both_ways_of_counting_agree(tmp_path: Path) -> None:
    path = tmp_path / "lun"
    path.write_bytes(os.urandom(SIZE))
    fd = os.open(path, os.O_RDONLY)
    try:
        resident = page_cache._resident_pages(fd, SIZE)
        assert resident == -(-SIZE // mmap.PAGESIZE)
        assert page_cache._cached_pages(fd) in (None, resident)
    finally:
        os.close(fd)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives up rights that only root has")
@pytest.mark.parametrize(("mode", "known"), [(0o644, False), (0o666, True)])
def test_whoever_may_not_write_a_file_does_not_know_what_is_cached(mode: int, known: bool, tmp_path: Path) -> None:
    path = tmp_path / "lun"
    path.write_bytes(bytes(SIZE))
    path.chmod(mode)
    fd = os.open(path, os.O_RDONLY)
    if (child := os.fork()) == 0:
        os.setuid(65534)
        os._exit(cached_bytes(fd, SIZE) is not None)
    os.close(fd)
    assert os.waitpid(child, 0)[1] == (int(known) << 8)


def test_a_lun_that_hangs_is_given_up_and_the_others_are_settled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_cache, "ANSWER_S", 0.5)
    (tmp_path / "lun").write_bytes(bytes(SIZE))
    over = threading.Event()

    def hang() -> int:
        over.wait()
        raise OSError

    try:
        hung, settled, gone = settle([CachedLun("/hung", hang, True), lun(tmp_path / "lun"), lun(tmp_path / "none")])
    finally:
        over.set()
    assert hung is not None and hung.kind is NoticeKind.NOT_WRITTEN_BACK and "/hung" in hung.text
    assert settled is None
    assert gone is not None and gone.text.endswith("No such file or directory")


def test_it_advances_turn_by_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_cache, "TURN_S", 0.0)
    (tmp_path / "lun").write_bytes(bytes(SIZE))
    before = WORK.done
    assert settle([lun(tmp_path / "lun")]) == [None]
    assert WORK.done - before >= 2 * -(-SIZE // page_cache.PIECE)


@pytest.fixture
def workloads() -> Workloads:
    return Workloads(FakeEngine(), "null", [None])  # type: ignore[arg-type]


WRITE = Parameters(fraction_read=0.0, direct=False)


@needs_loops
@pytest.mark.parametrize(
    ("first", "then", "still_cached"),
    [
        (WRITE, WRITE, False),
        (WRITE, replace(WRITE, drop_cache=False), True),  # yet written back
        (WRITE, Parameters(fraction_read=0.0), True),
        (Parameters(fraction_read=0.0), WRITE, False),
        (Parameters(fraction_read=0.0), Parameters(fraction_read=0.0), True),
    ],
)
def test_before_a_step_the_lun_is_written_back_and_dropped_as_its_instances_say(
    first: Parameters, then: Parameters, still_cached: bool, folder: Path, device: str, workloads: Workloads
) -> None:
    path = folder / "lun"
    path.write_bytes(bytes(SIZE // 512 * 512))
    run("sync", "-f", str(path))
    assert workloads.create(workloads_on(str(path), first, then, consent=True)) == []
    assert workloads.reinspect([0]) == ([], [])
    assert workloads.start([0]) == []
    with open(path, "r+b") as file:
        file.write(os.urandom(SIZE // 512 * 512))
    workloads.note_ended()
    before = written_by(device)
    assert workloads.reinspect([1]) == ([], [])
    assert (cached(path) > SIZE // 2) is still_cached
    assert (written_by(device) - before >= SIZE // 2) is (first == WRITE or not then.direct)
    assert workloads.delete([0, 1]) == []


@needs_loops
def test_an_instance_that_takes_no_part_has_nothing_dropped(folder: Path, workloads: Workloads) -> None:
    path = folder / "lun"
    path.write_bytes(bytes(SIZE // 512 * 512))
    assert workloads.create(workloads_on(str(path), Parameters(direct=False), Parameters())) == []
    path.read_bytes()
    assert workloads.reinspect([1]) == ([], []) and cached(path) >= SIZE - 512
    assert workloads.reinspect([0]) == ([], []) and cached(path) == 0


@needs_loops
def test_a_lun_is_written_back_when_its_last_instance_goes(folder: Path, device: str, workloads: Workloads) -> None:
    path = folder / "lun"
    path.write_bytes(bytes(SIZE // 512 * 512))
    run("sync", "-f", str(path))
    assert workloads.create(workloads_on(str(path), WRITE, consent=True)) == []
    assert workloads.start([0]) == []
    with open(path, "r+b") as file:
        file.write(os.urandom(SIZE // 512 * 512))
    workloads.note_ended()
    before = written_by(device)
    assert workloads.delete([0]) == [] and written_by(device) - before >= SIZE // 2


def test_an_order_of_instances_that_are_not_there_is_refused(workloads: Workloads) -> None:
    assert workloads.check_order(u32()) is None
    assert workloads.check_order(u32(7)) == "there are no instances 7: create them first"
    assert workloads.check_order(Array(ArrayType.U8, b"7")) == "its order is not an array of u32"
