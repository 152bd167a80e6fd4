"""Which reads and writes the instances of a workload may do in a step, known before there are any instances.

Rule: an edit of some rollup instances divides a workload into those that it reaches and those that it does not.
What divides it is remembered, so that two edits of different hosts are never thought to meet in one instance.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import merge
from operator import itemgetter
from typing import Any, Final

from ....protocol.parameters import Iosequencer, Operation
from ...rollup.instances import ALL
from ...text.mixes import Operations, shares_of
from ...text.plan_parameters import with_reads
from ..model import Edit, Step, Workload
from ..steps import Schedule

HOST, WORKLOAD = "host", "workload"
DECIDES: Final = ("iosequencer", "fraction_read", "operations")
MOST_PARTS: Final = 64  # parts of one workload that are kept apart


@dataclass(frozen=True, slots=True)
class InstanceSet:
    """Some of a rollup type's instances: these, or all but these."""

    names: frozenset[str]
    inside: bool

    def within(self, names: frozenset[str]) -> "InstanceSet":
        return InstanceSet(self.names & names, True) if self.inside else InstanceSet(names - self.names, True)

    def without(self, names: frozenset[str]) -> "InstanceSet":
        return InstanceSet(self.names - names, True) if self.inside else InstanceSet(self.names | names, False)

    def exists(self, universe: Collection[str] | None) -> bool:
        """Whether anything is left; `universe` are all instances there are, where that is known."""
        if self.inside:
            return bool(self.names)
        return universe is None or not self.names >= set(universe)


EVERYTHING: Final = InstanceSet(frozenset(), False)


@dataclass(frozen=True, slots=True)
class Mix:
    iosequencer: Iosequencer
    fraction_read: float
    operations: Operations = ()  # in place of reads and writes
    edited: bool = False  # differs from the workload as it was created
    certain: bool = True  # False: there were too many parts to tell apart, so perhaps no instance has this mix
    parts: Mapping[str, InstanceSet] = field(default_factory=dict)  # rollup type -> the instances that have this mix

    @property
    def shares(self) -> Mapping[Operation, float]:
        """Of the operations that it has."""
        return dict(shares_of(self.operations, self.fraction_read))


def created(workload: Workload) -> list[Mix]:
    """The one mix that all instances have before any edit."""
    settings = workload.parameters
    return [Mix(settings.iosequencer, settings.fraction_read, settings.operations)]


def after(mixes: list[Mix], edit: Edit, workload: str, hosts: Collection[str]) -> list[Mix]:
    """Every mix that instances of `workload` may have after `edit`, given those before it."""
    changes = with_reads({name: edit.changes[name] for name in DECIDES if name in edit.changes})
    if not changes:
        return mixes
    names = _reached(edit, workload)
    made = [new for mix in mixes for new in _edited(mix, edit.rollup, names, changes, hosts)]
    return made if len(made) <= MOST_PARTS and all(mix.certain for mix in made) else _blurred(made)


@dataclass(frozen=True, slots=True)
class Deciding:
    """A schedule's steps, and of its edits those that decide a mix, by the workloads that they may reach; each with the
    number of its entry."""

    steps: Sequence[tuple[int, Step]]
    of_all: Sequence[tuple[int, Edit]]
    of_one: Mapping[str, Sequence[tuple[int, Edit]]]  # by the workload's name
    looped: bool  # loops decide, too

    @classmethod
    def of(cls, schedule: Schedule) -> "Deciding":
        of_all: list[tuple[int, Edit]] = []
        of_one: defaultdict[str, list[tuple[int, Edit]]] = defaultdict(list)
        for i, edit in schedule.edits():
            if not _decides(edit.changes):
                continue
            named = dict.fromkeys(edit.instances) if edit.rollup == WORKLOAD else ()
            for reached in [of_one[name] for name in named] or [of_all]:
                reached.append((i, edit))
        steps = [*schedule.steps()]
        return cls(steps, of_all, of_one, any(_decides(step.loop) for _, step in steps))

    def may_change(self, workload: Workload) -> bool:
        """Whether its mix is not that of its creation in every step."""
        return bool(self.of_all or self.of_one.get(workload.name)) or self.looped

    def possible(self, workload: Workload, hosts: Collection[str]) -> Iterator[tuple[int, Step, Mix]]:
        """Every mix that the workload may have in every step, with the step and its entry."""
        mixes = created(workload)
        own = self.of_one.get(workload.name, ())
        by_entry: tuple[Sequence[tuple[int, Edit | Step]], ...] = (self.of_all, own, self.steps)
        entries = merge(*by_entry, key=itemgetter(0))
        for i, entry in entries:
            if isinstance(entry, Edit):
                mixes = after(mixes, entry, workload.name, hosts)
            else:
                looped = Edit(ALL, (), entry.loop, entry.place)
                yield from ((i, entry, mix) for mix in after(mixes, looped, workload.name, hosts))


def _decides(changes: Mapping[str, Any]) -> bool:
    return not changes.keys().isdisjoint(DECIDES)


def _blurred(mixes: Iterable[Mix]) -> list[Mix]:
    """One mix for each kind of mix: few, and none forgotten."""
    kinds: dict[tuple[Iosequencer, frozenset[Operation]], Mix] = {}
    for mix in mixes:
        kind = (mix.iosequencer, frozenset(mix.shares))
        kinds.setdefault(kind, replace(mix, certain=False, parts={}))
    return list(kinds.values())


def _reached(edit: Edit, workload: str) -> frozenset[str] | None:
    """The rollup instances through which an edit reaches `workload`; None for all of them."""
    if edit.rollup == ALL or not edit.instances:
        return None
    by = edit.rollup.split("+")
    if WORKLOAD not in by:
        return frozenset(edit.instances)
    reached = frozenset(name for name in edit.instances if value_of(name, by, WORKLOAD) in (workload, None))
    return None if by == [WORKLOAD] and reached else reached


def value_of(instance: str, by: list[str], attribute: str) -> str | None:
    """The value of one attribute in a rollup instance's name; None if the name does not have that many values."""
    values = instance.split("+") if len(by) > 1 else [instance]
    if len(values) != len(by):
        return None
    value = values[by.index(attribute)]
    return value.replace("%2B", "+").replace("%25", "%") if len(by) > 1 else value


def _edited(
    mix: Mix, rollup: str, names: frozenset[str] | None, changes: Mapping[str, Any], hosts: Collection[str]
) -> Iterator[Mix]:
    if names is None:
        yield replace(mix, edited=True, **changes)
        return
    universe = hosts if rollup == HOST else None
    part = mix.parts.get(rollup, EVERYTHING)
    if (reached := part.within(names)).exists(universe):
        yield replace(mix, edited=True, parts={**mix.parts, rollup: reached}, **changes)
    if (rest := part.without(names)).exists(universe):
        yield replace(mix, parts={**mix.parts, rollup: rest})
