"""Latency histograms: bucket edges and middles, and the percentile, the one that every figure of ivypy is taken with.

The percentile of fraction p of n I/Os is the I/O of rank ceil(p n), counted from the shortest:

    value = the middle of the bucket that holds this rank, but never outside [shortest, longest]

and there is none (nan) where fewer than FEWEST_BEYOND I/Os lie beyond the rank: insufficient samples. Ranks are
computed in whole numbers, so 99 % of 100 I/Os is the 99th of them, and 10,000 I/Os are enough for p99.9.

Histograms of logs that were cut at the ends of intervals hold weights instead of counts. Their sums are exact to
2**-30, their ranks are not whole; SLACK keeps one rounding from moving them into the next bucket.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...protocol.histogram import lower_edges

Floats = NDArray[np.float64]
Histograms = NDArray[Any]  # (R, buckets): counts of any integer type, or weights

EDGES_NS: Final = np.array(lower_edges(), np.float64)
MIDDLES_NS: Final = (EDGES_NS[:-1] + EDGES_NS[1:] - 1) / 2  # of the whole nanoseconds that a bucket holds
FEWEST_BEYOND: Final = 10  # with fewer I/Os beyond it, a percentile is noise
NS_PER_US: Final = 1e3  # to divide by: the quotient is then the float that a user's "1.009us" becomes, too
SLACK: Final = 1e-12
_LARGEST_DENOMINATOR: Final = 10**9


@lru_cache(maxsize=256)
def exact(fraction: float) -> Fraction:
    """The decimal fraction that a float stands for: 0.999 is 999/1000."""
    return Fraction(fraction).limit_denominator(_LARGEST_DENOMINATOR)


def ranks(counts: NDArray[np.int64], fraction: float) -> NDArray[np.int64]:
    """The rank ceil(fraction x n) for each number of I/Os, exactly."""
    share = exact(fraction)
    wide = counts.astype(object) if counts.max(initial=0) >= 2**62 // max(share.numerator, 1) else counts
    found: NDArray[np.int64] = (-(-wide * share.numerator // share.denominator)).astype(np.int64)
    return found


def fewest_ios(fraction: float) -> int:
    """The fewest I/Os that have a percentile."""
    return ceil(FEWEST_BEYOND / (1 - exact(fraction)))


def percentile_buckets(histograms: Histograms, fractions: Sequence[float]) -> tuple[NDArray[np.intp], Floats]:
    """(the bucket of each percentile of each row, how many I/Os lie beyond its rank), both (len(fractions), R).

    Buckets count from the first column; for a row without I/O the bucket means nothing.
    """
    rows, width = histograms.shape
    if not width:
        shape = (len(fractions), rows)
        return np.zeros(shape, np.intp), np.zeros(shape)
    if histograms.dtype.kind == "f":
        return _weighted_buckets(histograms, fractions)
    # One running total over all rows: a rank within a row is a place in it, which a binary search finds.
    running = np.cumsum(histograms.reshape(-1), dtype=np.int64)
    ends = running[width - 1 :: width]
    before = np.concatenate(([0], ends[:-1]))
    counts = ends - before
    wanted = np.array([ranks(counts, fraction) for fraction in fractions]).reshape(len(fractions), rows)
    places = np.searchsorted(running, before + np.maximum(wanted, 1))
    return places % width, (counts - wanted).astype(np.float64)


def _weighted_buckets(histograms: Floats, fractions: Sequence[float]) -> tuple[NDArray[np.intp], Floats]:
    running = np.cumsum(histograms, axis=1)
    totals = running[:, -1]
    are_whole = (histograms == np.rint(histograms)).all(axis=1)
    whole = np.where(are_whole, totals, 0.0).astype(np.int64)
    places, beyond = [], []
    for fraction in fractions:
        exactly = ranks(whole, fraction)
        wanted = np.where(are_whole, np.maximum(exactly, 1), np.maximum(fraction * totals * (1 - SLACK), 1e-300))
        places.append((running >= wanted[:, None]).argmax(axis=1))
        beyond.append(np.where(are_whole, whole - exactly, (1 - fraction) * totals * (1 + SLACK)))
    return np.array(places, np.intp), np.array(beyond, np.float64)


def percentiles(
    histograms: Histograms, low: int, least: NDArray[Any], most: NDArray[Any], fractions: Sequence[float]
) -> Floats:
    """The percentiles of each row in nanoseconds, shape (len(fractions), R); nan where samples are insufficient.

    `histograms` begin with bucket `low`; `least` and `most`: (R,) the shortest and the longest latency, in nanoseconds.
    """
    places, beyond = percentile_buckets(histograms, fractions)
    middles = MIDDLES_NS[np.minimum(places + low, len(MIDDLES_NS) - 1)]
    within = clamped(middles, np.asarray(least, np.float64), np.asarray(most, np.float64))
    return np.where(beyond >= FEWEST_BEYOND, within, np.nan)


def clamped(values: Floats, least: Floats, most: Floats) -> Floats:
    """Values of buckets, never outside of the shortest and the longest latency."""
    return np.clip(values, least, most)


def percentile(counts: NDArray[Any], low: int, least: float, most: float, fraction: float) -> float:
    """The same of one histogram."""
    return float(percentiles(counts[None], low, np.array([least]), np.array([most]), (fraction,))[0, 0])


def interpolated(cumulative: Floats, fraction: float, edges: Floats) -> Floats:
    """The `fraction` quantile of each row of cumulative counts, within its bucket by proportion; in edges' unit.

    For estimates of errors: what is printed is `percentile`. `cumulative` has shape (rows, buckets), with everything
    below the first bucket already in it, and ends at each row's total; `edges` has buckets + 1 values.
    """
    wanted = cumulative[:, -1] * fraction
    bucket = np.minimum((cumulative < wanted[:, None]).sum(axis=1), cumulative.shape[1] - 2)
    rows = np.arange(len(cumulative))
    below = np.where(bucket > 0, cumulative[rows, bucket - 1], 0.0)
    inside = cumulative[rows, bucket] - below
    share = np.divide(wanted - below, inside, out=np.full(len(rows), 0.5), where=inside > 0)
    return np.asarray(edges[bucket] + np.clip(share, 0, 1) * (edges[bucket + 1] - edges[bucket]), dtype=np.float64)
