"""A measurement's histograms as CSV: one row per non-empty bucket and category.

Rule: categories that saw no I/O have no rows; lateness is of all paced I/O together.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from ...protocol.histogram import BUCKETS, lower_edges
from ..rollup.arrays import Buckets
from ..rollup.figures import CATEGORIES, Figures
from .columns import HISTOGRAM, names
from .csv_text import lines

_EDGES: Final = lower_edges()
_BOUNDS: Final = [f"{_EDGES[b] / 1e3:.15g},{_EDGES[b + 1] / 1e3:.15g}" for b in range(BUCKETS)]  # from_us,below_us


def histogram_csv(figures: Figures, row: int) -> str:
    """The whole file of one row. Response times have rows only where they have a meaning."""
    return lines([names(HISTOGRAM)]) + "".join(_parts(figures, row))


def _parts(figures: Figures, row: int) -> Iterator[str]:
    for category in CATEGORIES:
        yield _rows(f"{category},service", figures.service(category).buckets, row)
        if figures.has_response(category)[row]:
            yield _rows(f"{category},response", figures.response(category).buckets, row)
    yield _rows("overall,lateness", figures.lateness().buckets, row)


def _rows(start: str, buckets: Buckets, row: int) -> str:
    counts = buckets.counts[row]
    used = np.flatnonzero(counts)
    bounds = _BOUNDS[buckets.low : buckets.high]
    return "".join(
        f"{start},{bounds[place]},{count}\n" for place, count in zip(used.tolist(), counts[used].tolist(), strict=True)
    )
