"""A rate that changes while it is measured: a ramp, or a day's load in an hour.

Rule: the profile's time is that of the measurement: its warmup runs at the first rate, and where the measurement
begins anew, so does the profile. The rate of a subinterval is the profile's mean over it, so that the I/Os of all of
them together are those of the profile. It acts some milliseconds after the subinterval has begun, as every decision.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, Final

import numpy as np

from ..rollup.instances import ALL
from ..text.units import format_duration
from ..verdicts import Scope
from .control_state import Keys, MeasurementState, StepConditions
from .decision import Cell, ControlRow, Decision, LoadEdit, Measured
from .focus import Focus
from .load_level import RunFacts
from .observation import NO_LOAD, Observation

Point = tuple[float, float]  # seconds since the measurement began, total IOPS then
_MOST_SHOWN: Final = 4  # points, in words


@dataclass(frozen=True, slots=True)
class ProfileSpec:
    """`profile`: total IOPS over the time of a measurement, on straight lines between points."""

    keys: ClassVar[Keys] = ("profile",)
    settles: ClassVar[bool] = False
    purpose: ClassVar[frozenset[Scope]] = frozenset()

    points: tuple[Point, ...]  # none where they could not be read

    @property
    def focus(self) -> Focus | None:
        return None

    @property
    def in_words(self) -> str:
        texts = [f"{iops:g} at {format_duration(at_s)}" for at_s, iops in self.points]
        if len(texts) > _MOST_SHOWN:
            texts[2:-1] = [f"... {len(texts) - 3} more points ..."]
        return f"profile: total_iops from {' to '.join(texts)}"

    @property
    def goes_by_max(self) -> bool:
        return False

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    def faults(self, step: StepConditions, usable: bool) -> Iterator[tuple[str, str]]:
        times = [at_s for at_s, _ in self.points]
        if self.points and times[0] != 0:
            yield "points", f"the first point is at {format_duration(times[0])}; a profile begins at 0s"
        for before, after in pairwise(times):
            if after <= before:
                yield "points", f"{format_duration(after)} follows {format_duration(before)}; points are in order"
        if self.points and not any(iops for _, iops in self.points):
            yield "points", "all rates are 0, so nothing would be driven"

    def longest_s(self, step: StepConditions, measured_s: float) -> float:
        return measured_s

    def state(self, step: StepConditions, measurement: MeasurementState, known: RunFacts) -> "Profile":
        return Profile(self.points, measurement, step.subinterval_s, self.points[0][1])


def mean_rate(points: Sequence[Point], begin_s: float, end_s: float) -> float:
    """The mean of a profile from `begin_s` to a later `end_s`; before its first point and after its last it has their
    rates."""
    times = np.array([at_s for at_s, _ in points])
    rates = np.array([iops for _, iops in points])
    within = times[(times > begin_s) & (times < end_s)]
    at_s = np.concatenate([[begin_s], within, [end_s]])
    return float(np.trapezoid(np.interp(at_s, times, rates), at_s) / (end_s - begin_s))


@dataclass(frozen=True, slots=True)
class Profile:
    """State of a step whose rate follows a profile."""

    points: tuple[Point, ...]
    measurement: MeasurementState
    subinterval_s: float
    asked: float  # the rate that was sent last

    @property
    def focuses(self) -> tuple[Focus, ...]:
        return self.measurement.focuses

    @property
    def may_end(self) -> tuple[int, ...]:
        return self.measurement.may_end

    def opening(self) -> Decision:
        return replace(self.measurement.opening(), edits=(self._edit(self._rate(0)),))

    def after(self, observation: Observation) -> "tuple[Profile, Decision]":
        measurement, decision = self.measurement.after(observation)
        if not observation.same_hosts:  # those that are left share the whole rate from where it acts
            measurement = measurement.restarted(observation.acts_in)
        state = replace(self, measurement=measurement)
        decision = replace(decision, measured=tuple(map(state._with_mean, decision.measured)))
        rows = (*decision.rows, ControlRow("profile.csv", self._cells(observation)))
        if decision.done:  # the tail runs at the last rate
            return state, replace(decision, rows=rows)
        rate = state._rate(observation.acts_in)
        is_other = rate != self.asked or not observation.same_hosts or observation.edited
        edits = (self._edit(rate),) if is_other else ()
        return replace(state, asked=rate), replace(
            decision, edits=edits, rows=rows, steering=f"profile: {rate:,.0f} IOPS come next"
        )

    def cut_short(self, number: int) -> Measured:
        return self._with_mean(self.measurement.cut_short(number))

    def _with_mean(self, measured: Measured) -> Measured:
        """A measurement with its mean rate; not one of before the profile began anew, whose rates are gone."""
        if measured.last < measured.first or measured.first < self.measurement.first:
            return measured
        begin_s, end_s = (self._begin_s(number) for number in (measured.first, measured.last + 1))
        return replace(measured, mean_rate=mean_rate(self.points, begin_s, end_s))

    def _rate(self, number: int) -> float:
        return mean_rate(self.points, self._begin_s(number), self._begin_s(number + 1))

    def _begin_s(self, number: int) -> float:
        """When a subinterval begins, in the profile's time."""
        return (number - self.measurement.first) * self.subinterval_s

    def _edit(self, rate: float) -> LoadEdit:
        return LoadEdit("all", ALL, rate)

    def _cells(self, observation: Observation) -> dict[str, Cell]:
        load = observation.loads.get("all", {}).get(ALL, NO_LOAD)
        return {
            "subinterval": observation.number,
            "total_iops": self._rate(observation.number),
            "due_iops": load.due / load.length_s if load.length_s else None,
            "achieved_iops": load.iops,
            "backlog": load.backlog,
        }
