"""The data of charts over time, whether it is of a run or of logs; and densities of latencies for heat maps.

Rule: pure numbers, as arrays; nothing here draws. Times are seconds from the begin, latencies microseconds, nan is a
gap.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ROWS_PER_DECADE: Final = 24  # of a heat map: rows 10 % high, six of our buckets


@dataclass(frozen=True, slots=True, eq=False)
class LatencyCounts:
    """Histograms over time. `counts[i]` is of the time from begin_s[i] to end_s[i]."""

    begin_s: Floats  # (n,)
    end_s: Floats
    edges_us: Floats  # (buckets + 1,), ascending
    counts: Floats  # (n, buckets)


@dataclass(frozen=True, slots=True, eq=False)
class OverTime:
    """The figures of one rollup instance. `begin_s` and `end_s` are of each of the n subintervals."""

    title: str
    begin_s: Floats  # (n,)
    end_s: Floats
    iops: Floats
    target: Floats  # IOPS that are asked for; nan where there is no rate
    latencies: Mapping[str, Mapping[str, Floats]]  # "service time": {"p50": (n,), ..., "max": (n,)}
    not_measured: Sequence[tuple[float, float]]  # stretches of warmup and the like
    steps: Sequence[tuple[float, str]]  # where each begins, and its name
    counts: LatencyCounts | None  # of service times


def log_densities(counts: LatencyCounts, rows_per_decade: int = ROWS_PER_DECADE) -> tuple[Floats, Floats]:
    """(edges (rows + 1,) in us, evenly spaced in their logarithm; I/Os per second and decade of latency (n, rows)).

    Each bucket's I/Os are spread evenly over the logarithms of latency that it covers. Buckets double in width at
    powers of two; as densities that makes no bands. 0 becomes nan.
    """
    used = np.flatnonzero(counts.counts.any(axis=0))
    if not len(used):
        return np.empty(0), np.empty((len(counts.begin_s), 0))
    logs = np.log10(np.maximum(counts.edges_us, 1e-4))
    low = np.floor(logs[used[0]] * rows_per_decade)
    high = max(np.ceil(logs[used[-1] + 1] * rows_per_decade), low + 1)
    edges = np.arange(low, high + 1) / rows_per_decade
    cumulative = np.concatenate([np.zeros((len(counts.counts), 1)), counts.counts.cumsum(axis=1)], axis=1)
    at = np.array([np.interp(edges, logs, row) for row in cumulative]).reshape(len(cumulative), len(edges))
    length_s = np.maximum(counts.end_s - counts.begin_s, 1e-9)
    densities = np.diff(at, axis=1) * rows_per_decade / length_s[:, None]
    return 10**edges, np.where(densities > 1e-12, densities, np.nan)


def nines(fraction: Floats) -> Floats:
    """Where fractions stand on an axis of nines: 0.9 at 1, 0.99 at 2."""
    return -np.log10(1 - fraction)


def distribution_points(from_us: Floats, below_us: Floats, counts: Floats, fewest_beyond: int) -> tuple[Floats, Floats]:
    """(place on the axis of nines, latency): of each bucket the share below it, and its middle; the last has so many
    I/Os beyond its begin."""
    below = np.concatenate([[0.0], counts.cumsum()[:-1]])
    total = counts.sum()
    kept = (counts > 0) & (total - below >= fewest_beyond)
    return nines(below[kept] / total), ((from_us + below_us) / 2)[kept]
