"""`ivypy.load`: the tables of one run or of several, as data frames or lists; read when they are first asked for."""

import html
from collections.abc import Iterable, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from ...protocol.histogram import bucket_of
from ..errors import PlanError
from ..report.pictures import Picture, picture_of
from ..results.find_runs import runs_of
from ..rollup.instances import ALL
from ..stats.percentiles import percentile
from ..summary.headline import IN_NOTEBOOKS, marked, scope_of
from ..text.libraries import to_install
from ..text.suggestions import suggestion
from ..verdicts import Verdict
from .tables import as_frame, checked_table, parts_of, read_columns

Frames = Literal["pandas", "polars", "lists"]
_KINDS: Final = ("pandas", "polars", "lists")


class LoadedRuns:
    """Runs that were read back. Each table is a frame: `summary`, `events`, `hosts`, `luns`, `cpu`, `windows`,
    `workloads`, `threads`, `connectors`, `elements`, `by_address`; `measurements()`, `subintervals()` and
    `histograms()` also by rollup type. Columns and units are those of docs/columns.md, with the name of the run in
    `run`.
    """

    def __init__(self, folders: Sequence[Path], frames: Frames) -> None:
        self.folders = tuple(folders)
        self.frames = frames
        self._kept: dict[tuple[str, str | None], Any] = {}

    def __repr__(self) -> str:
        names = ", ".join(folder.name for folder in self.folders[:3])
        more = f" and {len(self.folders) - 3} more" if len(self.folders) > 3 else ""
        return f"<{len(self.folders)} run{'s' if len(self.folders) > 1 else ''} of ivypy: {names}{more}>"

    def _repr_html_(self) -> str:
        """The measurements of everything, as a table of a notebook."""
        columns = read_columns("summary", parts_of("summary", self.folders))
        rows = [
            [_cell(columns, title, place) for title in _TITLES if title in columns]
            for place, kind in enumerate(columns.get("rollup_type", []))
            if kind == ALL
        ]
        head = "".join(f"<th>{html.escape(title)}</th>" for title in _TITLES if title in columns)
        body = "".join(f"<tr>{''.join(f'<td>{html.escape(one)}</td>' for one in row)}</tr>" for row in rows)
        return f"<p>{html.escape(repr(self))}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def table(self, name: str, by: str | None = None) -> Any:
        """A table by its name; `by`: only of a rollup type. Raises PlanError where there is none."""
        key = checked_table(name), by
        if key not in self._kept:
            parts = parts_of(name, self.folders, by)
            if by is not None and not parts:
                known = self._rollup_types()
                raise KeyError(f"no rollup type {by!r}; there are {', '.join(known)}{suggestion(by, known)}")
            self._kept[key] = as_frame(name, read_columns(name, parts), self.frames)
        return self._kept[key]

    def _rollup_types(self) -> list[str]:
        found = read_columns("summary", parts_of("summary", self.folders)).get("rollup_type", [])
        return sorted({str(kind) for kind in found})

    def __getattr__(self, name: str) -> Any:
        if name not in _ATTRIBUTES:
            raise AttributeError(f"{type(self).__name__} has no {name!r}{suggestion(name, _NAMES)}")
        return self.table(name)

    def measurements(self, by: str | None = None) -> Any:
        """A row for each measurement and rollup instance, with every metric."""
        return self.table("measurements", by)

    def subintervals(self, by: str | None = ALL) -> Any:
        """A row for each subinterval and rollup instance of a type; None: of all types."""
        return self.table("subintervals", by)

    @cached_property
    def _histograms(self) -> dict[str, list[Any]]:
        return read_columns("histograms", parts_of("histograms", self.folders))

    @cached_property
    def _measured(self) -> dict[str, list[Any]]:
        return read_columns("measurements", parts_of("measurements", self.folders))

    def histograms(self, by: str | None = ALL) -> Any:
        """A row for each used bucket of a measurement."""
        return self.table("histograms", by)

    def picture(self, name: str = "latency", *, run: str | None = None) -> Picture:
        """A chart that a notebook shows: "latency" or "iops" over time, "heatmap", "distribution", or "load" (latency
        against it). `run`: needed where there are several. Raises PlanError."""
        names = {folder.resolve().name: folder for folder in self.folders}
        if run is None and len(names) > 1:
            raise PlanError(f"which run? there are {', '.join(names)}")
        if run is not None and run not in names:
            raise PlanError(f"no run {run!r}; there are {', '.join(names)}{suggestion(str(run), names)}")
        return picture_of(self.folders[0] if run is None else names[run], name)

    def percentile(
        self, fraction: float, step: str, *, run: str | None = None, category: str = "overall", time: str = "service",
        instance: str = f"{ALL}={ALL}",
    ) -> float | None:  # fmt: skip
        """A percentile of a measurement in microseconds, 0.999 for p99.9, as ivypy itself takes it: within 1/128, and
        None where fewer than 10 I/Os lie beyond it. `run`: needed where there are several. Raises KeyError,
        ValueError."""
        if not 0 < fraction < 1:
            percent = f": write {fraction / 100:.9g} for p{fraction:g}" if 1 <= fraction < 100 else ""
            raise ValueError(f"{fraction:g} is no share of the I/Os, between 0 and 1{percent}")
        by, _, name = instance.partition("=")
        histograms = self._histograms
        wanted = {"name": step, "category": category, "time": time, "rollup_type": by, "rollup_instance": name}
        if run is not None or len(self.folders) > 1:
            wanted["run"] = str(run)
        for column, value in wanted.items():
            known = [*dict.fromkeys(histograms.get(column, []))]
            if value not in known:
                raise KeyError(
                    f"no {column} {value!r} has a histogram; there are {', '.join(map(str, known)) or 'none'}"
                )
        places = [
            place for place in range(len(histograms["name"]))
            if all(histograms[column][place] == value for column, value in wanted.items())
        ]  # fmt: skip
        if not places:
            raise KeyError(f"no histogram of {wanted}")
        low = bucket_of(round(histograms["from_us"][places[0]] * 1000))
        high = bucket_of(round(histograms["from_us"][places[-1]] * 1000)) + 1
        counts = np.zeros(high - low, np.int64)
        for place in places:
            counts[bucket_of(round(histograms["from_us"][place] * 1000)) - low] += histograms["count"][place]
        least, most = self._ends(
            histograms["run"][places[0]], histograms["step"][places[0]], by, name, f"{category}_{time}_us"
        )
        ns = percentile(counts, low, least, most, fraction)
        return None if np.isnan(ns) else ns / 1000

    def _ends(self, run: str, step: int, by: str, instance: str, latency: str) -> tuple[float, float]:
        """The shortest and the longest latency of a step's last measurement, in ns."""
        rows = self._measured
        for place in reversed(range(len(rows["step"]))):
            own = (rows["run"][place], rows["step"][place], rows["rollup_type"][place], rows["rollup_instance"][place])
            if own == (run, step, by, instance) and rows[f"{latency}_max"][place] is not None:
                return rows[f"{latency}_min"][place] * 1000, rows[f"{latency}_max"][place] * 1000
        return 0.0, float("inf")


