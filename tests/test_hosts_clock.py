"""Offsets from probes: the bound holds, whatever the path and the crystals do."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.hosts.clock import CRYSTALS, OffsetEstimator


def probed(seconds: int, offset_ns: int, rate: float, trips: "random.Random", skew: float = 0.5) -> OffsetEstimator:
    """Once a second, a host whose clock is `offset_ns` ahead and gains `rate`; `skew`: the way there, of a trip."""
    clock = OffsetEstimator()

    def host(controller_ns: float) -> int:
        return round(controller_ns * (1 + rate) + offset_ns)

    for second in range(seconds):
        sent = second * 10**9
        trip = 100_000 + trips.expovariate(1 / 50_000)
        received = sent + trip * skew
        replied = received + 20_000
        clock.add(sent, host(received), host(replied), round(sent + trip + 20_000))
    return clock


@given(
    seconds=st.integers(1, 700),
    offset=st.integers(-(10**15), 10**15),
    rate=st.floats(-0.99 * CRYSTALS, 0.99 * CRYSTALS),
    skew=st.floats(0, 1),
    seed=st.integers(0, 1000),
    later=st.integers(0, 60),
)
def test_the_true_offset_is_within_the_bound(
    seconds: int, offset: int, rate: float, skew: float, seed: int, later: int
) -> None:
    clock = probed(seconds, offset, rate, random.Random(seed), skew)
    at = (seconds - 1 + later) * 10**9
    true = offset + at * rate
    estimate = clock.at(at)
    # A probe's stamps are of one instant of a drifting clock: 100 ppm of a round trip, and rounding, come on top.
    assert abs(estimate.offset_ns - true) <= estimate.bound_ns + 200


def test_a_rate_is_learned_from_probes_far_apart() -> None:
    clock = probed(600, 5 * 10**12, 20e-6, random.Random(1))
    rate, error = clock.rate()
    assert rate == pytest.approx(20e-6, abs=error) and error < 1e-6
    assert clock.at(600 * 10**9).bound_ns < 120_000


def test_one_probe_knows_no_rate_and_says_so() -> None:
    clock = OffsetEstimator()
    assert not clock
    clock.add(0, 1_050_000, 1_050_000, 100_000)
    assert clock.rate() == (0.0, CRYSTALS)
    assert clock.at(50_000).offset_ns == 1_000_000 and clock.at(50_000).bound_ns == 50_000
    assert clock.at(50_000 + 10**9).bound_ns == 150_000  # a second of two crystals


@given(st.integers(-(10**15), 10**15), st.floats(-50e-6, 50e-6), st.integers(0, 10**12))
def test_there_and_back_is_the_same_instant(offset: int, rate: float, at: int) -> None:
    clock = probed(120, offset, rate, random.Random(2))
    assert abs(clock.to_controller(clock.to_local(at)) - at) <= 100_000


def test_old_probes_are_forgotten() -> None:
    clock = probed(700, 0, 0.0, random.Random(3))
    clock.add(700 * 10**9, 700 * 10**9 + 50_000, 700 * 10**9 + 50_000, 700 * 10**9 + 100_000)
    assert len(clock._samples) == 600
