"""One rollup instance's statistics over time, finished: what every output is made from.

Rule: only quanta that hold something are stored; `rows` lays them out over a span, empty ones included, so that an
interval without I/O is a row with count 0 and no latency, never a missing row.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..readers.bucket_layouts import Layout
from ..readers.records import Floats, Ints
from ..timeline.resample import BLOCK, Accumulator, Block
from ..timeline.rollups import Slice
from .interval_statistics import ExactMoments, Interpolation, Statistics, statistics_of

_UNKNOWN_LOW: Final = np.iinfo(np.int64).max
_FIRST: Final = 1e-9  # the rank of a histogram's first I/O, however small its weight


@dataclass(frozen=True, slots=True)
class Histograms:
    """The histograms behind a series, for pictures: cells[i] is quanta[i]'s, from bucket `base` of `layout` on."""

    layout: Layout
    base: int
    quanta: Ints
    cells: Floats

    @property
    def edges(self) -> Ints:
        return self.layout.edges[self.base : self.base + self.cells.shape[1] + 1]


def _union(spans: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Spans without overlaps, ascending."""
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1]:
            begin, end = joined[-1][0], max(joined.pop()[1], end)
        joined.append((begin, end))
    return tuple(joined)


@dataclass(frozen=True, slots=True)
class Span:
    """(begin, end] that a log covers, ns, and the stretches in it that were left out."""

    begin_ns: int
    end_ns: int
    gaps: tuple[tuple[int, int], ...] = ()
    step: str = ""  # of a run
    is_discredited: bool = False  # a run's own verdict speaks against its latencies

    @property
    def parts(self) -> Iterator[tuple[int, int]]:
        """The stretches that it covers, without the gaps."""
        begin_ns = self.begin_ns
        for first, last in self.gaps:
            yield begin_ns, first
            begin_ns = last
        yield begin_ns, self.end_ns

    def covers(self, begin_ns: int, end_ns: int) -> bool:
        """Whether it covers some of (begin, end]."""
        return any(first < end_ns and last > begin_ns for first, last in self.parts)


@dataclass(frozen=True, slots=True)
class Splits:
    """The I/Os that rows cut by an interval have added to it; one value per quantum of a series."""

    ios: Floats
    above_ns: Floats  # figures above this lie above all rows that are wholly in the interval; infinite without splits
    fewest: Floats  # I/Os, if all of the cut rows are the neighbours'
    most: Floats  # and if all are the interval's
    moved: NDArray[np.bool_]  # (n, p): the percentile may lie further away than in the next bucket

    @staticmethod
    def none(count: Floats, percentiles: int) -> "Splits":
        shape = len(count), percentiles
        return Splits(np.zeros(len(count)), np.full(len(count), np.inf), count, count, np.zeros(shape, bool))

    @staticmethod
    def of(block: Block, filled: NDArray[np.intp], layout: Layout, percentiles: Floats) -> "Splits":
        """Of the quanta `filled` of a block."""
        ios, unsure, cut = block.split[filled], block.unsure[filled], block.cut[filled]
        count = block.cells[filled].sum(axis=1)
        fewest = count - (ios - unsure)
        most = fewest + cut
        moved = np.zeros((len(filled), len(percentiles)), bool)
        rows = np.flatnonzero(ios > 0)
        # Of the I/Os in a split interval `ios` may be others, and it may hold as many again as bring it to `most`.
        more = most[rows] - count[rows] + unsure[rows]
        moved[rows] = _may_move(block.cells[filled[rows]], ios[rows], more, most[rows], percentiles / 100)
        return Splits(ios, np.where(ios > 0, layout.edges[block.top[filled] + 1], np.inf), fewest, most, moved)

    @staticmethod
    def joined(parts: Sequence["Splits"], percentiles: int) -> "Splits":
        every = [*parts, Splits.none(np.empty(0), percentiles)]
        return Splits(*(np.concatenate([getattr(part, one.name) for part in every]) for one in fields(Splits)))


def _may_move(cells: Floats, fewer: Floats, more: Floats, most: Floats, shares: Floats) -> NDArray[np.bool_]:
    """Whether quantiles of the histograms `cells` (n, buckets) may be further away than in the next bucket: (n, p).

    `fewer` of its I/Os may be others, and up to `more` may come, `most` in all. If the fastest come and go, the
    quantile has its rank among `most`, less all of them; if the slowest, its rank and those that go. What comes is of
    rows that have a share in the histogram, so it lies in no bucket outside of it. How many of them lie in which bucket
    is not kept, so more quantiles may seem to move than can.
    """
    moved = np.zeros((len(cells), len(shares)), bool)
    used = np.flatnonzero(cells.any(axis=0))
    if not len(used):
        return moved
    upto = np.cumsum(cells[:, used[0] : used[-1] + 1], axis=1)
    for column, share in enumerate(shares.tolist()):
        rank = share * most
        lowest = (upto < np.maximum(rank - fewer - more, _FIRST)[:, None]).sum(axis=1)
        highest = (upto < np.minimum(rank + fewer, upto[:, -1])[:, None]).sum(axis=1)
        moved[:, column] = highest - lowest > 1
    return moved


@dataclass(frozen=True, slots=True)
class Blanks:
    """Where a run's own rows leave the latencies of a series blank."""

    stretches: tuple[tuple[int, int], ...] = ()  # (begin, end], ns; then the whole is blank, too
    whole: bool = False

    def rows(self, quanta: Ints, length_ns: int) -> NDArray[np.bool_]:
        """(n,) Which quanta a stretch touches."""
        rows = np.zeros(len(quanta), bool)
        for begin_ns, end_ns in self.stretches:
            rows |= (quanta >= begin_ns // length_ns) & (quanta <= (end_ns - 1) // length_ns)
        return rows


@dataclass(frozen=True, slots=True)
class Series:
    instance: Slice
    length_ns: int
    percentiles: tuple[float, ...]
    quanta: Ints  # those that hold something, ascending
    statistics: Statistics  # a row per quantum
    whole: Statistics  # one row: the whole span
    spans: tuple[Span, ...]  # what each of its logs covers
    splits: Splits
    tail: tuple[tuple[int, int], ...] = ()  # the span of I/Os that no log holds, but were estimated
    histograms: Histograms | None = field(repr=False, default=None)
    covered: tuple[tuple[int, int], ...] = field(init=False)  # what spans and tail cover together, without overlaps

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "covered", _union([*chain.from_iterable(span.parts for span in self.spans), *self.tail])
        )

    @property
    def first(self) -> int:
        """The first quantum that a log covers."""
        begins = [span.begin_ns // self.length_ns for span in self.spans]
        return min([*begins, *(int(quantum) for quantum in self.quanta[:1])])

    @property
    def last(self) -> int:
        ends = [(span.end_ns - 1) // self.length_ns for span in self.spans]
        return max([*ends, *(int(quantum) for quantum in self.quanta[-1:])])

    def covered_ns(self, begin_ns: int, end_ns: int) -> int:
        """How much of (begin, end] its logs and the estimated tail cover."""
        own = [(max(first, begin_ns), min(last, end_ns)) for first, last in self.covered]
        return sum(last - first for first, last in own if last > first)

    def is_discredited(self, begin_ns: int, end_ns: int) -> bool:
        """Whether some of what is in (begin, end] is."""
        return any(span.is_discredited and span.covers(begin_ns, end_ns) for span in self.spans)

    def steps_in(self, begin_ns: int, end_ns: int) -> int:
        """How many of a run's steps cover some of (begin, end]."""
        return len({span.step for span in self.spans if span.step and span.covers(begin_ns, end_ns)})

    def logs_at(self, quantum: int) -> int:
        """How many of its logs cover a quantum, in part at least."""
        begin, end = quantum * self.length_ns, (quantum + 1) * self.length_ns
        return sum(
            span.begin_ns < end and span.end_ns > begin and (not span.gaps or span.covers(begin, end))
            for span in self.spans  # of each interval and log: few have gaps, and a call costs more than this
        )


def finish(
    instance: Slice,
    accumulator: Accumulator,
    percentiles: Sequence[float],
    how: Interpolation,
    spans: Sequence[Span],
    tail: Sequence[tuple[int, int]],
    keep_histograms: bool,
    blanks: Blanks,
) -> Series:
    """The statistics of everything that was added; the accumulator's blocks are given up on the way. A series whose
    whole is blank keeps no histograms: what is drawn of them shows the whole."""
    is_blank = blanks.whole or bool(blanks.stretches)
    keep_histograms = keep_histograms and not is_blank
    layout, wanted = accumulator.layout, np.array(percentiles, np.float64)
    quanta: list[Ints] = []
    parts: list[Statistics] = []
    kept: list[Floats] = []
    splits: list[Splits] = []
    whole = np.zeros((1, layout.buckets))
    sums, squares, lowest, highest = 0.0, 0.0, _UNKNOWN_LOW, -1
    for number in sorted(accumulator.blocks):
        block = accumulator.blocks.pop(number)
        filled = np.flatnonzero(block.cells.any(axis=1))
        if not len(filled):
            continue
        cells = block.cells[filled]
        moments = _moments(
            block.sums[filled] if accumulator.has_sums else None,
            block.squares[filled] if accumulator.has_moments else None,
            block.lowest[filled],
            block.highest[filled],
        )
        quanta.append(filled + number * BLOCK)
        parts.append(statistics_of(cells, layout, wanted, how, moments))
        whole += cells.sum(axis=0)
        splits.append(Splits.of(block, filled, layout, wanted))
        sums, squares = sums + block.sums.sum(), squares + block.squares.sum()
        lowest, highest = min(lowest, int(block.lowest.min())), max(highest, int(block.highest.max()))
        if keep_histograms:
            kept.append(cells)
    total = _moments(
        np.array([sums]) if accumulator.has_sums else None,
        np.array([squares]) if accumulator.has_moments else None,
        np.array([lowest]),
        np.array([highest]),
    )
    all_quanta = np.concatenate(quanta) if quanta else np.empty(0, np.int64)
    statistics = _joined(parts) if parts else statistics_of(np.zeros((0, layout.buckets)), layout, wanted, how)
    return Series(
        instance,
        accumulator.length_ns,
        tuple(percentiles),
        all_quanta,
        statistics.blank(blanks.rows(all_quanta, accumulator.length_ns)),
        statistics_of(whole, layout, wanted, how, total).blank(np.array([is_blank])),
        tuple(spans),
        Splits.joined(splits, len(wanted)),
        tuple(tail),
        _trimmed(layout, all_quanta, kept) if kept else None,
    )


def _moments(sums: Floats | None, squares: Floats | None, lowest: Ints, highest: Ints) -> ExactMoments:
    known = highest >= 0
    low = np.where(known, lowest, np.nan)
    high = np.where(known, highest, np.nan)
    return ExactMoments(sums, squares, low, high)


def _joined(parts: list[Statistics]) -> Statistics:
    names = [field.name for field in fields(Statistics)]
    return Statistics(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _trimmed(layout: Layout, quanta: Ints, kept: list[Floats]) -> Histograms:
    used = np.flatnonzero(np.any([cells.any(axis=0) for cells in kept], axis=0))
    base, end = int(used[0]), int(used[-1]) + 1
    return Histograms(layout, base, quanta, np.concatenate([cells[:, base:end] for cells in kept]))
