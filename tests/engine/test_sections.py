"""I/Os counted by the section of the LUN that they begin in, in simulated time: exact, and nothing twice."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ivypy.protocol.counters import MOST_SECTIONS, SERVICES, Count, Kind, Moment, SectionCount
from tests.support import devices
from tests.support.engine import MS, Drive, Result, drive

pytestmark = pytest.mark.slow

KIB, MIB = 1 << 10, 1 << 20
READS = [SERVICES[Kind.RANDOM_READ], SERVICES[Kind.SEQUENTIAL_READ]]
CHANGES = [SERVICES[kind] for kind in Kind if SERVICES[kind] not in READS]
MIXED: dict[str, Any] = {"operations": (("read", 4 * KIB, 0.5), ("write", 8 * KIB, 0.3), ("trim", 4 * KIB, 0.2))}


@pytest.fixture
def step() -> Iterator[Drive]:
    yield from drive("simulated", threads=2)


def run(step: Drive, sections: int, numbers: list[int], rows: list[int] | None = None) -> list[Result]:
    """Four subintervals of these instances."""
    step.go(numbers, 10 * MS, rows=rows, sections=sections)
    step.engine.stop(3)
    step.finish()
    return step.results


def counted(results: list[Result], *columns: SectionCount) -> NDArray[np.uint64]:
    """(instances, sections): the sum of these columns over all results."""
    total: NDArray[np.uint64] = np.sum([result.sections[..., list(columns)].sum(axis=-1) for result in results], axis=0)
    return total


def triple(result: Result, series: list[int]) -> tuple[int, int, int]:
    """Of one class: the count, the sum and the longest."""
    moments = result.moments[0, series]
    return int(moments[:, Moment.COUNT].sum()), int(moments[:, Moment.SUM].sum()), int(moments[:, Moment.MAX].max())


def check(results: list[Result], sections: int) -> None:
    """All sections of all instances together are what the series say, subinterval by subinterval."""
    for result in results:
        counts = result.sections
        assert counts.shape == (len(result.counts), sections, len(SectionCount))
        read = counts[..., : SectionCount.CHANGES].reshape(-1, 3)
        changed = counts[..., SectionCount.CHANGES :].reshape(-1, 3)
        for columns, series in ((read, READS), (changed, CHANGES)):
            assert (columns[:, 0].sum(), columns[:, 1].sum(), columns[:, 2].max()) == triple(result, series)
        of_each = counts[..., [SectionCount.READS, SectionCount.CHANGES]].sum(axis=(1, 2))
        assert of_each.tolist() == (result.counts[:, Count.COMPLETED] - result.counts[:, Count.FLUSHES]).tolist()
    assert counted(results, SectionCount.READS, SectionCount.CHANGES).sum() > 0


@pytest.mark.parametrize("iops", [-1.0, 20_000.0])
@pytest.mark.parametrize(
    "more",
    [{}, {"fraction_read": 0.3}, {"iosequencer": "sequential"}, {"flush": ("fsync", 3), "fraction_read": 0.5}, MIXED],
)
@pytest.mark.parametrize("sections", [1, 7, MOST_SECTIONS])
def test_sections_together_are_what_the_series_say(
    step: Drive, tmp_path: Path, sections: int, more: dict[str, Any], iops: float
) -> None:
    more = {"blocksize": 8 * KIB, "maxtags": 8} | more
    step.create(0, step.lun(devices.image(tmp_path, 4 * MIB), writable=True), iops=iops, **more)
    check(run(step, sections, [0]), sections)
    check(run(step, sections, [0]), sections)  # and nothing is left of the step before


def test_sequential_reads_are_in_the_sections_of_their_blocks(step: Drive, tmp_path: Path) -> None:
    """Ten blocks in three sections: 4, 3 and 3 begin there."""
    lun = step.lun(devices.image(tmp_path, 40 * KIB))
    step.create(0, lun, iosequencer="sequential", iops=5000.0, maxtags=1, blocksize=4 * KIB)
    results = run(step, 3, [0])
    blocks = np.arange(sum(result.total(Count.COMPLETED) for result in results)) % 10
    assert counted(results, SectionCount.READS).tolist() == [np.bincount(blocks * 3 // 10).tolist()]


@pytest.mark.parametrize("place", range(4))
def test_a_range_that_is_one_section_is_counted_in_it_alone(step: Drive, tmp_path: Path, place: int) -> None:
    lun = step.lun(devices.image(tmp_path, 4 * MIB))
    span = (place * MIB, (place + 1) * MIB)
    step.create(0, lun, iosequencer="sequential", maxtags=8, iops=-1.0, blocksize=64 * KIB, range=span)
    (counts,) = counted(run(step, 4, [0]), SectionCount.READS)
    assert [bool(count) for count in counts] == [section == place for section in range(4)]


def test_each_instance_has_its_own_and_parts_of_one_share_them(step: Drive, tmp_path: Path) -> None:
    lun = step.lun(devices.image(tmp_path, 4 * MIB))
    for number, (thread, start) in enumerate([(0, 0), (1, 1), (0, 3), (1, 3)]):
        step.create(number, lun, thread, iops=1000.0 * (number + 1), range=(start * MIB, (start + 1) * MIB))
    counts = counted(run(step, 4, [0, 1, 2, 3], rows=[0, 0, 1, 2]), SectionCount.READS)
    assert counts.tolist() == [[40, 80, 0, 0], [0, 0, 0, 120], [0, 0, 0, 160]]


def test_a_step_counts_by_address_only_where_it_is_told(step: Drive, tmp_path: Path) -> None:
    step.create(0, step.lun(devices.image(tmp_path, 4 * MIB)), iops=-1.0, maxtags=8)
    check(run(step, 5, [0]), 5)
    assert [result.sections.size for result in run(step, 0, [0])] == [0] * 4
    check(run(step, 2, [0]), 2)
