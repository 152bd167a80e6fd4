"""The seam between a step's sequence and its control.

    decision = state.opening()                    before `go`: the phase of subinterval 0, and its first edits
    state, decision = state.after(observation)    at barrier 1 of each subinterval, until decision.done

Rule: a state is a frozen value, made from the plan and handed back each time; a decision follows from the state and
the observation alone, so a run's decisions can be replayed from its CSV files. The decision on subinterval k
arrives while k + 1 runs: `next_phase` names k + 1, edits act within it, and when the step is done k + 1 is its tail.
"""

from typing import Protocol

from .decision import Decision, Measured
from .focus import Focus
from .observation import Observation


class ControlState(Protocol):
    """What decides after each subinterval whether a step goes on, and with which load."""

    @property
    def focuses(self) -> tuple[Focus, ...]:
        """The metrics it needs: an observation holds their samples, and the loads of their types and of `all`."""
        ...

    @property
    def may_end(self) -> tuple[int, ...]:
        """Earlier subintervals with which the measurement may still end; what was kept for others can be dropped."""
        ...

    def opening(self) -> Decision: ...

    def after(self, observation: Observation) -> "tuple[ControlState, Decision]": ...

    def cut_short(self, number: int) -> Measured:
        """The measurement so far, of a step that is interrupted after subinterval `number`, the last closed one."""
        ...


class MeasurementState(Protocol):
    """A state that decides only when a measurement is complete; other states run it under loads of their own."""

    @property
    def focuses(self) -> tuple[Focus, ...]: ...

    @property
    def may_end(self) -> tuple[int, ...]: ...

    @property
    def first(self) -> int:
        """The first subinterval that may be measured, as far as is known."""
        ...

    def opening(self) -> Decision: ...

    def after(self, observation: Observation) -> "tuple[MeasurementState, Decision]": ...

    def cut_short(self, number: int) -> Measured: ...

    def restarted(self, at: int) -> "MeasurementState":
        """The same, without anything before subinterval `at`; its timeout runs on."""
        ...

    def begun(self, since: int) -> "MeasurementState":
        """The same as new, from subinterval `since`: its warmup and its timeout count from there."""
        ...
