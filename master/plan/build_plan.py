"""Builds the Plan that the controller works with from the documents of the YAML file: the last stage of load.py.

Rule: each section is resolved by itself, then they are compared; every fault is noted at its place, and a plan comes
out only if there was none.
"""

import re
from collections.abc import Collection, Mapping
from pathlib import Path as FilePath
from typing import Any, Final

from ...protocol.payload import EngineOptions, FileToCreate
from ..connectors.connector_spec import ELEMENTS, OTHERS
from ..errors import PlanError
from ..rollup.instances import ALL, EVERYTHING, RollupSpec
from ..text.plan_parameters import PlanParameters
from ..text.suggestions import nearest, suggestion
from .checks.cross_section import (
    KnownNames,
    check_cache,
    check_control,
    check_edits,
    check_ends,
    check_fits,
    check_mixes,
    check_names,
    check_operations,
    check_presence,
    check_references,
)
from .checks.metric_checks import check_flushes, check_kinds, check_paced, check_samples, check_thinking
from .connectors import attributes_of, connectors_of, host_connector_of
from .hosts import hosts_of
from .model import AttributeRule, Live, LunSelection, Plan, Workload
from .read.schema import POLLED, TIMES, CreateDoc, LiveDoc, PlanDoc
from .read.yaml_positions import Faults, Path
from .select.attributes import ATTRIBUTES
from .select.conditions import read_select
from .select.host_ranges import expand
from .slurm import Allocation
from .steps import SAME_THING, Schedule, given, once, schedule_of

_WORKLOAD_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")  # part of instance names, where + = { } , mean something
_ATTRIBUTE_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")


def resolved(
    doc: PlanDoc,
    removed: Collection[Path],
    values: Mapping[str, str],
    path: FilePath | None,
    slurm: Allocation | None,
    faults: Faults,
) -> Plan | None:
    """The plan, or None where `faults` has any.

    `removed`: entries that were removed for faults of their own; `slurm`: the allocation that the controller runs in.
    """
    own = [*_own_attributes(doc, faults), *attributes_of(doc, faults)]
    hosts = hosts_of(doc, slurm, faults)
    rules = [_rule(doc, i, own, faults) for i in range(len(doc.attributes))]
    schedule = schedule_of(doc, faults)
    plan = Plan(
        name=_name(doc, faults),
        text=faults.document.text,
        path=path,
        hosts=hosts,
        luns=_luns(doc, own, faults),
        attributes=tuple(rule for rule in rules if rule),
        workloads=tuple(_workload(doc, name, own, faults) for name in doc.workloads),
        rollups=_rollups(doc, own, faults),
        steps=tuple(step for _, step in schedule.steps()),
        destroy=doc.destroy,
        lease_s=doc.lease,
        engine=EngineOptions(**dict(doc.engine)),
        report=doc.report,
        prepare_timeout_s=doc.prepare_timeout,
        start_timeout_s=doc.start_timeout,
        may_miss=doc.may_miss,
        subinterval_s=doc.defaults.subinterval or TIMES["subinterval"],
        achieved_iops_tolerance=doc.achieved_iops_tolerance,
        on_io_error=doc.on_io_error,
        on_loss=doc.on_loss,
        by_address=doc.by_address,
        live=_live(doc.live),
        connectors=connectors_of(doc, faults),
        host_connector=host_connector_of(doc, faults),
        parameters=values,
    )
    _check(plan, doc, schedule, own, removed, faults)
    return None if faults.collected else plan


