"""The seam between a step's sequence and its control.

    decision = state.opening()                    before `go`: the phase of subinterval 0, and its first edits
    state, decision = state.after(observation)    at barrier 1 of each subinterval, until decision.done

Rule: a state is a frozen value, made from the plan and handed back each time; a decision follows from the state and
the observation alone, so a run's decisions can be replayed from its CSV files. The decision on subinterval k
arrives while k + 1 runs: `next_phase` names k + 1, edits act within it, and when the step is done k + 1 is its tail.
"""

from collections.abc import Iterable, Iterator
from typing import ClassVar, Protocol

from ..verdicts import Scope
from .choices import OnDisturbance
from .decision import Decision, Measured
from .focus import Focus
from .load_level import RunFacts
from .observation import Observation

Keys = tuple[str | int, ...]  # from a step's `go` down to a value


class ControlState(Protocol):
    """Decides after each subinterval whether a step goes on, and with which load."""

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


class StepConditions(Protocol):
    """The settings of a step besides its load and its measurement."""

    @property
    def subinterval_s(self) -> float: ...

    @property
    def warmup(self) -> int:
        """In subintervals."""
        ...

    @property
    def tolerance(self) -> float:
        """achieved_iops_tolerance."""
        ...

    @property
    def disturbed(self) -> OnDisturbance: ...

    @property
    def fixed(self) -> bool:
        """The step's length is known beforehand, unless a threshold gives it up."""
        ...

    @property
    def settles(self) -> bool:
        """A measurement begins when control has settled the load, and not after the warmup."""
        ...


class MeasurementSpec(Protocol):
    """The part of a plan that says when a measurement is complete."""

    keys: ClassVar[Keys]  # where a plan has it, from a step's `go`

    @property
    def focus(self) -> Focus | None: ...

    @property
    def in_words(self) -> str:
        """For `ivypy check`; "" where the step's times say it."""
        ...

    def faults(self, step: StepConditions, usable: bool) -> Iterator[tuple[str, str]]:
        """Faults in its numbers, as far as the plan alone shows them: the key, and a sentence.

        `usable`: there is such a metric; else its amounts mean nothing.
        """
        ...

    def longest_s(self, step: StepConditions) -> float:
        """How long it may take at most, after the warmup."""
        ...

    def state(self, step: StepConditions) -> MeasurementState:
        """The one that a step begins with."""
        ...


class LoadSpec(Protocol):
    """The part of a plan that says how control sets a step's load."""

    keys: ClassVar[Keys]
    settles: ClassVar[bool]  # as of StepConditions
    purpose: ClassVar[frozenset[Scope]]  # figures that the step is for, beside those of the focus

    @property
    def focus(self) -> Focus | None: ...

    @property
    def in_words(self) -> str: ...

    @property
    def goes_by_max(self) -> bool:
        """It takes the rate at max for the most that is possible."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what a plan's reader may not expect."""
        ...

    def faults(self, step: StepConditions, usable: bool) -> Iterator[tuple[str, str]]: ...

    def longest_s(self, step: StepConditions, measured_s: float) -> float:
        """How long measuring may take in all, where one measurement takes `measured_s` at most."""
        ...

    def state(self, step: StepConditions, measurement: MeasurementState, known: RunFacts) -> ControlState:
        """The one that a step begins with. Raises what `known.reached` raises, and ValueError for loads that do not
        fit each other now that they are known."""
        ...


def warmup_of(step: StepConditions) -> float:
    """How much of a measurement's timeout the warmup takes, in seconds; where control settles the load, the timeout
    begins after it."""
    return 0.0 if step.settles else step.warmup * step.subinterval_s


def refuse(sentences: Iterable[str]) -> None:
    """Raise ValueError with these sentences, if there are any."""
    if text := "; ".join(sentences):
        raise ValueError(text)
