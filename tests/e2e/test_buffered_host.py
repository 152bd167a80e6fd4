"""A host that drives a file through its page cache, on ext4 on a device whose I/O the kernel counts: what the slave
reports is what /proc/PID/io and the device say."""

import contextlib
import mmap
import os
import threading
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ivypy.protocol import messages as m
from ivypy.protocol.counters import Count
from ivypy.protocol.parameters import Flush, Iosequencer, Parameters, Sync, Until, VolumeKind
from ivypy.protocol.payload import Notice, NoticeKind
from ivypy.protocol.refusals import RefusalReason
from ivypy.slave.engine._engine import backends
from ivypy.slave.luns.page_cache import dirty_bytes
from tests.support.devices import FaultFs
from tests.support.loop_devices import loop_device, mounted, need, needs_loops, run
from tests.support.refusals import refusals_in
from tests.support.slave_client import Client, u32

pytestmark = [
    pytest.mark.slow,
    needs_loops,
    pytest.mark.skipif("io_uring" not in backends(), reason="io_uring does not work on this kernel"),
]

MIB = 1 << 20
SIZE = 64 * MIB
READ = Parameters(
    iosequencer=Iosequencer.SEQUENTIAL,
    blocksize=128 << 10,
    maxtags=4,
    direct=False,
    until=Until(VolumeKind.READ, SIZE),
)
WRITE = replace(READ, fraction_read=0.0, until=Until(VolumeKind.WRITTEN, SIZE))
DIRECT_READ = replace(READ, direct=True)


@pytest.fixture
def device(shm: Path) -> Iterator[str]:
    with loop_device(shm, 2 * SIZE) as path:
        yield path


@pytest.fixture
def file(device: str, shm: Path) -> Iterator[Path]:
    need("mkfs.ext4")
    run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", device)  # nothing is written later
    with mounted(device, shm / "point") as point:
        path = point / "lun"
        path.write_bytes(os.urandom(SIZE))
        run("sync", "-f", str(path))  # of this file system alone: others have tests of what is dirty
        yield path


@pytest.fixture
def slave(file: Path) -> Iterator[Client]:
    with Client() as client:
        client.prepare("auto")
        yield client
        client.send(m.Die)  # so that nothing of it keeps the file system busy
        client.gone()


