"""Load in bursts: due times against those of the same rate without, moved to where the load is on; and closed loops."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ivypy.protocol.counters import LATENESS, Count, Moment
from tests.engine.test_pacing import talk
from tests.support.engine import MS, Drive, S, conserved, drive, fields

pytestmark = pytest.mark.slow


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "image"
    path.write_bytes(bytes(16 << 20))
    return path


@pytest.fixture
def simulated() -> Iterator[Drive]:
    yield from drive("simulated")


TIMES = st.integers(100_000, 3 * S)


@settings(max_examples=60)
@given(
    st.sampled_from(["even", "exponential"]), TIMES, TIMES, st.floats(1, 5000), st.integers(1, 300),
    st.lists(st.integers(1, S), min_size=1, max_size=5),
)  # fmt: skip
def test_due_times_are_those_of_the_time_in_which_it_is_on(
    gaps: str, on: int, off: int, iops: float, count: int, parts: list[int]
) -> None:
    """However the time until then is cut into counts."""
    period, begin = on + off, 7 * S
    higher = iops * (period / on)
    on_horizon = int((2 * count + 50) / higher * S) + 1
    horizon = begin + on_horizon // on * period + on_horizon % on
    untils = [begin + int(part) for part in np.cumsum(parts) if begin + part < horizon]
    bursts = [
        f"start 5 {iops!r} {begin}", *(f"due {until}" for until in untils), f"due {horizon}", f"take {count}",
    ]  # fmt: skip
    *counted, taken = talk(gaps, *bursts, bursts_ns=(on, off))
    plain = talk(gaps, f"start 5 {higher!r} {begin}", f"due {begin + on_horizon}", f"take {count}")[-1]
    moved = [begin + (due - begin) // on * period + (due - begin) % on for due in plain]
    assert taken == moved
    assert all((due - begin) % period < on for due in taken)
    for until, (_, backlog, _) in zip(untils, counted[1:], strict=False):
        if backlog < count:
            assert backlog == sum(due < until for due in taken)


@pytest.mark.parametrize("gaps", ["even", "exponential"])
def test_the_mean_of_whole_periods_is_the_rate(gaps: str) -> None:
    _, (fallen, _, _) = talk(gaps, f"start 3 1000 {S}", f"due {401 * S}", bursts_ns=(S, 3 * S))
    assert abs(fallen - 400_000) <= (1 if gaps == "even" else 5 * 400_000**0.5)


def test_gaps_within_bursts_stay_exponential() -> None:
    taken = np.array(talk("exponential", f"start 3 500 {S}", f"due {900 * S}", f"take {20_000}", bursts_ns=(S, S))[-1])
    gaps = np.diff(taken)[np.diff(taken // (2 * S)) == 0]
    within = gaps[gaps < 0.9 * S]
    assert stats.kstest(within, stats.expon(scale=S / 1000).cdf).pvalue > 0.01


def test_a_new_rate_holds_from_then_on() -> None:
    """In the middle of a burst, and between two."""
    for at, left in ((S // 2, 500), (2 * S, 0)):
        commands = [f"start 5 1000 {S}", f"due {S + at}", f"retime 2000 {S + at}", f"due {5 * S}", f"due {9 * S}"]
        _, _, _, (rest, _, _), (next_period, _, _) = talk("even", *commands, bursts_ns=(S, 3 * S))
        assert abs(rest - left * 2 * 4) <= 1 and abs(next_period - 8000) <= 1


def due(step: Drive) -> list[int]:
    return [result.total(Count.DUE) for result in step.results]


BURSTS: dict[str, Any] = {"bursty": (20 * MS, 30 * MS)}


@pytest.mark.parametrize(
    "load", [{"iops": -1.0, "maxtags": 8}, {"iops": -1.0, "maxtags": 8, "think_time": 0.001}, {"iops": 2000.0}]
)
def test_a_workload_drives_only_while_it_is_on(simulated: Drive, image: Path, load: dict[str, Any]) -> None:
    simulated.create(0, simulated.lun(image), **{"maxtags": 4, **load, **BURSTS})
    simulated.go([0], 10 * MS)
    simulated.engine.stop(14)
    simulated.finish()
    conserved(simulated)
    found = due(simulated)[:15]
    on = [k % 5 < 2 for k in range(15)]
    assert [count > 0 for count in found] == on
    assert max(result.series(LATENESS, Moment.MAX) for result in simulated.results) < 10 * MS
    if load["iops"] > 0:
        assert abs(sum(found) - 2000 * 0.15) <= 1


@pytest.mark.parametrize(("before", "after"), [(1000.0, -1.0), (-1.0, 1000.0), (-1.0, 0.0), (0.0, -1.0)])
@pytest.mark.parametrize("at", [1, 3, 4])
def test_edits_keep_its_bursts(simulated: Drive, image: Path, before: float, after: float, at: int) -> None:
    simulated.create(0, simulated.lun(image), iops=before, maxtags=4, **BURSTS)
    simulated.go([0], 10 * MS)
    simulated.until(at)
    simulated.edit(1, [(0, fields(iops=after, **BURSTS))])
    simulated.engine.stop(19)
    simulated.finish()
    conserved(simulated)
    assert [count > 0 for count in due(simulated)[at + 2 : 20]] == [after != 0 and k % 5 < 2 for k in range(at + 2, 20)]
