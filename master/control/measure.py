"""Measure: run until the focus metric of every instance is known to the accuracy in the plan.

Rule: the window is the longest since the warmup or the last change of load; its beginning is dropped only where a
trend is found. It passes with at least 12 subintervals, 20 effective samples and every instance's half-width within
the accuracy, on one common window. A rule that takes the shortest window that passes (the ancestor's) picks the
windows whose noise happens to look small, and is wrong more often than its confidence allows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import ceil, floor, inf
from typing import ClassVar

import numpy as np

from ..stats.estimate import Correction, Estimate, estimates
from ..stats.metric_sample import MetricSample
from ..stats.percentiles import Floats
from ..stats.sample_matrix import SampleMatrix, matrix_of_sums, sums_of
from ..stats.trend import trend_probabilities
from ..text.metric_amounts import rounded
from ..text.units import format_duration, format_fraction
from ..verdicts import Finding, Reason
from .control_state import Keys, StepConditions, warmup_of
from .criteria import Criterion
from .decision import ControlRow, Decision, Measured, interrupted, shortened
from .focus import Focus, blank_window
from .observation import Observation, Phase

FEWEST_SUBINTERVALS = 12
FEWEST_EFFECTIVE = 20.0
LOOKING = 1.2  # factor on widths: a check in every subinterval that stops at the first pass catches low noise
TREND = 0.01  # probability that noise alone shows a trend, over all instances together
_DROPS = 10  # a trend drops the beginning in tenths of the window


@dataclass(frozen=True, slots=True)
class WindowPart:
    """One subinterval's share of a window."""

    number: int
    end_s: float
    length_s: float  # as planned where the step is running, real in finished data
    samples: Mapping[str, MetricSample]
    covers: int = 0  # subintervals before it that a host's result covers, too
    sums: Floats = field(init=False, compare=False)  # of the samples, made once: every window holds them again

    def __post_init__(self) -> None:
        object.__setattr__(self, "sums", sums_of(list(self.samples.values())))

    @property
    def first(self) -> int:
        """The subinterval with which a window begins whose first part this is."""
        return self.number - self.covers


@dataclass(frozen=True, slots=True)
class WindowCheck:
    """The result of checking one window."""

    first: int
    last: int
    worst: str  # the instance that is furthest from the accuracy
    estimate: Estimate | None  # of that instance; None where its metric is blank
    shortfall: float  # the root of how many such windows it takes; at most 1 passes, but for the window's length
    passing: int  # instances that are accurate, with enough effective samples
    instances: int
    length_s: float  # of its parts, to be compared with `min`
    passed: bool


@dataclass(frozen=True, slots=True)
class MeasureSpec:
    """`measure` by accuracy: until the metric of every instance is known to an accuracy."""

    keys: ClassVar[Keys] = ("measure",)

    focus: Focus
    accuracy: float  # half-width, as a fraction of the value
    confidence: float
    min_s: float
    timeout_s: float  # since the step, or the level, began
    correction: Correction

    @property
    def in_words(self) -> str:
        return (
            f"measure: until {self.focus.in_words} is known to {format_fraction(self.accuracy)} "
            f"at {format_fraction(self.confidence)} confidence, at least {format_duration(self.min_s)}"
        )

    def faults(self, step: StepConditions, usable: bool) -> Iterator[tuple[str, str]]:
        """The timeout runs in the warmup, too."""
        if not usable:
            return
        warmup_s = warmup_of(step)
        if not self.accuracy > 0:
            yield "accuracy", f"accuracy is {format_fraction(self.accuracy)}; it must be above 0"
        if not 0 < self.confidence < 1:
            yield "confidence", f"confidence is {format_fraction(self.confidence)}; it must be between 0 and 100%"
        least_s = warmup_s + max(self.min_s, FEWEST_EFFECTIVE * step.subinterval_s)
        if self.timeout_s < least_s:
            warmup = f", {warmup_s:g} s of it warmup" if warmup_s else ""
            yield "timeout", f"timeout is {self.timeout_s:g} s; no measurement can end before {least_s:g} s{warmup}"

    def longest_s(self, step: StepConditions) -> float:
        return max(self.timeout_s - warmup_of(step), 0.0)

    def state(self, step: StepConditions) -> "Measure":
        return Measure(self, step.warmup)


