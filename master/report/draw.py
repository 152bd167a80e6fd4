"""Charts by matplotlib, without display: latency and rate over time, heat map, distribution, latency against load.

Rule: axes have their units; warmup and what else is not measured is shaded, a dotted line is where a step begins, and a
gap in the data is a gap in the line.
"""

import importlib.util
import io
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from ..errors import PlanError
from ..output.named_files import save
from ..text.libraries import to_install
from .over_time import Floats, OverTime, log_densities, nines
from .write_report import check_place

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind people can tell apart.
COLOURS: Final = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#6b7280")
DPI: Final = 100
_DASHES: Final = ("-", "--", "-.", ":")
_MOST_NAMED: Final = 24  # steps whose names are written
SOFTWARE: Final = "ivypy report"  # in each picture's head


def check_matplotlib(instead: str = "") -> None:
    """Raises PlanError where it is missing. `instead`: what does without."""
    if importlib.util.find_spec("matplotlib") is None:
        raise PlanError(f"pictures need matplotlib: {to_install('matplotlib')}{instead}")


def figure(panels: int, height: float, heights: Sequence[float] | None = None) -> "tuple[Figure, list[Axes]]":
    """A figure 12 inches wide, of panels one below the other on one axis of time. Raises PlanError."""
    check_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=(12, height), layout="constrained")
    FigureCanvasAgg(made)
    axes = made.subplots(panels, 1, sharex=True, squeeze=False, height_ratios=heights)
    return made, [row[0] for row in axes]


def save_figure(made: "Figure", path: Path) -> None:
    """In the place of an earlier picture, and of no other file. Raises PlanError, OutputError."""
    check_place(path, SOFTWARE.encode())
    save(path, partial(_write, made, path))


def _write(made: "Figure", path: Path) -> None:
    path.write_bytes(png_of(made))


def png_of(made: "Figure") -> bytes:
    stream = io.BytesIO()
    made.savefig(stream, format="png", dpi=DPI, metadata={"Software": SOFTWARE})
    return stream.getvalue()


def latency_lines(axes: "Axes", data: OverTime, time: str) -> None:
    """Percentiles and maximum over time."""
    lines = {name: values for name, values in data.latencies[time].items() if np.isfinite(values).any()}
    for place, (name, values) in enumerate(lines.items()):
        colour = COLOURS[-1] if name == "max" else COLOURS[place % (len(COLOURS) - 1)]
        style = ":" if name == "max" else _DASHES[place % 3]
        _stairs(axes, data, values, name, color=colour, linestyle=style)
    axes.margins(y=0.2)  # room for the legend
    latency_axis(axes)
    _over_time(axes, data, f"{time[0].upper()}{time[1:]}")


def bands(axes: "Axes", data: OverTime, time: str) -> None:
    """The spans between neighbouring percentiles."""
    lines = [(name, values) for name, values in data.latencies[time].items() if name != "max"]
    for place, ((low, below), (high, above)) in enumerate(pairwise(lines)):
        x, y0 = _steps_of(data, below)
        _, y1 = _steps_of(data, above)
        shade = 0.6 / (place + 1)
        axes.fill_between(x, y0, y1, label=f"{low} to {high}", color=COLOURS[0], alpha=shade, lw=0)
    latency_axis(axes)
    _over_time(axes, data, f"Bands between percentiles of {time}")


def rate_lines(axes: "Axes", data: OverTime) -> None:
    """IOPS, with the rate that was asked for."""
    if np.isfinite(data.target).any():
        _stairs(axes, data, data.target, "target", color=COLOURS[4], linestyle="--")
    _stairs(axes, data, data.iops, "IOPS", color=COLOURS[0])
    axes.set_ylim(bottom=0)
    axes.set_ylabel("I/Os per second")
    axes.yaxis.set_major_formatter(_with_units(""))
    _over_time(axes, data, "Rate")


def heat_map(axes: "Axes", data: OverTime) -> None:
    """I/Os per second and decade of latency, over time."""
    edges, densities = log_densities(data.counts) if data.counts is not None else (np.empty(0), np.empty((0, 0)))
    if len(edges) and data.counts is not None:
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import LogNorm

        norm = LogNorm(vmin=float(np.nanmin(densities)), vmax=float(np.nanmax(densities)) * 1.0001)
        for part in _runs(data.counts.begin_s, data.counts.end_s):
            times = np.append(data.counts.begin_s[part], data.counts.end_s[part][-1])
            cells = np.ma.masked_invalid(densities[part].T)
            axes.pcolormesh(times, edges, cells, norm=norm, cmap="cividis")
        axes.figure.colorbar(ScalarMappable(norm, "cividis"), ax=axes, label="I/Os per s and decade", pad=0.01)
    latency_axis(axes)
    _over_time(axes, data, "Latency over time, I/Os at each latency", legend=False)


