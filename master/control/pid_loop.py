"""One rollup instance under feedback control: its range, its gain, and its next move.

Rule: integral action on logarithms, since load and latency are both proportional quantities: after each subinterval
ln(IOPS) -= gain x ln(metric / target). In this form there is nothing to wind up and a change of gain is bumpless: a
clamp or a new gain changes the next step, never what was reached.

The metric is that of the loop's pool of subintervals: the sums of each (a percentile's histogram, a mean's total and
count) weigh `memory` times as much as those of the one after it, and the percentile is that of the pool: the percentile
of all I/Os, which a measurement has, too. The mean of the subintervals' own percentiles is lower where slow I/Os come
in clusters; held at the target in its place, it gave 4 % too many IOPS at the p99 of a queue. The pool is emptied where
what is in it no longer holds: when the load has moved far in one direction, after an edit, with other hosts, and while
a backlog drains.

The memory fits the gain. Exponential forgetting with factor m, and a move of -k (gain x slope) times the pool's error,
have the characteristic polynomial z**2 - (1 + m - k (1 - m)) z + m. Its roots are equal, which is critical damping, at
sqrt(m) = (1 - k) / (1 + k). It is stable for k < 2 (1 + m) / (1 - m): while k is small, a slope four times as steep as
assumed leaves a damping ratio of 0.5. (Derived here; the method: Astrom and Wittenmark, Computer-Controlled Systems.)

The gain begins at the slope of the calibration. It is halved when the load swings across the target by more than
`max_ripple`, down to a floor, and doubled when it has moved the same way for more than `max_monotone` subintervals;
once it has been halved, only a way as long as no noise makes raises it again (the plant has changed). So gains do not
step for ever, and a measurement runs only after the last step. The ancestor's start IOPS, its initial error and its
endless gain steps were wrong (its defects 2, 3 and 15); none is here.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from math import copysign, exp, log

from ..rollup.overload import SURGE, allowed
from ..stats.metric_sample import MetricSample, merged, weighted
from ..text.metric_amounts import MetricUnit, amount_in_words
from .observation import InstanceLoad, Observation

_FARTHEST = 1.5  # an error counts as no more than this: e ** 1.5 is 4.5 times the target
_LONGEST_STEP = 0.7  # ln(2): no subinterval more than doubles or halves the load
_OVERLOAD_ERROR = 0.3  # the least error while outstanding I/Os grow: the metric does not show the worst yet
_MOST_UNSEEN = 1e-4  # of the I/Os that fell due: so few that expired do not decide any percentile up to p99.9
_CLOSE = 1 + 1e-9  # a bound is reached at this distance
_CHANGED = 15.0  # a run of this many ripples, one way, is no noise, and none of a pool, which lasts longer
_FAR = 7.0  # a pool over more ripples is of different loads; 5 are noise still, and at 10 a swing lasts too long


class PidEvent(StrEnum):
    """The effect of a subinterval on a loop, as pid.csv has it."""

    NONE = ""
    FINDING_MAX = "finding range: max"
    FINDING_LOW = "finding range: low"
    BLANK = "blank"  # the metric had no value, so nothing moved
    DRAINING = "draining"  # a backlog was worked off, so nothing moved
    CLAMPED = "clamped"  # the move ended at a bound of the range
    GAIN_DOWN = "gain down"
    GAIN_UP = "gain up"


@dataclass(frozen=True, slots=True)
class Range:
    """One instance's calibration: loads with the metric there; `high_target` None where it is not known."""

    low_iops: float
    high_iops: float
    low_target: float | None = None
    high_target: float | None = None

    def faults(self, target: float, unit: MetricUnit) -> Iterator[tuple[str, str]]:
        """The reasons why this range cannot serve a target in this unit: the field, and a sentence."""
        wanted = amount_in_words(unit, target)
        if not 0 < self.low_iops < self.high_iops:
            ends = f"low_iops is {self.low_iops:g} and high_iops {self.high_iops:g}"
            yield "low_iops", f"{ends}; low must be above 0 and below high"
        if self.low_target is not None and self.low_target >= target:
            low = amount_in_words(unit, self.low_target)
            yield "target", f"target is {wanted}; it must be above low_target, {low}"
        if self.high_target is not None and self.high_target <= target:
            high = amount_in_words(unit, self.high_target)
            yield "target", f"target is {wanted}; it must be below high_target, {high}"

    def start(self, target: float) -> float:
        """Where to begin: on the straight line in logarithms between the two ends, else half-way."""
        low, high = log(self.low_iops), log(self.high_iops)
        slope = self.slope
        share = (
            0.5 if slope is None or self.low_target is None else log(target / self.low_target) / slope / (high - low)
        )
        return exp(low + min(max(share, 0.0), 1.0) * (high - low))

    @property
    def slope(self) -> float | None:
        """d ln(metric) / d ln(IOPS) over the whole range; None where an end is not known."""
        if self.low_target is None or self.high_target is None:
            return None
        return log(self.high_target / self.low_target) / log(self.high_iops / self.low_iops)