def read_from_disks(slave: Client) -> int:
    """By the slave and the kernel's threads that work for it."""
    lines = Path(f"/proc/{slave.process.pid}/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["read_bytes"])


def step(slave: Client, *numbers: int, meanwhile: Callable[[], None] = lambda: None) -> Counter[Count]:
    """What these did in a step that lasts until they have ended, all together; of DIRTY, at its end."""
    slave.ask(m.ClockProbe)
    slave.do(m.ReinspectLuns, order=u32(*numbers))
    slave.go(*numbers)
    total = Counter[Count]()
    stopping = False
    while True:
        slave.ask(m.ClockProbe)
        said = slave.hear()
        if isinstance(said, m.Stopped):
            return total
        if not isinstance(said, m.Result):
            continue
        counts = array("q", said.counts.data)
        rows = [counts[at : at + len(Count)] for at in range(0, len(counts), len(Count))]
        total += Counter({column: sum(row[column] for row in rows) for column in Count})
        total[Count.DIRTY] = sum(row[Count.DIRTY] for row in rows)
        if said.subinterval == 0:
            meanwhile()
        if not stopping and all(row[Count.ENDED_NS] for row in rows):
            slave.send(m.Stop, last=said.subinterval + 1)
            stopping = True


@pytest.mark.parametrize(("drop", "cached"), [(True, 0), (False, SIZE)])
def test_a_second_read_comes_from_memory_unless_the_cache_was_dropped(
    drop: bool, cached: int, slave: Client, file: Path
) -> None:
    slave.create(file, READ, replace(READ, drop_cache=drop))
    first = step(slave, 0)
    assert first[Count.CACHED] == 0
    before = read_from_disks(slave)
    second = step(slave, 1)
    assert first[Count.BYTES] == second[Count.BYTES] == SIZE
    truth = SIZE - (read_from_disks(slave) - before)
    assert abs(truth - cached) <= MIB
    assert truth - MIB <= second[Count.CACHED] <= truth + MIB and second[Count.UNSEEN] == 0
    assert slave.all and not [one for one in slave.all if isinstance(one, Notice) and one.kind in WARNINGS]


WARNINGS = (NoticeKind.STAYS_CACHED, NoticeKind.NOT_WRITTEN_BACK, NoticeKind.KERNEL_THREADS)


def test_half_of_it_in_memory_is_half_cached(slave: Client, file: Path) -> None:
    slave.create(file, replace(READ, drop_cache=False), READ)
    step(slave, 1)
    fd = os.open(file, os.O_RDONLY)
    os.posix_fadvise(fd, SIZE // 2, SIZE // 2, os.POSIX_FADV_DONTNEED)
    os.close(fd)
    before = read_from_disks(slave)
    half = step(slave, 0)
    truth = SIZE - (read_from_disks(slave) - before)
    assert abs(truth - SIZE // 2) <= MIB and truth - MIB <= half[Count.CACHED] <= truth + MIB


@pytest.mark.realtime
@pytest.mark.parametrize(
    ("more", "least", "most"),
    [
        ({}, SIZE // 2, SIZE),
        ({"sync": Sync.DSYNC}, 0, MIB),
        ({"end_fsync": True}, 0, 0),
        ({"flush": Flush(8), "maxtags": 1}, 0, 8 * WRITE.blocksize),  # those since the last flush
    ],
)
def test_what_is_written_stays_dirty_until_it_is_flushed(
    more: dict[str, object], least: int, most: int, slave: Client, file: Path
) -> None:
    slave.create(file, replace(WRITE, **more), consent=True)  # type: ignore[arg-type]
    did = step(slave, 0)
    assert did[Count.WRITTEN] == SIZE and least <= did[Count.DIRTY] <= most
    assert did[Count.FOREIGN_BYTES] == did[Count.CACHED] == 0


def test_no_step_pays_for_the_writes_of_an_earlier_one(slave: Client, file: Path, device: str) -> None:
    slave.create(file, WRITE, DIRECT_READ, consent=True)
    assert step(slave, 0)[Count.DIRTY] > 0
    slave.do(m.ReinspectLuns, order=u32(1))
    before = written_by(device)
    did = step(slave, 1)
    assert did[Count.BYTES] == SIZE and did[Count.DIRTY] == did[Count.CACHED] == 0
    assert written_by(device) - before <= MIB  # a journal


def written_by(device: str) -> int:
    return int((Path("/sys/class/block") / Path(device).name / "stat").read_text().split()[6]) * 512


def test_both_ways_in_one_step_and_no_foreign_io(slave: Client, file: Path) -> None:
    slave.create(file, READ, DIRECT_READ)
    did = step(slave, 0, 1)
    assert did[Count.BYTES] == 2 * SIZE and did[Count.FOREIGN_BYTES] == 0
    assert did[Count.CACHED] <= MIB, "direct reads bring nothing into the cache"


def test_a_file_without_o_direct_is_driven_and_unseen(slave: Client, shm: Path) -> None:
    folder = shm / "memory"
    folder.mkdir()
    run("mount", "-t", "ramfs", "ramfs", str(folder))
    try:
        path = folder / "lun"
        path.write_bytes(os.urandom(SIZE))
        with pytest.raises(AssertionError) as refused:
            slave.create(path, DIRECT_READ)
        assert refusals_in(str(refused.value)) == {RefusalReason.NO_O_DIRECT} and "`direct: false`" in str(
            refused.value
        )
        slave.create(path, READ)
        did = step(slave, 0)
        slave.do(m.DeleteWorkloads, numbers=(0,))
    finally:
        run("umount", str(folder))
    assert did[Count.UNSEEN] == did[Count.BYTES] == SIZE and did[Count.CACHED] == did[Count.DIRTY] == 0
    assert not [one for one in slave.all if isinstance(one, Notice) and one.kind in WARNINGS]


@pytest.mark.parametrize("direct", [True, False])
def test_foreign_io_is_not_counted_beside_the_page_cache(direct: bool, slave: Client, file: Path) -> None:
    def others() -> None:
        with open(file.with_name("other"), "wb") as other:
            other.write(os.urandom(SIZE // 4))
            os.fsync(other.fileno())

    slave.create(file, replace(READ, direct=direct))
    did = step(slave, 0, meanwhile=others)
    assert (did[Count.FOREIGN_BYTES] > SIZE // 8) is direct


PACED: dict[str, object] = {"iops": 256.0}  # two seconds for all of it


@contextlib.contextmanager
def others_on_the_disk(file: Path, work: Callable[[int, mmap.mmap], int]) -> Iterator[Callable[[], int]]:
    """This process does `work` to another file of the disk, past the cache, again and again; yield how often by now."""
    path, buffer, over = file.with_name("other"), mmap.mmap(-1, 4 * MIB), threading.Event()
    path.write_bytes(bytes(len(buffer)))
    fd = os.open(path, os.O_RDWR | os.O_DIRECT | os.O_SYNC)
    times = 0

    def repeat() -> None:
        nonlocal times
        while not over.is_set():
            times += work(fd, buffer) // len(buffer)

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield lambda: times
    finally:
        over.set()
        thread.join()
        os.close(fd)


def test_others_that_read_do_not_hide_what_came_from_memory(slave: Client, file: Path) -> None:
    slave.create(file, READ, replace(READ, drop_cache=False, **PACED))  # type: ignore[arg-type]
    step(slave, 0)
    with others_on_the_disk(file, lambda fd, buffer: os.preadv(fd, [buffer], 0)) as times:
        begun = times()
        warm = step(slave, 1)
        assert (times() - begun) * 4 * MIB > SIZE, "else they hide nothing"
    assert SIZE - MIB <= warm[Count.CACHED] <= SIZE


@pytest.mark.realtime
def test_others_that_write_do_not_hide_what_is_dirty(slave: Client, file: Path) -> None:
    slave.create(file, replace(WRITE, **PACED), consent=True)  # type: ignore[arg-type]
    with others_on_the_disk(file, lambda fd, buffer: os.pwritev(fd, [buffer], 0)) as times:
        did = step(slave, 0)
        assert times() * 4 * MIB > SIZE, "else they hide nothing"
    assert did[Count.DIRTY] == dirty_of(file) > SIZE - MIB


def test_what_is_read_far_ahead_comes_from_the_disk(device: str, file: Path) -> None:
    run("blockdev", "--setra", "131072", device)  # 64 MiB: all of it, in the first subinterval
    with Client() as slave:
        slave.prepare("auto")
        slave.create(file, replace(READ, **PACED))  # type: ignore[arg-type]
        before = read_from_disks(slave)
        did = step(slave, 0)
        assert read_from_disks(slave) - before >= SIZE == did[Count.BYTES]
        slave.send(m.Die)
        slave.gone()
    assert did[Count.CACHED] == 0


@pytest.mark.realtime
@pytest.mark.parametrize("end_fsync", [True, False])
def test_blocks_that_are_overwritten_in_the_cache_are_dirty_once(end_fsync: bool, slave: Client, file: Path) -> None:
    three_times = Until(VolumeKind.WRITTEN, 3 * SIZE)
    slave.create(file, replace(WRITE, until=three_times, end_fsync=end_fsync), consent=True)
    did = step(slave, 0)
    assert did[Count.WRITTEN] == 3 * SIZE
    assert did[Count.DIRTY] == dirty_of(file) and (did[Count.DIRTY] == 0) is end_fsync


def test_pages_that_are_dirty_in_part_are_not_all_dirty(slave: Client, file: Path) -> None:
    """Where the file is in memory in large folios, of which the kernel counts each as dirty as a whole."""
    random = Parameters(blocksize=4096, fraction_read=0.0, direct=False, drop_cache=False, maxtags=1)
    slave.create(file, replace(random, flush=Flush(8), until=Until(VolumeKind.WRITTEN, 2 * MIB)), consent=True)
    did = step(slave, 0)
    assert did[Count.WRITTEN] == 2 * MIB and did[Count.DIRTY] <= 8 * 4096, "those since the last flush"


def dirty_of(file: Path) -> int:
    """As the kernel counts it."""
    with open(file, "rb") as opened:
        dirty = dirty_bytes(opened.fileno())
    if dirty is None:
        pytest.skip("no cachestat before Linux 6.5")
    return dirty


@pytest.mark.realtime
def test_a_device_through_the_cache(slave: Client, shm: Path) -> None:
    with loop_device(shm, SIZE) as path:
        fits = Until(VolumeKind.WRITTEN, SIZE // 2)
        slave.create(
            path, replace(WRITE, until=fits), replace(READ, until=Until(VolumeKind.READ, SIZE // 2)), consent=True
        )
        wrote = step(slave, 0)
        assert wrote[Count.WRITTEN] == SIZE // 2 and wrote[Count.DIRTY] == dirty_of(Path(path))
        assert 0 < wrote[Count.DIRTY] <= SIZE // 2
        assert step(slave, 1)[Count.CACHED] == 0
        slave.do(m.DeleteWorkloads, numbers=(0, 1))


def test_a_slow_write_back_advances_and_the_host_answers_meanwhile(faulty_lun: FaultFs) -> None:
    """The controller waits for as long as the work advances."""
    reads = replace(READ, drop_cache=True)
    with Client() as slave, open(faulty_lun.device, "r+b") as held:
        slave.prepare("io_uring")
        slave.create(faulty_lun.device, reads)
        held.write(os.urandom(SIZE))
        held.flush()
        faulty_lun.tell(write_us=300_000)
        command = slave.send(m.ReinspectLuns, order=u32(0))
        done = set[int]()
        while not any(isinstance(said, m.Ok) and said.re == command.id for said in slave.all):
            reading = slave.ask(m.ClockProbe)
            assert isinstance(reading, m.ClockReading)
            done.add(reading.done)
        assert len(done) >= 3
        faulty_lun.tell()


@pytest.mark.parametrize("direct", [True, False])
def test_kernel_threads_are_noticed_of_direct_io_alone(direct: bool, zram_lun: str) -> None:
    with Client() as client:
        client.prepare("io_uring")
        client.create(zram_lun, Parameters(direct=direct))
        notices = [one.kind for one in client.all if isinstance(one, Notice)]
    assert (NoticeKind.KERNEL_THREADS in notices) is direct


def test_another_backend_is_refused_with_the_way_out(file: Path) -> None:
    with Client() as client:
        client.prepare("libaio")
        with pytest.raises(AssertionError) as refused:
            client.create(file, READ)
    assert refusals_in(str(refused.value)) == {RefusalReason.BACKEND_UNABLE}
