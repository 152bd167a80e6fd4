"""A run's folder, kept as far as it was read: each file once, then only what it has grown by; but histograms again from
the first subinterval that got a late result.

Rule: whatever is asked for that does not exist raises KeyError; a file that is damaged or of another version PlanError.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ..errors import OutputError, PlanError
from ..output.file_names import stem, step_folder
from ..output.histogram_db_reader import HistogramReader
from ..results.checked_files import RUN_JSON, Snapshot, counted_in, read_summary, read_table, runs, snapshot
from ..results.measured_rows import standing_of
from ..results.saturation import Element
from ..rollup.instances import ALL
from ..summary.headline import CPU, IN_CHARTS
from .elements import StepElements
from .growing_table import GrowingTable
from .histogram_columns import Column
from .stored_cells import columns_from

_ROW: Final = (
    "subinterval", "start_utc", "length_s", "phase", "in_measurement", "hosts_in", "hosts_of", "iops_setting",
)  # fmt: skip
_MOST_INSTANCES: Final = 8  # of which histograms are kept


@dataclass(slots=True)
class _Histograms:
    """Those of a rollup instance, as far as they were read."""

    columns: list[Column] = field(default_factory=list)
    mark: int = 0  # of the newest result when they were: see HistogramReader


@dataclass(slots=True)
class _KeptStep:
    """The parts of a step's files that are kept."""

    folder: Path
    tables: dict[tuple[str, str], GrowingTable] = field(default_factory=dict)  # by rollup type and instance
    cpu: GrowingTable | None = None
    histograms: dict[tuple[str, str], _Histograms] = field(default_factory=dict)
    files: dict[str, dict[str, Path | None]] = field(default_factory=dict)  # of index.csv, once it is written
    measured_with: object = None  # the step's entry in run.json when its rows were read
    elements: StepElements | None = None
    busy: dict[tuple[int, int], dict[Element, float]] = field(default_factory=dict)  # by the ends of measurements


