"""The rollup instances of one type as a table, the worst first, for `status --by` and `attach --by`.

Rule: pure. What is worst is the choice of the reader: the highest p99 (of response times where there are any), or the
lowest IOPS.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final

from ..text.scaled import WIDEST, scaled_count, scaled_time
from ..text.wrapping import shortened
from .reports import Instances, Slice
from .subinterval_lines import NARROW, NARROWEST

SPARKS: Final = "▁▂▃▄▅▆▇█"
_Figure = tuple[str, Callable[[Slice], str]]  # title, text
_IOPS: Final[_Figure] = "IOPS", lambda one: scaled_count(one.iops)
_MIB: Final[_Figure] = "MiB/s", lambda one: scaled_count(one.mib_per_s)
_P50: Final[_Figure] = "p50", lambda one: scaled_time(one.service.p50_us)
_P99: Final[_Figure] = "p99", lambda one: scaled_time(one.service.p99_us)
_MAX: Final[_Figure] = "max", lambda one: scaled_time(one.service.max_us)
_RESPONSE: Final[_Figure] = "resp p99", lambda one: scaled_time(one.response.p99_us)
LAYOUTS: Final[dict[int, tuple[_Figure, ...]]] = {  # by width
    NARROWEST: (_IOPS, _P99, _MAX, _RESPONSE),
    NARROW: (_IOPS, _MIB, _P50, _P99, _MAX, _RESPONSE),
}
_WIDTH: Final = WIDEST + 1  # of a figure
LEAST_NAME: Final = 12


class Order(StrEnum):
    """By what instances are sorted, and what their sparkline shows."""

    P99 = "p99"  # highest first
    MAX = "max"  # highest first
    IOPS = "iops"  # lowest first
    NAME = "name"

    def figure(self, one: Slice) -> float | None:
        """What the order is by; the sparkline of NAME shows IOPS."""
        match self:
            case Order.P99:
                return (one.service if one.response.max_us is None else one.response).p99_us
            case Order.MAX:
                return one.service.max_us
        return one.iops


def worst_first(slices: Sequence[Slice], order: Order) -> list[Slice]:
    """Sorted; where nothing was done is first. Too few I/Os for a percentile: by the maximum. Equal ones keep their
    order."""
    if order is Order.NAME:
        return sorted(slices, key=lambda one: one.name)
    sign = 1 if order is Order.IOPS else -1

    def rank(one: Slice) -> tuple[bool, float]:
        figure = order.figure(one)
        if figure is None and one.iops:
            figure = Order.MAX.figure(one)
        return figure is not None, 0.0 if figure is None else sign * figure

    return sorted(slices, key=rank)


def sparkline(values: Sequence[float | None]) -> str:
    """One character a value, from 0 to the highest of them; a blank where there is none."""
    top = max((value for value in values if value is not None), default=0.0)
    return "".join(
        " " if value is None else SPARKS[min(int(value / top * len(SPARKS)), len(SPARKS) - 1) if top > 0 else 0]
        for value in values
    )


def instances_lines(
    report: Instances,
    width: int,
    order: Order = Order.P99,
    history: Mapping[str, Sequence[float | None]] | None = None,
    most: int | None = None,
) -> list[str]:
    """A header, and a line for each instance: at most `most` of them. `history`: figures of `order`, by name."""
    longest = max((len(one.name) for one in report.slices), default=0)
    width = max(width, NARROWEST)
    layout = LAYOUTS[max(least for least in LAYOUTS if least <= width)]
    room = width - (_WIDTH + 1) * len(layout)
    name = min(max(longest, len(report.by), LEAST_NAME), room)
    spark = max(room - name - 2, 0) if history is not None else 0
    titles = "".join(f" {title:>{_WIDTH}}" for title, _ in layout)
    lines = [f"{report.by:{name}}{titles}{f'  {order}' if spark >= len(order) else ''}"]
    for one in worst_first(report.slices, order)[:most]:
        cells = "".join(f" {text(one):>{_WIDTH}}" for _, text in layout)
        before = sparkline(history.get(one.name, ())[-spark:]) if history is not None and spark else ""
        lines.append(f"{shortened(one.name, name):{name}}{cells}  {before}".rstrip())
    return lines
