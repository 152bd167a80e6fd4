"""Thresholds on a step: what makes it fail, what gives it up early, and what calls for attention while it runs.

Rule: a step fails by the value of its measurement, which is the window's own. A single subinterval above a threshold
only alerts, at most once in `every_s`. Giving up early needs certainty: the window so far is above the threshold by
more than its half-width at 99.9 %. A blank metric does not meet its threshold, since nothing shows that it does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..plan.amounts import amount_in_words
from ..verdicts import Finding, Reason
from .columns import columns_of
from .decide import State
from .decision import Alert, Decision, Measured, Row
from .estimate import estimates
from .focus import Focus, Sample, value_of
from .interval import Interval
from .phase import Phase

_CERTAIN = 0.999
_FEWEST = 6  # subintervals before a step is given up


@dataclass(frozen=True, slots=True)
class Threshold:
    """One `slo` of a plan; every instance of the focus rollup must meet it."""

    focus: Focus
    at_most: float  # in the metric's unit
    abort_early: bool = False
    every_s: float = 60.0  # between two alerts

    def __str__(self) -> str:
        return f"{self.focus.metric} at most {self.in_words(self.at_most)}"

    def in_words(self, value: float, digits: int = 6) -> str:
        """A value of its metric, with the unit."""
        return amount_in_words(self.focus.metric, value, digits)


@dataclass(frozen=True, slots=True)
class Present:
    """How a threshold stands in one subinterval: the instance with the largest value."""

    threshold: Threshold
    instance: str
    value: float | None  # None: blank everywhere

    @property
    def broken(self) -> bool | None:
        return None if self.value is None else self.value > self.threshold.at_most

    @property
    def say(self) -> str:
        now = "blank" if self.value is None else f"{self.threshold.in_words(self.value, 4)} of {self.instance}"
        return f"{self.threshold}: now {now}"


@dataclass(frozen=True, slots=True)
class Watched:
    """Any state with thresholds over it."""

    state: State
    thresholds: tuple[Threshold, ...]
    seen: tuple[Interval, ...] = ()  # since the last measurement closed
    alerted_s: tuple[tuple[int, float], ...] = ()  # threshold's place, when it last alerted

    @property
    def focuses(self) -> tuple[Focus, ...]:
        return (*self.state.focuses, *(threshold.focus for threshold in self.thresholds))

    def opening(self) -> Decision:
        return self.state.opening()

    def after(self, interval: Interval) -> "tuple[Watched, Decision]":
        state, decision = self.state.after(interval)
        seen = (*self.seen, interval)
        measured = tuple(self._judged(one, seen) for one in decision.measured)
        present = [_present(interval, threshold) for threshold in self.thresholds]
        alerts, alerted_s = self._alerts(interval, present)
        rows = (*decision.rows, *(_row(interval, one) for one in present))
        said = tuple(one.say for one in present)
        decision = replace(decision, rows=rows, measured=measured, alerts=alerts, thresholds=said)
        if not measured and not decision.done and (hopeless := self._hopeless(seen)):
            decision = replace(
                decision, next_phase=Phase.TAIL, edits=(), measured=(hopeless,), say="a threshold is out of reach"
            )
        return Watched(state, self.thresholds, () if decision.measured else seen, alerted_s), decision

    def cut_short(self, number: int) -> Measured:
        return self._judged(self.state.cut_short(number), self.seen)

    def _judged(self, measured: Measured, seen: Sequence[Interval]) -> Measured:
        """The measurement with a finding for each threshold and instance that missed."""
        window = [one for one in seen if measured.first <= one.number <= measured.last]
        missed = []
        for threshold in self.thresholds:
            for instance in window[-1].samples[threshold.focus] if window else ():
                value = value_of(_samples(window, threshold, instance), threshold.focus.fraction)
                if value is None or value > threshold.at_most:
                    shown = "blank" if value is None else threshold.in_words(value)
                    missed.append(Finding(Reason.SLO_MISSED, f"{threshold}: {shown} of {instance}"))
        return replace(measured, findings=(*measured.findings, *missed))

    def _hopeless(self, seen: Sequence[Interval]) -> Measured | None:
        """The window so far, if no rest of the step could mend it."""
        window = [one for one in seen if one.phase is Phase.RUN and one.whole]
        if len(window) < _FEWEST:
            return None
        for threshold in self.thresholds:
            if not threshold.abort_early:
                continue
            rows = [one.samples[threshold.focus] for one in window]
            got = estimates(columns_of(rows, threshold.focus.fraction), _CERTAIN)
            for place in np.flatnonzero(got.values - got.half_widths > threshold.at_most):
                shown, width, instance = got.values[place], got.half_widths[place], list(rows[-1])[place]
                found = f"{threshold.in_words(shown)} +/- {threshold.in_words(width, 2)}"
                why = f"{threshold}: {found} of {instance}, given up early"
                return Measured(window[0].number, window[-1].number, findings=(Finding(Reason.SLO_MISSED, why),))
        return None

    def _alerts(
        self, interval: Interval, present: Sequence[Present]
    ) -> tuple[tuple[Alert, ...], tuple[tuple[int, float], ...]]:
        """What breaks now and has not alerted for a while; and when each threshold last did."""
        last = dict(self.alerted_s)
        alerts = []
        for place, one in enumerate(present):
            threshold, value = one.threshold, one.value
            if interval.phase is not Phase.RUN or value is None or not one.broken:
                continue
            if place not in last or interval.end_s - last[place] >= threshold.every_s:
                last[place] = interval.end_s
                alerts.append(Alert(str(threshold), one.instance, value, threshold.in_words(value), interval.number))
        return tuple(alerts), tuple(last.items())


def _row(interval: Interval, present: Present) -> Row:
    return Row(
        "slo.csv",
        {
            "subinterval": interval.number,
            "metric": present.threshold.focus.metric,
            "at_most": present.threshold.at_most,
            "worst_instance": present.instance,
            "value": present.value,
            "broken": present.broken,
        },
    )


def _samples(window: Sequence[Interval], threshold: Threshold, instance: str) -> list[Sample]:
    return [one.samples[threshold.focus][instance] for one in window]


def _present(interval: Interval, threshold: Threshold) -> Present:
    values = {name: interval.value(threshold.focus, name) for name in interval.samples[threshold.focus]}
    shown = {name: value for name, value in values.items() if value is not None}
    if not shown:
        return Present(threshold, "", None)
    name = max(shown, key=lambda one: shown[one])
    return Present(threshold, name, shown[name])
