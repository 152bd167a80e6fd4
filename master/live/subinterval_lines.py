"""A subinterval as lines of text: the figures in columns; of all details, also reads and writes below them.

Rule: the width chooses which columns there are, never how wide one is. Errors and missing hosts get a line of their own
where they have no column.

    40        UTC phase IOPS | service p99
    60                       | service p50 p99 | response p99
    80                  + # MiB/s         + max
    120                 + target                  + p50 max | CPU%
    160                              + p99.9        + p99.9 | hosts CPU% errors
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ..summary.headline import (
    DIRECTIONS,
    MIDDLE,
    NARROW,
    NARROWEST,
    OF_SUBINTERVAL,
    SLIM,
    SUBINTERVAL_METRICS,
    WIDE,
    Figures,
    full_title,
    grouped,
    known_figures,
    of_direction,
    text_of,
    title_of,
)
from ..text import table
from ..text.scaled import BLANK, WIDEST, scaled_count, scaled_time
from ..text.table import ColumnGroup, TextColumn
from ..verdicts import Scope, Verdict
from .reports import MeasuredSoFar, Subinterval, WorstInstance


@dataclass(frozen=True, slots=True)
class _Cell:
    """A column of a subinterval, and its text in its row, and in one below it: of reads, of writes, of what was
    measured so far."""

    column: TextColumn
    text: Callable[[Subinterval], str]
    below: Callable[[Figures, str], str] = lambda figures, title: ""


def _target(report: Subinterval) -> str:
    return report.target_iops if isinstance(report.target_iops, str) else scaled_count(report.target_iops)


def _cpu(report: Subinterval) -> str:
    busy = report.figures.get("cpu_busy_percent")
    return BLANK if busy is None else f"{busy:.0f}/{report.figures.get('busiest_core_percent', 0):.0f}"


def _errors(report: Subinterval) -> float:
    return report.figures.get("errors", 0.0)


def _metric(name: str) -> _Cell:
    return _Cell(
        TextColumn(title_of(name), WIDEST),
        lambda report: text_of(name, report.figures),
        lambda figures, title: text_of(name, figures),
    )


_TIME: Final = (
    _Cell(TextColumn("UTC", 8), lambda report: report.utc[11:19]),
    _Cell(TextColumn("phase", -9), lambda report: report.phase, lambda figures, title: title),
)
_NUMBER: Final = _Cell(TextColumn("#", 6), lambda report: str(report.number))  # 11 days of 1 s
_TARGET: Final = _Cell(TextColumn("target", WIDEST), _target)
_HOSTS: Final = _Cell(TextColumn("hosts", 9), lambda report: f"{report.hosts_in}/{report.hosts_of}")
_CPU: Final = _Cell(TextColumn("CPU%", 7), _cpu)
_ERRORS: Final = _Cell(TextColumn("errors", 6), lambda report: scaled_count(_errors(report)))
_BESIDE: Final[dict[int, tuple[tuple[_Cell, ...], tuple[_Cell, ...]]]] = {  # before the metrics, and after them
    NARROWEST: (_TIME, ()),
    SLIM: (_TIME, ()),
    NARROW: ((*_TIME, _NUMBER), ()),
    MIDDLE: ((*_TIME, _NUMBER, _TARGET), (_CPU,)),
    WIDE: ((*_TIME, _NUMBER, _TARGET), (_HOSTS, _CPU, _ERRORS)),
}


def _layout(width: int) -> tuple[tuple[_Cell, ...], tuple[ColumnGroup, ...]]:
    (rates, names), *times = grouped(OF_SUBINTERVAL[width])
    before, after = _BESIDE[width]
    groups = [(rates, (*before, *map(_metric, names)))]
    groups += [(time, tuple(map(_metric, some))) for time, some in times]
    groups += [("", after)] if after else []
    return (
        tuple(cell for _, cells in groups for cell in cells),
        tuple(ColumnGroup(title, tuple(cell.column for cell in cells)) for title, cells in groups),
    )


LAYOUTS: Final = {width: _layout(width) for width in OF_SUBINTERVAL}


def header_lines(width: int) -> list[str]:
    """The head of the table: the groups' titles, and the columns' below them."""
    return table.header_lines(_fitting(width)[1])


def subinterval_lines(report: Subinterval, width: int) -> list[str]:
    """The figures, and what is wrong."""
    return [_figures_line(report, width), *message_lines(_wrong(report, width))]


def detailed_lines(report: Subinterval, width: int, so_far: MeasuredSoFar | None = None) -> list[str]:
    """The figures, then of reads and writes where there are both, what the step has measured so far, what is wrong, and
    control's messages."""
    each = (_line_below(f"  {direction}", _of(report.figures, direction), width) for direction in _directions(report))
    measured = [] if so_far is None else so_far_lines(so_far, width)
    words = message_lines((*_wrong(report, width), *report.messages))
    return [_figures_line(report, width), *each, *measured, *words]


