"""Slopes, and whether a series still has a trend.

Rule: slopes are least squares over real time. A trend is what Mann and Kendall's test finds: it counts rising and
falling pairs, so neither one wild value nor the shape of the rise matters. Its variance is multiplied by the
autocorrelation time of what is left after the slope, or correlated noise would look like trends. A start-up that is
long over hardly moves that count, so the beginning is compared with the end as well.
"""

from dataclasses import dataclass
from functools import cache
from math import erfc, inf, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from .confidence import autocorrelation_times, t_tail
from .percentiles import Floats

FEWEST_FOR_TREND = 8  # values
_MOST = 48  # values in a trend test; longer series are averaged down to so many, since pairs grow with the square


@dataclass(frozen=True, slots=True)
class Line:
    """A least-squares line: `slope` per unit of time, its standard error for independent residuals, the residuals."""

    slope: float
    error: float  # infinite for two points
    residuals: Floats


def line(times: Floats, values: Floats) -> Line:
    """The least-squares line through at least two points at different times."""
    t = times - times.mean()
    spread = float(t @ t)
    slope = float(t @ values) / spread
    residuals = values - values.mean() - slope * t
    freedom = len(values) - 2
    error = sqrt(float(residuals @ residuals) / freedom / spread) if freedom > 0 else inf
    return Line(slope, error, residuals)


def mann_kendall(values: Floats) -> tuple[Floats, Floats]:
    """(S, variance of S) of each column of values (n, R), for independent values.

    S: rising pairs less falling pairs; the variance allows for ties.
    """
    n = len(values)
    earlier, later = _pairs(n)
    rises = np.sign(values[later] - values[earlier]).sum(axis=0)
    ordered = np.sort(values, axis=0)
    tied = np.zeros(values.shape[1])
    for column in np.flatnonzero((ordered[1:] == ordered[:-1]).any(axis=0)):
        _, ties = np.unique(ordered[:, column], return_counts=True)
        tied[column] = float((ties * (ties - 1) * (2 * ties + 5)).sum())
    return rises, (n * (n - 1) * (2 * n + 5) - tied) / 18


@cache
def _pairs(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Every pair of places, the earlier and the later."""
    return np.triu_indices(n, 1)


def trend_probabilities(values: Floats, below: float) -> Floats:
    """How likely noise of the same correlation is to look as little stationary, for each column of values (n, R).

    Below 0.01 there is a trend. Two tests, the smaller probability doubled: a steady rise or fall shows in
    Mann-Kendall, a beginning that is long over by now in the comparison with the end. 1.0 for fewer than eight values
    or constant ones. What is not below `below` need not be exact, only no less than it.
    """
    probabilities = np.ones(values.shape[1])
    varies = np.flatnonzero(np.ptp(values, axis=0) > 0)
    if len(values) >= FEWEST_FOR_TREND and len(varies):
        columns = values[:, varies]
        either = np.minimum(_rising(columns), _beginning_differs(columns, below / 2))
        probabilities[varies] = np.minimum(2 * either, 1.0)
    return probabilities


def _rising(values: Floats) -> Floats:
    """Mann-Kendall's two-sided probability by the normal approximation."""
    if len(values) > _MOST:
        edges = np.linspace(0, len(values), _MOST + 1).astype(np.intp)
        values = np.add.reduceat(values, edges[:-1], axis=0) / np.diff(edges)[:, None]
    rises, variance = mann_kendall(values)
    times = np.arange(len(values), dtype=np.float64) - (len(values) - 1) / 2
    slopes = times @ values / float(times @ times)
    residuals = values - values.mean(axis=0) - slopes * times[:, None]
    scale = np.sqrt(2 * np.maximum(variance, 1e-300) * autocorrelation_times(residuals))
    found = [erfc(size) for size in np.abs(rises) / scale]
    return np.where(variance > 0.0, found, 1.0)


def _beginning_differs(values: Floats, below: float) -> Floats:
    """Two-sided probability that the first tenth (three values at least) has the mean of the last half.

    Geweke's comparison, with the noise and its correlation taken from the last half alone, since the beginning may
    be anything. Exact where it is less than `below`.
    """
    first, last = values[: max(3, len(values) // 10)], values[len(values) // 2 :]
    time = autocorrelation_times(last)
    freedom = len(last) / time - 1
    variance = last.var(axis=0) * len(last) / (len(last) - np.minimum(time, len(last) / 2))
    error = np.sqrt(variance * (np.minimum(time / len(first), 1.0) + time / len(last)))
    distance = np.abs(first.mean(axis=0) - last.mean(axis=0))
    probabilities = np.ones(values.shape[1])
    able = freedom >= 1
    exact = able & (error <= 1e-12 * distance)
    probabilities[exact & (distance > 0)] = 0.0
    # The normal distribution has the least tail: what it does not call rare, no t does.
    rare = -NormalDist().inv_cdf(min(below, 1.0) / 2)
    for column in np.flatnonzero(able & ~exact & (distance > rare * error)):
        probabilities[column] = 2 * t_tail(float(distance[column] / error[column]), float(freedom[column]))
    return probabilities
