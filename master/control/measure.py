"""Measure: run until the focus metric of every instance is known as accurately as asked.

Rule: the window is the longest since the warmup or the last change of load; its beginning is dropped only where a
trend is found. It passes with at least 12 subintervals, 20 effective samples and every instance's half-width within
the accuracy, on one common window. A rule that takes the shortest window that passes (the ancestor's, kept as
`shortest`) picks the windows whose noise happens to look small, and is wrong more often than it says.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import ceil, floor, inf

import numpy as np

from ..stats.autocorrelation import FLOATS
from ..stats.trend import trend_probabilities
from ..text.units import format_fraction
from ..verdicts import Finding, Reason
from .decision import Decision, Measured, Row, interrupted, shortened
from .estimate import Correction, Estimate, estimates
from .focus import Focus, Sample, blank_window
from .observation import Interval
from .phase import Phase
from .sample_matrix import Columns, columns, sums_of

FEWEST_SUBINTERVALS = 12
FEWEST_EFFECTIVE = 20.0
LOOKING = 1.2  # widths are multiplied by it: who looks each subinterval and stops at the first pass, catches low noise
TREND = 0.01  # a trend is one that noise shows so rarely, over all instances together
_DROPS = 10  # a trend drops the beginning in tenths of the window


class Window(StrEnum):
    LONGEST = "longest"
    SHORTEST = "shortest"  # the ancestor's: the shortest that passes and ends now, from two subintervals on


@dataclass(frozen=True, slots=True)
class Goal:
    """What `measure` in a plan asks for."""

    focus: Focus
    accuracy: float = 0.02  # half-width, as a fraction of the value
    confidence: float = 0.95
    min_s: float = 60.0
    timeout_s: float = 900.0  # since the step, or the tread, began
    window: Window = Window.LONGEST
    correction: Correction = Correction.EFFECTIVE

    def faults(self, subinterval_s: float, warmup_s: float = 0.0) -> list[str]:
        """What is wrong with the numbers, a sentence each; the timeout runs in the warmup, too."""
        found = []
        if not self.accuracy > 0:
            found.append(f"accuracy is {format_fraction(self.accuracy)}; it must be above 0")
        if not 0 < self.confidence < 1:
            found.append(f"confidence is {format_fraction(self.confidence)}; it must be between 0 and 100%")
        fewest = FEWEST_EFFECTIVE * subinterval_s if self.window is Window.LONGEST else 2 * subinterval_s
        least = warmup_s + max(self.min_s, fewest)
        if self.timeout_s < least:
            warmup = f", {warmup_s:g} s of it warmup" if warmup_s else ""
            found.append(f"timeout is {self.timeout_s:g} s; no measurement can end before {least:g} s{warmup}")
        return found


@dataclass(frozen=True, slots=True)
class Part:
    """One subinterval's share of a window."""

    number: int
    end_s: float
    length_s: float
    samples: Mapping[str, Sample]
    sums: FLOATS = field(init=False, compare=False)  # of the samples, made once: every window holds them again

    def __post_init__(self) -> None:
        object.__setattr__(self, "sums", sums_of(list(self.samples.values())))


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one window comes to."""

    first: int
    last: int
    worst: str  # the instance that is furthest from the goal
    estimate: Estimate | None  # of that instance; None where its metric is blank
    shortfall: float  # the root of how many such windows it takes; at most 1 passes, but for the window's length
    passing: int  # instances that are accurate, with enough effective samples
    instances: int
    length_s: float
    passed: bool


@dataclass(frozen=True, slots=True)
class Measure:
    """State of a measurement that ends when it is accurate."""

    goal: Goal
    warmup: int = 0  # subintervals
    since: int = 0  # the subinterval with which the step, or the tread, began
    began_s: float | None = None
    begin: int | None = None  # the first subinterval that may be measured, once something has moved it
    parts: tuple[Part, ...] = ()
    best: Judgement | None = None

    @property
    def first(self) -> int:
        return self.since + self.warmup if self.begin is None else self.begin

    @property
    def focuses(self) -> tuple[Focus, ...]:
        return (self.goal.focus,)

    @property
    def may_end(self) -> tuple[int, ...]:
        return () if self.best is None else (self.best.last,)

    def opening(self) -> Decision:
        return Decision(self._phase(0))

    def restarted(self, at: int) -> "Measure":
        """The same goal, with what was seen before subinterval `at` forgotten; the timeout runs on."""
        return replace(self, begin=max(at, self.first), parts=(), best=None)

    def begun(self, since: int) -> "Measure":
        return Measure(self.goal, self.warmup, since)

    def after(self, interval: Interval) -> "tuple[Measure, Decision]":
        state = self._with(interval)
        last = interval.number
        judgement = judge(self.goal, state.parts)
        if judgement and (state.best is None or judgement.shortfall < state.best.shortfall):
            state = replace(state, best=judgement)
        rows = (Row("measure.csv", _cells(last, judgement, state)),) if judgement else ()
        if judgement and judgement.passed:
            measured = Measured(judgement.first, judgement.last)
            return state, Decision(Phase.TAIL, rows=rows, measured=(measured,), say=state._say(judgement))
        if interval.end_s - (state.began_s or 0.0) >= self.goal.timeout_s:
            return state, Decision(Phase.TAIL, rows=rows, measured=(state._timed_out(last),), say="measure timed out")
        return state, Decision(state._phase(last + 1), rows=rows, say=state._say(judgement))

    def cut_short(self, number: int) -> Measured:
        return shortened(self._timed_out(number)) if self.parts else interrupted(number)

    def _with(self, interval: Interval) -> "Measure":
        state = self if self.began_s is not None else replace(self, began_s=interval.start_s)
        if interval.number < state.first:
            return state
        if interval.edited:
            return state.restarted(interval.number + 1)
        if not interval.same_hosts:
            state = state.restarted(interval.number)
        part = Part(interval.number, interval.end_s, interval.length_s, interval.samples[self.goal.focus])
        return replace(state, parts=(*state.parts, part))

    def _phase(self, number: int) -> Phase:
        return Phase.WARMUP if number < self.first else Phase.RUN

    def _timed_out(self, last: int) -> Measured:
        best = self.best
        if best is None:
            begin = self.parts[0].number if self.parts else last + 1
            why = Finding(Reason.ACCURACY_NOT_REACHED, f"{self.goal.focus.metric}: {unjudged(self.goal, self.parts)}")
            return Measured(begin, last, findings=(why,))
        return Measured(best.first, best.last, findings=(Finding(Reason.ACCURACY_NOT_REACHED, told(best, self.goal)),))

    def _say(self, judgement: Judgement | None) -> str:
        if not self.parts:
            return ""
        if judgement is None:
            return f"{self.goal.focus.metric}: {unjudged(self.goal, self.parts)}"
        left = None if judgement.passed else remaining_s(judgement, self.goal)
        return told(judgement, self.goal) + ("" if left is None else f", about {max(left, 0):.0f} s more")


def unjudged(goal: Goal, parts: tuple[Part, ...]) -> str:
    """Why `judge` says nothing of these parts, for people."""
    fewest = _fewest(goal)
    if len(parts) < fewest:
        return f"{len(parts)} of {fewest} subintervals for a window"
    return f"a trend in every window of {fewest} subintervals and more"


def told(judgement: Judgement, goal: Goal) -> str:
    """How a window stands, for people: what it lacks first."""
    got = judgement.estimate
    if got is None:
        return blank_window(goal.focus, judgement.worst)
    width = f"+/- {100 * got.relative:.3g} %" if got.relative < inf else "+/- ?"
    width = f"{width}, asked {format_fraction(goal.accuracy)[:-1]} %"
    more = lacking(judgement, goal)
    if more and got.relative <= goal.accuracy:
        return f"{goal.focus.metric} of {judgement.worst}: {', '.join(more)} ({width})"
    return f"{goal.focus.metric} of {judgement.worst} {', '.join([width, *more])}"


def lacking(judgement: Judgement, goal: Goal) -> list[str]:
    """What keeps a window from passing beside the half-width, for people."""
    found = []
    got = judgement.estimate
    if got and goal.window is Window.LONGEST and got.effective < FEWEST_EFFECTIVE:
        found.append(f"{floor(10 * got.effective) / 10:g} of {FEWEST_EFFECTIVE:g} effective samples")
    if not _long_enough(judgement.length_s, goal):
        found.append(f"{judgement.length_s:.4g} of {goal.min_s:g} s")
    return found


def _fewest(goal: Goal) -> int:
    """Subintervals of the shortest window that is judged."""
    return FEWEST_SUBINTERVALS if goal.window is Window.LONGEST else 2


def _long_enough(length_s: float, goal: Goal) -> bool:
    return length_s >= goal.min_s * (1 - 1e-3)  # a length is off by up to 0.1 %


def judge(goal: Goal, parts: tuple[Part, ...]) -> Judgement | None:
    """What the goal's window over `parts` comes to now; None while there is none that is long enough."""
    shortest = goal.window is Window.SHORTEST
    if len(parts) < _fewest(goal) or not parts[-1].samples:
        return None
    everything = _columns(goal, parts)
    if shortest:
        judged = [_judged(goal, parts, everything.since(start)) for start in range(len(parts) - 2, -1, -1)]
        return next((one for one in judged if one.passed), min(judged, key=lambda one: one.shortfall))
    starts = range(0, len(parts) - FEWEST_SUBINTERVALS + 1, ceil(len(parts) / _DROPS))
    place = next((place for place, start in enumerate(starts) if not _trending(everything.since(start))), None)
    if place is None:
        return None
    # What is left of a trend when the test no longer sees it lies in the next tenth.
    start = starts[min(place + 1, len(starts) - 1)] if place else 0
    return _judged(goal, parts, everything.since(start))


