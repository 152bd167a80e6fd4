"""The metrics of the elements that belong to one rollup instance, over one subinterval: of all its connectors together.

Rule: where the value of one of them is not known, because its connector gave none or its counter was reset, there is no
figure for them all: a sum of the others would look like less load.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...protocol.connector import Combine, ElementMetric
from ..rollup.arrays import Floats
from .catalog import Catalog, ElementTable
from .gathered import Gathered
from .membership import Membership

Family = tuple[str, str]  # a connector's name in the plan, and an element type
NOT_PARTICIPATING: Final = -1  # in the place of a rollup row


def metric_name(connector: str, metric: ElementMetric) -> str:
    """The full name of a metric."""
    return f"{connector}.{metric.element}_{metric.attribute}"


@dataclass(frozen=True, slots=True)
class Connected:
    """A connector in a run: what it has, and which of it belongs where."""

    name: str
    title: str
    catalog: Catalog
    membership: Membership


@dataclass(frozen=True, slots=True, eq=False)
class FamilyLayout:
    """The elements of one family, those of its connectors one after the other, and which rollup rows they belong to."""

    family: Family
    metrics: tuple[ElementMetric, ...]  # of all its connectors together
    parts: tuple[tuple[str, str, int, int, tuple[int, ...]], ...]  # title, element type, first, how many, its columns
    elements: int
    rows: tuple[int, ...]  # rollup rows that have some of them; NOT_PARTICIPATING last
    members: NDArray[np.intp]  # the elements of each of these rows, one row after the other
    starts: NDArray[np.intp]  # (rows,) where each row's begin in `members`

    @property
    def others(self) -> frozenset[int]:
        """The elements that do not participate."""
        if self.rows[-1] != NOT_PARTICIPATING:
            return frozenset()
        return frozenset(self.members[self.starts[-1] :].tolist())

    @property
    def counts(self) -> NDArray[np.intp]:
        """(rows,) how many elements each row has."""
        return np.diff(np.append(self.starts, len(self.members)))


@dataclass(frozen=True, slots=True, eq=False)
class FamilyFigures:
    """The figures of a family in one subinterval, of all rollup rows: (rows, metrics) each.

    `amounts` and `pers` are sums that add up over subintervals; a value is their ratio, and there is none where per is
    0: what rose there, while its divisor stood still, belongs to the sum over time. `least` and `most` are of any
    element, nan where there is none. `missing` of a row's elements gave no values. `complete`: every connector that has
    some of them gave values.
    """

    layout: FamilyLayout
    missing: NDArray[np.intp]  # (rows,)
    complete: NDArray[np.bool_]  # (rows,)
    amounts: Floats
    pers: Floats
    least: Floats
    most: Floats

    @property
    def values(self) -> Floats:
        """nan where there is none."""
        found = np.full(self.amounts.shape, np.nan)
        np.divide(self.amounts, self.pers, out=found, where=self.pers > 0)
        return found


class ElementIndex:
    """Which elements belong to which rollup instance, for all connectors; worked out anew when there are new ones."""

    def __init__(self, connected: Sequence[Connected]) -> None:
        self._connected = tuple(connected)
        self._known = -1  # how many elements there were
        self._families: dict[Family, FamilyLayout] = {}

    @property
    def families(self) -> Mapping[Family, FamilyLayout]:
        """The same object for as long as there are no new elements."""
        known = sum(len(table.rows) for one in self._connected for table in one.catalog.tables.values())
        if known != self._known:
            self._known, self._families = known, self._work_out()
        return self._families

    def _work_out(self) -> dict[Family, FamilyLayout]:
        parts: dict[Family, list[tuple[Connected, ElementTable]]] = {}
        for one in self._connected:
            for table in one.catalog.tables.values():
                parts.setdefault((one.name, table.name), []).append((one, table))
        return {
            family: _layout(family, of_family)
            for family, of_family in parts.items()
            if any(table.rows for _, table in of_family)
        }


def _layout(family: Family, tables: Sequence[tuple[Connected, ElementTable]]) -> FamilyLayout:
    metrics = {metric.attribute: metric for _, table in tables for metric in table.metrics}
    columns = {attribute: place for place, attribute in enumerate(metrics)}
    parts, first = [], 0
    members: dict[int, list[NDArray[np.intp]]] = {}
    for connected, table in tables:
        if not (count := len(table.rows)):
            continue  # its metrics count: a header that is written has all of them
        parts.append((connected.title, table.name, first, count, tuple(columns[name] for name in table.columns)))
        for row in connected.membership.rollup_rows:
            if len(rows := _before(connected.membership.rows(table, row), count)):
                members.setdefault(row, []).append(rows + first)
        if len(others := _before(connected.membership.not_participating(table), count)):
            members.setdefault(NOT_PARTICIPATING, []).append(others + first)
        first += count
    wanted = (*sorted(members.keys() - {NOT_PARTICIPATING}), *({NOT_PARTICIPATING} & members.keys()))
    lists = [np.concatenate(members[row]) for row in wanted]
    starts = np.cumsum([0, *(len(rows) for rows in lists)])[:-1]
    return FamilyLayout(
        family, tuple(metrics.values()), tuple(parts), first, wanted, np.concatenate(lists), starts.astype(np.intp)
    )


def _before(rows: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """Without those that have come meanwhile: another thread reads."""
    return rows[rows < count]


def family_figures(layout: FamilyLayout, gathers: Mapping[str, Gathered]) -> FamilyFigures:
    """`gathers`: those of one subinterval, by the connector's title."""
    shape = layout.elements, len(layout.metrics)
    amounts, pers, unknown = np.zeros(shape), np.zeros(shape), np.zeros(shape, bool)
    gathered = np.zeros(layout.elements, bool)
    for title, element, first, count, columns in layout.parts:
        gather = gathers.get(title)
        if gather is None or not gather.has_values:
            continue
        ratios = gather.rates.tables[element]
        present_rows = min(len(ratios.amounts), count)  # elements may have come since
        cells = slice(first, first + present_rows), list(columns)
        amounts[cells], pers[cells] = ratios.amounts[:present_rows], ratios.pers[:present_rows]
        unknown[cells] = ratios.unknown[:present_rows]
        gathered[first : first + count] = True
    complete = np.logical_and.reduceat(gathered[layout.members], layout.starts)
    known = ~np.logical_or.reduceat(unknown[layout.members], layout.starts, axis=0) & complete[:, None]
    return _combined(layout, amounts[layout.members], pers[layout.members], complete, known)