def _check(
    plan: Plan, doc: PlanDoc, schedule: Schedule, own: Collection[str], removed: Collection[Path], faults: Faults
) -> None:
    """Faults between sections."""
    lost = _lost(removed, faults)
    names = [host.name for host in plan.hosts]
    known = KnownNames(
        hosts=None if "hosts" in lost else names,
        workloads=None if "workloads" in lost else doc.workloads.keys(),
        rollups=None if "rollups" in lost else [rollup.name for rollup in plan.rollups],
        connectors=None if "connectors" in lost else _connectors(plan),
        attributes=[*ATTRIBUTES, *own],
    )
    check_presence(doc, lost, faults)
    _check_backend(doc, faults)
    if "hosts" not in lost and doc.may_miss >= len(names):
        faults.add(("may_miss",), f"may_miss: {doc.may_miss} of {len(names)} hosts leaves none; name fewer")
    check_names(schedule, faults)
    check_control(doc, schedule, known, faults)
    check_ends(doc, plan.workloads, schedule, faults)
    check_cache(doc, plan.workloads, schedule, faults)
    check_operations(doc, plan.workloads, schedule, faults)
    check_fits(plan.workloads, plan.luns, faults)
    if "steps" not in {gone[0] for gone in removed}:  # a removed edit may set a rate
        check_paced(doc, plan.workloads, schedule, faults)
    if not {gone[0] for gone in removed} & {"workloads", "steps"}:
        check_thinking(doc, plan.workloads, schedule, faults)
    # A removed entry of these sections might have such I/O.
    if not {gone[0] for gone in removed} & {"workloads", "steps", "live"}:
        check_kinds(doc, plan.workloads, schedule, names, faults)
        check_flushes(doc, plan.workloads, schedule, faults)
        check_samples(doc, plan.workloads, schedule, names, faults)
    check_edits(schedule, known, faults)
    check_references(doc, schedule, "steps" not in lost, faults)
    check_mixes(plan.workloads, schedule, plan.luns, plan.destroy, names, faults)


def _connectors(plan: Plan) -> list[str]:
    """Their names."""
    of_hosts = [] if plan.host_connector is None else [plan.host_connector.name]
    return [*of_hosts, *(one.name for one in plan.connectors)]


def _lost(removed: Collection[Path], faults: Faults) -> set[str]:
    """The sections with an entry that was removed or is in doubt, so that names may be missing."""
    lost = {str(gone[0]) for gone in removed if len(gone) <= 2}
    lost |= {"steps" for gone in removed if gone[0] == "steps" and len(gone) == 3 and gone[2] != "edit"}
    lost |= {near for gone in removed if len(gone) == 1 and (near := nearest(str(gone[0]), PlanDoc.model_fields))}
    return lost | (faults.sections & {"hosts", "rollups", "connectors"})


def is_plan_name(name: str) -> bool:
    """Whether run folders can be called after it."""
    return bool(name.strip()) and name.isprintable() and "/" not in name and not name.startswith(".")


def check_name_option(name: str) -> None:
    """Raises PlanError where a run's folder cannot be called after the name that --name gives."""
    if not is_plan_name(name):
        raise PlanError(f"--name {name!r}: the run's folder cannot be called so; write a name without /")


def _name(doc: PlanDoc, faults: Faults) -> str:
    name = doc.name or FilePath(faults.document.name).stem or "plan"
    if not is_plan_name(name):
        faults.add(("name",), f"{name!r} cannot be a plan's name: its run folders are called after it")
    return name


def _check_backend(doc: PlanDoc, faults: Faults) -> None:
    engine = doc.engine
    if engine.polled and engine.backend not in POLLED:
        text = f"polled is an option of io_uring, but the backend is {engine.backend}: `backend: io_uring`"
        faults.add(("engine", "polled"), text)


def _own_attributes(doc: PlanDoc, faults: Faults) -> list[str]:
    own: list[str] = []
    for i, entry in enumerate(doc.attributes):
        for name in entry.set:
            path = ("attributes", i, "set", name)
            if name in ATTRIBUTES:
                faults.add_key(path, f"the attribute {name!r} is found on the host; give yours another name")
            elif not _ATTRIBUTE_NAME.fullmatch(name):
                faults.add_key(path, f"{name!r} cannot be an attribute's name; use a-z, 0-9 and _")
            own.append(name)
    return own


def _luns(doc: PlanDoc, own: Collection[str], faults: Faults) -> LunSelection:
    place = faults.document.key_place(("luns",))
    section = doc.luns
    if section is None:
        return LunSelection(None, (), (), (), place)
    select = None
    if section.select is not None and section.paths:
        text = "paths and select cannot both be given; put the paths into the select: { path: [...] }"
        faults.add_key(("luns", "paths"), text)
    elif section.select is not None:
        select = read_select(section.select, ("luns", "select"), faults, own)
    elif section.paths:
        select = read_select({"path": section.paths}, ("luns", "paths"), faults, own)
    create = tuple(_file(entry, ("luns", "create", i), faults) for i, entry in enumerate(section.create))
    twice = {file.path for i, file in enumerate(create) if file.path in {f.path for f in create[:i]}}
    for path in sorted(twice):
        faults.add(("luns", "create"), f"{path!r} is created twice")
    named = _named(section.paths) if select is not None else ()
    return LunSelection(select, tuple(section.files), create, named, place)


