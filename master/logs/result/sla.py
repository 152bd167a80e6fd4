"""Thresholds for percentiles over time: `--sla p95<=20ms,p99.9<=200ms`.

Rule: an interval breaches a threshold if its percentile is above the limit. One without I/O, or with too few for the
percentile, does not, and is counted apart: in a stall no I/O completes, so no completed I/O is too slow. If the
percentile is only a lower bound, it always counts as a breach: a threshold must be shown to be met. What a run's own
verdict speaks against is not checked, and then nothing is shown: the exit code says so (8) unless another interval
breaches the threshold.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ...text.units import parse_duration
from .table import LogResult, Percentile, Row, latency_text, percentile_name, rows

_THRESHOLD: Final = re.compile(r"\s*p(\d+(?:\.\d+)?)\s*(<=|<)\s*(\S+)\s*")


@dataclass(frozen=True, slots=True)
class Threshold:
    percentile: float
    limit_us: float
    strict: bool  # "<" rather than "<="
    text: str  # as it was given

    def __str__(self) -> str:
        return self.text

    def is_known(self, row: Row) -> bool:
        return self._of(row).us is not None

    def is_met(self, row: Row) -> bool:
        """Whether a row that has the percentile meets the threshold."""
        if self.is_lower_bound(row):
            return False
        value = self.value(row)
        return value < self.limit_us if self.strict else value <= self.limit_us

    def is_lower_bound(self, row: Row) -> bool:
        return self._of(row).at_least

    def value(self, row: Row) -> float:
        return self._of(row).us or 0.0

    def _of(self, row: Row) -> Percentile:
        return next(p for p in row.percentiles if p.name == percentile_name(self.percentile))


def parse_sla(text: str) -> tuple[Threshold, ...]:
    """ValueError names what is wrong."""
    thresholds = []
    for part in text.split(","):
        match = _THRESHOLD.fullmatch(part)
        if match is None or not 0 <= float(match[1]) <= 100:
            raise ValueError(f"{part!r} is not a threshold; write for example p95<=20ms")
        thresholds.append(Threshold(float(match[1]), parse_duration(match[3]) * 1e6, match[2] == "<", part.strip()))
    return tuple(thresholds)


@dataclass(frozen=True, slots=True)
class SlaOutcome:
    threshold: Threshold
    instance: str
    intervals: int  # that have the percentile
    empty: int
    blank: int  # that the run's own rows leave blank
    insufficient: int  # that hold I/Os, but too few for the percentile
    discredited: int  # that a run's own verdict speaks against
    broken: tuple[Row, ...]

    def sentence(self) -> str:
        idle = f"; {self.empty} intervals without I/O are not checked" if self.empty else ""
        if self.blank:
            idle += f"; {self.blank} intervals are blank in the run's own rows and not checked"
        if self.insufficient:
            idle += f"; {self.insufficient} intervals with insufficient samples are not checked"
        if self.discredited:
            idle += f"; {self.discredited} intervals are invalid by the verdict of their step and not checked"
        if not self.intervals:
            return f"sla {self.threshold} {self.instance}: checked in no interval{idle}"
        if not self.broken:
            return f"sla {self.threshold} {self.instance}: met in all {self.intervals} intervals{idle}"
        worst = max(self.broken, key=self.threshold.value)
        value = latency_text(
            self.threshold.value(worst), self.threshold.is_lower_bound(worst), limit_us=self.threshold.limit_us
        )
        share = len(self.broken) / self.intervals
        return (
            f"sla {self.threshold} {self.instance}: BREACHED in {len(self.broken)} of {self.intervals} intervals "
            f"({share:.1%} of the time), first at {self.broken[0].start_s:g} s, last at {self.broken[-1].start_s:g} s, "
            f"worst {value} at {worst.start_s:g} s{idle}"
        )


def check_thresholds(result: LogResult, thresholds: Iterable[Threshold]) -> list[SlaOutcome]:
    outcomes = []
    for threshold in thresholds:
        for series in result.series:
            if series.instance.averaged:
                continue
            own = [row for row in rows(result, series) if row.interval is not None]
            known = [row for row in own if threshold.is_known(row)]
            held = [row for row in known if not row.is_discredited]
            empty = sum(not row.count for row in own)
            blank = sum(row.is_blank for row in own)
            broken = tuple(row for row in held if not threshold.is_met(row))
            name = f"{series.instance} ({series.instance.quantity_name})"
            insufficient = len(own) - len(known) - empty - blank
            discredited = len(known) - len(held)
            outcomes.append(SlaOutcome(threshold, name, len(held), empty, blank, insufficient, discredited, broken))
    return outcomes
