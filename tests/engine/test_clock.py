"""The clock that stamps I/Os: exact, true for a day, never going back; and the counter below it."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivypy.protocol.counters import Count, ThreadCount
from tests.support.engine import MS, drive, run

pytestmark = pytest.mark.slow

HOUR = 3600


def converted(pairs: list[tuple[int, int]]) -> list[int]:
    """Nanoseconds of (ticks per second, seconds), as the engine converts them."""
    return list(map(int, run("clock_map", "convert", stdin="\n".join(f"{rate} {s}" for rate, s in pairs)).split()))


def test_an_hour_is_exact_to_a_nanosecond() -> None:
    """fio's published example, 2,600,001 ticks per ms: its own method gives 3,599,999,496,339 ns."""
    assert abs(converted([(2_600_001_000, HOUR)])[0] - HOUR * 10**9) <= 1


@settings(max_examples=10, deadline=None)  # a process each
@given(st.lists(st.tuples(st.integers(10**8, 6 * 10**9), st.integers(0, 100 * 24 * HOUR)), min_size=1, max_size=50))
def test_any_rate_is_exact_for_a_hundred_days(pairs: list[tuple[int, int]]) -> None:
    for (_, seconds), ns in zip(pairs, converted(pairs), strict=True):
        assert abs(ns - seconds * 10**9) <= 1


@pytest.mark.parametrize("law", ["day", "forward", "meet"])
def test_clock_map_follows_the_line_between_anchors(law: str) -> None:
    run("clock_map", law)


@pytest.mark.realtime
def test_threads_follow_the_kernels_clock_at_their_own_swaps(tmp_path: Path) -> None:
    """Where the counter is trusted: it takes over once its rate is known, and every correction is recorded."""
    image = tmp_path / "image"
    image.write_bytes(bytes(1 << 20))
    for step in drive("null", threads=2):
        for thread in range(2):
            step.create(thread, step.lun(image), thread)
        step.go([0, 1], 250 * MS)
        step.engine.stop(9)
        step.finish()
        assert abs(step.total(Count.DUE) - 5000) <= 2
        corrections = [int(c) for result in step.results for c in result.threads[:, ThreadCount.CLOCK_ADJUSTMENT]]
        assert all(abs(correction) < MS for correction in corrections)
        if trusted():
            assert any(corrections[8:])
        else:
            assert not any(corrections)


def trusted() -> bool:
    return run("tsc").startswith("trusted")


def test_the_order_across_cores_follows_from_turns_that_were_really_taken() -> None:
    words = run("tsc").split()
    cores, turns, backwards = (int(words[words.index(name) + 1]) for name in ("cores", "turns", "backwards"))
    assert cores == len(os.sched_getaffinity(0))
    if words[0] == "trusted" and cores > 1:
        assert turns >= 1000
    if words[0] == "trusted":
        assert backwards == 0
