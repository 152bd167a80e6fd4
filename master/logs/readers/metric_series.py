"""Finished data as series over time: a run folder's columns, what fio's JSON kept of its steady state, a CSV column.

Rule: where a file lacks a value, the error names the file and what it has instead; no value is guessed.
"""

import csv
import io
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import Any, Final

from ...control.observation import Phase
from ...control.offline import ValueSeries
from ...errors import PlanError
from ...output.csv_text import whole_lines
from ...text.suggestions import OLD_NAMES, suggestion
from .fio_json import SteadySettings, filled, jobs_of, name_of, runtime_s, steady_settings

_FIO: Final[Mapping[str, tuple[str, float]]] = {  # metric: the name in fio's JSON, and its unit in the metric's
    "overall_iops": ("iops", 1.0),
    "overall_mib_per_s": ("bw", 2.0**-20),
    "overall_service_us_mean": ("lat_ns", 1e-3),
}
_UNLOADED: Final = (Phase.COOLDOWN,)
_ENCODING: Final = "utf-8-sig"  # spreadsheets begin a file with a mark of it


@dataclass(frozen=True, slots=True)
class NamedSeries:
    """A series, what it is of, and where a window must not reach over."""

    name: str
    series: ValueSeries
    breaks: tuple[int, ...] = ()  # the first value after an edit, or with other hosts
    settings: SteadySettings | None = None  # fio's JSON: the steady state that the job was asked for
    notes: tuple[str, ...] = ()
    hosts: tuple[tuple[int, int], ...] = ()  # a run's: of each value, whose results it includes, and of how many

    def hosts_at(self, place: int) -> tuple[int, int]:
        """Of one value; (0, 0) where hosts are not known."""
        return self.hosts[place] if self.hosts else (0, 0)


MetricOf = Callable[[SteadySettings | None], str]  # which metric to read


