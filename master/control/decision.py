"""The answer of control at barrier 1: what comes next, which loads change, what was measured, and why."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from ..verdicts import Finding, Reason
from .focus import Focus
from .observation import Phase
from .threshold import SloSpec, of_instance

Cell = str | int | float | bool | None  # None is an empty cell


@dataclass(frozen=True, slots=True)
class LoadEdit:
    """Set the total IOPS of one rollup instance; it is divided over its workload instances as the plan says."""

    rollup: str
    instance: str
    total_iops: float | None  # None: max, as many as the tags allow


@dataclass(frozen=True, slots=True)
class ControlRow:
    """One row of `file` in the step's folder; each decision is explained by its rows."""

    file: str  # "measure.csv"
    cells: Mapping[str, Cell]


@dataclass(frozen=True, slots=True)
class Alert:
    """A threshold is breached in this subinterval; the plan's `on_break` command is to be run."""

    threshold: SloSpec
    instance: str
    value: float  # in the metric's unit
    subinterval: int

    @property
    def seen(self) -> str:
        """The value for people: `1.2 ms of host=a in subinterval 3`."""
        return f"{self.threshold.in_words(self.value)}{of_instance(self.instance)} in subinterval {self.subinterval}"


class Check(Protocol):
    """A limit that the value of a measurement has to meet. The run applies it when the measurement has been summed."""

    @property
    def focus(self) -> Focus: ...

    def findings(
        self, values: Mapping[str, float | None], slowed: Mapping[str, float], lacking: Mapping[str, str]
    ) -> tuple[Finding, ...]:
        """Findings about the values of the focus, which are by rollup instance; None is blank.

        `slowed`: the instances with a load at max on a host whose threads were kept from running, with the share of
        the time. `lacking`: those without the results of a host, with what they are of: "2 of 3 hosts".
        """
        ...


@dataclass(frozen=True, slots=True)
class Measured:
    """A measurement that closed: a summary row. A staircase has one for each level, other steps one."""

    first: int  # subintervals, both included; last < first: there is none, and the findings say why
    last: int
    suffix: str = ""  # of the step's name: ":total_iops=500"
    findings: tuple[Finding, ...] = ()
    checks: tuple[Check, ...] = ()  # still to be applied
    set_aside: tuple[int, ...] = ()  # subintervals between `first` and `last` that it does not include
    mean_rate: float | None = None  # total IOPS asked for, where that changed within it
    rests_on: int | None = None  # the first subinterval that it was chosen by; None: its own first

    @property
    def subintervals(self) -> int:
        """How many it includes."""
        return self.last - self.first + 1 - len(self.set_aside)

    def checked(
        self,
        values: Mapping[Focus, Mapping[str, float | None]],
        slowed: Mapping[Focus, Mapping[str, float]],
        lacking: Mapping[Focus, Mapping[str, str]],
    ) -> "Measured":
        """With the findings of its checks; `values`: of the whole measurement, by focus and rollup instance. The rest:
        see Check."""
        findings = tuple(
            finding
            for check in self.checks
            for finding in check.findings(
                values[check.focus], slowed.get(check.focus, {}), lacking.get(check.focus, {})
            )
        )
        return replace(self, findings=(*self.findings, *findings), checks=())


def nothing_measured(number: int, why: Finding, suffix: str = "") -> Measured:
    """The step, or the level, ended with subinterval `number` and has no measurement."""
    return Measured(number + 1, number, suffix, (why,))


def interrupted(number: int) -> Measured:
    """The step was interrupted after subinterval `number`, before anything was measured."""
    return nothing_measured(number, Finding(Reason.INTERRUPTED))


def shortened(measured: Measured, detail: str = "") -> Measured:
    """A measurement of the subintervals until the step was interrupted."""
    return replace(measured, findings=(*measured.findings, Finding(Reason.SHORTENED, detail)))


@dataclass(frozen=True, slots=True)
class Decision:
    """`next_phase` is of the subinterval that is already running; TAIL ends the step after it."""

    next_phase: Phase
    edits: tuple[LoadEdit, ...] = ()  # sent now, in force within the running subinterval
    rows: tuple[ControlRow, ...] = ()
    measured: tuple[Measured, ...] = ()  # closed with the subinterval that was handed in
    alerts: tuple[Alert, ...] = ()
    steady: Mapping[str, object] | None = None  # the present value of a steady-state criterion: steady.json
    remaining: int | None = None  # subintervals until the tail, where the time of the measurement ends the step
    counted: str = ""  # how much of a fixed time is measured
    progress: str = ""  # of a measurement that goes by a metric: how far, the worst instance, the time that remains
    paused: bool = False  # control did not decide: a user paused the load
    set_aside: bool = False  # the subinterval that was handed in does not count: the generator was disturbed
    steering: str = ""  # of what moves the load: its present value and its target
    thresholds: tuple[str, ...] = ()  # each with its present value

    @property
    def news(self) -> tuple[str, ...]:
        """Messages of what is not known beforehand: where the load and the measurement stand."""
        return tuple(filter(None, (self.steering, self.progress)))

    @property
    def messages(self) -> tuple[str, ...]:
        """A sentence for people from each part that watches a value."""
        return tuple(filter(None, (self.steering, self.counted, self.progress, *self.thresholds)))

    @property
    def done(self) -> bool:
        return self.next_phase is Phase.TAIL
