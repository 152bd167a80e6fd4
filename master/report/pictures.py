"""Runs as PNG: a file for each chart.

Rule: a file of the run that is damaged, or gone, costs the charts that need it, and no other.
"""

import json
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...protocol.histogram import lower_edges
from ..errors import OutputError, PlanError
from ..output.named_files import save
from ..pages.run_data import RunData
from ..stats.percentiles import FEWEST_BEYOND
from ..text.suggestions import suggestion
from . import draw
from .archive import FAILURES
from .over_time import Floats, LatencyCounts, OverTime, distribution_points

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Maker = Callable[[RunData], "Figure | None"]  # None: there is nothing to draw
_PERCENTILES: Final = {"p50": "p50", "p90": "p90", "p99": "p99", "p99_9": "p99.9", "p99_99": "p99.99", "max": "max"}
_MEASURED: Final = "run"  # the phase


def write_pictures(folders: Sequence[Path], into: Path) -> Iterator[Path]:
    """Each file as it is written, into a folder that is made if need be; named after the run where there are several.

    Raises PlanError, OutputError; at the end also for what could not be drawn.
    """
    draw.check_matplotlib("; .html needs none")
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


@dataclass(frozen=True, slots=True, repr=False)
class Picture:
    """A chart, which a notebook shows."""

    name: str
    png: bytes

    def __repr__(self) -> str:
        return f"<{self.name}: a PNG of {len(self.png):,} bytes>"

    def _repr_png_(self) -> bytes:
        return self.png

    def save(self, path: Path | str) -> None:
        """Write it to a file. Raises OutputError."""
        there = Path(path)
        save(there, lambda: there.write_bytes(self.png))


def picture_of(folder: Path, name: str) -> Picture:
    """One chart of a run. Raises PlanError where there is no such one, nothing for it to show, or no matplotlib."""
    make = _MAKERS.get(name)
    if make is None:
        raise PlanError(f"{name!r} is no picture; there are {', '.join(_MAKERS)}{suggestion(name, _MAKERS)}")
    draw.check_matplotlib()
    try:
        made = make(RunData(folder))
    except FAILURES as error:
        raise PlanError(f"{name} is not drawn: {error}") from None
    if made is None:
        raise PlanError(f"{folder.name} has nothing that {name} could show")
    return Picture(name, draw.png_of(made))


def _latency(data: RunData) -> "Figure | None":
    data_over_time = over_time(data)
    times = [
        time
        for time, lines in data_over_time.latencies.items()
        if any(np.isfinite(one).any() for one in lines.values())
    ]
    if not times:
        return None
    made, panels = draw.figure(len(times), 1 + 3.5 * len(times))
    made.suptitle(data_over_time.title, fontsize=11)
    for axes, time in zip(panels, times, strict=True):
        draw.latency_lines(axes, data_over_time, time)
    return made


def _iops(data: RunData) -> "Figure | None":
    found = over_time(data)
    return _titled(data, 4, partial(draw.rate_lines, data=found)) if len(found.begin_s) else None


def _heat_map(data: RunData) -> "Figure | None":
    counts = latency_counts(data)
    if counts is None:
        return None
    return _titled(data, 5, partial(draw.heat_map, data=replace(over_time(data), counts=counts)))


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


def over_time(data: RunData) -> OverTime:
    """Of everything, without the histograms. Raises PlanError, and KeyError where a file is gone."""
    filled = _filled(data)
    start = _start(filled)
    begin = _joined([part["start"] for _, part in filled]) - start
    end = begin + _joined([part["length_s"] for _, part in filled])
    return OverTime(
        title=data.document()["run"]["run"],
        begin_s=begin,
        end_s=end,
        iops=_metric(filled, "overall_iops"),
        target=_joined(
            [[one if isinstance(one, float) else None for one in part["iops_setting"]] for _, part in filled]
        ),
        latencies={
            f"{time} time": {
                shown: _metric(filled, f"overall_{time}_us_{name}") for name, shown in _PERCENTILES.items()
            }
            for time in ("service", "response")
        },
        not_measured=list(_stretches([one != _MEASURED for _, part in filled for one in part["phase"]], begin, end)),
        steps=[(part["start"][0] - start, f"{step['number']} {step['name']}") for step, part in filled],
        counts=None,
    )