@dataclass(frozen=True, slots=True)
class Measure:
    """State of a measurement that ends when it is accurate."""

    spec: MeasureSpec
    warmup: int  # subintervals
    since: int = 0  # the subinterval with which the step, or the level, began
    began_s: float | None = None
    begin: int | None = None  # the first subinterval that may be measured, once something has moved it
    parts: tuple[WindowPart, ...] = ()
    best: WindowCheck | None = None

    @property
    def first(self) -> int:
        return self.since + self.warmup if self.begin is None else self.begin

    @property
    def focuses(self) -> tuple[Focus, ...]:
        return (self.spec.focus,)

    @property
    def may_end(self) -> tuple[int, ...]:
        return () if self.best is None else (self.best.last,)

    def opening(self) -> Decision:
        return Decision(self._phase(0))

    def restarted(self, at: int) -> "Measure":
        """The same, without anything before subinterval `at`; the timeout runs on."""
        return replace(self, begin=max(at, self.first), parts=(), best=None)

    def begun(self, since: int) -> "Measure":
        return Measure(self.spec, self.warmup, since)

    def after(self, observation: Observation) -> "tuple[Measure, Decision]":
        state = self._with(observation)
        last = observation.number
        check = check_window(self.spec, state.parts)
        if check and (state.best is None or check.shortfall < state.best.shortfall):
            state = replace(state, best=check)
        rows = (ControlRow("measure.csv", _cells(last, check, state)),) if check else ()
        if check and check.passed:
            measured = Measured(check.first, check.last)
            return state, Decision(Phase.TAIL, rows=rows, measured=(measured,), progress=state._progress(check))
        if observation.end_s - (state.began_s or 0.0) >= self.spec.timeout_s:
            return state, Decision(
                Phase.TAIL, rows=rows, measured=(state._timed_out(last),), progress="measure timed out"
            )
        return state, Decision(state._phase(last + 1), rows=rows, progress=state._progress(check))

    def cut_short(self, number: int) -> Measured:
        return shortened(self._timed_out(number)) if self.parts else interrupted(number)

    def _with(self, observation: Observation) -> "Measure":
        state = self if self.began_s is not None else replace(self, began_s=observation.start_s)
        if observation.number < state.first:
            return state
        if observation.began < state.first:  # it has figures of before
            return state.restarted(observation.number + 1)
        if observation.edited:
            return state.restarted(observation.number + 1)
        if not observation.same_figures:
            state = state.restarted(observation.number)
        if observation.absent:
            return state
        part = WindowPart(
            observation.number, observation.end_s, observation.length_s, observation.samples[self.spec.focus],
            observation.covers,
        )  # fmt: skip
        return replace(state, parts=(*state.parts, part))

    def _phase(self, number: int) -> Phase:
        return Phase.WARMUP if number < self.first else Phase.RUN

    def _timed_out(self, last: int) -> Measured:
        best = self.best
        if best is None:
            begin = self.parts[0].first if self.parts else last + 1
            why = Finding(Reason.ACCURACY_NOT_REACHED, f"{self.spec.focus.metric}: {no_window(self.parts)}")
            return Measured(begin, last, findings=(why,))
        why = Finding(Reason.ACCURACY_NOT_REACHED, describe_check(best, self.spec))
        return Measured(best.first, best.last, findings=(why,))

    def _progress(self, check: WindowCheck | None) -> str:
        if not self.parts:
            return ""
        if check is None:
            return f"{self.spec.focus.metric}: {no_window(self.parts)}"
        left = None if check.passed else remaining_s(check, self.spec)
        return describe_check(check, self.spec) + ("" if left is None else f", about {max(left, 0):.0f} s more")


def no_window(parts: tuple[WindowPart, ...]) -> str:
    """Why there is no window to check yet, for people."""
    if len(parts) < FEWEST_SUBINTERVALS:
        return f"{len(parts)} of {FEWEST_SUBINTERVALS} subintervals for a window"
    return f"a trend in every window of {FEWEST_SUBINTERVALS} subintervals and more"


def describe_check(check: WindowCheck, spec: MeasureSpec) -> str:
    """A window's accuracy for people; what it lacks comes first."""
    got = check.estimate
    if got is None:
        return blank_window(spec.focus, check.worst)
    width = f"+/- {rounded(100 * got.relative, 100 * spec.accuracy, 3)} %" if got.relative < inf else "+/- ?"
    width = f"{width}, target {format_fraction(spec.accuracy)[:-1]} %"
    more = lacking(check, spec)
    if more and got.relative <= spec.accuracy:
        return f"{spec.focus.metric} of {check.worst}: {', '.join(more)} ({width})"
    return f"{spec.focus.metric} of {check.worst} {', '.join([width, *more])}"


