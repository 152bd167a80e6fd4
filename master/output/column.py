"""One column of a CSV file."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """One column that is not a metric."""

    name: str
    unit: str
    meaning: str


Group = tuple[Column, ...] | str  # columns; those that depend on plan and hosts, in words


def names(*groups: tuple[Column, ...]) -> list[str]:
    """The header of some groups of columns."""
    return [column.name for group in groups for column in group]
