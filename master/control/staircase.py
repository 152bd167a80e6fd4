"""Staircase: several load levels in one step, each with a measurement and a summary row of its own.

Rule: the load of level k follows from k, so a staircase without an end climbs until a level is not sustained. The
subinterval in which a level's load takes effect belongs to no measurement.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from ..rollup.instances import ALL
from ..rollup.overload import Outstanding, account, why_not_sustained
from ..text.units import format_fraction
from ..verdicts import Finding, Reason, Scope
from .control_state import Keys, MeasurementState, StepConditions, refuse
from .decision import ControlRow, Decision, LoadEdit, Measured
from .focus import Focus
from .load_level import Level, RunFacts, iops_of, level_in_words, number_of
from .observation import InstanceLoad, Observation, Phase, achieved_iops

_END_TOLERANCE = 1.001  # so that rounding does not lose the last level


@dataclass(frozen=True, slots=True)
class Levels:
    """From `start` upward by `step`, which is IOPS, or with `relative` a share of the level before."""

    start: float
    step: float
    relative: bool = False
    end: float | None = None  # None: until saturation

    @property
    def to_saturation(self) -> bool:
        """A level that is not sustained is the last."""
        return self.end is None

    def iops(self, level: int) -> float | None:
        """Total IOPS of level 0, 1, ...; None after the last."""
        iops = self.start * (1 + self.step) ** level if self.relative else self.start + self.step * level
        return iops if self.end is None or iops <= self.end * _END_TOLERANCE else None

    def faults(self) -> Iterator[tuple[str, str]]:
        """Faults in the numbers: the field, and a sentence."""
        if self.start <= 0:
            yield "start", f"start is {self.start:g}; it must be above 0"
        if self.step <= 0:
            yield "step", f"step is {self.step:g}; it must be above 0"
        if self.end is not None and self.end < self.start:
            yield "end", f"end is {self.end:g}; it must be at least start, {self.start:g}"


def levels_of_steps(start: float, end: float, steps: int) -> Levels:
    """`steps` levels, at least two, from `start` to `end`, evenly."""
    return Levels(start, (end - start) / (steps - 1), end=end)


@dataclass(frozen=True, slots=True)
class StaircaseSpec:
    """`staircase`: several loads, a measurement of each."""

    keys: ClassVar[Keys] = ("staircase",)
    settles: ClassVar[bool] = False
    purpose: ClassVar[frozenset[Scope]] = frozenset()

    start: Level
    end: Level | None  # None: until a load is not sustained
    step: Level | None  # None where `relative` or `steps` is given
    relative: float | None  # the step as a share of the level before
    steps: int | None

    @property
    def focus(self) -> Focus | None:
        return None

    @property
    def in_words(self) -> str:
        end = "until it is not sustained" if self.end is None else f"to {level_in_words(self.end)}"
        if self.steps is not None:
            how = f"in {self.steps} levels"
        elif self.relative is not None:
            how = f"by {format_fraction(self.relative)} of the load before"
        else:
            how = f"by {level_in_words(self.step or 0.0)}"
        return f"staircase: total_iops from {level_in_words(self.start)} {end} {how}"

    @property
    def goes_by_max(self) -> bool:
        return False

    @property
    def notes(self) -> tuple[str, ...]:
        unknown = "the number of levels, and so the length, is not known beforehand"
        return (unknown,) if self._count() is None else ()

    def faults(self, step: StepConditions, usable: bool) -> Iterator[tuple[str, str]]:
        if levels := self.levels():
            yield from levels.faults()

    def longest_s(self, step: StepConditions, measured_s: float) -> float:
        return (self._count() or 1) * ((step.warmup + 1) * step.subinterval_s + measured_s)

    def state(self, step: StepConditions, measurement: MeasurementState, known: RunFacts) -> "Staircase":
        def number(level: Level | None) -> float | None:
            return None if level is None else iops_of(level, ALL, ALL, known)

        start = iops_of(self.start, ALL, ALL, known)
        levels = replace(self, start=start, end=number(self.end), step=number(self.step)).levels()
        assert levels is not None
        refuse(text for _, text in levels.faults())
        return Staircase(levels, measurement, step.tolerance)

    def levels(self) -> Levels | None:
        """None where a load is not a number yet."""
        start = number_of(self.start)
        end = None if self.end is None else number_of(self.end)
        rise = self.relative if self.step is None else number_of(self.step)
        if any(value is not None and math.isnan(value) for value in (start, end, rise)):
            return None
        if self.steps is not None and end is not None:
            return levels_of_steps(start, end, self.steps)
        return Levels(start, rise or 0.0, self.relative is not None, end)

    def _count(self) -> int | None:
        """How many loads it has; None where that shows only in the run."""
        start, end, step = self.start, self.end, self.step
        if self.steps is not None:
            return self.steps
        if not isinstance(start, float) or not isinstance(end, float) or not 0 < start <= end:
            return None
        if self.relative:
            return 1 + int(math.log(end / start * _END_TOLERANCE) / math.log1p(self.relative))
        return 1 + int((end * _END_TOLERANCE - start) / step) if isinstance(step, float) and step > 0 else None


@dataclass(frozen=True, slots=True)
class LevelSubinterval:
    """One subinterval of the present level."""

    number: int
    load: InstanceLoad
    outstanding: Outstanding

    @property
    def known(self) -> int:
        """The workload instances whose host is in."""
        return int(self.outstanding.known.sum())


@dataclass(frozen=True, slots=True)
class Staircase:
    """State of a staircase; `measurement` is the present level's, and made anew for each."""

    levels: Levels
    measurement: MeasurementState
    tolerance: float  # achieved_iops_tolerance
    level: int = 0
    seen: tuple[LevelSubinterval, ...] = ()

    @property
    def focuses(self) -> tuple[Focus, ...]:
        return self.measurement.focuses

    @property
    def may_end(self) -> tuple[int, ...]:
        return self.measurement.may_end

    def opening(self) -> Decision:
        return replace(self.measurement.opening(), edits=(self._edit(),))

    def after(self, observation: Observation) -> "tuple[Staircase, Decision]":
        load = observation.loads["all"][ALL]
        measurement, decision = self.measurement.after(observation)
        state = replace(
            self,
            measurement=measurement,
            seen=(
                *self.seen,
                LevelSubinterval(observation.number, load, observation.outstanding),
            ),
        )
        if not decision.done and not observation.same_hosts:  # the hosts that are left get the whole load
            state = replace(state, measurement=measurement.restarted(observation.acts_in + 1))
            return state, Decision(Phase.TRANSIENT, (self._edit(),), decision.rows, steering=state._steering())
        if not decision.done:
            return state, replace(decision, steering=state._steering(), remaining=None)  # it is the level's
        (closed,) = decision.measured
        achieved, shortfall = state._came_of(closed)
        findings = closed.findings
        if shortfall is not None and self.levels.to_saturation and closed.first <= closed.last:
            findings = (*findings, Finding(Reason.LOAD_NOT_SUSTAINED, shortfall))
        measured = replace(closed, suffix=self._suffix(), findings=findings)
        row = ControlRow("staircase.csv", state._cells(measured, achieved, shortfall is not None))
        state = replace(state, level=self.level + 1, seen=())
        saturated = shortfall is not None and self.levels.to_saturation
        if saturated or state._iops() is None:
            return state, replace(decision, rows=(*decision.rows, row), measured=(measured,))
        # The subinterval in which the edit acts has two loads; the next level's warmup begins after it.
        state = replace(state, measurement=self.measurement.begun(observation.acts_in + 1))
        rows, steering = (*decision.rows, row), state._steering()
        return state, Decision(Phase.TRANSIENT, (state._edit(),), rows, (measured,), steering=steering)

    def cut_short(self, number: int) -> Measured:
        return replace(self.measurement.cut_short(number), suffix=self._suffix())

    def _iops(self) -> float | None:
        return self.levels.iops(self.level)

    def _edit(self) -> LoadEdit:
        return LoadEdit("all", ALL, self._iops())

    def _suffix(self) -> str:
        return f":total_iops={self._iops():.6g}"

    def _steering(self) -> str:
        return f"level {self.level}: {self._suffix().lstrip(':')}"

    def _came_of(self, closed: Measured) -> tuple[float, str | None]:
        """(IOPS achieved over the level's measurement, why it was not sustained or None)."""
        window = [one for one in self.seen if closed.first <= one.number <= closed.last]
        most = max((one.known for one in window), default=0)
        window = [one for one in window if one.known == most]  # late hosts are in as many as they can be
        if not window:
            return 0.0, "nothing was measured"
        shortfall = why_not_sustained(account(one.outstanding for one in window), self.tolerance)
        return achieved_iops(one.load for one in window), shortfall or None

    def _cells(
        self, measured: Measured, achieved: float, fell_short: bool
    ) -> dict[str, str | int | float | bool | None]:
        iops = self._iops()
        return {
            "level": self.level,
            "total_iops": iops,
            "achieved_iops": achieved,
            "first_subinterval": measured.first,
            "last_subinterval": measured.last,
            "sustained": not fell_short,
        }
