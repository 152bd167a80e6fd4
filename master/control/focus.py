"""A focus: which metric of which rollup type a judge or a controller looks at, and the data behind its values.

Rule: a window's value is computed from the window's sums (a ratio of sums, or the percentile of the merged
histogram), never as a mean of the subintervals' values.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...protocol.histogram import BUCKETS, lower_edges

EDGES_NS: NDArray[np.float64] = np.array(lower_edges(), dtype=np.float64)
_MIDDLES_NS: NDArray[np.float64] = (EDGES_NS[:-1] + EDGES_NS[1:] - 1) / 2  # buckets hold whole nanoseconds
FEWEST_BEYOND = 10  # a percentile with fewer samples than this beyond it is noise, and blank


@dataclass(frozen=True, slots=True)
class Focus:
    """A column's name and a rollup type's; `fraction` says that the metric is a percentile (0.999 for p99.9)."""

    metric: str
    rollup: str = "all"
    fraction: float | None = None

    def __str__(self) -> str:
        return f"{self.metric} per {self.rollup}"


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One rollup instance's metric in one subinterval, as sums that merge by addition: value = amount / per.

    A rate (IOPS, MiB/s) has its total as `amount` and seconds as `per`; a mean has the sum of what was measured and
    the number of I/Os; a percentage of time has busy seconds x 100 and seconds. A percentile has `counts`, and
    `amount` and `per` are 0.
    """

    amount: float
    per: float
    counts: NDArray[np.unsignedinteger] | None = None  # I/Os per bucket of protocol/histogram.py, from `low` on
    low: int = 0
    scale: float = 1e-3  # nanoseconds to the metric's unit, for a percentile: microseconds


def merged(one: Sample, other: Sample) -> Sample:
    """Both as one."""
    amount, per = one.amount + other.amount, one.per + other.per
    if one.counts is None or other.counts is None:
        held = other if one.counts is None else one
        return Sample(amount, per, held.counts, held.low, held.scale)
    low = min(one.low, other.low)
    counts = np.zeros(max(one.low + len(one.counts), other.low + len(other.counts)) - low, dtype=np.uint64)
    for sample in (one, other):
        assert sample.counts is not None
        counts[sample.low - low : sample.low - low + len(sample.counts)] += sample.counts.astype(np.uint64)
    return Sample(amount, per, counts, low, one.scale)


def dense(samples: Sequence[Sample]) -> NDArray[np.float64]:
    """The samples' histograms, shape (n, BUCKETS)."""
    rows = np.zeros((len(samples), BUCKETS))
    for row, sample in zip(rows, samples, strict=True):
        if sample.counts is not None:
            row[sample.low : sample.low + len(sample.counts)] = sample.counts
    return rows


def value_of(samples: Sequence[Sample], fraction: float | None = None) -> float | None:
    """The metric over all of `samples`, in its own unit; None where it is blank (no I/O, too few for a percentile)."""
    if fraction is None:
        per = sum(sample.per for sample in samples)
        return sum(sample.amount for sample in samples) / per if per > 0 else None
    if len(samples) == 1:
        one = samples[0]
        return None if one.counts is None else percentile(one.counts.astype(float), fraction, one.scale, one.low)
    return percentile(dense(samples).sum(axis=0), fraction, samples[0].scale) if samples else None


def blank_window(focus: Focus, instance: str) -> str:
    """That a window has no value, and why, for people."""
    why = "none was seen" if focus.fraction is None else f"fewer than {FEWEST_BEYOND} I/Os beyond it"
    return f"{focus.metric} of {instance} is blank: {why} in the window"


def blank_subinterval(focus: Focus, instance: str, sample: Sample) -> str:
    """That a subinterval has no value, and why, for people."""
    blank, seen = f"{focus.metric} of {instance} is blank", ios(sample)
    if focus.fraction is None or not seen:
        return f"{blank}: none was seen in a subinterval"
    needed = FEWEST_BEYOND / (1 - focus.fraction)
    return (
        f"{blank}: fewer than {FEWEST_BEYOND} I/Os beyond it in a subinterval, "
        f"{seen} of the {needed:.0f} that it needs; lengthen subinterval"
    )


def ios(sample: Sample) -> int:
    """I/Os in a percentile's histogram."""
    return 0 if sample.counts is None else int(sample.counts.sum())


def percentile_bucket(counts: NDArray[np.float64], fraction: float) -> int:
    """The bucket that holds the `fraction` quantile of one histogram with at least one I/O."""
    cumulative = np.cumsum(counts)
    return int(np.searchsorted(cumulative, cumulative[-1] * fraction * (1 - 1e-12)))


def percentile(counts: NDArray[np.float64], fraction: float, scale: float = 1e-3, low: int = 0) -> float | None:
    """The middle of the bucket with one histogram's `fraction` quantile; None with under ten I/Os beyond it.

    `counts` begin with bucket `low`.
    """
    if float(counts.sum()) * (1 - fraction) < FEWEST_BEYOND - 1e-6:  # 1 - 0.999 is not quite 0.001
        return None
    return float(_MIDDLES_NS[low + percentile_bucket(counts, fraction)]) * scale
