"""Feedback control that finds its own range: a short run at max, a short one at 2 % of it, then the controller.

The low end is higher where a percentile would be blank at 2 %: control could not see the effect of its moves there.

Rule: the user gives only the target. The two ends are the calibration; where the metric is blank at max (a response
time is, unless the load is paced) the metric of the high end stays unknown and the gain adapts. A target outside of
the range is reported at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from ..stats.metric_sample import MetricSample, value_of
from ..stats.percentiles import fewest_ios
from ..text.metric_amounts import amount_in_words
from ..verdicts import Finding, Reason
from .decision import Cell, ControlRow, LoadEdit, Measured
from .focus import Focus
from .observation import NO_LOAD, Observation, achieved_iops
from .pid import COLUMNS, Pid
from .pid_loop import Loop, PidEvent, PidRules, Range, loop_in
from .steer import Orders

LOW_SHARE = 0.02  # of the IOPS at max
HIGH_SHARE = 0.98  # the most that is paced: at capacity itself the backlog never drains
NO_SAMPLE = MetricSample(0.0, 0.0)  # of an instance whose hosts are late for ever
_SPARE = 1.2  # Poisson arrivals vary


class RangeEnd(StrEnum):
    """The end of the range that is being measured."""

    MAX = "max"
    LOW = "low"


@dataclass(frozen=True, slots=True)
class AutoPid:
    """State of feedback control while it finds its range."""

    focus: Focus
    target: float
    instances: tuple[str, ...]
    rules: PidRules
    settle: int = 1  # subintervals at each end that are not used
    look: int = 2  # subintervals at each end that are
    stage: RangeEnd = RangeEnd.MAX
    since: int = 0  # the subinterval with which the stage began
    seen: tuple[Observation, ...] = ()  # the stage's subintervals that are used
    capacity: Mapping[str, float] = field(default_factory=dict)  # IOPS at max, per instance
    at_max: Mapping[str, float | None] = field(default_factory=dict)  # the metric there
    low: Mapping[str, float] = field(default_factory=dict)  # IOPS of the low end, per instance

    @property
    def focuses(self) -> tuple[Focus, ...]:
        return (self.focus,)

    @property
    def targets(self) -> Mapping[str, float]:
        return dict.fromkeys(self.instances, self.target)

    def refuses(self, targets: Mapping[str, float]) -> list[str]:
        if len(targets) < len(self.instances) or len(set(targets.values())) > 1:
            return [f"the range is still being found; until then all instances of {self.focus.rollup} have one target"]
        return []

    def retargeted(self, targets: Mapping[str, float], number: int) -> "AutoPid":
        return replace(self, target=next(iter(targets.values()), self.target))

    def opening(self) -> tuple[LoadEdit, ...]:
        return tuple(LoadEdit(self.focus.rollup, name, None) for name in self.instances)

    def after(self, observation: Observation) -> "tuple[AutoPid | Pid | Unreachable, Orders]":
        if not observation.same_hosts:  # the range of the hosts that are left is another one
            left = tuple(name for name in self.instances if name in observation.samples[self.focus])
            state = AutoPid(
                self.focus, self.target, left, self.rules, self.settle, self.look, since=observation.acts_in
            )
            return state, Orders(state.opening(), progress="finding the range again, with other hosts")
        seen = self.seen if observation.same_figures else ()
        if observation.number >= self.since + self.settle and not observation.absent:
            seen = (*seen, observation)
        rows = tuple(self._row(observation, name) for name in self.instances)
        progress = f"finding the range: at {self.stage}"
        if len(seen) < self.look:
            return replace(self, seen=seen), Orders(rows=rows, progress=progress)
        values: dict[str, float | None] = {
            name: value_of([one.samples[self.focus].get(name, NO_SAMPLE) for one in seen], self.focus.fraction)
            for name in self.instances
        }
        if self.stage is RangeEnd.MAX:
            capacity = {name: self._achieved(seen, name) for name in self.instances}
            seeable = self._seeable_iops(observation.length_s)
            low = {name: max(LOW_SHARE * most, seeable) for name, most in capacity.items()}
            state = replace(
                self,
                stage=RangeEnd.LOW,
                since=observation.acts_in,
                seen=(),
                capacity=capacity,
                at_max=values,
                low=low,
            )
            if blank := [name for name, most in capacity.items() if low[name] >= HIGH_SHARE * most]:
                return state._blank(blank, observation, rows)
            edits = tuple(LoadEdit(self.focus.rollup, name, low[name]) for name in self.instances)
            return state, Orders(edits, rows, progress=progress)
        return self._begun(values, observation.acts_in, rows)

    def with_checks(self, measured: Measured) -> Measured:
        return measured

    def _seeable_iops(self, length_s: float) -> float:
        """The least IOPS at which a subinterval shows a percentile, with some to spare; 0 for what is never blank."""
        fraction = self.focus.fraction
        return 0.0 if fraction is None else _SPARE * fewest_ios(fraction) / length_s

    def _blank(
        self, names: Sequence[str], observation: Observation, rows: tuple[ControlRow, ...]
    ) -> "tuple[Unreachable, Orders]":
        """Insufficient samples: even the maximum has too few I/Os in a subinterval."""
        least, since = self._seeable_iops(observation.length_s), observation.acts_in
        most = min(self.capacity[name] for name in names)
        if most <= 0:
            why = f"{', '.join(name for name in names if self.capacity[name] <= 0)} did no I/O at max that is known"
            return Unreachable(self.focus, self.targets, since, why), Orders(rows=rows, measurable=since, progress=why)
        remedy = f"take subintervals of {least / max(most, 1e-9) * observation.length_s / HIGH_SHARE:.3g} s or more"
        why = (
            f"{self.focus.metric} of {', '.join(names)} is blank below {least:.6g} IOPS, and the maximum is {most:.6g};"
            f" {remedy}"
        )
        return Unreachable(self.focus, self.targets, since, why), Orders(rows=rows, measurable=since, progress=why)

    def _begun(
        self, at_low: Mapping[str, float | None], since: int, rows: tuple[ControlRow, ...]
    ) -> "tuple[Pid | Unreachable, Orders]":
        """The controller in the range that was found, or why there can be none."""

        def shown(value: float, digits: int = 4) -> str:
            return amount_in_words(self.focus.unit, value, digits, self.target)

        loops: dict[str, Loop] = {}
        faults = []
        for name in self.instances:
            low, high, most = at_low[name], self.at_max[name], self.capacity[name]
            least = self.low[name]
            if low is not None and low >= self.target:
                share = least / most
                faults.append(f"{name} is at {shown(low)} already at {share:.0%} of its maximum, {least:.6g} IOPS")
            elif high is not None and high <= self.target:
                faults.append(f"{name} is only at {shown(high)} at its maximum, {most:.6g} IOPS")
            else:
                ends = Range(least, HIGH_SHARE * most, low, high)
                loops[name] = loop_in(ends, self.target, self.rules)
        if faults:
            why = f"{self.focus.metric} cannot be {shown(self.target, 6)}: {'; '.join(faults)}"
            state = Unreachable(self.focus, self.targets, since, why)
            return state, Orders(rows=rows, measurable=since, progress=state.why)
        pid = Pid(self.focus, loops, self.rules, warmup=1, since=since)
        return pid, Orders(pid.opening(), rows, progress="range found")

    def _achieved(self, seen: tuple[Observation, ...], name: str) -> float:
        return achieved_iops(one.loads[self.focus.rollup].get(name, NO_LOAD) for one in seen)

    def _row(self, observation: Observation, name: str) -> ControlRow:
        value = value_of([observation.samples[self.focus].get(name, NO_SAMPLE)], self.focus.fraction)
        load = observation.loads[self.focus.rollup].get(name, NO_LOAD)
        cells: dict[str, Cell] = {
            **dict.fromkeys(COLUMNS),
            "subinterval": observation.number,
            "instance": name,
            "metric": self.focus.metric,
            "target": self.target,
            "value": value,
            "achieved_iops": load.iops,
            "backlog": load.backlog,
            "event": (PidEvent.FINDING_MAX if self.stage is RangeEnd.MAX else PidEvent.FINDING_LOW).value,
        }
        return ControlRow("pid.csv", cells)


@dataclass(frozen=True, slots=True)
class Unreachable:
    """No load has the target: the step measures the present load, and its result says why it is invalid."""

    focus: Focus
    targets: Mapping[str, float]
    since: int
    why: str

    @property
    def focuses(self) -> tuple[Focus, ...]:
        return ()

    def refuses(self, targets: Mapping[str, float]) -> list[str]:
        return [f"control has given up, since {self.why}; run the step again with another target"]

    def retargeted(self, targets: Mapping[str, float], number: int) -> "Unreachable":
        return self

    def opening(self) -> tuple[LoadEdit, ...]:
        return ()

    def after(self, observation: Observation) -> "tuple[Unreachable, Orders]":
        return self, Orders(measurable=self.since, progress=self.why)

    def with_checks(self, measured: Measured) -> Measured:
        return replace(measured, findings=(*measured.findings, Finding(Reason.TARGET_NOT_HELD, self.why)))
