"""The answers of runs as a report carries them: under the addresses that the page asks for, as it would get them.

Rule: what is recorded is exactly what RunData answers. Everything of a whole run comes first; then metrics of
connectors, element by element; then rollup instances, those of small types first and of each type those that stand
apart first, until the report is large enough. What is left out is said; instances are not offered by the page then.

    {"answers": {"/api/runs": {...}, ADDRESS: {"gzip": base64 of the gzip of the answer's bytes}, ...},
     "control": false, "left_out": [sentence, ...], "notes": [sentence, ...],
     "route": "#/..."}

An answer is JSON, or binary where it is of histograms; a short one stands as it is.
"""

import base64
import gzip
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote

from ..errors import PlanError
from ..pages.elements import no_elements
from ..pages.histogram_columns import SETS, Times, encoded
from ..pages.instances import LATENCY
from ..pages.outliers import bound
from ..pages.run_data import RunData
from ..rollup.instances import ALL
from ..summary.headline import IN_CHARTS

MOST_BYTES: Final = 20 << 20  # of recorded answers; what is of whole runs is recorded in any case
SHORT: Final = 600  # bytes: compressed, it would be no shorter
_LEVEL: Final = 6
FAILURES: Final = (PlanError, OSError, KeyError, ValueError)  # of files that are damaged, or gone
_SAFE: Final = "!'()*-._~"  # as encodeURIComponent leaves them

T = TypeVar("T", dict[str, Any], bytes)


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """How much is recorded."""

    most_bytes: int = MOST_BYTES
    is_late: Callable[[], bool] = lambda: False  # whether no more is to be begun


@dataclass(slots=True)
class Archive:
    """The server's answers that are recorded so far, by address."""

    answers: dict[str, Any] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # on what is in it
    route: str = ""  # of the view that the page begins with
    runs: list[str] = field(default_factory=list)  # their ids
    size: int = 0  # bytes of the answers, about as the report has them

    def add(self, address: str, answer: Mapping[str, Any] | bytes) -> None:
        is_binary = isinstance(answer, bytes)
        data = answer if isinstance(answer, bytes) else _json(answer)
        if len(data) <= SHORT and not is_binary:
            self.answers[address] = answer
            self.size += len(data)
            return
        text = base64.b64encode(gzip.compress(data, _LEVEL, mtime=0)).decode()
        self.answers[address] = {"gzip": text}
        self.size += len(text)

    def content(self) -> dict[str, Any]:
        return {
            "answers": self.answers,
            "control": False,
            "left_out": self.left_out,
            "notes": self.notes,
            "route": self.route,
        }


def _json(answer: Mapping[str, Any]) -> bytes:
    return json.dumps(answer, allow_nan=False, separators=(",", ":")).encode()


def archive_of(
    folders: Sequence[Path], limits: ArchiveLimits, shown: Mapping[Path, str] | None = None,
    recorded: Collection[Path] | None = None,
) -> Archive:  # fmt: skip
    """Of the runs in these folders, or only of those `recorded`. `shown`: names for some, instead of the folders' own.

    Raises PlanError where a run itself cannot be read.
    """
    archive = Archive()
    names = {folder.resolve(): name for folder, name in (shown or {}).items()}
    named = _named(folders)
    kept = named.values() if recorded is None else {folder.resolve() for folder in recorded}
    runs = [
        _Recorder(run, RunData(folder), archive, limits, names.get(folder))
        for run, folder in named.items()
        if folder in kept
    ]
    for run in runs:
        run.record_whole()
    for run in runs:
        run.record_metrics()
    for run in runs:
        run.record_instances()
    for run in runs:
        run.record_document()
    listed = sorted((one.document["run"] for one in runs), key=_age, reverse=True)
    archive.add("/api/runs", {"runs": listed, "control": False})
    archive.runs += named
    return archive


def _age(run: Mapping[str, Any]) -> tuple[datetime, str]:
    """By which the page lists runs, the newest first."""
    return datetime.fromisoformat(run["start_utc"]), run["id"]


def _named(folders: Sequence[Path]) -> dict[str, Path]:
    """Each run once, by an id: its folder's name, numbered where runs have the same."""
    named: dict[str, Path] = {}
    for folder in dict.fromkeys(one.resolve() for one in folders):
        name, number = folder.name, 1
        while name in named:
            number += 1
            name = f"{folder.name}-{number}"
        named[name] = folder
    return named


