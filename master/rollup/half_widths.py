"""Half-widths of a window's figures, in memory that does not grow with the window's length.

Rule: a half-width is computed from a series of subintervals. When a series is long, neighbours are combined into
batches of 2, 4, 8 ...: the mean of batches has the same half-width as the mean of the subintervals in them.
"""

from typing import Final

import numpy as np

from ...protocol.counters import KINDS, RESPONSES, SERVICES, Moment
from ..stats.block_bootstrap import stated_half_width
from ..stats.confidence import FEWEST_STATED
from ..stats.percentiles import NS_PER_US
from .arrays import Buckets, Floats, Merged, RowMoments, Words, reals, sum_of

MOST_SAMPLES: Final = 512  # a series of this length is halved: neighbours are combined
MOST_HISTOGRAMS: Final = 128  # likewise
STATED_ROWS: Final = 16  # rows whose percentiles have a half-width: it takes their histograms of every subinterval


class BatchedFigures:
    """Figures of R rows over time, at most MOST_SAMPLES of them; a longer series is kept as means of 2, 4, 8 ..."""

    def __init__(self, figures: int, rows: int) -> None:
        self._samples: list[Floats] = []  # each (figures, R)
        self._part = np.zeros((figures, rows))
        self._in_part = 0
        self._batch = 1

    def add(self, figures: Floats) -> None:
        """One subinterval's figures, shape (figures, R)."""
        self._part = self._part + figures
        self._in_part += 1
        if self._in_part < self._batch:
            return
        self._samples.append(self._part / self._batch)
        self._part, self._in_part = np.zeros_like(self._part), 0
        if len(self._samples) == MOST_SAMPLES:
            pairs = zip(self._samples[::2], self._samples[1::2], strict=True)
            self._samples = [(one + other) / 2 for one, other in pairs]
            self._batch *= 2

    def array(self) -> Floats:
        """Shape (samples, figures, R); an unfinished batch is left out."""
        return np.array(self._samples).reshape(-1, *self._part.shape)


class BatchedHistograms:
    """Histograms of the first STATED_ROWS rows over time, at most MOST_HISTOGRAMS of them; a longer series is kept as
    sums of 2, 4, 8 ..."""

    def __init__(self, series: tuple[int, ...]) -> None:
        self._series = series
        self._parts: list[Buckets] = []
        self._open: Buckets | None = None  # the sum of the unfinished batch
        self._in_part = 0
        self._batch = 1

    def add(self, merged: Merged) -> None:
        """One subinterval."""
        rows = min(STATED_ROWS, len(merged.counts))
        parts = [merged.buckets[one] for one in self._series]
        found = sum_of([Buckets(one.low, one.counts[:rows]) for one in parts], rows)
        found = Buckets(found.low, found.counts.copy())
        self._open = found if self._open is None else sum_of([self._open, found], rows)
        self._in_part += 1
        if self._in_part < self._batch:
            return
        self._parts.append(self._open)
        self._open, self._in_part = None, 0
        if len(self._parts) == MOST_HISTOGRAMS:
            pairs = zip(self._parts[::2], self._parts[1::2], strict=True)
            self._parts = [sum_of([*pair], rows) for pair in pairs]
            self._batch *= 2

    def stated(self, fraction: float, moments: RowMoments) -> "PercentileHalfWidths":
        """The half-widths of everything added so far, whose moments are `moments`."""
        series = list(self._series)
        least, most = moments.least[:, series].min(axis=1), moments.most[:, series].max(axis=1)
        return PercentileHalfWidths(tuple(self._parts), fraction, least, most)


class PercentileHalfWidths:
    """Half-widths of a percentile, computed when they are first read; the histograms are dropped then."""

    def __init__(self, parts: tuple[Buckets, ...], fraction: float, least: Words, most: Words) -> None:
        """`least` and `most`: (R,) the shortest and the longest latency, ns."""
        self._parts, self._fraction = parts, fraction
        self._least, self._most = least.astype(np.float64), most.astype(np.float64)
        self._found: Floats = np.full(len(least), np.nan)

    def half_widths_us(self) -> Floats:
        """(R,); nan where none is stated."""
        parts, self._parts = self._parts, ()
        used = [part for part in parts if part.counts.shape[1]]
        if len(parts) < FEWEST_STATED or not used:
            return self._found
        low, high = min(part.low for part in used), max(part.high for part in used)
        counts = np.stack([part.padded(low, high).counts for part in parts]).astype(np.float64)
        for row in range(counts.shape[1]):
            least, most = float(self._least[row]), float(self._most[row])
            self._found[row] = stated_half_width(counts[:, row], low, least, most, self._fraction) / NS_PER_US
        return self._found


def figures_of(merged: Merged) -> Floats:
    """The input of half-widths, per subinterval, shape (5, R): IOPS; sum of service times, ns; I/Os; the same two of
    response times."""
    columns = [merged.rates[:, :KINDS, 0].sum(axis=1)]
    for series in (SERVICES[:KINDS], RESPONSES):
        limbs = merged.moments.limbs[:, series]
        columns += [reals(limbs, moment).sum(axis=1) for moment in (Moment.SUM, Moment.COUNT)]
    return np.stack(columns)
