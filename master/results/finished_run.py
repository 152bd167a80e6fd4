"""A run's folder, read back: what run.json says, and the rows of its summaries.

Rule: a run that has not ended is read as far as it is written: its finished steps have their rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import PlanError
from ..exit_codes import ExitCode
from ..output.file_names import stem, step_folder
from ..output.run_files import read_run_file
from ..rollup.instances import ALL
from ..rollup.metrics import Metric
from ..verdicts import Scope, Verdict
from .checked_files import Snapshot, counted_in, read_summary, read_table, read_whole, runs


class Key(NamedTuple):
    """The place of a figure, which is compared with its like in other runs."""

    step: str  # name; of a level of a staircase with its load
    rollup_type: str
    instance: str

    def __str__(self) -> str:
        return self.step if self.rollup_type == ALL else f"{self.step} {self.rollup_type}={self.instance}"


@dataclass(frozen=True, slots=True)
class StepRow:
    """A row of a summary."""

    cells: Mapping[str, str]

    @property
    def number(self) -> int:
        return int(self.cells["step"])

    @property
    def subintervals(self) -> frozenset[int]:
        """From the first to the last of the measurement; none where there is no measurement."""
        first, last = self.cells.get("first_subinterval"), self.cells.get("last_subinterval")
        return frozenset(range(int(first), int(last) + 1)) if first and last else frozenset()

    def verdict(self, scope: Scope) -> Verdict:
        """Of the figures of this scope; runs of 0.1.0 have one for all."""
        return Verdict(self.cells.get(f"{scope}_verdict") or self.cells["verdict"])

    @property
    def reasons(self) -> frozenset[str]:
        """Their names, of all severities."""
        return frozenset(text.partition("[")[0] for text in self.cells.get("reasons", "").split("; ") if text)

    @property
    def hosts_in(self) -> int:
        """Whose results the row includes; 0 where that is not known."""
        return int(self.cells.get("hosts_in") or 0)

    @property
    def hosts_of(self) -> int:
        return int(self.cells.get("hosts_of") or 0)

    def figure(self, metric: Metric) -> float | None:
        """In the metric's unit; None where it is blank."""
        text = self.cells.get(metric.name, "")
        return float(text) if text and isfinite(float(text)) else None


@dataclass(frozen=True)
class FinishedRun:
    """One run. `name`: A1, A2 ... B1, as the output calls it."""

    name: str
    folder: Path
    record: Mapping[str, Any]  # run.json
    rows: Mapping[Key, StepRow]

    @cached_property
    def hosts(self) -> list[dict[str, str]]:
        """hosts.csv; empty where there is none."""
        return read_table(self.folder / "hosts.csv")

    @cached_property
    def luns(self) -> list[dict[str, str]]:
        """luns.csv; empty where there is none."""
        return read_table(self.folder / "luns.csv")

    @cached_property
    def plan(self) -> str:
        """plan.yaml; "" where there is none."""
        return plan_text(self.folder)

    @cached_property
    def defines(self) -> dict[str, str]:
        """Parameters of the command line: -D NAME=VALUE."""
        words = [str(word) for word in self.record.get("argv") or ()]
        given = [after for word, after in pairwise(words) if word == "-D"]
        given += [word[2:] for word in words if word.startswith("-D") and "=" in word]
        pairs = (text.partition("=") for text in given)
        return {name: value for name, _, value in pairs}

    @cached_property
    def searches(self) -> dict[int, str]:
        """The names of the steps that searched for a load, by their numbers."""
        steps = {int(one["number"]): str(one["name"]) for one in self.record.get("steps") or ()}
        return {
            number: name
            for number, name in steps.items()
            if (self.folder / step_folder(number, name) / "find.csv").is_file()
        }

    @cached_property
    def _rows_by_step(self) -> dict[int, list[tuple[Key, StepRow]]]:
        rows: dict[int, list[tuple[Key, StepRow]]] = {}
        for key, row in self.rows.items():
            rows.setdefault(row.number, []).append((key, row))
        return rows

    def rows_of(self, step: int) -> list[tuple[Key, StepRow]]:
        """Those of a step, by its number."""
        return self._rows_by_step.get(step, [])

    def measured(self, step: int) -> dict[Key, frozenset[int]]:
        """Of each row of a step, the subintervals that its figures include: without those that were set aside."""
        paths = sorted(self.folder.glob(f"step{step:04d}.*/{ALL}/{ALL}.csv"))
        rows = read_table(paths[0]) if paths else []
        counted = counted_in(self.record, step)
        aside = {
            number
            for number, flag in ((int(one["subinterval"]), one.get("in_measurement")) for one in rows)
            if (flag == "0" if counted is None else number not in counted)
        }
        return {key: row.subintervals - aside for key, row in self.rows_of(step)}


def read_run(name: str, folder: Path, rollup_types: Sequence[str]) -> FinishedRun:
    """The run with its rows of these rollup types. Raises PlanError where it has no results, or not these types."""
    return read_whole(folder, lambda kept: run_in(name, kept, rollup_types))


def run_in(name: str, kept: Snapshot, rollup_types: Sequence[str]) -> FinishedRun:
    """The same, of a snapshot."""
    folder = kept.folder
    if why := why_none_in(kept):
        raise PlanError(f"{folder}: there are no results: {why}")
    rows: dict[Key, StepRow] = {}
    for kind in rollup_types:
        path = kept.results / f"summary.{stem(kind)}.csv"
        if not path.is_file():
            raise PlanError(f"{folder}: it has no rollup type {kind}; it has {', '.join(types_in(kept))}")
        for cells in read_summary(path):
            rows[Key(cells["name"], cells["rollup_type"], cells["rollup_instance"])] = StepRow(cells)
    return FinishedRun(name, folder, kept.record, rows)


def plan_text(folder: Path) -> str:
    """plan.yaml; "" where there is none, and why where it is not read."""
    try:
        return read_run_file(folder / "plan.yaml").decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"# plan.yaml: not read: {error.strerror}\n"


def types_in(kept: Snapshot) -> list[str]:
    """Those of which a run has a summary; `all` is among them."""
    summaries = sorted(kept.results.glob("summary.*.csv"))
    return [path.name.removeprefix("summary.").removesuffix(".csv") for path in summaries]


def why_no_results(folder: Path) -> str:
    """Of a run's folder; "" where it has results. Raises PlanError."""
    return read_whole(folder, why_none_in)


def why_none_in(kept: Snapshot) -> str:
    """The same, of a snapshot."""
    if (kept.results / f"summary.{ALL}.csv").is_file():
        return ""
    code = kept.record["exit_code"]
    if code is None:
        going_on = "no step of the run has ended, so far"
        return going_on if runs(kept.folder, kept.record) else "the run was cut off before it had measured anything"
    return f"the run ended without results, exit code {code}: {ExitCode(code).sentence}"
