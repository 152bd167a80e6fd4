"""The table at the end of a run: a line for each measurement, below it their verdicts, causes, reasons and remedies.

Rule: a figure that its verdict discredits stands in brackets, [1.2 k], and one that is of a part of what was planned in
parentheses, (1.2 k); a line below the row says where hosts are missing. The width chooses the columns, as for
subintervals.
"""

from collections.abc import Sequence
from typing import Final

from ..causes import remedy_of
from ..text.scaled import WIDEST
from ..text.table import ColumnGroup, TextColumn, header_lines, row_line
from ..text.wrapping import shortened
from ..verdicts import Reason
from .headline import OF_MEASUREMENT, fitting, grouped, title_of
from .measured import MeasurementRow, StepEnds

MOST_REASONS: Final = 3  # of a measurement; the CSV has all
LEAST_NAME: Final = 18
WIDEST_NAME: Final = 48  # half of it holds the load of a level
_VERDICT: Final = TextColumn("verdict", -7)
_WIDTH: Final = WIDEST + 2  # of a figure, in brackets


def steps_table(steps: Sequence[StepEnds], width: int, explained: bool = True) -> list[str]:
    """The table; then, where it is `explained`, what is to be said of each measurement. A remedy is printed once."""
    measured = [(step.number, row) for step in steps for row in step.measured]
    metrics = fitting(OF_MEASUREMENT, width)
    longest = max((len(f"{number} {row.name}") for number, row in measured), default=0)
    groups = _groups(metrics, longest, width)
    name = abs(groups[0].columns[0].width)
    lines = header_lines(groups)
    for number, row in measured:
        cells = [row.shown(metric) for metric in metrics]
        lines.append(row_line(groups, [shortened(f"{number} {row.name}", name), row.verdict, *cells]))
        lines += [f"{'':{name}} of {row.missing}"] if row.missing else []
    known: set[Reason] = set()
    for number, row in measured if explained else ():
        if row.findings:
            lines += [f"  {line}" for line in _measurement_lines(number, row, known)]
    return lines


def _groups(metrics: Sequence[str], longest: int, width: int) -> list[ColumnGroup]:
    """The columns, the name's as wide as there is room for. `longest`: of the names."""
    first, *others = (
        ColumnGroup(title, tuple(TextColumn(title_of(metric), _WIDTH) for metric in some))
        for title, some in grouped(metrics)
    )
    figures = sum(3 + group.width for group in others) + 2 + first.width + len(_VERDICT.title)
    name = max(LEAST_NAME, min(longest, WIDEST_NAME, width - figures))
    return [ColumnGroup("", (TextColumn("step", -name), _VERDICT, *first.columns)), *others]


def verdict_lines(report: StepEnds) -> list[str]:
    """The step's verdict with its cause and reasons; those of several measurements each below it."""
    known: set[Reason] = set()
    if len(report.measured) == 1:
        return _measurement_lines(report.number, report.measured[0], known)
    each = [line for one in report.measured for line in _measurement_lines(report.number, one, known)]
    head = f"step {report.number} {report.name}: {report.verdict}, {len(report.measured)} measurements"
    return [head, *(f"  {line}" for line in each)]


def _measurement_lines(number: int, measured: MeasurementRow, known: set[Reason]) -> list[str]:
    """Verdict and cause, then the reasons that weigh most; the remedy of those that are not `known`, which they are
    then. A remedy of several stands once."""
    lines = [f"step {number} {measured.name}: {measured.verdict}{': ' + measured.cause if measured.cause else ''}"]
    reasons = measured.findings
    remedies: set[str] = set()
    for finding in reasons[:MOST_REASONS]:
        lines.append(f"  {finding}")
        remedy = remedy_of(finding, reasons)
        if finding.reason not in known and remedy not in remedies:
            lines.append(f"    {remedy}")
        known.add(finding.reason)
        remedies.add(remedy)
    if len(reasons) > MOST_REASONS:
        lines.append(f"  and {len(reasons) - MOST_REASONS} more: see summary.all.csv")
    return lines
