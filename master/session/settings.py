"""The absolute parameters of every workload instance in a step: the plan's edits, shared out and resolved.

Rule: pure. Percentages of another step and totals over a rollup become a number of IOPS per instance here; the hosts
are told absolute numbers only. `total_iops` is shared equally over the distinct LUNs of what the edit selects,
and within a LUN equally over its workloads. `50% of step max` takes, for each rollup instance by itself, the
IOPS which that same instance measured.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ...protocol.parameters import MAX, Iops, Parameters
from ..control.decision import Edit as Steer
from ..plan.model import TOTAL_IOPS, Edit, Plan, Step
from ..plan.parameters import NO_STEP_YET, OfStep, PlanParameters, Value
from ..plan.places import Place
from ..plan.words import suggestion
from ..rollup.instances import RollupInstance, Rollups
from ..verdicts import Reason
from .placement import Placement

Key = tuple[str, int]  # host, number


class NotMeasured(Exception):
    """A setting refers to the IOPS of a step that has no valid measurement; its text says which and why."""

    reason = Reason.STEP_LIMIT


class NoResponse(NotMeasured):
    """A step that could only ever be blank; its text says where."""

    reason = Reason.NO_RESPONSE


Measured = Callable[[str, RollupInstance], float]  # step name, rollup instance -> IOPS; raises NotMeasured


@dataclass(slots=True)
class _Setting:
    parameters: PlanParameters
    iops: Iops


def resolve(
    plan: Plan, step: Step, placement: Placement, rollups: Rollups, measured: Measured
) -> Mapping[Key, Parameters]:
    """The parameters of every workload instance in `step`.

    Raises PlanFaults for an edit that names an instance which does not exist, or a workload that begins with a share
    of a step; and NotMeasured.
    """
    workloads = {workload.name: workload for workload in plan.workloads}
    settings: dict[Key, _Setting] = {}
    for instance in placement.instances:
        parameters = workloads[instance.workload].parameters
        iops = parameters.iops
        if isinstance(iops, OfStep):
            raise plan.fault(workloads[instance.workload].place, f"iops: {NO_STEP_YET}")
        settings[instance.host, instance.number] = _Setting(parameters, iops)
    for edit in step.edits:
        _apply(edit, settings, _selected(plan, edit, rollups), measured)
    return {
        key: setting.parameters.absolute(placement.lun_of[key].lun.size, setting.iops)
        for key, setting in settings.items()
    }


def _selected(plan: Plan, edit: Edit, rollups: Rollups) -> Sequence[RollupInstance]:
    rollup = rollups.type(edit.rollup)
    if not edit.instances:
        return rollup.instances
    names = [instance.name for instance in rollup.instances]
    faults: list[tuple[Place | None, str]] = []
    for name in edit.instances:
        if name not in names:
            faults.append((edit.place, f"rollup {edit.rollup} has no instance {name!r}{suggestion(name, names)}"))
    if faults:
        raise plan.faults(faults)
    return [instance for instance in rollup.instances if instance.name in edit.instances]


def _apply(edit: Edit, settings: dict[Key, _Setting], selected: Sequence[RollupInstance], measured: Measured) -> None:
    plain = {name: value for name, value in edit.changes.items() if name not in (TOTAL_IOPS, "iops")}
    for rollup in selected:
        for member in rollup.members:
            setting = settings[member.host, member.number]
            setting.parameters = setting.parameters.edited(plain)
    if "iops" in edit.changes:
        for rollup in selected:
            iops = _iops(edit.changes["iops"], rollup, len(rollup.members), measured)
            for member in rollup.members:
                settings[member.host, member.number].iops = iops
    if TOTAL_IOPS in edit.changes:
        total = edit.changes[TOTAL_IOPS]
        if isinstance(total, OfStep):
            for rollup in selected:
                _share(total.fraction * measured(total.step, rollup), [rollup], settings)
        else:
            _share(total, selected, settings)


def _iops(value: Value, rollup: RollupInstance, members: int, measured: Measured) -> Iops:
    if isinstance(value, OfStep):
        return value.fraction * measured(value.step, rollup) / members
    return MAX if value == MAX else float(value)  # type: ignore[arg-type]


def _share(total: Value, selected: Sequence[RollupInstance], settings: dict[Key, _Setting]) -> None:
    """Share `total` IOPS over the LUNs of `selected`, then over each LUN's workloads."""
    for key, share in shares(selected).items():
        settings[key].iops = MAX if total == MAX else float(total) * share  # type: ignore[arg-type]


def shares(selected: Sequence[RollupInstance]) -> dict[Key, float]:
    """Each workload instance's share of a total: equal over the distinct LUNs, then equal within a LUN."""
    on_lun: dict[tuple[str, str], list[Key]] = {}
    for rollup in selected:
        for member in rollup.members:
            on_lun.setdefault((member.host, member.lun), []).append((member.host, member.number))
    return {key: 1 / len(on_lun) / len(keys) for keys in on_lun.values() for key in keys}


def steered(edits: Sequence[Steer], rollups: Rollups, parameters: Mapping[Key, Parameters]) -> dict[Key, Parameters]:
    """What control's edits make of the present parameters: only the workload instances that change."""
    changed: dict[Key, Parameters] = {}
    for edit in edits:
        rollup = rollups.type(edit.rollup).instance(edit.instance)
        for key, share in shares([rollup]).items():
            iops: Iops = MAX if edit.total_iops is None else edit.total_iops * share
            changed[key] = replace(changed.get(key, parameters[key]), iops=iops)
    return changed
