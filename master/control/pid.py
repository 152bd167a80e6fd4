"""Feedback control: move each instance's total IOPS until its focus metric is at the target, and keep it there.

Rule: each instance has a loop of its own (pid_loop.py), of integral action alone: P and D are always zero in pid.csv. A
measurement may begin after the last gain step of any loop, and its own value is checked against the target.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..stats.confidence import half_width
from ..stats.metric_sample import MetricSample, value_of
from ..text.metric_amounts import amount_in_words
from ..verdicts import Finding, Reason
from .decision import Cell, ControlRow, LoadEdit, Measured
from .focus import Focus, blank_subinterval
from .observation import NO_LOAD, InstanceLoad, Observation
from .pid_loop import Loop, PidEvent, PidRules, Range, loop_in, moved, set_out, with_pooled
from .steer import Orders

COLUMNS = (
    "subinterval",
    "instance",
    "metric",
    "target",
    "value",
    "error_ln",
    "proportional_ln",
    "integral_ln",
    "derivative_ln",
    "gain",
    "gain_next",
    "iops",
    "iops_next",
    "achieved_iops",
    "backlog",
    "monotone",
    "event",
)  # of pid.csv


@dataclass(frozen=True, slots=True)
class TargetCheck:
    """One instance's target, as a check of a measurement."""

    focus: Focus
    instance: str
    target: float
    held: float  # how far off it may be, as a share of the target
    doubt: float  # half-width of the subintervals' errors, as a share of the target: so far off it may be by chance
    iops: float  # where the load stood at the end
    clamped: bool  # at a bound of its range

    def findings(
        self, values: Mapping[str, float | None], slowed: Mapping[str, float], lacking: Mapping[str, str]
    ) -> tuple[Finding, ...]:
        if self.instance not in values:  # no host of it is left
            return ()
        value = values[self.instance]
        error = None if value is None else value / self.target - 1
        if error is not None and abs(error) <= max(self.held, self.doubt):
            if self.doubt <= self.held:
                return ()
            detail = f"{self.focus.metric} of {self.instance} was {error:+.1%} off, +/- {self.doubt:.1%}"
            return (Finding(Reason.TARGET_UNSURE, detail),)
        off = "blank" if error is None else f"{error:+.1%} off"
        bound = " at a bound of its range" if self.clamped else ""
        detail = f"{self.focus.metric} of {self.instance} was {off}{bound}, at {self.iops:.6g} IOPS"
        return (Finding(Reason.TARGET_NOT_HELD, detail),)


