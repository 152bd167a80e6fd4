"""A run's folder as the data of a page: one answer for each thing that is drawn, of a finished or a running run.

Rule: everything comes from the files of the folder, so that whoever looks never disturbs the run. Times are unix
seconds, units those of docs/columns.md, a blank is None.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ..control.observation import Phase
from ..output.column import names
from ..output.columns import BY_ADDRESS, INSTANCE
from ..output.file_names import stem
from ..results.checked_files import each_row, read_rows
from ..results.saturation import Level
from ..rollup.instances import ALL
from ..rollup.metrics import of_nothing
from ..summary.headline import CPU, IN_CHARTS
from .document import document_of
from .elements import StepElements, elements_answer
from .growing_table import GrowingTable, number, number_or_text, unix_time
from .histogram_columns import SETS, Column, Times, encoded
from .instances import histogram_sets, instance_table, newest_row
from .kept_run import KeptRun, stamp_of

_NO_CONTROL: Final = frozenset(("index", "cpu", "interlock", "threads", "clock", "windows", "gathers", "by_address"))

SectionColumns = dict[str, list[float | None]]
MOST_MAPPED: Final = 100  # instances of a map of addresses
_BY_SECTION: Final = names(BY_ADDRESS[len(INSTANCE) + 2 :])


@dataclass(slots=True)
class Progress:
    """How far a run has come, for pages to see what changed. `document`: grows with each change of the run document."""

    document: int
    step: int | None  # that runs, or ran last
    closed: int  # its subintervals
    ended: bool


class RunData:
    """One run's folder. Used by one thread at a time.

    Whatever is asked for that does not exist raises KeyError; a file that is damaged or of another version PlanError.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._run = KeptRun(folder)
        self._seen: object = None  # of the files that the document is made of
        self._document = 0

    def progress(self) -> Progress:
        """Cheap: a few files' sizes, and what the step that runs has grown by."""
        record = self._run.record
        paths = [self.folder / name for name in ("run.json", "summary.all.csv", "events.csv")]
        seen = [self._run.as_of, *map(stamp_of, paths)]
        if seen != self._seen:
            self._seen, self._document = seen, self._document + 1
        newest = max((step["number"] for step in record["steps"]), default=None)
        closed = 0 if newest is None else len(self._run.rows(newest))
        return Progress(self._document, newest, closed, record["end_utc"] is not None)

    def document(self) -> dict[str, Any]:
        """The run, its steps with their measurements of everything, its hosts, LUNs, plan and events."""
        return document_of(self._run)

    def steps(self) -> list[dict[str, Any]]:
        """The steps that began, as run.json has them."""
        found: list[dict[str, Any]] = self._run.record["steps"]
        return found

    def rollups(self, step: int) -> dict[str, list[str]]:
        """The rollup types of a step, with their instances."""
        return {kind: [*instances] for kind, instances in self._run.files(step).items()}

    def stems(self, step: int) -> set[str]:
        """The names of the files of a step's rollup instances, without their ends."""
        return {stem(name) for instances in self._run.files(step).values() for name in instances}

    def series(self, step: int, by: str = ALL, instance: str = ALL, first: int = 0) -> dict[str, Any]:
        """The figures of a rollup instance in each subinterval, from a subinterval on."""
        rows = self._run.rows(step, by, instance)
        place = min(first, len(rows))
        columns = rows.columns
        return {
            "by": by,
            "instance": instance,
            "from": place,
            "subinterval": [int(text) for text in columns["subinterval"][place:]],
            "start": [unix_time(text) for text in columns["start_utc"][place:]],
            "length_s": rows.numbers("length_s", place),
            "phase": columns["phase"][place:],
            "in_measurement": self._run.in_measurement(step, rows)[place:],
            "hosts_in": [int(text or 0) for text in columns["hosts_in"][place:]],
            "hosts_of": [int(text or 0) for text in columns["hosts_of"][place:]],
            "iops_setting": [text if text == "max" else number(text) for text in columns["iops_setting"][place:]],
            "metrics": {name: _figures(rows, name, place) for name in IN_CHARTS},
        }

    def newest_rows(self, step: int, by: str) -> dict[str, dict[str, str]]:
        """The row of the last subinterval of each instance of a rollup type that has files."""
        files = self._run.files_of(step, by)
        rows = {name: newest_row(path) for name, path in files.items() if path is not None}
        return {name: {**of_nothing(row.get("overall_iops", "")), **row} for name, row in rows.items()}

    def cpu(self, step: int, first: int = 0) -> dict[str, Any]:
        """CPU of each host, from a subinterval on; None where a host's result is missing."""
        rows, cpu = self._run.rows(step), self._run.cpu(step)
        subintervals = range(min(first, len(rows)), len(rows))
        hosts: dict[str, dict[str, list[float | None]]] = {}
        values = [cpu.numbers(name) for name in CPU]
        for row, (text, host) in enumerate(zip(cpu.columns["subinterval"], cpu.columns["host"], strict=True)):
            if host not in hosts:
                hosts[host] = {name: [None] * len(subintervals) for name in CPU}
            if int(text) in subintervals:
                for name, column in zip(CPU, values, strict=True):
                    hosts[host][name][int(text) - subintervals.start] = column[row]
        starts = [unix_time(text) for text in rows.columns["start_utc"][subintervals.start :]]
        return {"subinterval": [*subintervals], "start": starts, "hosts": hosts}

    def slack_s(self, step: int) -> float | None:
        """The time that was left after barrier 2 in the last subinterval."""
        ms = number(newest_row(self._run.step_folder(step) / "interlock.csv").get("slack_ms", ""))
        return None if ms is None else ms / 1000

    def columns(self, step: int) -> Sequence[Column]:
        """The histograms of everything in each subinterval, in order. Do not change them."""
        _, columns = self._run.histograms(step)
        return columns

    def histograms(self, step: int, by: str = ALL, instance: str = ALL, first: int = 0) -> bytes:
        """The histograms of a rollup instance, from a subinterval on, as histogram_columns.py says."""
        rows, columns = self._run.histograms(step, by, instance)
        times = Times(
            start=[unix_time(text) for text in rows.columns["start_utc"][: len(columns)]],
            length_s=[one or 0.0 for one in rows.numbers("length_s")],
            in_measurement=self._run.in_measurement(step, rows),
            valid={name: _has_meaning(rows, columns, name) for name in SETS},
        )
        return encoded(columns, times, min(first, len(columns)))

    def distribution(self, step: int, by: str = ALL, instance: str = ALL) -> dict[str, Any]:
        """The histograms of the measurement; no sets before it is complete."""
        path = self._run.path(step, by, instance)
        return {
            "sets": histogram_sets(path.with_name(f"{path.name.removesuffix('.csv')}.histogram.csv")) if path else {}
        }

    def instances(self, step: int, by: str) -> dict[str, Any]:
        """The rollup instances of a type, with what sets them apart."""
        files, standing = self._run.files_of(step, by), self._run.standing(step)
        rows = [row for row in self._run.summary(by) if int(row["step"]) == step and row["name"] == standing]
        return instance_table(by, files, rows)

    def sections(self, step: int, by: str = ALL, instance: str = ALL) -> dict[str, Any]:
        """I/Os and service times by address of a rollup instance: a list each, with an entry for each section of the
        LUNs; none before the measurement is complete."""
        return {"columns": self._sections(step, by, instance, 1).get(instance)}

    def section_map(self, step: int, by: str) -> dict[str, Any]:
        """The same of the first instances of a rollup type; `of`: how many it has."""
        instances = self._sections(step, by, None, MOST_MAPPED)
        return {"of": len(self._run.files(step).get(by, ())), "instances": instances}

    def _sections(self, step: int, by: str, instance: str | None, most: int) -> dict[str, SectionColumns]:
        """By instance, of one or of the first ones."""
        instances: dict[str, SectionColumns] = {}
        for row in each_row(self._run.step_folder(step) / "by_address.csv"):
            name = row["rollup_instance"]
            if row["rollup_type"] != by or instance not in (None, name):
                if instance in instances:
                    break  # the rows of an instance follow each other
                continue
            if name not in instances and len(instances) == most:
                break
            columns = instances.setdefault(name, {column: [] for column in _BY_SECTION})
            for column in _BY_SECTION:
                columns[column].append(number(row[column]))
        return instances

    def control(self, step: int) -> dict[str, Any]:
        """The tables that control wrote: measure, pid, staircase ...; name: columns, and rows of texts and numbers."""
        tables = {}
        for path in sorted(self._run.step_folder(step).glob("*.csv")):
            rows = read_rows(path) if path.stem not in _NO_CONTROL else []
            if rows:
                whole = [row for row in rows[1:] if len(row) == len(rows[0])]
                tables[path.stem] = {"columns": rows[0], "rows": [[*map(number_or_text, row)] for row in whole]}
        return tables

    def elements(self, step: int, by: str = ALL, instance: str = ALL) -> dict[str, Any]:
        """The readings of connectors in a step, beside the service times of a rollup instance."""
        rows = self._run.rows(step, by, instance)
        service = zip(rows.columns["phase"], rows.numbers("overall_service_us_mean"), strict=True)
        under_load = [None if phase == Phase.COOLDOWN else us for phase, us in service]
        return elements_answer(
            self.step_elements(step), (by, instance), self.stems(step), under_load, self._loads(step)
        )

    def element_lines(self, step: int, metric: str) -> dict[str, Any]:
        """The elements with the highest values of a connector's metric, over the step."""
        return self.step_elements(step).lines(metric)

    def step_elements(self, step: int) -> StepElements:
        """The readings of connectors in a step."""
        return self._run.elements(step)

    def levels(self, step: int) -> list[Level]:
        """The measurements of a step, with the busy figures of the elements."""
        return [self._level(row) for row in self._measurements().get(step, {}).values()]

    def _loads(self, step: int) -> list[Level]:
        """The loads at which this step was measured; where it has one, those of all steps that have one."""
        by_step = self._measurements()
        own = by_step.get(step, {})
        steps = [own] if len(own) > 1 else [one for one in by_step.values() if len(one) == 1]
        return sorted((self._level(row) for one in steps for row in one.values()), key=lambda level: level.iops)

    def _measurements(self) -> dict[int, dict[str, Mapping[str, str]]]:
        """The summary's rows of everything, by step and name; those without a measurement are left out."""
        rows: dict[int, dict[str, Mapping[str, str]]] = {}
        for row in self._run.summary(ALL):
            if row.get("first_subinterval") and number(row.get("overall_iops", "")):
                rows.setdefault(int(row["step"]), {})[row["name"]] = row
        return rows

    def _level(self, row: Mapping[str, str]) -> Level:
        busy = self._run.busy(int(row["step"]), int(row["first_subinterval"]), int(row["last_subinterval"]))
        iops, service_us = (number(row.get(name, "")) for name in ("overall_iops", "overall_service_us_mean"))
        return Level(row["name"], iops or 0.0, service_us, busy)


def _has_meaning(rows: GrowingTable, columns: Sequence[Column], name: str) -> list[bool]:
    """Whether the latencies of a set have a meaning, of each subinterval: as its row says."""
    direction, time = name.split(".")
    texts = rows.columns[f"{direction}_{time}_us_mean"]
    return [name not in column or bool(text) for column, text in zip(columns, texts, strict=False)]


def _figures(rows: GrowingTable, name: str, first: int) -> list[float | None]:
    """A metric from a row on, also of a category that did nothing."""
    if rows.has(name):
        return rows.numbers(name, first)
    return [number(of_nothing(iops).get(name, "")) for iops in rows.columns["overall_iops"][first:]]
