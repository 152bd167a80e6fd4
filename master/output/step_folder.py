"""One step's folder.

Rule: rows of subinterval k are appended when k closes, each file opened, written once and closed; histograms.sqlite
takes k's results in one transaction. What is measured is decided later: windows.csv, `in_measurement` of the rows and
the histograms are written then. A rollup type with `csv: false` gets no files here, only rows in its summary.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ...protocol.histogram import BUCKETS, lower_edges
from ...protocol.lines import encode_line
from ...protocol.messages import Result
from ..rollup.arrays import Buckets
from ..rollup.decode_result import whole
from ..rollup.figures import CATEGORIES, Figures
from ..rollup.instances import RollupType
from ..rollup.merge import MergedSubinterval
from ..rollup.merge_layout import MergeLayout
from ..rollup.parameters_in_force import Settings
from ..rollup.window import Measurement
from .column import names
from .columns import BY_ADDRESS, CLOCK, CPU, HISTOGRAM, INDEX, INTERLOCK, THREADS, WINDOWS
from .csv_text import append, lines, make_folder, not_written, replace_file, utc
from .file_names import stem, step_folder
from .full_disk import patiently
from .histogram_db import HistogramWriter
from .host_rows import Row, clock_rows, core_numbers, cpu_rows, interlock_rows, thread_rows
from .record_types import SubintervalRecord, WindowRecord
from .rows import InstanceCells, measured_flags, section_rows, setting_cells, subinterval_header, subinterval_rows
from .used_categories import ALWAYS, used_in, widen

LATE: Final = "late"  # folder of results that were not merged, a file per host
_EDGES: Final = lower_edges()
_BOUNDS: Final = [f"{_EDGES[b] / 1e3:.15g},{_EDGES[b + 1] / 1e3:.15g}" for b in range(BUCKETS)]  # from_us,below_us


@dataclass(frozen=True, slots=True)
class _File:
    """Where a rollup instance's rows go."""

    kind: RollupType
    row: int
    rows: Path  # of subintervals
    histogram: Path


