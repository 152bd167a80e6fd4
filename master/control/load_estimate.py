"""The load that meets the target, from all probes together, and the load whose probe narrows its interval most.

Rule: of each rollup instance a curve runs through the probes (stats/crossing.py); the one that crosses the target at
the lowest load decides. A load that was not sustained bounds it from above, whatever the curve. The next load follows
from the probes alone: first there has to be a pass and a fail, then each probe goes where its reading is expected to
leave the narrowest interval.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, isfinite, isinf, log, sqrt
from typing import Final

import numpy as np

from ..stats.crossing import Crossing, Shape, TargetReading, crossing, moderated, reweighted, with_one_more
from .bracket import Bracket, bracket, standing
from .focus import Focus
from .probe import Probe, ProbeAnswer

LOWEST: Final = 0.02  # of the IOPS at max: the lowest load that is probed
HIGHEST: Final = 0.98  # and the highest: at max itself no load is sustained
_MOST_INSTANCES: Final = 4  # whose curves are drawn: those that are furthest from passing
_CANDIDATES: Final = 13
_BEYOND: Final = 0.15  # of the interval: how far outside of it a probe may help to know the curve
_NEAR_EDGE: Final = 0.25  # of the way from the highest load that was sustained: the edge is halved a little below


@dataclass(frozen=True, slots=True)
class SearchBounds:
    """Loads that may be probed."""

    capacity: float  # IOPS at max
    lowest: float = 0.0  # IOPS below which no probe could answer; LOWEST of the capacity, if that is more

    @property
    def bottom(self) -> float:
        return min(max(LOWEST * self.capacity, self.lowest), self.top)

    @property
    def top(self) -> float:
        return HIGHEST * self.capacity


@dataclass(frozen=True, slots=True)
class LoadEstimate:
    """The load that meets the target."""

    crossing: Crossing
    readings: tuple[TargetReading, ...]  # of the instance that decides
    shape: Shape | None  # of its curve; None: not sustained decides


def load_estimate(probes: Sequence[Probe], bounds: SearchBounds, confidence: float) -> LoadEstimate | None:
    """With its interval at `confidence`. None where there are not yet probes on both sides."""
    stand = standing(probes)
    edge = min((one.iops for one in stand if not one.sustained), default=inf)
    below = [one for one in stand if one.sustained and one.iops < edge]
    names = _worst_instances(below)
    if not names:
        return None
    top = max(bounds.top, *(one.iops for one in below))
    curves = []
    for name in names:
        of_one = tuple(reweighted(moderated([one.readings[name] for one in below if name in one.readings]), top))
        if len({one.load for one in of_one}) < 2:
            return None
        curves.append((*crossing(of_one, bounds.bottom, top, 1 - (1 - confidence) / len(names)), of_one))
    drawn, shape, of_one = min(curves, key=lambda one: (one[0].load, one[0].high, one[0].low))
    low, high = (min(ends) for ends in zip(*((one.low, one.high) for one, _, _ in curves), strict=True))
    ends = bracket(probes)
    if high >= edge:  # whether the load is sustained decides
        low, high = min(low, max(one.iops for one in below)), edge
    passed, failed = ends.passed.iops if ends.passed else 0.0, ends.failed.iops if ends.failed else inf
    # What the curve does not bound, a clear answer does; and that counts where the curve swings beyond a step.
    low = passed if low == 0 or low > failed else low
    high = failed if isinf(high) or high < passed else high
    load = drawn.load if low <= drawn.load <= high else sqrt(low * high)
    return LoadEstimate(Crossing(load, low, high), of_one, shape if isfinite(drawn.load) else None)


def _worst_instances(probes: Sequence[Probe]) -> list[str]:
    """Of those that all the probes have: the ones that are furthest from passing, in the mean."""
    known = [one.readings for one in probes if one.readings]
    if not known:
        return []
    names = set.intersection(*({*readings} for readings in known))
    beyond = {name: sum(readings[name].excess for readings in known) for name in names}
    return sorted(names, key=lambda name: (-beyond[name], name))[:_MOST_INSTANCES]


def expected(probes: Sequence[Probe], focus: Focus, bounds: SearchBounds) -> float | None:
    """The load at which the target is expected, while nothing has failed: max itself counts as far beyond it."""
    stand = [one for one in standing(probes) if one.sustained]
    names = _worst_instances(stand)
    if not names:
        return None
    # No response time at max has a bound: 1 - target / infinity; or about every second I/O is slower.
    far, error = (1.0, 0.2) if focus.fraction is None else (log(0.5 / (1 - focus.fraction)), 1.0)
    of_one = [one.readings[names[0]] for one in stand if names[0] in one.readings]
    of_one.append(TargetReading(bounds.capacity, far, error, 9.0))
    load = crossing(of_one, bounds.bottom, bounds.capacity, 0.9)[0].load
    return load if 0 < load < inf else None


def next_load(
    probes: Sequence[Probe], focus: Focus, bounds: SearchBounds, confidence: float, longest: int
) -> float | None:
    """The next probe's total IOPS; None where no other load could tell more. `longest`: subintervals of a probe."""
    ends = bracket(probes)
    if ends.failed is None:
        return _upward(ends, probes, focus, bounds)
    if ends.passed is None:
        return _downward(ends.failed, probes, bounds)
    estimate = load_estimate(probes, bounds, confidence)
    if estimate is None or estimate.shape is None or not 0 < estimate.crossing.load < inf:
        return _between(ends, probes)
    return _narrowing(estimate, ends, bounds, confidence, longest)


