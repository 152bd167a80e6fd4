"""A result as one PNG: percentiles over time, their bands, and a heat map of all latencies over time.

Rule: gaps are gaps: an interval without I/O breaks the line. Latency axes are logarithmic.
"""

from pathlib import Path

import numpy as np

from ...errors import PlanError
from ..readers.records import NS_PER_S, Floats
from ..result.series import Histograms, Series
from ..result.table import LogResult

_BAND = "tab:blue"


def draw(result: LogResult, series: Series, path: Path) -> None:
    """Three pictures on one time axis. PlanError without matplotlib."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise PlanError("--plot FILE.png needs matplotlib; pip install 'ivypy[report]', or plot to .html") from None
    assert series.histograms is not None
    figure = Figure(figsize=(12, 12), layout="constrained")
    FigureCanvasAgg(figure)
    lines, bands, heat = figure.subplots(3, 1, sharex=True)
    begin = (np.array(result.span) * result.length_ns - result.origin_ns) / NS_PER_S
    times, values = begin + result.length_ns / NS_PER_S / 2, _over_span(result, series)
    names = [f"p{p:g}" for p in series.percentiles]
    for name, line in zip(names, values.T, strict=True):
        lines.plot(times, line, label=name, linewidth=1.2, marker=".", markersize=3)
    for index in range(len(names) - 1):
        label = f"{names[index]} to {names[index + 1]}"
        shade = 0.6 / (index + 1)
        bands.fill_between(times, values[:, index], values[:, index + 1], label=label, color=_BAND, alpha=shade, lw=0)
    _heat_map(heat, result, series.histograms, begin)
    for axes, title in (
        (lines, "Percentiles over time"),
        (bands, "Bands between percentiles"),
        (heat, "All latencies"),
    ):
        axes.set_yscale("log")
        axes.set_ylabel("latency, us")
        axes.set_title(f"{title}: {series.instance.quantity_name}, {series.instance}", loc="left", fontsize=10)
    for axes in (lines, bands):
        axes.grid(True, which="both", alpha=0.3)
        axes.margins(y=0.15)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(loc="upper right", ncols=4, fontsize=8)
    heat.set_xlabel("seconds from the start")
    figure.savefig(path, dpi=100)


def _over_span(result: LogResult, series: Series) -> Floats:
    """Percentiles in us of every interval of the span; NaN where it is empty."""
    values = np.full((len(result.span), len(series.percentiles)), np.nan)
    values[series.quanta - result.span.start] = series.statistics.values / 1000
    return values


def _heat_map(axes, result: LogResult, histograms: Histograms, begin: Floats) -> None:  # type: ignore[no-untyped-def]
    from matplotlib.colors import LogNorm

    cells = np.zeros((len(result.span), histograms.cells.shape[1]))
    cells[histograms.quanta - result.span.start] = histograms.cells
    edges = np.maximum(histograms.edges / 1000, 1e-3)
    times = np.append(begin, begin[-1] + result.length_ns / NS_PER_S)
    masked = np.ma.masked_less_equal(cells.T, 0)
    mesh = axes.pcolormesh(times, edges, masked, norm=LogNorm(vmin=max(masked.min(), 1e-3)), cmap="viridis")
    axes.figure.colorbar(mesh, ax=axes, label="I/Os", pad=0.01)
