"""The states of a running step, as a table, and where the step stands.

    running ---- control is done -----> stopping ---- halt ----> halted in tail
    running ---- halt ----------------> halted
    running ---- no host delivers ----> abandoned --- halt ----> halted

A step ends when every host has sent `stopped` or is lost. That is no state of its own: nothing is decided then.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

PATIENCE: Final = 0.75  # of a subinterval: for answers after a pause of the controller
NEVER: Final = 1 << 62  # a subinterval that every result comes too late for


class StepState(StrEnum):
    RUNNING = "running"  # control decides on each subinterval; `continue` follows
    STOPPING = "stopping"  # control is done and `stop` is sent: the tail and the cooldown run
    HALTED = "halted"  # `halt` is sent before control was done: the measurement is cut short
    HALTED_IN_TAIL = "halted in tail"  # `halt` is sent after control was done: the measurement is complete
    ABANDONED = "abandoned"  # every host was late or lost before control was done


class Change(StrEnum):
    """The events that move a step from one state to another."""

    DONE = "done"  # control is done
    HALT = "halt"  # the user interrupts the run, or `on_io_error: stop` does
    NO_HOST = "no host"  # no host delivers results any more


NEXT: Final[Mapping[StepState, Mapping[Change, StepState]]] = MappingProxyType(
    {
        StepState.RUNNING: {
            Change.DONE: StepState.STOPPING,
            Change.HALT: StepState.HALTED,
            Change.NO_HOST: StepState.ABANDONED,
        },
        StepState.STOPPING: {Change.HALT: StepState.HALTED_IN_TAIL},
        StepState.ABANDONED: {Change.HALT: StepState.HALTED},
        StepState.HALTED: {},
        StepState.HALTED_IN_TAIL: {},
    }
)


@dataclass(slots=True)
class StepProgress:
    """Where a step stands: its state, and its subintervals."""

    state: StepState = StepState.RUNNING
    running: int = 0  # the subinterval that runs
    decided: int = -1  # the last one that control has decided on
    last: int = NEVER  # the step's last one, once `stop` names it
    unmeasured: int = 0  # the first one after those that are measured
    halted_ns: int = 0  # controller's clock; where `is_halted`
    longest_stall_ns: int = 0  # the longest controller stall in one subinterval

    def decide(self, subinterval: int) -> None:
        """Control has decided on it."""
        self.decided = subinterval

    def close(self) -> None:
        """The running subinterval is closed: the next one runs."""
        self.running += 1

    def measure_until(self, subinterval: int) -> None:
        """A measurement ends with it."""
        self.unmeasured = subinterval + 1

    def end_with(self, subinterval: int) -> None:
        """`stop` names it as the last one."""
        self.last = subinterval

    def halt(self, now_ns: int) -> None:
        """All hosts are halted. Raises KeyError where they were before."""
        self.halted_ns = now_ns
        self.move(Change.HALT)

    def stalled(self, stall_ns: int) -> None:
        """So long was the controller's longest stall in a subinterval."""
        self.longest_stall_ns = max(self.longest_stall_ns, stall_ns)

    def move(self, change: Change) -> None:
        """To the next state. Raises KeyError for a change that the state does not know."""
        self.state = NEXT[self.state][change]

    @property
    def is_deciding(self) -> bool:
        """Whether control decides on the next subinterval that closes."""
        return self.state is StepState.RUNNING

    @property
    def is_complete(self) -> bool:
        """Whether control is done, and so the measurement is complete."""
        return self.state in (StepState.STOPPING, StepState.HALTED_IN_TAIL)

    @property
    def is_halted(self) -> bool:
        """Whether `halt` was sent to all hosts."""
        return self.state in (StepState.HALTED, StepState.HALTED_IN_TAIL)
