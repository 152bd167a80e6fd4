"""What makes writes durable, on real devices: synchronous writes and flushes, as the device counts them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ivypy.protocol.counters import Count
from tests.support import devices
from tests.support.engine import MS, REAL, Drive, drive

pytestmark = pytest.mark.slow


@pytest.fixture(params=REAL)
def step(request: pytest.FixtureRequest) -> Iterator[Drive]:
    """To be asked for after devices, so that it is closed before they are undone."""
    yield from drive(request.param)


def flushes_of_device(device: str) -> int:
    return int(Path(f"/sys/block/{Path(device).name}/stat").read_text().split()[15])


def sectors_written(device: str) -> int:
    return int(Path(f"/sys/block/{Path(device).name}/stat").read_text().split()[6])


def write(step: Drive, lun: object, ios: int, **changes: Any) -> None:
    """`lun`: a handle, or a path."""
    writes: dict[str, Any] = {"iops": -1.0, "maxtags": 1, "fraction_read": 0.0, "until": ("ios", ios)}
    handle = lun if isinstance(lun, int) else step.lun(lun, writable=True)
    step.create(0, handle, **writes | changes)
    step.go([0], 50 * MS)
    while not step.results or not step.results[-1].total(Count.ENDED_NS):
        step.until(len(step.results) + 1)
    step.engine.stop(len(step.results))
    step.finish()
    assert step.total(Count.ERRORS) == 0
    assert step.total(Count.WRITTEN) == ios * 4096


@pytest.mark.parametrize("sync", ["none", "dsync", "sync"])
def test_a_synchronous_write_to_a_device_is_followed_by_a_flush(loop_lun: str, step: Drive, sync: str) -> None:
    """A loop device has no FUA, so the kernel flushes after each write; one at a time, none is merged."""
    before = flushes_of_device(loop_lun)
    write(step, loop_lun, 100, sync=sync)
    assert flushes_of_device(loop_lun) - before == (0 if sync == "none" else 100)


@pytest.mark.parametrize("sync", ["none", "dsync", "sync"])
def test_a_synchronous_write_to_a_file_too(loop_lun: str, sync: str) -> None:
    with devices.ext4_file(loop_lun, 16 << 20) as path:
        for backend in REAL:
            for step in drive(backend):
                before = flushes_of_device(loop_lun)
                write(step, path, 100, sync=sync)
                flushes = flushes_of_device(loop_lun) - before
                assert flushes >= 100 if sync != "none" else flushes < 10


@pytest.mark.parametrize("how", ["fsync", "fdatasync"])
@pytest.mark.parametrize("maxtags", [1, 8])
def test_a_flush_reaches_the_device(loop_lun: str, step: Drive, how: str, maxtags: int) -> None:
    """The kernel may make one of those that are in flight together."""
    before = flushes_of_device(loop_lun)
    write(step, loop_lun, 100, maxtags=maxtags, flush=(how, 10), end_fsync=True)
    reached = flushes_of_device(loop_lun) - before
    assert reached == 10 if maxtags == 1 else 2 <= reached <= 10
    assert step.total(Count.FLUSHES) == 10
    assert step.total(Count.COMPLETED) == 100 + step.total(Count.FLUSHES)


def test_a_buffered_file_is_on_its_disk_at_the_end(loop_lun: str) -> None:
    with devices.ext4_file(loop_lun, 16 << 20) as path:
        for step in drive("io_uring"):
            before = sectors_written(loop_lun)
            lun = step.engine.open_lun(str(path), True, direct=False)
            write(step, lun, 4096, maxtags=32, random_map=True, end_fsync=True)
            assert sectors_written(loop_lun) - before >= 4096 * 8