def _columns(goal: Goal, parts: tuple[Part, ...]) -> Columns:
    """What the parts hold of every instance."""
    names = parts[-1].samples
    percentile = goal.focus.fraction is not None
    samples = [[part.samples[name] for part in parts] for name in names] if percentile else []
    return columns([part.sums for part in parts], samples, goal.focus.fraction)


def _trending(window: Columns) -> bool:
    """Some instance still rises or falls in the window."""
    _, series = window.influences()
    below = TREND / series.shape[1]
    return bool((trend_probabilities(series, below) < below).any())


def _judged(goal: Goal, parts: tuple[Part, ...], window: Columns) -> Judgement:
    """What a window, which ends with the last part, comes to, every instance taken together."""
    longest = goal.window is Window.LONGEST
    got = estimates(window, goal.confidence, goal.correction)
    if longest:
        got = replace(got, half_widths=got.half_widths * LOOKING)
    short = got.relative / goal.accuracy
    passes = (short <= 1) & ((got.effective >= FEWEST_EFFECTIVE) | (not longest))
    if longest:  # a width shrinks with the root of the effective samples
        short = np.maximum(short, np.sqrt(FEWEST_EFFECTIVE / got.effective))
    worst, instances, passing = int(np.argmax(short)), len(short), int(passes.sum())
    inside = parts[-got.subintervals :]
    length_s = sum(part.length_s for part in inside)
    passed = passing == instances and _long_enough(length_s, goal)
    return Judgement(
        inside[0].number, inside[-1].number, [*parts[-1].samples][worst], got[worst], float(short[worst]), passing,
        instances, length_s, passed,
    )  # fmt: skip


