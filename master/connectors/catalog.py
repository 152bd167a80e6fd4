"""The catalog of a connector: its metrics, checked once, and its element instances, which may grow.

Rule: an *element type* is a table, with a column for each metric and a row for each instance. The readings of all
element types of a connector stand in one array of cells, table after table, nan where there is none: what is computed
of them costs little more for ten tables than for one. An instance keeps its row for as long as the run lasts.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...protocol.connector import ElementMetric, ReadingKind, Unit
from ...protocol.payload import Fact
from ..rollup.arrays import Floats
from ..text.metric_amounts import MetricUnit, unit_by_suffix
from .errors import ConnectorFault

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,59}")
LONGEST_INSTANCE: Final = 200
MOST_INSTANCES: Final = 20_000  # of all element types of a connector
MOST_METRICS: Final = 200  # of an element type
_MOST_NAMED: Final = 3  # in a message


@dataclass(slots=True)
class ElementTable:
    """One element type."""

    name: str
    metrics: tuple[ElementMetric, ...]
    rows: dict[str, int] = field(default_factory=dict)  # instance: its row, in order of appearance
    columns: dict[str, int] = field(init=False)  # attribute: its column

    def __post_init__(self) -> None:
        self.columns = {metric.attribute: place for place, metric in enumerate(self.metrics)}

    @property
    def instances(self) -> list[str]:
        return list(self.rows)


@dataclass(frozen=True, slots=True)
class Ignored:
    """The facts of a gather that were not used, and why; three of each kind are named."""

    unknown: tuple[str, ...] = ()  # attributes that were not declared
    text: tuple[str, ...] = ()  # text in the place of a number
    twice: tuple[str, ...] = ()  # the same attribute of an element, with another value
    count: int = 0

    def __str__(self) -> str:
        whys = (("was not declared", self.unknown), ("is text", self.text), ("has two values", self.twice))
        return "; ".join(f"{', '.join(some[:_MOST_NAMED])} {why}" for why, some in whys if some)


@dataclass(frozen=True, slots=True, eq=False)
class CellLayout:
    """Which cells belong to which table, and what each cell's metric is; (cells,) each."""

    tables: Mapping[str, tuple[int, int, int]]  # element type: first cell, rows, columns
    is_counter: NDArray[np.bool_]
    scale: Floats
    span: Floats  # of a counter that wraps, 2**bits; else nan
    per: NDArray[np.intp]  # the cell of the counter that this one is divided by; -1: it is divided by seconds

    def of_table(self, cells: NDArray[Any], name: str) -> NDArray[Any]:
        """(instances, metrics), a view."""
        first, rows, columns = self.tables[name]
        return cells[first : first + rows * columns].reshape(rows, columns)


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """One gather's readings: (cells,), nan where there is none."""

    cells: Floats
    layout: CellLayout
    ignored: Ignored = field(default_factory=Ignored)

    def table(self, name: str) -> Floats:
        """(instances, metrics) of an element type."""
        return self.layout.of_table(self.cells, name)

    def in_layout(self, layout: CellLayout) -> "Values":
        """The same in the layout of later readings, in which there may be more instances."""
        if layout is self.layout:
            return self
        cells = np.full(len(layout.is_counter), np.nan)
        for name in self.layout.tables:
            mine = self.table(name)
            layout.of_table(cells, name)[: len(mine)] = mine
        return Values(cells, layout, self.ignored)


