"""The sums that rows are computed from: counters, moments and histograms merged per rollup instance, as arrays over all
rows.

Rule: everything here is a sum (or a minimum, a maximum), exact and in any order. Sums that outgrow 64 bits are stored
as 32-bit limbs, each in a u64, so 2**32 of them can be added before one overflows; they become Python integers at the
end.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...protocol.counters import KINDS, Count, Moment
from .instances import Rollups

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

NO_LEAST: Final = np.uint64(2**64 - 1)  # the least of no values
STATES: Final = (
    Count.EDIT,
    Count.BACKLOG,
    Count.IN_FLIGHT,
    Count.OLDEST_IN_FLIGHT_NS,
    Count.OLDEST_OUTSTANDING_NS,
    Count.LEFT,
    Count.ENDED_NS,
    Count.DIRTY,
)
HIGHEST: Final = (
    Count.EDIT,
    Count.OLDEST_IN_FLIGHT_NS,
    Count.OLDEST_OUTSTANDING_NS,
    Count.ENDED_NS,
)  # merged as a maximum; the others add
FLUSHES: Final = KINDS  # their place among rates, behind the kinds of I/O
RATED: Final = KINDS + 1  # what has a rate
ADDED: Final = Moment.MIN  # the moments before this column add; it and the next are a minimum and a maximum
LIMBS: Final = 2 * ADDED  # 32-bit limbs of the added moments, two a column; SQUARES_LOW and _HIGH make four


@dataclass(frozen=True, slots=True, eq=False)
class Buckets:
    """The histograms of one series for all rows: the buckets from `low` on that any of them uses."""

    low: int
    counts: Words  # (R, width)

    @property
    def high(self) -> int:
        return self.low + int(self.counts.shape[1])

    def padded(self, low: int, high: int) -> "Buckets":
        """The same histograms over the buckets [low, high), which must hold the present ones."""
        counts = np.zeros((len(self.counts), high - low), np.uint64)
        if self.counts.shape[1]:
            counts[:, self.low - low : self.high - low] = self.counts
        return Buckets(low, counts)

    def covering(self, low: int, high: int) -> "Buckets":
        """These histograms if they hold the buckets [low, high) already, else wider ones."""
        if self.counts.shape[1] == 0:
            return self.padded(low, high)
        if self.low <= low and high <= self.high:
            return self
        return self.padded(min(low, self.low), max(high, self.high))


def no_buckets(rows: int) -> Buckets:
    return Buckets(0, np.zeros((rows, 0), np.uint64))


def added(first: Buckets, other: Buckets) -> Buckets:
    """The sum of two sets of histograms; may reuse the first one's memory."""
    if other.counts.shape[1] == 0:
        return first
    total = first.covering(other.low, other.high)
    total.counts[:, other.low - total.low : other.high - total.low] += other.counts
    return total


def sum_of(parts: list[Buckets], rows: int) -> Buckets:
    """The sum of several sets of histograms, in memory of its own unless there is only one."""
    used = [part for part in parts if part.counts.shape[1]]
    if len(used) <= 1:
        return used[0] if used else no_buckets(rows)
    total = Buckets(0, np.zeros((rows, 0), np.uint64)).padded(min(p.low for p in used), max(p.high for p in used))
    for part in used:
        added(total, part)
    return total


def difference(whole: Buckets, part: Buckets) -> Buckets:
    """Histograms without some of the values in them."""
    if part.counts.shape[1] == 0:
        return whole
    left = whole.padded(whole.low, whole.high)
    left.counts[:, part.low - whole.low : part.high - whole.low] -= part.counts
    return left


@dataclass(frozen=True, slots=True, eq=False)
class RowMoments:
    """The moments of every series of R rows."""

    limbs: Words  # (R, SERIES, LIMBS): those that add
    least: Words  # (R, SERIES), ns; NO_LEAST where the series is empty
    most: Words  # (R, SERIES), ns


@dataclass(frozen=True, slots=True, eq=False)
class Presence:
    """The hosts, instances and CPU of R rows."""

    length_s: Floats  # (R,) mean real length over the hosts that are in; nan where none is
    hosts_in: Ints  # (R,) hosts whose results are in
    hosts_of: Ints  # (R,) hosts that should be
    instances: Ints  # (R,) workload instances
    cpu: Floats  # (R, HostCpu) of the hosts that are in, percent

    def lacking(self, row: int) -> str:
        """The hosts that a row is of, where that is not all: "1 of 3 hosts"; else ""."""
        here, of_all = int(self.hosts_in[row]), int(self.hosts_of[row])
        return f"{here} of {of_all} hosts" if here < of_all else ""


@dataclass(frozen=True, slots=True, eq=False)
class Merged:
    """One subinterval, or one window, for all R rows. Arrays are read-only by convention."""

    rollups: Rollups
    counts: Ints  # (R, Count): sums, but HIGHEST are maxima, and STATES are those at the end
    moments: RowMoments
    buckets: tuple[Buckets, ...]  # one per series
    rates: Floats  # (R, RATED, 2): I/Os and bytes per second, each host's by its own real length
    presence: Presence


def limbs_of(moments: Words) -> Words:
    """The added columns of moments (..., len(Moment)) as limbs (..., LIMBS), least significant first."""
    columns = np.ascontiguousarray(moments[..., :ADDED], dtype="<u8")
    return columns.view("<u4").astype(np.uint64)


def words_of(column: Moment) -> int:
    """How many limbs an added moment has; SQUARES_LOW stands for the whole sum of squares."""
    return 4 if column is Moment.SQUARES_LOW else 2


def integers(limbs: Words, column: Moment) -> NDArray[np.object_]:
    """One added moment as Python integers, of any size."""
    total = limbs[..., 2 * column].astype(object)
    for i in range(1, words_of(column)):
        total = total + (limbs[..., 2 * column + i].astype(object) << (32 * i))
    return total


def reals(limbs: Words, column: Moment) -> Floats:
    """One added moment as floats: exact up to 2**53, within a rounding beyond."""
    total = limbs[..., 2 * column].astype(np.float64)
    for i in range(1, words_of(column)):
        total += limbs[..., 2 * column + i] * 2.0 ** (32 * i)
    return total
