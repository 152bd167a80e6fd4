"""Feedback control as its plan defines it: a metric that is held at a target."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ..stats.percentiles import fewest_ios
from ..text.metric_amounts import format_amount
from ..verdicts import Scope
from .autopid import AutoPid
from .control_state import Keys, MeasurementState, StepConditions, refuse
from .focus import Focus, not_above_0
from .load_level import Level, RunFacts, iops_of, level_in_words, number_of
from .pid import pid
from .pid_loop import PidRules, Range
from .steer import Steer, Steered


def blank_fault(focus: Focus, low_iops: float, subinterval_s: float) -> str:
    """Why a percentile would be blank in every subinterval at the lowest load, so that nothing would ever move it."""
    if focus.fraction is None or not low_iops * subinterval_s < (least := fewest_ios(focus.fraction)):
        return ""
    return (
        f"low_iops is {low_iops:g}, {low_iops * subinterval_s:g} I/Os in a subinterval; this percentile needs "
        f"{least}: raise it to {least / subinterval_s:g}, or take longer subintervals"
    )


@dataclass(frozen=True, slots=True)
class Calibration:
    """Two loads of each rollup instance, with the metric there."""

    low_iops: Level
    high_iops: Level
    low_target: float | None  # None: not known
    high_target: float | None


@dataclass(frozen=True, slots=True)
class PidSpec:
    """`control: { pid: ... }`: hold the metric of each instance at the target."""

    keys: ClassVar[Keys] = ("control", "pid")
    settles: ClassVar[bool] = True
    purpose: ClassVar[frozenset[Scope]] = frozenset()

    focus: Focus
    target: float
    calibration: Calibration | None  # None: control finds the range itself
    timeout_s: float  # for the load to settle

    @property
    def in_words(self) -> str:
        text = f"control: pid holds {self.focus.in_words} at {format_amount(self.focus.unit, self.target)}"
        ends = self.calibration
        if ends is None:
            return f"{text}, in a range that it finds"
        return f"{text}, from {level_in_words(ends.low_iops)} to {level_in_words(ends.high_iops)} IOPS"

    @property
    def goes_by_max(self) -> bool:
        return self.calibration is None

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    def faults(self, step: StepConditions, usable: bool) -> Iterator[tuple[str, str]]:
        if self.target <= 0:
            yield "target", not_above_0("target", self.focus, self.target)
        ends = self.calibration
        if ends is None:
            return
        known = True
        for key, value in (("low_target", ends.low_target), ("high_target", ends.high_target)):
            if value is not None and value <= 0:
                known = False
                yield key, not_above_0(key, self.focus, value)
        low, high = number_of(ends.low_iops), number_of(ends.high_iops)
        if known:  # loads that refer to a step are not known yet: any two will do to check the targets
            both = not math.isnan(low + high)
            found = Range(low if both else 1, high if both else 2, ends.low_target, ends.high_target)
            yield from found.faults(self.target, self.focus.unit)
        if text := blank_fault(self.focus, low, step.subinterval_s):
            yield "low_iops", text

    def longest_s(self, step: StepConditions, measured_s: float) -> float:
        return self.timeout_s + measured_s

    def state(self, step: StepConditions, measurement: MeasurementState, known: RunFacts) -> Steered:
        return Steered(self._steer(step, known), measurement, self.timeout_s)

    def _steer(self, step: StepConditions, known: RunFacts) -> Steer:
        names, rules = tuple(known.instances[self.focus.rollup]), PidRules(step.tolerance)
        if self.calibration is None:
            return AutoPid(self.focus, self.target, names, rules)
        ranges = {name: self._range(self.calibration, name, known) for name in names}
        for name, span in ranges.items():
            texts = [text for _, text in span.faults(self.target, self.focus.unit)]
            if blank := blank_fault(self.focus, span.low_iops, step.subinterval_s):
                texts.append(blank)
            refuse(f"{self.focus.rollup}={name}: {text}" for text in texts)
        return pid(self.focus, self.target, ranges, rules, warmup=max(1, step.warmup))

    def _range(self, ends: Calibration, name: str, known: RunFacts) -> Range:
        low, high = (iops_of(level, self.focus.rollup, name, known) for level in (ends.low_iops, ends.high_iops))
        return Range(low, high, ends.low_target, ends.high_target)
