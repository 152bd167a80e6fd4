"""The uncertainty of a merged histogram's percentile, by a block bootstrap over whole subintervals.

Rule: I/Os of one subinterval are not independent of each other, nor are neighbouring subintervals; so whole blocks of
subintervals are drawn, at least as long as the autocorrelation time, from the window bent to a ring. The binomial
width, which is right for independent I/Os, is only a floor.
"""

from functools import lru_cache
from math import ceil, isnan, nan, sqrt
from statistics import NormalDist

import numpy as np

from .confidence import CONFIDENCE, autocorrelation_times, t_quantile
from .percentiles import EDGES_NS, Floats, interpolated, percentile, percentile_buckets

DRAWS = 300


def stated_half_width(
    counts: Floats, low: int, least: float, most: float, fraction: float, confidence: float = CONFIDENCE
) -> float:
    """Half-width in nanoseconds of the merged percentile of n subintervals' histograms; nan where none can be stated.

    `counts`: (n, buckets), from bucket `low` on; `least` and `most`: the shortest and the longest latency, ns.
    """
    printed = percentile(counts.sum(axis=0), low, least, most, fraction)
    if isnan(printed):
        return nan
    influence = influences(counts, fraction)
    time = float(autocorrelation_times(influence[:, None])[0])
    freedom = len(counts) / time - 1
    if freedom < 1:
        return nan
    quantile = t_quantile(0.5 + confidence / 2, freedom)
    return half_width(counts, low, least, most, fraction, time, influence, quantile, confidence)


def influences(counts: Floats, fraction: float) -> Floats:
    """The influence of each of n subintervals on the percentile of their sum (n, buckets), which has I/Os: its I/Os
    beyond it, less its part of them. It is defined however few a subinterval has.
    """
    ios = counts.sum(axis=1)
    buckets, _ = percentile_buckets(counts.sum(axis=0)[None], (fraction,))
    found: Floats = (counts[:, buckets[0, 0] :].sum(axis=1) - (1 - fraction) * ios) / ios.mean()
    return found


def half_width(
    counts: Floats, low: int, least: float, most: float, fraction: float,
    time: float, influence: Floats, quantile: float, confidence: float,
) -> float:  # fmt: skip
    """Half-width, in nanoseconds, of the merged percentile of a window's histograms.

    `counts`: (n, buckets), from bucket `low` on. `time` is the autocorrelation time of `influence` (each subinterval's
    share of I/Os beyond the percentile), `quantile` the multiple of the standard error that is wanted: Student's t for
    the effective subintervals. Blocks of one autocorrelation time still lose the correlation across their ends; how
    much is known exactly for the mean of `influence`, and is given back. What is printed is the middle of a bucket
    within [least, most], so the distance from there to the percentile within the bucket is added.
    """
    n = len(counts)
    first, last = _span(counts.sum(axis=0), fraction)
    edges = np.clip(EDGES_NS[low + first : low + last + 2], least, most)
    trimmed = np.zeros((n, last - first + 1))  # one bucket more, so that `interpolated` has an end
    trimmed[:, :-1] = counts[:, first:last]
    trimmed[:, 0] += counts[:, :first].sum(axis=1)
    trimmed[:, -1] = counts[:, last:].sum(axis=1)
    block = min(ceil(time), n)
    blocks = ceil(n / block)
    sums = _ring_sums(trimmed, block)
    drawn = interpolated(np.cumsum(_times_drawn(n, blocks) @ sums, axis=1), fraction, edges)
    kept = float((_ring_sums(influence[:, None] - influence.mean(), block) ** 2).mean()) / block  # per subinterval
    whole = float(influence.var()) * time * n / max(n - time, 1.0)
    lost = sqrt(max(whole / kept, 1.0)) if kept > 0 else 1.0
    error = float(drawn.std(ddof=1)) * lost * sqrt(blocks * block / n)
    merged = np.cumsum(trimmed.sum(axis=0))[None, :]
    printed = percentile(counts.sum(axis=0), low, least, most, fraction)
    off_printed = 0.0 if isnan(printed) else abs(printed - float(interpolated(merged, fraction, edges)[0]))
    return max(quantile * error, _binomial_half_width(merged, fraction, edges, confidence)) + off_printed


@lru_cache(maxsize=64)
def _times_drawn(n: int, blocks: int) -> Floats:
    """How often each draw takes the block that begins with each of n subintervals, shape (DRAWS, n).

    The same window gives the same answer, and so do a thousand instances over it.
    """
    starts = np.random.default_rng(n).integers(n, size=(DRAWS, blocks))
    drawn = np.zeros((DRAWS, n))
    np.add.at(drawn, (np.arange(DRAWS)[:, None], starts), 1.0)
    return drawn


def _span(merged: Floats, fraction: float) -> tuple[int, int]:
    """The buckets [first, last) in which every drawn percentile will lie; what is outside is put into the outer two.

    From where there are six times as many I/Os above as at the percentile, to where there is a tenth.
    """
    cumulative = np.cumsum(merged)
    beyond = 1 - fraction
    low, high = np.searchsorted(cumulative, cumulative[-1] * np.array([max(1 - 6 * beyond, 0.0), 1 - beyond / 10]))
    used = np.nonzero(merged)[0]
    return max(int(low), int(used[0])), min(int(high), int(used[-1])) + 1


def _ring_sums(rows: Floats, block: int) -> Floats:
    """Sum of `block` rows from each row on, the end joined to the beginning."""
    ring = np.concatenate([rows, rows[: block - 1]]) if block > 1 else rows
    sums = np.cumsum(np.concatenate([np.zeros((1, rows.shape[1])), ring]), axis=0)
    return np.asarray(sums[block:] - sums[:-block], dtype=np.float64)


def _binomial_half_width(cumulative: Floats, fraction: float, edges: Floats, confidence: float) -> float:
    """Half of the interval between the percentiles whose fractions bound `fraction` for independent I/Os."""
    total = float(cumulative[0, -1])
    width = NormalDist().inv_cdf(0.5 + confidence / 2) * sqrt(fraction * (1 - fraction) / total)
    low, high = max(fraction - width, 0.0), min(fraction + width, 1.0)
    return float(interpolated(cumulative, high, edges)[0] - interpolated(cumulative, low, edges)[0]) / 2
