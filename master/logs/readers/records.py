"""The items that readers yield, on the common clock: records (a histogram over a stretch of time) or samples (single
I/Os).

Rule: times are integer nanoseconds; a stretch is (start, end], and one with start == end is a moment. A stamp of 0
is made 1 ns: it means "within the first tick", which belongs to the first interval, not to one before it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Directions = NDArray[np.uint8]
Buckets = NDArray[np.uint16]
Counts = NDArray[np.uint64]

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Records:
    """Sparse histograms, a row each; row r has the entries first[r]:stop[r] of `buckets` and `counts`."""

    starts: Ints
    ends: Ints
    directions: Directions
    first: Ints
    stop: Ints
    buckets: Buckets
    counts: Counts
    lowest: Ints | None = None  # the exact minimum and maximum of each row, ns, where they are known
    highest: Ints | None = None
    sums: Floats | None = None  # the exact sum of each row's latencies, ns, likewise
    squares: Floats | None = None  # and of their squares
    elsewhere: Ints | None = None  # the moment at which a row's I/Os may have completed instead; else its own end

    def __len__(self) -> int:
        return len(self.starts)

    def chosen(self, rows: NDArray[np.bool_]) -> "Records":
        """Some of the rows; without what is known exactly of them."""
        return Records(
            self.starts[rows], self.ends[rows], self.directions[rows], self.first[rows], self.stop[rows], self.buckets,
            self.counts,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Samples:
    """Single I/Os: completion and latency, ns."""

    ends: Ints
    values: Ints
    directions: Directions

    def __len__(self) -> int:
        return len(self.ends)


@dataclass(frozen=True, slots=True)
class LogClock:
    """Turns a log's own time into the common one: `start_ns` + own time / (1 + drift)."""

    start_ns: int = 0
    drift: float = 0.0

    def common(self, own_ns: Ints) -> Ints:
        """The same array, changed."""
        np.maximum(own_ns, 1, out=own_ns)
        if self.drift:
            own_ns[:] = np.rint(own_ns / (1 + self.drift))
        if self.start_ns:
            own_ns += self.start_ns
        return own_ns
