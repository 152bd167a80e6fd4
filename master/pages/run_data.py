"""A run's folder as the data of a page: one answer for each thing that is drawn, of a finished or a running run.

Rule: everything comes from the files of the folder, so that whoever looks never disturbs the run; each file is read
once, and then only what it has grown by; but histograms again from the first subinterval that got a late result. Times
are unix seconds, units those of docs/columns.md, a blank is None.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ...protocol.parameters import PARAMETERS
from ..causes import remedy_of
from ..control.observation import Phase
from ..errors import OutputError, PlanError
from ..exit_codes import ExitCode
from ..output.column import names
from ..output.columns import HOST_FACTS
from ..output.file_names import stem, step_folder
from ..output.histogram_db_reader import HistogramReader
from ..results.checked_files import RUN_JSON, Snapshot, counted_in, read_rows, read_summary, read_table, runs, snapshot
from ..results.finished_run import plan_text
from ..results.measured_rows import finding_of, read_measured, standing_of
from ..results.run_entries import RunState, entry_data, entry_of
from ..results.saturation import Element, Level
from ..rollup.instances import ALL
from ..rollup.metrics import METRICS, of_nothing
from ..verdicts import Finding
from .elements import StepElements, elements_answer
from .growing_table import GrowingTable, number
from .histogram_columns import SETS, Column, Times, encoded
from .instances import histogram_sets, instance_table, newest_row
from .stored_cells import columns_from

FORMAT: Final = 1
_LATENCY: Final = ("mean", "p50", "p90", "p95", "p99", "p99_9", "p99_99", "max")
SERIES_METRICS: Final = (
    *(
        f"{category}_{what}"
        for category in ("overall", "read", "write")
        for what in (
            "iops", "mib_per_s", *(f"{time}_us_{one}" for time in ("service", "response") for one in _LATENCY)
        )
    ),
    "errors", "backlog", "outstanding", "dropped", "expired", "cpu_busy_percent", "busiest_core_percent",
    "cpu_others_percent", "cpu_steal_percent", "stalled_percent", "generator_lateness_us_p99",
)  # fmt: skip
CPU_METRICS: Final = ("cpu_busy_percent", "cpu_others_percent", "cpu_steal_percent")
_ROW: Final = (
    "subinterval", "start_utc", "length_s", "phase", "in_measurement", "hosts_in", "hosts_of", "iops_setting",
)  # fmt: skip
_MOST_EVENTS: Final = 5000  # the newest
_MOST_INSTANCES: Final = 8  # of which histograms are kept


@dataclass(slots=True)
class Progress:
    """What changed since a page looked last. `document`: grows with each change of the run document."""

    document: int
    step: int | None  # that runs, or ran last
    closed: int  # its subintervals
    ended: bool


@dataclass(slots=True)
class _Histograms:
    """Those of a rollup instance, as far as they were read."""

    columns: list[Column] = field(default_factory=list)
    mark: int = 0  # of the newest result when they were: see HistogramReader


@dataclass(slots=True)
class _Step:
    """What is kept of a step's files."""

    folder: Path
    tables: dict[tuple[str, str], GrowingTable] = field(default_factory=dict)  # by rollup type and instance
    cpu: GrowingTable | None = None
    histograms: dict[tuple[str, str], _Histograms] = field(default_factory=dict)
    files: dict[str, dict[str, Path | None]] = field(default_factory=dict)  # of index.csv, once it is written
    measured_with: object = None  # the step's entry in run.json when its rows were read
    elements: StepElements | None = None
    busy: dict[tuple[int, int], dict[Element, float]] = field(default_factory=dict)  # by the ends of measurements


