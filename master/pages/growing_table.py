"""A CSV file of a run, read as it grows: each time only the lines that were added.

Rule: a run's CSV files grow by whole lines, and a line is a row (output/csv_text.py). What has not got its line break
yet is left for the next time. A file whose header has changed was replaced, and is read anew (used_categories.py).
"""

import csv
from collections.abc import Sequence
from math import isfinite
from pathlib import Path

from ..errors import PlanError
from ..output.run_files import open_run_file


class GrowingTable:
    """The wanted columns of one file, as texts. A file that is not there yet has no rows."""

    def __init__(self, path: Path, wanted: Sequence[str]) -> None:
        self.path = path
        self.columns: dict[str, list[str]] = {name: [] for name in wanted}
        self._header = b""
        self._places: list[tuple[str, int]] | None = None  # of the wanted columns in the file; None: no header yet
        self._cells = 0  # of a whole row
        self._offset = 0
        self._damaged = 0

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def refresh(self) -> None:
        """Read what was added. Raises PlanError."""
        try:
            with open_run_file(self.path) as file:
                header = file.readline()
                if self._header and header != self._header:  # it was replaced, with more columns
                    self._forget()
                self._header = header if header.endswith(b"\n") else b""
                file.seek(self._offset)
                added = file.read()
        except FileNotFoundError:
            return
        except OSError as error:
            raise PlanError(f"{self.path}: not read: {error.strerror}") from None
        added = added[: added.rfind(b"\n") + 1]
        self._offset += len(added)
        rows = csv.reader(added.decode("utf-8", "surrogateescape").splitlines())
        try:
            for row in rows:
                self._add(row)
        except csv.Error as error:
            raise PlanError(f"{self.path}: not read: {error}") from None

    def reread(self) -> None:
        """Read everything again: where rows were changed in place."""
        self._forget()
        self.refresh()

    def _forget(self) -> None:
        self.__init__(self.path, [*self.columns])  # type: ignore[misc]

    def _add(self, row: list[str]) -> None:
        if self._places is None:
            self._places = [(name, row.index(name)) for name in self.columns if name in row]
            self._cells = len(row)
            return
        if len(row) != self._cells:  # of a disk that was full
            return
        for column in self.columns.values():
            column.append("")
        for name, place in self._places:
            self.columns[name][-1] = row[place]

    def has(self, name: str) -> bool:
        """Whether the file has a wanted column."""
        return any(name == one for one, _ in self._places or ())

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