@dataclass(frozen=True, slots=True)
class PidRules:
    """When the gain steps, and what counts as an overload."""

    tolerance: float  # achieved_iops_tolerance: more left over than this is an overload
    gain_step: float = 2.0
    max_ripple: float = 0.01  # of the load: swings below this are not worth a smaller gain
    max_monotone: int = 4  # subintervals in one direction
    held: float = 0.05  # a measurement whose metric is surely further than this from the target is not at it
    least_gain: float = 1 / 32  # of the first: on a very noisy device swings never end, and it must still follow


@dataclass(frozen=True, slots=True)
class Loop:
    """The controller's state for one instance."""

    range: Range
    target: float
    iops: float
    gain: float
    least_gain: float
    direction: float = 0.0  # of the last move: 1, -1; 0 before the first
    turned_at: float = 0.0  # ln(IOPS) where the direction last changed
    monotone: int = 0  # subintervals since then
    reduced: bool = False  # the gain has been halved at least once
    crossed: bool = False  # the target has been crossed since the last long way
    gain_changed: int = -1  # the subinterval after which the gain, or the target, last changed
    at_bound: int = -1  # the first subinterval that was wholly at the bound on which it ran up without crossing
    backlog: int = 0
    pool: MetricSample | None = None  # of the metric, recent subintervals with the largest weights
    event: PidEvent = PidEvent.NONE  # what happened last


def loop_in(range: Range, target: float, rules: PidRules) -> Loop:
    """A new loop: the start on the calibration's line, the gain its slope (1 where that is not known)."""
    start = range.start(target)
    gain = 1 / max(range.slope or 1.0, 0.2)
    return Loop(range, target, start, gain, rules.least_gain * gain, turned_at=log(start))


def set_out(loop: Loop, target: float, number: int) -> Loop:
    """The loop on its way to another target, from its present load."""
    return replace(
        loop, target=target, direction=0.0, turned_at=log(loop.iops), monotone=0, reduced=False, crossed=False,
        gain_changed=number, at_bound=-1,
    )  # fmt: skip


def with_pooled(loop: Loop, sample: MetricSample, rules: PidRules) -> Loop:
    """The loop with a subinterval's sample in its pool: alone, where the load is far from where it last turned."""
    far = abs(log(loop.iops) - loop.turned_at) > _FAR * rules.max_ripple
    return replace(loop, pool=pooled(None if far else loop.pool, _memory(loop, rules), sample))


def _memory(loop: Loop, rules: PidRules) -> float:
    return memory(loop.gain / loop.least_gain * rules.least_gain)


def memory(share: float) -> float:
    """The memory that fits a loop with this share of the first gain, at which k is 1: none there, and with 1/32 of it
    1 / (1 - m) is 8.5 subintervals."""
    k = min(share, 1.0)
    return ((1 - k) / (1 + k)) ** 2


def pooled(pool: MetricSample | None, kept: float, sample: MetricSample) -> MetricSample:
    """The pool with the newest sample, which alone has its full weight; the rest keeps `kept` of its own."""
    return sample if pool is None else merged(weighted(pool, kept), sample)


