"""A run's folder: <root>/<plan name>-<UTC stamp>/ and what stands at its top.

Rule: never overwrites: a folder that exists already gets a brother with a number. Every file is either appended to by
whole lines, or replaced as a whole.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from ...protocol.parameters import PARAMETERS, Parameters
from ..connectors.element_figures import Connected
from ..errors import OutputError
from ..rollup.instances import InstanceKey, Rollups, RollupType
from ..rollup.merge_layout import MergeLayout
from ..rollup.parameters_in_force import text
from .column import names
from .columns import EVENTS, HALF_WIDTHS, HOST_FACTS, HOSTS, LUNS, WORKLOADS
from .connector_files import SUMMARY_HEADER, ConnectorFiles, Utc
from .connector_sums import ConnectorSums
from .control_columns import ROUNDS
from .csv_text import append, lines, make_folder, not_written, overwrite_file, replace_file, utc
from .file_names import SO_FAR, stem
from .histogram_db import HistogramWriter
from .host_rows import Row
from .record_types import Event, HostRecord, LunRecord, RunRecord, SummaryRecord
from .rows import InstanceCells, narrow_header, narrow_rows, summary_header, summary_rows
from .step_folder import StepFolder
from .used_categories import ALWAYS, used_in, widen

CONNECTORS = "connectors.csv"
MOST_BROTHERS = 1000


class RunFolder:
    """Writes one run, from one thread at a time. Whatever the disk does not take raises OutputError."""

    def __init__(self, path: Path) -> None:
        """Of a folder that was just made; use `create`."""
        self.path = path
        self._name = path.name
        self._so_far = 0  # how often that was written
        self._base = HistogramWriter(path / "histograms.sqlite")
        self._sums = ConnectorSums(path / "connectors.sqlite")
        self._begun: set[str] = set()  # files that have their header
        self._used = ALWAYS  # categories that the summaries have columns of
        make_folder(path / "log")

    @classmethod
    def create(cls, root: Path, plan_name: str, at: datetime) -> "RunFolder":
        """A new folder under `root`, which is made if it is missing; `at` is the start, in UTC. Raises OutputError."""
        wanted = f"{stem(plan_name)}-{at:%Y%m%dT%H%M%SZ}"
        try:
            root.mkdir(parents=True, exist_ok=True)
            for brother in range(1, MOST_BROTHERS):
                path = root / (wanted if brother == 1 else f"{wanted}-{brother}")
                try:
                    path.mkdir()
                except FileExistsError:
                    continue
                return cls(path)
        except OSError as error:
            raise OutputError(
                f"{root}: no run folder can be made there: {error.strerror}; give another with -o"
            ) from error
        raise OutputError(f"{root}: holds {MOST_BROTHERS} runs called {wanted} already; give another folder with -o")

    def log(self, host: str) -> Path:
        """Where a host's conversation goes."""
        return self.path / "log" / f"{stem(host)}.log"

    def plan(self, text: str) -> None:
        """plan.yaml: the plan as it was given, and what else there is to know of it."""
        self._replace("plan.yaml", text)

    def run(self, record: RunRecord) -> None:
        """run.json, anew."""
        self._replace("run.json", _run_text(record))

    def run_over(self, record: RunRecord) -> None:
        """run.json, in the place of the present one: where a full disk has no room for a second."""
        overwrite_file(self.path, "run.json", _run_text(record))

    def hosts(self, records: Sequence[HostRecord]) -> None:
        """hosts.csv."""
        rows = []
        for record in records:
            hello = record.hello
            rows.append([
                record.host, hello.hostname, record.launcher, record.address, hello.version, hello.bundle, hello.python,
                hello.kernel, hello.libc, hello.machine, len(hello.cores), hello.clock_source,
                " ".join(hello.backends), " ".join(hello.io_uring),
                *(hello.facts.get(name) for name in names(HOST_FACTS)),
            ])  # fmt: skip
        self._replace("hosts.csv", lines([names(HOSTS, HOST_FACTS), *rows]))

    def luns(self, records: Sequence[LunRecord]) -> None:
        """luns.csv."""
        fixed = names(LUNS)
        attributes = sorted({name for one in records for name in one.lun.attributes} - set(fixed))
        rows = [
            [
                record.host, record.lun.path, record.lun.kind, record.lun.size, record.lun.block,
                "; ".join(record.lun.refusals),
                "; ".join(f"{notice.kind}: {notice.text}" for notice in record.lun.notices),
                *(record.lun.attributes.get(name) for name in attributes),
            ]
            for record in records
        ]  # fmt: skip
        self._replace("luns.csv", lines([[*fixed, *attributes], *rows]))

    def workloads(self, rollups: Rollups, parameters: Mapping[InstanceKey, Parameters]) -> None:
        """workloads.csv: each instance with the parameters it was created with."""
        header = [*names(WORKLOADS), *PARAMETERS, *(f"rollup.{kind.name}" for kind in rollups.types)]
        rows: list[list[Any]] = []
        for instance in rollups.instances:
            values = parameters[instance.host, instance.number]
            slices = [rollups.rows[row].name for row in rollups.rows_of(instance.host, instance.number)]
            settings = [text(getattr(values, name)) for name in PARAMETERS]
            rows.append(
                [instance.id, instance.host, instance.lun, instance.workload, instance.number, *settings, *slices]
            )
        self._replace("workloads.csv", lines([header, *rows]))

    def event(self, event: Event) -> None:
        """A row of events.csv."""
        row = (utc(event.utc_ns), event.step, event.subinterval, event.host, event.kind, event.text)
        self._append("events.csv", lines([names(EVENTS)]), lines([row]))

    def step(self, number: int, name: str, layout: MergeLayout, cores: Mapping[str, Sequence[int]]) -> StepFolder:
        """A step begins. `cores`: per host, the numbers of its cores (`hello.cores`)."""
        return StepFolder(self.path, self._base, number, name, layout, cores)

    def connector_files(
        self, step: StepFolder, number: int, rollups: Rollups, connected: Sequence[Connected], to_utc: Utc
    ) -> ConnectorFiles:
        """Open the files of what connectors report in a step. `to_utc`: from the controller's clock."""
        return ConnectorFiles(step.path, number, rollups, connected, self._sums, to_utc)

    def connector_summary(self, text: str) -> None:
        """Rows of connectors.csv."""
        self._append(CONNECTORS, SUMMARY_HEADER, text)

    def rounds(self, rows: Iterable[Row]) -> None:
        """Rows of rounds.csv."""
        self._append("rounds.csv", lines([names(ROUNDS)]), lines(rows))

    def summary(
        self, number: int, name: str, record: SummaryRecord, rollups: Rollups, loop: Mapping[str, Any] | None = None
    ) -> None:
        """A step has ended: its rows in every summary.<rollup type>.csv, and in summary.csv.

        `loop`: every parameter that a step of the plan loops over, with this step's value, None if it has none.
        """
        loop = loop or {}
        narrow = narrow_rows(self._name, number, name, [*loop.values()], record, rollups.rows)
        self._append("summary.csv", narrow_header(loop), narrow)
        used = self._used | (used_in(record.measurement.merged) if record.measurement else ALWAYS)
        rows = summary_rows(number, name, record, InstanceCells(rollups), used)
        for kind in rollups.types:
            file, text = _summary_file(kind), "".join(rows[instance.row] for instance in kind.instances)
            if used != self._used and file in self._begun:
                widen(self.path / file, self._used, used, after_metrics=len(HALF_WIDTHS))
            self._append(file, summary_header(kind, used), text)
        self._used = used

    def so_far(self, record: RunRecord, summaries: Iterable[Callable[["RunFolder"], None]]) -> None:
        """Write what would stand here if the step that runs ended now: in so_far/<number>/, complete once run.json is
        there.

        `summaries` write the step's rows into the folder that they are given.
        """
        kept = copy(self)
        kept.path, kept._begun = self.path / SO_FAR / str(self._so_far + 1), set(self._begun)
        _remove_kept(kept.path)  # of a failed attempt
        try:
            kept.path.mkdir(parents=True)
            for file in self._begun:
                if file.startswith("summary.") or file == CONNECTORS:
                    shutil.copyfile(self.path / file, kept.path / file)
            for write in summaries:
                write(kept)
            kept.run(record)
        except BaseException as error:
            _remove_kept(kept.path)
            if isinstance(error, OSError):
                raise not_written(kept.path, error) from error
            raise
        _remove_kept(self.path / SO_FAR / str(self._so_far))
        self._so_far += 1

    def drop_so_far(self) -> None:
        """The step has ended: what it had measured so far is in the summaries."""
        for kept in (self.path / SO_FAR).glob("*"):
            _remove_kept(kept)
        shutil.rmtree(self.path / SO_FAR, ignore_errors=True)

    def close(self) -> None:
        self._base.close()
        self._sums.close()

    def remove(self) -> None:
        """After `close`: the folder with all that was written."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _append(self, file: str, header: str, text: str) -> None:
        append(self.path / file, text if file in self._begun else header + text)
        self._begun.add(file)

    def _replace(self, file: str, text: str) -> None:
        replace_file(self.path, file, text)


def _remove_kept(folder: Path) -> None:
    """First what makes it count, so that nobody reads half of it."""
    with suppress(OSError):
        (folder / "run.json").unlink()
    shutil.rmtree(folder, ignore_errors=True)


def _run_text(record: RunRecord) -> str:
    entry = asdict(record)
    entry |= entry.pop("more")
    for part in (entry, *entry["steps"]):
        for key in ("start", "end"):
            ns = part.pop(f"{key}_utc_ns")
            part[f"{key}_utc"] = None if ns is None else utc(ns)
    for part in entry["steps"]:
        if part["windows"] is None:
            del part["windows"]
    return json.dumps(entry, indent=2, ensure_ascii=False) + "\n"


def _summary_file(kind: RollupType) -> str:
    return f"summary.{stem(kind.name)}.csv"
