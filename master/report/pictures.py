"""Runs as PNG: a file for each chart."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import OutputError
from ..pages.run_data import RunData
from . import draw
from .over_time import OverTime
from .run_over_time import distributions, load_metric, loads, over_time

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_pictures(folders: Sequence[Path], into: Path) -> list[Path]:
    """The files that were written, into a folder that is made if need be; named after the run where there are several.

    Raises PlanError, OutputError.
    """
    try:
        into.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{into}: the folder cannot be made: {error.strerror}") from None
    written = []
    for folder in folders:
        prefix = f"{folder.resolve().name}." if len(folders) > 1 else ""
        for name, make in _pictures(RunData(folder)):
            path = into / f"{prefix}{name}.png"
            draw.save_figure(make(), path)
            written.append(path)
    return written


def _pictures(data: RunData) -> "Iterator[tuple[str, Callable[[], Figure]]]":
    """Those of which there is something to draw."""
    found = over_time(data)
    if len(found.begin_s):
        yield "latency", lambda: _latency(found)
        yield "iops", lambda: _one(found, draw.rate_lines, 4)
        if found.counts is not None:
            yield "heatmap", lambda: _one(found, draw.heat_map, 5)
    lines = [*distributions(data)]
    if lines:
        yield "distribution", lambda: _alone(lambda axes: draw.distribution_lines(axes, lines))
    document = data.document()
    levels = loads(document)
    if levels:
        what = "Response time p99" if "response" in load_metric(document) else "Service time p99"
        yield "load", lambda: _alone(lambda axes: draw.load_lines(axes, levels, what))


def _latency(found: OverTime) -> "Figure":
    times = [time for time, lines in found.latencies.items() if any(np.isfinite(one).any() for one in lines.values())]
    made, panels = draw.figure(max(len(times), 1), 1 + 3.5 * max(len(times), 1))
    made.suptitle(found.title, fontsize=11)
    for axes, time in zip(panels, times, strict=False):
        draw.latency_lines(axes, found, time)
    return made


def _one(found: OverTime, drawn: Callable[..., None], height: float) -> "Figure":
    made, (axes,) = draw.figure(1, height)
    made.suptitle(found.title, fontsize=11)
    drawn(axes, found)
    return made


def _alone(drawn: Callable[..., None]) -> "Figure":
    made, (axes,) = draw.figure(1, 5)
    drawn(axes)
    return made
