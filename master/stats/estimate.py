"""A metric over a window of subintervals: its value, its half-width, and the effective number of subintervals.

Rule: the value is the window's own (a ratio of sums, or the merged percentile), and the half-width is of that value.
It follows from the series of *influences*: what each subinterval adds to the value. Their autocorrelation time gives
the effective samples, and Student's t with effective - 1 degrees of freedom (at least 3, if there are as many) the
width.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf

import numpy as np

from . import block_bootstrap
from .confidence import CONFIDENCE, autocorrelation_times, t_quantile
from .metric_sample import MetricSample
from .percentiles import NS_PER_US, Floats
from .sample_matrix import SampleMatrix, one_column

_LEAST_FREEDOM = 3.0  # of a correlated series: its variance is known better than its mean


class Correction(StrEnum):
    """How the correlation of neighbouring subintervals is allowed for."""

    EFFECTIVE = "effective"  # effective samples from the autocorrelation time
    FACTOR_TWO = "factor_two"  # as ivy does: as if independent, and twice the width


@dataclass(frozen=True, slots=True)
class Estimate:
    value: float
    half_width: float  # in the metric's unit; infinite where nothing can be said
    subintervals: int
    effective: float  # the number of independent subintervals with as much information

    @property
    def relative(self) -> float:
        """Half-width as a fraction of the value; infinite for a value of 0."""
        return self.half_width / abs(self.value) if self.value else inf


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """The same of many instances, shape (R,)."""

    values: Floats  # nan where the metric is blank over the whole window
    half_widths: Floats
    subintervals: int
    effective: Floats

    @property
    def relative(self) -> Floats:
        """Half-widths as fractions of the values; infinite for a value of 0 and for a blank one."""
        size = np.abs(self.values)
        found: Floats = np.divide(self.half_widths, size, out=np.full(len(size), inf), where=size > 0)
        return found

    def __getitem__(self, place: int) -> Estimate | None:
        if np.isnan(self.values[place]):
            return None
        value, width, effective = self.values[place], self.half_widths[place], self.effective[place]
        return Estimate(float(value), float(width), self.subintervals, float(effective))


def influences(samples: Sequence[MetricSample], fraction: float | None = None) -> tuple[float, Floats] | None:
    """The window's value, and what each subinterval adds to it, one number each; None where the metric is blank."""
    values, series = one_column(samples, fraction).influences()
    return None if np.isnan(values[0]) else (float(values[0]), series[:, 0])


def estimate(
    samples: Sequence[MetricSample],
    fraction: float | None = None,
    confidence: float = CONFIDENCE,
    correction: Correction = Correction.EFFECTIVE,
) -> Estimate | None:
    """The window's value and half-width at `confidence`; None where the metric is blank over the whole window."""
    return estimates(one_column(samples, fraction), confidence, correction)[0]


def estimates(
    window: SampleMatrix, confidence: float = CONFIDENCE, correction: Correction = Correction.EFFECTIVE
) -> Estimates:
    """The same of many instances at once.

    Ratio estimator (Cochran, Sampling Techniques, 6.4): variance of the influences / effective samples, the
    variance itself corrected for the correlation (divided by n - time, which is n - 1 without).
    """
    values, series = window.influences()
    n = len(series)
    times = autocorrelation_times(series) if correction is Correction.EFFECTIVE else np.ones(len(values))
    effective = n / times
    quantiles = _quantiles(effective, n, confidence)
    if correction is Correction.FACTOR_TWO:
        quantiles = quantiles * 2
    widths = np.full(len(values), inf)
    sayable = effective > 1.0
    if window.fraction is None:
        squares = np.einsum("ij,ij->j", series, series)
        np.sqrt(squares / np.where(sayable, n - times, 1.0) / effective, out=widths, where=sayable)
        np.multiply(widths, quantiles, out=widths, where=sayable)
        return Estimates(values, widths, n, effective)
    for place in np.flatnonzero(sayable & ~np.isnan(values)):
        one = window.counts[place]
        width_ns = block_bootstrap.half_width(
            one.counts, one.low, float(one.least.min()), float(one.most.max()), window.fraction,
            float(times[place]), series[:, place], float(quantiles[place]), confidence,
        )  # fmt: skip
        widths[place] = width_ns / NS_PER_US
    return Estimates(values, widths, n, effective)


def freedom(effective: float, n: int) -> float:
    """Student's degrees of freedom of a half-width, for so many effective samples of n."""
    return max(round(effective - 1, 1), min(n - 1.0, _LEAST_FREEDOM))


def _quantiles(effective: Floats, n: int, confidence: float) -> Floats:
    """Student's t for so many effective samples each; of one or fewer, which say nothing, any."""
    freedoms = [freedom(one, n) for one in effective.tolist()]
    return np.array([t_quantile((1 + confidence) / 2, df) if df > 0 else inf for df in freedoms])
