"""How much a series of subinterval values repeats itself: the integrated autocorrelation time, in subintervals.

Rule: n correlated values are worth n / time independent ones. The time is 1 + 2 x the sum of the autocorrelations,
summed up to five times itself (Sokal's window), and never below what the first autocorrelation alone says of an
AR(1) series with Kendall's correction, since a short series looks less correlated than it is: its own mean is in
every term.
"""

import numpy as np
from numpy.typing import NDArray

FLOATS = NDArray[np.float64]
_WINDOW = 5.0  # Sokal: beyond five times the time, autocorrelations are noise
_SHORTEST = 8  # below this many values, nothing can be said of their correlation


def autocorrelation(values: FLOATS) -> FLOATS:
    """Autocorrelation at lags 0 .. n - 1, about the mean, divided by n (the biased, positive definite form).

    A constant series has 1 at lag 0 and 0 elsewhere.
    """
    residuals = values - values.mean()
    squares = float(residuals @ residuals)
    if squares <= 0.0:
        return np.concatenate([[1.0], np.zeros(len(values) - 1)])
    products = np.correlate(residuals, residuals, "full")[len(values) - 1 :]
    return np.asarray(products / squares, dtype=np.float64)


def autocorrelation_time(values: FLOATS) -> float:
    """Integrated autocorrelation time of `values`, in samples; at least 1 (negative correlation is not used)."""
    n = len(values)
    if n < _SHORTEST or values.min() == values.max():
        return 1.0
    correlation = autocorrelation(values)
    first = min(
        max((n * float(correlation[1]) + 1) / (n - 4), 0.0), 1 - 2 / n
    )  # Kendall: E = r - (1 + 3r) / n, n - 1 terms
    of_ar1 = (1 + first) / (1 - first)
    sums = 1 + 2 * np.cumsum(correlation[1 : n // 2 + 1] + of_ar1 / n)  # the mean takes time / n out of each lag
    enough = np.nonzero(np.arange(1, len(sums) + 1) >= _WINDOW * sums)[0]
    summed = float(sums[enough[0]] if len(enough) else sums[-1])
    return max(1.0, of_ar1, summed)
