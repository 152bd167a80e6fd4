"""Faults between sections of a plan: unknown names, and combinations that must not run.

Rule: only what is certain without the test hosts. A name of something that was itself faulty, and so was taken
out, is not called unknown.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import Any, Final

from ....protocol.geometry import LEAST_BLOCK, geometry_faults
from ....protocol.parameters import (
    AUTO,
    MAX,
    MOST_PARTS,
    NEVER,
    NO_FLUSH,
    RELEASES,
    UNEVEN,
    Sync,
    VolumeKind,
    order_faults,
)
from ...control.until import UntilSpec
from ...rollup.instances import ALL
from ...text.mixes import COUNTED, Sizes, all_sizes, mix_of, shares_of
from ...text.places import cover_all
from ...text.plan_parameters import NO_END, NO_STEP_YET, OfStep, PlanParameters
from ...text.suggestions import listed, nearest, suggestion
from ...text.units import format_bytes, format_fraction, format_operations
from ..model import Edit, LunSelection, Workload
from ..read.schema import LoopDoc, PlanDoc
from ..read.section import Section
from ..read.yaml_positions import Faults, Path
from ..steps import Schedule, given
from .io_mix import HOST, WORKLOAD, Deciding, value_of

CACHING: Final = ("auto", "io_uring", "null")  # backends that can use the page cache, trim and write zeroes
_OF_IO: Final = frozenset(  # what says which I/Os a workload has, and where they go
    (
        "iosequencer", "blocksize", "fraction_read", "operations", "align", "sequential", "streams", "random_map",
        *UNEVEN, "working_set", "start", "range",
    )
)  # fmt: skip
_PLACES: Final = ("range", "working_set", "start", "hot_zones")  # of which a LUN may have no such part
ANY_SIZE: Final = 1 << 60  # bytes, of a LUN


@dataclass(frozen=True, slots=True)
class KnownNames:
    """The names that a plan defines; None where some of them were lost to a fault."""

    hosts: Collection[str] | None
    workloads: Collection[str] | None
    rollups: Collection[str] | None
    connectors: Collection[str] | None
    attributes: Collection[str]


def check_names(schedule: Schedule, faults: Faults) -> None:
    """Step names are unique; so are those of steps with rounds, by which these are told apart."""
    seen: dict[str, int] = {}
    for entry, step in schedule.steps():
        first = seen.setdefault(step.name, entry)
        if step.control.rounds is not None and first == entry:
            first = seen.setdefault(f"{step.control.rounds.step} in rounds", entry)
        if first != entry:
            line = faults.document.key_place(("steps", first, "go")).line
            faults.add(("steps", entry, "go", "name"), f"duplicate step name {step.name!r} (first in line {line})")


def check_edits(schedule: Schedule, known: KnownNames, faults: Faults) -> None:
    """An edit names a rollup type of the plan, and hosts and workloads of the plan."""
    for entry, edit in schedule.edits():
        for text in _clause_faults(edit.rollup, edit.instances, known):
            faults.add(("steps", entry, "edit", "rollup"), text)


def _clause_faults(rollup: str, instances: Iterable[str], known: KnownNames) -> Iterator[str]:
    if rollup == ALL:
        others = [name for name in instances if name != ALL]
        if others:
            yield f"the rollup type 'all' has one instance, all=all; it has no {others[0]!r}"
        return
    by = rollup.split("+")
    if known.rollups is not None and rollup not in known.rollups:
        near = nearest(rollup, known.rollups)
        could_be = near is None and all(name in known.attributes for name in by)
        remedy = f"; add it to the plan: rollups: [ {rollup} ]" if could_be else suggestion(rollup, known.rollups)
        yield f"the plan has no rollup type {rollup!r}{remedy}"
    for attribute, names in ((HOST, known.hosts), (WORKLOAD, known.workloads)):
        if attribute in by and names is not None:
            for instance in instances:
                value = value_of(instance, by, attribute)
                if value is not None and value not in names:
                    yield f"the plan has no {attribute} {value!r}{suggestion(value, names)}"


def check_control(doc: PlanDoc, schedule: Schedule, known: KnownNames, faults: Faults) -> None:
    """Faults of each step's control, at its key in the step or in `defaults`."""
    for entry, step in schedule.steps():
        for keys, text in step.control.faults(known.rollups, known.connectors):
            own = getattr(doc.steps[entry].go, str(keys[0]), None) is not None
            if doc.steps[entry].precondition is not None:
                faults.add(("steps", entry, "precondition", *keys[1:]), text)
            else:
                faults.add((*(("steps", entry, "go") if own else ("defaults",)), *keys), text)


