"""connectors.sqlite: what elements of each rollup instance came to in each subinterval, as sums that add up.

Rule: a row for each subinterval, so that any window that control chooses can be summed when a step has ended, and
memory does not grow with its length.
"""

import json
import sqlite3
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import numpy as np

from ...protocol.lines import inflated
from ..connectors.connector_spec import OTHERS
from ..connectors.element_figures import NOT_PARTICIPATING, FamilyFigures, FamilyLayout, metric_name
from ..errors import OutputError
from ..rollup.arrays import Floats
from ..rollup.instances import Rollups
from ..text.foreign_json import json_of
from .csv_text import not_written
from .full_disk import patiently
from .run_files import check_run_file

VERSION: Final = 2
ROWS_AT_ONCE: Final = 16  # of a thousand values and more each
SCHEMA: Final = """
-- of which values an array is: JSON, [[[rollup type, instance] ...], connector, element type,
-- [[metric, unit, attribute] ...], elements of each rollup instance] for each element type; its values are those of the
-- first instance, then of the next
CREATE TABLE layout (number INTEGER PRIMARY KEY, parts TEXT NOT NULL UNIQUE);
-- zlib of little-endian f8 (2, values): amounts and pers; a value is their ratio, there is none where per is 0
CREATE TABLE sums (
    step INTEGER NOT NULL, subinterval INTEGER NOT NULL, layout INTEGER NOT NULL, sums BLOB NOT NULL,
    PRIMARY KEY (step, subinterval)
) WITHOUT ROWID;
"""


NEWEST: Final = -1  # in the place of a subinterval
MOST_READ: Final = 1_000  # subintervals at once
_Key = tuple[str, str, str, str]  # rollup type, instance, metric, unit


@dataclass(frozen=True, slots=True)
class SubintervalValue:
    """A metric of one rollup instance in a subinterval."""

    subinterval: int
    connector: str
    element: str
    attribute: str
    metric: str
    unit: str
    value: float


@dataclass(frozen=True, slots=True)
class WindowValue:
    """A metric of one rollup instance over a window."""

    kind: str  # the rollup type; OTHERS, of elements that do not participate
    instance: str
    metric: str
    unit: str
    value: float
    least: float
    most: float
    subintervals: int  # with a value
    elements: int


