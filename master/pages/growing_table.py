"""A CSV file of a run, read as it grows: each time only the lines that were added.

Rule: a run's CSV files grow by whole lines, and a line is a row (output/csv_text.py). What has not got its line break
yet is left for the next time. A file whose header has changed was replaced, and is read anew (used_categories.py).
"""

import csv
from collections.abc import Collection, Sequence
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Final

from ..errors import PlanError
from ..output.csv_text import unguarded
from ..output.run_files import open_run_file

_AT_ONCE: Final = 4 << 20  # bytes: more than any row


class AddedRows:
    """The rows that a file got since it was last read, as texts; of a file that is not there yet, none.

    `replacements` counts how often the file was replaced: then the next rows are its first.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.header: list[str] = []
        self.replacements = 0
        self._line = b""  # the header's
        self._offset = 0

    def places(self, names: Collection[str]) -> list[int]:
        """Where columns are that the file has to have. Raises PlanError."""
        if missing := [name for name in names if name not in self.header]:
            raise PlanError(f"{self.path}: not read: it has no column {missing[0]}")
        return [self.header.index(name) for name in names]

    def read(self) -> list[list[str]]:
        """Some of the whole rows; none where all are read. Raises PlanError."""
        try:
            with open_run_file(self.path) as file:
                line = file.readline()
                if not line.endswith(b"\n"):
                    return []
                if self._line and line != self._line:  # it was replaced, with more columns
                    self._line = b""
                    self.replacements += 1
                if not self._line:
                    self._line, self._offset = line, len(line)
                    self.header = next(iter(_rows(line)), [])
                file.seek(self._offset)
                added = file.read(_AT_ONCE)
        except FileNotFoundError:
            return []
        except (OSError, csv.Error) as error:
            raise _not_read(self.path, error) from None
        added = added[: added.rfind(b"\n") + 1]
        self._offset += len(added)
        try:
            rows = _rows(added)
        except csv.Error as error:
            raise _not_read(self.path, error) from None
        return [row for row in rows if len(row) == len(self.header)]  # others are of a disk that was full


def _rows(text: bytes) -> list[list[str]]:
    rows = csv.reader(text.decode("utf-8", "surrogateescape").splitlines())
    return [[*map(unguarded, row)] for row in rows]


def _not_read(path: Path, error: Exception) -> PlanError:
    return PlanError(f"{path}: not read: {getattr(error, 'strerror', None) or error}")


class GrowingTable:
    """The wanted columns of one file, as texts. A file that is not there yet has no rows."""

    def __init__(self, path: Path, wanted: Sequence[str]) -> None:
        self.path = path
        self.columns: dict[str, list[str]] = {name: [] for name in wanted}
        self._added = AddedRows(path)
        self._replacements = 0

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def refresh(self) -> None:
        """Read what was added. Raises PlanError."""
        while rows := self._added.read():
            if self._added.replacements != self._replacements:
                self._replacements = self._added.replacements
                self._empty()
            header = self._added.header
            for name, column in self.columns.items():
                place = header.index(name) if name in header else None
                column += [""] * len(rows) if place is None else [row[place] for row in rows]

    def _empty(self) -> None:
        for column in self.columns.values():
            column.clear()

    def has(self, name: str) -> bool:
        """Whether the file has a wanted column."""
        return name in self._added.header

    def numbers(self, name: str, first: int = 0) -> list[float | None]:
        """A column from a row on; blank, and whatever is no finite number, is None."""
        return [number(text) for text in self.columns[name][first:]]


def number(text: str) -> float | None:
    """None where a cell is blank, or no finite number."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) else None


def number_or_text(text: str) -> float | str | None:
    """A number where it is one, else the text; None where it is blank."""
    value = number(text)
    return value if value is not None else text or None


def unix_time(text: str) -> float:
    """Of a time in ISO 8601."""
    return datetime.fromisoformat(text).timestamp()
