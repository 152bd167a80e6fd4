"""Offsets from probes: the bound holds, whatever the path, the crystals and time daemons do; a step is noticed."""

import random
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.hosts.clock_offset import FASTEST, QUARTERS, Jump, OffsetEstimator

S = 10**9
Offset = Callable[[float], float]  # controller's ns -> the host's clock minus the controller's, ns


@dataclass
class Wandering:
    """A clock whose rate changes at any time, within `fastest`."""

    seed: int
    fastest: float = 0.99 * FASTEST
    start_ns: float = 0.0
    changes: list[tuple[float, float, float]] = field(default_factory=list)  # from when on: instant, offset, rate

    def __post_init__(self) -> None:
        draw, at, offset = random.Random(self.seed), -2.0 * S, self.start_ns
        while at < 1000 * S:
            rate = draw.choice([0.0, draw.uniform(-self.fastest, self.fastest), self.fastest, -self.fastest])
            self.changes.append((at, offset, rate))
            lasts = draw.expovariate(1 / draw.choice([0.5, 20, 200])) * S
            at, offset = at + lasts, offset + rate * lasts

    def __call__(self, at_ns: float) -> float:
        start, offset, rate = self.changes[bisect_right(self.changes, at_ns, key=lambda change: change[0]) - 1]
        return offset + rate * (at_ns - start)


def probe(clock: OffsetEstimator, true: Offset, sent_ns: float, trip_ns: float, there: float = 0.5) -> None:
    """One probe; `there`: the way there, as a share of the trip. The host holds it for 20 us."""
    received, replied = sent_ns + trip_ns * there, sent_ns + trip_ns * there + 20_000

    def host(at_ns: float) -> int:
        return round(at_ns + true(at_ns))

    clock.add(round(sent_ns), host(received), host(replied), round(sent_ns + trip_ns + 20_000))


def probed(
    true: Offset, seconds: int, seed: int = 1, there: float | None = None
) -> Iterator[tuple[int, OffsetEstimator]]:
    """A probe a second; yields the second and the estimator after each."""
    clock, draw = OffsetEstimator(), random.Random(seed)
    for second in range(seconds):
        share = draw.random() if there is None else there
        probe(clock, true, second * S, 100_000 + draw.expovariate(1 / 50_000), share)
        yield second, clock


def after(true: Offset, seconds: int, seed: int = 1) -> OffsetEstimator:
    *_, (_, clock) = probed(true, seconds, seed)
    return clock


@given(
    seed=st.integers(0, 10**6),
    start=st.integers(-(10**15), 10**15),
    there=st.none() | st.floats(0, 1),
    ahead_s=st.floats(-30, 60),
)
def test_the_true_offset_is_within_the_bound_however_the_rate_changes(
    seed: int, start: int, there: float | None, ahead_s: float
) -> None:
    true = Wandering(seed, start_ns=float(start))
    for second, clock in probed(true, 100, seed, there):
        for at in (second * S + 200_000, second * S + 900_000_000, (second + ahead_s) * S):
            if at < 0:
                continue
            estimate = clock.at(round(at))
            assert abs(estimate.offset_ns - true(at)) <= estimate.bound_ns
    assert clock.jump is None


@given(seed=st.integers(0, 1000), by_ms=st.floats(2, 5000), back=st.booleans(), at_s=st.integers(1, 90))
def test_after_a_step_the_bound_holds_from_the_next_probe_on(seed: int, by_ms: float, back: bool, at_s: int) -> None:
    """A virtual machine that was suspended, or moved to another machine."""
    by_ns = (-by_ms if back else by_ms) * 1e6

    def true(at_ns: float) -> float:
        return 20e-6 * at_ns + (by_ns if at_ns >= (at_s - 0.5) * S else 0.0)

    for second, clock in probed(true, 100, seed):
        later = second * S + 400_000_000
        estimate = clock.at(later)
        assert abs(estimate.offset_ns - true(later)) <= estimate.bound_ns
        assert (clock.jump is not None) == (second >= at_s)
    assert clock.jump is not None and clock.jump.noticed_ns == pytest.approx(at_s * S, abs=10**6)
    # It moved at least so far; the rest may have been a drift.
    assert 0 < clock.jump.by_ns / by_ns <= 1 and abs(by_ns - clock.jump.by_ns) < 1.2e6 + 200_000


def test_a_clock_that_is_slewed_faster_than_any_drift_is_noticed_as_long_as_it_lasts() -> None:
    """chrony corrects 20 ms at 1,000 ppm: 20 seconds."""
    jumps: list[Jump] = []
    for _, clock in probed(lambda at: min(max(at - 30 * S, 0) * 1000e-6, 20e6), 100):
        if clock.jump is not None and clock.jump not in jumps:
            jumps.append(clock.jump)
    assert 18 <= len(jumps) <= 20
    assert all(30 * S <= jump.noticed_ns <= 51 * S for jump in jumps)
    assert clock.at(100 * S).offset_ns == pytest.approx(20e6, abs=600_000)


def test_a_rate_is_learned_from_good_probes_far_apart() -> None:
    clock = after(lambda at: 5e12 + 20e-6 * at, 300)
    rate, error = clock.rate()
    assert rate == pytest.approx(20e-6, abs=error) and error < 3e-6
    ahead = clock.at(310 * S)
    assert ahead.offset_ns == pytest.approx(5e12 + 20e-6 * 310e9, abs=150_000)
    assert ahead.bound_ns < 11 * (FASTEST + 20e-6) * S + 200_000


def test_a_rate_that_has_changed_is_learned_within_two_minutes() -> None:
    clock = after(lambda at: 60e-6 * min(at, 300 * S), 300 + 150)
    assert abs(clock.rate()[0]) < 3e-6


def test_one_probe_has_the_bound_of_an_unknown_rate() -> None:
    clock = OffsetEstimator()
    assert not clock
    with pytest.raises(ValueError, match="no probe"):
        clock.at(0)
    clock.add(0, 1_050_000, 1_050_000, 100_000)
    assert clock and clock.rate() == (0.0, FASTEST)
    assert clock.at(50_000).offset_ns == 1_000_000
    assert clock.at(50_000).bound_ns == pytest.approx(50_050, abs=10)
    assert clock.at(50_000 + S).bound_ns == pytest.approx(550_050, abs=10)


@given(st.integers(-(10**15), 10**15), st.integers(0, 1000), st.integers(0, 200 * S))
def test_to_local_and_to_controller_are_inverse(offset: int, seed: int, at: int) -> None:
    clock = after(Wandering(seed, start_ns=float(offset)), 120)
    assert abs(clock.to_controller(clock.to_local(at)) - at) <= 2 * FASTEST * clock.at(at).bound_ns + 10


def test_memory_of_probes_does_not_grow() -> None:
    clock = after(lambda at: 0.0, 2000)
    assert len(clock._best) == QUARTERS
