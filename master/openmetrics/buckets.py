"""The buckets of the histograms that Prometheus gets: about six for each factor of ten, from 2 us to 20 s.

Rule: an I/O counts in a bucket only if it certainly took no longer than the bucket's bound: the fine bucket that a
bound lies in, 1/64 of it wide at most, counts in the next one. histogram_quantile() interpolates within a bucket, so
what it gives may be off by a bucket's width, up to 50 %; exact percentiles are gauges beside.
"""

from collections.abc import Iterable
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...protocol.histogram import BUCKETS, lower_edges
from ..pages.histogram_columns import Cells

_DIGITS: Final = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
BOUNDS_S: Final = tuple(
    float(f"{digit}e{power}") for power in range(-6, 2) for digit in _DIGITS if 2e-6 <= digit * 10.0**power <= 20
)
_LAST_NS: Final = np.array(lower_edges()[1:], np.float64) - 1  # the longest latency in each fine bucket
_PLACES: Final = np.searchsorted(np.array(BOUNDS_S) * 1e9, _LAST_NS)  # of the first bound that is not below


class Coarse:
    """A sum of histograms in these buckets."""

    def __init__(self) -> None:
        self.counts: NDArray[np.int64] = np.zeros(len(BOUNDS_S) + 1, np.int64)
        self._total_ns = 0  # exact, so that no sum is lower after a column was taken out and added with more I/Os

    @property
    def sum_s(self) -> float:
        return self._total_ns / 1e9

    def add(self, parts: Iterable[Cells]) -> None:
        for one in parts:
            self._add(one, 1)

    def take(self, parts: Iterable[Cells]) -> None:
        """Take out what was added."""
        for one in parts:
            self._add(one, -1)

    def _add(self, cells: Cells, times: int) -> None:
        places = _PLACES[cells.low : min(cells.high, BUCKETS)]
        np.add.at(self.counts, places, times * cells.counts[: len(places)].astype(np.int64))
        self._total_ns += times * cells.total

    def cumulative(self) -> list[tuple[str, float]]:
        """(bound, I/Os that took no longer), as an exposition has them."""
        bounds = [*(repr(bound) for bound in BOUNDS_S), "+Inf"]
        return [(bound, float(count)) for bound, count in zip(bounds, accumulate(self.counts.tolist()), strict=True)]
