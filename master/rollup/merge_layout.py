"""The merge layout of a step: which classes and instances of which host are merged into which rows. Built once.

Rule: three levels, each a sum of the one before: workload instances, merge classes, rows (rollup instances). Hosts
stand in one order; their instances and their classes are consecutive, so that a host's result is a slice.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .instances import InstanceKey, Rollups
from .partial_merge import MergePlaces

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Reduction:
    """Groups items by a target: exact sums or extremes over an array's first axis."""

    order: Ints  # the items, sorted by target
    starts: Ints  # where each target's run begins in `order`
    targets: Ints  # the target of each run, ascending

    @classmethod
    def by(cls, target_of: Ints) -> "Reduction":
        order = np.argsort(target_of, kind="stable")
        targets, starts = np.unique(target_of[order], return_index=True)
        return cls(order, starts, targets)

    def into(self, out: NDArray[Any], items: NDArray[Any], combine: np.ufunc = np.add) -> None:
        """Write `combine` over each target's items into that row of `out`; other rows are unchanged."""
        if len(self.order):
            first, last = self.order[0], self.order[-1]
            as_they_stand = last - first + 1 == len(self.order) and bool((np.diff(self.order) == 1).all())
            sorted_items = items[first : last + 1] if as_they_stand else items[self.order]
            out[self.targets] = combine.reduceat(sorted_items, self.starts, axis=0)


@dataclass(frozen=True, slots=True)
class MergeLayout:
    """The index arrays of one step. G classes, I instances, R rows, H hosts, T types."""

    rollups: Rollups
    hosts: tuple[str, ...]
    position: Mapping[str, int]  # of a host among H
    numbers: Mapping[str, tuple[int, ...]]  # a host's instances, in `go`'s order
    instances: Mapping[str, slice]  # a host's place among I
    classes: Mapping[str, slice]  # a host's place among G
    class_of: Ints  # (I,)
    class_host: Ints  # (G,)
    class_rows: Ints  # (G, T)
    to_classes: Reduction  # I -> G
    to_rows: tuple[Reduction, ...]  # G -> R, one per type
    direct: tuple[int, ...]  # the types that are a sum of no other type
    between_rows: tuple[Reduction, ...]  # R -> R: the others as sums of a finer one; to be done in this order
    pairs: tuple[Ints, Ints]  # (row, host): every host that has a part in a row, once
    class_pairs: Ints  # (G, T) the pair of each class in its row
    host_count: Ints  # (R,) hosts of each row
    instance_count: Ints  # (R,) workload instances of each row

    @classmethod
    def build(cls, rollups: Rollups, order: Mapping[str, Sequence[int]]) -> "MergeLayout":
        """`order`: per host the numbers of the workload instances that take part, as `go` lists them."""
        instances, classes = {}, {}
        class_of: list[int] = []
        class_host: list[int] = []
        class_rows: list[tuple[int, ...]] = []
        for position, (host, numbers) in enumerate(order.items()):
            of_host = rollups.classes(host, numbers)
            instances[host] = slice(len(class_of), len(class_of) + len(numbers))
            classes[host] = slice(len(class_rows), len(class_rows) + len(of_host.rows))
            class_of.extend(len(class_rows) + one for one in of_host.class_of)
            class_rows.extend(of_host.rows)
            class_host.extend([position] * len(of_host.rows))
        rows = np.array(class_rows, np.int64).reshape(len(class_rows), len(rollups.types))
        hosts = np.array(class_host, np.int64)
        pairs, class_pairs = _pairs(rows, hosts)
        sizes = np.bincount(np.array(class_of, np.int64), minlength=len(class_rows))
        instance_count = np.zeros(len(rollups.rows), np.int64)
        to_rows = tuple(Reduction.by(rows[:, t]) for t in range(len(rollups.types)))
        for reduction in to_rows:
            reduction.into(instance_count, sizes)
        direct, between_rows = _refinements(rows)
        return cls(
            rollups=rollups,
            hosts=tuple(order),
            position={host: i for i, host in enumerate(order)},
            numbers={host: tuple(numbers) for host, numbers in order.items()},
            instances=instances,
            classes=classes,
            class_of=np.array(class_of, np.int64),
            class_host=hosts,
            class_rows=rows,
            to_classes=Reduction.by(np.array(class_of, np.int64)),
            to_rows=to_rows,
            direct=direct,
            between_rows=between_rows,
            pairs=pairs,
            class_pairs=class_pairs,
            host_count=np.bincount(pairs[0], minlength=len(rollups.rows)),
            instance_count=instance_count,
        )

    def of_instances(self, keys: Collection[InstanceKey]) -> NDArray[np.bool_]:
        """(I,) which workload instances are among these (host, number)."""
        return np.array([(host, one) in keys for host in self.hosts for one in self.numbers[host]], bool)

    def over_rows(self, values: Ints, combine: np.ufunc) -> Ints:
        """Values of instances (I,) combined over those of each row: (R,)"""
        classes = np.zeros((len(self.class_host), 1), np.int64)
        rows = np.zeros((len(self.rollups.rows), 1), np.int64)
        self.to_classes.into(classes, values[:, None], combine)
        for reduction in self.to_rows:
            reduction.into(rows, classes, combine)
        found: Ints = rows[:, 0]
        return found

    def rows_of(self, hosts: Collection[str]) -> NDArray[np.bool_]:
        """(R,) the rows in which one of these hosts has a part."""
        rows, positions = self.pairs
        named = np.array([host in hosts for host in self.hosts], bool)
        return np.bincount(rows[named[positions]], minlength=len(self.rollups.rows)) > 0

    def places(self, hosts: Sequence[str] | None = None) -> MergePlaces:
        """Where results are added: those of all hosts, in tables of all rows; or of some hosts, in tables of their
        rows alone."""
        class_rows = {host: self.class_rows[self.classes[host]][:, self.direct] for host in hosts or self.hosts}
        numbers = {host: self.numbers[host] for host in class_rows}
        if hosts is None:
            return MergePlaces(numbers, class_rows, np.arange(len(self.rollups.rows)), self.rollups.sections)
        rows = np.unique(np.concatenate([one.reshape(-1) for one in class_rows.values()]))
        of_rows = {host: rows.searchsorted(one) for host, one in class_rows.items()}
        return MergePlaces(numbers, of_rows, rows, self.rollups.sections)


