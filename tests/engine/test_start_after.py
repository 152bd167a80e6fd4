"""A workload that begins after a step's start does what it would have done from there on, and nothing before."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ivypy.protocol.counters import LATENESS, Count, Moment
from tests.support.engine import MS, Drive, conserved, drive, fields

pytestmark = pytest.mark.slow

LOADS: dict[str, dict[str, Any]] = {
    "even": {"iops": 5000.0, "maxtags": 4},
    "exponential": {"iops": 5000.0, "maxtags": 4, "iosequencer": "random_independent"},
    "closed loop": {"iops": -1.0, "maxtags": 8},
    "think time": {"iops": -1.0, "maxtags": 8, "think_time": 0.001},
}


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "image"
    path.write_bytes(bytes(16 << 20))
    return path


@pytest.fixture
def simulated() -> Iterator[Drive]:
    yield from drive("simulated")


def due(step: Drive) -> list[int]:
    return [result.total(Count.DUE) for result in step.results]


def run(step: Drive, image: Path, subintervals: int, **settings: Any) -> list[int]:
    step.create(0, step.lun(image), **settings)
    step.go([0], 10 * MS)
    step.engine.stop(subintervals - 1)
    step.finish()
    return due(step)


@pytest.mark.parametrize("load", LOADS)
def test_it_does_nothing_before_and_all_after(simulated: Drive, image: Path, load: str) -> None:
    found = run(simulated, image, 6, **LOADS[load], start_after=0.03)
    assert found[:3] == [0, 0, 0] and min(found[3:6]) > 0
    conserved(simulated)
    assert max(result.series(LATENESS, Moment.MAX) for result in simulated.results) < 10 * MS


def test_its_rate_is_exact_from_its_start_on(simulated: Drive, image: Path) -> None:
    assert run(simulated, image, 5, iops=1000.0, maxtags=4, start_after=0.025)[:5] == [0, 0, 5, 10, 10]


def test_its_time_counts_from_its_start(simulated: Drive, image: Path) -> None:
    found = run(simulated, image, 6, iops=1000.0, maxtags=4, start_after=0.02, until=("time", 25 * MS))
    assert found[:6] == [0, 0, 10, 10, 5, 0]
    assert simulated.results[-1].counts[0, Count.ENDED_NS] > 0


@pytest.mark.parametrize(("iops", "expected"), [(500.0, [0, 0, 0, 5, 5]), (-1.0, [0, 0, 0])])
def test_an_edit_before_its_start_begins_nothing(
    simulated: Drive, image: Path, iops: float, expected: list[int]
) -> None:
    late: dict[str, Any] = {"maxtags": 4, "start_after": 0.03}
    simulated.create(0, simulated.lun(image), iops=1000.0, **late)
    simulated.go([0], 10 * MS)
    simulated.until(1)
    simulated.edit(1, [(0, fields(iops=iops, **late))])
    simulated.engine.stop(5)
    simulated.finish()
    assert due(simulated)[: len(expected)] == expected and due(simulated)[4] > 0


def test_one_that_would_begin_after_the_end_does_nothing(simulated: Drive, image: Path) -> None:
    assert set(run(simulated, image, 3, iops=-1.0, maxtags=4, start_after=60.0)) == {0}
