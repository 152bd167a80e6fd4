"""Percentiles of weighted histograms, with the error of each: the width of the bucket that it lies in.

Which bucket that is, and whether there are samples enough, stats/percentiles.py decides, as for a run's own rows.
Within the bucket there are two rules:

    linear      low + (high - low) * (p/100 * n - below) / weight        (n: all weight; below: before the bucket)
    midpoint    the bucket's middle, as fio and ivypy's own rows print it

and never outside [min, max] where these are known exactly, as they are of runs. So midpoint, the default for runs,
gives the figures of their CSV. A percentile that falls into the last bucket of fio's layout, which holds everything
above 17 s, is no number: it is "at least" the bucket's lower edge. So are the maximum, the mean and the deviation of a
histogram with I/Os there.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...stats.percentiles import FEWEST_BEYOND, clamped, percentile_buckets
from ..readers.bucket_layouts import Layout
from ..readers.records import Floats


class Interpolation(StrEnum):
    LINEAR = "linear"
    MIDPOINT = "midpoint"


@dataclass(frozen=True, slots=True)
class Statistics:
    """Of n histograms (rows) and p percentiles; latencies in ns, NaN where there is nothing."""

    count: Floats  # (n,) I/Os; weighted, so not always whole
    sums: Floats  # of all latencies
    stdev: Floats  # of the sample
    low: Floats  # minimum, or the lower edge of the first bucket that is not empty
    high: Floats  # maximum, or the upper edge of the last one
    values: Floats  # (n, p)
    widths: Floats  # (n, p) the bucket's width
    at_least: np.ndarray  # (n, p) bool: the value is a lower bound
    insufficient: np.ndarray  # (n, p) bool: too few samples lie beyond it
    saturated: np.ndarray  # (n,) bool: mean, stdev and high are lower bounds, too

    def blank(self, rows: NDArray[np.bool_]) -> "Statistics":
        """The same without latencies in some `rows` (n,); the counts stay."""
        names = ("sums", "stdev", "low", "high", "values", "widths")
        times = {name: _where_not(rows, getattr(self, name), np.nan) for name in names}
        flags = {
            name: _where_not(rows, getattr(self, name), False) for name in ("at_least", "insufficient", "saturated")
        }
        return replace(self, **times, **flags)

    @property
    def mean(self) -> Floats:
        found: Floats = np.divide(self.sums, self.count, out=np.full(len(self.count), np.nan), where=self.count > 0)
        return found


def _where_not(rows: NDArray[np.bool_], values: NDArray[Any], other: float) -> NDArray[Any]:
    """`values` (n,) or (n, p) with `other` in some rows."""
    found = values.copy()
    found[rows] = other
    return found


@dataclass(frozen=True, slots=True)
class ExactMoments:
    """The exact moments beside n histograms; arrays of n, NaN where unknown."""

    sums: Floats | None = None
    squares: Floats | None = None
    low: Floats | None = None
    high: Floats | None = None


def statistics_of(
    cells: Floats, layout: Layout, percentiles: Floats, how: Interpolation, moments: ExactMoments | None = None
) -> Statistics:
    """Statistics of the histograms `cells` (n, buckets); `percentiles` in percent, ascending or not."""
    known = moments or ExactMoments()
    used = np.flatnonzero(cells.any(axis=0))
    if not len(used):
        return _nothing(len(cells), len(percentiles))
    base = int(used[0])
    cells = cells[:, base : int(used[-1]) + 1]
    edges = layout.edges[base : base + cells.shape[1] + 1].astype(np.float64)
    count = cells.sum(axis=1)
    filled = count > 0
    count_or_one = np.where(filled, count, 1)
    low, high = _extremes(cells, edges, known)
    middles = layout.middles[base : base + cells.shape[1]].copy()
    saturated = np.zeros(len(cells), bool)
    if layout.open_ended and base + cells.shape[1] == layout.buckets:
        saturated = cells[:, -1] > 0
        middles[-1] = edges[-2]  # all that is known of these I/Os
        high = np.where(saturated, edges[-2], high)
    sums, stdev = _sums_and_stdev(cells, middles, count_or_one, known)
    values, widths, at_least, insufficient = _percentiles(cells, edges, count, layout, base, percentiles, how)
    values = clamped(values, low[:, None], high[:, None])
    if known.high is not None:
        values[:, percentiles == 100] = high[:, None]
    for array in (stdev, low, high, values, widths):
        array[~filled] = np.nan
    is_filled = filled[:, None]
    at_least, insufficient = at_least & is_filled, insufficient & is_filled
    return Statistics(count, sums, stdev, low, high, values, widths, at_least, insufficient, saturated)


def _nothing(rows: int, percentiles: int) -> Statistics:
    none, table = np.full(rows, np.nan), np.full((rows, percentiles), np.nan)
    no = np.zeros((rows, percentiles), bool)
    return Statistics(np.zeros(rows), np.zeros(rows), none, none, none, table, table, no, no, np.zeros(rows, bool))


def _extremes(cells: Floats, edges: Floats, known: ExactMoments) -> tuple[Floats, Floats]:
    is_used = cells > 0
    first = is_used.argmax(axis=1)
    last = cells.shape[1] - 1 - is_used[:, ::-1].argmax(axis=1)
    low, high = edges[first], edges[last + 1]
    if known.low is not None and known.high is not None:
        low = np.where(np.isnan(known.low), low, known.low)
        high = np.where(np.isnan(known.high), high, known.high)
    return low, high


def _sums_and_stdev(cells: Floats, middles: Floats, count: Floats, known: ExactMoments) -> tuple[Floats, Floats]:
    of_middles = cells @ middles
    sums = of_middles if known.sums is None else known.sums
    if known.squares is None:
        variance = cells @ (middles * middles) - of_middles * of_middles / count
    else:
        variance = known.squares - sums * sums / count
    variance = np.maximum(variance, 0) / np.maximum(count - 1, 1)
    return sums, np.where(count > 1, np.sqrt(variance), 0.0)


def _percentiles(
    cells: Floats, edges: Floats, count: Floats, layout: Layout, base: int, percentiles: Floats, how: Interpolation
) -> tuple[Floats, Floats, np.ndarray, np.ndarray]:
    places, beyond = percentile_buckets(cells, (percentiles / 100).tolist())
    bucket = places.T  # (n, p), as all that is returned
    low, high = edges[bucket], edges[bucket + 1]
    at_least = layout.open_ended & (base + bucket == layout.buckets - 1)
    if how is Interpolation.LINEAR:
        weight = np.take_along_axis(cells, bucket, axis=1)
        below = np.take_along_axis(np.cumsum(cells, axis=1), bucket, axis=1) - weight
        wanted = count[:, None] * percentiles / 100
        share = np.divide(wanted - below, weight, out=np.zeros_like(weight), where=weight > 0)
        values = low + (high - low) * np.clip(share, 0, 1)
    else:
        values = layout.middles[base + bucket]
    # The shortest and the longest I/O need no others beyond them.
    insufficient = (beyond.T < FEWEST_BEYOND) & (percentiles > 0) & (percentiles < 100)
    return np.where(at_least, low, values), high - low, at_least, insufficient
