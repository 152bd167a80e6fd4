"""A run as Markdown for a ticket: the table of its measurements, its verdicts in words, the busiest elements."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ..exit_codes import ExitCode
from ..pages.run_data import RunData
from ..results.connector_rows import ConnectorRow, has_connectors, is_time, read_connector_rows
from ..results.measured_rows import MeasuredSteps, read_measured
from ..results.render_measured import escaped, markdown_of
from ..results.run_entries import entry_of
from ..rollup.instances import ALL
from ..summary.steps_table import ending_of
from ..verdicts import Severity, Verdict

MOST_BUSY: Final = 4  # elements of a measurement
MOST_TIMES: Final = 2  # metrics


def ticket_of(folder: Path) -> str:
    """Raises PlanError."""
    entry, measured = entry_of(folder, datetime.now(UTC)), read_measured(folder, ALL, ())
    sentence = (
        "" if entry.exit_code is None else ending_of(ExitCode(entry.exit_code), measured.steps, entry.interrupted_by)
    )
    words = [*_verdicts(measured), *_reasons(measured)]
    connectors = [f"- {escaped(line)}" for line in _connector_lines(folder, measured)]
    if connectors:
        words += [*([""] if words else []), "What connectors said, the busiest first:", "", *connectors]
    return markdown_of(entry, measured, sentence) + "\n".join([*(["", *words] if words else []), ""])


def _connector_lines(folder: Path, measured: MeasuredSteps) -> Iterator[str]:
    """Of each measurement the busiest elements, and the longest times of all elements together."""
    times: dict[tuple[int, str], list[ConnectorRow]] = {}
    for row in read_connector_rows(folder):
        if row.rollup_type == ALL and is_time(row.metric) and row.value is not None:
            times.setdefault((row.step, row.name), []).append(row)
    data = RunData(folder)
    for step in measured.steps if has_connectors(folder) else ():
        for level in data.levels(step.number):
            busiest = sorted(level.busy, key=lambda one: -level.busy[one])[:MOST_BUSY]
            longest = sorted(times.get((step.number, level.name), []), key=lambda one: -(one.value or 0.0))[:MOST_TIMES]
            texts = [f"{one.metric} of {one.name}: {level.busy[one]:.3g} %" for one in busiest]
            texts += [f"{one.metric}: {one.value:.4g} {one.unit}" for one in longest]
            if texts:
                yield f"{step.number} {level.name}: {', '.join(texts)}"


def _verdicts(measured: MeasuredSteps) -> Iterable[str]:
    """Lines that say what each verdict means, but for valid."""
    found = {one.verdict for step in measured.steps for one in step.measured}
    return [f"- **{verdict}**: {verdict.sentence}" for verdict in Verdict if verdict in found - {Verdict.VALID}]


def _reasons(measured: MeasuredSteps) -> Iterable[str]:
    """Lines that say what each reason against a figure means, and what to do."""
    findings = [finding for step in measured.steps for one in step.measured for finding in one.findings]
    reasons = dict.fromkeys(one.reason for one in findings if one.severity is not Severity.NOTE)
    return [f"- `{reason.word}`: {reason.sentence} {reason.remedy}".rstrip() for reason in reasons]
