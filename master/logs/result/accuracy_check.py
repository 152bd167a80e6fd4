"""How far the percentiles of a histogram log are from the exact ones of the same run's log of every I/O.

Rule: fio logs both in the same order of completion, so a row's I/Os are the next `count` of its direction: nothing
is guessed from stamps, which are only milliseconds; that the stamps agree is checked. In logs that jobs share, one job
follows the other, and the I/Os after a job's last row are in the latency log alone. Counts of every bucket of every
row are compared. Percentiles are compared in
every one of the rows' own intervals and over the whole logged span, exact ones by nearest rank. For the quanta of
`--interval`, which cut rows, the difference is reported too; it holds the error of the cut as well. There the counts
are compared as well: where rows are taken to lie elsewhere than they do (another log_hist_msec, bursts), I/Os are in
intervals in which they did not complete. More than 5 % of them, and more than one an interval, is a failure.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ..faults import Fault, LogError
from ..readers.fio_histogram import read as read_histogram
from ..readers.fio_latency import read as read_latency
from ..readers.records import NS_PER_S, Floats, Ints, Records
from ..readers.source import DIRECTIONS, Format, Source
from ..readers.text_rows import Reading
from ..timeline.resample import BLOCK, Accumulator, Weighting, on_grid
from .interval_statistics import Interpolation, Statistics, statistics_of
from .table import latency_text


@dataclass(frozen=True, slots=True)
class ComparedPercentile:
    """One direction of one pair of logs, one percentile, over all intervals of one sort."""

    where: str  # what was compared: log, direction and sort of interval
    percentile: float
    intervals: int
    worst_us: float  # the largest difference
    worst_widths: float  # the same in widths of the bucket
    worst_relative: float

    def sentence(self) -> str:
        return (
            f"{self.where}: p{self.percentile:g} off by at most {latency_text(self.worst_us)} "
            f"({self.worst_widths:.3f} of the bucket's width, {self.worst_relative:.3%}) in {self.intervals} intervals"
        )


@dataclass(frozen=True, slots=True)
class Checked:
    compared: tuple[ComparedPercentile, ...]
    notes: tuple[str, ...]
    is_within: bool  # every percentile of the rows' own intervals within its bucket's width, every count agreeing
    in_other_buckets: int  # I/Os that rows count in another bucket than that of their latency
    misplaced: float  # the largest share of a pair's I/Os that are in another interval than they completed in
    is_placed: bool  # so few that they can be put down to the cut of rows
    worst: ComparedPercentile | None  # of the intervals that cut rows


_MISPLACED: Final = 0.05  # of the I/Os, or one an interval


@dataclass(frozen=True, slots=True)
class _Exact:
    """Every I/O of one direction, in the order of completion."""

    ends: Ints
    values: Ints


def check(sources: Sequence[Source], percentiles: Sequence[float], length_ns: int) -> Checked:
    """Compare histogram logs with latency logs, in pairs as they were named. LogError where they do not pair."""
    exact = [s for s in sources if s.format is Format.FIO_LATENCY]
    logs = [s for s in sources if s.format is Format.FIO_HISTOGRAM]
    faults = []
    if len(exact) != len(logs) or not logs:
        faults.append(
            Fault(
                "--check",
                f"{len(exact)} latency logs and {len(logs)} histogram logs: expected as many of one as of the other",
            )
        )
    for exact_log in exact:
        if exact_log.averaged or exact_log.quantity != "clat":
            why = "means" if exact_log.averaged else exact_log.quantity
            faults.append(
                Fault(exact_log.name, f"holds {why}, where every I/O's clat was expected, as in histogram logs")
            )
    if faults:
        raise LogError(faults)
    compared: list[ComparedPercentile] = []
    notes: list[str] = []
    cut: list[ComparedPercentile] = []
    is_within = is_placed = True
    misplaced = 0.0
    in_other_buckets = 0
    for exact_log, log in zip(exact, logs, strict=True):
        ios, records, placed = _samples(exact_log), _records(log, split_late=False), _records(log, split_late=True)
        for direction, name in enumerate(DIRECTIONS):
            in_direction = records.directions == direction
            if not in_direction.any():
                continue
            where = f"{log.path.name} {name}"
            totals = _rows(records, in_direction, log)
            exact_jobs, jobs = _jobs(ios[direction].ends), _jobs(records.ends[in_direction])
            if len(exact_jobs) < len(jobs):
                notes.append(f"{where}: the histograms are of {len(jobs)} jobs, the latency log of {len(exact_jobs)}")
                is_within = False
                continue
            in_rows = _in_order_of_rows(ios[direction], totals.sum(axis=1), jobs)
            pair = _Pair(log, where, totals, in_rows, records.starts[in_direction], records.ends[in_direction])
            notes.extend(pair.counts())
            rows = list(pair.own_intervals(percentiles))
            compared += rows
            is_within &= pair.is_whole and all(row.worst_widths <= 1 for row in rows)
            in_other_buckets += pair.in_other_buckets
            counts = pair.quanta(placed, direction, length_ns)
            cut += counts.percentiles(pair, percentiles)
            misplaced = max(misplaced, counts.misplaced / max(pair.logged, 1))
            is_placed &= counts.misplaced <= max(_MISPLACED * pair.logged, len(counts.cells))
    worst = max(cut, key=lambda one: one.worst_relative, default=None)
    return Checked((*compared, *cut), tuple(notes), is_within, in_other_buckets, misplaced, is_placed, worst)


def _jobs(stamps: Ints) -> list[int]:
    """Where jobs begin in a log that they share, ascending: where stamps go back."""
    return [0, *(np.flatnonzero(np.diff(stamps) < 0) + 1).tolist()]


def _in_order_of_rows(exact: _Exact, totals: Floats, jobs: Sequence[int]) -> _Exact:
    """The I/Os in the order of the rows: of each job as many as its rows hold (`totals`, which begin at `jobs`), and
    then those that completed after their job's last row. Stamps of a latency log may go back a little within a job:
    as many jobs are taken as the rows have, where they go back furthest."""
    steps = np.diff(exact.ends)
    begins = np.sort(np.argsort(steps, kind="stable")[: len(jobs) - 1] + 1)
    bounds = [0, *begins.tolist(), len(exact.ends)]
    upto = np.append(np.concatenate([[0], np.cumsum(totals)])[jobs], totals.sum()).astype(np.int64)
    in_rows = np.zeros(len(exact.ends), bool)
    for begin, end, held in zip(bounds, bounds[1:], np.diff(upto).tolist(), strict=False):
        in_rows[begin : min(begin + held, end)] = True
    order = np.concatenate([np.flatnonzero(in_rows), np.flatnonzero(~in_rows)])
    return _Exact(exact.ends[order], exact.values[order])


def _samples(source: Source) -> list[_Exact]:
    reading = Reading(source)
    parts = [(b.ends.copy(), b.values.copy(), b.directions.copy()) for b in read_latency(reading)]
    if reading.faults or not parts:
        raise LogError(reading.faults or [Fault(source.name, "holds no I/Os")])
    ends, values, directions = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return [_Exact(ends[directions == d], values[directions == d]) for d in range(len(DIRECTIONS))]


def _records(source: Source, split_late: bool) -> Records:
    """All rows: as they stand in the log, or (`split_late`) placed as in the analysis."""
    reading = Reading(source)
    parts = list(_copied(read_histogram(reading, split_late)))
    if reading.faults or not parts:
        raise LogError(reading.faults or [Fault(source.name, "holds no I/Os")])
    offsets = np.cumsum([0, *(len(part.buckets) for part in parts)])[:-1]
    moved = [replace(p, first=p.first + o, stop=p.stop + o) for p, o in zip(parts, offsets, strict=True)]
    names = ("starts", "ends", "directions", "first", "stop", "buckets", "counts")
    return Records(*(np.concatenate([getattr(part, name) for part in moved]) for name in names))


def _copied(batches: Iterator[Records]) -> Iterator[Records]:
    for b in batches:
        yield replace(b, directions=b.directions.copy(), first=b.first.copy(), stop=b.stop.copy(),
                      buckets=b.buckets.copy(), counts=b.counts.copy())  # fmt: skip


def _rows(records: Records, mine: np.ndarray, source: Source) -> Floats:
    """The rows of one direction, dense."""
    rows = np.flatnonzero(mine)
    cells = np.zeros((len(rows), source.layout.buckets))
    for row, number in enumerate(rows):
        entries = slice(records.first[number], records.stop[number])
        cells[row, records.buckets[entries]] = records.counts[entries]
    return cells


@dataclass(frozen=True, slots=True)
class _Pair:
    """One direction of a histogram log, and the same I/Os one by one."""

    log: Source
    where: str
    rows: Floats
    exact: _Exact
    starts: Ints
    ends: Ints

    @property
    def logged(self) -> int:
        return int(self.rows.sum())

    @property
    def is_whole(self) -> bool:
        """The latency log holds at least every I/O of the histograms."""
        return self.logged <= len(self.exact.values)

    def counts(self) -> Iterator[str]:
        after = len(self.exact.values) - self.logged
        if after < 0:
            yield f"{self.where}: the histograms count {-after} I/Os more than the latency log: not of the same run"
            return
        share = after / len(self.exact.values)
        yield (
            f"{self.where}: {self.logged} I/Os in {len(self.rows)} rows; {after} ({share:.2%}) completed after the last"
        )
        row = self._row_of_each()
        stamps = self.exact.ends[: self.logged]
        outside = int(((stamps < self.starts[row]) | (stamps > self.ends[row])).sum())
        yield f"{self.where}: {outside} I/Os have a stamp outside their row's interval"

    @property
    def in_other_buckets(self) -> int:
        """I/Os that a row counts in another bucket than that of their latency."""
        if not self.is_whole:
            return 0
        layout = self.log.layout
        buckets = np.searchsorted(layout.edges[: layout.buckets], self.exact.values[: self.logged], side="right") - 1
        own = np.zeros_like(self.rows)
        np.add.at(own, (self._row_of_each(), buckets), 1.0)
        return int(np.abs(own - self.rows).sum()) // 2

    def _row_of_each(self) -> Ints:
        """The row of each logged I/O."""
        return np.repeat(np.arange(len(self.rows)), self.rows.sum(axis=1).astype(np.int64))

    def own_intervals(self, percentiles: Sequence[float]) -> Iterator[ComparedPercentile]:
        if not self.is_whole:
            return
        bounds = np.cumsum(self.rows.sum(axis=1)).astype(np.int64)
        parts = np.split(self.exact.values[: self.logged], bounds[:-1])
        yield from self.compare("rows' own intervals", self.statistics(self.rows, percentiles), parts, percentiles)
        whole = self.statistics(self.rows.sum(axis=0)[None], percentiles)
        yield from self.compare("whole logged span", whole, [self.exact.values[: self.logged]], percentiles)

    def quanta(self, records: Records, direction: int, length_ns: int) -> "_Quanta":
        """The direction's I/Os in intervals of `length_ns`, rows cut as in the analysis; and those that really are."""
        accumulator = Accumulator(self.log.layout, length_ns, Weighting.UNIFORM, False)
        accumulator.add_records(on_grid(records, length_ns), 1 << direction)
        exact = (self.exact.ends[: self.logged] - 1) // length_ns
        first, last = min(accumulator.blocks) * BLOCK, (max(accumulator.blocks) + 1) * BLOCK
        if len(exact):
            first, last = min(first, int(exact.min())), max(last, int(exact.max()) + 1)
        cells = np.zeros((last - first, self.log.layout.buckets))
        for number, block in accumulator.blocks.items():
            cells[number * BLOCK - first :][:BLOCK] = block.cells
        return _Quanta(first, length_ns, cells, exact)

    def statistics(self, cells: Floats, percentiles: Sequence[float]) -> Statistics:
        return statistics_of(cells, self.log.layout, np.array(percentiles), Interpolation.LINEAR)

    def compare(
        self, what: str, statistics: Statistics, parts: Sequence[Ints], percentiles: Sequence[float]
    ) -> Iterator[ComparedPercentile]:
        for column, percentile in enumerate(percentiles):
            errors = []
            for row, part in enumerate(parts):
                if len(part) and statistics.count[row] > 0:
                    exact = nearest_rank(part, percentile)
                    error = abs(statistics.values[row, column] - exact)
                    errors.append((error / 1000, error / statistics.widths[row, column], error / max(exact, 1)))
            if errors:
                worst = [max(column) for column in zip(*errors, strict=True)]
                yield ComparedPercentile(f"{self.where}, {what}", percentile, len(errors), *worst)


