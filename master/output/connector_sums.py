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
from pathlib import Path
from typing import Final
from urllib.parse import quote

import numpy as np

from ..connectors.element_figures import ElementFigures
from ..rollup.arrays import Floats
from .csv_text import not_written
from .run_files import check_run_file

VERSION: Final = 1
SCHEMA: Final = """
-- of which values an array is: JSON, [rollup row, connector, element, [[metric, unit] ...], elements] for each
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

    def add(self, step: int, subinterval: int, figures: Sequence[tuple[int, ElementFigures]]) -> None:
        """One subinterval: rollup rows, and what belongs to them."""
        parts = json.dumps([_part(row, one) for row, one in figures])
        amounts, pers = (np.concatenate([getattr(one, name) for _, one in figures]) for name in ("amounts", "pers"))
        sums = zlib.compress(np.stack([amounts, pers]).astype("<f8").tobytes(), 1)
        try:
            base = self._opened()
            layout = self._layouts.get(parts)
            if layout is None:
                layout = self._layouts[parts] = len(self._layouts)
                base.execute("INSERT INTO layout VALUES (?, ?)", (layout, parts))
            base.execute("INSERT OR REPLACE INTO sums VALUES (?, ?, ?, ?)", (step, subinterval, layout, sums))
        except sqlite3.Error as error:
            raise not_written(self._path, error) from error

    def window(self, step: int, first: int, last: int, without: Collection[int]) -> list[WindowValue]:
        """Every metric of every rollup instance over a window."""
        if self._base is None:
            return []
        rows = self._base.execute(
            "SELECT subinterval, layout, sums FROM sums WHERE step = ? AND subinterval BETWEEN ? AND ?",
            (step, first, last),
        ).fetchall()
        layouts = {number: parts for parts, number in self._layouts.items()}
        found: dict[tuple[int, str, str], _Total] = {}
        for subinterval, layout, packed in rows:
            if subinterval not in without:
                _add(found, json.loads(layouts[layout]), np.frombuffer(zlib.decompress(packed), "<f8").reshape(2, -1))
        return [total.value(row, metric, unit) for (row, metric, unit), total in found.items()]

    def close(self) -> None:
        if self._base is not None:
            self._base.close()

    def _opened(self) -> sqlite3.Connection:
        if self._base is None:
            self._base = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            self._base.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = {VERSION}; COMMIT")
        return self._base


def units_in(path: Path) -> dict[str, str]:
    """The unit of each metric in such a file, also while the run writes; none where it cannot be read."""
    try:
        check_run_file(path)
        # rw, where that is allowed: after a crash in mid-transaction the journal must be rolled back first
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True)) as base:
            base.execute("PRAGMA query_only = ON")
            layouts = [json.loads(parts) for (parts,) in base.execute("SELECT parts FROM layout").fetchall()]
        return {str(name): str(unit) for parts in layouts for *_, metrics, _ in parts for name, unit in metrics}
    except (sqlite3.Error, OSError, ValueError, TypeError):
        return {}


def _part(row: int, one: ElementFigures) -> list[object]:
    metrics = [[name, metric.unit] for name, metric in zip(one.metric_names(), one.metrics, strict=True)]
    return [row, one.connector, one.element, metrics, one.elements]


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


def _add(found: dict[tuple[int, str, str], _Total], parts: Iterable[Sequence[object]], sums: Floats) -> None:
    for place, (row, metric, unit, elements) in enumerate(_values(parts)):
        total = found.setdefault((row, metric, unit), _Total())
        amount, per = float(sums[0, place]), float(sums[1, place])
        total.elements = elements
        if per > 0:
            total.amount, total.per = total.amount + amount, total.per + per
            total.least, total.most = min(total.least, amount / per), max(total.most, amount / per)
            total.subintervals += 1


def _values(parts: Iterable[Sequence[object]]) -> Iterator[tuple[int, str, str, int]]:
    """A layout's values in their order."""
    for row, _, _, metrics, elements in parts:
        assert isinstance(row, int) and isinstance(metrics, list) and isinstance(elements, int)
        for metric, unit in metrics:
            yield row, metric, unit, elements
