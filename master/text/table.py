"""Tables of aligned text: a column is as wide in every row, so figures stay below each other for hours."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TextColumn:
    title: str
    width: int  # negative: to the left


@dataclass(frozen=True, slots=True)
class ColumnGroup:
    """Columns between two bars."""

    title: str
    columns: tuple[TextColumn, ...]

    @property
    def width(self) -> int:
        return sum(abs(column.width) + 1 for column in self.columns) - 1


def header_lines(groups: Sequence[ColumnGroup]) -> list[str]:
    """The titles of the groups, where one has a title, and those of the columns."""
    titles = _joined([group.title.ljust(group.width) for group in groups])
    columns = row_line(groups, [column.title for group in groups for column in group.columns])
    return [titles, columns] if titles else [columns]


def row_line(groups: Sequence[ColumnGroup], cells: Sequence[str]) -> str:
    """`cells`: of all columns. One that is longer than its column moves those behind it."""
    texts = iter(cells)
    return _joined([" ".join(_aligned(next(texts), column.width) for column in group.columns) for group in groups])


def _aligned(text: str, width: int) -> str:
    return text.ljust(-width) if width < 0 else text.rjust(width)


def _joined(groups: Sequence[str]) -> str:
    """Join the groups; blanks at the end are left out."""
    while len(groups) > 1 and not groups[-1].strip():
        groups = groups[:-1]
    return " | ".join(groups).rstrip(" ")
