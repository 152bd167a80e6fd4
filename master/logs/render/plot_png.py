"""A result as one PNG: percentiles over time, their bands, a heat map of all latencies, and the rate."""

from pathlib import Path

import numpy as np

from ...report import draw as charts
from ...report.over_time import Floats, LatencyCounts, OverTime
from ..readers.records import NS_PER_S
from ..result.series import Series
from ..result.table import LogResult, rows


def draw(result: LogResult, series: Series, path: Path) -> None:
    """Four pictures on one time axis. PlanError without matplotlib."""
    data = over_time(result, series)
    made, (lines, bands, heat, rate) = charts.figure(4, 12, (3, 2, 3, 1.5))
    made.suptitle(data.title, fontsize=11)
    (quantity,) = data.latencies
    charts.latency_lines(lines, data, quantity)
    charts.bands(bands, data, quantity)
    charts.heat_map(heat, data)
    charts.rate_lines(rate, data)
    charts.save_figure(made, path)


def over_time(result: LogResult, series: Series) -> OverTime:
    """The data that the charts show."""
    *table, _ = rows(result, series)
    zero_s = result.origin_ns / NS_PER_S
    names = [f"p{one:g}" for one in series.percentiles]
    lines = {name: _column([one.percentiles[place].us for one in table]) for place, name in enumerate(names)}
    return OverTime(
        title=f"{series.instance.quantity_name}, {series.instance} ({series.instance.format} logs)",
        begin_s=_column([one.start_s for one in table]),
        end_s=_column([one.end_s for one in table]),
        iops=_column([one.iops if one.covered_s or one.count else None for one in table]),
        target=np.full(len(table), np.nan),
        latencies={series.instance.quantity_name: {**lines, "max": _column([one.high_us for one in table])}},
        not_measured=[(begin / NS_PER_S - zero_s, end / NS_PER_S - zero_s) for begin, end in result.not_measured],
        steps=[(at / NS_PER_S - zero_s, name) for at, name in result.steps],
        counts=_counts(result, series, zero_s),
    )


def _counts(result: LogResult, series: Series, zero_s: float) -> LatencyCounts:
    histograms = series.histograms
    assert histograms is not None
    length_s = result.length_ns / NS_PER_S
    begin: Floats = histograms.quanta.astype(np.float64) * length_s - zero_s
    return LatencyCounts(begin, begin + length_s, histograms.edges / 1000, histograms.cells)


def _column(values: list[float | None]) -> Floats:
    return np.array([np.nan if one is None else one for one in values], np.float64)