def distribution_lines(axes: "Axes", lines: Iterable[tuple[str, Floats, Floats]]) -> None:
    """Latency by percentile, on an axis of nines."""
    farthest = 1.0
    for place, (name, x, y) in enumerate(lines):
        style = _DASHES[place // len(COLOURS) % len(_DASHES)] if not name.endswith("response") else "--"
        axes.step(x, y, where="post", label=name, color=COLOURS[place % len(COLOURS)], linestyle=style)
        farthest = max(farthest, float(x.max(initial=0.0)))
    marks = np.array([0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999])
    marks = marks[nines(marks) <= farthest + 0.3]
    axes.set_xticks(nines(marks), [f"{100 * one:.6g} %" for one in marks])
    axes.set_xlabel("percentile")
    latency_axis(axes)
    axes.set_title("Distribution of latency", loc="left", fontsize=10)
    _finish(axes, where="upper left")


def load_lines(axes: "Axes", loads: Mapping[str, Sequence[tuple[float, float, str]]], what: str) -> None:
    """Latency against load: crosses missed a threshold, open circles are invalid."""
    for place, (name, points) in enumerate(loads.items()):
        colour = COLOURS[place % len(COLOURS)]
        axes.plot([x for x, _, _ in points], [y for _, y, _ in points], color=colour, label=name, lw=1.2)
        for x, y, verdict in points:
            mark = "x" if verdict == "failed" else "o"
            axes.plot([x], [y], mark, color=colour, fillstyle="none" if verdict == "invalid" else "full")
    axes.margins(y=0.2)  # room for the legend
    axes.set_xlim(left=0)
    axes.set_xlabel("I/Os per second")
    axes.xaxis.set_major_formatter(_with_units(""))
    latency_axis(axes)
    axes.set_title(f"{what} against load; x: failed, open: invalid", loc="left", fontsize=10)
    _finish(axes)


def latency_axis(axes: "Axes") -> None:
    """Logarithmic, with the unit at each mark; `axes` has latencies in us."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_yscale("log")
    low, high = axes.get_ylim()
    few = high / max(low, 1e-3) < 300
    axes.yaxis.set_major_locator(LogLocator(10, (1, 2, 5) if few else (1,)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda us, _: latency_mark(us)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_ylabel("latency")


def latency_mark(us: float) -> str:
    """ "50 us", "2 ms"."""
    for unit, factor in (("s", 1e6), ("ms", 1e3), ("us", 1.0)):
        if us >= factor * 0.999:
            return f"{us / factor:.3g} {unit}"
    return f"{us * 1e3:.3g} ns"


def _with_units(unit: str) -> Any:
    from matplotlib.ticker import EngFormatter

    return EngFormatter(unit, sep=" " if unit else "")


def _steps_of(data: OverTime, values: Floats) -> tuple[Floats, Floats]:
    """Points that hold each value over its subinterval; time between subintervals is a gap."""
    x = np.column_stack([data.begin_s, data.end_s, data.end_s]).reshape(-1)
    joined = np.append(np.abs(data.begin_s[1:] - data.end_s[:-1]) < 0.05 * (data.end_s - data.begin_s)[:-1], False)
    between = np.where(joined, values, np.nan)
    return x, np.column_stack([values, values, between]).reshape(-1)


def _stairs(axes: "Axes", found: OverTime, values: Floats, name: str, **look: Any) -> None:
    x, y = _steps_of(found, values)
    axes.plot(x, y, label=name, lw=1.3, **look)


def _runs(begin: Floats, end: Floats) -> list[slice]:
    """Stretches of columns without a pause between them."""
    breaks = np.flatnonzero(begin[1:] - end[:-1] > 0.5 * (end - begin)[:-1]) + 1
    ends = [0, *breaks.tolist(), len(begin)]
    return [slice(low, high) for low, high in pairwise(ends) if high > low]


def _over_time(axes: "Axes", data: OverTime, title: str, legend: bool = True) -> None:
    for low, high in data.not_measured:
        axes.axvspan(low, high, color="0.5", alpha=0.15, lw=0)
    for at, name in data.steps if len(data.steps) > 1 else ():
        axes.axvline(at, color="0.4", lw=0.8, ls=":")
        if len(data.steps) <= _MOST_NAMED:
            where = axes.get_xaxis_transform()
            axes.text(
                at, 0.99, f" {name[:24]}", transform=where, va="top", ha="left", fontsize=7, color="0.35", rotation=90
            )
    shaded = "; shaded: not measured" if data.not_measured else ""
    axes.set_title(f"{title}{shaded}", loc="left", fontsize=10)
    place = axes.get_subplotspec()
    if place is None or place.is_last_row():
        axes.set_xlabel("seconds from the start")
    _finish(axes, legend)


def _finish(axes: "Axes", legend: bool = True, where: Literal["upper left", "upper right"] = "upper right") -> None:
    axes.grid(True, which="major", alpha=0.3)
    if legend and axes.get_legend_handles_labels()[0]:
        axes.legend(loc=where, ncols=4, fontsize=8)
