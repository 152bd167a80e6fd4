"""Reads of blocks that were never written are counted; nothing else is."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ivypy.protocol.counters import Count
from tests.support.engine import MS, REAL, Drive, drive
from tests.support.loop_devices import loop_device, needs_loops

pytestmark = pytest.mark.slow

SIZE = 16 << 20


@pytest.fixture(params=REAL)
def step(request: pytest.FixtureRequest) -> Iterator[Drive]:
    yield from drive(request.param)


def counted(step: Drive, path: object, blocksize: int = 4096, fraction_read: float = 1.0) -> tuple[int, int, int]:
    """(I/Os, reads sampled, of these zeros) of a step with about 100 samples or more."""
    lun = step.lun(path, writable=fraction_read < 1.0)
    step.create(0, lun, iops=-1.0, maxtags=8, blocksize=blocksize, fraction_read=fraction_read)
    step.go([0], 20 * MS)
    while step.total(Count.COMPLETED) < 8000:
        step.until(len(step.results) + 1)
    step.engine.halt()
    step.finish()
    return step.total(Count.COMPLETED), step.total(Count.READS_SAMPLED), step.total(Count.ZERO_READS)


@needs_loops
@pytest.mark.parametrize("blocksize", [512, 4096, 128 << 10])
def test_a_sparse_loop_device_reads_as_zeros(step: Drive, shm: Path, blocksize: int) -> None:
    with loop_device(shm, SIZE) as device:
        done, sampled, zeros = counted(step, device, blocksize)
        assert done / 100 < sampled < done / 40
        assert zeros == sampled
        step.engine.delete(0)
        step.engine.close_lun(0)


@needs_loops
def test_a_filled_one_does_not(step: Drive, shm: Path) -> None:
    with loop_device(shm, SIZE) as device:
        Path(device).write_bytes(os.urandom(SIZE))
        _, sampled, zeros = counted(step, device)
        assert sampled > 50 and zeros == 0
        step.engine.delete(0)
        step.engine.close_lun(0)


def test_of_a_file_that_is_half_zeros_about_half_of_the_reads_are(step: Drive, tmp_path: Path) -> None:
    path = tmp_path / "lun"
    path.write_bytes(bytes(SIZE // 2) + os.urandom(SIZE // 2))
    _, sampled, zeros = counted(step, path)
    assert 0.2 < zeros / sampled < 0.8


@pytest.mark.parametrize("place", [0, 8, 2048, 4088])
def test_a_block_with_a_word_in_it_is_no_zeros(step: Drive, tmp_path: Path, place: int) -> None:
    path = tmp_path / "lun"
    block = bytearray(4096)
    block[place] = 1
    path.write_bytes(bytes(block) * (SIZE // 4096))
    assert counted(step, path)[2] == 0


def test_writes_are_no_reads(step: Drive, tmp_path: Path) -> None:
    path = tmp_path / "lun"
    path.write_bytes(bytes(SIZE))
    _, sampled, zeros = counted(step, path, fraction_read=0.0)
    assert (sampled, zeros) == (0, 0)


def test_a_backend_that_reads_nothing_finds_no_zeros(tmp_path: Path) -> None:
    path = tmp_path / "lun"
    path.write_bytes(bytes(SIZE))
    for null in drive("null"):
        _, sampled, zeros = counted(null, path)
        assert sampled > 50 and zeros == 0
