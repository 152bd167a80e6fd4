"""A subinterval as lines of text: the figures in columns, reads and writes below them, then control's messages.

Rule: the width chooses which columns there are, never how wide one is, so figures stay below each other for hours.
Errors and missing hosts get a line of their own where they have no column.

    60        UTC phase IOPS | service p50 p99 | response p99
    80                  + # MiB/s         + max
    120                 + target                  + p50 max | CPU%
    160                              + p99.9        + p99.9 | hosts CPU% errors
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ..text.scaled import WIDEST, scaled_count, scaled_time
from .reports import Latency, Slice, Subinterval

NARROWEST: Final = 60  # columns of a terminal; below, lines are as for this
NARROW: Final = 80
MIDDLE: Final = 120
WIDE: Final = 160


@dataclass(frozen=True, slots=True)
class Column:
    title: str
    width: int
    text: Callable[[Subinterval], str]
    of_slice: Callable[[Slice], str] = lambda part: ""  # for reads, and for writes


@dataclass(frozen=True, slots=True)
class Group:
    title: str
    columns: tuple[Column, ...]


def _target(report: Subinterval) -> str:
    return report.target_iops if isinstance(report.target_iops, str) else scaled_count(report.target_iops)


def _cpu(report: Subinterval) -> str:
    return "-" if report.busy_percent is None else f"{report.busy_percent:.0f}/{report.busiest_percent or 0:.0f}"


def _latencies(title: str, of: Callable[[Subinterval | Slice], Latency], names: Sequence[str]) -> Group:
    """`names`: fields of Latency without their unit."""

    def column(name: str) -> Column:
        def text(row: Subinterval | Slice) -> str:
            us: float | None = getattr(of(row), f"{name}_us")
            return scaled_time(us)

        return Column(name.replace("_", "."), WIDEST, text, text)

    return Group(title, tuple(map(column, names)))


_TIME: Final = (
    Column("UTC", 8, lambda report: report.utc[11:19]),
    Column("phase", -9, lambda report: report.phase, lambda part: f"  {part.name}"),
)
_WHEN: Final = Group("", (*_TIME, Column("#", 6, lambda report: str(report.number))))  # 11 days of 1 s
_TARGET: Final = Column("target", WIDEST, _target)
_IOPS: Final = Column("IOPS", WIDEST, lambda row: scaled_count(row.iops), lambda row: scaled_count(row.iops))
_MIB: Final = Column("MiB/s", WIDEST, lambda row: scaled_count(row.mib_per_s), lambda row: scaled_count(row.mib_per_s))
_HOSTS: Final = Column("hosts", 9, lambda report: f"{report.hosts_in}/{report.hosts_of}")
_CPU: Final = Column("CPU%", 7, _cpu)
_ERRORS: Final = Column("errors", 6, lambda report: scaled_count(float(report.errors)))


def _service(*names: str) -> Group:
    return _latencies("service", lambda row: row.service, names)


def _response(*names: str) -> Group:
    return _latencies("response", lambda row: row.response, names)


LAYOUTS: Final[dict[int, tuple[Group, ...]]] = {
    NARROWEST: (Group("", _TIME), Group("", (_IOPS,)), _service("p50", "p99"), _response("p99")),
    NARROW: (_WHEN, Group("", (_IOPS, _MIB)), _service("p50", "p99", "max"), _response("p99")),
    MIDDLE: (
        _WHEN,
        Group("", (_TARGET, _IOPS, _MIB)),
        _service("p50", "p99", "max"),
        _response("p50", "p99", "max"),
        Group("", (_CPU,)),
    ),
    WIDE: (
        _WHEN,
        Group("", (_TARGET, _IOPS, _MIB)),
        _service("p50", "p99", "p99_9", "max"),
        _response("p50", "p99", "p99_9", "max"),
        Group("", (_HOSTS, _CPU, _ERRORS)),
    ),
}


def header_lines(width: int) -> list[str]:
    """What the columns are: the groups' titles, and the columns' below them."""
    titles = [group.title.ljust(_width_of(group)) for group in _layout(width)]
    return [_joined(titles), _row(width, lambda column: column.title)]


def subinterval_lines(report: Subinterval, width: int, with_messages: bool = True) -> list[str]:
    """The figures, then of reads and writes where there are both, what is wrong, and control's messages if wanted."""
    lines = [_row(width, lambda column: column.text(report))]
    for part in report.directions:
        lines.append(_row(width, lambda column, part=part: column.of_slice(part)))  # type: ignore[misc]
    said = list(report.messages) if with_messages else []
    columns = [column for group in _layout(width) for column in group.columns]
    if report.errors and _ERRORS not in columns:
        said.insert(0, f"{report.errors:,} errors")
    if report.hosts_in < report.hosts_of and _HOSTS not in columns:
        said.insert(0, f"{report.hosts_in} of {report.hosts_of} hosts")
    return lines + [f"{'':9}{words}" for words in said]


def _layout(width: int) -> tuple[Group, ...]:
    return LAYOUTS[max((least for least in LAYOUTS if least <= width), default=NARROWEST)]


def _row(width: int, text: Callable[[Column], str]) -> str:
    return _joined([" ".join(_cell(column, text(column)) for column in group.columns) for group in _layout(width)])


def _cell(column: Column, text: str) -> str:
    return text.ljust(-column.width) if column.width < 0 else text.rjust(column.width)


def _width_of(group: Group) -> int:
    return sum(abs(column.width) + 1 for column in group.columns) - 1


def _joined(groups: Sequence[str]) -> str:
    """The first two are one: when, and how much."""
    when, *rest = groups
    return f"{when} {' | '.join(rest)}".rstrip(" |")
