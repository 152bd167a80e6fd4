"""Pearson's correlation of many series with one: of the pairs in which both have a value.

Rule: below FEWEST_PAIRS, or where either does not vary, there is none: a figure of three points convinces and says
nothing.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FEWEST_PAIRS: Final = 8
_NO_VARIANCE: Final = 1e-15  # of a series, relative to its mean square: less than the seven digits of a file show


def correlations(series: Floats, other: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """(r (m,), pairs (m,)) of each column of `series` (n, m) with `other` (n,); nan is a gap, and where there is no
    r."""
    paired = np.isfinite(series) & np.isfinite(other)[:, None]
    count = paired.sum(axis=0)
    xs, x_varies = _centred(series, paired, count)
    ys, y_varies = _centred(np.broadcast_to(other[:, None], series.shape), paired, count)
    known = (count >= FEWEST_PAIRS) & x_varies & y_varies
    coefficients = np.full(series.shape[1], np.nan)
    size = np.sqrt((xs**2).sum(axis=0) * (ys**2).sum(axis=0))
    np.divide((xs * ys).sum(axis=0), size, out=coefficients, where=known)
    return np.clip(coefficients, -1.0, 1.0), count.astype(np.int64)


def _centred(values: Floats, paired: NDArray[np.bool_], count: NDArray[np.int64]) -> tuple[Floats, NDArray[np.bool_]]:
    """Values less their mean, 0 where there is no pair; and whether they vary."""
    used = np.where(paired, values, 0.0)
    fewest = np.maximum(count, 1)
    centred = np.where(paired, used - used.sum(axis=0) / fewest, 0.0)
    squares = (used**2).sum(axis=0) / fewest
    return centred, (centred**2).sum(axis=0) / fewest > _NO_VARIANCE * squares
