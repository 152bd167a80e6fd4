"""A subinterval as lines of text: the figures in columns; of all details, also reads and writes below them.

Rule: the width chooses which columns there are, never how wide one is. Errors and missing hosts get a line of their own
where they have no column.

    60        UTC phase IOPS | service p50 p99 | response p99
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
    WIDE,
    grouped,
    of_direction,
    text_of,
    title_of,
)
from ..text import table
from ..text.scaled import BLANK, WIDEST, scaled_count
from ..text.table import ColumnGroup, TextColumn
from .reports import Subinterval


@dataclass(frozen=True, slots=True)
class _Cell:
    """A column of a subinterval, and its text in a row of the whole, and in one of reads or writes."""

    column: TextColumn
    text: Callable[[Subinterval], str]
    of_direction: Callable[[Subinterval, str], str] = lambda report, direction: ""


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
        lambda report, direction: text_of(of_direction(name, direction), report.figures),
    )


_TIME: Final = (
    _Cell(TextColumn("UTC", 8), lambda report: report.utc[11:19]),
    _Cell(TextColumn("phase", -9), lambda report: report.phase, lambda report, direction: f"  {direction}"),
)
_NUMBER: Final = _Cell(TextColumn("#", 6), lambda report: str(report.number))  # 11 days of 1 s
_TARGET: Final = _Cell(TextColumn("target", WIDEST), _target)
_HOSTS: Final = _Cell(TextColumn("hosts", 9), lambda report: f"{report.hosts_in}/{report.hosts_of}")
_CPU: Final = _Cell(TextColumn("CPU%", 7), _cpu)
_ERRORS: Final = _Cell(TextColumn("errors", 6), lambda report: scaled_count(_errors(report)))
_BESIDE: Final[dict[int, tuple[tuple[_Cell, ...], tuple[_Cell, ...]]]] = {  # before the metrics, and after them
    NARROWEST: (_TIME, ()),
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
    cells, groups = _fitting(width)
    wrong = []
    if report.hosts_in < report.hosts_of and _HOSTS not in cells:
        wrong.append(f"{report.hosts_in} of {report.hosts_of} hosts")
    if (errors := _errors(report)) and _ERRORS not in cells:
        wrong.append(f"{errors:,.0f} errors")
    return [table.row_line(groups, [cell.text(report) for cell in cells]), *message_lines(wrong)]


def detailed_lines(report: Subinterval, width: int) -> list[str]:
    """The figures, then of reads and writes where there are both, what is wrong, and control's messages."""
    figures, *wrong = subinterval_lines(report, width)
    cells, groups = _fitting(width)
    each = (
        table.row_line(groups, [cell.of_direction(report, direction) for cell in cells])
        for direction in _directions(report)
    )
    return [figures, *each, *wrong, *message_lines(report.messages)]


def message_lines(messages: Iterable[str]) -> list[str]:
    """Below a row of the table."""
    return [f"{'':9}{words}" for words in messages]


def _directions(report: Subinterval) -> Sequence[str]:
    """Reads and writes, where the subinterval had both."""
    both = all(report.figures.get(f"{direction}_iops") for direction in DIRECTIONS)
    return DIRECTIONS if both else ()


def _fitting(width: int) -> tuple[tuple[_Cell, ...], tuple[ColumnGroup, ...]]:
    return LAYOUTS[max((least for least in LAYOUTS if least <= width), default=NARROWEST)]
