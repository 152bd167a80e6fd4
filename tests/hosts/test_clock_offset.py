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
    assert clock.at(50_000).bound_ns == 50_000 + 50 + 2  # half the trip, what drifts in all of it, two roundings
    assert clock.at(50_000 + S).bound_ns == 550_052


@given(st.integers(-(10**15), 10**15), st.integers(0, 1000), st.integers(0, 200 * S))
def test_to_local_and_to_controller_are_inverse(offset: int, seed: int, at: int) -> None:
    clock = after(Wandering(seed, start_ns=float(offset)), 120)
    assert abs(clock.to_controller(clock.to_local(at)) - at) <= 2 * FASTEST * clock.at(at).bound_ns + 10


def test_memory_of_probes_does_not_grow() -> None:
    clock = after(lambda at: 0.0, 2000)
    assert len(clock._best) == QUARTERS


# What is exact of the estimate: probes that are half as long there as back again, and no noise.

HALF = 1_000_000
SLACK = HALF + 1001  # half a trip with what the clocks drift apart meanwhile, and a rounding


def exact(*probes: tuple[float, int, int]) -> OffsetEstimator:
    """After probes: (the middle of the trip in seconds, the host's offset, half the trip in ns)."""
    clock = OffsetEstimator()
    for at_s, offset, half in probes:
        at = round(at_s * S)
        clock.add(at - half, at + offset, at + offset, at + half)
    return clock


def slack(half: int) -> float:
    return half + FASTEST * 2 * half + 1


