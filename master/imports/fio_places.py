"""Which part of a file or device a job of fio drives: its places in bytes, in percent of the size, or in both.

Rule: pure.
"""

from dataclasses import dataclass
from typing import Final

from ..text.units import format_bytes


@dataclass(frozen=True, slots=True)
class FioPlace:
    """So much percent of a file or device, and so many bytes after that."""

    percent: int = 0
    bytes: int = 0

    def __add__(self, other: "FioPlace") -> "FioPlace":
        return FioPlace(self.percent + other.percent, self.bytes + other.bytes)

    def times(self, count: int) -> "FioPlace":
        return FioPlace(self.percent * count, self.bytes * count)

    def of(self, size: int, block: int) -> "FioPlace":
        """In bytes of a file of that size; fio rounds a percentage up to a whole block."""
        return FioPlace(bytes=-(-self.percent * size // (100 * block)) * block + self.bytes)

    def __str__(self) -> str:
        """As in a plan."""
        parts = [f"{self.percent}%"] * (self.percent > 0) + [format_bytes(self.bytes)] * (self.bytes > 0)
        return "+".join(parts) or "0"


END: Final = FioPlace(percent=100)


@dataclass(frozen=True, slots=True)
class DrivenPart:
    """From one place up to another."""

    start: FioPlace
    end: FioPlace

    @property
    def room(self) -> int | None:
        """Bytes; None where that depends on the device."""
        return self.end.bytes - self.start.bytes if self.start.percent == self.end.percent else None

    def holds(self, blocksize: int, align: int) -> bool:
        """Whether it has a place for an I/O of that size; a percentage is rounded to whole blocks."""
        return self.room is None or -(-self.start.bytes // align) * align + blocksize <= self.end.bytes

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left of a file or device of any size."""
        return self.start.percent >= min(self.end.percent, 100) and self.start.bytes >= self.end.bytes

    @property
    def span(self) -> tuple[str, str] | None:
        """As in a plan; None: all."""
        if (self.start, self.end) == (FioPlace(), END):
            return None
        return "0%" if self.start == FioPlace() and self.end.percent else str(self.start), str(self.end)
