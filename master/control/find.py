"""Search: the highest total IOPS whose metric meets the target, as a bracket: highest pass, lowest fail.

Rule: the next load follows from the answers alone (`next_load`). Between two answers it is where 1 / metric, which
falls straight with the load in a queue, meets the target; a probe is set just beside that, so that it answers clearly.
Later answers outweigh earlier ones that contradict them, and the lowest fail is asked again at the end: so a plant that
was slow for a while does not decide the search. What cannot be told apart at the noise there is widens the bracket.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import log, sqrt

import numpy as np

from ..verdicts import Finding, Reason
from .decision import Cell, Decision, Edit, Measured, Row, nothing_measured
from .focus import Focus
from .interval import Interval
from .phase import Phase
from .probe import Answer, Probe, Question, probed

_LOWEST = 0.02  # of the IOPS at max: where "already fails at the lowest" is decided
_HIGHEST = 0.98  # and "never fails": at max itself no load is kept up with
_BESIDE = 0.4  # of the resolution: how far beside the expected load a probe is set
_MARGIN = 0.05  # of the bracket: a probe keeps off its ends


@dataclass(frozen=True, slots=True)
class Bracket:
    """What the answers come to: they contradict each other nowhere between the two ends."""

    passed: Probe | None
    failed: Probe | None

    @property
    def width(self) -> float | None:
        """As a share of the highest pass."""
        return None if self.passed is None or self.failed is None else self.failed.iops / self.passed.iops - 1


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds a search."""

    capacity: float  # IOPS at max
    resolution: float = 0.02
    most: int = 12  # probes, the run at max included


def bracket(probes: Sequence[Probe]) -> Bracket:
    """Highest pass and lowest fail; a later answer strikes out earlier ones that it contradicts or fails to repeat."""
    standing: list[Probe] = []
    for probe in probes:
        if probe.answer is Answer.UNCLEAR:  # an answer that does not come again at the same load was chance
            standing = [one for one in standing if one.iops != probe.iops]
            continue
        standing = [one for one in standing if not _contradict(one, probe)]
        standing.append(probe)
    passes = [one for one in standing if one.answer is Answer.PASS]
    fails = [one for one in standing if one.answer is Answer.FAIL]
    return Bracket(
        max(passes, key=lambda one: one.iops, default=None), min(fails, key=lambda one: one.iops, default=None)
    )


def _contradict(one: Probe, other: Probe) -> bool:
    passed, failed = (one, other) if one.answer is Answer.PASS else (other, one)
    return one.answer is not other.answer and passed.iops >= failed.iops


def expected(probes: Sequence[Probe], target: float, capacity: float) -> float | None:
    """The load at which the target is expected, within the bracket; None without a pass.

    A line through 1 / metric over the load (exact for M/M/1), by least squares over all probes from the highest pass
    to the lowest fail, the unclear ones above all: they are nearest. A load that was not kept up with counts as
    infinite, and so does max itself where nothing has failed.
    """
    found = bracket(probes)
    if found.passed is None or not found.passed.value:
        return None
    low, high = found.passed.iops, found.failed.iops if found.failed else capacity
    points = [_point(one, target) for one in probes if low <= one.iops <= high]
    if found.failed is None:
        points.append((capacity, -1 / target, 0.1 / target))
    known = np.array([point for point in points if point is not None])
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
    if not probe.kept_up:
        return probe.iops, -1 / target, 0.1 / target
    if not probe.value or not probe.half_width:
        return None
    return probe.iops, 1 / probe.value - 1 / target, probe.half_width / probe.value**2


def next_load(probes: Sequence[Probe], target: float, limits: Limits) -> float | None:
    """The next probe's total IOPS; None when the search is over."""
    found = bracket(probes)
    if len(probes) + 1 >= limits.most:  # the run at max was one
        return None
    if found.failed is None:
        return _upward(found, probes, target, limits)
    if found.passed is None:
        return _downward(found.failed, probes, limits)
    assert found.width is not None
    if found.width <= limits.resolution or _spent(found, probes, limits):
        again = sum(one.iops == found.failed.iops for one in probes) > 1
        return None if again else found.failed.iops
    return _between(found, probes, target, limits)


def _upward(found: Bracket, probes: Sequence[Probe], target: float, limits: Limits) -> float | None:
    """Nothing has failed: by the curve, and after two passes to the highest load at once."""
    top = _HIGHEST * limits.capacity
    if found.passed is None:
        unclear = len(probes)
        return limits.capacity * 0.5 ** (1 + unclear)
    if found.passed.iops >= top * (1 - 1e-9):
        return None
    passes = sum(one.answer is Answer.PASS for one in probes)
    wanted = expected(probes, target, limits.capacity)
    unclear_above = any(one.answer is Answer.UNCLEAR and one.iops > found.passed.iops for one in probes)
    if wanted is None or passes > 2 or unclear_above:
        return top
    return min(wanted * (1 + _BESIDE * limits.resolution), top)  # a little too high: a fail is what is missing