_ATTRIBUTES: Final = (
    "summary", "events", "hosts", "luns", "cpu", "windows", "workloads", "threads", "connectors", "elements",
    "by_address",
)  # fmt: skip
_NAMES: Final = (*_ATTRIBUTES, "measurements", "subintervals", "histograms", "percentile", "picture", "table")


_TITLES: Final = ("run", "name", "verdict", *IN_NOTEBOOKS)


def _cell(columns: dict[str, list[Any]], title: str, place: int) -> str:
    """As a table shows it: in brackets where its verdict discredits it."""
    text = _shown(columns[title][place])
    if title not in IN_NOTEBOOKS or not text:
        return text
    return marked(text, Verdict(columns[f"{scope_of(title)}_verdict"][place]))


def _shown(value: Any) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def load(runs: str | Path | Iterable[str | Path], frames: Frames | None = None) -> LoadedRuns:
    """Read runs back: a run's folder, a folder of runs, or several of these.

    `frames`: "pandas", "polars", or "lists", which are lists of dicts; by default the first that is installed. Raises
    PlanError where a run cannot be read, or two have one name.
    """
    if frames is not None and frames not in _KINDS:
        raise PlanError(f"frames is {frames!r}; there are {', '.join(_KINDS)}{suggestion(frames, _KINDS)}")
    if frames in ("pandas", "polars") and not find_spec(frames):
        raise PlanError(f"{frames} is not installed: {to_install(frames)}, or leave `frames` out")
    words = [runs] if isinstance(runs, str | Path) else [*runs]
    left_out: list[str] = []
    folders = [folder for word in words for folder in runs_of(str(word), left_out)]
    if not folders:
        raise PlanError("no run is named")
    by_name: dict[str, Path] = {}
    for folder in folders:
        other = by_name.setdefault(folder.resolve().name, folder)
        if other.resolve() != folder.resolve():
            raise PlanError(
                f"{other} and {folder}: both runs are named {folder.resolve().name}, by which tables tell them apart:"
                " rename a folder, or load them one by one"
            )
    installed: Frames = next((kind for kind in ("pandas", "polars") if find_spec(kind)), "lists")
    return LoadedRuns([*by_name.values()], frames or installed)
