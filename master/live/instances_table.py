"""The rollup instances of one type as a table, the worst first, for `status --by` and `attach --by`.

Rule: pure. What is worst is the choice of the reader: the highest p99 (of response times where there are any), or the
lowest IOPS.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final

from ..text.scaled import WIDEST, scaled_count, scaled_time
from .reports import Instances, Slice
from .subinterval_lines import NARROW

SPARKS: Final = "▁▂▃▄▅▆▇█"
_FIGURES: Final[tuple[tuple[str, Callable[[Slice], str]], ...]] = (
    ("IOPS", lambda one: scaled_count(one.iops)),
    ("MiB/s", lambda one: scaled_count(one.mib_per_s)),
    ("p50", lambda one: scaled_time(one.service.p50_us)),
    ("p99", lambda one: scaled_time(one.service.p99_us)),
    ("max", lambda one: scaled_time(one.service.max_us)),
    ("resp p99", lambda one: scaled_time(one.response.p99_us)),
)
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
        latency = one.service if one.response.max_us is None else one.response
        match self:
            case Order.P99:
                return latency.p99_us
            case Order.MAX:
                return latency.max_us
        return one.iops


def worst_first(slices: Sequence[Slice], order: Order) -> list[Slice]:
    """Sorted; who has no figure is first, since nothing was done there. Equal ones keep their order."""
    if order is Order.NAME:
        return sorted(slices, key=lambda one: one.name)
    sign = 1 if order is Order.IOPS else -1

    def rank(one: Slice) -> tuple[bool, float]:
        figure = order.figure(one)
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
    figures = (_WIDTH + 1) * len(_FIGURES)
    room = max(width, NARROW) - figures
    name = min(max(longest, len(report.by), LEAST_NAME), room)
    spark = max(room - name - 2, 0) if history is not None else 0
    titles = "".join(f" {title:>{_WIDTH}}" for title, _ in _FIGURES)
    lines = [f"{report.by:{name}}{titles}{f'  {order}' if spark >= len(order) else ''}"]
    for one in worst_first(report.slices, order)[:most]:
        cells = "".join(f" {text(one):>{_WIDTH}}" for _, text in _FIGURES)
        before = sparkline(history.get(one.name, ())[-spark:]) if history is not None and spark else ""
        lines.append(f"{shortened(one.name, name):{name}}{cells}  {before}".rstrip())
    return lines


def shortened(name: str, width: int) -> str:
    """A name without its middle where it is too long: its end distinguishes it from its neighbours."""
    if len(name) <= width:
        return name
    end = (width - 1) // 2
    return f"{name[: width - 1 - end]}~{name[-end:]}"
