"""The seam between a step's sequence and whoever keeps what it yields: files, and eyes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ...protocol.messages import Result, Stopped
from ...protocol.parameters import Parameters
from ..control.decision import Decision, Measured
from ..control.observation import Interval as Seen
from ..control.phase import Phase
from ..output.records import Timing
from ..rollup.merge import Interval
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
    parameters: Mapping[tuple[str, int], Parameters]  # in force at its end
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

    def see(
        self, closed: Interval, number: int, start_s: float, phase: Phase, same_hosts: bool, edited: bool,
        parameters: Mapping[tuple[str, int], Parameters],
    ) -> Seen:  # fmt: skip
        """What control may see of a subinterval."""
        ...