@dataclass(frozen=True, slots=True)
class _Quanta:
    """Intervals of a pair: as the histograms show them, and the interval of each logged I/O."""

    first: int
    length_ns: int
    cells: Floats
    exact: Ints

    @property
    def misplaced(self) -> float:
        """I/Os that are shown in another interval than they completed in, at least."""
        true = np.bincount(self.exact - self.first, minlength=len(self.cells))
        return float(np.abs(self.cells.sum(axis=1) - true).sum()) / 2

    def percentiles(self, pair: _Pair, percentiles: Sequence[float]) -> Iterator[ComparedPercentile]:
        """Of the intervals that lie wholly in the logged span."""
        quanta = np.arange(-(-pair.starts[0] // self.length_ns), pair.ends[-1] // self.length_ns)
        if not len(quanta):
            return
        parts = [pair.exact.values[: pair.logged][self.exact == quantum] for quantum in quanta]
        found = pair.statistics(self.cells[quanta - self.first], percentiles)
        yield from pair.compare(
            f"intervals of {self.length_ns / NS_PER_S:g} s, which cut rows", found, parts, percentiles
        )


def nearest_rank(values: Ints, percentile: float) -> int:
    """The smallest value that at least `percentile` percent of the values do not exceed."""
    rank = max(int(np.ceil(percentile / 100 * len(values) * (1 - 1e-12))), 1)
    return int(np.partition(values, rank - 1)[rank - 1])
