"""Resolves the plan's settings to the absolute parameters of every workload instance in a step.

Rule: pure. Percentages of another step and totals over a rollup become a number of IOPS per instance; hosts receive
absolute numbers only. `total_iops` is shared equally over the distinct LUNs that the edit selects, and within a LUN
over its workloads, by their skews. `50% of step max` takes, for each rollup instance, the IOPS that this instance
itself measured (baseline_step.py).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ....protocol.parameters import MAX, Iops, Parameters, VolumeKind
from ...control.decision import LoadEdit
from ...plan.model import TOTAL_IOPS, Edit, Plan, Step
from ...plan.read.yaml_positions import Place
from ...rollup.instances import InstanceKey, RollupInstance, Rollups
from ...text.plan_parameters import NO_STEP_YET, OfStep, PlanParameters, Value
from ...text.suggestions import suggestion
from ...verdicts import Finding, Reason, Severity
from .baseline_step import Measured, Share, equal, of_step, shares
from .placement import Placement


class NotMeasured(Exception):
    """A setting refers to the IOPS of a step that has no valid measurement; its text says which and why."""

    @property
    def finding(self) -> Finding:
        return Finding(Reason.BASELINE_STEP, str(self), Severity.INVALID)


class NoResponse(NotMeasured):
    """A step that could only ever be blank; its text says where."""

    @property
    def finding(self) -> Finding:
        return Finding(Reason.NO_RESPONSE, str(self))


@dataclass(slots=True)
class _Setting:
    parameters: PlanParameters
    iops: Iops


def resolve(
    plan: Plan, step: Step, placement: Placement, rollups: Rollups, measured: Measured
) -> Mapping[InstanceKey, Parameters]:
    """The parameters of every workload instance in `step`.

    Raises PlanFaults for an edit that names an instance which does not exist, or a workload that begins with a share
    of a step; and NotMeasured.
    """
    workloads = {workload.name: workload for workload in plan.workloads}
    settings: dict[InstanceKey, _Setting] = {}
    for instance in placement.instances:
        parameters = workloads[instance.workload].parameters
        iops = parameters.iops
        if isinstance(iops, OfStep):
            raise plan.fault(workloads[instance.workload].place, f"iops: {NO_STEP_YET}")
        settings[instance.host, instance.number] = _Setting(parameters, iops)
    for edit in step.edits:
        _apply(edit, settings, _selected(plan, edit, rollups), measured)
    return {
        key: setting.parameters.absolute(lun.size, lun.kind, setting.iops)
        for key, setting in settings.items()
        for lun in [placement.lun_of[key].lun]
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


def _apply(
    edit: Edit, settings: dict[InstanceKey, _Setting], selected: Sequence[RollupInstance], measured: Measured
) -> None:
    plain = {name: value for name, value in edit.changes.items() if name not in (TOTAL_IOPS, "iops")}
    for rollup in selected:
        for member in rollup.members:
            setting = settings[member.host, member.number]
            setting.parameters = setting.parameters.edited(plain)
    if "iops" in edit.changes:
        _set(settings, _iops(edit.changes["iops"], selected, measured))
    if TOTAL_IOPS in edit.changes:
        skews = {key: setting.parameters.skew for key, setting in settings.items()}
        _set(settings, _total(edit.changes[TOTAL_IOPS], selected, measured, partial(shares, skews=skews)))


def _iops(value: Value, selected: Sequence[RollupInstance], measured: Measured) -> dict[InstanceKey, Iops]:
    """For each workload instance of `selected` by itself."""
    if isinstance(value, OfStep):
        return {key: iops for rollup in selected for key, iops in of_step(value, rollup, measured, equal).items()}
    iops: Iops = MAX if value == MAX else float(value)  # type: ignore[arg-type]
    return {(member.host, member.number): iops for rollup in selected for member in rollup.members}


def _total(
    total: Value, selected: Sequence[RollupInstance], measured: Measured, share: Share
) -> dict[InstanceKey, Iops]:
    """Shared over the LUNs of `selected`, then over each LUN's workloads."""
    if isinstance(total, OfStep):
        return {key: iops for rollup in selected for key, iops in of_step(total, rollup, measured, share).items()}
    members = [member for rollup in selected for member in rollup.members]
    return {key: MAX if total == MAX else float(total) * part for key, part in share(members).items()}  # type: ignore[arg-type]


def _set(settings: dict[InstanceKey, _Setting], iops: Mapping[InstanceKey, Iops]) -> None:
    for key, value in iops.items():
        settings[key].iops = value


def shared_anew(
    parameters: Mapping[InstanceKey, Parameters], rollups: Rollups, lost: Collection[str], hosts: Collection[str]
) -> dict[InstanceKey, Parameters]:
    """The rates of `lost` hosts shared over `hosts`: each workload's over its instances there, in proportion to theirs.

    Instances that have no `parameters`, are at max, or end by `until`, have no part in it. Returns those that change,
    with a rate of 0 on `lost` hosts; none of a workload that has no rate on `hosts`.
    """
    rates: dict[str, dict[InstanceKey, float]] = {}
    for instance in rollups.instances:
        key = instance.host, instance.number
        one = parameters.get(key)
        if one is not None and one.iops != MAX and one.iops and one.until.what is VolumeKind.NEVER:
            rates.setdefault(instance.workload, {})[key] = float(one.iops)
    changed: dict[InstanceKey, Parameters] = {}
    for of_workload in rates.values():
        gone = {key: iops for key, iops in of_workload.items() if key[0] in lost}
        kept = {key: iops for key, iops in of_workload.items() if key[0] in hosts}
        if gone and kept:
            factor = 1 + sum(gone.values()) / sum(kept.values())
            changed |= {key: replace(parameters[key], iops=iops * factor) for key, iops in kept.items()}
            changed |= {key: replace(parameters[key], iops=0.0) for key in gone}
    return changed


def steered(
    edits: Sequence[LoadEdit],
    rollups: Rollups,
    parameters: Mapping[InstanceKey, Parameters],
    hosts: Collection[str],
    beside: Collection[str] = (),
) -> dict[InstanceKey, Parameters]:
    """Apply control's edits to the present parameters; return only the workload instances that change.

    A total is that of `hosts`, which take part: those that were lost have no share in it. Hosts that go on `beside`
    them, unmeasured, are asked for as much for each LUN.
    """
    changed: dict[InstanceKey, Parameters] = {}
    for edit in edits:
        rollup = rollups.type(edit.rollup).instance(edit.instance)
        members = [member for member in rollup.members if member.host in hosts or member.host in beside]
        luns = {(member.host, member.lun) for member in members}
        measured = {lun for lun in luns if lun[0] in hosts} or luns
        skews = {(member.host, member.number): parameters[member.host, member.number].skew for member in members}
        for key, share in shares(members, skews).items():
            iops: Iops = MAX if edit.total_iops is None else edit.total_iops * share * len(luns) / len(measured)
            changed[key] = replace(changed.get(key, parameters[key]), iops=iops)
    return changed
