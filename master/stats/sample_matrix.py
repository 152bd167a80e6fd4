"""A metric of many instances over consecutive subintervals, as arrays: a row a subinterval, a column an instance.

Rule: the same sums as the samples that they are made of, so that a thousand instances cost little more than one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from . import block_bootstrap
from .metric_sample import MetricSample
from .percentiles import NS_PER_US, Floats, percentile


@dataclass(frozen=True, slots=True, eq=False)
class InstanceHistograms:
    """One instance's histograms over n subintervals, shape (n, buckets), from bucket `low` on."""

    counts: Floats
    low: int
    least: Floats  # (n,) the shortest and the longest latency of each, ns
    most: Floats

    def value_us(self, fraction: float) -> float:
        """The percentile of all of them; nan where it is blank."""
        least, most = float(self.least.min()), float(self.most.max())
        return percentile(self.counts.sum(axis=0), self.low, least, most, fraction) / NS_PER_US


@dataclass(frozen=True, slots=True, eq=False)
class SampleMatrix:
    """`amounts` and `pers`, shape (n, R); for a percentile they are 0, and `counts` has an entry for each instance."""

    amounts: Floats
    pers: Floats
    fraction: float | None = None
    counts: tuple[InstanceHistograms, ...] = ()

    def since(self, start: int) -> "SampleMatrix":
        """Without the rows before `start`."""
        counts = tuple(
            InstanceHistograms(one.counts[start:], one.low, one.least[start:], one.most[start:]) for one in self.counts
        )
        return SampleMatrix(self.amounts[start:], self.pers[start:], self.fraction, counts)

    def influences(self) -> tuple[Floats, Floats]:
        """(the window's value of each instance, what each subinterval adds to it); a blank metric is nan and 0.

        For a ratio: its own amount less what the window's value would give it, in the metric's unit. For a percentile:
        its share of I/Os beyond the window's percentile, which is defined however few I/Os a subinterval has.
        """
        if self.fraction is not None:
            return _of_percentiles(self.counts, self.fraction, self.amounts.shape)
        total = self.pers.sum(axis=0)
        known = total > 0
        safe = np.where(known, total, 1.0)
        ratio = self.amounts.sum(axis=0) / safe
        series = (self.amounts - ratio * self.pers) * (len(self.pers) / safe)
        return np.where(known, ratio, np.nan), np.where(known, series, 0.0)


def matrix_of_sums(
    rows: Sequence[Floats], samples: Sequence[Sequence[MetricSample]], fraction: float | None
) -> SampleMatrix:
    """`rows`: the `sums_of` each subinterval's samples; `samples`: each instance's, where there is a `fraction`."""
    sums = np.stack(rows)
    counts = () if fraction is None else tuple(map(counts_of, samples))
    return SampleMatrix(sums[:, 0], sums[:, 1], fraction, counts)


def matrix_of(rows: Sequence[Mapping[str, MetricSample]], fraction: float | None) -> SampleMatrix:
    """Of consecutive subintervals' samples by instance; the instances are those of the last."""
    names = list(rows[-1])
    samples = [[row[name] for row in rows] for name in names] if fraction is not None else []
    return matrix_of_sums([sums_of([row[name] for name in names]) for row in rows], samples, fraction)


def one_column(samples: Sequence[MetricSample], fraction: float | None = None) -> SampleMatrix:
    """Of one instance."""
    sums = np.array([(sample.amount, sample.per) for sample in samples], dtype=np.float64)
    counts = () if fraction is None else (counts_of(samples),)
    return SampleMatrix(sums[:, :1], sums[:, 1:], fraction, counts)


def sums_of(samples: Sequence[MetricSample]) -> Floats:
    """Amounts and pers of one subinterval's instances, shape (2, R)."""
    sums = np.empty((2, len(samples)))
    sums[0] = [sample.amount for sample in samples]
    sums[1] = [sample.per for sample in samples]
    return sums


def counts_of(samples: Sequence[MetricSample]) -> InstanceHistograms:
    """One instance's histograms, no wider than what is used."""
    used = [(sample.low, sample.low + len(sample.counts)) for sample in samples if sample.counts is not None]
    low, end = min((first for first, _ in used), default=0), max((last for _, last in used), default=0)
    rows = np.zeros((len(samples), end - low))
    for row, sample in zip(rows, samples, strict=True):
        if sample.counts is not None:
            row[sample.low - low : sample.low - low + len(sample.counts)] = sample.counts
    least = np.array([sample.least if sample.counts is not None else inf for sample in samples])
    most = np.array([sample.most if sample.counts is not None else 0.0 for sample in samples])
    return InstanceHistograms(rows, low, least, most)


def _of_percentiles(
    counts: Sequence[InstanceHistograms], fraction: float, shape: tuple[int, ...]
) -> tuple[Floats, Floats]:
    values, series = np.full(len(counts), np.nan), np.zeros(shape)
    for place, histograms in enumerate(counts):
        values[place] = histograms.value_us(fraction)
        if not np.isnan(values[place]):
            series[:, place] = block_bootstrap.influences(histograms.counts, fraction)
    return values, series
