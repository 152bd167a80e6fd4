"""Figures of all rows at once, computed from merged arrays: latencies of a category, percentiles, rates.

Rule: a figure is an array with a number per row, nan where there is none: nothing was counted, or samples are
insufficient. A category is a sum of some of the kinds of I/O, or it is the flushes, which are in no other.
Categories with the same sum, because the other kinds saw no I/O, are computed once.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...protocol.counters import DELAYED, LATE, LATENESS, PUNCTUAL, RESPONSES, SERVICES, UNDELAYED, Kind, Moment
from ..stats.percentiles import NS_PER_US, percentiles
from .arrays import FLUSHES, NO_LEAST, Buckets, Floats, Merged, difference, integers, reals, sum_of

OVERALL: Final = "overall"
FLUSH: Final = "flush"
CATEGORIES: Final[dict[str, tuple[int, ...]]] = {  # of Kind, or FLUSHES
    OVERALL: tuple(Kind),
    "random": (Kind.RANDOM_READ, Kind.RANDOM_WRITE),
    "sequential": (Kind.SEQUENTIAL_READ, Kind.SEQUENTIAL_WRITE),
    "read": (Kind.RANDOM_READ, Kind.SEQUENTIAL_READ),
    "write": (Kind.RANDOM_WRITE, Kind.SEQUENTIAL_WRITE),
    "random_read": (Kind.RANDOM_READ,),
    "random_write": (Kind.RANDOM_WRITE,),
    "sequential_read": (Kind.SEQUENTIAL_READ,),
    "sequential_write": (Kind.SEQUENTIAL_WRITE,),
    "trim": (Kind.TRIM,),
    "zeroes": (Kind.WRITE_ZEROES,),
    FLUSH: (FLUSHES,),
}
TRANSFERS: Final = (Kind.RANDOM_READ, Kind.RANDOM_WRITE, Kind.SEQUENTIAL_READ, Kind.SEQUENTIAL_WRITE)
RELEASES: Final = ("trim", "zeroes")  # categories
PERCENTILES: Final[dict[str, float]] = {  # name: fraction of the I/Os
    "p50": 0.5,
    "p90": 0.9,
    "p95": 0.95,
    "p99": 0.99,
    "p99_9": 0.999,
    "p99_99": 0.9999,
}


class LatencyFigures:
    """The distribution of one sum of series, for all rows; times in microseconds."""

    def __init__(self, merged: Merged, series: Sequence[int]) -> None:
        self._rows = len(merged.counts)
        self._limbs = merged.moments.limbs[:, list(series)].sum(axis=1, dtype=np.uint64)
        self.least_ns = merged.moments.least[:, list(series)].min(axis=1, initial=NO_LEAST)
        self.most_ns = merged.moments.most[:, list(series)].max(axis=1, initial=0)
        self._parts = [merged.buckets[one] for one in series]

    @cached_property
    def count(self) -> Floats:
        """Samples; exact up to 2**53."""
        return reals(self._limbs, Moment.COUNT)

    @cached_property
    def mean(self) -> Floats:
        blank = np.full(self._rows, np.nan)
        found: Floats = np.divide(self.total_ns, self.count * NS_PER_US, out=blank, where=self.count > 0)
        return found

    @cached_property
    def total_ns(self) -> Floats:
        """The sum of all samples; exact up to 2**53."""
        return reals(self._limbs, Moment.SUM)

    @cached_property
    def sd(self) -> Floats:
        """Sample standard deviation. In whole numbers: n x sum of squares - square of the sum loses no digit."""
        deviations = np.full(self._rows, np.nan)
        some = np.flatnonzero(self.count > 1)
        n, total, squares = (
            integers(self._limbs[some], moment) for moment in (Moment.COUNT, Moment.SUM, Moment.SQUARES_LOW)
        )
        variance = ((n * squares - total * total) / (n * (n - 1))).astype(np.float64)
        deviations[some] = np.sqrt(variance, out=np.full(len(some), np.nan), where=variance >= 0) / NS_PER_US
        return deviations

    @cached_property
    def min(self) -> Floats:
        return np.where(self.count > 0, self.least_ns / NS_PER_US, np.nan)

    @cached_property
    def max(self) -> Floats:
        return np.where(self.count > 0, self.most_ns / NS_PER_US, np.nan)

    @cached_property
    def buckets(self) -> Buckets:
        return sum_of(self._parts, self._rows)

    def percentile(self, name: str) -> Floats:
        """One of PERCENTILES; nan where samples are insufficient."""
        found: Floats = self._percentiles[list(PERCENTILES).index(name)]
        return found

    @cached_property
    def _percentiles(self) -> Floats:
        """(len(PERCENTILES), R)"""
        buckets, fractions = self.buckets, list(PERCENTILES.values())
        found: Floats = percentiles(buckets.counts, buckets.low, self.least_ns, self.most_ns, fractions) / NS_PER_US
        return found


class Figures:
    """The latencies and rates of one merged subinterval or window. Computed when first read, then kept."""

    def __init__(self, merged: Merged, response: NDArray[np.bool_]) -> None:
        """`response` (R,): rows whose response times may be read; Settings.response_rows says which are shown."""
        self.merged = merged
        self._response = response
        self._has_response: dict[str, NDArray[np.bool_]] = {}  # by category
        self._kinds: dict[str, tuple[int, ...]] = {}  # by category
        self._latencies: dict[tuple[int, ...], LatencyFigures] = {}

    def shown(self, response: NDArray[np.bool_]) -> "Figures":
        """The same figures where the response times of other rows may be read; what is computed of one, both have."""
        found = Figures(self.merged, response)
        found._kinds, found._latencies = self._kinds, self._latencies
        return found

    def service(self, category: str) -> LatencyFigures:
        return self._of(tuple(SERVICES[kind] for kind in self._some_kinds(category)))

    def response(self, category: str) -> LatencyFigures:
        """Raises IndexError for flushes, which have none."""
        return self._of(tuple(RESPONSES[kind] for kind in self._some_kinds(category)))

    def lateness(self) -> LatencyFigures:
        return self._of((LATENESS,))

    def reap_delay_ns(self) -> Floats:
        """For how long completions may have waited for their thread, summed over those that are recorded."""
        return self._of((DELAYED,)).total_ns - self._of((UNDELAYED,)).total_ns

    def undelayed(self, name: str) -> Floats:
        """One of PERCENTILES of the service time, in microseconds, had no completion waited for its thread: the least
        that it may have been."""
        return self._instead(self.service(OVERALL), DELAYED, UNDELAYED, name)

    def punctual(self, name: str) -> Floats:
        """One of PERCENTILES of the response time, in microseconds, had each I/O been submitted without lateness."""
        return self._instead(self.response(OVERALL), LATE, PUNCTUAL, name)

    def _instead(self, whole: LatencyFigures, series: int, instead: int, name: str) -> Floats:
        """A percentile where the I/Os of a series had taken as long as another series says of them."""
        found, better = self._of((series,)), self._of((instead,))
        others = difference(whole.buckets, found.buckets)
        buckets = sum_of([others, better.buckets], len(self.merged.counts))
        least = np.minimum(whole.least_ns, better.least_ns)
        (value,) = percentiles(buckets.counts, buckets.low, least, whole.most_ns, [PERCENTILES[name]])
        return np.asarray(value / NS_PER_US)

    def has_response(self, category: str) -> NDArray[np.bool_]:
        """Rows where the response time of a category has a meaning: where it was recorded for every I/O."""
        if category == FLUSH:
            return np.zeros_like(self._response)
        if category not in self._has_response:
            of_every_io = self.response(category).count == self.service(category).count
            self._has_response[category] = self._response & of_every_io
        return self._has_response[category]

    @cached_property
    def absent(self) -> NDArray[np.bool_] | None:
        """Rows that include no host, shape (R,); None where there is none."""
        absent: NDArray[np.bool_] = self.merged.presence.hosts_in == 0
        return absent if absent.any() else None

    def rate(self, category: str, column: int) -> Floats:
        """Per second: I/Os (column 0) or bytes (column 1)."""
        return self._sum(CATEGORIES[category], column)

    def transfers(self, category: str) -> tuple[Floats, Floats]:
        """Per second: the I/Os of a category that transfer data, and their bytes; for trims and zeroes, themselves."""
        kinds = [kind for kind in CATEGORIES[category] if kind in TRANSFERS] or CATEGORIES[category]
        return self._sum(kinds, 0), self._sum(kinds, 1)

    def _sum(self, kinds: Sequence[int], column: int) -> Floats:
        found: Floats = self.merged.rates[:, list(kinds), column].sum(axis=1)
        return found

    def counter(self, *columns: int) -> Floats:
        """The sum of some columns of Count."""
        found: Floats = self.merged.counts[:, list(columns)].sum(axis=1).astype(np.float64)
        return found

    def kinds(self, category: str) -> tuple[int, ...]:
        """The kinds of a category that saw any I/O, in any row."""
        if category not in self._kinds:
            self._kinds[category] = kinds_in(self.merged, category)
        return self._kinds[category]

    def _some_kinds(self, category: str) -> tuple[int, ...]:
        return self.kinds(category) or CATEGORIES[category][:1]

    def _of(self, series: tuple[int, ...]) -> LatencyFigures:
        if series not in self._latencies:
            self._latencies[series] = LatencyFigures(self.merged, series)
        return self._latencies[series]


def kinds_in(merged: Merged, category: str) -> tuple[int, ...]:
    """The kinds of a category that saw any I/O, in any row."""
    return tuple(kind for kind in CATEGORIES[category] if merged.buckets[SERVICES[kind]].counts.shape[1])
