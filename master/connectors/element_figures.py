"""The metrics of the elements that belong to one rollup instance, over one subinterval: of all its connectors together.

Rule: where a connector that has such elements gave no values, there is no figure for them all: a sum of some would look
like less load.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...protocol.connector import ElementMetric
from ..rollup.arrays import Floats
from .catalog import Catalog, ElementTable
from .counter_rates import combine
from .gathered import Gathered
from .membership import Membership, Rows


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """A metric over some elements; nan where there is no value."""

    metric: ElementMetric
    amount: float
    per: float
    least: float = float("nan")  # of any element
    most: float = float("nan")

    @property
    def value(self) -> float:
        return self.amount / self.per if self.per > 0 else float("nan")


@dataclass(frozen=True, slots=True, eq=False)
class ElementFigures:
    """An element type in one rollup instance; `missing` of its `elements` gave no values.

    `complete`: every connector that has some of them gave values.
    """

    connector: str  # its name in the plan
    element: str
    elements: int
    missing: int
    complete: bool
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class Connected:
    """A connector in a run: what it has, and which of it belongs where."""

    name: str
    title: str
    catalog: Catalog
    membership: Membership


@dataclass(slots=True)
class _Family:
    """An element type over all connectors of one name."""

    metrics: dict[str, ElementMetric] = field(default_factory=dict)  # by attribute
    amounts: dict[str, list[Floats]] = field(default_factory=dict)
    pers: dict[str, list[Floats]] = field(default_factory=dict)
    elements: int = 0
    missing: int = 0
    complete: bool = True


def figures_of_row(
    connected: Sequence[Connected], found: Mapping[str, Gathered], rollup_row: int | None
) -> Iterator[ElementFigures]:
    """For each element type that belongs to a rollup instance; None: those that do not participate.

    `found`: the gathers of one subinterval, by the connector's title.
    """
    families: dict[tuple[str, str], _Family] = {}
    for one in connected:
        for table in one.catalog.tables.values():
            rows = _rows(one.membership, table, rollup_row)
            if len(rows):
                _add(families.setdefault((one.name, table.name), _Family()), table, found.get(one.title), rows)
    for (name, element), family in families.items():
        figures = tuple(_figures(family))
        yield ElementFigures(name, element, family.elements, family.missing, family.complete, figures)


def _rows(membership: Membership, table: ElementTable, rollup_row: int | None) -> Rows:
    return membership.not_participating(table) if rollup_row is None else membership.rows(table, rollup_row)


def _add(family: _Family, table: ElementTable, found: Gathered | None, rows: Rows) -> None:
    family.elements += len(rows)
    family.metrics |= {metric.attribute: metric for metric in table.metrics}
    if found is None or not found.has_values:
        family.missing += len(rows)
        family.complete = False
        return
    ratios = found.ratios[table.name]
    known = rows[rows < len(ratios.amounts)]
    family.missing += len(rows) - int(np.count_nonzero((ratios.pers[known] > 0).any(axis=1)))
    for column, metric in enumerate(table.metrics):
        family.amounts.setdefault(metric.attribute, []).append(ratios.amounts[known, column])
        family.pers.setdefault(metric.attribute, []).append(ratios.pers[known, column])


def _figures(family: _Family) -> Iterable[Figure]:
    for attribute, metric in family.metrics.items():
        if not family.complete:
            yield Figure(metric, 0.0, 0.0)
            continue
        amounts, pers = (np.concatenate(one[attribute]) for one in (family.amounts, family.pers))
        has = pers > 0
        values = amounts[has] / pers[has]
        least, most = (float(values.min()), float(values.max())) if len(values) else (float("nan"),) * 2
        yield Figure(metric, *combine(metric, amounts, pers), least, most)