class Catalog:
    """The element types of one connector."""

    def __init__(self, metrics: Sequence[ElementMetric], most: int | None = MOST_INSTANCES) -> None:
        """`most`: instances; None: any number. Raises ConnectorFault that names the first few faults of its metrics."""
        self._most = most
        if faults := list(metric_faults(metrics)):
            more = f"; and {len(faults) - _MOST_NAMED} more" if len(faults) > _MOST_NAMED else ""
            raise ConnectorFault("; ".join(faults[:_MOST_NAMED]) + more, "correct its metrics")
        by_element: dict[str, list[ElementMetric]] = {}
        for metric in metrics:
            by_element.setdefault(metric.element, []).append(metric)
        self.tables = {name: ElementTable(name, tuple(metrics)) for name, metrics in by_element.items()}
        self._instances = 0
        self._layout = _layout(self.tables)
        self._laid_out = 0  # instances of that layout

    def values(self, facts: Sequence[Fact]) -> Values:
        """The readings as arrays. Raises ConnectorFault where there are too many instances."""
        readings: dict[str, dict[int, float]] = {name: {} for name in self.tables}  # cell within the table: reading
        unknown, texts, twice = Counter[str](), Counter[str](), Counter[str]()
        for element, instance, attribute, value in facts:
            table = self.tables.get(element)
            column = None if table is None else table.columns.get(attribute)
            if table is None or column is None:
                unknown[f"{element} {attribute}"] += 1
            elif isinstance(value, str):
                texts[f"{element} {instance} {attribute}"] += 1
            else:
                place = self.row(table, instance) * len(table.metrics) + column
                if readings[element].setdefault(place, value) != value:
                    twice[f"{element} {instance} {attribute}"] += 1
        count = unknown.total() + texts.total() + twice.total()
        return Values(self._cells(readings), self._layout, Ignored(tuple(unknown), tuple(texts), tuple(twice), count))

    @property
    def layout(self) -> CellLayout:
        """The same object for as long as there are no new instances."""
        if self._laid_out != self._instances:
            self._layout, self._laid_out = _layout(self.tables), self._instances
        return self._layout

    def row(self, table: ElementTable, instance: str) -> int:
        """The row of an instance, a new one where it has none. Raises ConnectorFault where there are too many."""
        row = table.rows.get(instance)
        return self._new_row(table, instance) if row is None else row

    def _cells(self, readings: Mapping[str, Mapping[int, float]]) -> Floats:
        cells = np.full(len(self.layout.is_counter), np.nan)
        places = [self._layout.tables[name][0] + place for name, of_table in readings.items() for place in of_table]
        if places:
            cells[places] = [value for of_table in readings.values() for value in of_table.values()]
        return cells

    def _new_row(self, table: ElementTable, instance: str) -> int:
        if not instance or len(instance) > LONGEST_INSTANCE:
            raise ConnectorFault(
                f"an instance of {table.name} has a name of {len(instance)} characters",
                f"names have 1 to {LONGEST_INSTANCE}",
            )
        self._instances += 1
        if self._most is not None and self._instances > self._most:
            raise ConnectorFault(
                f"it has more than {self._most:,} elements", "let it report those that matter, or give groups"
            )
        row = table.rows[instance] = len(table.rows)
        return row


def _layout(tables: Mapping[str, ElementTable]) -> CellLayout:
    places: dict[str, tuple[int, int, int]] = {}
    is_counter, scale, span, per = list[bool](), list[float](), list[float](), list[int]()
    for name, table in tables.items():
        places[name] = len(scale), len(table.rows), len(table.metrics)
        for row in range(len(table.rows)):
            first = places[name][0] + row * len(table.metrics)
            per += [first + table.columns[one.per] if one.per else -1 for one in table.metrics]
        is_counter += [one.kind is ReadingKind.COUNTER for one in table.metrics] * len(table.rows)
        scale += [one.scale for one in table.metrics] * len(table.rows)
        span += [2.0**one.bits if one.bits else np.nan for one in table.metrics] * len(table.rows)
    return CellLayout(places, np.array(is_counter, bool), np.array(scale), np.array(span), np.array(per, np.intp))


def metric_faults(metrics: Sequence[ElementMetric]) -> Iterator[str]:
    """Faults in declared metrics, a sentence each."""
    seen: dict[str, ElementMetric] = {}
    counters = {(metric.element, metric.attribute) for metric in metrics if metric.kind is ReadingKind.COUNTER}
    for place, metric in enumerate(metrics):
        what = f"metric {place} ({metric.element} {metric.attribute})"
        for kind, name in (("element", metric.element), ("attribute", metric.attribute)):
            if not _NAME.fullmatch(name):
                yield f"{what}: {name!r} cannot be an {kind}'s name; use a-z, 0-9 and _"
        full = f"{metric.element}_{metric.attribute}"
        if full in seen:
            yield f"{what}: its name {full} is that of {seen[full].element} {seen[full].attribute}"
        seen.setdefault(full, metric)
        if metric.per and metric.kind is not ReadingKind.COUNTER:
            yield f"{what}: per is for counters, and it is a gauge"
        elif metric.per and ((metric.element, metric.per) not in counters or metric.per == metric.attribute):
            yield f"{what}: per is {metric.per!r}, which is no other counter of {metric.element}"
        if metric.bits and metric.kind is not ReadingKind.COUNTER:
            yield f"{what}: bits is for counters, and it is a gauge"
        if not isfinite(metric.scale) or metric.scale == 0:
            yield f"{what}: scale is {metric.scale:g}; it must be a number other than 0"
        named = unit_by_suffix(metric.attribute)
        if named is not MetricUnit.NONE and named.value != metric.unit.value:
            yield f"{what}: its unit is {_shown(metric.unit)}, and its name says {named}"
    for element, count in Counter(metric.element for metric in metrics).items():
        if count > MOST_METRICS:
            yield f"{element} has {count} metrics; {MOST_METRICS} are enough"


def _shown(unit: Unit) -> str:
    return str(unit) or "none"