class KeptRun:
    """One run's folder. Used by one thread at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.as_of: object = None  # of the snapshot: the stamp of run.json, and whether the run goes on
        self._steps: dict[int, _KeptStep] = {}
        self._events = GrowingTable(folder / "events.csv", ("utc", "step", "subinterval", "host", "kind", "text"))
        self._snapshot: Snapshot | None = None

    @property
    def record(self) -> dict[str, Any]:
        """run.json."""
        return self._newest().record

    def entry(self, step: int) -> Mapping[str, Any]:
        """A step's entry in run.json."""
        entry: Mapping[str, Any] | None = next((one for one in self.record["steps"] if one["number"] == step), None)
        if entry is None:
            raise KeyError(f"step {step}")
        return entry

    def summary(self, by: str) -> list[dict[str, str]]:
        """The rows of summary.<by>.csv; none where there is no such file."""
        path = self._newest().results / f"summary.{stem(by)}.csv"
        return read_summary(path) if path.is_file() else []

    def standing(self, step: int) -> str:
        """The name of the measurement that a step stands for; "" where it has none."""
        return standing_of(self.entry(step), [row for row in self.summary(ALL) if int(row["step"]) == step])

    def events(self) -> GrowingTable:
        """events.csv, with what has been added."""
        self._events.refresh()
        return self._events

    def step_folder(self, step: int) -> Path:
        """The folder of a step that began."""
        return self._step(step).folder

    def files(self, step: int) -> dict[str, dict[str, Path | None]]:
        """Rollup type: instance: the file with its rows; None where the type has none."""
        kept = self._step(step)
        for row in () if kept.files else read_table(kept.folder / "index.csv"):
            path = _within(kept.folder, row["file"])
            kept.files.setdefault(row["rollup_type"], {})[row["rollup_instance"]] = path
        return kept.files

    def files_of(self, step: int, by: str) -> dict[str, Path | None]:
        """The same of one rollup type, by instance."""
        files = self.files(step)
        if by not in files:
            raise KeyError(f"rollup type {by}")
        return files[by]

    def path(self, step: int, by: str, instance: str) -> Path | None:
        """The file with the rows of an instance; None where it has none."""
        files = self.files(step)
        if not files and (by, instance) == (ALL, ALL):
            return None  # the step has just begun
        try:
            return files[by][instance]
        except KeyError:
            raise KeyError(f"{by}={instance}") from None

    def rows(self, step: int, by: str = ALL, instance: str = ALL) -> GrowingTable:
        """The rows of an instance, with what has been added."""
        kept, entry = self._step(step), self.entry(step)
        ended = entry["verdict"], entry["end_utc"]
        if ended != kept.measured_with:  # in_measurement has been set, in rows that were read
            kept.tables.clear()
            kept.histograms.clear()  # a late result may have come with the last subinterval
            kept.measured_with = ended
        if (by, instance) not in kept.tables:
            path = self.path(step, by, instance)
            kept.tables[by, instance] = GrowingTable(path or kept.folder / "no.csv", (*_ROW, *IN_CHARTS))
            if path is None:
                return kept.tables.pop((by, instance))
        kept.tables[by, instance].refresh()
        return kept.tables[by, instance]

    def in_measurement(self, step: int, rows: GrowingTable) -> list[int]:
        """1 for each row of a subinterval that a measurement of the step includes."""
        counted = counted_in(self.record, step)
        if counted is None:
            return [int(text == "1") for text in rows.columns["in_measurement"]]
        return [int(int(text) in counted) for text in rows.columns["subinterval"]]

    def histograms(self, step: int, by: str = ALL, instance: str = ALL) -> tuple[GrowingTable, list[Column]]:
        """The rows of an instance, and a histogram of each. Do not change them."""
        rows = self.rows(step, by, instance)
        kept = self._step(step).histograms
        histograms = kept.pop((by, instance), _Histograms())
        while len(kept) >= _MOST_INSTANCES:
            del kept[next(iter(kept))]
        kept[by, instance] = histograms  # as the newest
        self._read_histograms(step, by, instance, histograms, len(rows))
        return rows, histograms.columns

    def cpu(self, step: int) -> GrowingTable:
        """cpu.csv of a step, with what has been added."""
        kept = self._step(step)
        if kept.cpu is None:
            kept.cpu = GrowingTable(kept.folder / "cpu.csv", ("subinterval", "host", *CPU))
        kept.cpu.refresh()
        return kept.cpu

    def elements(self, step: int) -> StepElements:
        """The readings of connectors in a step."""
        kept = self._step(step)
        if kept.elements is None:
            kept.elements = StepElements(kept.folder, step)
        return kept.elements

    def busy(self, step: int, first: int, last: int) -> dict[Element, float]:
        """The busy figures of the elements in the measurement that begins and ends with these subintervals."""
        kept, ends = self._step(step), (first, last)
        if ends not in kept.busy:
            counted = self.in_measurement(step, self.rows(step))
            measured = [one for one in range(max(first, 0), min(last + 1, len(counted))) if counted[one]]
            # Not kept: another step's file is read for this.
            elements = kept.elements or StepElements(kept.folder, step)
            kept.busy[ends] = elements.busy(measured)
        return kept.busy[ends]

    def _newest(self) -> Snapshot:
        stamp, kept = stamp_of(self.folder / RUN_JSON), self._snapshot
        if kept is None or stamp is None or not kept.is_there or (stamp, runs(self.folder, kept.record)) != self.as_of:
            kept = self._snapshot = snapshot(self.folder)
            self.as_of = stamp, runs(self.folder, kept.record)
        return kept

    def _step(self, step: int) -> _KeptStep:
        if step not in self._steps:
            self._steps[step] = _KeptStep(self.folder / step_folder(step, self.entry(step)["name"]))
        return self._steps[step]

    def _read_histograms(self, step: int, by: str, instance: str, histograms: _Histograms, closed: int) -> None:
        """Up to the subintervals that have rows; again from the first one that got a result late."""
        kept = histograms.columns
        try:
            with HistogramReader(self.folder / "histograms.sqlite") as reader:
                mark = reader.newest()  # before they are read: what comes meanwhile is read again
                if mark == histograms.mark and len(kept) >= closed:
                    return
                if kept and (first := reader.first_since(step, histograms.mark)) is not None:
                    del kept[first:]
                histograms.mark = mark
                for subinterval, column in columns_from(reader, step, by, instance, len(kept)):
                    if subinterval >= closed:
                        break
                    kept += [{}] * (subinterval - len(kept))
                    kept.append(column)
        except OutputError as error:
            raise PlanError(str(error)) from None
        kept += [{}] * (closed - len(kept))


def stamp_of(path: Path) -> tuple[int, int, int] | None:
    """Changes with the file; None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _within(folder: Path, name: str) -> Path | None:
    """The path of a file by the name that a table of the folder gives; None where it has none, or leads elsewhere."""
    path = folder / name
    return path if name and ".." not in path.parts and path.is_relative_to(folder) else None
