"""connectors.sqlite: what elements of each rollup instance came to in each subinterval, as sums that add up.

Rule: a row for each subinterval, so that any window that control chooses can be summed when a step has ended, and
memory does not grow with its length.
"""

import json
import sqlite3
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import numpy as np

from ...protocol.lines import inflated
from ..connectors.element_figures import FamilyFigures, FamilyLayout, metric_name
from ..errors import OutputError
from ..rollup.arrays import Floats
from ..text.foreign_json import json_of
from .csv_text import not_written
from .full_disk import patiently
from .run_files import check_run_file

VERSION: Final = 1
ROWS_AT_ONCE: Final = 16  # of a thousand values and more each
SCHEMA: Final = """
-- of which values an array is: JSON, [rollup rows, connector, element type, [[metric, unit] ...], elements of each row]
-- for each element type; its values are those of the first row, then of the next
CREATE TABLE layout (number INTEGER PRIMARY KEY, parts TEXT NOT NULL UNIQUE);
-- zlib of little-endian f8 (2, values): amounts and pers; a value is their ratio, there is none where per is 0
CREATE TABLE sums (
    step INTEGER NOT NULL, subinterval INTEGER NOT NULL, layout INTEGER NOT NULL, sums BLOB NOT NULL,
    PRIMARY KEY (step, subinterval)
) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class WindowValue:
    """A metric of one rollup instance over a window."""

    row: int  # of the rollup instance; NOT_PARTICIPATING
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

    def add(self, step: int, subinterval: int, figures: Sequence[FamilyFigures]) -> None:
        """One subinterval."""
        values = [[one.amounts.ravel() for one in figures], [one.pers.ravel() for one in figures]]
        sums = zlib.compress(np.concatenate([*values[0], *values[1]]).astype("<f8").tobytes(), 1)
        try:
            base = self._opened()
            number = self._number(base, tuple(one.layout for one in figures))
            row = step, subinterval, number, sums
            patiently(lambda: base.execute("INSERT OR REPLACE INTO sums VALUES (?, ?, ?, ?)", row))
        except sqlite3.Error as error:
            raise not_written(self._path, error) from error

    def _number(self, base: sqlite3.Connection, layouts: tuple[FamilyLayout, ...]) -> int:
        """Of the layout of these families, which stay the same for most of a run."""
        if self._newest is None or any(one is not other for one, other in zip_longest(self._newest[0], layouts)):
            parts = json.dumps([_part(one) for one in layouts])
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
    total_of: dict[tuple[int, str, str], _Total] = {}
    for layout, of_layout in totals.items():
        _add(total_of, json_of(layouts[layout]), of_layout)
    return [total.value(row, metric, unit) for (row, metric, unit), total in total_of.items()]


def units_in(path: Path) -> dict[str, str]:
    """The unit of each metric in such a file, also while the run writes; none where it cannot be read."""
    try:
        check_run_file(path)
        # rw, where that is allowed: after a crash in mid-transaction the journal must be rolled back first
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True)) as base:
            base.execute("PRAGMA query_only = ON")
            layouts = [json_of(parts) for (parts,) in base.execute("SELECT parts FROM layout").fetchall()]
        return {str(name): str(unit) for parts in layouts for *_, metrics, _ in parts for name, unit in metrics}
    except (sqlite3.Error, OSError, ValueError, TypeError):
        return {}


def _part(layout: FamilyLayout) -> list[object]:
    connector, element = layout.family
    metrics = [[metric_name(connector, metric), metric.unit] for metric in layout.metrics]
    return [list(layout.rows), connector, element, metrics, layout.counts.tolist()]


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

    def value(self, row: int, metric: str, unit: str) -> WindowValue:
        if self.per <= 0:
            nan = float("nan")
            return WindowValue(row, metric, unit, nan, nan, nan, 0, self.elements)
        value = self.amount / self.per
        return WindowValue(row, metric, unit, value, self.least, self.most, self.subintervals, self.elements)


def _add(found: dict[tuple[int, str, str], _Total], parts: Iterable[Sequence[Any]], totals: _Totals) -> None:
    for place, (row, metric, unit, elements) in enumerate(_values(parts)):
        total = found.setdefault((row, metric, unit), _Total())
        total.elements = elements
        total.amount += float(totals.sums[0, place])
        total.per += float(totals.sums[1, place])
        total.least = min(total.least, float(totals.least[place]))
        total.most = max(total.most, float(totals.most[place]))
        total.subintervals += int(totals.subintervals[place])


def _values(parts: Iterable[Sequence[Any]]) -> Iterator[tuple[int, str, str, int]]:
    """A layout's values in their order."""
    for rows, _, _, metrics, elements in parts:
        for row, count in zip(rows, elements, strict=True):
            for metric, unit in metrics:
                yield row, metric, unit, count
