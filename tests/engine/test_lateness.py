"""Lateness where I/Os are discarded, on a simulated clock: what the generator's delays add to response times."""

import random
from dataclasses import dataclass

import pytest

from tests.support.engine import MS, S, run

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Means:
    """Of the same I/Os, nanoseconds."""

    response: float
    ideal_response: float  # with a generator that is never late
    lateness: float
    without_discards: float  # lateness, if discarded I/Os had never been due
    waited: float  # with a free tag

    @property
    def added(self) -> float:
        """What the generator's own delays added to response times."""
        return max(self.response - self.ideal_response, 0.0)


def means(
    tags: int, load: float, service_ns: float, drop_after_ns: float, late_ns: float, stall_ns: float = 0, seed: int = 1
) -> Means:
    """`load`: of what the tags can do. Service times spread by half."""
    spread_ns = service_ns / 2
    iops = load * tags * S / (service_ns + spread_ns / 2)
    words = (tags, iops, service_ns, spread_ns, drop_after_ns, late_ns, stall_ns, seed)
    return Means(*map(float, run("lateness", *words, sanitizer="plain").split()))


@pytest.mark.parametrize(("tags", "load"), [(1, 2.0), (4, 2.0), (4, 10.0), (64, 3.0)])
@pytest.mark.parametrize("drop_after_ms", [10, 100])
def test_far_above_capacity_lateness_does_not_add_up(tags: int, load: float, drop_after_ms: int) -> None:
    found = means(tags, load, MS, drop_after_ms * MS, 0.05 * MS)
    assert found.response > 0.9 * drop_after_ms * MS
    assert found.lateness < found.response / 50
    assert found.without_discards > found.response / 10, "which it would"


def test_delays_that_overload_the_tags_count_in_full() -> None:
    """The storage could do what is due: all of the wait is the generator's fault, although I/Os are discarded."""
    found = means(4, 0.95, MS, 20 * MS, 0.4 * MS)
    assert found.added > found.response / 2
    assert found.lateness == pytest.approx(found.added, rel=0.15)


@pytest.mark.parametrize("load", [0.2, 0.5])
def test_a_stall_of_the_generator_counts_in_full_also_where_it_discards(load: float) -> None:
    found = means(4, load, MS, 100 * MS, 0.01 * MS, 500 * MS)
    assert found.added > found.response / 2
    assert found.lateness == pytest.approx(found.added, rel=0.1)


def test_lateness_is_what_delays_add_to_response_times() -> None:
    """Within a sixth of the response time, whatever the load, its delays and what is discarded."""
    source = random.Random(5)
    for seed in range(100):
        tags, load = source.choice((1, 2, 4, 16, 64)), 2 ** source.uniform(-2, 4)
        service_ns = MS * 10 ** source.uniform(-0.5, 0.7)
        late_ns, stall_ms = service_ns * source.choice((0.01, 0.05, 0.2)), source.choice((0, 0, 50, 500))
        drop_after_ns = service_ns * 10 ** source.uniform(0.3, 2.5)
        found = means(tags, load, service_ns, drop_after_ns, late_ns, stall_ms * MS, seed)
        assert abs(found.lateness - found.added) < found.response / 6, found
