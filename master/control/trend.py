"""Slopes, and whether a series still has a trend.

Rule: slopes are least squares over real time. A trend is what Mann and Kendall's test finds: it counts rising and
falling pairs, so neither one wild value nor the shape of the rise matters. Its variance is multiplied by the
autocorrelation time of what is left after the slope, or correlated noise would look like trends. A start-up that is
long over hardly moves that count, so the beginning is compared with the end as well.
"""

from dataclasses import dataclass
from math import erfc, inf, sqrt

import numpy as np

from ..rollup.statistics import t_tail
from .correlation import FLOATS, autocorrelation_time

_MOST = 48  # values in a trend test; longer series are averaged down to so many, since pairs grow with the square


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
    rises = float(np.triu(np.sign(values[None, :] - values[:, None]), 1).sum())
    _, ties = np.unique(values, return_counts=True)
    variance = (n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    return rises, variance


def trend_probability(values: FLOATS) -> float:
    """How likely noise of the same correlation is to look as little stationary; under 0.01 there is a trend.

    Two tests, the smaller probability doubled: a steady rise or fall shows in Mann-Kendall, a beginning that is long
    over by now in the comparison with the end. 1.0 for fewer than eight values or constant ones.
    """
    if len(values) < 8 or values.min() == values.max():
        return 1.0
    return min(1.0, 2 * min(_rising(values), _beginning_differs(values)))


def _rising(values: FLOATS) -> float:
    """Mann-Kendall's two-sided probability by the normal approximation."""
    if len(values) > _MOST:
        edges = np.linspace(0, len(values), _MOST + 1).astype(np.intp)
        values = np.add.reduceat(values, edges[:-1]) / np.diff(edges)
    rises, variance = mann_kendall(values)
    if variance <= 0.0:
        return 1.0
    residuals = line(np.arange(len(values), dtype=np.float64), values).residuals
    return erfc(abs(rises) / sqrt(2 * variance * autocorrelation_time(residuals)))


def _beginning_differs(values: FLOATS) -> float:
    """Two-sided probability that the first tenth (three values at least) has the mean of the last half.

    Geweke's comparison, with the noise and its correlation taken from the last half alone, since the beginning may
    be anything.
    """
    first, last = values[: max(3, len(values) // 10)], values[len(values) // 2 :]
    time = autocorrelation_time(last)
    freedom = len(last) / time - 1
    if freedom < 1:
        return 1.0
    variance = float(last.var()) * len(last) / (len(last) - time)
    error = sqrt(variance * (min(time / len(first), 1.0) + time / len(last)))
    distance = abs(float(first.mean() - last.mean()))
    if error <= 1e-12 * distance:
        return 0.0 if distance > 0 else 1.0
    return 2 * t_tail(distance / error, freedom) if distance > 0 else 1.0
