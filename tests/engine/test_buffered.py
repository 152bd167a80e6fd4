"""LUNs that are opened without O_DIRECT: through the page cache, in sizes to the byte."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from mmap import mmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ivypy.protocol.counters import Count
from ivypy.slave.engine._engine import abilities
from tests.support import devices
from tests.support.engine import BACKENDS, MS, Drive, drive

pytestmark = pytest.mark.slow

BUFFERED = [backend for backend in BACKENDS if abilities()[backend].buffered]
DIRECT = [backend for backend in BACKENDS if not abilities()[backend].buffered]


@pytest.fixture(params=BUFFERED)
def step(request: pytest.FixtureRequest) -> Iterator[Drive]:
    yield from drive(request.param)


@pytest.fixture
def uring() -> Iterator[Drive]:
    if "io_uring" not in BACKENDS:
        pytest.skip("this kernel has no io_uring")
    yield from drive("io_uring")


def buffered(step: Drive, path: object, writable: bool = True) -> int:
    return step.engine.open_lun(str(path), writable, direct=False)


def run(step: Drive, lun: int, **changes: Any) -> None:
    """To its end by volume."""
    step.create(0, lun, **{"iops": -1.0, "maxtags": 8} | changes)
    step.go([0], 50 * MS)
    while not step.results or not step.results[-1].total(Count.ENDED_NS):
        step.until(len(step.results) + 1)
    step.engine.stop(len(step.results))
    step.finish()
    assert step.total(Count.ERRORS) == step.total(Count.SHORT) == 0


def past_the_cache(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_DIRECT)


@contextmanager
def broken_reads(lun: devices.FaultFs) -> Iterator[None]:
    lun.tell(read_ppm=1_000_000)
    try:
        yield
    finally:
        lun.tell()


@pytest.mark.parametrize("blocksize", [1, 100, 4096, 8000, 70_001])
def test_a_file_takes_sizes_to_the_byte(step: Drive, tmp_path: Path, blocksize: int) -> None:
    path = devices.image(tmp_path, 8 * blocksize + blocksize // 2)
    run(step, buffered(step, path), blocksize=blocksize, fraction_read=0.5, until=("ios", 400))
    assert step.total(Count.BYTES) == 400 * blocksize
    assert 0 < step.total(Count.WRITTEN) < step.total(Count.BYTES)
    assert step.total(Count.WRITTEN) % blocksize == 0


@pytest.mark.parametrize("blocksize", [100, 8000])
def test_each_byte_of_its_blocks_is_written_and_none_behind_them(uring: Drive, tmp_path: Path, blocksize: int) -> None:
    path = devices.image(tmp_path, 16 * blocksize + 50)
    written = ("written", 16 * blocksize)
    run(uring, buffered(uring, path), blocksize=blocksize, fraction_read=0.0, random_map=True, until=written)
    data = np.frombuffer(path.read_bytes(), "u1")
    blocks = data[: 16 * blocksize].reshape(16, blocksize)
    assert np.unique(blocks, axis=0).shape[0] == 16
    assert (blocks[:, -32:] != 0).any(axis=1).all()
    assert not data[16 * blocksize :].any()


@pytest.mark.parametrize("blocksize", [1, 100, 8000])
def test_what_was_never_written_reads_as_zeros(uring: Drive, tmp_path: Path, blocksize: int) -> None:
    path = devices.image(tmp_path, 100 * blocksize)
    run(uring, buffered(uring, path, writable=False), blocksize=blocksize, until=("ios", 2000))
    assert uring.total(Count.READS_SAMPLED) == uring.total(Count.ZERO_READS) > 5


def test_a_cached_file_is_read_without_its_disk(faulty_lun: devices.FaultFs) -> None:
    """It was written just now, and then each read of its disk fails; who else reads that changes nothing. 32 of 1 MiB
    at once copy for as long as the call lasts, and nothing dies of that."""
    with devices.ext4_file(faulty_lun.device, 64 << 20) as path, broken_reads(faulty_lun):
        with open(faulty_lun.device, "rb", 0, opener=past_the_cache) as disk:
            with pytest.raises(OSError, match="Input/output error"):
                disk.readinto(mmap(-1, 4096))
        for step in drive("io_uring"):
            lun = buffered(step, path, writable=False)
            run(step, lun, blocksize=1 << 20, maxtags=32, until=("ios", 500))
            assert step.total(Count.BYTES) == 500 << 20


def test_a_device_takes_whole_pages(uring: Drive, loop_lun: str) -> None:
    """The cache writes whole ones back, the first of which nobody touches."""
    lun = buffered(uring, loop_lun)
    with pytest.raises(OSError, match="blocksize is not a multiple"):
        uring.create(0, lun, blocksize=512)
    run(uring, lun, blocksize=4096, fraction_read=0.0, until=("ios", 200))
    with open(loop_lun, "rb") as file:
        os.fsync(file.fileno())
        assert not any(file.read(4096))


@pytest.mark.parametrize("backend", DIRECT)
def test_a_backend_that_would_wait_for_the_cache_is_refused(backend: str, uring: Drive, tmp_path: Path) -> None:
    path = devices.image(tmp_path, 1 << 20)
    for step in drive(backend):
        lun = buffered(step, path)
        with pytest.raises(OSError, match="backend: io_uring") as refusal:
            step.create(0, lun)
        assert refusal.value.errno == errno.EOPNOTSUPP
    uring.create(0, buffered(uring, path))
    with pytest.raises(OSError, match="backend: io_uring"):
        uring.engine.use(backend)


def test_what_goes_through_the_cache_is_not_polled_for(uring: Drive, tmp_path: Path) -> None:
    uring.create(0, buffered(uring, devices.image(tmp_path, 1 << 20)))
    with pytest.raises(OSError, match="leave `engine: polled` out"):
        uring.engine.use("io_uring", polled=True)
