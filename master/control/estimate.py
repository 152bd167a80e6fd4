"""What a window of subintervals says of a metric: its value, how far off it may be, and what the window is worth.

Rule: the value is the window's own (a ratio of sums, or the merged percentile), and the half-width is of that value.
It follows from the series of *influences*: what each subinterval adds to the value. Their autocorrelation time gives
the effective samples, and Student's t with effective - 1 degrees of freedom (at least 3, if there are as many) the
width.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf, sqrt

import numpy as np

from ..rollup.statistics import t_quantile
from . import bootstrap
from .correlation import FLOATS, autocorrelation_time
from .focus import Sample, dense, percentile, percentile_bucket

_LEAST_FREEDOM = 3.0  # of a correlated series: its variance is known better than its mean


class Correction(StrEnum):
    """How the correlation of neighbouring subintervals is allowed for."""

    EFFECTIVE = "effective"  # effective samples from the autocorrelation time
    FACTOR_TWO = "factor_two"  # the ancestor's: as if independent, and twice the width


@dataclass(frozen=True, slots=True)
class Estimate:
    value: float
    half_width: float  # in the metric's unit; infinite where nothing can be said
    subintervals: int
    effective: float  # independent subintervals that would tell as much

    @property
    def relative(self) -> float:
        """Half-width as a fraction of the value; infinite for a value of 0."""
        return self.half_width / abs(self.value) if self.value else inf


def influences(samples: Sequence[Sample], fraction: float | None = None) -> tuple[float, FLOATS] | None:
    """The window's value, and what each subinterval adds to it, one number each; None where the metric is blank.

    For a ratio: its own amount less what the window's value would give it, in the metric's unit. For a percentile:
    its share of I/Os beyond the window's percentile, which is defined however few I/Os a subinterval has.
    """
    if fraction is None:
        amount = np.array([sample.amount for sample in samples])
        per = np.array([sample.per for sample in samples])
        total = float(per.sum())
        if total <= 0:
            return None
        ratio = float(amount.sum()) / total
        return ratio, (amount - ratio * per) * (len(per) / total)
    return _of_percentile(dense(samples), fraction, samples[0].scale)


def _of_percentile(counts: FLOATS, fraction: float, scale: float) -> tuple[float, FLOATS] | None:
    """The same for a percentile, from the subintervals' histograms, shape (n, BUCKETS)."""
    merged = counts.sum(axis=0)
    value = percentile(merged, fraction, scale)
    if value is None:
        return None
    ios = counts.sum(axis=1)
    bucket = percentile_bucket(merged, fraction)
    return value, (counts[:, bucket:].sum(axis=1) - (1 - fraction) * ios) / ios.mean()


def estimate(
    samples: Sequence[Sample],
    fraction: float | None = None,
    confidence: float = 0.95,
    correction: Correction = Correction.EFFECTIVE,
) -> Estimate | None:
    """The window's value and half-width at `confidence`; None where the metric is blank over the whole window.

    Ratio estimator (Cochran, Sampling Techniques, 6.4): variance of the influences / effective samples, the
    variance itself mended for the correlation (divided by n - time, which is n - 1 without).
    """
    counts = None if fraction is None else dense(samples)
    if fraction is None or counts is None:
        found = influences(samples)
    else:
        found = _of_percentile(counts, fraction, samples[0].scale)
    if found is None:
        return None
    value, series = found
    n = len(series)
    time = autocorrelation_time(series) if correction is Correction.EFFECTIVE else 1.0
    effective = n / time
    if effective <= 1.0:
        return Estimate(value, inf, n, effective)
    quantile = t_quantile((1 + confidence) / 2, max(round(effective - 1, 1), min(n - 1.0, _LEAST_FREEDOM)))
    quantile *= 2 if correction is Correction.FACTOR_TWO else 1
    if fraction is None or counts is None:
        error = sqrt(float(series @ series) / (n - time) / effective)
        return Estimate(value, quantile * error, n, effective)
    width = bootstrap.half_width(counts, fraction, time, series, quantile, confidence)
    return Estimate(value, width * samples[0].scale, n, effective)
