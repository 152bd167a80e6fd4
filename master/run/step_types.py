"""What a running step hands over: each subinterval when it is closed, and how the step ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ...protocol.messages import Result, Stopped
from ..control.decision import Decision, Measured
from ..control.observation import Phase
from ..output.record_types import Timing
from ..rollup.merge import MergedSubinterval
from ..rollup.parameters_in_force import Settings
from ..rollup.validity import ScopedFinding


@dataclass(frozen=True, slots=True)
class ClosedSubinterval:
    """One subinterval, merged and decided on: everything that is recorded of it."""

    number: int
    phase: Phase
    start_ns: int  # controller's clock
    interval: MergedSubinterval
    decision: Decision
    timing: Timing
    settings: Settings  # in force at its end
    may_end: tuple[int, ...] = ()  # earlier subintervals with which a measurement to come may end
    overdue_ns: int = 0  # how long after the next subinterval's end control decided


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """How a step ended."""

    measured: tuple[Measured, ...]
    findings: tuple[ScopedFinding, ...]  # of the whole step
    stopped: Mapping[str, Stopped]
    interrupted: bool
    hung: tuple[tuple[str, int], ...] = ()  # (host, number): workload instances whose I/Os had not come back


class Recorder(Protocol):
    """Takes what a step yields, and never keeps the step waiting. `step_recorder` has the real one."""

    def closed(self, closed: ClosedSubinterval) -> None: ...

    def cut_short(self, measured: Measured) -> None:
        """The step ended before its control was done: what was measured until then."""
        ...

    def late(self, host: str, result: Result) -> None:
        """A result that came after barrier 1: kept in a file of its own, never merged."""
        ...

    def event(self, host: str, kind: str, text: str) -> None: ...
