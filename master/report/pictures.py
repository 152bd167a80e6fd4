"""Runs as PNG: a file for each chart.

Rule: a file of the run that is damaged, or gone, costs the charts that need it, and no other.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import OutputError, PlanError
from ..pages.run_data import RunData
from . import draw
from .archive import FAILURES
from .run_over_time import distributions, latency_counts, load_metric, loads, over_time

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Maker = Callable[[RunData], "Figure | None"]  # None: there is nothing to draw


def write_pictures(folders: Sequence[Path], into: Path) -> Iterator[Path]:
    """Each file as it is written, into a folder that is made if need be; named after the run where there are several.

    Raises PlanError, OutputError; at the end also for what could not be drawn.
    """
    draw.check_matplotlib()
    try:
        into.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{into}: the folder cannot be made: {error.strerror}") from None
    faults = []
    for folder in folders:
        prefix = f"{folder.resolve().name}." if len(folders) > 1 else ""
        data = RunData(folder)
        for name, make in _MAKERS.items():
            try:
                made = make(data)
            except FAILURES as error:
                faults.append(f"{prefix}{name}.png is not drawn: {error}")
                continue
            if made is not None:
                path = into / f"{prefix}{name}.png"
                draw.save_figure(made, path)
                yield path
    if faults:
        raise PlanError("\n".join(faults))


def _latency(data: RunData) -> "Figure | None":
    found = over_time(data)
    times = [time for time, lines in found.latencies.items() if any(np.isfinite(one).any() for one in lines.values())]
    if not times:
        return None
    made, panels = draw.figure(len(times), 1 + 3.5 * len(times))
    made.suptitle(found.title, fontsize=11)
    for axes, time in zip(panels, times, strict=True):
        draw.latency_lines(axes, found, time)
    return made


def _iops(data: RunData) -> "Figure | None":
    found = over_time(data)
    return _titled(data, 4, partial(draw.rate_lines, found=found)) if len(found.begin_s) else None


def _heat_map(data: RunData) -> "Figure | None":
    counts = latency_counts(data)
    if counts is None:
        return None
    return _titled(data, 5, partial(draw.heat_map, found=replace(over_time(data), counts=counts)))


def _distribution(data: RunData) -> "Figure | None":
    lines = [*distributions(data)]
    return _titled(data, 5, partial(draw.distribution_lines, lines=lines)) if lines else None


def _load(data: RunData) -> "Figure | None":
    document = data.document()
    levels = loads(document)
    what = "Response time p99" if "response" in load_metric(document) else "Service time p99"
    return _titled(data, 5, partial(draw.load_lines, loads=levels, what=what)) if levels else None


_MAKERS: dict[str, Maker] = {
    "latency": _latency, "iops": _iops, "heatmap": _heat_map, "distribution": _distribution, "load": _load
}  # fmt: skip


def _titled(data: RunData, height: float, drawn: Callable[..., None]) -> "Figure":
    """One chart, under the name of its run."""
    made, (axes,) = draw.figure(1, height)
    made.suptitle(data.document()["run"]["run"], fontsize=11)
    drawn(axes)
    return made
