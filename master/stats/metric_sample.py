"""A metric of one rollup instance in one subinterval, as sums that add up over subintervals.

Rule: a window's value is computed from the window's sums (a ratio of sums, or the percentile of the merged
histogram), never as a mean of the subintervals' values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .percentiles import EDGES_NS, NS_PER_US, interpolated, percentile

MOST = 64  # samples, a batch each; when there are so many, neighbours are combined


@dataclass(frozen=True, slots=True, eq=False)
class MetricSample:
    """One rollup instance's metric in one subinterval, as sums that merge by addition: value = amount / per.

    A rate (IOPS, MiB/s) has its total as `amount` and seconds as `per`; a mean has the sum of what was measured and
    the number of I/Os; a percentage of time has busy seconds x 100 and seconds. A percentile has `counts`, and
    `amount` and `per` are 0; it is in microseconds.
    """

    amount: float
    per: float
    counts: NDArray[Any] | None = None  # I/Os (or weights) per bucket of protocol/histogram.py, from `low` on
    low: int = 0
    least: int = 0  # the shortest and the longest of these I/Os, ns
    most: int = 2**64 - 1
    alone: float | None = None  # the value of this sample, where amount / per would round it anew

    @property
    def is_empty(self) -> bool:
        """Nothing was measured."""
        return self.per == 0 and self.counts is None


def merged(first: MetricSample, other: MetricSample) -> MetricSample:
    """Both as one."""
    amount, per = first.amount + other.amount, first.per + other.per
    if first.counts is None or other.counts is None:
        held = other if first.counts is None else first
        return MetricSample(amount, per, held.counts, held.low, held.least, held.most)
    low = min(first.low, other.low)
    are_weights = "f" in (first.counts.dtype.kind, other.counts.dtype.kind)
    width = max(first.low + len(first.counts), other.low + len(other.counts)) - low
    counts = np.zeros(width, dtype=np.float64 if are_weights else np.uint64)
    for sample in (first, other):
        assert sample.counts is not None
        counts[sample.low - low : sample.low - low + len(sample.counts)] += sample.counts.astype(counts.dtype)
    return MetricSample(amount, per, counts, low, min(first.least, other.least), max(first.most, other.most))


def weighted(sample: MetricSample, weight: float) -> MetricSample:
    """The sample as if each of its I/Os were `weight` I/Os; its value, if it has one, stays."""
    counts = None if sample.counts is None else sample.counts * weight
    return replace(sample, amount=sample.amount * weight, per=sample.per * weight, counts=counts)


def value_of(samples: Sequence[MetricSample], fraction: float | None = None) -> float | None:
    """The metric over all of `samples`, in its own unit; None where it is blank: no I/O, or insufficient samples."""
    if not samples:
        return None
    if fraction is None:
        if len(samples) == 1 and samples[0].alone is not None:
            return samples[0].alone
        per = sum(sample.per for sample in samples)
        return sum(sample.amount for sample in samples) / per if per > 0 else None
    total = reduce(merged, samples)
    if total.counts is None:
        return None
    found = percentile(total.counts, total.low, total.least, total.most, fraction) / NS_PER_US
    return None if isnan(found) else found


def interpolated_value(samples: Sequence[MetricSample], fraction: float | None = None) -> float | None:
    """The same with a percentile interpolated within its bucket: for a comparison, in which the steps of the buckets
    (1/64) would be changes."""
    printed = value_of(samples, fraction)
    if printed is None or fraction is None:
        return printed
    total = reduce(merged, samples)
    assert total.counts is not None
    edges = EDGES_NS[total.low : total.low + len(total.counts) + 2]
    cumulative = np.cumsum([*total.counts.astype(np.float64), 0.0])  # a bucket more: `interpolated` has an end
    return float(interpolated(cumulative[None], fraction, np.clip(edges, total.least, total.most))[0]) / NS_PER_US


def ios(sample: MetricSample) -> int:
    """I/Os in a percentile's histogram."""
    return 0 if sample.counts is None else int(sample.counts.sum())


@dataclass(frozen=True, slots=True)
class BatchMeans:
    """A metric of many instances over any number of subintervals: few samples, each the sum of a batch of subintervals.

    Neighbours are combined when there are MOST samples, so memory and the time to check them do not grow with a step's
    length. A batch has as much information about the mean as the subintervals in it.

    Sums of subintervals: `total` of all of them, `whole` of those in finished batches."""

    whole: tuple[Mapping[str, MetricSample], ...] = ()  # each of `size` subintervals, by instance
    part: Mapping[str, MetricSample] = field(default_factory=dict)  # the batch that is not finished
    in_part: int = 0
    size: int = 1
    total: Mapping[str, MetricSample] = field(default_factory=dict)

    def added(self, samples: Mapping[str, MetricSample]) -> "BatchMeans":
        """With one more subinterval."""
        part, total = _merged(self.part, samples), _merged(self.total, samples)
        if self.in_part + 1 < self.size:
            return BatchMeans(self.whole, part, self.in_part + 1, self.size, total)
        whole, size = (*self.whole, part), self.size
        if len(whole) == MOST:
            whole, size = tuple(map(_merged, whole[::2], whole[1::2])), 2 * size
        return BatchMeans(whole, size=size, total=total)

    def of(self, instance: str) -> list[MetricSample]:
        """One instance's samples."""
        return [batch[instance] for batch in self.whole]


def _merged(one: Mapping[str, MetricSample], other: Mapping[str, MetricSample]) -> dict[str, MetricSample]:
    return {name: merged(one[name], sample) if name in one else sample for name, sample in other.items()}
