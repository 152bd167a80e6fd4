"""A running step as requests from outside change it: its load, and the targets of its control; and the control that a
step begins with.

Rule: requests and the step's cycle know this object and not each other. A request changes it at once; the cycle reads
it at the next boundary.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from ....protocol.parameters import MAX, Parameters
from ...control.control_spec import fixed_time
from ...control.control_state import ControlState
from ...control.decision import Decision
from ...control.load_level import RunFacts
from ...control.observation import Observation
from ...control.steer import retargeted
from ...plan.model import Step
from ...rollup.instances import InstanceKey, Rollups
from ...rollup.validity import ScopedFinding
from ...verdicts import Finding, Reason
from ..edits.edit_types import EditRefused
from ..edits.live_changes import LiveChanges
from ..edits.target_edit import new_target
from ..setup.baseline_step import Measured
from ..setup.host_settings import HostSettings
from ..setup.resolve_settings import NoResponse, NotMeasured, steered
from .step_states import StepProgress


class LiveStep:
    """Holds one step's changes from outside, its control, and where it stands."""

    def __init__(self, host_settings: HostSettings, control: ControlState, length_ns: int) -> None:
        self.changes = LiveChanges(host_settings, length_ns)
        self.control = control  # as the last decision or the last new target left it
        self.progress = StepProgress()
        self.findings: list[ScopedFinding] = []  # that do not come from the step's hosts or its control
        self.skipped_by = ""  # who wants the step to end with what it has

    def decide(self, seen: Observation) -> Decision:
        """Control's decision on a closed subinterval."""
        self.control, decision = self.control.after(seen)
        return decision

    def skip(self, who: str) -> None:
        """End the step with its next decision, with what it has measured until then. Raises EditRefused."""
        if self.skipped_by or not self.progress.is_deciding:
            raise EditRefused(["the step is ending already"])
        self.skipped_by = who

    def remaining_if_edited(self, number: int) -> int | None:
        """Subintervals that follow `number` until the step's last one, if an edit acts in `number`.

        None where the edit does not move the end, or where no fixed time ends the step.
        """
        measurement = fixed_time(self.control)
        remaining = None if measurement is None else measurement.remaining_if_edited(number)
        return None if remaining is None else remaining + 1  # the tail

    def note(self, findings: Iterable[ScopedFinding]) -> None:
        """Add findings that are known from elsewhere: from steps before it, and from edits."""
        self.findings += findings

    def retarget(self, words: Sequence[str], rollups: Rollups, who: str) -> str:
        """Set new targets for instances that control holds at one. Raises EditRefused.

        Returns what is different, for people; "" if nothing is.
        """
        self.changes.check_changeable()
        new = new_target(words, rollups, self.control)
        if new.targets:
            running = self.changes.running()  # with a late decision, earlier ones are still to be decided on
            self.control = retargeted(self.control, new.targets, running)
            detail = f"{' '.join(words)}; by {who}, in subinterval {running}"
            self.note([ScopedFinding(Finding(Reason.EDITED, detail), since=running)])
        return new.what


def control_for(
    step: Step,
    rollups: Rollups,
    parameters: Mapping[InstanceKey, Parameters],
    measured: Measured,
) -> ControlState:
    """The state that `step` begins with. `parameters`: without control's own loads.

    Faults that the plan alone shows were reported when it was read. Raises NotMeasured for one that only earlier
    measurements show, which skips the step.
    """
    known = RunFacts(
        instances={rollup.name: tuple(one.name for one in rollup.instances) for rollup in rollups.types},
        reached=lambda name, rollup, instance: measured(name, rollups.type(rollup).instance(instance)).iops,
    )
    try:
        state = step.control.state(known)
    except ValueError as error:
        raise NotMeasured(f"with the results of earlier steps, {error}") from None
    _check_paced(step, rollups, parameters)
    return state


def _check_paced(step: Step, rollups: Rollups, parameters: Mapping[InstanceKey, Parameters]) -> None:
    """A response time that would never be: the load is max, and nothing will pace it. Raises NoResponse."""
    if step.control.load is not None:
        return
    for focus in (focus for _, focus in step.control.checked() if focus.needs_pacing):
        for instance in rollups.type(focus.rollup).instances:
            if any(parameters[member.host, member.number].iops == MAX for member in instance.members):
                raise NoResponse(
                    f"{focus.metric} of {instance} would always be blank: with iops: max there is no response time; "
                    f"use {focus.of_service}, or set iops"
                )


def opening_parameters(
    control: ControlState, rollups: Rollups, parameters: Mapping[InstanceKey, Parameters], hosts: Collection[str]
) -> Mapping[InstanceKey, Parameters]:
    """The parameters with which the first subinterval runs, on these hosts."""
    return {**parameters, **steered(control.opening().edits, rollups, parameters, hosts)}
