"""The seam between a step's sequence and whoever keeps what it yields: files, and eyes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ...protocol.messages import Result, Stopped
from ..control.decision import Decision, Measured
from ..control.phase import Phase
from ..output.records import Timing
from ..rollup.merge import Interval
from ..rollup.settings import Settings
from ..rollup.validity import Outside


@dataclass(frozen=True, slots=True)
class Closed:
    """One subinterval, closed: everything that is kept of it."""

    number: int
    phase: Phase
    start_ns: int  # controller's clock
    interval: Interval
    decision: Decision
    timing: Timing
    settings: Settings  # in force at its end
    may_end: tuple[int, ...] = ()  # earlier subintervals with which a measurement to come may end
    overdue_ns: int = 0  # how long after the next subinterval's end control decided


@dataclass(frozen=True, slots=True)
class Ended:
    """How a step ended."""

    measured: tuple[Measured, ...]
    findings: tuple[Outside, ...]  # of the whole step
    stopped: Mapping[str, Stopped]
    interrupted: bool
    hung: tuple[tuple[str, int], ...] = ()  # (host, number): workload instances whose I/Os had not come back


class Keeper(Protocol):
    """Nothing that is told here keeps the step waiting."""

    def closed(self, closed: Closed) -> None: ...

    def cut_short(self, measured: Measured) -> None:
        """The step has ended before its control was done: what was measured until then."""
        ...

    def late(self, host: str, result: Result) -> None: ...

    def event(self, host: str, kind: str, text: str) -> None: ...
