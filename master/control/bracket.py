"""Finds the highest load that passes: the bracket (highest pass, lowest fail) so far, and the load to probe next.

Rule: the next load follows from the answers alone. Inside a bracket the target is expected where the line through
1 / metric meets 1 / target, as 1 / metric of a queue falls linearly with the load; the probe is set a little beside
that, so that its answer is clear. Later answers replace earlier ones that contradict them, and the lowest fail is
probed again at the end, so storage that was slow for a while does not decide the search. Unclear answers leave a wider
bracket.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from .probe import Probe, ProbeAnswer

_LOWEST = 0.02  # of the IOPS at max: the lowest load that is probed
HIGHEST = 0.98  # and the highest: at max itself no load is sustained
_BESIDE = 0.4  # of the resolution: how far beside the expected load a probe is set
_MARGIN = 0.05  # of the bracket: a probe keeps off its ends


@dataclass(frozen=True, slots=True)
class Bracket:
    """The highest pass and the lowest fail; no answer between them contradicts them."""

    passed: Probe | None
    failed: Probe | None

    @property
    def width(self) -> float | None:
        """As a share of the highest pass."""
        return None if self.passed is None or self.failed is None else self.failed.iops / self.passed.iops - 1


@dataclass(frozen=True, slots=True)
class SearchBounds:
    """Bounds of a search: of its loads, of its number of probes, and of its precision."""

    capacity: float  # IOPS at max
    resolution: float
    most: int  # probes, including the runs at max
    others: int = 1  # runs so far that are no probes with an answer: at max, and probes that were repeated
    lowest: float = 0.0  # IOPS below which no probe could answer; _LOWEST of the capacity, if that is more


def bracket(probes: Sequence[Probe]) -> Bracket:
    """Highest pass and lowest fail, without the earlier answers that a later one contradicts or does not repeat."""
    standing: list[Probe] = []
    for probe in probes:
        if probe.answer is ProbeAnswer.UNCLEAR:  # an answer whose side does not come again at the same load was chance
            standing = [one for one in standing if one.iops != probe.iops or one.above is probe.above]
            continue
        standing = [one for one in standing if not _contradict(one, probe)]
        standing.append(probe)
    passes = [one for one in standing if one.answer is ProbeAnswer.PASS]
    fails = [one for one in standing if one.answer is ProbeAnswer.FAIL]
    return Bracket(
        max(passes, key=lambda one: one.iops, default=None), min(fails, key=lambda one: one.iops, default=None)
    )


def _contradict(one: Probe, other: Probe) -> bool:
    passed, failed = (one, other) if one.answer is ProbeAnswer.PASS else (other, one)
    return one.answer is not other.answer and passed.iops >= failed.iops


def expected(probes: Sequence[Probe], target: float, capacity: float) -> float | None:
    """The total IOPS at which the target is expected, within the bracket. None without a pass, or if the metric of the
    highest pass is 0 and nothing has failed.

    A line through 1 / metric over the load (exact for M/M/1), by weighted least squares over the probes from the
    highest pass to the lowest fail, with the unclear ones between. The metric of a load that was not sustained counts
    as infinite, and so does that of max itself if nothing has failed.
    """
    ends = bracket(probes)
    if ends.passed is None or (ends.failed is None and not ends.passed.value):
        return None
    low, high = ends.passed.iops, ends.failed.iops if ends.failed else capacity
    points = [_point(one, target) for one in probes if low <= one.iops <= high]
    if ends.failed is None:
        points.append((capacity, -1 / target, 0.1 / target))
    known = np.array([point for point in points if point is not None])
    if not len(known):  # values of 0, or without any noise
        return sqrt(low * high)
    loads, distances, errors = known.T
    weights = 1 / errors**2
    middle, mean = np.average(loads, weights=weights), np.average(distances, weights=weights)
    spread = float((weights * (loads - middle) ** 2).sum())
    slope = float((weights * (loads - middle) * (distances - mean)).sum()) / spread if spread > 0 else 0.0
    if slope >= 0:  # no curve: the answers contradict the values
        return sqrt(low * high)
    return min(max(float(middle - mean / slope), low), high)


def _point(probe: Probe, target: float) -> tuple[float, float, float] | None:
    """(load, 1 / metric - 1 / target, its standard error in some unit); None where nothing was seen."""
    if not probe.sustained:
        return probe.iops, -1 / target, 0.1 / target
    if not probe.value or not probe.half_width:
        return None
    return probe.iops, 1 / probe.value - 1 / target, probe.half_width / probe.value**2


def next_load(probes: Sequence[Probe], target: float, limits: SearchBounds) -> float | None:
    """The next probe's total IOPS; None when the search is over."""
    ends = bracket(probes)
    if len(probes) + limits.others >= limits.most:
        return None
    if ends.failed is None:
        return _upward(ends, probes, target, limits)
    if ends.passed is None:
        return _downward(ends.failed, probes, limits)
    assert ends.width is not None
    if ends.width <= limits.resolution or _spent(probes, limits):
        again = sum(one.iops == ends.failed.iops for one in probes) > 1
        return None if again else ends.failed.iops
    return _between(ends, probes, target, limits)