@pytest.mark.parametrize(
    ("path_ns", "held_ns", "bound"),
    [
        (50_000, 0, 25_000 + 25 + 2),
        (50_000, 50_000_000, 25_000 + 25_025 + 2),  # not 25 ms: the host held it, not the path
        (0, 0, 2),
        (-5000, 1_000_000, 500 + 2),  # the stamps of two clocks: no trip is shorter than nothing
    ],
)
def test_the_bound_of_one_probe_is_of_its_path_and_of_the_drift_while_it_was_held(
    path_ns: int, held_ns: int, bound: int
) -> None:
    clock = OffsetEstimator()
    clock.add(0, path_ns // 2, path_ns // 2 + held_ns, path_ns + held_ns)
    assert clock.at((path_ns + held_ns) // 2).bound_ns == bound


def test_the_bound_stays_narrow_while_a_host_holds_each_probe_for_50_ms() -> None:
    """Half of a trip of 100 us and of what the clocks drift apart in 50 ms: 75 us, and no probe of many widens it."""
    clock, draw = OffsetEstimator(), random.Random(1)
    for second in range(50):
        sent, trip, there = second * S, 100_000, draw.random()
        received = sent + round(trip * there)
        clock.add(sent, received, received + 50_000_000, sent + trip + 50_000_000)
        assert clock.at(sent + 25_050_000).bound_ns <= 75_060


def test_two_probes_that_were_late_on_opposite_ways_bound_the_offset_together() -> None:
    """Each alone is true to 50 us, on its own side."""
    clock = OffsetEstimator()
    probe(clock, lambda at: 7_000_000.0, 0, 100_000, there=1.0)
    probe(clock, lambda at: 7_000_000.0, 1_000_000, 100_000, there=0.0)
    found = clock.at(1_060_000)
    assert found.bound_ns < 1000 and abs(found.offset_ns - 7_000_000) < 1000


@pytest.mark.parametrize("back", [False, True])
def test_a_probe_contradicts_from_where_the_intervals_do_not_meet(back: bool) -> None:
    meets = 2 * SLACK + 2 * 500_000  # two seconds later

    def jump(apart: int) -> Jump | None:
        return exact((10, 0, HALF), (12, -apart if back else apart, HALF)).jump

    assert jump(meets) is None
    by_ns = -3 if back else 3
    assert jump(meets + 3) == Jump(12 * S + HALF, by_ns, 10 * S)


def test_after_a_step_the_rate_is_that_of_the_new_probes() -> None:
    clock = after(lambda at: 20e-6 * at, 200)
    for second in range(200, 300):
        probe(clock, lambda at: 20e-6 * at + 10 * S, second * S, 100_000)
        if second == 200:
            assert clock.jump is not None and clock.rate() == (0.0, FASTEST)
    rate, error = clock.rate()
    assert rate == pytest.approx(20e-6, abs=error) and error < 5e-6


def test_of_equally_good_probes_the_newest_says_where_the_clock_is() -> None:
    assert exact((1, 0, HALF), (6, 100_000, HALF)).at(6 * S).offset_ns == 100_000


@pytest.mark.parametrize(("share", "offset"), [(0.99, 50_000), (1.01, 0)])
def test_a_good_probe_outweighs_a_bad_one_until_it_is_old(share: float, offset: int) -> None:
    """A fifth of the largest drift counts against it: in 20 s, 2 ms."""
    good, bad = 100_000, round((100_000 + 20 * S * FASTEST / 5) * share)
    assert exact((1, 0, good), (21, 50_000, bad)).at(21 * S).offset_ns == offset


def test_the_rate_is_between_the_best_probes_of_the_older_and_the_newer_quarters() -> None:
    """One probe of each quarter of a minute; what is not the best of its half is off by 200 us."""
    good, bad = 100_000, 500_000
    clock = exact((14, 200_000, bad), (15.9, 318, good), (31, 620, good), (46, -200_000, bad))
    assert clock.rate() == pytest.approx((0.0, (302 + 2 * slack(good)) / 15.1e9), rel=1e-9)
    steeper = exact((14, 200_000, bad), (15.9, 318_000, good), (31, 620_000, good), (46, 800_000, bad))
    assert steeper.rate() == pytest.approx((20e-6, 2 * slack(good) / 15.1e9), rel=1e-9)
    assert steeper.at(46 * S).rate_ppm == pytest.approx(20.0)


def test_the_rate_is_of_the_last_eight_quarters() -> None:
    """The ninth, which was the best, is forgotten."""
    others = [(15.0 * quarter + 7, 20_000 * 15 * quarter, 200_000 - quarter) for quarter in range(1, 9)]
    clock = exact((7, -300_000, 50_000), *others)
    assert clock.rate() == pytest.approx((20e-6, (slack(200_000 - 4) + slack(200_000 - 8)) / 60e9), rel=1e-9)


@pytest.mark.parametrize(
    ("moved", "apart_s", "rate", "error"),
    [  # the error of two such probes 20.02002 s apart is 100 ppm
        (30 * SLACK // 10, 40.04004, 75e-6, 50e-6),
        (2 * SLACK, 40.04004, 0.0, 100e-6),  # as much as their error: nothing is known
        (SLACK, 40.04004, 0.0, 75e-6),
        (-SLACK, 40.04004, 0.0, 75e-6),
        (-3 * SLACK, 40.04004, -75e-6, 50e-6),
        (4 * SLACK, 20.02002, 0.0, 300e-6),  # too near to each other for any rate
        (4 * SLACK, 20.03, 4 * SLACK / 20.03e9, 2 * SLACK / 20.03e9),
        (9 * SLACK, 20.02002, 0.0, FASTEST),
        (12 * SLACK, 20.03, FASTEST, 2 * SLACK / 20.03e9),
        (-12 * SLACK, 20.03, -FASTEST, 2 * SLACK / 20.03e9),
    ],
)
def test_a_rate_is_known_where_it_stands_out_of_the_probes_error(
    moved: int, apart_s: float, rate: float, error: float
) -> None:
    clock = exact((5, 0, HALF), (5 + apart_s, moved, HALF))
    assert clock.jump is None
    assert clock.rate() == pytest.approx((rate, error), rel=1e-9)


def test_a_probe_that_is_answered_after_a_later_one_says_nothing_of_the_rate() -> None:
    clock = exact((50, 0, HALF), (20, 0, HALF))
    assert clock.rate() == (0.0, FASTEST)