class RunData:
    """One run's folder. Used by one thread at a time.

    Whatever is asked for that does not exist raises KeyError; a file that is damaged or of another version PlanError.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._steps: dict[int, _Step] = {}
        self._events = GrowingTable(folder / "events.csv", ("utc", "step", "subinterval", "host", "kind", "text"))
        self._seen: object = None  # of the files that the document is made of
        self._document = 0
        self._kept: Snapshot | None = None
        self._as_of: object = None  # of the snapshot: the stamp of run.json, and whether the run goes on

    def progress(self) -> Progress:
        """Cheap: a few files' sizes, and what the step that runs has grown by."""
        record = self._run_json()
        paths = [self.folder / name for name in ("run.json", "summary.all.csv", "events.csv")]
        seen = [self._as_of, *map(_stamp, paths)]
        if seen != self._seen:
            self._seen, self._document = seen, self._document + 1
        number = max((step["number"] for step in record["steps"]), default=None)
        closed = 0 if number is None else len(self._rows(number, ALL, ALL))
        return Progress(self._document, number, closed, record["end_utc"] is not None)

    def document(self) -> dict[str, Any]:
        """The run, its steps with their measurements of everything, its hosts, LUNs, plan and events."""
        entry = entry_of(self.folder, datetime.now(UTC))
        record = self._run_json()
        running = entry.state in (RunState.RUNNING, RunState.NOT_ENDED)
        rows = self._summary(ALL)
        causes = self._causes(record)
        steps = [self._step_entry(one, running, rows, causes) for one in record["steps"]]
        hosts, luns = read_table(self.folder / "hosts.csv"), read_table(self.folder / "luns.csv")
        code = record["exit_code"]
        return {
            "format": FORMAT,
            "run": entry_data(entry),
            "sentence": "" if code is None else ExitCode(code).sentence,
            "plan_text": plan_text(self.folder),
            "hosts": hosts,
            "hosts_differ": _differing(hosts, names(HOST_FACTS)),
            "luns": luns,
            "luns_differ": _differing(luns, [name for name in (luns[0] if luns else ()) if name not in _OF_ONE_LUN]),
            "rollups": _united([one["rollups"] for one in steps]),
            "steps": steps,
            "events": self._event_entries(),
        }

    def series(self, step: int, by: str = ALL, instance: str = ALL, first: int = 0) -> dict[str, Any]:
        """The figures of a rollup instance in each subinterval, from a subinterval on."""
        table = self._rows(step, by, instance)
        place = min(first, len(table))
        columns = table.columns
        return {
            "by": by,
            "instance": instance,
            "from": place,
            "subinterval": [int(text) for text in columns["subinterval"][place:]],
            "start": [_unix(text) for text in columns["start_utc"][place:]],
            "length_s": table.numbers("length_s", place),
            "phase": columns["phase"][place:],
            "in_measurement": self._in_measurement(step, table)[place:],
            "hosts_in": [int(text or 0) for text in columns["hosts_in"][place:]],
            "hosts_of": [int(text or 0) for text in columns["hosts_of"][place:]],
            "iops_setting": [text if text == "max" else number(text) for text in columns["iops_setting"][place:]],
            "metrics": {name: _figures(table, name, place) for name in SERIES_METRICS},
        }

    def histograms(self, step: int, by: str = ALL, instance: str = ALL, first: int = 0) -> bytes:
        """The histograms of the same, as histogram_columns.py says."""
        table = self._rows(step, by, instance)
        of = self._steps[step]
        found = of.histograms.pop((by, instance), _Histograms())
        while len(of.histograms) >= _MOST_INSTANCES:
            del of.histograms[next(iter(of.histograms))]
        of.histograms[by, instance] = found  # as the newest
        self._read_histograms(step, by, instance, found, len(table))
        kept = found.columns
        starts = [_unix(text) for text in table.columns["start_utc"][: len(kept)]]
        times = Times(
            start=starts,
            length_s=[one or 0.0 for one in table.numbers("length_s")],
            in_measurement=self._in_measurement(step, table),
            valid={name: _has_meaning(table, kept, name) for name in SETS},
        )
        return encoded(kept, times, min(first, len(kept)))

    def cpu(self, step: int, first: int = 0) -> dict[str, Any]:
        """CPU of each host, from a subinterval on; None where a host's result is missing."""
        rows = self._rows(step, ALL, ALL)
        of = self._steps[step]
        if of.cpu is None:
            of.cpu = GrowingTable(of.folder / "cpu.csv", ("subinterval", "host", *CPU_METRICS))
        of.cpu.refresh()
        subintervals = range(min(first, len(rows)), len(rows))
        hosts: dict[str, dict[str, list[float | None]]] = {}
        values = [of.cpu.numbers(name) for name in CPU_METRICS]
        for row, (text, host) in enumerate(zip(of.cpu.columns["subinterval"], of.cpu.columns["host"], strict=True)):
            if host not in hosts:
                hosts[host] = {name: [None] * len(subintervals) for name in CPU_METRICS}
            if int(text) in subintervals:
                for name, column in zip(CPU_METRICS, values, strict=True):
                    hosts[host][name][int(text) - subintervals.start] = column[row]
        starts = [_unix(text) for text in rows.columns["start_utc"][subintervals.start :]]
        return {"subinterval": [*subintervals], "start": starts, "hosts": hosts}

    def instances(self, step: int, by: str) -> dict[str, Any]:
        """The rollup instances of a type, with what sets them apart."""
        files = self._files(step)
        if by not in files:
            raise KeyError(f"rollup type {by}")
        own = self._standing(step)
        rows = [row for row in self._summary(by) if int(row["step"]) == step and row["name"] == own]
        return instance_table(by, {name: path for name, path in files[by].items()}, rows)

    def steps(self) -> list[dict[str, Any]]:
        """The steps that began, as run.json has them."""
        found: list[dict[str, Any]] = self._run_json()["steps"]
        return found

    def rollups(self, step: int) -> dict[str, list[str]]:
        """The rollup types of a step, with their instances."""
        return {kind: [*instances] for kind, instances in self._files(step).items()}

    def slack_s(self, step: int) -> float | None:
        """The time that was left after barrier 2 in the last subinterval."""
        ms = number(newest_row(self._folder(step) / "interlock.csv").get("slack_ms", ""))
        return None if ms is None else ms / 1000

    def newest_rows(self, step: int, by: str) -> dict[str, dict[str, str]]:
        """The row of the last subinterval of each instance of a rollup type that has files."""
        files = self._files(step)
        if by not in files:
            raise KeyError(f"rollup type {by}")
        rows = {name: newest_row(path) for name, path in files[by].items() if path is not None}
        return {name: {**of_nothing(row.get("overall_iops", "")), **row} for name, row in rows.items()}

    def columns(self, step: int) -> Sequence[Column]:
        """The histograms of everything in each subinterval, in order. Do not change them."""
        self.histograms(step)
        return self._steps[step].histograms[ALL, ALL].columns

    def control(self, step: int) -> dict[str, Any]:
        """The tables that control wrote: measure, pid, staircase ...; name: columns, and rows of texts and numbers."""
        found = {}
        for path in sorted(self._folder(step).glob("*.csv")):
            if path.stem in _OTHER_TABLES:
                continue
            rows = read_rows(path)
            if rows:
                texts = [row for row in rows[1:] if len(row) == len(rows[0])]
                found[path.stem] = {"columns": rows[0], "rows": [[_cell(text) for text in row] for row in texts]}
        return found

    def distribution(self, step: int, by: str = ALL, instance: str = ALL) -> dict[str, Any]:
        """The histograms of the measurement; no sets before it is complete."""
        path = self._path(step, by, instance)
        return {
            "sets": histogram_sets(path.with_name(f"{path.name.removesuffix('.csv')}.histogram.csv")) if path else {}
        }

    def elements(self, step: int, by: str = ALL, instance: str = ALL) -> dict[str, Any]:
        """What connectors said in a step, beside the service times of a rollup instance."""
        rows = self._rows(step, by, instance)
        service = zip(rows.columns["phase"], rows.numbers("overall_service_us_mean"), strict=True)
        under_load = [None if phase == Phase.COOLDOWN else us for phase, us in service]
        return elements_answer(
            self.step_elements(step), (by, instance), self.stems(step), under_load, self._loads(step)
        )

    def element_lines(self, step: int, metric: str) -> dict[str, Any]:
        """The elements with the highest values of a connector's metric, over the step."""
        return self.step_elements(step).lines(metric)

    def stems(self, step: int) -> set[str]:
        """What the files of a step's rollup instances are called."""
        return {stem(name) for instances in self._files(step).values() for name in instances}

    def step_elements(self, step: int) -> StepElements:
        """What connectors said in a step."""
        folder = self._folder(step)
        of = self._steps[step]
        if of.elements is None:
            of.elements = StepElements(folder)
        return of.elements

    def levels(self, step: int) -> list[Level]:
        """The measurements of a step, with the busy figures of the elements."""
        return [self._level(row) for row in self._measurements().get(step, {}).values()]

    def _loads(self, step: int) -> list[Level]:
        """The loads at which this step was measured; where it has one, those of all steps that have one."""
        by_step = self._measurements()
        own = by_step.get(step, {})
        steps = [own] if len(own) > 1 else [one for one in by_step.values() if len(one) == 1]
        return sorted((self._level(row) for one in steps for row in one.values()), key=lambda one: one.iops)

    def _measurements(self) -> dict[int, dict[str, Mapping[str, str]]]:
        """The summary's rows of everything, by step and name; those without a measurement are left out."""
        found: dict[int, dict[str, Mapping[str, str]]] = {}
        for row in self._summary(ALL):
            if row.get("first_subinterval") and number(row.get("overall_iops", "")):
                found.setdefault(int(row["step"]), {})[row["name"]] = row
        return found

    def _level(self, row: Mapping[str, str]) -> Level:
        step, ends = int(row["step"]), (int(row["first_subinterval"]), int(row["last_subinterval"]))
        rows = self._rows(step, ALL, ALL)
        of = self._steps[step]
        if ends not in of.busy:
            counted = self._in_measurement(step, rows)
            measured = [one for one in range(max(ends[0], 0), min(ends[1] + 1, len(counted))) if counted[one]]
            elements = of.elements or StepElements(of.folder)  # not kept: the file of another step is read for this
            of.busy[ends] = elements.busy(measured)
        iops, service_us = (number(row.get(name, "")) for name in ("overall_iops", "overall_service_us_mean"))
        return Level(row["name"], iops or 0.0, service_us, of.busy[ends])

    def _summary(self, by: str) -> list[dict[str, str]]:
        path = self._snapshot().results / f"summary.{stem(by)}.csv"
        return read_summary(path) if path.is_file() else []

    def _causes(self, record: Mapping[str, Any]) -> dict[tuple[int, str], str]:
        """(step, name of a measurement): the cause of its verdict, in a sentence."""
        if not self._summary(ALL):
            return {}
        try:
            steps = read_measured(self.folder, ALL, [step["name"] for step in record["steps"] if step["verdict"]]).steps
        except PlanError:  # of a version whose causes were not kept so
            return {}
        return {(step.number, one.name): one.cause for step in steps for one in step.measured}

    def _standing(self, step: int) -> str:
        """The name of the measurement that a step stands for; "" where it has none."""
        entry = next(one for one in self.steps() if one["number"] == step)
        return standing_of(entry, [row for row in self._summary(ALL) if int(row["step"]) == step])

    def _step_entry(
        self,
        step: Mapping[str, Any],
        running: bool,
        rows: Sequence[Mapping[str, str]],
        causes: Mapping[tuple[int, str], str],
    ) -> dict[str, Any]:
        number = step["number"]
        rows = [row for row in rows if int(row["step"]) == number]
        standing = standing_of(step, rows)
        files = self._files(number)
        closed = self._rows(number, ALL, ALL)
        state = "ended" if step["verdict"] else "running" if running else "cut off"
        return {
            "number": number,
            "name": step["name"],
            "state": state,
            "verdict": step["verdict"],
            "start": _unix(step["start_utc"]) if step["start_utc"] else None,
            "end": _unix(step["end_utc"]) if step["end_utc"] else None,
            "thresholds": step["thresholds"],
            "reasons": reason_entries(step["reasons"], self.folder),
            "rollups": {kind: [*instances] for kind, instances in files.items()},
            "closed": len(closed),
            "until": _end_of(closed),
            "measurements": [
                self._measurement(row, step["name"], causes.get((number, row["name"]), ""), row["name"] == standing)
                for row in rows
            ],
        }

    def _measurement(self, row: Mapping[str, str], step: str, cause: str, stands: bool) -> dict[str, Any]:
        own = row["name"]
        halves = {name: number(row.get(f"{name}_half_width", "")) for name in METRICS}
        figures = {name: number(row.get(name, "")) for name in METRICS}
        return {
            "name": own,
            "level": own.removeprefix(f"{step}:") if own != step else "",
            "stands": stands,
            **{name: row.get(name) or row["verdict"] for name in _VERDICTS},
            "cause": cause,
            "hosts_in": int(row.get("hosts_in") or 0),
            "hosts_of": int(row.get("hosts_of") or 0),
            "reasons": reason_entries(filter(None, row["reasons"].split("; ")), self.folder, explained=bool(cause)),
            "first": int(row["first_subinterval"]) if row.get("first_subinterval") else None,
            "last": int(row["last_subinterval"]) if row.get("last_subinterval") else None,
            "start": _unix(row["start_utc"]) if row.get("start_utc") else None,
            "end": _unix(row["end_utc"]) if row.get("end_utc") else None,
            "iops_setting": _cell(row.get("iops_setting", "")),
            "parameters": {name: _cell(row[name]) for name in PARAMETERS if row.get(name)},
            "metrics": {name: value for name, value in figures.items() if value is not None},
            "half_widths": {name: value for name, value in halves.items() if value is not None},
        }

    def _event_entries(self) -> list[dict[str, Any]]:
        self._events.refresh()
        newest = {name: column[-_MOST_EVENTS:] for name, column in self._events.columns.items()}
        return [
            {
                "utc": _unix(utc),
                "step": int(step) if step else None,
                "subinterval": int(subinterval) if subinterval else None,
                "host": host,
                "kind": kind,
                "text": text,
            }
            for utc, step, subinterval, host, kind, text in zip(*newest.values(), strict=True)
        ]

    def _run_json(self) -> dict[str, Any]:
        return self._snapshot().record

    def _snapshot(self) -> Snapshot:
        stamp, kept = _stamp(self.folder / RUN_JSON), self._kept
        if kept is None or stamp is None or not kept.is_there or (stamp, runs(self.folder, kept.record)) != self._as_of:
            kept = self._kept = snapshot(self.folder)
            self._as_of = stamp, runs(self.folder, kept.record)
        return kept

    def _folder(self, step: int) -> Path:
        """The folder of a step that began. Raises KeyError."""
        if step not in self._steps:
            named = [one["name"] for one in self._run_json()["steps"] if one["number"] == step]
            if not named:
                raise KeyError(f"step {step}")
            self._steps[step] = _Step(self.folder / step_folder(step, named[0]))
        return self._steps[step].folder

    def _files(self, step: int) -> dict[str, dict[str, Path | None]]:
        """Rollup type: instance: the file with its rows; None where the type has none."""
        folder = self._folder(step)
        files = self._steps[step].files
        for row in () if files else read_table(folder / "index.csv"):
            path = _within(folder, row["file"])
            files.setdefault(row["rollup_type"], {})[row["rollup_instance"]] = path
        return files

    def _path(self, step: int, by: str, instance: str) -> Path | None:
        files = self._files(step)
        if not files and (by, instance) == (ALL, ALL):
            return None  # the step has just begun
        try:
            return files[by][instance]
        except KeyError:
            raise KeyError(f"{by}={instance}") from None

    def _rows(self, step: int, by: str, instance: str) -> GrowingTable:
        """The rows of an instance, with what has been added."""
        self._folder(step)
        of = self._steps[step]
        ended = next((one["verdict"], one["end_utc"]) for one in self._run_json()["steps"] if one["number"] == step)
        if ended != of.measured_with:  # in_measurement has been set, in rows that were read
            of.tables.clear()
            of.histograms.clear()  # a late result may have come with the last subinterval
            of.measured_with = ended
        if (by, instance) not in of.tables:
            path = self._path(step, by, instance)
            of.tables[by, instance] = GrowingTable(path or of.folder / "no.csv", (*_ROW, *SERIES_METRICS))
            if path is None:
                return of.tables.pop((by, instance))
        of.tables[by, instance].refresh()
        return of.tables[by, instance]

    def _in_measurement(self, step: int, table: GrowingTable) -> list[int]:
        """1 for each row of a subinterval that a measurement of the step includes."""
        counted = counted_in(self._run_json(), step)
        if counted is None:
            return [int(text == "1") for text in table.columns["in_measurement"]]
        return [int(int(text) in counted) for text in table.columns["subinterval"]]

    def _read_histograms(self, step: int, by: str, instance: str, found: _Histograms, closed: int) -> None:
        """Up to the subintervals that have rows; again from the first one that got a result late."""
        kept = found.columns
        try:
            with HistogramReader(self.folder / "histograms.sqlite") as reader:
                mark = reader.newest()  # before they are read: what comes meanwhile is read again
                if mark == found.mark and len(kept) >= closed:
                    return
                if kept and (first := reader.first_since(step, found.mark)) is not None:
                    del kept[first:]
                found.mark = mark
                for subinterval, column in columns_from(reader, step, by, instance, len(kept)):
                    if subinterval >= closed:
                        break
                    kept += [{}] * (subinterval - len(kept))
                    kept.append(column)
        except OutputError as error:
            raise PlanError(str(error)) from None
        kept += [{}] * (closed - len(kept))


