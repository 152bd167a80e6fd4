"""A measurement under feedback control, as one state.

Rule: the controller says from which subinterval on a measurement may run; the measurement sees nothing older. So no
window reaches back over a change of gain, and a measurement need not know that there is a controller.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from ..verdicts import Finding, Reason
from .control_state import ControlState, MeasurementState
from .decision import ControlRow, Decision, LoadEdit, Measured, interrupted, nothing_measured
from .focus import Focus
from .observation import Observation, Phase
from .slo import Watched


@dataclass(frozen=True, slots=True)
class Orders:
    """The controller's output after a subinterval."""

    edits: tuple[LoadEdit, ...] = ()
    rows: tuple[ControlRow, ...] = ()
    measurable: int | None = None  # the first subinterval that may be measured; None: not yet
    progress: str = ""


class Steer(Protocol):
    """A controller: it moves the load from subinterval to subinterval."""

    @property
    def focus(self) -> Focus:
        """The metric that it holds at a target."""
        ...

    @property
    def focuses(self) -> tuple[Focus, ...]: ...

    @property
    def targets(self) -> Mapping[str, float]:
        """Of each instance, in the metric's unit."""
        ...

    def refuses(self, targets: Mapping[str, float]) -> list[str]:
        """Why its instances cannot have these targets, a sentence each."""
        ...

    def retargeted(self, targets: Mapping[str, float], number: int) -> "Steer":
        """With other targets for some instances, since subinterval `number`, which is running."""
        ...

    def opening(self) -> tuple[LoadEdit, ...]: ...

    def after(self, observation: Observation) -> "tuple[Steer, Orders]": ...

    def with_checks(self, measured: Measured) -> Measured:
        """A measurement with the check that it was at the target, and with what is known to be wrong."""
        ...


@dataclass(frozen=True, slots=True)
class Steered:
    """State of a step under feedback control."""

    steer: Steer
    measurement: MeasurementState
    timeout_s: float  # for the load to settle, since the step began or the target changed
    began_s: float | None = None
    measurable: int | None = None

    @property
    def focuses(self) -> tuple[Focus, ...]:
        return (*self.steer.focuses, *self.measurement.focuses)

    @property
    def may_end(self) -> tuple[int, ...]:
        return self.measurement.may_end

    def opening(self) -> Decision:
        return Decision(Phase.WARMUP, self.steer.opening())

    def retargeted(self, targets: Mapping[str, float], number: int) -> "Steered":
        """With other targets since subinterval `number`, which is running: no measurement reaches back over it."""
        return replace(self, steer=self.steer.retargeted(targets, number), began_s=None, measurable=None)

    def after(self, observation: Observation) -> "tuple[Steered, Decision]":
        began_s = observation.start_s if self.began_s is None else self.began_s
        steer, orders = self.steer.after(observation)
        measurement = self.measurement
        if orders.measurable is not None and orders.measurable != self.measurable:
            measurement = measurement.restarted(orders.measurable)
        state = Steered(steer, measurement, self.timeout_s, began_s, orders.measurable)
        if orders.measurable is None or observation.number < orders.measurable:
            return state, state._settling(observation, orders)
        measurement, decision = measurement.after(observation)
        state = replace(state, measurement=measurement)
        measured = tuple(map(steer.with_checks, decision.measured))
        edits = () if decision.done else orders.edits  # the tail runs at the load that was measured
        return state, replace(
            decision, edits=edits, rows=(*orders.rows, *decision.rows), measured=measured, steering=orders.progress
        )

    def cut_short(self, number: int) -> Measured:
        if self.measurable is None or number < self.measurable:
            return interrupted(number)
        so_far = self.measurement.cut_short(number)
        return self.steer.with_checks(so_far) if so_far.first <= so_far.last else so_far

    def _settling(self, observation: Observation, orders: Orders) -> Decision:
        if observation.end_s - (self.began_s or 0.0) < self.timeout_s:
            measurable = orders.measurable is not None and observation.number + 1 >= max(
                orders.measurable, self.measurement.first
            )
            return Decision(
                Phase.RUN if measurable else Phase.WARMUP, orders.edits, orders.rows, steering=orders.progress
            )
        why = Finding(Reason.TARGET_NOT_HELD, f"not settled within {self.timeout_s:g} s: {orders.progress}")
        return Decision(
            Phase.TAIL, rows=orders.rows, measured=(nothing_measured(observation.number, why),), progress=why.detail
        )


def steered_state(state: ControlState) -> Steered | None:
    """The state that holds a metric at a target in this state; None where nothing does."""
    if isinstance(state, Watched):
        return steered_state(state.state)
    return state if isinstance(state, Steered) else None


def retargeted(state: ControlState, targets: Mapping[str, float], number: int) -> ControlState:
    """`state`, which holds targets, with other ones for these instances since subinterval `number`."""
    if isinstance(state, Watched):
        return replace(state, state=retargeted(state.state, targets, number))
    assert isinstance(state, Steered)
    return state.retargeted(targets, number)