class ConnectorSums:
    """The file, made with the first row. Whatever the disk does not take raises OutputError."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._base: sqlite3.Connection | None = None
        self._layouts: dict[str, int] = {}
        self._newest: tuple[tuple[FamilyLayout, ...], int] | None = None  # with its number

    def add(self, step: int, subinterval: int, figures: Sequence[FamilyFigures], rollups: Rollups) -> None:
        """One subinterval."""
        values = [[one.amounts.ravel() for one in figures], [one.pers.ravel() for one in figures]]
        sums = zlib.compress(np.concatenate([*values[0], *values[1]]).astype("<f8").tobytes(), 1)
        try:
            base = self._opened()
            number = self._number(base, tuple(one.layout for one in figures), rollups)
            row = step, subinterval, number, sums
            patiently(lambda: base.execute("INSERT OR REPLACE INTO sums VALUES (?, ?, ?, ?)", row))
        except sqlite3.Error as error:
            raise not_written(self._path, error) from error

    def _number(self, base: sqlite3.Connection, layouts: tuple[FamilyLayout, ...], rollups: Rollups) -> int:
        """Of the layout of these families, which stay the same for most of a run."""
        if self._newest is None or any(one is not other for one, other in zip_longest(self._newest[0], layouts)):
            parts = json.dumps([_part(one, rollups) for one in layouts])
            number = self._layouts.get(parts)
            if number is None:
                number = self._layouts[parts] = len(self._layouts)
                patiently(lambda: base.execute("INSERT INTO layout VALUES (?, ?)", (number, parts)))
            self._newest = layouts, number
        return self._newest[1]

    def window(self, step: int, first: int, last: int, without: Collection[int]) -> list[WindowValue]:
        """Every metric of every rollup instance over a window; in any thread. Raises OutputError."""
        if self._base is None:
            return []
        try:
            with closing(sqlite3.connect(self._path, isolation_level=None)) as base:
                return _window(base, step, first, last, without)
        except sqlite3.Error as error:
            raise OutputError(f"{self._path}: not read: {error}") from error

    def close(self) -> None:
        if self._base is not None:
            self._base.close()

    def _opened(self) -> sqlite3.Connection:
        if self._base is None:
            self._base = patiently(lambda: _made(self._path))
        return self._base


def _made(path: Path) -> sqlite3.Connection:
    """A new file. Raises sqlite3.Error."""
    base = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        base.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = {VERSION}; COMMIT")
    except sqlite3.Error:
        base.close()
        raise
    return base


def _window(base: sqlite3.Connection, step: int, first: int, last: int, without: Collection[int]) -> list[WindowValue]:
    totals: dict[int, _Totals] = {}  # by layout, in the order of the subintervals
    query = (
        "SELECT subinterval, layout, sums FROM sums WHERE step = ? AND subinterval BETWEEN ? AND ?"
        " ORDER BY subinterval LIMIT ?"
    )  # a few at once: a long measurement has more than memory holds, and nobody can write meanwhile
    while rows := base.execute(query, (step, first, last, ROWS_AT_ONCE)).fetchall():
        for subinterval, layout, packed in rows:
            if subinterval not in without:
                sums = np.frombuffer(inflated(packed), "<f8").reshape(2, -1)
                totals.setdefault(layout, _Totals(sums.shape[1])).add(sums)
        first = rows[-1][0] + 1
    layouts = dict(base.execute("SELECT number, parts FROM layout"))
    total_of: dict[_Key, _Total] = {}
    for layout, of_layout in totals.items():
        _add(total_of, json_of(layouts[layout]), of_layout)
    return [total.value(key) for key, total in total_of.items()]


def units_in(path: Path) -> dict[str, str]:
    """The unit of each metric in such a file, also while the run writes; none where it cannot be read."""
    try:
        with closing(_to_be_read(path)) as base:
            layouts = [json_of(parts) for (parts,) in base.execute("SELECT parts FROM layout").fetchall()]
        return {str(name): str(unit) for parts in layouts for *_, metrics, _ in parts for name, unit, *_ in metrics}
    except (sqlite3.Error, OSError, ValueError, TypeError):
        return {}


def values_since(
    path: Path, step: int, first: int, row: tuple[str, str], wanted: Callable[[str, str], bool]
) -> tuple[list[SubintervalValue], int]:
    """(the values of a rollup instance from subinterval `first` on, or of the newest one, where that is NEWEST; the
    first subinterval that was not read). Also while the run writes; nothing where the file cannot be read.

    `row`: rollup type and instance; `wanted`: by connector and metric. MOST_READ subintervals at once.
    """
    values: list[SubintervalValue] = []
    try:
        with closing(_to_be_read(path)) as base:
            if first == NEWEST:
                query = "SELECT max(subinterval) FROM sums WHERE step = ?"
                first = int(base.execute(query, (step,)).fetchone()[0] or 0)
            layouts = base.execute("SELECT number, parts FROM layout").fetchall()
            places = {number: _places_of(json_of(parts), row, wanted) for number, parts in layouts}
            query = "SELECT subinterval, layout, sums FROM sums WHERE step = ? AND subinterval >= ? ORDER BY 1 LIMIT ?"
            for subinterval, layout, packed in base.execute(query, (step, first, MOST_READ)):
                if places[layout]:
                    amounts, pers = np.frombuffer(inflated(packed), "<f8").reshape(2, -1)
                    values += [
                        SubintervalValue(int(subinterval), *names, float(amounts[place] / pers[place]))
                        for place, names in places[layout]
                        if pers[place] > 0
                    ]
                first = int(subinterval) + 1
    except (sqlite3.Error, OSError, ValueError, TypeError, KeyError, IndexError):
        return [], first
    return values, first


def _places_of(
    parts: Iterable[Sequence[Any]], row: tuple[str, str], wanted: Callable[[str, str], bool]
) -> list[tuple[int, tuple[str, str, str, str, str]]]:
    """Where the wanted values of a rollup instance are: (place, what SubintervalValue has between number and value)."""
    places, first = [], 0
    for rows, connector, element, metrics, _ in parts:
        if [*row] in rows:
            begin = first + rows.index([*row]) * len(metrics)
            places += [
                (begin + at, (str(connector), str(element), str(attribute), str(metric), str(unit)))
                for at, (metric, unit, attribute) in enumerate(metrics)
                if wanted(str(connector), str(metric))
            ]
        first += len(rows) * len(metrics)
    return places


def _to_be_read(path: Path) -> sqlite3.Connection:
    """Raises sqlite3.Error, or OSError.

    rw, where that is allowed: after a crash in mid-transaction the journal must be rolled back first.
    """
    check_run_file(path)
    base = sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True)
    base.execute("PRAGMA query_only = ON")
    return base


def _part(layout: FamilyLayout, rollups: Rollups) -> list[object]:
    connector, element = layout.family
    metrics = [[metric_name(connector, metric), metric.unit, metric.attribute] for metric in layout.metrics]
    rows = [
        (OTHERS, "") if row == NOT_PARTICIPATING else (rollups.rows[row].type, rollups.rows[row].name)
        for row in layout.rows
    ]
    return [rows, connector, element, metrics, layout.counts.tolist()]


class _Totals:
    """Of the subintervals of one layout: (values,) each. What rose while its divisor stood still counts, too."""

    def __init__(self, values: int) -> None:
        self.sums = np.zeros((2, values))
        self.least, self.most = np.full(values, np.inf), np.full(values, -np.inf)
        self.subintervals = np.zeros(values, np.intp)

    def add(self, sums: Floats) -> None:
        """One more subinterval."""
        has = sums[1] > 0
        values = np.divide(sums[0], sums[1], out=np.zeros(len(has)), where=has)
        self.sums += sums
        np.minimum(self.least, values, out=self.least, where=has)
        np.maximum(self.most, values, out=self.most, where=has)
        self.subintervals += has


@dataclass(slots=True)
class _Total:
    amount: float = 0.0
    per: float = 0.0
    least: float = float("inf")
    most: float = float("-inf")
    subintervals: int = 0
    elements: int = 0

    def value(self, key: "_Key") -> WindowValue:
        if self.per <= 0:
            nan = float("nan")
            return WindowValue(*key, nan, nan, nan, 0, self.elements)
        value = self.amount / self.per
        return WindowValue(*key, value, self.least, self.most, self.subintervals, self.elements)


def _add(found: dict[_Key, _Total], parts: Iterable[Sequence[Any]], totals: _Totals) -> None:
    for place, (key, elements) in enumerate(_values(parts)):
        total = found.setdefault(key, _Total())
        total.elements = elements
        total.amount += float(totals.sums[0, place])
        total.per += float(totals.sums[1, place])
        total.least = min(total.least, float(totals.least[place]))
        total.most = max(total.most, float(totals.most[place]))
        total.subintervals += int(totals.subintervals[place])


def _values(parts: Iterable[Sequence[Any]]) -> Iterator[tuple[_Key, int]]:
    """A layout's values in their order, and of how many elements each is."""
    for rows, _, _, metrics, elements in parts:
        for (kind, instance), count in zip(rows, elements, strict=True):
            for metric, unit, _ in metrics:
                yield (kind, instance, metric, unit), count
