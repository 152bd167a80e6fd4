"""A file of single elements as numbers, read as it grows: connectors/<connector>.<element type>.csv of a step.

Rule: a value has its place by the number of its subinterval, so that a gather that failed is a gap. Values are kept as
the file has them, with seven digits.
"""

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..errors import PlanError
from ..output.column import names
from ..output.connector_columns import ELEMENT_ROW
from .growing_table import AddedRows

MOST_VALUES: Final = (
    25_000_000  # 100 MB: 500 elements of 14 metrics for an hour of seconds; what comes later is left out
)
_FIXED: Final = frozenset(names(ELEMENT_ROW))
_FIRST: Final = (64, 8)  # subintervals and elements that there is room for at first


class ElementFile:
    """One element type of one connector in one step."""

    def __init__(self, path: Path) -> None:
        self.connector, _, self.element = path.name.removesuffix(".csv").rpartition(".")
        self.places: dict[str, int] = {}  # of the elements
        self.participating: list[bool] = []  # by place
        self.attributes: list[str] = []
        self.subintervals = 0  # up to the last that has a value
        self.left_out_from: int | None = None  # the first subinterval that there was no room for
        self._added = AddedRows(path)
        self._values: NDArray[np.float32] = np.full((*_FIRST, 0), np.nan, np.float32)

    def refresh(self) -> None:
        """Read what was added. Raises PlanError."""
        while self.left_out_from is None and (rows := self._added.read()):
            if not self.attributes:
                self.attributes = [name for name in self._added.header if name not in _FIXED]
                self._values = np.full((*_FIRST, len(self.attributes)), np.nan, np.float32)
            columns = self._added.places(self.attributes)
            number, name, belongs = self._added.places(("subinterval", "element", "participating"))
            for row in rows:
                try:
                    self._add(int(row[number]), row[name], row[belongs] == "1", [row[place] for place in columns])
                except ValueError as error:
                    raise PlanError(f"{self._added.path}: not read: {error}") from None

    def metric(self, attribute: str) -> str:
        """Its full name."""
        return f"{self.connector}.{self.element}_{attribute}"

    def values(self, attribute: str) -> NDArray[np.float64]:
        """(subintervals, elements), nan where there is none."""
        place = self.attributes.index(attribute)
        return self._values[: self.subintervals, : len(self.places), place].astype(np.float64)

    def _add(self, subinterval: int, element: str, participates: bool, cells: list[str]) -> None:
        if subinterval < 0:
            raise ValueError(f"there is no subinterval {subinterval}")
        place = self.places.get(element)
        if place is None:
            place = len(self.places)
        if not self._has_room(subinterval, place):
            self.left_out_from = subinterval if self.left_out_from is None else self.left_out_from
            return
        if element not in self.places:
            self.places[element] = place
            self.participating.append(participates)
        self._values[subinterval, place] = [cell or "nan" for cell in cells]
        self.subintervals = max(self.subintervals, subinterval + 1)

    def _has_room(self, subinterval: int, place: int) -> bool:
        """Whether there is, or can be made."""
        have = self._values.shape
        wanted = [2 * size if at >= size else size for at, size in ((subinterval, have[0]), (place, have[1]))]
        wanted = [max(size, at + 1) for at, size in zip((subinterval, place), wanted, strict=True)]
        if (wanted[0], wanted[1]) == have[:2]:
            return True
        if wanted[0] * wanted[1] * have[2] > 2 * MOST_VALUES:  # half of which may be empty
            return False
        grown = np.full((wanted[0], wanted[1], have[2]), np.nan, np.float32)
        grown[: have[0], : have[1]] = self._values
        self._values = grown
        return True