class StepFolder:
    """Writes one step, from one thread at a time. Whatever the disk does not take raises OutputError."""

    def __init__(
        self,
        run: Path,
        base: HistogramWriter,
        number: int,
        name: str,
        layout: MergeLayout,
        cores: Mapping[str, Sequence[int]],
    ) -> None:
        """Make the folder. `cores`: per host, the numbers of its cores (`hello.cores`)."""
        self.path = run / step_folder(number, name)
        self._number = number
        self._base = base
        self._cores = cores
        self._instances = InstanceCells(layout.rollups)
        self._settings: tuple[Settings | None, list[str]] = (None, [])
        self._begun: set[str] = set()  # tables that have their header
        self._rows_begun = False  # the instances' files have theirs
        self._used = ALWAYS  # categories that these files have columns of
        self._files = self._make(layout)
        base.step(number, name, layout)

    def subinterval(self, record: SubintervalRecord) -> None:
        """Everything that is kept of one closed subinterval."""
        self._base.subinterval(self._number, record.phase, record.start_utc_ns, record.interval)
        self._append_instances(record)
        cpu = [*names(CPU), *(f"core_{number}" for number in core_numbers(self._cores))]
        self._append_text("cpu.csv", cpu, cpu_rows(record, self._cores))
        self._append_text("interlock.csv", names(INTERLOCK), interlock_rows(record))
        self._append_text("threads.csv", names(THREADS), thread_rows(record))
        self._append_text("clock.csv", names(CLOCK), clock_rows(record))

    def join(self, phase: str, start_utc_ns: int, hosts: Collection[str], interval: MergedSubinterval) -> None:
        """Late results, stored with the others of their subinterval. The rest: see HistogramWriter."""
        self._base.join(self._number, phase, start_utc_ns, hosts, interval)

    def late(self, host: str, result: Result) -> None:
        """A result that is not merged: kept as its line of the protocol."""
        make_folder(self.path / LATE)
        append(self.path / LATE / f"{stem(host)}.jsonl", encode_line(whole(result)).decode())

    def window(self, record: WindowRecord) -> None:
        """A row of windows.csv."""
        self._append("windows.csv", names(WINDOWS), [_window_row(record)])

    def windows(self, records: Iterable[WindowRecord]) -> None:
        """All of windows.csv, anew: at each instant there is the whole file, of before or of now."""
        replace_file(self.path, "windows.csv", lines([names(WINDOWS), *map(_window_row, records)]))

    def measured(self, subintervals: Collection[int]) -> None:
        """Note in the rows of these subintervals that a measurement includes them."""
        if self._rows_begun:
            for file in self._files:
                _set_flags(file.rows, subintervals)

    def histograms(self, figures: Figures) -> None:
        """<instance>.histogram.csv of a measurement."""
        for file in self._files:
            append(file.histogram, _histogram_csv(figures, file.row))

    def by_address(self, measurement: Measurement) -> None:
        """by_address.csv of a measurement."""
        self._append("by_address.csv", names(BY_ADDRESS), section_rows(measurement))

    def table(self, file: str, header: Sequence[str], rows: Iterable[Row]) -> None:
        """Rows of any other table of the step: measure.csv, pid.csv ..."""
        self._append(file, header, rows)

    def document(self, file: str, content: Mapping[str, Any]) -> None:
        """A JSON file, replaced as a whole."""
        replace_file(self.path, file, json.dumps(content, indent=2, allow_nan=False) + "\n")

    def _make(self, layout: MergeLayout) -> list[_File]:
        """The folders and index.csv."""
        make_folder(self.path)
        files: list[_File] = []
        index: list[Row] = []
        for kind in layout.rollups.types:
            folder = Path(stem(kind.name))
            if kind.csv:
                make_folder(self.path / folder)
            for instance in kind.instances:
                rows, histogram = (folder / f"{stem(instance.name)}{end}" for end in (".csv", ".histogram.csv"))
                if kind.csv:
                    files.append(_File(kind, instance.row, self.path / rows, self.path / histogram))
                written = (rows.as_posix(), histogram.as_posix()) if kind.csv else (None, None)
                index.append((kind.name, instance.name, *written, len(instance.members)))
        append(self.path / "index.csv", lines([names(INDEX), *index]))
        return files

    def _append_instances(self, record: SubintervalRecord) -> None:
        if self._settings[0] is not record.settings:
            self._settings = (record.settings, setting_cells(record.settings))
        used = self._used | used_in(record.interval.merged)
        if used != self._used and self._rows_begun:
            for file in self._files:
                widen(file.rows, self._used, used)
        self._used = used
        rows = subinterval_rows(record, self._instances, self._settings[1], used)
        for file in self._files:
            append(file.rows, ("" if self._rows_begun else subinterval_header(file.kind, used)) + rows[file.row])
        self._rows_begun = True

    def _append(self, file: str, header: Sequence[str], rows: Iterable[Row]) -> None:
        self._append_text(file, header, lines(rows))

    def _append_text(self, file: str, header: Sequence[str], text: str) -> None:
        append(self.path / file, text if file in self._begun else lines([header]) + text)
        self._begun.add(file)


def _window_row(record: WindowRecord) -> Row:
    return (
        record.window, record.first, record.last, record.set_aside, utc(record.start_utc_ns),
        utc(record.end_utc_ns), record.hosts, record.why,
    )  # fmt: skip


def _set_flags(path: Path, subintervals: Collection[int]) -> None:
    """In place: no row changes its length, so whatever ends the run leaves a whole file."""

    def write() -> None:
        with open(path, "r+b") as file:
            for place in measured_flags(file, subintervals):
                file.seek(place)
                file.write(b"1")

    try:
        patiently(write)
    except OSError as error:
        raise not_written(path, error) from error


def _histogram_csv(figures: Figures, row: int) -> str:
    """The whole file of one row: a row per non-empty bucket and category; lateness is of all I/O that
    has any, together.

    Response times have rows only where they have a meaning.
    """
    return lines([names(HISTOGRAM)]) + "".join(_parts(figures, row))


def _parts(figures: Figures, row: int) -> Iterator[str]:
    for category in CATEGORIES:
        yield _rows(f"{category},service", figures.service(category).buckets, row)
        if figures.has_response(category)[row]:
            yield _rows(f"{category},response", figures.response(category).buckets, row)
    yield _rows("overall,lateness", figures.lateness().buckets, row)


def _rows(start: str, buckets: Buckets, row: int) -> str:
    counts = buckets.counts[row]
    used = np.flatnonzero(counts)
    bounds = _BOUNDS[buckets.low : buckets.high]
    return "".join(
        f"{start},{bounds[place]},{count}\n" for place, count in zip(used.tolist(), counts[used].tolist(), strict=True)
    )
