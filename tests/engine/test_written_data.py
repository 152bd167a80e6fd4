"""What the engine writes: nothing compresses it, in whatever unit, and no two sectors are alike."""

import shutil
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ivypy.protocol.counters import Count
from tests.support.engine import MS, REAL, Drive, drive, run

SIZE = 2 << 20
SECTOR = 512
UNITS = (4 << 10, 32 << 10, 128 << 10, SIZE)  # of file systems and arrays that compress


@pytest.fixture
def engine() -> Iterator[Drive]:
    yield from drive(REAL[0])


def written(step: Drive, folder: Path, times: int, **changes: Any) -> bytes:
    """What a step left of a file of zeros that it wrote `times` over; sectors that it never wrote are left out."""
    path = folder / "lun"
    path.write_bytes(bytes(SIZE))
    step.create(0, step.lun(path, writable=True), iops=-1.0, **changes)
    step.go([0], 20 * MS)
    while step.total(Count.BYTES) < times * SIZE:
        step.until(len(step.results) + 1)
    step.engine.halt()
    step.finish()
    data = path.read_bytes()
    return b"".join(sector for at in range(0, SIZE, SECTOR) if any(sector := data[at : at + SECTOR]))


def compressibility(data: bytes, folder: Path) -> dict[str, float]:
    """How much smaller each compressor makes it, by its unit: 1.0 is not at all."""
    found = {}
    for unit in UNITS:
        pieces = [data[at : at + unit] for at in range(0, len(data), unit)]
        found[f"zlib {unit}"] = len(data) / sum(min(len(zlib.compress(piece, 1)), len(piece)) for piece in pieces)
    if shutil.which("zstd"):
        path = folder / "data"
        path.write_bytes(data)
        done = subprocess.run(["zstd", "-q", "-c", "-3", "--long=27", path], capture_output=True, check=True)
        found["zstd --long"] = len(data) / len(done.stdout)
    return found


@pytest.mark.parametrize("iosequencer", ["sequential", "random_steady"])
@pytest.mark.parametrize(
    ("depth", "blocksize"),
    [
        (1, 4 << 10),
        (32, 4 << 10),
        *(
            pytest.param(depth, blocksize, marks=pytest.mark.slow)
            for depth, blocksize in [(1, 512), (4, 4 << 10), (8, 4 << 10), (4, 12 << 10), (1, 64 << 10), (32, 64 << 10)]
        ),
    ],
)
def test_no_compressor_gains_on_the_whole_device(
    engine: Drive, tmp_path: Path, iosequencer: str, depth: int, blocksize: int
) -> None:
    data = written(engine, tmp_path, 2, iosequencer=iosequencer, maxtags=depth, blocksize=blocksize, fraction_read=0.0)
    assert len(data) > SIZE / 2
    assert len({data[at : at + SECTOR] for at in range(0, len(data), SECTOR)}) == len(data) // SECTOR
    assert {how: round(ratio, 3) for how, ratio in compressibility(data, tmp_path).items() if ratio > 1.002} == {}


def test_streams_of_random_data_have_nothing_in_common() -> None:
    run("random_data")
