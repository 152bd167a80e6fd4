"""What the engine writes: nothing compresses it, in whatever unit, and no two sectors are alike."""

import shutil
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ivypy.protocol.counters import Count
from tests.support.engine import MS, REAL, Drive, drive, fields, run

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


MIX = (("write", 4 << 10, 0.5), ("write", 60 << 10, 0.3), ("read", 16 << 10, 0.2))
PLAIN: dict[str, Any] = {"operations": (), "blocksize": 32 << 10, "fraction_read": 0.0}
MIXED: dict[str, Any] = {"operations": MIX, "blocksize": 60 << 10, "fraction_read": 0.2}


@pytest.mark.parametrize("depth", [1, 16])
@pytest.mark.parametrize("loads", [[MIXED], [PLAIN, MIXED], [MIXED, PLAIN], [PLAIN, MIXED, PLAIN, MIXED]])
@pytest.mark.parametrize("iops", [-1.0, 2000.0])
def test_no_size_of_a_mix_is_written_twice_with_the_same_data(
    engine: Drive, tmp_path: Path, depth: int, loads: list[dict[str, Any]], iops: float
) -> None:
    """Nor where an edit has other sizes."""
    path = tmp_path / "lun"
    path.write_bytes(bytes(8 * SIZE))
    common = {"iops": iops, "maxtags": depth, "align": 4096}
    engine.create(0, engine.lun(path, writable=True), ceilings=(depth, 60 << 10), **loads[0] | common)
    engine.go([0], 20 * MS)
    for number, load in enumerate([*loads[1:], loads[-1]], 1):
        while engine.total(Count.WRITTEN) < number << 20:
            engine.until(len(engine.results) + 1)
        engine.edit(number, [(0, fields(**load | common))])
    engine.engine.halt()
    engine.finish()
    data = path.read_bytes()
    sectors = [sector for at in range(0, len(data), SECTOR) if any(sector := data[at : at + SECTOR])]
    assert len(set(sectors)) == len(sectors) > 0
