"""histograms.sqlite as columns of a page: of everything from its totals, of an instance from the hosts' results."""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...protocol.counters import SERIES, Moment
from ...protocol.messages import Result
from ..output.histogram_db import TotalMoment
from ..output.histogram_db_reader import HistogramReader, StoredTotal
from ..rollup.instances import ALL
from .histogram_columns import SERIES_SHOWN, SETS, Cells, Column, added

_MOMENTS: Final = (Moment.COUNT, Moment.SUM, Moment.MIN, Moment.MAX)  # in the order of TotalMoment
Parts = Mapping[int, list[Cells]]  # by series


def columns_from(
    reader: HistogramReader, step: int, by: str, instance: str, first: int
) -> Iterator[tuple[int, Column]]:
    """(subinterval, its histograms) from the subinterval `first` on; none where no host of the instance is in.

    Raises KeyError where there is no such instance.
    """
    if by == ALL and reader.has_totals:
        for number, total in reader.totals(step, first):
            yield number, _column(_of_total(total))
        return
    chosen = reader.chosen(step, by, instance)
    number, parts = -1, _no_parts()
    for host, result in reader.results(step, first, hosts=chosen):
        if result.subinterval != number:
            if number >= 0:
                yield number, _column(parts)
            number, parts = result.subinterval, _no_parts()
        _add(parts, result, chosen[host])
    if number >= 0:
        yield number, _column(parts)


def _no_parts() -> dict[int, list[Cells]]:
    return {series: [] for series in range(SERIES_SHOWN)}


def _column(parts: Parts) -> Column:
    sums = {name: added([cells for one in series for cells in parts[one]]) for name, series in SETS.items()}
    return {name: cells for name, cells in sums.items() if cells is not None}


def _of_total(total: StoredTotal) -> Parts:
    ends = total.spans[:, 1].cumsum()
    return {
        series: [_cells(total.spans[series], ends[series], total.buckets, total.moments[series])]
        if total.spans[series, 1]
        else []
        for series in range(SERIES_SHOWN)
    }


def _add(parts: Mapping[int, list[Cells]], result: Result, classes: Collection[int]) -> None:
    """The histograms of some merge classes of a result."""
    moments = np.frombuffer(result.moments.data, "<u8").reshape(-1, SERIES, len(Moment))
    spans = np.frombuffer(result.spans.data, "<u4").reshape(-1, SERIES, 2).astype(np.int64)
    ends = spans[:, :, 1].reshape(-1).cumsum().reshape(-1, SERIES)
    buckets = np.frombuffer(result.buckets.data, "<" + result.buckets.type)
    for klass in classes:
        for series in np.flatnonzero(spans[klass, :SERIES_SHOWN, 1]).tolist():
            place = spans[klass, series], ends[klass, series], buckets, moments[klass, series, _MOMENTS]
            parts[series].append(_cells(*place))


def _cells(span: NDArray[np.int64], end: int, buckets: NDArray[np.generic], moments: NDArray[np.uint64]) -> Cells:
    """Of the used range that ends before `end` in all buckets. `moments`: as in TotalMoment."""
    return Cells(
        int(span[0]),
        buckets[end - span[1] : end].astype(np.uint64),
        int(moments[TotalMoment.COUNT]),
        int(moments[TotalMoment.SUM]),
        int(moments[TotalMoment.MIN]),
        int(moments[TotalMoment.MAX]),
    )
