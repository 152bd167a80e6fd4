"""Thresholds on a step: what makes it fail, what aborts it early, and what alerts while it runs.

Rule: a step fails by the value of its measurement, which is the window's own: it is checked when the window has been
summed. A single subinterval that breaches a threshold only alerts, at most once in `every_s`. A step is aborted early
only when the window so far misses the threshold by more than its half-width at 99.9 %. A blank metric does not meet its
threshold, since nothing shows that it does. Memory and time do not grow with the step's length.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..rollup.disturbance import Disturbance, set_aside_finding
from ..stats.estimate import estimate
from ..stats.metric_sample import BatchMeans, value_of
from ..text.metric_amounts import amount_in_words
from ..verdicts import Finding
from .choices import Side
from .control_state import ControlState
from .decision import Alert, ControlRow, Decision, Measured
from .focus import Focus
from .observation import Observation, Phase
from .threshold import SloSpec, of_instance

_CERTAIN = 0.999
_FEWEST = 6  # subintervals before a step is aborted
_WORST = 4  # instances, the worst, whose certainty is worked out: one is enough


@dataclass(frozen=True, slots=True)
class EarlyAbort:
    """The window so far, for the thresholds that may abort a step early."""

    first: int = -1  # subintervals
    last: int = -1
    subintervals: int = 0
    batches: tuple[BatchMeans, ...] = ()  # of each such threshold
    aside: tuple[tuple[int, Disturbance], ...] = ()  # set aside since the first subinterval, with their numbers

    def after(self, observation: Observation, thresholds: Sequence[SloSpec], set_aside: bool) -> "EarlyAbort":
        """With one more subinterval; it begins again where a window does. `set_aside`: it does not count."""
        if not observation.whole:
            return EarlyAbort()
        if observation.phase is not Phase.RUN:
            return self
        if set_aside:
            assert observation.disturbance is not None
            aside = (*self.aside, (observation.number, observation.disturbance))
            return replace(self, aside=aside) if self.subintervals else self
        if observation.absent or (observation.covers and not self.subintervals):  # it may reach back into the warmup
            return self
        first = self.first if self.subintervals else observation.number
        before = self.batches or tuple(BatchMeans() for _ in thresholds)
        batches = tuple(
            one.added(observation.samples[threshold.focus]) for one, threshold in zip(before, thresholds, strict=True)
        )
        return EarlyAbort(first, observation.number, self.subintervals + 1, batches, self.aside)

    def certain_miss(self, thresholds: Sequence[SloSpec]) -> Measured | None:
        """The window so far, if it is certain to fail; checked when a batch is complete."""
        if self.subintervals < _FEWEST:
            return None
        for threshold, batches in zip(thresholds, self.batches, strict=True):
            if batches.in_part:
                continue
            if miss := _surely_missed(threshold, batches):
                within = [one for one in self.aside if one[0] < self.last]
                noted = set_aside_finding([one for _, one in within], self.subintervals)
                numbers = tuple(number for number, _ in within)
                return Measured(self.first, self.last, "", noted, (miss,), numbers)
        return None


@dataclass(frozen=True, slots=True)
class _CertainMiss:
    """One instance's miss, which aborts the step early."""

    threshold: SloSpec
    instance: str
    value: float
    detail: str

    @property
    def focus(self) -> Focus:
        return self.threshold.focus

    def findings(
        self, values: Mapping[str, float | None], slowed: Mapping[str, float], lacking: Mapping[str, str]
    ) -> tuple[Finding, ...]:
        """Whatever the window's value: it was certain before the window was summed."""
        of_hosts = slowed.get(self.instance, 0.0), lacking.get(self.instance, "")
        return (self.threshold.missed(self.value, self.detail, *of_hosts),)


def _surely_missed(threshold: SloSpec, batches: BatchMeans) -> _CertainMiss | None:
    """That of the worst instances which certainly misses the threshold."""
    fraction = threshold.focus.fraction
    values = {name: value_of([sample], fraction) for name, sample in batches.total.items()}
    excess = {name: threshold.excess(value) for name, value in values.items() if value is not None}
    missed = [name for name, by in excess.items() if by > 0]
    for name in sorted(missed, key=lambda one: excess[one], reverse=True)[:_WORST]:
        got = estimate(batches.of(name), fraction, _CERTAIN)
        if got is not None and threshold.excess(got.value) > got.half_width:
            half_width = amount_in_words(threshold.focus.unit, got.half_width, 2)
            found = f"{threshold.in_words(got.value)} +/- {half_width}"
            return _CertainMiss(threshold, name, got.value, f"{threshold}: {found}{of_instance(name)}, aborted early")
    return None