def _upward(ends: Bracket, probes: Sequence[Probe], focus: Focus, bounds: SearchBounds) -> float | None:
    """Nothing has failed: by the curve, and after two passes to the highest load at once."""
    top = bounds.top
    if ends.passed is None:
        unclear = len(probes)
        return max(bounds.capacity * 0.5 ** (1 + unclear), min(bounds.lowest, top))
    if ends.passed.iops >= top * (1 - 1e-9):
        return None
    passes = sum(one.answer is ProbeAnswer.PASS for one in probes)
    wanted = expected(probes, focus, bounds)
    highest = max(one.iops for one in probes)
    if wanted is None or passes > 2 or highest >= top * (1 - 1e-9):
        return top
    return min(max(wanted, 1.02 * ends.passed.iops), top) if highest <= ends.passed.iops else min(1.1 * highest, top)


def _downward(failed: Probe, probes: Sequence[Probe], bounds: SearchBounds) -> float | None:
    """Nothing has passed: by ever larger strides to the lowest load."""
    bottom = bounds.bottom
    lowest = min(one.iops for one in probes)
    probed = sum(one.iops <= bottom * (1 + 1e-9) for one in probes)
    if failed.iops <= bottom * (1 + 1e-9) or probed > 1:
        return None
    return bottom if lowest < 4 * bottom else max(bottom, lowest / 3)


def _between(ends: Bracket, probes: Sequence[Probe]) -> float:
    """Only whether a load is sustained decides: between the highest that was and the lowest that was not."""
    assert ends.passed is not None and ends.failed is not None
    within = [one.iops for one in probes if one.sustained and one.iops < ends.failed.iops]
    return sqrt(max(*within, ends.passed.iops) * ends.failed.iops)


def _narrowing(estimate: LoadEstimate, ends: Bracket, bounds: SearchBounds, confidence: float, longest: int) -> float:
    """The load whose probe is expected to leave the narrowest interval."""
    assert estimate.shape is not None and ends.passed is not None and ends.failed is not None
    interval, readings = estimate.crossing, estimate.readings
    beside = _BEYOND * (interval.high - interval.low)
    first, last = max(interval.low - beside, bounds.bottom), min(interval.high + beside, bounds.top)
    left = {}
    for load in np.linspace(first, max(first, last), _CANDIDATES).tolist():
        more = _likely(readings, load, longest)
        left[load] = with_one_more(readings, more, estimate.shape, bounds.bottom, bounds.top, confidence).width
    narrowest = min(left.values())
    if narrowest == inf:  # whichever end is open
        return min(max(interval.load, bounds.bottom), bounds.top)
    good = [float(load) for load, width in left.items() if width <= 1.02 * narrowest]
    return min(good, key=lambda load: abs(load - interval.load))


def _likely(readings: Sequence[TargetReading], load: float, longest: int) -> TargetReading:
    """A reading at this load as it is likely: its error that of the nearest, scaled to the longest probe."""
    own = sorted(readings, key=lambda one: one.load)
    squares = [log(one.error**2 * one.subintervals / longest) for one in own]
    error = exp(float(np.interp(load, [one.load for one in own], squares)) / 2)
    return TargetReading(load, 0.0, error, float(longest - 1), longest)