@dataclass(frozen=True, slots=True)
class Pid:
    """State of feedback control of all instances of a rollup."""

    focus: Focus
    loops: Mapping[str, Loop]
    rules: PidRules
    warmup: int  # subintervals before the first move
    since: int
    gone: frozenset[str] = frozenset()  # instances without a host: their loops rest, and nothing waits for them
    errors: tuple[tuple[int, Mapping[str, float]], ...] = ()  # of every subinterval: their noise is allowed for
    acts_in: int = 0  # the subinterval in which the last move acts: earlier ones show nothing of it

    @property
    def focuses(self) -> tuple[Focus, ...]:
        return (self.focus,)

    def opening(self) -> tuple[LoadEdit, ...]:
        return tuple(LoadEdit(self.focus.rollup, name, loop.iops) for name, loop in self.loops.items())

    @property
    def targets(self) -> Mapping[str, float]:
        return {name: loop.target for name, loop in self.loops.items()}

    def refuses(self, targets: Mapping[str, float]) -> list[str]:
        """Why instances cannot have these targets, a sentence each."""
        return [
            f"{self.focus.rollup}={name}: {text}"
            for name, target in targets.items()
            for _, text in self.loops[name].range.faults(target, self.focus.unit)
        ]

    def retargeted(self, targets: Mapping[str, float], number: int) -> "Pid":
        """The same loops, some with other targets since subinterval `number`; gains may rise again there."""
        loops = {
            name: set_out(loop, targets[name], number) if name in targets else loop for name, loop in self.loops.items()
        }
        return replace(self, loops=loops)

    def after(self, observation: Observation) -> "tuple[Pid, Orders]":
        if observation.number < self.since + self.warmup:
            return self, Orders(() if observation.same_hosts else self.opening(), progress="warming up")
        if observation.number < self.acts_in or observation.absent:
            return self._unmoved(observation)
        loops, rows, errors = dict(self.loops), [], {}
        present = observation.samples[self.focus]
        for name, loop in self.loops.items():
            load = observation.loads.get(self.focus.rollup, {}).get(name, NO_LOAD)
            if name not in present or load is NO_LOAD:
                continue
            loop = self._with_sample(loop, present[name], observation)
            value = self._value(loop, present[name])
            error, after = moved(loop, value, load, observation, self.rules)
            loops[name] = replace(after, pool=None) if observation.edited else after  # two loads are in it
            if value is not None:
                errors[name] = value / loop.target - 1
            rows.append(ControlRow("pid.csv", self._cells(observation, name, loop, after, value, error, load)))
        gone = frozenset(name for name in loops if name not in present)
        state = replace(self, loops=loops, gone=gone, errors=(*self.errors, (observation.number, errors)))
        edits = tuple(
            LoadEdit(self.focus.rollup, name, loop.iops)
            for name, loop in loops.items()
            if name in present and (loop.iops != self.loops[name].iops or not observation.same_hosts)
        )
        state = replace(state, acts_in=observation.acts_in) if edits else state
        return state, Orders(edits, tuple(rows), state._measurable(), state._progress(observation, errors))

    def _unmoved(self, observation: Observation) -> "tuple[Pid, Orders]":
        """After a subinterval that says nothing of the present load. Other hosts get it nevertheless."""
        progress = "a host is late" if observation.absent else "the last move does not act yet"
        state = self if observation.whole else self._emptied()
        if observation.same_hosts:
            return state, Orders(measurable=state._measurable(), progress=progress)
        present = observation.samples[self.focus]
        state = replace(state, gone=frozenset(state.loops.keys() - present.keys()), acts_in=observation.acts_in)
        edits = tuple(edit for edit in state.opening() if edit.instance in present)
        return state, Orders(edits, measurable=state._measurable(), progress=progress)

    def _emptied(self) -> "Pid":
        """The state with empty pools: their samples were of another load, or of other hosts."""
        return replace(self, loops={name: replace(loop, pool=None) for name, loop in self.loops.items()})

    def _with_sample(self, loop: Loop, sample: MetricSample, observation: Observation) -> Loop:
        """The loop with the subinterval's sample in its pool, if there is one."""
        if not observation.whole:  # what is in the pool is of another load, or of other hosts
            loop = replace(loop, pool=None)
        return loop if sample.is_empty else with_pooled(loop, sample, self.rules)

    def _value(self, loop: Loop, sample: MetricSample) -> float | None:
        """The pool's metric: None where it is blank, or the subinterval added nothing to it."""
        return None if loop.pool is None or sample.is_empty else value_of([loop.pool], self.focus.fraction)

    def with_checks(self, measured: Measured) -> Measured:
        """The measurement's own value, of each instance, is to be at the target."""
        window = [errors for number, errors in self.errors if measured.first <= number <= measured.last]
        aims = []
        for name, loop in self._present().items():
            doubt = _doubt([errors[name] for errors in window if name in errors])
            aims.append(
                TargetCheck(
                    self.focus, name, loop.target, self.rules.held, doubt, loop.iops, loop.event is PidEvent.CLAMPED
                )
            )
        return replace(measured, checks=(*measured.checks, *aims))

    def _present(self) -> Mapping[str, Loop]:
        return {name: loop for name, loop in self.loops.items() if name not in self.gone}

    def _measurable(self) -> int | None:
        """After the last gain step of any instance, once each has crossed its target or stays at a bound."""
        loops = self._present().values()
        if all(loop.crossed or loop.event is PidEvent.CLAMPED for loop in loops):
            return max(self.since + self.warmup, *(max(loop.gain_changed + 1, loop.at_bound) for loop in loops))
        return None

    def _progress(self, observation: Observation, errors: Mapping[str, float]) -> str:
        blank = next((name for name in self._present() if name not in errors), None)
        if blank is not None:
            return blank_subinterval(self.focus, blank, observation.samples[self.focus][blank])
        name = max(errors, key=lambda one: abs(errors[one]))
        focus, loop = self.focus, self.loops[name]
        value, target = (amount_in_words(focus.unit, one, 4) for one in (loop.target * (1 + errors[name]), loop.target))
        off = f"{errors[name]:+.1%} from its target of {target}"
        return f"{focus.metric} of {name} {value}, {off}, at {loop.iops:.6g} IOPS"

    def _cells(
        self,
        observation: Observation,
        name: str,
        before: Loop,
        after: Loop,
        value: float | None,
        error: float,
        load: InstanceLoad,
    ) -> dict[str, Cell]:
        values: tuple[Cell, ...] = (
            observation.number,
            name,
            self.focus.metric,
            before.target,
            value,
            error,
            0.0,
            -before.gain * error,
            0.0,
            before.gain,
            after.gain,
            before.iops,
            after.iops,
            load.iops,
            load.backlog,
            after.monotone,
            after.event.value,
        )
        return dict(zip(COLUMNS, values, strict=True))


def pid(
    focus: Focus,
    target: float,
    ranges: Mapping[str, Range],
    rules: PidRules,
    warmup: int,
) -> Pid:
    """Control of the instances in `ranges`; their values are per instance, in the metric's own unit."""
    loops = {name: loop_in(one, target, rules) for name, one in ranges.items()}
    return Pid(focus, loops, rules, warmup, since=0)


def _doubt(errors: Sequence[float]) -> float:
    """How far from zero their mean may be by noise alone, at 95 %; 0 for too few."""
    return float(np.nan_to_num(half_width(np.array(errors)[:, None])[0]))
