"""Percentiles of weighted histograms, with the error of each: the width of the bucket that it lies in.

Percentile p is the inverse of the cumulative distribution: the first bucket at whose end at least p % of the weight
lies; within it

    linear      low + (high - low) * (p/100 * n - below) / weight        (n: all weight; below: before the bucket)
    midpoint    the bucket's middle, as fio prints it

and never outside [min, max] where these are known exactly. A percentile that falls into the last bucket of fio's
layout, which holds everything above 17 s, is no number: it is "at least" the bucket's lower edge.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from ..readers.bucket_layouts import Layout
from ..readers.records import Floats

# What one rounding in a sum of millions of weights can do to a comparison with p * n.
_SLACK: Final = 1e-12
FEW_BEYOND: Final = 10  # with fewer samples beyond it, a percentile is noise


class Interpolation(StrEnum):
    LINEAR = "linear"
    MIDPOINT = "midpoint"


@dataclass(frozen=True, slots=True)
class Statistics:
    """Of n histograms (rows) and p percentiles; latencies in ns, NaN where there is nothing."""

    count: Floats  # (n,) I/Os; weighted, so not always whole
    mean: Floats
    stdev: Floats  # of the sample
    low: Floats  # minimum, or the lower edge of the first bucket that is not empty
    high: Floats  # maximum, or the upper edge of the last one
    values: Floats  # (n, p)
    widths: Floats  # (n, p) the bucket's width
    at_least: np.ndarray  # (n, p) bool: the value is a lower bound


@dataclass(frozen=True, slots=True)
class Moments:
    """What is known exactly beside n histograms; arrays of n, NaN where unknown."""

    sums: Floats | None = None
    squares: Floats | None = None
    low: Floats | None = None
    high: Floats | None = None


def statistics_of(
    cells: Floats, layout: Layout, percentiles: Floats, how: Interpolation, moments: Moments | None = None
) -> Statistics:
    """Statistics of the histograms `cells` (n, buckets); `percentiles` in percent, ascending or not."""
    known = moments or Moments()
    used = np.flatnonzero(cells.any(axis=0))
    if not len(used):
        return _nothing(len(cells), len(percentiles))
    base = int(used[0])
    cells = cells[:, base : int(used[-1]) + 1]
    edges = layout.edges[base : base + cells.shape[1] + 1].astype(np.float64)
    count = cells.sum(axis=1)
    filled = count > 0
    count_or_one = np.where(filled, count, 1)
    low, high = _extremes(cells, edges, filled, known)
    mean, stdev = _mean_and_stdev(cells, layout.middles[base : base + cells.shape[1]], count_or_one, known)
    values, widths, at_least = _percentiles(cells, edges, count, layout, base, percentiles, how)
    values = np.clip(values, low[:, None], high[:, None])
    for array in (mean, stdev, low, high, values, widths):
        array[~filled] = np.nan
    return Statistics(count, mean, stdev, low, high, values, widths, at_least & filled[:, None])


def _nothing(rows: int, percentiles: int) -> Statistics:
    none, table = np.full(rows, np.nan), np.full((rows, percentiles), np.nan)
    return Statistics(np.zeros(rows), none, none, none, none, table, table, np.zeros((rows, percentiles), bool))


def _extremes(cells: Floats, edges: Floats, filled: np.ndarray, known: Moments) -> tuple[Floats, Floats]:
    is_used = cells > 0
    first = is_used.argmax(axis=1)
    last = cells.shape[1] - 1 - is_used[:, ::-1].argmax(axis=1)
    low, high = edges[first], edges[last + 1]
    if known.low is not None and known.high is not None:
        low = np.where(np.isnan(known.low), low, known.low)
        high = np.where(np.isnan(known.high), high, known.high)
    return low, high


def _mean_and_stdev(cells: Floats, middles: Floats, count: Floats, known: Moments) -> tuple[Floats, Floats]:
    sums = cells @ middles if known.sums is None else known.sums
    mean = sums / count
    squares = cells @ (middles * middles) if known.squares is None else known.squares
    variance = np.maximum(squares - sums * mean, 0) / np.maximum(count - 1, 1)
    return mean, np.where(count > 1, np.sqrt(variance), 0.0)


def _percentiles(
    cells: Floats, edges: Floats, count: Floats, layout: Layout, base: int, percentiles: Floats, how: Interpolation
) -> tuple[Floats, Floats, np.ndarray]:
    upto = np.cumsum(cells, axis=1)
    rows = np.arange(len(cells))
    shape = (len(cells), len(percentiles))
    values, widths, at_least = np.empty(shape), np.empty(shape), np.empty(shape, bool)
    for column, p in enumerate(percentiles):
        wanted = p / 100 * count
        # At p = 0, the first bucket that holds anything; else the first whose end reaches p.
        reached = upto > 0 if p == 0 else upto >= (wanted * (1 - _SLACK))[:, None]
        bucket = reached.argmax(axis=1)
        weight = cells[rows, bucket]
        below = upto[rows, bucket] - weight
        low, high = edges[bucket], edges[bucket + 1]
        widths[:, column] = high - low
        if how is Interpolation.LINEAR:
            share = np.divide(wanted - below, weight, out=np.zeros_like(weight), where=weight > 0)
            values[:, column] = low + (high - low) * np.clip(share, 0, 1)
        else:
            values[:, column] = layout.middles[base + bucket]
        at_least[:, column] = layout.open_ended & (base + bucket == layout.buckets - 1)
        values[at_least[:, column], column] = edges[bucket[at_least[:, column]]]
    return values, widths, at_least
