"""Where something stands in a plan, and how a fault there is told.

Rule: a fault is one sentence with the remedy; the report adds `file:line:column`, the line and a caret, and
holds every fault, in the order of the file.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from ...errors import PlanError

WIDEST = 110  # characters of a source line that are shown; longer ones are cut around the caret


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A position in a plan's text, counted from 1."""

    name: str  # the file as the user named it
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.name}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    place: Place
    text: str


class Predicate(ValueError):
    """A fault whose text goes on from the name of the value: "is empty; it needs a host"."""


class AlreadyReported(ValueError):
    """A value that cannot be read for a fault that has been noted elsewhere."""


def sentence(subject: str, error: ValueError) -> str:
    """What is wrong with a value: "select is empty", "maxtags: '0' is too little"."""
    return f"{subject}{' ' if isinstance(error, Predicate) else ': '}{error}"


class PlanFaults(PlanError):
    """Every fault of a plan. Its text is the complete report."""

    def __init__(self, faults: Iterable[Fault], source: str) -> None:
        self.faults = tuple(sorted(set(faults)))
        lines = source.split("\n")
        super().__init__("\n".join(_told(fault, lines) for fault in self.faults))


def _told(fault: Fault, lines: list[str]) -> str:
    place = fault.place
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    column = min(place.column - 1, len(line))
    start = max(0, column - WIDEST + 20) if len(line) > WIDEST else 0
    shown = "".join(c if c.isprintable() else " " for c in line[start : start + WIDEST])
    return f"{place}: {fault.text}\n    {shown}\n    {' ' * (column - start)}^"
