"""The rollup instances of one type as a table, the worst first, for `status --by` and `attach --by`.

Rule: pure. What is worst is the choice of the reader: the highest p99 (of response times where there are any), or the
lowest IOPS.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from ..rollup.metrics import METRICS, Quantity
from ..summary.headline import IOPS, NARROWEST, OF_INSTANCE, fitting, names_of, text_of, title_of
from ..text.scaled import WIDEST
from ..text.table import ColumnGroup, TextColumn, header_lines, row_line
from ..text.wrapping import shortened
from .reports import InstanceRow, Instances

SPARKS: Final = "▁▂▃▄▅▆▇█"
_WIDTH: Final = WIDEST + 1  # of a figure
LEAST_NAME: Final = 12
_P99, _MAX = names_of(Quantity.SERVICE, "p99", "max")
_RESPONSE_P99, _RESPONSE_MAX = names_of(Quantity.RESPONSE, "p99", "max")


class Order(StrEnum):
    """By what instances are sorted, and what their sparkline shows."""

    P99 = "p99"  # highest first
    MAX = "max"  # highest first
    IOPS = "iops"  # lowest first
    NAME = "name"

    def figure(self, row: InstanceRow) -> float | None:
        """The figure that the order is by; the sparkline of NAME shows IOPS."""
        match self:
            case Order.P99:
                return row.figures.get(_RESPONSE_P99 if _RESPONSE_MAX in row.figures else _P99)
            case Order.MAX:
                return row.figures.get(_MAX)
        return row.figures.get(IOPS)


def worst_first(rows: Sequence[InstanceRow], order: Order) -> list[InstanceRow]:
    """Sorted; where nothing was done is first. Too few I/Os for a percentile: by the maximum. Equal ones keep their
    order."""
    if order is Order.NAME:
        return sorted(rows, key=lambda row: row.name)
    sign = 1 if order is Order.IOPS else -1

    def rank(row: InstanceRow) -> tuple[bool, float]:
        figure = order.figure(row)
        if figure is None and row.figures.get(IOPS):
            figure = Order.MAX.figure(row)
        return figure is not None, 0.0 if figure is None else sign * figure

    return sorted(rows, key=rank)


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
    longest = max((len(row.name) for row in report.rows), default=0)
    width = max(width, NARROWEST)
    metrics = fitting(OF_INSTANCE, width)
    room = width - (_WIDTH + 1) * len(metrics)
    name = min(max(longest, len(report.by), LEAST_NAME), room)
    spark = max(room - name - 2, 0) if history is not None else 0
    columns = [TextColumn(report.by, -name), *(TextColumn(_title(metric), _WIDTH) for metric in metrics)]
    columns += [TextColumn(f" {order}" if spark >= len(order) else "", -(spark + 1))] if spark else []
    groups = [ColumnGroup("", tuple(columns))]
    lines = header_lines(groups)
    for row in worst_first(report.rows, order)[:most]:
        cells = [shortened(row.name, name), *(text_of(metric, row.figures) for metric in metrics)]
        before = sparkline(history.get(row.name, ())[-spark:]) if history is not None and spark else ""
        lines.append(row_line(groups, [*cells, *([f" {before}"] if spark else [])]))
    return lines


def _title(metric: str) -> str:
    return f"{'resp ' * (METRICS[metric].quantity is Quantity.RESPONSE)}{title_of(metric)}"
