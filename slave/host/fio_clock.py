"""fio's way of telling time by the cycle counter, to be compared with ours.

Rule: pure, whole numbers, as fio computes (its gettime.c): cycles per millisecond from fifty short windows, a
multiplier of limited width, chunks of about an hour.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

WINDOWS: Final = 51  # of each calibration; the first is thrown away
WINDOW_NS: Final = 1_280_000

_LONGEST_S: Final = 3600  # that its multiplier may overflow after
_U64: Final = 2**64 - 1


def cycles_per_ms(windows: Sequence[tuple[int, int]]) -> int:
    """The cycles per millisecond that fio finds in windows of (ticks, ns)."""
    measured = [ticks * 1_000_000 // ns for ticks, ns in windows[1:]]
    mean = sum(measured) / len(measured)
    deviation = math.sqrt(sum((cycles - mean) ** 2 for cycles in measured) / (len(measured) - 1))
    kept = [cycles for cycles in measured if abs(cycles - mean) <= deviation] or measured
    return sum(kept) // len(kept)


@dataclass(frozen=True)
class FioClock:
    """The factors that fio derives from its cycles per millisecond."""

    shift: int
    multiplier: int
    chunk: int  # ticks, a power of two
    chunk_ns: int

    @classmethod
    def of(cls, per_ms: int) -> "FioClock":
        most_ticks = _LONGEST_S * 1000 * per_ms
        shift = math.floor(math.log2((_U64 // most_ticks) * per_ms / 1_000_000))
        multiplier = (1_000_000 << shift) // per_ms
        chunk = 1 << (most_ticks.bit_length() - 1)
        return cls(shift, multiplier, chunk, (chunk * multiplier) >> shift)

    def ns(self, ticks: int) -> int:
        """How long so many ticks are, as fio has it."""
        chunks, rest = divmod(ticks, self.chunk)
        return chunks * self.chunk_ns + ((rest * self.multiplier) >> self.shift)
