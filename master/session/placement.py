"""Which workload runs on which LUN of which host: the plan's selections against what the hosts have.

Rule: pure. Every workload takes every LUN of the plan that its own `select` matches; a workload that matches
nothing is a fault of the plan, told at its place. A LUN's attributes are what its host found, its host's two
names, and what the plan's own rules add.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...protocol.messages import Attribute, FileToCreate, Lun
from ..errors import HostFault, HostsError
from ..plan.model import Plan
from ..plan.places import Place
from ..rollup.instances import WorkloadInstance


@dataclass(frozen=True, slots=True)
class PlacedLun:
    """A LUN that the plan selects."""

    host: str
    lun: Lun
    attributes: Mapping[str, Attribute]
    created: bool  # by this plan


@dataclass(frozen=True, slots=True)
class Placement:
    luns: tuple[PlacedLun, ...]
    instances: tuple[WorkloadInstance, ...]
    lun_of: Mapping[tuple[str, int], PlacedLun]  # (host, number) -> its LUN
    names: Mapping[tuple[str, int], str]  # (host, number) -> the instance, in messages


def place(plan: Plan, found: Mapping[str, Sequence[Lun]], hostnames: Mapping[str, str]) -> Placement:
    """Place the plan's workloads on what each host (by the plan's name) has.

    Raises HostsError, all hosts together, where the plan selects no LUN; PlanFaults where a workload selects none.
    """
    luns = tuple(
        placed
        for spec in plan.hosts
        for created in [created_sizes(plan, spec.name).keys()]
        for lun in found.get(spec.name, ())
        if (placed := _placed(plan, spec.name, hostnames.get(spec.name, ""), lun, lun.path in created)) is not None
    )
    without = [spec.name for spec in plan.hosts if not any(lun.host == spec.name for lun in luns)]
    if without:
        remedy = f"mend `luns:` ({plan.luns.place}) or leave the host out"
        raise HostsError([HostFault(host, "no LUN is selected", remedy) for host in without])
    faults: list[tuple[Place | None, str]] = []
    instances: list[WorkloadInstance] = []
    lun_of: dict[tuple[str, int], PlacedLun] = {}
    numbers = dict.fromkeys((spec.name for spec in plan.hosts), 0)
    for workload in plan.workloads:
        chosen = [lun for lun in luns if workload.select is None or workload.select.matches(lun.attributes)]
        if not chosen:
            faults.append(
                (workload.place, f"workload {workload.name} selects none of the {len(luns)} LUNs of the plan")
            )
        for lun in chosen:
            number = numbers[lun.host]
            numbers[lun.host] += 1
            instances.append(WorkloadInstance(number, lun.host, lun.lun.path, workload.name, lun.attributes))
            lun_of[lun.host, number] = lun
    if faults:
        raise plan.faults(faults)
    return Placement(luns, tuple(instances), lun_of, {(one.host, one.number): one.id for one in instances})


def _placed(plan: Plan, host: str, hostname: str, lun: Lun, created: bool) -> PlacedLun | None:
    attributes: dict[str, Attribute] = {**lun.attributes, "host": host, "hostname": hostname, "path": lun.path}
    attributes |= {"kind": lun.kind, "size": lun.size}
    for rule in plan.attributes:
        if rule.match.matches(attributes):
            attributes |= rule.attributes
    selected = bool(lun.named) or (plan.luns.select is not None and plan.luns.select.matches(attributes))
    if lun.kind == "block" and not selected:
        return None
    return PlacedLun(host, lun, attributes, created)


def to_create(plan: Plan, host: str) -> tuple[FileToCreate, ...]:
    """The files that the plan asks `host` to create: `{host}` in a path is the plan's name of the host."""
    return tuple(replace(f, path=f.path.replace("{host}", host)) for f in plan.luns.create)


def globs(plan: Plan, host: str) -> tuple[str, ...]:
    return tuple(pattern.replace("{host}", host) for pattern in plan.luns.files)


def created_sizes(plan: Plan, host: str) -> dict[str, int]:
    """Path and size of each file that the plan asks `host` to create."""
    return {f.path.replace("{}", str(i)): f.size for f in to_create(plan, host) for i in range(f.count)}
