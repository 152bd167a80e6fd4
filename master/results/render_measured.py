"""Renders what a run measured for people: text and Markdown.

Rule: figures are marked as in the table at a run's end.
"""

from pathlib import Path
from typing import Final

from ..errors import PlanError
from ..rollup.instances import ALL
from ..summary.headline import NARROW, OF_MEASUREMENT, WIDE, grouped, title_of
from ..summary.measured import MeasurementRow
from ..summary.search_probes import search_lines
from ..summary.steps_table import steps_table
from ..verdicts import Severity
from .measured_rows import MeasuredSteps
from .run_entries import RunEntry, RunState
from .search_steps import read_probes

_STANDING: Final = {
    RunState.RUNNING: "it is running",
    RunState.CUT_OFF: "it was cut off before its end",
    RunState.NOT_ENDED: "it has not ended",
}
_SPECIAL: Final = str.maketrans({one: f"\\{one}" for one in "\\|`*_<>[]"})


def measured_lines(measured: MeasuredSteps, folder: str, width: int) -> list[str]:
    """The table, then what is to be said of each measurement; below a rollup type, only the table."""
    return steps_table(measured.steps, width, folder, explained=measured.by == ALL, each_round=measured.chosen)


def searched_lines(measured: MeasuredSteps, folder: Path, width: int = NARROW) -> list[str]:
    """The probes of each step that searched, below an empty line; none of a rollup type. A file that is damaged is
    named: the table does not need it."""
    lines: list[str] = []
    for step in measured.steps if measured.by == ALL else ():
        try:
            probes = read_probes(folder, step.number, step.name)
        except PlanError as error:
            lines += ["", str(error)]
        else:
            lines += ["", *search_lines(step, probes, width)] if probes and step.measured else []
    return lines


def standing_line(entry: RunEntry, sentence: str) -> str:
    """How the run ended, or that it did not. `sentence`: of its exit code."""
    return sentence if entry.state is RunState.ENDED else f"{entry.folder.name}: {_STANDING[entry.state]}"


def markdown_of(entry: RunEntry, measured: MeasuredSteps, sentence: str) -> str:
    """For a ticket, or a CI's summary: headline, table, and what stands against the figures."""
    metrics = OF_MEASUREMENT[WIDE]
    titles = [f"{time} {title_of(metric)}".strip() for time, some in grouped(metrics) for metric in some]
    lines = [f"### {escaped(entry.folder.name)}", "", standing_line(entry, sentence), ""]
    lines.append("| " + " | ".join(["step", "verdict", *titles]) + " |")
    lines.append("|" + "|".join([" --- ", " --- ", *[" ---: "] * len(titles)]) + "|")
    rows = [(step.number, row) for step in measured.steps for row in step.measured]
    for number, row in rows:
        cells = [row.shown(metric) for metric in metrics]
        lines.append("| " + " | ".join([escaped(f"{number} {row.name}"), _verdict(row), *cells]) + " |")
    against = [f"- {escaped(_against(number, row))}" for number, row in rows if _weighty(row)]
    return "\n".join([*lines, *(["", *against] if against else []), ""])


def _verdict(one: MeasurementRow) -> str:
    return f"{one.verdict} ({one.missing})" if one.missing else str(one.verdict)


def _weighty(one: MeasurementRow) -> bool:
    return any(finding.severity is not Severity.NOTE for finding in one.findings)


def _against(number: int, one: MeasurementRow) -> str:
    found = "; ".join(str(finding) for finding in one.findings if finding.severity is not Severity.NOTE)
    return f"{number} {one.name}: {one.cause + ': ' if one.cause else ''}{found}"


def escaped(text: str) -> str:
    """As Markdown that shows just this."""
    return text.translate(_SPECIAL)