def latency_counts(data: RunData) -> LatencyCounts | None:
    """The histograms on the same axis of time; None where there are none. Raises PlanError, KeyError."""
    filled = _filled(data)
    return _counts([data.histograms(step["number"]) for step, _ in filled], _start(filled))


def _filled(data: RunData) -> list[tuple[Any, dict[str, Any]]]:
    """The steps that have subintervals, with them."""
    parts = [(step, data.series(step["number"])) for step in data.document()["steps"]]
    return [(step, part) for step, part in parts if part["start"]]


def _start(filled: Sequence[tuple[Any, Mapping[str, Any]]]) -> float:
    return float(filled[0][1]["start"][0]) if filled else 0.0


def distributions(data: RunData) -> Iterator[tuple[str, Floats, Floats]]:
    """(step and time, places on the axis of nines, latencies in us) of each measurement of everything."""
    for step in data.document()["steps"]:
        sets = data.distribution(step["number"])["sets"]
        for time in ("service", "response"):
            found = sets.get(f"overall.{time}")
            if found:
                low, high, counts = (np.array(found[name]) for name in ("from_us", "below_us", "count"))
                x, y = distribution_points(low, high, counts, FEWEST_BEYOND)
                yield f"{step['number']} {step['name']}, {time}", x, y


def loads(document: Mapping[str, Any]) -> dict[str, list[tuple[float, float, str]]]:
    """Latency against load: by the name of a step with levels, "steps" for all others: (IOPS, p99 in us, verdict).

    Response times where any measurement has them, since a wait is part of what a load costs.
    """
    measured = [(step, measurement) for step in document["steps"] for measurement in step["measurements"]]
    metric = load_metric(document)
    points_of: dict[str, list[tuple[float, float, str]]] = {}
    for step, measurement in measured:
        iops, latency = measurement["metrics"].get("overall_iops"), measurement["metrics"].get(metric)
        if iops and latency is not None:
            points_of.setdefault(step["name"] if measurement["level"] else "steps", []).append(
                (iops, latency, measurement["verdict"])
            )
    return {name: sorted(points) for name, points in points_of.items() if len(points) > 1}


def load_metric(document: Mapping[str, Any]) -> str:
    response = "overall_response_us_p99"
    has_it = any(response in one["metrics"] for step in document["steps"] for one in step["measurements"])
    return response if has_it else "overall_service_us_p99"


def _metric(filled: Sequence[tuple[Any, Mapping[str, Any]]], name: str) -> Floats:
    return _joined([part["metrics"][name] for _, part in filled])


def _joined(lists: Sequence[Sequence[float | None]]) -> Floats:
    return np.array([np.nan if one is None else one for values in lists for one in values], np.float64)


def _stretches(chosen: Sequence[bool], begin: Floats, end: Floats) -> Iterator[tuple[float, float]]:
    """Subintervals that are chosen; neighbours of one step are joined."""
    stretches: list[tuple[float, float]] = []
    for is_chosen, low, high in zip(chosen, begin.tolist(), end.tolist(), strict=True):
        if is_chosen and stretches and abs(low - stretches[-1][1]) < 0.02 * (high - low):
            stretches[-1] = stretches[-1][0], high
        elif is_chosen:
            stretches.append((low, high))
    yield from stretches


def _counts(answers: Sequence[bytes], start: float) -> LatencyCounts | None:
    """Service times of reads and writes together, of all steps. `answers`: as pages/histogram_columns.py makes them."""
    edges = np.array(lower_edges(), np.float64) / 1000
    begins: list[Floats] = []
    ends: list[Floats] = []
    parts: list[Floats] = []
    for answer in answers:
        (length,) = struct.unpack_from("<I", answer)
        header = json.loads(answer[4 : 4 + length])
        columns = len(header["first"])
        counts = np.zeros((columns, len(edges) - 1))
        for series in header["sets"]:
            if series["name"].endswith(".service"):
                width = series["high"] - series["low"]
                cells = np.frombuffer(answer, "<u4", columns * width, 4 + length + series["offset"])
                counts[:, series["low"] : series["high"]] += cells.reshape(columns, width)
        begins.append(np.array(header["start"], np.float64) - start)
        ends.append(begins[-1] + np.array(header["length_s"], np.float64))
        parts.append(counts)
    if not parts or not sum(part.sum() for part in parts):
        return None
    return LatencyCounts(np.concatenate(begins), np.concatenate(ends), edges, np.concatenate(parts))