def _downward(failed: Probe, probes: Sequence[Probe], limits: Limits) -> float | None:
    """Nothing has passed: by ever larger strides to the lowest load."""
    bottom = _LOWEST * limits.capacity
    if failed.iops <= bottom * (1 + 1e-9):
        return None
    lowest = min(one.iops for one in probes)
    return bottom if lowest < 4 * bottom else max(bottom, lowest / 3)


def _spent(found: Bracket, probes: Sequence[Probe], limits: Limits) -> bool:
    """Only the repetition of the lowest fail is still affordable."""
    return len(probes) + 2 >= limits.most


def _between(found: Bracket, probes: Sequence[Probe], target: float, limits: Limits) -> float:
    assert found.passed is not None and found.failed is not None
    low, high = found.passed.iops, found.failed.iops
    wanted = expected(probes, target, limits.capacity)
    if wanted is None or _slow(probes):
        wanted = sqrt(low * high)
    unclear = [one.iops for one in probes if one.answer is Answer.UNCLEAR and low < one.iops < high]
    beside = _BESIDE * limits.resolution
    if unclear:  # far enough from what was unclear to be clear, on the wider side
        beside = _clear_of(found, probes, unclear, limits)
        down, up = min(unclear) / (1 + beside), max(unclear) * (1 + beside)
        wanted = down if min(unclear) / low > high / max(unclear) else up
    elif wanted / low > high / wanted:
        wanted /= 1 + beside
    else:
        wanted *= 1 + beside
    margin = _MARGIN * (high - low)
    return min(max(wanted, low + margin), high - margin)


def _clear_of(found: Bracket, probes: Sequence[Probe], unclear: Sequence[float], limits: Limits) -> float:
    """How far beside unclear loads, as a share, an answer is to be expected: their half-width over the curve's slope.

    The slope of ln(metric) over ln(load) is the bracket's; where that is not known, the resolution, doubled each time.
    """
    passed, failed = found.passed, found.failed
    assert passed is not None and failed is not None
    again = limits.resolution * 2.0 ** (len(unclear) - 1)
    widths = [one.half_width / one.value for one in probes if one.iops in unclear and one.value and one.half_width]
    if not widths or not passed.value or not failed.value or not failed.kept_up or failed.value <= passed.value:
        return again
    slope = log(failed.value / passed.value) / log(failed.iops / passed.iops)
    return max(_BESIDE * limits.resolution, 0.75 * max(widths) / slope * 1.5 ** (len(unclear) - 1))


def _slow(probes: Sequence[Probe]) -> bool:
    """Three answers alike in a row: one end is stuck, so halve."""
    answers = [one.answer for one in probes if one.answer is not Answer.UNCLEAR][-3:]
    return len(answers) == 3 and len(set(answers)) == 1


class Stage(StrEnum):
    MAX = "max"  # how much there is at all
    DRAIN = "drain"  # at 0 IOPS until nothing is owed
    PROBE = "probe"


