"""A step's control as its plan defines it: a frozen class for each of fixed, measure, steady, pid, staircase, find
and slo.

Rule: amounts are in the metric's own unit, times in seconds or whole subintervals. Nothing here has a default: what a
plan leaves out, its documents fill in (plan/read/schema_control.py). A spec may hold what cannot work, since a plan is
read to its end: check.py reports it, and build.py makes states only from specs without faults.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ..stats.estimate import Correction
from ..text.metric_amounts import LIMIT_DIGITS, amount_in_words
from ..text.plan_parameters import OfStep
from ..verdicts import USUAL_PURPOSE, Finding, Reason, Scope, Severity
from .choices import OnDisturbance, OnLeave, Side
from .criteria import Criterion
from .focus import Focus

Level = float | OfStep  # total IOPS of a rollup instance
Keys = tuple[str | int, ...]  # from a step's `go` down to a value
Fault = tuple[Keys, str]  # where, and what is wrong

SWITCHING: Final = 2.0  # CPU time that is taken costs no more than so much of it: caches grow cold


@dataclass(frozen=True, slots=True)
class FixedSpec:
    """`measure: 60s`: a measurement of fixed length."""

    subintervals: int  # at least 1


@dataclass(frozen=True, slots=True)
class MeasureSpec:
    """`measure` by accuracy: until the metric of every instance is known to an accuracy."""

    focus: Focus
    accuracy: float  # half-width, as a fraction of the value
    confidence: float
    min_s: float
    timeout_s: float  # since the step, or the level, began
    correction: Correction


@dataclass(frozen=True, slots=True)
class SteadySpec:
    """`steady`: until every instance meets the criterion."""

    criterion: Criterion
    ramp: int  # subintervals that are not looked at; 0: the step's warmup
    hold: int  # subintervals to hold after attaining; 0: the attained window is the measurement
    on_leave: OnLeave
    confidence: float  # of the rule t
    timeout_s: float  # since the step, or the level, began

    @property
    def focus(self) -> Focus:
        return self.criterion.focus


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

    focus: Focus
    target: float
    calibration: Calibration | None  # None: control finds the range itself
    timeout_s: float  # for the load to settle


@dataclass(frozen=True, slots=True)
class StaircaseSpec:
    """`staircase`: several loads, a measurement of each."""

    start: Level
    end: Level | None  # None: until a load is not sustained
    step: Level | None  # None where `relative` or `steps` is given
    relative: float | None  # the step as a share of the level before
    steps: int | None


@dataclass(frozen=True, slots=True)
class FindSpec:
    """`find`: the highest load at which the metric of every instance is at most the target."""

    focus: Focus
    target: float
    resolution: float  # width of the bracket, as a share of its lower end
    confidence: float  # of each answer
    probes: int  # at most, the run at max included
    longest_probe: int  # subintervals after which a probe that is not clear is left


@dataclass(frozen=True, slots=True)
class SloSpec:
    """One of `slo`: a threshold that every instance must meet."""

    focus: Focus
    side: Side
    limit: float
    abort_early: bool
    command: tuple[str, ...]  # run when it is breached; empty: none
    every_s: float  # between two alerts

    def __str__(self) -> str:
        limit = amount_in_words(self.focus.unit, self.limit, LIMIT_DIGITS)
        return f"{self.focus.in_words} {self.side.in_words} {limit}"

    def excess(self, value: float) -> float:
        """By how much a value misses the threshold; it meets it at 0 and below."""
        return value - self.limit if self.side is Side.AT_MOST else self.limit - value

    def in_words(self, value: float, digits: int = 6) -> str:
        """A value of its metric, with the unit; on its side of the threshold also in the digits that are shown."""
        return amount_in_words(self.focus.unit, value, digits, self.limit)

    def findings(
        self, values: Mapping[str, float | None], slowed: Mapping[str, float], lacking: Mapping[str, str]
    ) -> tuple[Finding, ...]:
        """One for each instance of a measurement that missed, or has no value. A miss of one that is `slowed` or
        `lacking` shows nothing about the storage, where the hosts alone may have caused it."""
        return tuple(
            self._missed(value, instance, slowed.get(instance, 0.0), lacking.get(instance, ""))
            for instance, value in values.items()
            if value is None or self.excess(value) > 0
        )

    def _missed(self, value: float | None, instance: str, slowed: float, hosts: str) -> Finding:
        if value is None:
            return Finding(Reason.SLO_MISSED, f"{self}: blank of {instance}", Severity.INVALID)
        return self.missed(value, f"{self}: {self.in_words(value)} of {instance}", slowed, hosts)

    def missed(self, value: float, detail: str, slowed: float, hosts: str) -> Finding:
        """That a value misses it. `slowed`: the instance's share, `hosts`: those it is of where it lacks some; see
        Check."""
        if hosts:
            detail = f"{detail}, which is of {hosts}"
            if self.side is Side.AT_LEAST and self.focus.scope is Scope.RATE:
                return Finding(Reason.SLO_MISSED, detail, Severity.INVALID)
        if slowed and self._met_but_for_the_host(value, slowed):
            why = f"at max, where threads were kept from running for {slowed:.0%} of the time"
            return Finding(Reason.SLO_MISSED, f"{detail}, {why}", Severity.INVALID)
        return Finding(Reason.SLO_MISSED, detail, Severity.FAILED)

    def _met_but_for_the_host(self, value: float, slowed: float) -> bool:
        """Whether that may be so: without the CPU time that it needs, a load at max has lower rates and longer times.
        A rate is lower by that share, and a mean time longer; by twice as much at most, with what switching costs. Of
        percentiles nothing is known: one stall may make a tail."""
        left = 1 - SWITCHING * slowed
        if self.side is Side.AT_LEAST:
            return self.focus.scope is Scope.RATE and value >= self.limit * left
        if self.focus.scope not in (Scope.SERVICE, Scope.RESPONSE):
            return False
        return self.focus.fraction is not None or value * left <= self.limit


@dataclass(frozen=True, slots=True)
class ControlSpec:
    """The control of one step."""

    subinterval_s: float
    warmup: int  # subintervals
    measurement: FixedSpec | MeasureSpec | SteadySpec
    load: PidSpec | StaircaseSpec | FindSpec | None
    slo: tuple[SloSpec, ...]
    tolerance: float  # achieved_iops_tolerance
    disturbed: OnDisturbance  # only for a fixed measurement without `load`, and for find

    @property
    def fixed(self) -> bool:
        """The step's length is known beforehand, unless a threshold gives it up."""
        return isinstance(self.measurement, FixedSpec) and self.load is None

    def checked(self) -> Iterator[tuple[Keys, Focus]]:
        """What decides when a measurement is complete, or whether it fails: the keys, and the focus of each."""
        match self.measurement:
            case MeasureSpec() as measure:
                yield ("measure",), measure.focus
            case SteadySpec() as steady:
                yield ("steady",), steady.focus
        for i, one in enumerate(self.slo):
            yield ("slo", i), one.focus

    @property
    def tail(self) -> float:
        """The highest percentile that it looks at, as a fraction; 0 where it looks at none."""
        return max((focus.fraction or 0.0 for _, focus in (*self.checked(), *self.steered())), default=0.0)

    @property
    def purpose(self) -> frozenset[Scope]:
        """The figures that the step is for: those that it looks at; the result of a search is a rate as well."""
        looked_at = {focus.scope for _, focus in (*self.checked(), *self.steered())}
        return frozenset(looked_at | ({Scope.RATE} if isinstance(self.load, FindSpec) else set())) or USUAL_PURPOSE

    def steered(self) -> Iterator[tuple[Keys, Focus]]:
        """What sets the load: the keys, and the focus of each."""
        match self.load:
            case PidSpec() as pid:
                yield ("control", "pid"), pid.focus
            case FindSpec() as find:
                yield ("find",), find.focus
