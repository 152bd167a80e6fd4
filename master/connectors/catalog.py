"""What a connector has: its metrics, checked once, and its element instances, which may grow.

Rule: an *element type* is a table, with a column for each metric and a row for each instance; readings are arrays of
that shape, nan where there is none. An instance keeps its row for as long as the run lasts.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Final

import numpy as np

from ...protocol.connector import ConnectorConfig, ElementMetric, ReadingKind, Unit
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

    def places(self, kind: ReadingKind) -> list[int]:
        """The columns of gauges, or of counters."""
        return [place for place, metric in enumerate(self.metrics) if metric.kind is kind]


@dataclass(frozen=True, slots=True)
class Ignored:
    """What of a gather's facts was not used, and why; three of each kind are named."""

    unknown: tuple[str, ...] = ()  # attributes that were not declared
    text: tuple[str, ...] = ()  # text in the place of a number
    twice: tuple[str, ...] = ()  # the same attribute of an element, with another value
    count: int = 0

    def __str__(self) -> str:
        whys = (("was not declared", self.unknown), ("is text", self.text), ("has two values", self.twice))
        return "; ".join(f"{', '.join(some[:_MOST_NAMED])} {why}" for why, some in whys if some)


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """One gather's readings: by element type, (instances, metrics), nan where there is none."""

    tables: Mapping[str, Floats]
    ignored: Ignored


class Catalog:
    """The element types of one connector."""

    def __init__(self, config: ConnectorConfig) -> None:
        """Raises ConnectorFault that names the first few faults of its metrics."""
        if faults := list(metric_faults(config.metrics)):
            more = f"; and {len(faults) - _MOST_NAMED} more" if len(faults) > _MOST_NAMED else ""
            raise ConnectorFault("; ".join(faults[:_MOST_NAMED]) + more, "correct its metrics")
        by_element: dict[str, list[ElementMetric]] = {}
        for metric in config.metrics:
            by_element.setdefault(metric.element, []).append(metric)
        self.tables = {name: ElementTable(name, tuple(metrics)) for name, metrics in by_element.items()}
        self._instances = 0

    def values(self, facts: Sequence[Fact]) -> Values:
        """The readings as arrays. Raises ConnectorFault where there are too many instances."""
        found: dict[str, dict[tuple[int, int], float]] = {name: {} for name in self.tables}
        unknown, texts, twice = Counter[str](), Counter[str](), Counter[str]()
        for element, instance, attribute, value in facts:
            table = self.tables.get(element)
            column = None if table is None else table.columns.get(attribute)
            if table is None or column is None:
                unknown[f"{element} {attribute}"] += 1
                continue
            if isinstance(value, str):
                texts[f"{element} {instance} {attribute}"] += 1
                continue
            cells, place = found[element], (self._row(table, instance), column)
            if cells.setdefault(place, value) != value:
                twice[f"{element} {instance} {attribute}"] += 1
        count = unknown.total() + texts.total() + twice.total()
        return Values(
            {name: _array(self.tables[name], cells) for name, cells in found.items()},
            Ignored(tuple(unknown), tuple(texts), tuple(twice), count),
        )

    def _row(self, table: ElementTable, instance: str) -> int:
        row = table.rows.get(instance)
        if row is None:
            if not instance or len(instance) > LONGEST_INSTANCE:
                raise ConnectorFault(
                    f"an instance of {table.name} has a name of {len(instance)} characters",
                    f"names have 1 to {LONGEST_INSTANCE}",
                )
            self._instances += 1
            if self._instances > MOST_INSTANCES:
                raise ConnectorFault(
                    f"it has more than {MOST_INSTANCES:,} elements", "let it report those that matter, or give groups"
                )
            row = table.rows[instance] = len(table.rows)
        return row


def _array(table: ElementTable, cells: Mapping[tuple[int, int], float]) -> Floats:
    found = np.full((len(table.rows), len(table.metrics)), np.nan)
    if cells:
        rows, columns = np.array(list(cells), dtype=np.intp).T
        found[rows, columns] = np.fromiter(cells.values(), np.float64, len(cells))
    return found


def metric_faults(metrics: Sequence[ElementMetric]) -> Iterator[str]:
    """What is wrong with declared metrics, a sentence each."""
    seen: dict[str, ElementMetric] = {}
    counters = {(one.element, one.attribute) for one in metrics if one.kind is ReadingKind.COUNTER}
    for place, one in enumerate(metrics):
        what = f"metric {place} ({one.element} {one.attribute})"
        for kind, name in (("element", one.element), ("attribute", one.attribute)):
            if not _NAME.fullmatch(name):
                yield f"{what}: {name!r} cannot be an {kind}'s name; use a-z, 0-9 and _"
        full = f"{one.element}_{one.attribute}"
        if full in seen:
            yield f"{what}: its name {full} is that of {seen[full].element} {seen[full].attribute}"
        seen.setdefault(full, one)
        if one.per and one.kind is not ReadingKind.COUNTER:
            yield f"{what}: per is for counters, and it is a gauge"
        elif one.per and ((one.element, one.per) not in counters or one.per == one.attribute):
            yield f"{what}: per is {one.per!r}, which is no other counter of {one.element}"
        if one.bits and one.kind is not ReadingKind.COUNTER:
            yield f"{what}: bits is for counters, and it is a gauge"
        if not isfinite(one.scale) or one.scale == 0:
            yield f"{what}: scale is {one.scale:g}; it must be a number other than 0"
        named = unit_by_suffix(one.attribute)
        if named is not MetricUnit.NONE and named.value != one.unit.value:
            yield f"{what}: its unit is {_shown(one.unit)}, and its name says {named}"
    for element, count in Counter(one.element for one in metrics).items():
        if count > MOST_METRICS:
            yield f"{element} has {count} metrics; {MOST_METRICS} are enough"


def _shown(unit: Unit) -> str:
    return str(unit) or "none"
