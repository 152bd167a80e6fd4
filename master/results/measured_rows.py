"""Reads what a run measured, as the rows of the table at its end: of the whole, or of each instance of a rollup type.

Rule: the whole's rows are those that run.json keeps, which watchers were shown. The rows of rollup instances, and those
of a run whose version did not keep them, are read from the summaries: there a row's cause is not known.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from ...protocol.errors import ProtocolError
from ...protocol.lines import decode
from ..errors import PlanError
from ..output.csv_text import lines as csv_lines
from ..output.file_names import stem
from ..rollup.instances import ALL
from ..summary.headline import MEASUREMENT_METRICS, known_figures
from ..summary.measured import MeasurementRow, StepEnds
from ..text.suggestions import suggestion
from ..verdicts import Finding, Reason, Scope, Severity, Verdict, standing
from .checked_files import read_rows, read_whole, that_count
from .finished_run import FinishedRun, Key, StepRow, read_run

_FINDING: Final = re.compile(r"(?P<reason>\w+)\[(?P<severity>\w+)\](?: \((?P<detail>.*)\))?", re.DOTALL)
_REASONS: Final = {reason.word: reason for reason in Reason}


@dataclass(frozen=True, slots=True)
class MeasuredSteps:
    """The steps of a run that ended, with their measurements of one rollup type."""

    by: str  # the rollup type
    steps: tuple[StepEnds, ...]
    chosen: bool = False  # somebody named them


def read_measured(folder: Path, by: str, wanted: Sequence[str]) -> MeasuredSteps:
    """Of a run's folder. `wanted`: names or numbers of steps; where there are none, all, of a repeated step the last
    attempt.

    Raises PlanError where the run has no results, no such rollup type or no such step, or is of another version.
    """
    run = read_run(folder.name, folder, [by])
    counting = {step["number"] for step in that_count(run.record)}
    steps = [one for one in chosen_steps(run, wanted) if wanted or one["number"] in counting]
    return MeasuredSteps(by, tuple(_step(one, run, by) for one in steps), bool(wanted))


def chosen_steps(run: FinishedRun, wanted: Sequence[str]) -> list[Mapping[str, Any]]:
    """The entries in run.json of the steps that ended: all, or those of these names or numbers. Raises PlanError."""
    steps = [one for one in run.record["steps"] if one["verdict"]]
    for word in wanted:
        if not any(_is(word, one) for one in steps):
            near = suggestion(word, [one["name"] for one in steps])
            raise PlanError(f"{run.folder}: no step {word!r} has ended{near}")
    return [one for one in steps if not wanted or any(_is(word, one) for word in wanted)]


def standing_of(step: Mapping[str, Any], rows: Sequence[Mapping[str, str]]) -> str:
    """The name of the measurement that a step stands for, "" where it has none.

    `step`: its entry in run.json; `rows`: its rows of summary.all.csv, by which it is judged where run.json says
    nothing (it is of an earlier version), or names a row that is not there (it was torn).
    """
    kept = [one.get("name") for one in step.get("measured", ()) if one.get("stands")]
    if found := [row["name"] for row in rows if row["name"] in kept]:
        return found[-1]
    if not rows:
        return ""
    return rows[standing([(Verdict(row["verdict"]), bool(row.get("overall_iops"))) for row in rows])]["name"]


def summary_text(folder: Path, measured: MeasuredSteps) -> str:
    """The rows of summary.<rollup type>.csv that are of these steps, as CSV with its header."""
    rows = read_whole(folder, lambda kept: read_rows(kept.results / f"summary.{stem(measured.by)}.csv"))
    numbers = {str(step.number) for step in measured.steps}
    return csv_lines([rows[0], *(row for row in rows[1:] if row[0] in numbers and len(row) == len(rows[0]))])


def _is(word: str, step: Mapping[str, Any]) -> bool:
    return word in (step["name"], str(step["number"]))


def _step(step: Mapping[str, Any], run: FinishedRun, by: str) -> StepEnds:
    rows = run.rows_of(step["number"])
    measured = (_kept(step, rows, run.folder) if by == ALL else ()) or tuple(
        _row(key.step if by == ALL else f"{key.step} {key.instance}", row, run.folder) for key, row in rows
    )
    findings = tuple(finding_of(text, run.folder) for text in step["reasons"])
    return StepEnds(step["number"], step["name"], Verdict(step["verdict"]), findings, measured)


def _kept(step: Mapping[str, Any], rows: Iterable[tuple[Key, StepRow]], folder: Path) -> tuple[MeasurementRow, ...]:
    """The rows that were reported when the step ended; none where its entry has none.

    An entry of an earlier version names its figures otherwise: they are those of the summary.
    """
    figures = {key.step: _figures(row) for key, row in rows}
    known = {field.name for field in fields(MeasurementRow)}
    measured = []
    for entry in step["measured"]:
        row = {name: value for name, value in entry.items() if name in known}
        row.setdefault("figures", figures.get(entry.get("name"), {}))
        try:
            measured.append(decode(json.dumps({"type": "row", **row}).encode(), {"row": MeasurementRow}))
        except ProtocolError as error:
            raise PlanError(f"{folder}/run.json: of another version of ivypy: {error}") from None
    return tuple(measured)


def _row(name: str, row: StepRow, folder: Path) -> MeasurementRow:
    """A row of a summary."""
    cells = row.cells
    return MeasurementRow(
        name=name,
        verdict=Verdict(cells["verdict"]),
        rate_verdict=row.verdict(Scope.RATE),
        service_verdict=row.verdict(Scope.SERVICE),
        response_verdict=row.verdict(Scope.RESPONSE),
        findings=tuple(finding_of(text, folder) for text in filter(None, cells["reasons"].split("; "))),
        cause="",
        figures=_figures(row),
        hosts_in=row.hosts_in,
        hosts_of=row.hosts_of,
    )


def _figures(row: StepRow) -> dict[str, float]:
    cells = row.cells
    return known_figures(MEASUREMENT_METRICS, lambda metric: float(cells[metric]) if cells.get(metric) else None)


def finding_of(text: str, folder: Path) -> Finding:
    """The inverse of str(Finding), without its cause."""
    match = _FINDING.fullmatch(text)
    reason = _REASONS.get(match["reason"]) if match else None
    if match is None or reason is None or match["severity"] not in reason.severities:
        raise PlanError(f"{folder}: a reason of another version of ivypy: {text!r}")
    severity = Severity(match["severity"]) if len(reason.severities) > 1 else None
    return Finding(reason, match["detail"] or "", severity)