def check_fits(workloads: Iterable[Workload], luns: LunSelection, faults: Faults) -> None:
    """Every workload that is certain to be placed on a created file has room in it."""
    for workload in workloads:
        if workload.select is not None or faults.has_fault(("workloads", workload.name, "blocksize")):
            continue
        for i, file in enumerate(luns.create):
            parameters = workload.parameters.absolute(file.size, "file", MAX)
            for parameter, text in geometry_faults(parameters, file.path, "file", file.size, LEAST_BLOCK):
                is_place = parameter in _PLACES
                place: Path = ("workloads", workload.name, parameter) if is_place else ("luns", "create", i, "size")
                if not faults.has_fault(place):
                    faults.add(place, text if is_place else f"workload {workload.name!r}: {text}")


def check_ends(doc: PlanDoc, workloads: Iterable[Workload], schedule: Schedule, faults: Faults) -> None:
    """Every workload that ends by volume can: it has such I/O, loses none of it, and one thread counts it."""
    by_volume = {entry: step for entry, step in schedule.steps() if isinstance(step.control.measurement, UntilSpec)}
    for workload in workloads:
        path: Path = ("workloads", workload.name)
        settings = workload.parameters
        ends = settings.until != NO_END
        if settings.end_fsync and not by_volume:
            text = "no step ends by `until`, so there is no such end; write for example until: { time: 60s }"
            faults.add((*path, "end_fsync"), f"end_fsync: {text}")
        has = {operation for operation, _ in shares_of(settings.operations, settings.fraction_read)}
        if has.isdisjoint(COUNTED.get(settings.until.what, has)):
            verb = {VolumeKind.READ: "reads", VolumeKind.WRITTEN: "writes"}.get(settings.until.what, "reads or writes")
            faults.add((*path, "until"), f"until: {workload.name!r} {verb} nothing, so it would never end")
        counting = "until" if ends else "random_map" if settings.random_map else "skew" if settings.skew else ""
        if counting and settings.spread not in (AUTO, 1):
            faults.add((*path, "spread"), f"spread: {counting} counts I/Os on one thread; leave spread out")
        if settings.drop_after == NEVER:
            continue
        text = f"drop_after of workload {workload.name!r} discards I/Os that until counts; leave one of them out"
        if ends:
            faults.add((*path, "drop_after"), text)
        for entry in by_volume:
            go = doc.steps[entry].go
            if go is not None and (go.until is not None or go.once):
                faults.add_key(("steps", entry, "go", "until" if go.until is not None else "once"), text)


def check_operations(doc: PlanDoc, workloads: Sequence[Workload], schedule: Schedule, faults: Faults) -> None:
    """Every operation has a size, what says where the I/Os go fits together, and the backend has all operations."""
    created = {workload.name: workload.parameters for workload in workloads}
    known = {name: dict(_faults_of_io(name, settings)) for name, settings in created.items()}
    for name, texts in known.items():
        for key, text in texts.items():
            faults.add(("workloads", name, key), text)
    checked = {*created.items()}
    for entry, step in schedule.steps():
        for name, settings in _edited(created, step.edits).items():
            if (name, settings) in checked:
                continue
            checked.add((name, settings))
            place: Path = ("steps", entry, "go")
            for key, text in _faults_of_io(name, settings):
                if known[name].get(key) != text and not faults.has_fault(place):
                    faults.add_key(place, f"in step {step.name!r}, {text}")
    for path, changes in _changes(workloads, schedule):
        asked = [operation for operation, _ in changes.get("operations", ()) if operation in RELEASES]
        if asked and doc.engine.backend not in CACHING:
            remedy = "`backend: io_uring`, or leave the backend out"
            text = f"operations: {asked[0]} needs io_uring, but the backend is {doc.engine.backend}: {remedy}"
            faults.add((*path, "operations"), text)
        elif asked and doc.engine.polled:
            faults.add((*path, "operations"), f"operations: {asked[0]} cannot be polled; leave `engine: polled` out")