def moved(
    loop: Loop, value: float | None, load: InstanceLoad, seen: Observation, rules: PidRules
) -> tuple[float, Loop]:
    """(error, the loop after its move) of one subinterval, in which `value` and `load` were seen."""
    grew = load.backlog - loop.backlog
    overloaded = max(grew, load.expired) > rules.tolerance * load.due or _piles_up(load, rules.tolerance)
    draining = loop.backlog > 0 and not overloaded and load.backlog > 0
    loop = replace(loop, backlog=load.backlog, event=PidEvent.NONE)
    if draining and load.backlog <= 0.75 * (load.backlog - grew):
        # response times now are of I/Os that fell due before
        return 0.0, replace(loop, event=PidEvent.DRAINING, pool=None)
    if value is None and not overloaded:
        return 0.0, replace(loop, event=PidEvent.BLANK)
    error = (
        _FARTHEST
        if not value
        else min(max(log(value / loop.target), -_FARTHEST), _FARTHEST)
        if value > 0
        else -_FARTHEST
    )
    unseen = load.expired > _MOST_UNSEEN * load.due
    if overloaded or draining:
        error = max(error, _OVERLOAD_ERROR)
    elif unseen:
        error = max(error, 0.0)  # the metric does not show those that waited longest
    loop, error_gain = _gain_stepped(loop, error, seen.number, rules)
    step = max(error_gain * error, _excess(load)) if unseen else error_gain * error
    after = _stepped(loop, -step)
    if not after.crossed and after.iops != loop.iops and _at_bound(after, after.direction):
        return error, replace(after, at_bound=seen.acts_in + 1)  # the move acts within the one before
    return error, after


def _piles_up(load: InstanceLoad, tolerance: float) -> bool:
    """Outstanding I/Os have grown as no move of the load explains: to several times as many."""
    most = allowed(load.due, tolerance, load.in_flight, 0, 1)
    return load.surged or load.growth > max(float(most), SURGE * (load.outstanding - load.growth))


def _excess(load: InstanceLoad) -> float:
    """By how much the load was above what the storage did, in ln(IOPS), as far as expired I/Os show it."""
    return log(load.due / (load.due - load.expired)) if load.expired < load.due else _LONGEST_STEP


def _gain_stepped(loop: Loop, error: float, number: int, rules: PidRules) -> tuple[Loop, float]:
    """The loop with its gain stepped, if this error asks for it, and the gain to move by."""
    direction = -copysign(1.0, error) if error else loop.direction
    position = log(loop.iops)
    way = abs(position - loop.turned_at)
    if loop.direction and direction != loop.direction:
        loop = replace(loop, direction=direction, turned_at=position, monotone=0, crossed=True)
        if way <= rules.max_ripple:
            return loop, loop.gain
        gain = max(loop.gain / rules.gain_step, loop.least_gain)
        if gain == loop.gain:
            return loop, gain
        return replace(loop, gain=gain, reduced=True, gain_changed=number, event=PidEvent.GAIN_DOWN), gain
    loop = replace(loop, direction=direction, monotone=loop.monotone + 1)
    far = way > _CHANGED * rules.max_ripple
    patient = 2 * rules.max_monotone if loop.reduced else rules.max_monotone
    if _at_bound(loop, direction):
        return replace(loop, monotone=0), loop.gain  # it cannot move on, whatever the gain
    if loop.monotone >= patient and (far or not loop.reduced) and abs(loop.gain * error) < _LONGEST_STEP / 2:
        gain = loop.gain * rules.gain_step
        return replace(loop, gain=gain, monotone=0, crossed=False, gain_changed=number, event=PidEvent.GAIN_UP), gain
    return loop, loop.gain


def _at_bound(loop: Loop, direction: float) -> bool:
    return loop.iops <= loop.range.low_iops * _CLOSE if direction < 0 else loop.iops * _CLOSE >= loop.range.high_iops


def _stepped(loop: Loop, step: float) -> Loop:
    """The loop with its load moved by `step` in ln(IOPS), within its range."""
    wanted = log(loop.iops) + min(max(step, -_LONGEST_STEP), _LONGEST_STEP)
    low, high = log(loop.range.low_iops), log(loop.range.high_iops)
    clamped = not low <= wanted <= high
    iops = exp(min(max(wanted, low), high))
    return replace(loop, iops=iops, event=PidEvent.CLAMPED if clamped and loop.event is PidEvent.NONE else loop.event)
