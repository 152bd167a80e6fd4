"""The records that a running step hands over: each subinterval and each measurement that closed, and how the step
ended.
"""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from ....protocol.messages import Result
from ...connectors.gathered import Gathered
from ...connectors.gathering import GatheredSubinterval
from ...control.decision import Decision, Measured
from ...control.observation import Phase
from ...control.observe import Samples
from ...output.record_types import Timing
from ...rollup.instances import InstanceKey
from ...rollup.merge import MergedSubinterval
from ...rollup.parameters_in_force import Settings
from ...rollup.validity import ScopedFinding
from ...rollup.window import Measurement, Window

ALL_ROW: Final = 0  # `all=all` is every run's first row


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
    of_connectors: Samples = field(default_factory=dict)  # of control's focuses that are connectors' metrics
    overdue_ns: int = 0  # how long after the next subinterval's end control decided


@dataclass(frozen=True, slots=True, eq=False)
class SummedMeasurement:
    """A measurement that closed, with the sum of its subintervals."""

    measured: Measured
    why: str  # why it ended there
    settings: Settings  # in force at its end
    start_ns: int  # controller's clock
    end_ns: int
    measurement: Measurement


@dataclass(frozen=True, slots=True)
class EmptyMeasurement:
    """A measurement without a subinterval: it has only its findings."""

    measured: Measured


ClosedMeasurement = SummedMeasurement | EmptyMeasurement


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """How a step ended."""

    measurements: tuple[ClosedMeasurement, ...]
    findings: tuple[ScopedFinding, ...]  # of the whole step
    hung: tuple[InstanceKey, ...] = ()  # (host, number): workload instances whose I/Os had not come back


@dataclass(frozen=True, slots=True)
class SoFar:
    """The measurement of a step so far, as if it had ended so."""

    unsummed: tuple[Measured, ...]  # measurements whose subintervals are to be read back
    outcome: Callable[[Sequence[Window]], StepOutcome]  # with their sums


class Recorder(Protocol):
    """Takes what a step yields. `step_recorder` has the real one. Only `stored` waits for the disk."""

    def record_subinterval(self, closed: ClosedSubinterval) -> None: ...

    def measured(self, measurement: SummedMeasurement) -> None:
        """A measurement has its sum, or another one with the late results in it."""
        ...

    async def stored(self, measured: Measured) -> Window:
        """The sum of a measurement's subintervals, which were handed over. It reads the disk."""
        ...

    @property
    def wants_so_far(self) -> bool:
        """Whether `so_far` is to be called again."""
        ...

    def so_far(self, take: Callable[[], SoFar]) -> Coroutine[Any, Any, None]:
        """Record what was measured so far: what is left if the controller is killed. `take` is called now, the rest is
        done while the result is awaited. Raises nothing."""
        ...

    @property
    def stored_late(self) -> int:
        """How often late results have been stored: what is read from now on has them."""
        ...

    def join(self, host: str, result: Result) -> None:
        """A late result of a subinterval that was recorded without it: it is stored with the others."""
        ...

    def late(self, host: str, result: Result) -> None:
        """A result that is of no subinterval: cut, or of a host that takes no part any more."""
        ...

    def gathered(self, found: GatheredSubinterval) -> None:
        """Record the readings of connectors for one subinterval."""
        ...

    def late_gather(self, found: Gathered) -> None:
        """A gather that came after its deadline."""
        ...

    def event(self, host: str, kind: str, text: str) -> None: ...