def so_far_lines(so_far: MeasuredSoFar, width: int) -> list[str]:
    """The figures, of which level they are, and which of them are not to be used as it stands."""
    row = so_far.row
    level = row.name.removeprefix(so_far.step).removeprefix(":")
    bad = [scope.figures for scope in Scope if row.verdict_of(scope) is Verdict.INVALID]
    words = [f"so far is of {level}"] * bool(level) + [f"so far: do not use its {', '.join(bad)}"] * bool(bad)
    return [_line_below("so far", row.figures, width), *message_lines(words)]


def last_lines(report: Subinterval, so_far: MeasuredSoFar | None, width: int) -> list[str]:
    """The last subinterval in detail below its header, and the worst instance."""
    worst = [] if report.worst is None else message_lines([worst_words(report.worst)])
    return [*header_lines(width), *detailed_lines(report, width, so_far), *worst]


def _figures_line(report: Subinterval, width: int) -> str:
    cells, groups = _fitting(width)
    return table.row_line(groups, [cell.text(report) for cell in cells])


def _wrong(report: Subinterval, width: int) -> list[str]:
    """Missing hosts and errors, where they have no column."""
    cells, _ = _fitting(width)
    wrong = []
    if report.hosts_in < report.hosts_of and _HOSTS not in cells:
        wrong.append(f"{report.hosts_in} of {report.hosts_of} hosts")
    if (errors := _errors(report)) and _ERRORS not in cells:
        wrong.append(f"{errors:,.0f} errors")
    return wrong


def worst_words(worst: WorstInstance) -> str:
    """`worst: host=lab03, service p99 12.3 ms (median of 8: 1.20 ms)`."""
    if not worst.metric:
        return f"worst: {worst.name}, no I/O completed"
    figure, median = scaled_time(worst.figure), scaled_time(worst.median)
    return f"worst: {worst.name}, {full_title(worst.metric)} {figure} (median of {worst.compared}: {median})"


def _line_below(title: str, figures: Figures, width: int) -> str:
    cells, groups = _fitting(width)
    return table.row_line(groups, [cell.below(figures, title) for cell in cells])


def message_lines(messages: Iterable[str]) -> list[str]:
    """Below a row of the table."""
    return [f"{'':9}{words}" for words in messages]


def _of(figures: Figures, direction: str) -> Figures:
    """Those of reads, or of writes, by the names that they have of all I/Os."""
    return known_figures(SUBINTERVAL_METRICS, lambda name: figures.get(of_direction(name, direction)))


def _directions(report: Subinterval) -> Sequence[str]:
    """Reads and writes, where the subinterval had both."""
    both = all(report.figures.get(f"{direction}_iops") for direction in DIRECTIONS)
    return DIRECTIONS if both else ()


def _fitting(width: int) -> tuple[tuple[_Cell, ...], tuple[ColumnGroup, ...]]:
    return LAYOUTS[max((least for least in LAYOUTS if least <= width), default=NARROWEST)]
