"""From two gathers of a connector to what its metrics are between them.

Rule: a metric over some elements and some time is a ratio of sums, `amounts` / `pers`, and never a mean of ratios:

    gauge                value          / 1
    counter              scale x rise   / seconds between its two readings, by the connector's own stamps
    counter with `per`   scale x rise   / rise of that other counter

A counter that fell has wrapped, if it says at how many bits it does and the rise is less than half of its range; else
it was reset, and there is no value: nobody knows what it counted meanwhile. What has no value because it is not known
(a reset, a reading that only one of the two gathers has) is told apart from what an element does not have.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..rollup.arrays import Floats
from .catalog import CellLayout, Values

Places = NDArray[np.intp]
NO_PLACES: Final[Places] = np.zeros(0, np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class Ratios:
    """The metrics of an element type's instances: (instances, metrics) each; per is 0 where there is no value."""

    amounts: Floats
    pers: Floats
    unknown: NDArray[np.bool_]  # there is no value, and should be one

    @property
    def values(self) -> Floats:
        """(instances, metrics), nan where there is no value."""
        found = np.full(self.amounts.shape, np.nan)
        np.divide(self.amounts, self.pers, out=found, where=self.pers > 0)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """The metrics of all elements of a connector, by element type; and the cells of counters that fell."""

    tables: Mapping[str, Ratios]
    resets: Places = field(default_factory=lambda: NO_PLACES)
    wraps: Places = field(default_factory=lambda: NO_PLACES)


def rates(before: Values | None, now: Values, seconds: float | Mapping[str, float] | Floats) -> Rates:
    """The metrics between two gathers; `before`: None where there is no earlier one to count from.

    `seconds`: between the two, or by element type where these have stamps of their own, or by cell; 0: nothing was
    counted anew.
    """
    layout, is_read = now.layout, ~np.isnan(now.cells)
    gauges = is_read & ~layout.is_counter
    amounts, pers = np.where(gauges, now.cells, 0.0), gauges.astype(np.float64)
    if before is None:
        return Rates(_tables(layout, amounts, pers, layout.is_counter & is_read))
    earlier = before.in_layout(layout).cells
    was_read = ~np.isnan(earlier)
    rises, resets, wraps = _rises(layout, earlier, now.cells)
    time = _time(layout, seconds)
    below = np.where(layout.per >= 0, rises[layout.per], time) if len(rises) else rises
    known = layout.is_counter & ~np.isnan(rises) & ~np.isnan(below) & (time > 0)
    amounts, pers = np.where(known, rises * layout.scale, amounts), np.where(known, below, pers)
    unknown = (was_read & ~is_read) | (layout.is_counter & is_read & ~known)
    return Rates(_tables(layout, amounts, pers, unknown), resets, wraps)


def _rises(layout: CellLayout, before: Floats, now: Floats) -> tuple[Floats, Places, Places]:
    """(by how much each counter rose, nan where that is not known; those that were reset; those that wrapped)"""
    rises = now - before
    fell: NDArray[np.bool_] = (rises < 0) & layout.is_counter
    if not fell.any():
        return rises, NO_PLACES, NO_PLACES
    wrapped = fell & (rises + layout.span < layout.span / 2)
    rises = np.where(wrapped, rises + layout.span, np.where(fell, np.nan, rises))
    return rises, np.flatnonzero(fell & ~wrapped), np.flatnonzero(wrapped)


def _time(layout: CellLayout, seconds: float | Mapping[str, float] | Floats) -> Floats:
    if isinstance(seconds, np.ndarray):
        return seconds
    if isinstance(seconds, float):
        return np.full(len(layout.scale), seconds)
    sizes = [rows * columns for _, rows, columns in layout.tables.values()]
    return np.repeat([seconds[name] for name in layout.tables], sizes)


def _tables(layout: CellLayout, amounts: Floats, pers: Floats, unknown: NDArray[np.bool_]) -> dict[str, Ratios]:
    return {name: Ratios(*(layout.of_table(one, name) for one in (amounts, pers, unknown))) for name in layout.tables}