def _upward(ends: Bracket, probes: Sequence[Probe], target: float, limits: SearchBounds) -> float | None:
    """Nothing has failed: by the curve, and after two passes to the highest load at once."""
    top = HIGHEST * limits.capacity
    if ends.passed is None:
        unclear = len(probes)
        return max(limits.capacity * 0.5 ** (1 + unclear), min(limits.lowest, top))
    if ends.passed.iops >= top * (1 - 1e-9):
        return None
    passes = sum(one.answer is ProbeAnswer.PASS for one in probes)
    wanted = expected(probes, target, limits.capacity)
    unclear_above = any(one.answer is ProbeAnswer.UNCLEAR and one.iops > ends.passed.iops for one in probes)
    if wanted is None or passes > 2 or unclear_above:
        return top
    return min(wanted * (1 + _BESIDE * limits.resolution), top)  # a little too high: a fail is what is missing


def _downward(failed: Probe, probes: Sequence[Probe], limits: SearchBounds) -> float | None:
    """Nothing has passed: by ever larger strides to the lowest load."""
    bottom = max(_LOWEST * limits.capacity, limits.lowest)
    lowest = min(one.iops for one in probes)
    probed = sum(one.iops <= bottom * (1 + 1e-9) for one in probes)
    if failed.iops <= bottom * (1 + 1e-9) or probed > 1:
        return None
    return bottom if lowest < 4 * bottom else max(bottom, lowest / 3)


def _spent(probes: Sequence[Probe], limits: SearchBounds) -> bool:
    """Whether only one probe is left: it repeats the lowest fail."""
    return len(probes) + limits.others + 1 >= limits.most


def _between(ends: Bracket, probes: Sequence[Probe], target: float, limits: SearchBounds) -> float:
    assert ends.passed is not None and ends.failed is not None
    low, high = ends.passed.iops, ends.failed.iops
    wanted = expected(probes, target, limits.capacity)
    if wanted is None or _slow(probes):
        wanted = sqrt(low * high)
    unclear = [one.iops for one in probes if one.answer is ProbeAnswer.UNCLEAR and low < one.iops < high]
    beside = _BESIDE * limits.resolution
    if unclear:  # far enough from what was unclear to be clear, on the wider side
        beside = _clear_of(ends, probes, unclear, limits)
        # No further than the middle of what is left: one disturbed probe may say that it takes any distance.
        down = max(min(unclear) / (1 + beside), sqrt(low * min(unclear)))
        up = min(max(unclear) * (1 + beside), sqrt(max(unclear) * high))
        wanted = down if min(unclear) / low > high / max(unclear) else up
    elif wanted / low > high / wanted:
        wanted /= 1 + beside
    else:
        wanted *= 1 + beside
    margin = _MARGIN * (high - low)
    return min(max(wanted, low + margin), high - margin)


def _clear_of(ends: Bracket, probes: Sequence[Probe], unclear: Sequence[float], limits: SearchBounds) -> float:
    """How far from unclear loads, as a share of the load, an answer is likely to be clear: half-width over slope.

    The slope is that of ln(metric) over ln(load) in the bracket. Where it is not known: the resolution, doubled for
    each further unclear load.
    """
    passed, failed = ends.passed, ends.failed
    assert passed is not None and failed is not None
    again = limits.resolution * 2.0 ** (len(unclear) - 1)
    widths = [one.half_width / one.value for one in probes if one.iops in unclear and one.value and one.half_width]
    if not widths or not passed.value or not failed.value or not failed.sustained or failed.value <= passed.value:
        return again
    slope = log(failed.value / passed.value) / log(failed.iops / passed.iops)
    return max(_BESIDE * limits.resolution, 0.75 * max(widths) / slope * 1.5 ** (len(unclear) - 1))


def _slow(probes: Sequence[Probe]) -> bool:
    """Whether the last three answers are alike: then one end of the bracket does not move, and halving is faster."""
    answers = [one.answer for one in probes if one.answer is not ProbeAnswer.UNCLEAR][-3:]
    return len(answers) == 3 and len(set(answers)) == 1