def _named(paths: Collection[str]) -> tuple[str, ...]:
    """The devices that paths name one by one: all but those with * or ?, which take what there is."""
    found = [name for path in paths if "*" not in path and "?" not in path for name in expand(path.strip())]
    return tuple(dict.fromkeys(found))


def _file(doc: CreateDoc, path: Path, faults: Faults) -> FileToCreate:
    if doc.count > 1 and "{}" not in doc.path:
        faults.add((*path, "path"), f"{doc.count} files need {{}} in their path, which becomes the file's number")
    if doc.path.endswith("/"):
        faults.add((*path, "path"), f"{doc.path!r} is a folder; write the path of a file, like {doc.path}ivypy-{{}}")
    return FileToCreate(doc.path, doc.size, doc.count, doc.keep)


def _live(doc: LiveDoc | None) -> Live:
    return Live(doc.maxtags or 0, doc.blocksize or 0, doc.range) if doc else Live(0, 0, None)


def _rule(doc: PlanDoc, i: int, own: Collection[str], faults: Faults) -> AttributeRule | None:
    entry = doc.attributes[i]
    select = read_select(entry.match, ("attributes", i, "match"), faults, own)
    return AttributeRule(select, entry.set, faults.document.place(("attributes", i))) if select else None


def _workload(doc: PlanDoc, name: str, own: Collection[str], faults: Faults) -> Workload:
    path: Path = ("workloads", name)
    if not _WORKLOAD_NAME.fullmatch(name):
        faults.add_key(path, f"{name!r} cannot be a workload's name; use letters, digits, dots, - and _")
    settings = given(doc.workloads[name])
    raw = settings.pop("select", None)
    if settings.pop("once", False):
        settings = _once(settings, path, faults)
    if "operations" in settings and "fraction_read" in settings:
        faults.add_key((*path, "fraction_read"), f"operations and fraction_read {SAME_THING}")
    select = None if raw is None else read_select(raw, (*path, "select"), faults, own)
    return Workload(name, select, PlanParameters().edited(settings), faults.document.key_place(path))


def _once(settings: Mapping[str, Any], path: Path, faults: Faults) -> dict[str, Any]:
    """The settings of a workload that drives each block once."""
    if "until" in settings:
        faults.add_key((*path, "until"), "once and until both set the end; remove one")
    return {**settings, **once()}


def _rollups(doc: PlanDoc, own: Collection[str], faults: Faults) -> tuple[RollupSpec, ...]:
    """The plan's rollup types; `all` first, whether it is named or not."""
    rollups: dict[str, RollupSpec] = {ALL: EVERYTHING}
    named: dict[str, int] = {}
    known = [*ATTRIBUTES, *own]
    for i, entry in enumerate(doc.rollups):
        path: Path = ("rollups", i, "by")
        for j, attribute in enumerate(entry.by):
            if attribute not in known:
                faults.add(path, f"LUNs have no attribute {attribute!r}{suggestion(attribute, known)}")
            elif attribute in entry.by[:j]:
                faults.add(path, f"duplicate attribute {attribute!r} in the rollup")
        if len(entry.by) == 1 and entry.by[0] in (ELEMENTS, OTHERS):
            text = f"{entry.by[0]!r} is the name of a folder of the connectors' files; give the attribute another name"
            faults.add(path, text)
        spec = RollupSpec(entry.by, entry.quantity, entry.max_droop, entry.csv)
        if spec.name in named:
            line = faults.document.place(("rollups", named[spec.name])).line
            faults.add(("rollups", i), f"duplicate rollup {spec.name!r} (first in line {line})")
        rollups[spec.name] = spec
        named[spec.name] = i
    return tuple(rollups.values())
