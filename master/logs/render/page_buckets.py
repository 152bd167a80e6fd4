"""Histograms of logs in the buckets of the page, which are ivypy's own: 64 for each power of two nanoseconds.

Rule: no I/O is lost or made. A bucket of another layout is spread evenly over those that it covers, as linear
interpolation within it assumes, then rounded: the sums over all buckets below any edge, and over all times, are off by
less than one I/O.
"""

from typing import Final

import numpy as np

from ....protocol.histogram import lower_edges
from ...pages.histogram_columns import Cells
from ..readers.bucket_layouts import PER_GROUP, Layout
from ..readers.records import Floats
from ..result.series import Histograms, Series

_EDGES_NS: Final = np.array(lower_edges(), np.float64)


def width_in_words(layout: Layout) -> str:
    """How exact the buckets of a layout are."""
    width = f"{100 * 2**layout.coarseness / PER_GROUP:.2g} %"
    floor = f", and no finer than {layout.unit_ns:,} ns" if layout.unit_ns > 1 else ""
    return f"the logs' buckets are up to {width} wide{floor}; within one, I/Os are taken to be spread evenly"


def page_cells(histograms: Histograms) -> tuple[int, np.ndarray[tuple[int, int], np.dtype[np.uint64]]]:
    """(the first bucket, whole I/Os in each bucket from it on (times, buckets)), of the page's layout."""
    edges = histograms.edges.astype(np.float64)
    low = int(np.searchsorted(_EDGES_NS, edges[0], side="right")) - 1
    high = min(int(np.searchsorted(_EDGES_NS, edges[-1])), len(_EDGES_NS) - 1)
    below = np.concatenate([np.zeros((len(histograms.cells), 1)), histograms.cells.cumsum(axis=1)], axis=1)
    at = np.array([np.interp(_EDGES_NS[low : high + 1], edges, row) for row in below]).reshape(len(below), -1)
    at[:, -1] = below[:, -1]  # what lies beyond the page's last bucket is in it
    totals = below[:, -1]
    whole = np.diff(np.round(totals.cumsum()), prepend=0.0)
    share = np.divide(whole, totals, out=np.zeros(len(totals)), where=totals > 0)
    return low, np.diff(np.round(at * share[:, None]), axis=1).astype(np.uint64)


def columns_of(series: Series) -> dict[int, Cells]:
    """By quantum, those that hold any I/O."""
    assert series.histograms is not None
    low, counts = page_cells(series.histograms)
    statistics = series.statistics
    columns = {}
    for row, quantum in enumerate(series.histograms.quanta.tolist()):
        cells = counts[row]
        used = np.flatnonzero(cells)
        if not len(used):
            continue
        least = _known(statistics.low[row], _EDGES_NS[low + used[0]])
        most = _known(statistics.high[row], _EDGES_NS[low + used[-1] + 1])
        total = _known(statistics.sums[row], 0.0)
        columns[quantum] = Cells(low, cells, int(cells.sum()), total, least, most)
    return columns


def _known(value: float, otherwise: float) -> int:
    return int(otherwise if np.isnan(value) else value)


def counts_of_whole(series: Series) -> Floats:
    """I/Os in each of the logs' own buckets, over the whole span."""
    assert series.histograms is not None
    found: Floats = series.histograms.cells.sum(axis=0)
    return found