def remaining_s(judgement: Judgement, goal: Goal) -> float | None:
    """Seconds until the goal at the present rate: widths shrink with the root of time; None where that is unknown."""
    if judgement.estimate is None or not 0 < judgement.shortfall < inf:
        return None
    return max(judgement.length_s * judgement.shortfall**2, goal.min_s) - judgement.length_s


def _cells(subinterval: int, judgement: Judgement, state: Measure) -> dict[str, str | int | float | bool | None]:
    got = judgement.estimate
    finite = got is not None and got.half_width < inf
    return {
        "subinterval": subinterval,
        "window": state.goal.window.value,
        "first_subinterval": judgement.first,
        "last_subinterval": judgement.last,
        "dropped_for_trend": judgement.first - state.parts[0].number if state.goal.window is Window.LONGEST else None,
        "metric": state.goal.focus.metric,
        "worst_instance": judgement.worst,
        "value": got.value if got else None,
        "half_width_percent": 100 * got.relative if got and finite and got.value else None,
        "accuracy_percent": 100 * state.goal.accuracy,
        "confidence_percent": 100 * state.goal.confidence,
        "effective_samples": got.effective if got else None,
        "passing_instances": judgement.passing,
        "instances": judgement.instances,
        "remaining_s": remaining_s(judgement, state.goal),
        "passed": judgement.passed,
    }