@dataclass(frozen=True, slots=True)
class Find:
    """State of a search. Loads are totals of the rollup type `all`; every instance of the focus rollup must pass."""

    question: Question
    resolution: float = 0.02
    most: int = 12  # probes
    settle: int = 1  # subintervals at a new load that are not used
    look: int = 3  # subintervals at max that are
    capacity: float | None = None  # None until it was measured; a plan may state it
    stage: Stage = Stage.MAX
    iops: float = 0.0  # of the present probe
    since: int = 0  # the subinterval with which the stage began
    backlog: int = 0  # owed when it began
    seen: tuple[Interval, ...] = ()  # the stage's subintervals that are used
    probes: tuple[Probe, ...] = ()

    def faults(self) -> list[str]:
        """What is wrong with the numbers, a sentence each."""
        found = []
        if not self.question.target > 0:
            found.append(f"target is {self.question.target:g}; it must be above 0")
        if not self.resolution > 0:
            found.append(f"resolution is {self.resolution:.4%}; it must be above 0")
        if self.most < 4:
            found.append(f"probes is {self.most}; a bracket takes at least 4 (max, a pass, a fail, and the fail again)")
        return found

    @property
    def focuses(self) -> tuple[Focus, ...]:
        return (self.question.focus,)

    def opening(self) -> Decision:
        return Decision(Phase.WARMUP, (Edit("all", "all", None),))

    def after(self, interval: Interval) -> "tuple[Find, Decision]":
        state = self
        if not interval.whole:  # an edit, or other hosts: the probe starts again
            state = replace(self, since=interval.number + (1 if interval.edited else 0), seen=())
        if interval.number >= state.since + state.settle and (interval.whole or not interval.edited):
            state = replace(state, seen=(*state.seen, interval))
        else:
            state = replace(state, backlog=_backlog(interval))
        if state.stage is Stage.MAX:
            return state._at_max(interval)
        if state.stage is Stage.DRAIN:
            return state._draining(interval)
        return state._probing(interval)

    def _at_max(self, interval: Interval) -> "tuple[Find, Decision]":
        if len(self.seen) < self.look:
            return self, Decision(Phase.WARMUP, say="search: the load at max")
        done = sum(load.completed for one in self.seen for load in one.loads["all"].values())
        capacity = done / sum(one.length_s for one in self.seen)
        if capacity <= 0:
            why = Finding(Reason.SEARCH_UNBOUNDED, "no I/O completed at max")
            return self, Decision(Phase.TAIL, measured=(nothing_measured(interval.number, why),))
        return replace(self, capacity=capacity)._next(interval, ())

    def _draining(self, interval: Interval) -> "tuple[Find, Decision]":
        owed = _backlog(interval)
        if owed > 0 and interval.number - self.since >= self.question.most:
            why = Finding(
                Reason.SEARCH_UNBOUNDED,
                f"{owed:,} I/Os are still owed after {self.question.most} subintervals at 0 IOPS",
            )
            return self, Decision(Phase.TAIL, measured=(nothing_measured(interval.number, why),), say=why.detail)
        if owed > 0:
            return self, Decision(Phase.TRANSIENT, say=f"search: {owed:,} I/Os owed")
        return self._start(interval, ())

    def _probing(self, interval: Interval) -> "tuple[Find, Decision]":
        probe = probed(self.question, self.iops, self.seen, self.backlog) if self.seen else None
        if probe is None:
            return self, Decision(Phase.RUN, say=f"search: probe {len(self.probes) + 1} at {self.iops:.6g} IOPS")
        state = replace(self, probes=(*self.probes, probe))
        return state._next(interval, (Row("find.csv", state._cells(probe)),))

    def _next(self, interval: Interval, rows: tuple[Row, ...]) -> "tuple[Find, Decision]":
        wanted = next_load(self.probes, self.question.target, self._limits())
        if wanted is None:
            measured, say = self._result(interval.number)
            return self, Decision(Phase.TAIL, rows=rows, measured=(measured,), say=say)
        state = replace(self, iops=wanted, seen=())
        if self.stage is Stage.PROBE and _backlog(interval) > 0:
            state = replace(state, stage=Stage.DRAIN, since=interval.number + 1)
            return state, Decision(Phase.TRANSIENT, (Edit("all", "all", 0.0),), rows)
        return state._start(interval, rows)

    def _start(self, interval: Interval, rows: tuple[Row, ...]) -> "tuple[Find, Decision]":
        state = replace(self, stage=Stage.PROBE, since=interval.number + 1, seen=(), backlog=_backlog(interval))
        return state, Decision(Phase.TRANSIENT, (Edit("all", "all", self.iops),), rows)

    def _limits(self) -> Limits:
        assert self.capacity is not None
        return Limits(self.capacity, self.resolution, self.most)

    def result(self) -> tuple[float | None, Bracket]:
        """(the load at which the target is expected, the bracket around it)."""
        found = bracket(self.probes)
        wanted = None if self.capacity is None else expected(self.probes, self.question.target, self.capacity)
        return wanted, found

    def _result(self, number: int) -> tuple[Measured, str]:
        """The highest pass is the measurement; findings say what is wrong with the bracket."""
        wanted, found = self.result()
        name = f"{self.question.focus.metric} <= {self.question.target:g}"
        if found.passed is None:
            lowest = min((one.iops for one in self.probes), default=0.0)
            fails = found.failed is not None
            detail = f"{name} {'fails already' if fails else 'is unclear'} at the lowest load, {lowest:.6g} IOPS"
            return nothing_measured(number, Finding(Reason.SEARCH_UNBOUNDED, detail)), detail
        passed = found.passed
        window = Measured(passed.first, passed.last, f":total_iops={passed.iops:.6g}")
        if found.failed is None:
            detail = f"{name} never fails up to {passed.iops:.6g} of {self.capacity:.6g} IOPS at max"
            return replace(window, findings=(Finding(Reason.SEARCH_UNBOUNDED, detail),)), detail
        assert found.width is not None
        say = f"{name} up to {wanted:.6g} IOPS, between {passed.iops:.6g} (pass) and {found.failed.iops:.6g} (fail)"
        if found.width <= self.resolution:
            return window, say
        detail = f"{say}: {found.width:.1%}, asked {self.resolution:.1%}; {len(self.probes) + 1} probes"
        return replace(window, findings=(Finding(Reason.SEARCH_UNRESOLVED, detail),)), say

    def _cells(self, probe: Probe) -> dict[str, Cell]:
        wanted, found = self.result()
        return {
            "probe": len(self.probes),
            "total_iops": probe.iops,
            "achieved_iops": probe.achieved,
            "metric": self.question.focus.metric,
            "target": self.question.target,
            "value": probe.value,
            "half_width": probe.half_width,
            "confidence_percent": 100 * self.question.confidence,
            "worst_instance": probe.instance,
            "kept_up": probe.kept_up,
            "answer": probe.answer.value,
            "first_subinterval": probe.first,
            "last_subinterval": probe.last,
            "highest_pass_iops": found.passed.iops if found.passed else None,
            "lowest_fail_iops": found.failed.iops if found.failed else None,
            "expected_iops": wanted,
        }


def _backlog(interval: Interval) -> int:
    return sum(load.backlog for load in interval.loads["all"].values())
