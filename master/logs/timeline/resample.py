"""Weighted histograms over time: records and samples added into aligned quanta.

Quantum k is (k * length, (k+1) * length] on the common clock. Two weightings:

    uniform     a record (s, e] adds to a quantum the share |(s, e] & quantum| / (e - s); a single I/O, one, where
                it completed. Every I/O counts once, where it (probably) completed. Prefer it for rates and for
                latencies well below the interval.
    in-flight   an I/O of latency v counts where it was in flight: over (c - v, c], with its completion c uniform
                over (s, e]. So the density is a trapezoid over (s - v, e]; a single I/O's is flat over (c - v, c].
                An I/O still counts once in all, but a stall shows while it lasted, not when it ended. Prefer it
                where latencies come near the interval or exceed it.
    in-flight-to-row-end
                the same with c = e for the I/Os of a record, as if all of a row had completed at its stamp: flat over
                (e - v, e]. Logs of single I/Os give the same figures by both.

A row of a log seldom ends exactly where a quantum does: fio stamps rows of 500 ms with 501, 1001, ... So an end of a
record that lies within `tolerance_ns` of a quantum's boundary is moved onto it, and the record belongs whole to its
quantum. What is still cut by a boundary is spread as above, and counted apart (`split`): on which side of the
boundary its slowest I/O was is unknown.

Rule: shares are rounded to 2^-30 such that an I/O's shares add up to exactly one; so sums are exact, and the same
whatever the order of files and threads. Memory is taken in blocks of 64 quanta, where there is something to add.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..native._rows import spread_records, spread_samples
from ..readers.bucket_layouts import Layout
from ..readers.records import NS_PER_MS, Floats, Ints, Records, Samples

BLOCK: Final = 64  # quanta
EVERY: Final = 0b111  # the mask of all directions
_NOTHING_YET: Final = np.iinfo(np.int64).max
_NEVER: Final = np.iinfo(np.int64).min
_NEAR_NS: Final = 10 * NS_PER_MS  # of a boundary, for records of any length
_NEAR: Final = 50  # or a record's length divided by this, where that is more
_MOST: Final = 4  # but at most a quarter of the record and of the quantum


class Weighting(StrEnum):
    UNIFORM = "uniform"
    IN_FLIGHT = "in-flight"
    IN_FLIGHT_TO_ROW_END = "in-flight-to-row-end"

    @property
    def is_in_flight(self) -> bool:
        return self is not Weighting.UNIFORM


@dataclass(slots=True)
class Block:
    """Histograms of BLOCK quanta, and what is known beside them."""

    cells: Floats  # (BLOCK, buckets)
    sums: Floats  # weight x value, ns; only of exact values
    squares: Floats
    lowest: Ints  # ns; _NOTHING_YET where nothing is known
    highest: Ints
    split: Floats  # the I/Os that are there as a share of a record that the quantum's boundary cuts
    unsure: Floats  # those of `split` that may have completed in another quantum in exchange for one from there
    cut: Floats  # all I/Os of the records that the quantum's boundaries cut: as many may lie in it, or none
    top: Ints  # the highest bucket of the records that lie wholly in the quantum; -1 where there is none
    lock: Lock = field(default_factory=Lock)


def _new_block(buckets: int) -> Block:
    return Block(
        np.zeros((BLOCK, buckets)),
        np.zeros(BLOCK),
        np.zeros(BLOCK),
        np.full(BLOCK, _NOTHING_YET),
        np.full(BLOCK, -1),
        np.zeros(BLOCK),
        np.zeros(BLOCK),
        np.zeros(BLOCK),
        np.full(BLOCK, -1),
    )


def tolerance_ns(lengths: Ints, quantum_ns: int) -> Ints:
    """How near to a boundary an end of a record of some length counts as on it: 10 ms, or 2 % of the record's length
    where that is more, and never more than a quarter of the record or of the quantum."""
    near = np.maximum(lengths // _NEAR, _NEAR_NS)
    return np.minimum(near, np.minimum(lengths // _MOST, quantum_ns // _MOST))


def on_grid(records: Records, quantum_ns: int) -> Records:
    """The records with the ends that lie near a boundary moved onto it."""
    near = tolerance_ns(records.ends - records.starts, quantum_ns)
    elsewhere = None if records.elsewhere is None else moved(records.elsewhere, near, quantum_ns)
    return replace(
        records,
        starts=moved(records.starts, near, quantum_ns),
        ends=moved(records.ends, near, quantum_ns),
        elsewhere=elsewhere,
    )


def moved(moments: Ints, near: Ints, quantum_ns: int) -> Ints:
    """The moments, those that are `near` a boundary moved onto it."""
    after = moments % quantum_ns
    return moments - np.where(after <= near, after, np.where(quantum_ns - after <= near, after - quantum_ns, 0))


@dataclass(frozen=True, slots=True)
class _CutRows:
    """Records that lie in several quanta: the first and the last of these, and the I/Os of each record."""

    first: Ints
    last: Ints
    ios: Floats

    def add_to(self, quanta: Floats, begin: int) -> None:
        """All I/Os of each record, to each quantum that it touches; `begin` is the number of quanta[0]."""
        change = np.zeros(len(quanta) + 1)
        np.add.at(change, np.clip(self.first - begin, 0, len(quanta)), self.ios)
        np.add.at(change, np.clip(self.last + 1 - begin, 0, len(quanta)), -self.ios)
        quanta += np.cumsum(change)[:-1]


class Accumulator:
    """One rollup instance's histogram over time. Threads may add at once."""

    def __init__(self, layout: Layout, length_ns: int, weighting: Weighting, exact: bool) -> None:
        self.layout, self.length_ns, self.weighting = layout, length_ns, weighting
        self.has_moments = exact  # the values added are exact, so that sums, minimum and maximum are known
        self.has_sums = exact
        self.blocks: dict[int, Block] = {}
        self._lock = Lock()

    def add_records(self, records: Records, mask: int = EVERY, begin_ns: int | None = None) -> None:
        """`begin_ns`: when the log's first I/O can have begun; nothing is in flight before. `records` are on_grid."""
        wanted = (mask >> records.directions) & 1 != 0
        if not wanted.any():
            return
        if self.weighting is Weighting.IN_FLIGHT_TO_ROW_END:
            records = replace(records, starts=records.ends)
        latencies = self.layout.middles if self.weighting.is_in_flight else None
        begin, earliest = records.starts, self._earliest(begin_ns)
        if latencies is not None and len(records.buckets):
            slowest = records.buckets[np.maximum(records.stop - 1, 0)]
            begin = begin - np.where(records.stop > records.first, latencies[slowest], 0).astype(np.int64)
        begin = np.minimum(begin, records.ends - 1)  # of a moment
        parts = self._parts(records)
        cut = self._cut_rows(records, wanted) if latencies is None else None
        for number, block in self._locked(self._numbers(int(begin[wanted].min()), int(records.ends[wanted].max()))):
            for part, is_sure in parts:
                spread_records(
                    part.starts, part.ends, part.directions, part.first, part.stop,
                    part.buckets, part.counts, mask, latencies, earliest,
                    self.length_ns, number * BLOCK, self.layout.buckets, block.cells, block.split,
                    block.top if is_sure else np.full(BLOCK, -1),
                )  # fmt: skip
                if not is_sure and latencies is None:
                    self._add_unsure(part, mask, number, block)
            if cut is not None:
                cut.add_to(block.cut, number * BLOCK)
        self._know(records, wanted)

    def _parts(self, records: Records) -> list[tuple[Records, bool]]:
        """The records in whose quanta it is sure that their I/Os completed, and the others."""
        if records.elsewhere is None:
            return [(records, True)]
        is_sure = (records.ends - 1) // self.length_ns == (records.elsewhere - 1) // self.length_ns
        return [(records.chosen(is_sure), True), (records.chosen(~is_sure), False)]

    def _add_unsure(self, records: Records, mask: int, number: int, block: Block) -> None:
        """Count the I/Os that may have completed in another quantum as those of a record that is cut; each record
        holds one, and those that really are cut have been counted."""
        quanta = (records.ends - 1) // self.length_ns
        is_whole = (records.starts >= quanta * self.length_ns) & ((mask >> records.directions) & 1 != 0)
        at = quanta[is_whole] - number * BLOCK
        for counted in (block.split, block.unsure):
            np.add.at(counted, at[(at >= 0) & (at < BLOCK)], 1.0)

    def _cut_rows(self, records: Records, wanted: NDArray[np.bool_]) -> "_CutRows | None":
        """The records that lie in several quanta; None without."""
        first, last = records.starts // self.length_ns, (records.ends - 1) // self.length_ns
        cut = np.flatnonzero(wanted & (first < last))
        if not len(cut):
            return None
        upto = np.concatenate([[0.0], np.cumsum(records.counts.astype(np.float64))])
        return _CutRows(first[cut], last[cut], upto[records.stop[cut]] - upto[records.first[cut]])

    def add_samples(self, samples: Samples, mask: int = EVERY, begin_ns: int | None = None) -> None:
        """`begin_ns`: as for records."""
        if mask != EVERY and not ((mask >> samples.directions) & 1).any():
            return
        in_flight = self.weighting.is_in_flight
        earliest = self._earliest(begin_ns)
        slowest = int(samples.values.max()) if in_flight else 0
        is_sorted = bool((samples.ends[1:] >= samples.ends[:-1]).all())
        numbers = self._numbers(int(samples.ends.min()) - max(slowest, 1), int(samples.ends.max()))
        for number, block in self._locked(numbers):
            begin = number * BLOCK * self.length_ns
            own = slice(0, len(samples))
            if is_sorted:  # only those that can reach into the block
                reach = (begin, begin + BLOCK * self.length_ns + slowest)
                own = slice(*np.searchsorted(samples.ends, reach, side="right"))
            spread_samples(
                samples.ends[own], samples.values[own], samples.directions[own], mask, in_flight, earliest,
                self.length_ns, number * BLOCK, self.layout.buckets,
                block.cells, block.sums, block.squares, block.lowest, block.highest,
            )  # fmt: skip

    def _know(self, records: Records, wanted: NDArray[np.bool_]) -> None:
        """Adds the exact extremes and sums of records that have them to every quantum that they touch."""
        if records.lowest is None or records.highest is None:
            return
        sums = records.sums if self.weighting is Weighting.UNIFORM else None
        squares = records.squares if sums is not None else None
        self.has_sums |= sums is not None
        self.has_moments |= squares is not None
        for row in np.flatnonzero(wanted):
            start, end = int(records.starts[row]), int(records.ends[row])
            first, last = (quantum_of(ns, self.length_ns) for ns in (start + 1, end))
            for quantum in range(first, last + 1):
                block, at = self._block(quantum // BLOCK), quantum % BLOCK
                with block.lock:
                    block.lowest[at] = min(block.lowest[at], records.lowest[row])
                    block.highest[at] = max(block.highest[at], records.highest[row])
                    if sums is not None:
                        inside = min(end, (quantum + 1) * self.length_ns) - max(start, quantum * self.length_ns)
                        block.sums[at] += sums[row] * (inside / (end - start))
                        if squares is not None:
                            block.squares[at] += squares[row] * (inside / (end - start))

    def _earliest(self, begin_ns: int | None) -> int:
        """The quantum before which nothing is in flight."""
        return _NEVER if begin_ns is None else quantum_of(begin_ns + 1, self.length_ns)

    def _numbers(self, begin_ns: int, end_ns: int) -> range:
        """The blocks that (begin, end] touches."""
        return range(begin_ns // self.length_ns // BLOCK, (end_ns - 1) // self.length_ns // BLOCK + 1)

    def _locked(self, numbers: range) -> Iterator[tuple[int, Block]]:
        """Each block, locked while it is out. Those that another thread adds to come last: threads seldom wait."""
        busy: list[int] = []
        for number in numbers:
            block = self._block(number)
            if not block.lock.acquire(blocking=False):
                busy.append(number)
                continue
            try:
                yield number, block
            finally:
                block.lock.release()
        for number in busy:
            block = self._block(number)
            with block.lock:
                yield number, block

    def _block(self, number: int) -> Block:
        with self._lock:
            block = self.blocks.get(number)
            if block is None:
                block = self.blocks[number] = _new_block(self.layout.buckets)
            return block


def quantum_of(ns: int, length_ns: int) -> int:
    """The quantum that holds a moment."""
    return (ns - 1) // length_ns