def series_of(path: Path, metric_of: MetricOf, rollup: str, length_s: float) -> list[NamedSeries]:
    """Read the series of a metric that `path` holds: a run folder, fio's JSON, or a CSV file with that column; `-` is
    standard input.

    `length_s` is between two rows of a CSV file that has no column `length_s`. Raises PlanError.
    """
    metric = OLD_NAMES.get(name := metric_of(None), name)
    try:
        if path.is_dir():
            return _of_run(path, metric, rollup)
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding=_ENCODING)
        if text.lstrip()[:1] == "{" or "\n{\n" in text:
            return _of_fio(path, text, metric_of)
        return [_of_csv(path, text, metric, length_s)]
    except OSError as error:
        raise PlanError(f"{path}: not read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        expected = "a run's folder, fio's JSON, or a CSV file, not compressed"
        raise PlanError(f"{path}: not read: it is no text; expected {expected}") from None
    except (json.JSONDecodeError, csv.Error) as error:
        raise PlanError(f"{path}: not read: {error}") from None


def _of_run(path: Path, metric: str, rollup: str) -> list[NamedSeries]:
    indexes = sorted(path.glob("step*/index.csv"))
    if not indexes:
        is_step = (path / "index.csv").exists()
        remedy = f"give the run's folder: {path.parent}" if is_step else "it has no step*/index.csv"
        raise PlanError(f"{path}: no run folder: {remedy}")
    series = []
    for index in indexes:
        every = _rows(index, _whole(index))
        rows = [row for row in every if row["rollup_type"] == rollup and row["file"]]
        if not rows:
            types = sorted({row["rollup_type"] for row in every})
            raise PlanError(f"{index.parent}: no files of the rollup type {rollup}; there are {', '.join(types)}")
        for row in rows:
            name = f"{index.parent} {rollup}={row['rollup_instance']}"
            series.append(_of_instance(name, index.parent / row["file"], metric))
    return series


def _of_instance(name: str, path: Path, metric: str) -> NamedSeries:
    rows = [row for row in _rows(path, _whole(path)) if row["phase"] not in _UNLOADED]
    lengths = _lengths_of_run(path, rows)
    changed = [
        i for i in range(1, len(rows))
        if rows[i]["hosts_in"] != rows[i - 1]["hosts_in"] or rows[i - 1]["phase"] == Phase.TRANSIENT
    ]  # fmt: skip
    series = ValueSeries(_starts(lengths), lengths, _values(path, rows, metric))
    hosts = tuple((int(row["hosts_in"] or 0), int(row.get("hosts_of") or 0)) for row in rows)
    return NamedSeries(name, series, tuple(changed), hosts=hosts)


def _lengths_of_run(path: Path, rows: Sequence[Mapping[str, Any]]) -> list[float]:
    """A subinterval without any host has no length, and no value: only later times count with it, as if it were like
    the others."""
    found = _values(path, rows, "length_s")
    usual = median([one for one in found if one is not None] or [1.0])
    return [usual if one is None else one for one in found]


def _of_csv(path: Path, text: str, metric: str, length_s: float) -> NamedSeries:
    rows = _rows(path, text)
    blank = sum(not line.strip() for line in text.splitlines())
    notes = (f"{path}: {blank} blank lines are left out",) if blank else ()
    lengths = _lengths(path, rows) if rows and "length_s" in rows[0] else [length_s] * len(rows)
    return NamedSeries(str(path), ValueSeries(_starts(lengths), lengths, _values(path, rows, metric)), notes=notes)


def _lengths(path: Path, rows: Sequence[Mapping[str, Any]]) -> list[float]:
    lengths = []
    for length_s in _values(path, rows, "length_s"):
        if length_s is None or length_s <= 0:
            raise PlanError(f"{path}: column length_s: it must be above 0 in every row")
        lengths.append(length_s)
    return lengths


def _of_fio(path: Path, text: str, metric_of: MetricOf) -> list[NamedSeries]:
    try:
        series = [named for job in jobs_of(text) if (named := _of_job(path, job, metric_of))]
    except json.JSONDecodeError:
        raise
    except (KeyError, AttributeError, TypeError, ValueError):
        raise PlanError(f"{path}: not read: it is JSON, but not as fio writes it") from None
    if not series:
        metric = metric_of(None)
        raise PlanError(f"{path}: no steadystate data of {metric}; fio keeps it when run with --steadystate")
    return series


def _of_job(path: Path, job: Mapping[str, Any], metric_of: MetricOf) -> NamedSeries | None:
    """The values that a job kept of its window; None where it kept none."""
    settings = steady_settings(job)
    metric = metric_of(settings)
    if metric not in _FIO:
        raise PlanError(f"{path}: fio keeps no {metric}; it has {', '.join(_FIO)}")
    name, unit = _FIO[metric]
    values = job.get("steadystate", {}).get("data", {}).get(name)
    if not values:
        return None
    title = f"{path} {name_of(job)}"
    notes = []
    sample_s = settings.sample_s if settings else 1.0
    if settings and len(values) > (most := round(settings.window_s / sample_s)):
        # Over a network, fio sends a value for each second of the window, though it keeps one for each interval.
        notes.append(f"{title}: {len(values)} values of a window of {most}; the others are not this job's")
        values = values[:most]
    measured = filled(job["steadystate"], values)
    if len(measured) < len(values):
        notes.append(
            f"{title}: fio filled {len(measured)} of the {len(values)} values of its window, so it never checked the "
            "criterion"
        )
    lengths = [sample_s] * len(measured)
    begin_s, note = _begin_of_kept(job, sum(lengths))
    if measured and note:
        notes.append(f"{title}: {note}")
    series = ValueSeries(_starts(lengths, begin_s), lengths, _scaled(measured, unit))
    return NamedSeries(title, series, settings=settings, notes=tuple(notes))


def _begin_of_kept(job: Mapping[str, Any], kept_s: float) -> tuple[float, str]:
    """When the values begin that fio kept of a job, in its runtime, with a note: they end with the job."""
    whole_s = runtime_s(job)
    if whole_s is None:
        return 0.0, "the JSON has no runtime of this job: times count from the window that fio kept"
    begin_s = round(max(whole_s - kept_s, 0.0), 3)
    return begin_s, f"fio kept only the values from {begin_s:g} s of its runtime on" if begin_s else ""


def _scaled(values: Iterable[float | None], unit: float) -> list[float | None]:
    return [None if value is None else value * unit for value in values]


def _whole(path: Path) -> str:
    """A file of a run, which may end within a line."""
    with open(path, encoding=_ENCODING, newline="") as file:
        return "".join(whole_lines(file))


def _rows(path: Path, text: str) -> list[dict[str, str]]:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    rows = []
    for row in reader:
        if None in row:
            raise PlanError(f"{path}: line {reader.line_num}: it has more values than the header has columns")
        rows.append({OLD_NAMES.get(name, name): value for name, value in row.items()})
    return rows


def _values(path: Path, rows: Sequence[Mapping[str, Any]], column: str) -> list[float | None]:
    if not rows:
        raise PlanError(f"{path}: it has no rows")
    if column not in rows[0]:
        raise PlanError(f"{path}: it has no column {column!r}{suggestion(column, rows[0])}")
    try:
        return [_number(row[column]) for row in rows]
    except ValueError as error:
        raise PlanError(f"{path}: column {column}: {error}") from None


def _number(text: str | None) -> float | None:
    """A blank, and what other programs write for one, is no value. Raises ValueError."""
    value = float(text) if text else math.nan
    if math.isinf(value):
        raise ValueError(f"{text} is not a measured value")
    return None if math.isnan(value) else value


def _starts(lengths: Sequence[float], begin_s: float = 0.0) -> list[float]:
    return list(accumulate(lengths, initial=begin_s))[:-1]
