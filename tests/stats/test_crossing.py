"""The load at which a metric crosses its target: on known curves the interval holds it as often as it says."""

from collections.abc import Callable
from dataclasses import replace
from math import exp, inf, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.stats.crossing import TargetReading, crossing, moderated, reweighted, with_one_more

TOP = 1000.0
LOADS = (250.0, 450.0, 600.0, 700.0, 760.0, 800.0, 850.0, 930.0)
ERROR = 0.15
BURST = 12.0  # slow I/Os that come together, in the mean; exponentially distributed
DISPERSION = 2 * BURST  # of their number: variance / mean
FEWER = 60.0  # I/Os that may be slow in a probe


def line(load: float) -> float:
    return 4 * (load - 750) / TOP


def knee(load: float) -> float:
    """As of a queue of many servers: flat, then steep."""
    return 0.05 * (float((1 - load / 1010) ** -1.5) - float((1 - 750 / 1010) ** -1.5))


def hyperbola(load: float) -> float:
    return log((1 - 750 / 1050) / (1 - load / 1050))


CURVES: dict[str, Callable[[float], float]] = {"line": line, "knee": knee, "hyperbola": hyperbola}


def exact(curve: Callable[[float], float], error: float = 0.02) -> list[TargetReading]:
    return [TargetReading(load, curve(load), error, 20.0) for load in LOADS]


@pytest.mark.parametrize("name", CURVES)
def test_without_noise_the_crossing_is_found(name: str) -> None:
    """Between the readings a curve that bends is known a little less well than its readings."""
    found, _ = crossing(exact(CURVES[name]), 20.0, TOP, 0.95)
    assert found.low <= 750 <= found.high
    assert found.load == pytest.approx(750, rel=0.01) and found.width < 0.06


@pytest.mark.slow
@pytest.mark.parametrize("name", CURVES)
def test_law_of_noisy_readings_the_interval_holds_the_crossing(name: str) -> None:
    """In 150 draws, at 90 %: 2.5 standard errors are 6 %."""
    random = np.random.default_rng(1)
    held = 0
    for _ in range(150):
        readings = [
            TargetReading(load, CURVES[name](load) + ERROR * float(random.standard_normal()), ERROR, 15.0)
            for load in LOADS
        ]
        found, _ = crossing(readings, 20.0, TOP, 0.9)
        held += found.low <= 750 <= found.high
    assert held >= 150 * 0.84


def of_bursts(load: float, random: np.random.Generator) -> TargetReading:
    """A probe in which slow I/Os come in bursts, with an estimate of the error from what it saw."""
    bursts = random.poisson(FEWER * exp(line(load)) / BURST)
    slow = float(random.exponential(BURST, bursts).sum()) + 0.5
    seen = DISPERSION * random.chisquare(9) / 9 * min(1.0, 0.4 + bursts / 10)  # of few bursts one sees too little
    return TargetReading(load, log(slow / FEWER), sqrt(max(seen, 1.0) / slow), 9.0, 10, slow, FEWER)


@pytest.mark.slow
def test_law_of_few_bursts_the_interval_holds_the_crossing() -> None:
    """Probes that happened to see few bursts must not draw it upwards: it is above and below about as often."""
    random = np.random.default_rng(2)
    above = below = 0
    for _ in range(200):
        readings = [of_bursts(load, random) for load in LOADS for _ in range(2)]
        found, _ = crossing(reweighted(moderated(readings), TOP), 20.0, TOP, 0.9)
        below, above = below + (750 < found.low), above + (750 > found.high)
    assert below + above <= 200 * 0.17 and below <= 200 * 0.12


def test_a_probe_that_saw_few_slow_ios_by_chance_knows_no_more_than_its_neighbours() -> None:
    counted = [
        TargetReading(load, line(load), sqrt(DISPERSION / slow), 9.0, 10, slow, FEWER)
        for load in LOADS
        for slow in [FEWER * exp(line(load))]
    ]
    lucky = replace(counted[4], excess=log(0.1), error=0.05, slow=0.1 * FEWER)
    fitted = reweighted(moderated([*counted[:4], lucky, *counted[5:]]), TOP)
    assert fitted[4].error > 0.5 * min(fitted[3].error, fitted[5].error)
    assert fitted[4].excess > -1.6, "not ln 0.1 = -2.3"


def test_what_is_no_count_is_not_reweighted() -> None:
    readings = exact(line)
    assert reweighted(readings, TOP) == readings
    alone = [TargetReading(5.0, 0.1, 0.1, 9.0, 10, 3.0, 2.0)] * 2
    assert reweighted(alone, TOP) == alone, "one load has no curve"
    with pytest.raises(ValueError, match="two loads"):
        crossing(alone, 1.0, TOP, 0.9)


@given(st.floats(0.01, 1e4), st.sampled_from(sorted(CURVES)))
def test_the_unit_of_the_load_does_not_matter(factor: float, name: str) -> None:
    found, shape = crossing(exact(CURVES[name]), 20.0, TOP, 0.95)
    scaled = [replace(one, load=factor * one.load) for one in exact(CURVES[name])]
    other, same = crossing(scaled, factor * 20.0, factor * TOP, 0.95)
    assert [other.low, other.load, other.high] == pytest.approx(
        [factor * one for one in (found.low, found.load, found.high)], rel=1e-6
    )
    assert same.warp == shape.warp


@pytest.mark.parametrize(("places", "ends"), [((0, 1, 2), (False, True)), ((5, 6, 7), (True, False))])
def test_an_end_that_no_reading_shows_is_open(places: tuple[int, ...], ends: tuple[bool, bool]) -> None:
    """All below the target, or all above: the other side is unknown as far as the curve may go."""
    readings = [exact(line, 0.3)[place] for place in places]
    found, _ = crossing(readings, readings[0].load, readings[-1].load, 0.95)
    assert (found.low == 0, found.high == inf) == (not ends[1], ends[1]) or found.width == inf


def test_another_reading_narrows_the_interval_most_where_it_is_made() -> None:
    """Next to the crossing, not far from it."""
    readings = [one for one in exact(line, ERROR) if one.load not in (700.0, 760.0, 800.0)]
    found, shape = crossing(readings, 20.0, TOP, 0.95)
    left = {
        load: with_one_more(readings, TargetReading(load, 0.0, ERROR, 20.0), shape, 20.0, TOP, 0.95).width
        for load in (300.0, 750.0)
    }
    assert left[750.0] < left[300.0] <= found.width * 1.05
