"""How much a series of subinterval values repeats itself; stats/confidence.py has the estimator, for many series."""

import numpy as np
from numpy.typing import NDArray

from . import confidence

FLOATS = NDArray[np.float64]


def autocorrelation_time(values: FLOATS) -> float:
    """Integrated autocorrelation time of one series, in samples; at least 1."""
    return float(confidence.autocorrelation_time(values[:, None])[0])


def autocorrelation_times(values: FLOATS) -> FLOATS:
    """The same of each column of values (n, R)."""
    return confidence.autocorrelation_time(values)
