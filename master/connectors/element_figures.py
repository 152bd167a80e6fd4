"""The metrics of the elements that belong to one rollup instance, over one subinterval: of all its connectors together.

Rule: where a connector that has such elements gave no values, there is no figure for them all: a sum of some would look
like less load.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...protocol.connector import Combine, ElementMetric
from ..rollup.arrays import Floats
from .catalog import Catalog, ElementTable
from .gathered import Gathered
from .membership import Membership, Rows

Family = tuple[str, str]  # a connector's name in the plan, and an element type
Part = tuple["Connected", ElementTable, Rows]  # the elements of one connector that belong to a rollup instance
NOT_PARTICIPATING: Final = -1  # in the place of a rollup row


@dataclass(frozen=True, slots=True, eq=False)
class ElementFigures:
    """An element type in one rollup instance. `missing` of its `elements` gave no values.

    `amounts` and `pers` (metrics,) are sums that add up over subintervals; a value is their ratio, and there is none
    where per is 0. `least` and `most` (metrics,) are of any element, nan where there is none. `complete`: every
    connector that has some of the elements gave values.
    """

    connector: str  # its name in the plan
    element: str
    metrics: tuple[ElementMetric, ...]
    elements: int
    missing: int
    complete: bool
    amounts: Floats
    pers: Floats
    least: Floats
    most: Floats

    @property
    def values(self) -> Floats:
        found = np.full(len(self.pers), np.nan)
        np.divide(self.amounts, self.pers, out=found, where=self.pers > 0)
        return found

    def metric_names(self) -> list[str]:
        """`array.mp_busy_percent`"""
        return [metric_name(self.connector, one) for one in self.metrics]


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


class ElementIndex:
    """Which elements belong to which rollup instance, for all connectors; worked out anew when there are new ones."""

    def __init__(self, connected: Sequence[Connected]) -> None:
        self._connected = tuple(connected)
        self._known = -1  # how many elements there were
        self._parts: dict[int, dict[Family, list[Part]]] = {}

    def families(self, rollup_row: int) -> Mapping[Family, Sequence[Part]]:
        """The element types of a rollup instance, or of NOT_PARTICIPATING, each with its parts."""
        known = sum(len(table.rows) for one in self._connected for table in one.catalog.tables.values())
        if known != self._known:
            self._known = known
            self._parts.clear()
        if rollup_row not in self._parts:
            self._parts[rollup_row] = self._work_out(rollup_row)
        return self._parts[rollup_row]

    def _work_out(self, rollup_row: int) -> dict[Family, list[Part]]:
        found: dict[Family, list[Part]] = {}
        for one in self._connected:
            for table in one.catalog.tables.values():
                if rollup_row == NOT_PARTICIPATING:
                    rows = one.membership.not_participating(table)
                else:
                    rows = one.membership.rows(table, rollup_row)
                if len(rows):
                    found.setdefault((one.name, table.name), []).append((one, table, rows))
        return found


def figures_of(
    index: ElementIndex, found: Mapping[str, Gathered], rollup_row: int, family: Family | None = None
) -> Iterator[ElementFigures]:
    """For each element type of a rollup instance, or for one. `found`: the gathers of a subinterval, by title."""
    families = index.families(rollup_row)
    for key in families if family is None else [family] if family in families else []:
        yield _figures(key, families[key], found)


def _figures(family: Family, parts: Sequence[Part], found: Mapping[str, Gathered]) -> ElementFigures:
    metrics = {metric.attribute: metric for _, table, _ in parts for metric in table.metrics}
    elements, complete = sum(len(rows) for _, _, rows in parts), True
    amounts, pers = np.zeros((elements, len(metrics))), np.zeros((elements, len(metrics)))
    place = 0
    for one, table, rows in parts:
        gathered = found.get(one.title)
        if gathered is None or not gathered.has_values:
            complete = False
        else:
            ratios = gathered.ratios[table.name]
            known = rows[rows < len(ratios.amounts)]
            columns = [list(metrics).index(metric.attribute) for metric in table.metrics]
            there = np.ix_(range(place, place + len(known)), columns)
            amounts[there], pers[there] = ratios.amounts[known], ratios.pers[known]
        place += len(rows)
    missing = elements - int(np.count_nonzero((pers > 0).any(axis=1)))
    if not complete:
        amounts[:], pers[:] = 0.0, 0.0
    return ElementFigures(
        *family, tuple(metrics.values()), elements, missing, complete, *_combined([*metrics.values()], amounts, pers)
    )


def _combined(metrics: Sequence[ElementMetric], amounts: Floats, pers: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """(amounts, pers, least, most), each (metrics,), of several elements together."""
    has = pers > 0
    values = np.full(amounts.shape, np.nan)
    np.divide(amounts, pers, out=values, where=has)
    counts, total, below = has.sum(axis=0), amounts.sum(axis=0), pers.sum(axis=0)
    least = np.where(counts > 0, np.where(has, values, np.inf).min(axis=0, initial=np.inf), np.nan)
    most = np.where(counts > 0, np.where(has, values, -np.inf).max(axis=0, initial=-np.inf), np.nan)
    for place, metric in enumerate(metrics):
        if metric.per or not counts[place] or metric.combine is Combine.MEAN:
            continue
        below[place] /= counts[place]  # of elements, each over its own time
        whole = most[place] if metric.combine is Combine.MAX else values[has[:, place], place].sum()
        total[place] = whole * below[place]
    return total, below, least, most