def _edited(created: Mapping[str, PlanParameters], edits: Iterable[Edit]) -> dict[str, PlanParameters]:
    """The workloads whose I/Os edits change for certain, by name; with these changes alone."""
    settings: dict[str, PlanParameters] = {}
    for edit in edits:
        changes = {key: value for key, value in edit.changes.items() if key in _OF_IO}
        if not changes or edit.rollup not in (ALL, WORKLOAD):
            continue
        every = edit.rollup == ALL or not edit.instances
        for name in created if every else created.keys() & {*edit.instances}:
            settings[name] = settings.get(name, created[name]).edited(changes)
    return settings


def _faults_of_io(name: str, settings: PlanParameters) -> Iterator[tuple[str, str]]:
    """The keys of a workload that do not fit together, each with a sentence."""
    if isinstance(settings.iops, OfStep):
        settings = replace(settings, iops=MAX)
    yield from order_faults(settings.absolute(ANY_SIZE, "file", MAX))
    left = 1 - min(sum(zone.reads for zone in settings.hot_zones), sum(zone.others for zone in settings.hot_zones))
    if settings.hot_zones and left > 1e-6 and cover_all(settings.hot_zones):
        text = f"hot_zones: they cover the whole range of {name!r}, and {format_fraction(round(left, 6))} of its I/Os"
        yield "hot_zones", f"{text} go to none; add it to a zone's share"
    sizes = settings.blocksize
    if isinstance(sizes, Sizes):
        for operation, _ in shares_of(settings.operations, settings.fraction_read):
            if not sizes.has(operation):
                text = f"blocksize: {name!r} has I/Os of operation {operation}, and no size for them"
                yield "blocksize", f"{text}; add it, like {operation}: {format_bytes(sizes.largest)}"
    parts = mix_of(sizes, settings.fraction_read, settings.operations)
    if len(parts) > MOST_PARTS:
        text = f"blocksize: {name!r} has {len(parts)} sizes of its operations"
        yield "blocksize", f"{text}; the most is {MOST_PARTS}, leave some out"


def check_cache(doc: PlanDoc, workloads: Iterable[Workload], schedule: Schedule, faults: Faults) -> None:
    """I/O through the page cache has a backend that can, and its settings stand where they have an effect."""
    cached: list[Path] = [("workloads", one.name, "direct") for one in workloads if not one.parameters.direct]
    for entry, edit in schedule.edits():
        if edit.changes.get("direct") is False:
            cached.append(("steps", entry, "edit", "set", "direct"))
    for entry, step in schedule.steps():
        if step.loop.get("direct") is False:
            cached.append(("steps", entry, "go", "loop", "direct"))
    for path, size in _sizes(workloads, schedule, edited=not cached):
        if size % LEAST_BLOCK:
            below = size - size % LEAST_BLOCK
            nearest = f"{below} or {below + LEAST_BLOCK}" if below else str(LEAST_BLOCK)
            text = f"{path[-1]}: {size} is no multiple of {LEAST_BLOCK} bytes; write {nearest}"
            faults.add(path, f"{text}, or direct: false for a file")
    for path, name, size in _directed(workloads, schedule):
        if size % LEAST_BLOCK:
            text = f"workload {name!r} has I/Os of {size} bytes, which direct I/O cannot have"
            faults.add(path, f"direct: {text}; set its blocksize, too")
    for path in dict.fromkeys(cached):
        if doc.engine.backend not in CACHING:
            remedy = "`backend: io_uring`, or leave the backend out"
            faults.add(path, f"direct: false needs io_uring, but the backend is {doc.engine.backend}: {remedy}")
        elif doc.engine.polled:
            faults.add(path, "direct: false: nothing in the page cache can be polled; leave `engine: polled` out")
    for workload in workloads:
        if not workload.parameters.drop_cache and not cached:
            text = "drop_cache: direct I/O goes past the page cache; write direct: false, or leave it out"
            faults.add(("workloads", workload.name, "drop_cache"), text)


