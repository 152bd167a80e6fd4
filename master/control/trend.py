"""Slopes, and whether a series still has a trend.

Rule: slopes are least squares over real time. A trend is what Mann and Kendall's test finds: it counts rising and
falling pairs, so neither one wild value nor the shape of the rise matters. Its variance is multiplied by the
autocorrelation time of what is left after the slope, or correlated noise would look like trends.
"""

from dataclasses import dataclass
from math import erfc, inf, sqrt

import numpy as np

from .correlation import FLOATS, autocorrelation_time

_MOST = 64  # values in a trend test; longer series are averaged down to so many, since pairs grow with the square


@dataclass(frozen=True, slots=True)
class Line:
    """A least-squares line: `slope` per unit of time, its standard error for independent residuals, the residuals."""

    slope: float
    error: float  # infinite for two points
    residuals: FLOATS


def line(times: FLOATS, values: FLOATS) -> Line:
    """The least-squares line through at least two points at different times."""
    t = times - times.mean()
    spread = float(t @ t)
    slope = float(t @ values) / spread
    residuals = values - values.mean() - slope * t
    freedom = len(values) - 2
    error = sqrt(float(residuals @ residuals) / freedom / spread) if freedom > 0 else inf
    return Line(slope, error, residuals)


def mann_kendall(values: FLOATS) -> tuple[float, float]:
    """(S, variance of S) for independent values: rising pairs less falling pairs; the variance allows for ties."""
    n = len(values)
    rises = float(np.sign(values[None, :] - values[:, None])[np.triu_indices(n, 1)].sum())
    _, ties = np.unique(values, return_counts=True)
    variance = (n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    return rises, variance


def trend_probability(values: FLOATS) -> float:
    """How likely noise of the same correlation is to show as strong a trend; under 0.01 there is one.

    Two-sided, by the normal approximation; 1.0 for fewer than eight values or constant ones.
    """
    if len(values) > _MOST:
        values = np.array([part.mean() for part in np.array_split(values, _MOST)])
    if len(values) < 8:
        return 1.0
    rises, variance = mann_kendall(values)
    if variance <= 0.0:
        return 1.0
    residuals = line(np.arange(len(values), dtype=np.float64), values).residuals
    return erfc(abs(rises) / sqrt(2 * variance * autocorrelation_time(residuals)))