def _pairs(class_rows: Ints, class_host: Ints) -> tuple[tuple[Ints, Ints], Ints]:
    both = np.stack([class_rows, np.broadcast_to(class_host[:, None], class_rows.shape)], axis=-1).reshape(-1, 2)
    unique, place = np.unique(both, axis=0, return_inverse=True)
    return (unique[:, 0], unique[:, 1]), place.reshape(class_rows.shape)


def _refinements(class_rows: Ints) -> tuple[tuple[int, ...], tuple[Reduction, ...]]:
    """The types that are merged directly, and how the others are sums of a finer one (`host` of `host+port`)."""
    sizes = [len(np.unique(column)) for column in class_rows.T]
    by_size = sorted(range(len(sizes)), key=lambda t: (-sizes[t], t))
    direct, sums = [], []
    for place, coarse in enumerate(by_size):
        finer = [fine for fine in by_size[:place] if len(_together(class_rows, fine, coarse)) == sizes[fine]]
        if finer:
            cheapest = min(finer, key=lambda fine: sizes[fine])
            sums.append(_between(*_together(class_rows, cheapest, coarse).T))
        else:
            direct.append(coarse)
    return tuple(direct), tuple(sums)


def _together(class_rows: Ints, fine: int, coarse: int) -> Ints:
    """The pairs of rows of two types that share a class; as many as `fine` has rows if each of those lies in one."""
    return np.unique(class_rows[:, [fine, coarse]], axis=0)


def _between(fine: Ints, coarse: Ints) -> Reduction:
    by_target = Reduction.by(coarse)
    return Reduction(fine[by_target.order], by_target.starts, by_target.targets)