class _Recorder:
    """Records one run."""

    def __init__(self, run: str, data: RunData, archive: Archive, limits: ArchiveLimits, shown: str | None) -> None:
        self._archive = archive
        self._limits = limits
        self._data = data
        self._address = f"/api/runs/{quoted(run)}"
        document = data.document()
        self.document = {**document, "run": {**document["run"], "id": run, "run": shown or document["run"]["run"]}}
        self._run = run
        self._steps: list[dict[str, Any]] = document["steps"]
        self._tables: dict[tuple[int, str], dict[str, Any]] = {}  # of instances
        self._kept = {(ALL, ALL)}  # the instances that are recorded
        self._families: dict[int, list[dict[str, Any]]] = {}  # of connectors' elements, by step

    def record_whole(self) -> None:
        """Of each step what is not of single instances, but for their table."""
        for step in self._steps:
            number, data = step["number"], self._data
            self._record_over_time(step, ALL, ALL)
            no_cpu: dict[str, Any] = {"subinterval": [], "start": [], "hosts": {}}
            self._try(step, "cpu?from=0", partial(data.cpu, number), no_cpu)
            self._try(step, "control", partial(data.control, number), {})
            self._record_elements(step, ALL, ALL)
            for by in step["rollups"]:
                table = self._try(
                    step, f"instances?by={quoted(by)}", partial(data.instances, number, by), _no_table(by)
                )
                self._tables[number, by] = table

    def record_instances(self) -> None:
        """As many as the limits allow."""
        types = {by: instances for by, instances in self.document["rollups"].items() if by != ALL}
        for by, instances in sorted(types.items(), key=lambda one: len(one[1])):
            recorded = 0
            for instance in sorted(instances, key=partial(self._apart, by), reverse=True):
                if self._archive.size >= self._limits.most_bytes or self._limits.is_late():
                    break
                for step in self._steps:
                    if instance in step["rollups"].get(by, ()):
                        self._record_over_time(step, by, instance)
                        self._record_elements(step, by, instance)
                self._kept.add((by, instance))
                recorded += 1
            self._record_maps(by)
            if recorded < len(instances):
                self._archive.left_out.append(
                    f"{self._run}: charts of {len(instances) - recorded:,} of {len(instances):,} instances of {by};"
                    " their figures are in the table of instances, and `ivypy web` shows their charts."
                )

    def _record_maps(self, by: str) -> None:
        """The map of addresses of a rollup type, in each step that has one, as far as the limits allow."""
        for step in self._steps:
            if step["by_address"] and self._archive.size < self._limits.most_bytes and not self._limits.is_late():
                answer, nothing = partial(self._data.section_map, step["number"], by), {"of": 0, "instances": {}}
                self._try(step, f"section_map?by={quoted(by)}", answer, nothing)

    def record_metrics(self) -> None:
        """The elements of each metric of connectors, as far as the limits allow."""
        for step in self._steps:
            metrics = [one["name"] for family in self._families[step["number"]] for one in family["metrics"]]
            for place, metric in enumerate(metrics):
                if self._archive.size >= self._limits.most_bytes or self._limits.is_late():
                    left = len(metrics) - place
                    self._archive.left_out.append(
                        f"{self._run}: {left:,} of {len(metrics):,} metrics of connectors in step {step['number']}"
                        f" {step['name']}, element by element; `ivypy web` shows them."
                    )
                    break
                answer = partial(self._data.element_lines, step["number"], metric)
                nothing = {"metric": metric, "elements": 0, "lines": []}
                self._try(step, f"element_lines?metric={quoted(metric)}", answer, nothing)

    def record_document(self) -> None:
        """As it is, but for the rollup instances that are left out."""
        for holder in (self.document, *self._steps):
            rollups = holder["rollups"]
            holder["rollups"] = {by: [one for one in rollups[by] if (by, one) in self._kept] for by in rollups}
        self._archive.add(self._address, self.document)

    def _record_over_time(self, step: Mapping[str, Any], by: str, instance: str) -> None:
        number, data = step["number"], self._data
        chosen = f"by={quoted(by)}&instance={quoted(instance)}"
        self._try(step, f"series?{chosen}&from=0", partial(data.series, number, by, instance), _no_series(by, instance))
        self._try(step, f"histograms?{chosen}&from=0", partial(data.histograms, number, by, instance), _no_histograms())
        self._try(step, f"distribution?{chosen}", partial(data.distribution, number, by, instance), {"sets": {}})
        if step["by_address"]:
            self._try(step, f"sections?{chosen}", partial(data.sections, number, by, instance), {"columns": None})

    def _record_elements(self, step: Mapping[str, Any], by: str, instance: str) -> None:
        number, chosen = step["number"], f"by={quoted(by)}&instance={quoted(instance)}"
        answer = partial(self._data.elements, number, by, instance)
        found = self._try(step, f"elements?{chosen}", answer, no_elements(by, instance))
        self._families[number] = found["families"]

    def _try(self, step: Mapping[str, Any], name: str, answer: Callable[[], T], nothing: T) -> T:
        """Record an answer, or in its place an empty one where a file is damaged."""
        try:
            part = answer()
        except FAILURES as error:
            part = nothing
            what = name.partition("?")[0]
            self._archive.left_out.append(f"{self._run}: {what} of step {step['number']} {step['name']}: {error}")
        self._archive.add(f"{self._address}/steps/{step['number']}/{name}", part)
        return part

    def _apart(self, by: str, instance: str) -> float:
        """How far an instance stands apart from the others of its type, in the step where most; outliers above all."""
        farthest = 0.0
        for step in self._steps:
            for row in self._tables[step["number"], by]["instances"] if by in step["rollups"] else ():
                if row["instance"] == instance:
                    z = max(abs(row["z_iops"] or 0.0), abs(row["z_p99"] or 0.0))
                    farthest = max(farthest, z + (1e9 if row["outlier"] else 0.0))
        return farthest


def _no_series(by: str, instance: str) -> dict[str, Any]:
    names = ("subinterval", "start", "length_s", "phase", "in_measurement", "hosts_in", "hosts_of", "iops_setting")
    metrics: dict[str, list[float]] = {name: [] for name in IN_CHARTS}
    return {"by": by, "instance": instance, "from": 0, **{name: [] for name in names}, "metrics": metrics}


def _no_table(by: str) -> dict[str, Any]:
    nothing: list[Any] = []
    return {
        "by": by, "subintervals": nothing, "metric": LATENCY, "instances": nothing, "measured": False,
        "outlier_beyond": bound(0),
    }  # fmt: skip


def _no_histograms() -> bytes:
    return encoded([], Times([], [], [], {name: [] for name in SETS}), 0)


def quoted(text: str) -> str:
    """As the page's encodeURIComponent has it."""
    return quote(text, safe=_SAFE, errors="surrogateescape")
