"""From two gathers of one element type to what its metrics are between them.

Rule: a metric over some elements and some time is a ratio of sums, `amounts` / `pers`, and never a mean of ratios:

    gauge                value          / 1
    counter              scale x rise   / seconds between its two readings, by the connector's own stamps
    counter with `per`   scale x rise   / rise of that other counter

A counter that fell has wrapped, if it says at how many bits it does and the rise is less than half of its range; else
it was reset, and there is no value: nobody knows what it counted meanwhile.
"""

from dataclasses import dataclass

import numpy as np

from ...protocol.connector import ReadingKind
from ..rollup.arrays import Floats
from .catalog import ElementTable


@dataclass(frozen=True, slots=True, eq=False)
class Ratios:
    """The metrics of an element type's instances: (instances, metrics) each; per is 0 where there is no value."""

    amounts: Floats
    pers: Floats
    resets: int = 0  # counters that fell
    wraps: int = 0

    @property
    def values(self) -> Floats:
        """(instances, metrics), nan where there is no value."""
        found = np.full(self.amounts.shape, np.nan)
        np.divide(self.amounts, self.pers, out=found, where=self.pers > 0)
        return found


def ratios(table: ElementTable, before: Floats | None, now: Floats, seconds: float) -> Ratios:
    """The metrics between two gathers, `seconds` apart; `before`: None where there is no earlier one to count from."""
    amounts, pers = np.zeros(now.shape), np.zeros(now.shape)
    gauges = table.places(ReadingKind.GAUGE)
    read = ~np.isnan(now[:, gauges])
    amounts[:, gauges] = np.where(read, now[:, gauges], 0.0)
    pers[:, gauges] = read
    counters = table.places(ReadingKind.COUNTER)
    if before is None or not counters or seconds <= 0:
        return Ratios(amounts, pers)
    rises, resets, wraps = _rises(table, _grown(before, len(now)), now)
    for place in counters:
        metric, rise = table.metrics[place], rises[:, place]
        below = rises[:, table.columns[metric.per]] if metric.per else np.full(len(now), seconds)
        known = ~np.isnan(rise) & ~np.isnan(below)
        amounts[:, place] = np.where(known, rise * metric.scale, 0.0)
        pers[:, place] = np.where(known, below, 0.0)
    return Ratios(amounts, pers, resets, wraps)


def _rises(table: ElementTable, before: Floats, now: Floats) -> tuple[Floats, int, int]:
    """(by how much each counter rose, nan where that is not known; how many were reset; how many wrapped)"""
    rises = now - before
    fell = rises < 0
    if not fell.any():
        return rises, 0, 0
    spans = np.array([2.0**metric.bits if metric.bits else np.nan for metric in table.metrics])
    spans[table.places(ReadingKind.GAUGE)] = np.nan
    fell[:, table.places(ReadingKind.GAUGE)] = False
    wrapped = fell & (rises + spans < spans / 2)
    rises = np.where(wrapped, rises + spans, np.where(fell, np.nan, rises))
    return rises, int(np.count_nonzero(fell & ~wrapped)), int(np.count_nonzero(wrapped))


def _grown(values: Floats, rows: int) -> Floats:
    """With rows for the instances that came later, which had no reading then."""
    return np.vstack([values, np.full((rows - len(values), values.shape[1]), np.nan)])