def _sizes(workloads: Iterable[Workload], schedule: Schedule, edited: bool) -> Iterator[tuple[Path, int]]:
    """The sizes of direct I/Os; `edited`: those of edits and loops, too."""
    for path, changes in _changes(workloads, schedule) if edited else _created(workloads):
        if len(path) > 2 or changes.get("direct", True):
            for name in ("blocksize", "align"):
                yield from (((*path, name), size) for size in all_sizes(changes.get(name, LEAST_BLOCK)))


def _created(workloads: Iterable[Workload]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Each workload's settings, with the place of the section."""
    for workload in workloads:
        settings = workload.parameters
        yield ("workloads", workload.name), {f.name: getattr(settings, f.name) for f in fields(settings)}


def _changes(workloads: Iterable[Workload], schedule: Schedule) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """All settings of a plan: of workloads, of edits, of loops; each with the place of its section."""
    yield from _created(workloads)
    yield from ((("steps", entry, "edit", "set"), edit.changes) for entry, edit in schedule.edits())
    yield from ((("steps", entry, "go", "loop"), step.loop) for entry, step in schedule.steps())


def _directed(workloads: Iterable[Workload], schedule: Schedule) -> Iterator[tuple[Path, str, int]]:
    """Workloads that an edit takes from the page cache for certain, and their sizes, where nothing changes those."""
    if any(
        "blocksize" in change
        for _, step in schedule.steps()
        for change in (step.loop, *(edit.changes for edit in step.edits))
    ):
        return
    for entry, edit in schedule.edits():
        if edit.changes.get("direct") is not True:
            continue
        for workload in workloads:
            named = edit.rollup == WORKLOAD and (not edit.instances or workload.name in edit.instances)
            if not workload.parameters.direct and (edit.rollup == ALL or named):
                for size in all_sizes(workload.parameters.blocksize):
                    yield ("steps", entry, "edit", "set", "direct"), workload.name, size


def check_references(doc: PlanDoc, schedule: Schedule, complete: bool, faults: Faults) -> None:
    """`50% of step max` names a step that runs before. `complete`: no step was lost to a fault."""
    entry_of: dict[str, int] = {}
    for entry, step in schedule.steps():
        entry_of.setdefault(step.name, entry)
    for name, workload in doc.workloads.items():
        if isinstance(getattr(workload, "iops", None), OfStep):
            faults.add(("workloads", name, "iops"), f"iops: {NO_STEP_YET}")
    for entry, path, reference in _references(doc):
        where = entry_of.get(reference.step)
        if where is None and complete:
            faults.add(path, f"the plan has no step {reference.step!r}{_meant(reference.step, entry_of)}")
        elif where is not None and where >= entry:
            faults.add(path, f"step {reference.step!r} does not run before this; only an earlier step has results")


def _meant(name: str, steps: Collection[str]) -> str:
    passes = [step for step in steps if step.startswith(f"{name}+")]
    if passes:
        return f"; it is a loop: name one of its passes, {listed(passes, 3)}"
    return suggestion(name, steps) if steps else ""


def _references(doc: PlanDoc) -> Iterator[tuple[int, Path, OfStep]]:
    """Every reference to a step: its entry, its place, itself."""
    for i, entry in enumerate(doc.steps):
        if entry.edit is not None:
            for name, value in given(entry.edit.set).items():
                if isinstance(value, OfStep):
                    yield i, ("steps", i, "edit", "set", name), value
        if entry.go is not None and entry.go.loop is not None:
            for name, values in given(entry.go.loop).items():
                for j, value in enumerate(values):
                    if isinstance(value, OfStep):
                        yield i, ("steps", i, "go", "loop", name, j), value
        if entry.go is not None:
            yield from ((i, path, level) for path, level in _levels(entry.go, ("steps", i, "go")))


def _levels(section: Section, path: Path) -> Iterator[tuple[Path, OfStep]]:
    """Every load in a section of a step, or below it, that refers to a step."""
    for key, value in given(section).items():
        if isinstance(value, OfStep):
            yield (*path, key), value
        elif isinstance(value, Section) and not isinstance(value, LoopDoc):
            yield from _levels(value, (*path, key))


def check_mixes(
    workloads: Iterable[Workload], schedule: Schedule, luns: LunSelection, destroy: bool, hosts: Collection[str],
    faults: Faults,
) -> None:  # fmt: skip
    """The plan says `destroy: true` where it writes to block devices."""
    deciding = Deciding.of(schedule)
    for workload in workloads:
        writes = ""
        mixes = deciding.possible(workload, hosts)
        for _, step, mix in mixes if deciding.may_change(workload) else islice(mixes, 1):
            if mix.fraction_read < 1.0 and not writes:
                where = f" in step {step.name!r}" if mix.edited else ""
                of_mix = f"operations {format_operations(mix.operations)}"
                of_reads = f"fraction_read {format_fraction(mix.fraction_read)}"
                writes = f"{of_mix if mix.operations else of_reads}{where}"
        if not writes:
            _makes_durable(workload, faults)
        if writes and not destroy and _overwrites(workload, luns):
            faults.add_key(
                ("workloads", workload.name),
                f"workload {workload.name!r} writes ({writes}) to LUNs that the plan does not create, whose content "
                "would be lost; if that is meant, the plan needs 'destroy: true' and `ivypy run` needs "
                "--destroy TOKEN, which `ivypy devices` prints",
            )


def _makes_durable(workload: Workload, faults: Faults) -> None:
    """Find what makes writes durable in a workload without any."""
    settings = workload.parameters
    asked = {"flush": settings.flush != NO_FLUSH, "sync": settings.sync != Sync.NONE, "end_fsync": settings.end_fsync}
    for name in (name for name, is_asked in asked.items() if is_asked):
        text = f"{name}: workload {workload.name!r} writes nothing; set fraction_read below 100%, or leave {name} out"
        faults.add(("workloads", workload.name, name), text)


def _overwrites(workload: Workload, luns: LunSelection) -> bool:
    """Whether the workload is certain to be placed on LUNs that hold somebody's data."""
    if luns.select is None and not luns.files:
        return False
    if not luns.create:
        return True
    if workload.select is None:
        return True
    kinds = [kind for kind, there in (("block", luns.select is not None), ("file", bool(luns.files))) if there]
    allowed = any(workload.select.allows({"kind": kind}) for kind in kinds)
    return allowed and workload.select.attributes_named <= {"kind"}


_EMPTY: Final = {
    "luns": "the plan has no 'luns', so there is nothing to drive; write luns: { create: { path: ..., size: 1GiB } }, "
    "or select block devices",
    "workloads": "the plan has no 'workloads', so there is no I/O; write workloads: { NAME: { blocksize: 8KiB } }",
    "steps": "the plan has no 'steps', so nothing would run; write steps: [ go: { name: NAME } ]",
}


def check_presence(doc: PlanDoc, lost: set[str], faults: Faults) -> None:
    """There is something to drive, something to do with it, and a step to do it in."""
    for section, text in _EMPTY.items():
        if not getattr(doc, section) and section not in lost:
            faults.add_key((section,), text)
    if (
        doc.steps
        and not any(entry.go or entry.precondition for entry in doc.steps)
        and "steps" not in lost | faults.sections
    ):
        faults.add_key(("steps",), "no step has a 'go', so nothing would run; write - go: { name: NAME }")