@dataclass(frozen=True, slots=True)
class ThresholdValue:
    """A threshold in one subinterval: the instance that is worst against it."""

    threshold: SloSpec
    instance: str
    value: float | None  # None: blank everywhere

    @property
    def breached(self) -> bool | None:
        return None if self.value is None else self.threshold.excess(self.value) > 0

    @property
    def progress(self) -> str:
        now = "blank" if self.value is None else f"{self.threshold.in_words(self.value, 4)}{of_instance(self.instance)}"
        return f"{self.threshold}: now {now}"


@dataclass(frozen=True, slots=True)
class Watched:
    """A state with thresholds over it."""

    state: ControlState
    thresholds: tuple[SloSpec, ...]
    abort: EarlyAbort = field(default_factory=EarlyAbort)  # since the last measurement closed
    alerted_s: tuple[tuple[int, float], ...] = ()  # threshold's place, when it last alerted

    @property
    def focuses(self) -> tuple[Focus, ...]:
        return (*self.state.focuses, *(threshold.focus for threshold in self.thresholds))

    @property
    def may_end(self) -> tuple[int, ...]:
        return (*self.state.may_end, self.abort.last)

    def opening(self) -> Decision:
        return self.state.opening()

    def after(self, observation: Observation) -> "tuple[Watched, Decision]":
        state, decision = self.state.after(observation)
        aborting = [threshold for threshold in self.thresholds if threshold.abort_early]
        abort = self.abort.after(observation, aborting, decision.set_aside) if aborting else self.abort
        measured = tuple(map(self._checked, decision.measured))
        present = [_present(observation, threshold) for threshold in self.thresholds]
        alerts, alerted_s = ((), self.alerted_s) if decision.set_aside else self._alerts(observation, present)
        rows = (*decision.rows, *(_row(observation, one) for one in present))
        values = tuple(one.progress for one in present)
        decision = replace(decision, rows=rows, measured=measured, alerts=alerts, thresholds=values)
        if not measured and not decision.done and (lost := abort.certain_miss(aborting)):
            decision = replace(
                decision, next_phase=Phase.TAIL, edits=(), measured=(lost,), progress="a threshold is certainly missed"
            )
        return Watched(state, self.thresholds, EarlyAbort() if decision.measured else abort, alerted_s), decision

    def cut_short(self, number: int) -> Measured:
        return self._checked(self.state.cut_short(number))

    def _checked(self, measured: Measured) -> Measured:
        return replace(measured, checks=(*measured.checks, *self.thresholds))

    def _alerts(
        self, observation: Observation, present: Sequence[ThresholdValue]
    ) -> tuple[tuple[Alert, ...], tuple[tuple[int, float], ...]]:
        """New alerts, at most one in `every_s` of each threshold; and when each last alerted."""
        last = dict(self.alerted_s)
        alerts = []
        for place, checked in enumerate(present):
            threshold, value = checked.threshold, checked.value
            if observation.phase is not Phase.RUN or value is None or not checked.breached:
                continue
            if place not in last or observation.end_s - last[place] >= threshold.every_s:
                last[place] = observation.end_s
                alerts.append(Alert(threshold, checked.instance, value, observation.number))
        return tuple(alerts), tuple(last.items())


def _row(observation: Observation, present: ThresholdValue) -> ControlRow:
    return ControlRow(
        "slo.csv",
        {
            "subinterval": observation.number,
            "metric": present.threshold.focus.metric,
            "rollup": present.threshold.focus.rollup,
            **{side: present.threshold.limit if side is present.threshold.side else None for side in Side},
            "worst_instance": present.instance,
            "value": present.value,
            "breached": present.breached,
        },
    )


def _present(observation: Observation, threshold: SloSpec) -> ThresholdValue:
    if observation.absent:
        return ThresholdValue(threshold, "", None)
    values = {name: observation.value(threshold.focus, name) for name in observation.samples[threshold.focus]}
    shown = {name: value for name, value in values.items() if value is not None}
    if not shown:
        return ThresholdValue(threshold, "", None)
    name = max(shown, key=lambda one: threshold.excess(shown[one]))
    return ThresholdValue(threshold, name, shown[name])
