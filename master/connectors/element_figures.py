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
from .gathered import Gathered, HostsGathered
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
    catalog: Catalog
    membership: Membership


@dataclass(frozen=True, slots=True, eq=False)
class FamilyLayout:
    """The elements of one family, and which rollup rows they belong to."""

    family: Family
    metrics: tuple[ElementMetric, ...]
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
        layouts = [_layout(one, table) for one in self._connected for table in one.catalog.tables.values()]
        return {layout.family: layout for layout in layouts if layout is not None}


def _layout(connected: Connected, table: ElementTable) -> FamilyLayout | None:
    """None where no element of that type is anybody's."""
    count, membership = len(table.rows), connected.membership
    members: dict[int, NDArray[np.intp]] = {}
    for row in membership.rollup_rows:
        if len(rows := _before(membership.rows(table, row), count)):
            members[row] = rows
    if len(others := _before(membership.not_participating(table), count)):
        members[NOT_PARTICIPATING] = others
    if not members:
        return None
    starts = np.cumsum([0, *(len(rows) for rows in members.values())])[:-1]
    return FamilyLayout(
        (connected.name, table.name), table.metrics, count, tuple(members), np.concatenate([*members.values()]),
        starts.astype(np.intp),
    )  # fmt: skip


def _before(rows: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """Without those that have come meanwhile: another thread reads."""
    return rows[rows < count]


def family_figures(layout: FamilyLayout, gathers: Mapping[str, Gathered | HostsGathered]) -> FamilyFigures:
    """`gathers`: those of one subinterval, by connector."""
    shape = layout.elements, len(layout.metrics)
    amounts, pers, unknown = np.zeros(shape), np.zeros(shape), np.zeros(shape, bool)
    gathered = np.zeros(layout.elements, bool)
    connector, element = layout.family
    gather = gathers.get(connector)
    if gather is not None and gather.has_values:
        ratios = gather.rates.tables[element]
        rows = min(len(ratios.amounts), layout.elements)  # elements may have come since
        amounts[:rows], pers[:rows], unknown[:rows] = ratios.amounts[:rows], ratios.pers[:rows], ratios.unknown[:rows]
        gathered = gather.present(element, layout.elements)
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
