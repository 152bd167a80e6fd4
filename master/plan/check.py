"""What one section of a plan says of another: names that must be known, and combinations that must not run.

Rule: only what is certain without the test hosts. A name of something that was itself faulty, and so was taken
out, is not called unknown.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from .document import Faults, Path
from .fields import written
from .mixes import DECIDES, HOST, WORKLOAD, Mix, mixes, value_of
from .model import ALL, Edit, LunSelection, Step, Workload
from .parameters import OfStep
from .steps import clause, given
from .syntax import PlanDoc
from .units import format_fraction
from .words import listed, nearest, suggestion

Numbered = list[tuple[int, Step]]  # a step, and its entry under `steps:`


@dataclass(frozen=True, slots=True)
class Known:
    """The names that a plan defines; None where some of them were lost to a fault."""

    hosts: Collection[str] | None
    workloads: Collection[str] | None
    rollups: Collection[str] | None
    attributes: Collection[str]


def check_names(numbered: Numbered, faults: Faults) -> None:
    """No two steps have one name."""
    seen: dict[str, int] = {}
    for entry, step in numbered:
        first = seen.setdefault(step.name, entry)
        if first != entry:
            line = faults.document.key_place(("steps", first, "go")).line
            faults.add(("steps", entry, "go", "name"), f"a step is called {step.name!r} already, in line {line}")


def check_edits(doc: PlanDoc, known: Known, faults: Faults) -> None:
    """An edit names a rollup type of the plan, and hosts and workloads of the plan."""
    for i, entry in enumerate(doc.steps):
        if entry.edit is None:
            continue
        path: Path = ("steps", i, "edit", "rollup")
        try:
            rollup, instances = clause(entry.edit.rollup)
        except ValueError:
            continue  # told when the step was resolved
        for text in _clause_faults(rollup, instances, known):
            faults.add(path, text)


def _clause_faults(rollup: str, instances: Iterable[str], known: Known) -> Iterator[str]:
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


def check_references(doc: PlanDoc, numbered: Numbered, complete: bool, faults: Faults) -> None:
    """`50% of step max` names a step that runs before. `complete`: no step was lost to a fault."""
    entry_of: dict[str, int] = {}
    for entry, step in numbered:
        entry_of.setdefault(step.name, entry)
    for name, workload in doc.workloads.items():
        if isinstance(getattr(workload, "iops", None), OfStep):
            faults.add(
                ("workloads", name, "iops"), "no step has run when a workload begins; set this in an edit before a 'go'"
            )
    for entry, path, reference in _references(doc):
        where = entry_of.get(reference.step)
        if where is None and complete:
            passes = [n for n in entry_of if n.startswith(f"{reference.step}+")]
            remedy = f"; it is a loop: name a pass, {listed(passes, 3)}" if passes else ""
            unknown = remedy or (suggestion(reference.step, entry_of) if entry_of else "")
            faults.add(path, f"the plan has no step {reference.step!r}{unknown}")
        elif where is not None and where >= entry:
            faults.add(path, f"step {reference.step!r} does not run before this; only an earlier step has results")


def _references(doc: PlanDoc) -> Iterator[tuple[int, Path, OfStep]]:
    """Every reference to a step: the entry it stands in, its place, itself."""
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


def check_mixes(
    workloads: Iterable[Workload], numbered: Numbered, luns: LunSelection, destroy: bool, hosts: Collection[str],
    faults: Faults,
) -> None:  # fmt: skip
    """No instance is ever sequential and mixed, and what is written on block devices has been agreed to."""
    for workload in workloads:
        told = set[int]()
        writes: tuple[Mix, Step] | None = None
        for entry, step, found in _by_step(workload, numbered, hosts):
            for mix in found:
                if mix.fraction_read < 1.0 and writes is None:
                    writes = (mix, step)
                if not mix.allowed and entry not in told:
                    told.add(entry if mix.edited else -1)
                    _mixed(workload, mix, entry, step, faults)
        if writes and not destroy and luns.select is not None and _takes_blocks(workload):
            mix, step = writes
            share = format_fraction(mix.fraction_read) + (f" in step {step.name!r}" if mix.edited else "")
            faults.add_key(
                ("workloads", workload.name),
                f"workload {workload.name!r} writes (fraction_read {share}) and may be placed on block devices, whose "
                "content would be lost; if that is meant, the plan needs 'destroy: true' and `ivypy run` needs "
                "--destroy TOKEN, which `ivypy devices` prints",
            )


def _by_step(workload: Workload, numbered: Numbered, hosts: Collection[str]) -> Iterator[tuple[int, Step, list[Mix]]]:
    """The mixes of a workload in every step; steps whose edits decide nothing new share them."""
    known: dict[Any, list[Mix]] = {}
    for entry, step in numbered:
        deciding = [edit for edit in step.edits if any(name in edit.changes for name in DECIDES)]
        key = tuple(_decision(edit) for edit in deciding)
        if key not in known:
            known[key] = mixes(workload, deciding, hosts)
        yield entry, step, known[key]


def _decision(edit: Edit) -> tuple[object, ...]:
    return edit.rollup, edit.instances, *(edit.changes.get(name) for name in DECIDES)


def _mixed(workload: Workload, mix: Mix, entry: int, step: Step, faults: Faults) -> None:
    rule = "a sequential workload reads (100%) or writes (0%)"
    share = written("fraction_read", mix.fraction_read)
    if mix.edited:
        text = (
            f"workload {workload.name!r} would be sequential with fraction_read {share} in step {step.name!r}; {rule}"
        )
        faults.add_key(("steps", entry, "go"), text)
    else:
        faults.add(("workloads", workload.name, "fraction_read"), f"fraction_read is {share}; {rule}")


def _takes_blocks(workload: Workload) -> bool:
    return workload.select is None or workload.select.allows({"kind": "block"})


_EMPTY: Final = {
    "luns": "the plan has no 'luns', so there is nothing to drive; write luns: { create: { path: ..., size: 1GiB } }, "
    "or select block devices",
    "workloads": "the plan has no 'workloads', so there is no I/O; write workloads: { NAME: { blocksize: 8KiB } }",
    "steps": "the plan has no 'steps', so nothing would run; write steps: [ go: { name: NAME } ]",
}


def check_presence(doc: PlanDoc, lost: Collection[str], faults: Faults) -> None:
    """There is something to drive, something to do with it, and a step to do it in."""
    for section, text in _EMPTY.items():
        if not getattr(doc, section) and section not in lost:
            faults.add_key((section,), text)
    if doc.steps and not any(entry.go for entry in doc.steps) and "steps" not in lost:
        faults.add_key(("steps",), "no step has a 'go', so nothing would run; write - go: { name: NAME }")
