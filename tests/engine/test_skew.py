"""Workloads of one LUN, held in proportion: how many I/Os each issues."""

from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import devices
from tests.support.engine import run

pytestmark = pytest.mark.slow

LENGTH_MS = 50  # of a subinterval


class Held(NamedTuple):
    """An instance."""

    skew: float
    tags: int = 4
    bytes: int = 4096
    service_us: int = 1000
    think_us: int = 0
    ios: int = 0  # until so many; 0: without an end


def issued(instances: Sequence[Held], lengths: int) -> list[int]:
    """In the second of two steps. That none is ever ahead by more than an I/O, the driver checks at each."""
    words: list[object] = [lengths]
    for one in instances:
        words += [one.skew, one.tags, one.bytes, one.service_us * 1000, one.think_us * 1000, one.ios]
    with devices.memory_folder() as folder:
        image = devices.image(folder, 16 << 20)
        return [*map(int, run("faults", "skewed", image, *words, sanitizer="simulated").split())]


def most(one: Held, lengths: int) -> float:
    """I/Os that it issues where nobody holds it."""
    alone = lengths * LENGTH_MS * 1000 / (one.service_us + one.think_us) * one.tags
    return min(alone, one.ios) if one.ios else alone


@pytest.mark.parametrize(
    "instances",
    [
        [Held(1), Held(1)],
        [Held(1), Held(3)],
        [Held(10), Held(3), Held(1)],
        [Held(1, tags=1), Held(1, tags=64)],
        [Held(10, tags=1), Held(1, tags=64)],
        [Held(1, tags=1), Held(10, tags=64)],
        [Held(0.7, service_us=100), Held(0.2, service_us=3000), Held(0.1, service_us=700)],
        [Held(2, bytes=512), Held(1, bytes=65536)],
        [Held(1e6), Held(6e5)],
        [Held(1e-3), Held(3e-3)],
        [Held(1, think_us=2000), Held(2, tags=32)],
        [Held(1, think_us=500), Held(2, think_us=100, tags=2)],
        [Held(1)],
    ],
    ids=str,
)
def test_each_issues_by_its_skew_as_fast_as_the_slowest_lets_it(instances: list[Held]) -> None:
    counts = issued(instances, 40)
    progress = [count / one.skew for count, one in zip(counts, instances, strict=True)]
    assert max(progress) - min(progress) <= 2 / min(one.skew for one in instances)
    slowest = min(most(one, 40) / one.skew for one in instances)
    assert min(progress) > 0.85 * slowest, "nobody waits for nothing"
    assert sum(counts) >= 200
    for count, one in zip(counts, instances, strict=True):
        share = one.skew / sum(other.skew for other in instances)
        assert count == pytest.approx(sum(counts) * share, rel=0.01, abs=2)


def test_what_has_ended_holds_nobody() -> None:
    assert issued([Held(1, tags=1, ios=20), Held(1, tags=8, service_us=100)], 10)[0] == 20
    ended, goes_on = issued([Held(5, ios=50), Held(1, tags=8, service_us=100)], 10)
    assert ended == 50
    assert goes_on > 10_000


def test_without_a_skew_none_is_held() -> None:
    slow, quick = issued([Held(0, tags=1, service_us=10_000), Held(1, tags=8, service_us=100)], 10)
    assert slow == pytest.approx(50, abs=2)
    assert quick > 10_000


def any_held(services_us: Sequence[int], most_tags: int) -> st.SearchStrategy[Held]:
    return st.builds(
        Held,
        skew=st.sampled_from([0, 0.3, 1, 2, 7.5, 100]),
        tags=st.integers(1, most_tags),
        bytes=st.sampled_from([512, 4096, 65536]),
        service_us=st.sampled_from(services_us),
        think_us=st.sampled_from([0, 0, 50, 1000]),
        ios=st.sampled_from([0, 0, 1, 30, 500]),
    )


# With 40 tags, a storage that answers at once does millions of I/Os: seconds of CPU, for what 2 tags show as well.
HELD = any_held([0, 10], 2) | any_held([100, 2000], 40)


@settings(max_examples=30, deadline=None)  # a process each
@given(st.lists(HELD, min_size=1, max_size=6))
def test_nobody_is_ever_ahead_and_nothing_hangs(instances: list[Held]) -> None:
    counts = issued(instances, 2)
    counted = [(count, one) for count, one in zip(counts, instances, strict=True) if one.skew and not one.ios]
    for count, one in zip(counts, instances, strict=True):
        assert not one.ios or count <= one.ios
        assert count > 0
    least = min((count / one.skew for count, one in counted), default=0)
    assert all((count - 1) / one.skew <= least * (1 + 1e-9) for count, one in counted)