def _combined(
    layout: FamilyLayout, amounts: Floats, pers: Floats, complete: NDArray[np.bool_], known: NDArray[np.bool_]
) -> FamilyFigures:
    """From the elements of each rollup row, one row after the other, to the figures of each.

    `known` (rows, metrics): whether all of its elements' values are.
    """
    has, starts = pers > 0, layout.starts
    values = np.full(amounts.shape, np.nan)
    np.divide(amounts, pers, out=values, where=has)
    counts = np.add.reduceat(has, starts, axis=0, dtype=np.intp)
    total, below = np.add.reduceat(amounts, starts, axis=0), np.add.reduceat(pers, starts, axis=0)
    sums = np.add.reduceat(np.where(has, values, 0.0), starts, axis=0)
    most = np.maximum.reduceat(np.where(has, values, -np.inf), starts, axis=0)
    least = np.minimum.reduceat(np.where(has, values, np.inf), starts, axis=0)
    for place, metric in enumerate(layout.metrics):
        if metric.per or metric.combine is Combine.MEAN:
            continue
        below[:, place] /= np.maximum(counts[:, place], 1)  # of elements, each over its own time
        whole = most if metric.combine is Combine.MAX else sums
        total[:, place] = np.where(counts[:, place] > 0, whole[:, place], 0.0) * below[:, place]
    shown = (counts > 0) & known
    missing = layout.counts - np.add.reduceat(has.any(axis=1), starts, dtype=np.intp)
    return FamilyFigures(
        layout, missing, complete, np.where(known, total, 0.0), np.where(shown, below, 0.0),
        np.where(shown, least, np.nan), np.where(shown, most, np.nan),
    )  # fmt: skip
