"""Places in a LUN, as a plan states them: in percent, where no plan knows its size.

Rule: pure.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Position:
    """A place within a LUN: a fraction of its size, bytes from its start, or so many bytes after that fraction."""

    fraction: float | None = None
    bytes: int | None = None

    def within(self, size: int, block: int) -> int:
        """In bytes from the LUN's start; a fraction is rounded down to a whole block. Bytes after a fraction end with
        the LUN: who writes them does not know its size."""
        if self.fraction is None:
            return self.bytes or 0
        place = int(self.fraction * (size // block)) * block
        return place if self.bytes is None else min(place + self.bytes, size)


Span = tuple[Position, Position]
WHOLE: Final[Span] = (Position(fraction=0.0), Position(fraction=1.0))


def in_bytes(span: Span, lun_size: int, blocksize: int) -> tuple[int, int]:
    """A span of a LUN of that size; (0, 0) for all of it."""
    return (0, 0) if span == WHOLE else (span[0].within(lun_size, blocksize), span[1].within(lun_size, blocksize))