def lacking(check: WindowCheck, spec: MeasureSpec) -> list[str]:
    """The reasons, besides the half-width, that keep a window from passing, for people."""
    missing = []
    got = check.estimate
    if got and got.effective < FEWEST_EFFECTIVE:
        missing.append(f"{floor(10 * got.effective) / 10:g} of {FEWEST_EFFECTIVE:g} effective samples")
    if not _long_enough(check.length_s, spec):
        missing.append(f"{check.length_s:.4g} of {spec.min_s:g} s")
    return missing


def _long_enough(length_s: float, spec: MeasureSpec) -> bool:
    return length_s >= spec.min_s * (1 - 1e-3)  # a length is off by up to 0.1 %


def rule_t(criterion: Criterion, confidence: float) -> MeasureSpec:
    """The criterion t as a measurement to its accuracy, of any length."""
    return MeasureSpec(
        criterion.focus, criterion.limit / 100, confidence, min_s=0.0, timeout_s=inf,
        correction=Correction.EFFECTIVE,
    )  # fmt: skip


def check_window(spec: MeasureSpec, parts: tuple[WindowPart, ...]) -> WindowCheck | None:
    """The present window over `parts`, checked; None while there is none that is long enough."""
    if len(parts) < FEWEST_SUBINTERVALS or not parts[-1].samples:
        return None
    everything = _columns(spec, parts)
    starts = range(0, len(parts) - FEWEST_SUBINTERVALS + 1, ceil(len(parts) / _DROPS))
    place = next((place for place, start in enumerate(starts) if not _trending(everything.since(start))), None)
    if place is None:
        return None
    # What is left of a trend when the test no longer sees it lies in the next tenth.
    start = starts[min(place + 1, len(starts) - 1)] if place else 0
    return _check(spec, parts, everything.since(start))


def _columns(spec: MeasureSpec, parts: tuple[WindowPart, ...]) -> SampleMatrix:
    """The samples of every instance."""
    names = parts[-1].samples
    percentile = spec.focus.fraction is not None
    samples = [[part.samples[name] for part in parts] for name in names] if percentile else []
    return matrix_of_sums([part.sums for part in parts], samples, spec.focus.fraction)


def _trending(window: SampleMatrix) -> bool:
    """Some instance still rises or falls in the window."""
    _, series = window.influences()
    below = TREND / series.shape[1]
    return bool((trend_probabilities(series, below) < below).any())


def _check(spec: MeasureSpec, parts: tuple[WindowPart, ...], window: SampleMatrix) -> WindowCheck:
    """A window that ends with the last part, over all instances together."""
    got = estimates(window, spec.confidence, spec.correction)
    got = replace(got, half_widths=got.half_widths * LOOKING)
    short = got.relative / spec.accuracy
    passes = (short <= 1) & (got.effective >= FEWEST_EFFECTIVE)
    # A width shrinks with the root of the effective samples.
    short = np.maximum(short, np.sqrt(FEWEST_EFFECTIVE / got.effective))
    worst, instances, passing = int(np.argmax(short)), len(short), int(passes.sum())
    inside = parts[-got.subintervals :]
    length_s = sum(part.length_s for part in inside)
    passed = passing == instances and _long_enough(length_s, spec)
    return WindowCheck(
        inside[0].first, inside[-1].number, [*parts[-1].samples][worst], got[worst], float(short[worst]), passing,
        instances, length_s, passed,
    )  # fmt: skip


def remaining_s(check: WindowCheck, spec: MeasureSpec) -> float | None:
    """Seconds until the accuracy at the present rate: widths shrink with the root of time; None where unknown."""
    if check.estimate is None or not 0 < check.shortfall < inf:
        return None
    return max(check.length_s * check.shortfall**2, spec.min_s) - check.length_s


def _cells(subinterval: int, check: WindowCheck, state: Measure) -> dict[str, str | int | float | bool | None]:
    got = check.estimate
    finite = got is not None and got.half_width < inf
    return {
        "subinterval": subinterval,
        "first_subinterval": check.first,
        "last_subinterval": check.last,
        "dropped_for_trend": check.first - state.parts[0].first,
        "metric": state.spec.focus.metric,
        "worst_instance": check.worst,
        "value": got.value if got else None,
        "half_width_percent": 100 * got.relative if got and finite and got.value else None,
        "accuracy_percent": 100 * state.spec.accuracy,
        "confidence_percent": 100 * state.spec.confidence,
        "effective_samples": got.effective if got else None,
        "passing_instances": check.passing,
        "instances": check.instances,
        "remaining_s": remaining_s(check, state.spec),
        "passed": check.passed,
    }
