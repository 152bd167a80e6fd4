"""Builds a step's control when the step begins, and the parameters of its first subinterval.

Rule: faults that the plan alone shows were reported when it was read. A fault that only earlier measurements show skips
the step.
"""

from collections.abc import Collection, Mapping

from ....protocol.parameters import MAX, Parameters
from ...control.control_state import ControlState
from ...control.load_level import RunFacts
from ...plan.model import Step
from ...rollup.instances import InstanceKey, Rollups
from ..setup.baseline_step import Measured
from ..setup.resolve_settings import NoResponse, NotMeasured, steered


def control_for(
    step: Step,
    rollups: Rollups,
    parameters: Mapping[InstanceKey, Parameters],
    measured: Measured,
) -> ControlState:
    """The state that `step` begins with. `parameters`: without control's own loads. Raises NotMeasured."""
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
