"""The interval's length: fixed, or the shortest at which a percentile is known well enough.

For `auto:10%:p95` the relative error of a percentile of n samples is half the width of its 95 % confidence interval
over its value. That interval is distribution-free: it runs between the order statistics

    n p - z sqrt(n p (1 - p))   and   n p + z sqrt(n p (1 - p)),    z = 1.96

and is unbounded where the upper rank exceeds n. A length serves if the error is small enough in nine tenths of the
intervals that hold anything. Lengths tried are 1, 2, 3, 5, 10, 15, 20, 30 ... times the logs' own period.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...stats.percentiles import interpolated
from ...text.units import format_duration, parse_duration, parse_fraction
from ..readers.records import NS_PER_S, Floats
from .series import Histograms

_Z: Final = 1.959963984540054  # of 95 %
_ENOUGH: Final = 0.9  # of the intervals
_LEADING: Final = (1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 180, 300, 600, 900, 1200, 1800, 3600)
SHORTEST_NS: Final = NS_PER_S // 1000


@dataclass(frozen=True, slots=True)
class Auto:
    """`--interval auto:ERROR:pN`."""

    error: float  # relative
    percentile: float  # percent


@dataclass(frozen=True, slots=True)
class Chosen:
    length_ns: int
    error: float  # that nine tenths of the intervals keep; infinite where no length was enough

    def sentence(self, auto: Auto) -> str:
        name = f"p{auto.percentile:g}"
        if self.error <= auto.error:
            return (
                f"interval {format_duration(self.length_ns / NS_PER_S)}: the shortest at which {name} is known to "
                f"{auto.error:.3g} ({self.error:.3g} in nine tenths of the intervals)"
            )
        return (
            f"interval {format_duration(self.length_ns / NS_PER_S)}: the longest that was tried; {name} is known to no "
            f"better than {self.error:.3g}, where {auto.error:.3g} was asked for"
        )


def parse_interval(text: str) -> int | Auto:
    """ "10s", "250ms": ns. "auto:10%" or "auto:10%:p99": to be chosen. ValueError names what is wrong."""
    if not text.startswith("auto"):
        length_ns = round(parse_duration(text) * NS_PER_S)
        if length_ns < SHORTEST_NS:
            raise ValueError(f"{text!r} is too short: stamps in logs are milliseconds, so at least 1ms")
        return length_ns
    parts = text.split(":")
    if parts[0] != "auto" or len(parts) > 3:
        raise ValueError(f"{text!r} is no interval; write for example 10s, auto:10% or auto:5%:p99")
    error = parse_fraction(parts[1]) if len(parts) > 1 else 0.1
    percentile = parse_percentile(parts[2]) if len(parts) > 2 else 95.0
    if not 0 < error < 1 or not 0 < percentile < 100:
        raise ValueError(f"{text!r}: the error is between 0% and 100%, the percentile between p0 and p100")
    return Auto(error, percentile)


def parse_percentile(text: str) -> float:
    """ "p99.9" or "99.9": percent."""
    try:
        percentile = float(text.strip().removeprefix("p"))
    except ValueError:
        percentile = math.nan
    if not 0 <= percentile <= 100:
        raise ValueError(f"{text!r} is no percentile; write a number from 0 to 100, for example 99.9")
    return percentile


def parse_percentiles(text: str) -> tuple[float, ...]:
    """ "50,95,99,99.9": ascending, each once, so that no column can be taken for another."""
    return tuple(sorted({parse_percentile(part) for part in text.split(",")}))


def choose(histograms: Histograms, base_ns: int, auto: Auto) -> Chosen:
    """The shortest multiple of `base_ns`, whose quanta `histograms` holds, that keeps the error."""
    chosen = Chosen(base_ns, math.inf)
    for multiple in _multiples(int(histograms.quanta[-1] - histograms.quanta[0]) + 1):
        error = relative_error(_coarser(histograms, multiple), histograms.edges.astype(np.float64), auto.percentile)
        chosen = Chosen(base_ns * multiple, error)
        if error <= auto.error:
            break
    return chosen


def _multiples(quanta: int) -> Iterator[int]:
    """Down to two intervals in the whole span: of one alone, nothing is seen over time."""
    yield 1
    yield from (multiple for multiple in _LEADING[1:] if multiple * 2 <= quanta)


def _coarser(histograms: Histograms, multiple: int) -> Floats:
    _, first = np.unique(histograms.quanta // multiple, return_index=True)
    return np.add.reduceat(histograms.cells, first, axis=0)


def relative_error(cells: Floats, edges: Floats, percentile: float) -> float:
    """The relative error that nine tenths of the histograms `cells` (n, buckets) keep."""
    errors = [_error(row, edges, percentile / 100) for row in cells if row.any()]
    return float(np.quantile(errors, _ENOUGH, method="higher")) if errors else math.inf


def _error(row: Floats, edges: Floats, p: float) -> float:
    n = row.sum()
    reach = _Z * math.sqrt(n * p * (1 - p))
    if n * p + reach >= n or n * p - reach <= 0:
        return math.inf
    upto = np.append(np.cumsum(row), n)[None]
    low, value, high = (interpolated(upto, p + off / n, edges)[0] for off in (-reach, 0.0, reach))
    return float((high - low) / 2 / value) if value else math.inf
