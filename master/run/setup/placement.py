"""Which workload runs on which LUN of which host: the plan's selections against what the hosts have.

Rule: pure. Every workload takes every LUN of the plan that its own `select` matches; a workload that matches
nothing is a fault of the plan, reported at its place. A LUN's attributes are what its host found, its host's two
names, and what the plan's own rules add.
"""

import os
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ....protocol.consent_check import FINGERPRINT
from ....protocol.payload import Attribute, FileToCreate, Identity, Lun
from ...errors import HostFault, HostsError
from ...plan.model import Plan
from ...plan.read.yaml_positions import Place
from ...plan.select.attributes import SHARED
from ...rollup.instances import InstanceKey, WorkloadInstance
from ...text.scaled import scaled_size
from ...text.suggestions import listed

Way = tuple[str, str]  # host, path
MoreAttributes = Callable[[str, Mapping[str, Attribute]], Mapping[str, Attribute]]  # host, LUN's own -> more
_MOST_SHOWN: Final = 4  # LUNs that are not selected


@dataclass(frozen=True, slots=True)
class PlacedLun:
    """A LUN that the plan selects."""

    host: str
    lun: Lun
    attributes: Mapping[str, Attribute]
    created: bool  # by this plan, or to be created; what is in it is nobody's
    first: Way | None = None  # the first host and path that lead to the same LUN, where several do

    @property
    def shared(self) -> bool:
        return self.first is not None


@dataclass(frozen=True, slots=True)
class Placement:
    luns: tuple[PlacedLun, ...]
    instances: tuple[WorkloadInstance, ...]
    lun_of: Mapping[InstanceKey, PlacedLun]  # (host, number) -> its LUN
    names: Mapping[InstanceKey, str]  # (host, number) -> the instance, in messages

    def others(self, lun: PlacedLun) -> list[PlacedLun]:
        """By which other hosts and paths the plan reaches the same LUN."""
        return [one for one in self.luns if one.first == lun.first and one is not lun] if lun.shared else []


def no_more(host: str, lun: Mapping[str, Attribute]) -> Mapping[str, Attribute]:
    """No connector says anything about a LUN."""
    return {}


def place(
    plan: Plan, luns_of: Mapping[str, Sequence[Lun]], hostnames: Mapping[str, str], more: MoreAttributes = no_more
) -> Placement:
    """Place the plan's workloads on what each host (by the plan's name) has. `more`: attributes from connectors.

    Raises HostsError, all hosts together, where the plan selects no LUN; PlanFaults where a workload selects none.
    """
    luns = tuple(
        placed
        for spec in plan.hosts
        for created in [created_sizes(plan, spec.name).keys()]
        for lun in luns_of.get(spec.name, ())
        if (placed := _placed(plan, spec.name, hostnames.get(spec.name, ""), lun, created, more)) is not None
    )
    luns = _shared(luns)
    having = {lun.host for lun in luns}
    without = [spec.name for spec in plan.hosts if spec.name in luns_of and spec.name not in having]
    if without:
        remedy = f"correct `luns:` ({plan.luns.place}) or leave the host out"
        why = {host: _why_none(plan, host, hostnames.get(host, ""), luns_of[host], more) for host in without}
        raise HostsError([HostFault(host, f"no LUN is selected: {why[host]}", remedy) for host in without])
    faults: list[tuple[Place | None, str]] = []
    instances: list[WorkloadInstance] = []
    lun_of: dict[InstanceKey, PlacedLun] = {}
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
            instances.append(WorkloadInstance(number, lun.host, lun.lun.path, workload.name, lun.attributes, lun.first))
            lun_of[lun.host, number] = lun
    if faults:
        raise plan.faults(faults)
    return Placement(luns, tuple(instances), lun_of, {(one.host, one.number): one.id for one in instances})


def _why_none(plan: Plan, host: str, hostname: str, luns: Sequence[Lun], more: MoreAttributes) -> str:
    """State which LUNs a host has, and what keeps them from being selected."""
    if (select := plan.luns.select) is None:
        return f"no file matches {listed(list(globs(plan, host)))}"
    unselected = []
    for lun in luns:
        attributes = _attributes(plan, host, hostname, lun, more)
        words = {**attributes, "size": scaled_size(lun.size)}
        unmet = ", ".join(f"{name} {words.get(name, 'unknown')}" for name in select.unmet(attributes))
        unselected.append(f"{lun.path} ({unmet})")
    return f"there is {listed(unselected, _MOST_SHOWN)}" if unselected else "it has no block device"


def _shared(luns: tuple[PlacedLun, ...]) -> tuple[PlacedLun, ...]:
    """The same LUNs, with `first` set where several paths lead to one."""
    ways: dict[Hashable, list[Way]] = {}
    for lun in luns:
        if (known := _known_as(lun.lun.identity)) is not None:
            ways.setdefault(known, []).append((lun.host, lun.lun.path))
    return tuple(
        replace(lun, first=same[0], attributes={**lun.attributes, SHARED: len(same)})
        if len(same := ways.get(_known_as(lun.lun.identity), [])) > 1
        else lun
        for lun in luns
    )


def _known_as(identity: Identity | None) -> Hashable:
    """The key that two LUNs have in common if they are one: a world-wide name; else what is its own on one machine.

    None where nothing identifies it: two LUNs may have the same content at their ends.
    """
    if identity is None or not identity.facts:
        return None
    facts = dict(identity.facts)
    if FINGERPRINT in facts:
        return None
    if "wwn" in facts:
        return tuple((name, fact) for name, fact in identity.facts if name != "serial")
    return identity.machine, identity.facts


def selected(plan: Plan, host: str, hostname: str, lun: Lun, more: MoreAttributes = no_more) -> bool:
    """Whether the plan selects a LUN that `host` lists."""
    return _placed(plan, host, hostname, lun, (), more) is not None


def _placed(
    plan: Plan, host: str, hostname: str, lun: Lun, created: Collection[str], more: MoreAttributes
) -> PlacedLun | None:
    """`created`: the paths of the plan's own files. One that stands there and is not ours any more is the user's."""
    attributes = _attributes(plan, host, hostname, lun, more)
    chosen = bool(lun.named) or (plan.luns.select is not None and plan.luns.select.matches(attributes))
    if lun.kind == "block" and not chosen:
        return None
    return PlacedLun(host, lun, attributes, lun.ours and lun.path in created)


def _attributes(plan: Plan, host: str, hostname: str, lun: Lun, more: MoreAttributes) -> dict[str, Attribute]:
    """A LUN's own attributes, and those that connectors and the plan give it."""
    attributes: dict[str, Attribute] = {**lun.attributes, "host": host, "hostname": hostname, "path": lun.path}
    attributes |= {"kind": lun.kind, "size": lun.size}
    attributes |= more(host, attributes)
    for rule in plan.attributes:
        if rule.match.matches(attributes):
            attributes |= rule.attributes
    return attributes


def to_create(plan: Plan, host: str) -> tuple[FileToCreate, ...]:
    """The files that `host` has to create: `{host}` in a path is the plan's name of the host."""
    return tuple(replace(f, path=os.path.normpath(f.path.replace("{host}", host))) for f in plan.luns.create)


def globs(plan: Plan, host: str) -> tuple[str, ...]:
    return tuple(pattern.replace("{host}", host) for pattern in plan.luns.files)


def created_sizes(plan: Plan, host: str) -> dict[str, int]:
    """Path and size of each file that `host` has to create."""
    return {f.path.replace("{}", str(i)): f.size for f in to_create(plan, host) for i in range(f.count)}