def _within(folder: Path, name: str) -> Path | None:
    """The path of a file by the name that a table of the folder gives; None where it has none, or leads elsewhere."""
    path = folder / name
    return path if name and ".." not in path.parts and path.is_relative_to(folder) else None


_VERDICTS: Final = ("verdict", "rate_verdict", "service_verdict", "response_verdict")
_OF_ONE_LUN: Final = frozenset(("host", "hostname", "path"))
_OTHER_TABLES: Final = frozenset(("index", "cpu", "interlock", "threads", "clock", "windows", "gathers"))


def reason_entries(texts: Iterable[str], folder: Path, explained: bool = False) -> list[dict[str, Any]]:
    """The reasons of a verdict, as a summary has them, with what they mean and what to do; `explained`: one of them is
    known to be the cause of others."""
    findings = [finding_of(text, folder) for text in texts]
    return [_reason_entry(one, findings if explained else ()) for one in findings]


def _reason_entry(finding: Finding, beside: Sequence[Finding]) -> dict[str, Any]:
    reason = finding.reason
    return {
        "reason": reason.word,
        "severity": str(finding.severity),
        "detail": finding.detail,
        "scopes": [str(scope) for scope in reason.scope],
        "meaning": reason.sentence,
        "remedy": remedy_of(finding, beside),
    }


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """Changes with the file; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _differing(rows: Sequence[Mapping[str, str]], columns: Sequence[str]) -> list[str]:
    return [name for name in columns if len({row.get(name, "") for row in rows}) > 1]


def _united(rollups: Sequence[Mapping[str, Sequence[str]]]) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for one in rollups:
        for kind, instances in one.items():
            found.setdefault(kind, {}).update(dict.fromkeys(instances))
    return {kind: [*instances] for kind, instances in found.items()}


def _has_meaning(table: GrowingTable, columns: Sequence[Column], name: str) -> list[bool]:
    """Whether the latencies of a set have a meaning, of each subinterval: as its row says."""
    direction, time = name.split(".")
    texts = table.columns[f"{direction}_{time}_us_mean"]
    return [name not in column or bool(text) for column, text in zip(columns, texts, strict=False)]


def _cell(text: str) -> float | str | None:
    """A number where it is one, else the text; None where it is blank."""
    value = number(text)
    return value if value is not None else text or None


def _unix(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _end_of(table: GrowingTable) -> float | None:
    """Of the last subinterval; None before there is one."""
    starts = table.columns["start_utc"]
    return _unix(starts[-1]) + (table.numbers("length_s", len(table) - 1)[0] or 0.0) if starts else None


def _figures(table: GrowingTable, name: str, first: int) -> list[float | None]:
    """A metric from a row on, also of a category that did nothing."""
    if table.has(name):
        return table.numbers(name, first)
    return [number(of_nothing(iops).get(name, "")) for iops in table.columns["overall_iops"][first:]]
