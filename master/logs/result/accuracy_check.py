"""How far the percentiles of a histogram log are from the exact ones of the same run's log of every I/O.

Rule: fio logs both in the same order of completion, so a row's I/Os are the next `count` of its direction: nothing
is guessed from stamps, which are only milliseconds; that the stamps agree is checked. Percentiles are compared in
every one of the rows' own intervals and over the whole logged span, exact ones by nearest rank. For the quanta of
`--interval`, which cut rows, the difference is reported too; it holds the error of the cut as well.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..faults import Fault, LogError
from ..readers.fio_histogram import read as read_histogram
from ..readers.fio_latency import read as read_latency
from ..readers.records import NS_PER_S, Floats, Ints, Records
from ..readers.source import DIRECTIONS, Format, Source
from ..readers.text_rows import Reading
from ..render.write_result import latency_text
from ..timeline.accumulate import Accumulator, Weighting
from .percentile import Interpolation, Statistics, statistics_of


@dataclass(frozen=True, slots=True)
class Compared:
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
    compared: tuple[Compared, ...]
    notes: tuple[str, ...]
    is_within: bool  # every percentile of the rows' own intervals within its bucket's width, every count agreeing


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
    for one in exact:
        if one.averaged or one.quantity != "clat":
            why = "means" if one.averaged else one.quantity
            faults.append(Fault(one.name, f"holds {why}, where every I/O's clat was expected, as in histogram logs"))
    if faults:
        raise LogError(faults)
    compared: list[Compared] = []
    notes: list[str] = []
    is_within = True
    for one, log in zip(exact, logs, strict=True):
        ios, records = _samples(one), _records(log)
        for direction, name in enumerate(DIRECTIONS):
            mine = records.directions == direction
            if not mine.any():
                continue
            where = f"{log.path.name} {name}"
            pair = _Pair(
                log, where, _rows(records, mine, log), ios[direction], records.starts[mine], records.ends[mine]
            )
            notes.extend(pair.counts())
            rows = list(pair.own_intervals(percentiles))
            compared += rows
            is_within &= pair.is_whole and all(row.worst_widths <= 1 for row in rows)
            compared += pair.quanta(records, direction, percentiles, length_ns)
    return Checked(tuple(compared), tuple(notes), is_within)


def _samples(source: Source) -> list[_Exact]:
    reading = Reading(source)
    parts = [(b.ends.copy(), b.values.copy(), b.directions.copy()) for b in read_latency(reading)]
    if reading.faults or not parts:
        raise LogError(reading.faults or [Fault(source.name, "holds no I/Os")])
    ends, values, directions = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return [_Exact(ends[directions == d], values[directions == d]) for d in range(len(DIRECTIONS))]


def _records(source: Source) -> Records:
    """All rows, as they stand in the log."""
    reading = Reading(source)
    parts = list(_copied(read_histogram(reading, split_late=False)))
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
        upto = np.cumsum(self.rows.sum(axis=1)).astype(np.int64)
        row = np.searchsorted(upto, np.arange(self.logged), side="right")
        stamps = self.exact.ends[: self.logged]
        outside = int(((stamps < self.starts[row]) | (stamps > self.ends[row])).sum())
        yield f"{self.where}: {outside} I/Os have a stamp outside their row's interval"

    def own_intervals(self, percentiles: Sequence[float]) -> Iterator[Compared]:
        if not self.is_whole:
            return
        bounds = np.cumsum(self.rows.sum(axis=1)).astype(np.int64)
        parts = np.split(self.exact.values[: self.logged], bounds[:-1])
        yield from self._compare("rows' own intervals", self._statistics(self.rows, percentiles), parts, percentiles)
        whole = self._statistics(self.rows.sum(axis=0)[None], percentiles)
        yield from self._compare("whole logged span", whole, [self.exact.values[: self.logged]], percentiles)

    def quanta(
        self, records: Records, direction: int, percentiles: Sequence[float], length_ns: int
    ) -> Iterator[Compared]:
        """Quanta that lie wholly in the logged span, rows cut as they are in the analysis."""
        accumulator = Accumulator(self.log.layout, length_ns, Weighting.UNIFORM, False)
        accumulator.add_records(records, 1 << direction)
        quanta = np.arange(-(-self.starts[0] // length_ns), self.ends[-1] // length_ns)
        if not len(quanta):
            return
        cells = np.zeros((len(quanta), self.log.layout.buckets))
        for index, quantum in enumerate(quanta):
            block = accumulator.blocks.get(int(quantum) // 64)
            if block is not None:
                cells[index] = block.cells[int(quantum) % 64]
        number = (self.exact.ends - 1) // length_ns
        parts = [self.exact.values[number == quantum] for quantum in quanta]
        where = f"intervals of {length_ns / NS_PER_S:g} s, which cut rows"
        yield from self._compare(where, self._statistics(cells, percentiles), parts, percentiles)

    def _statistics(self, cells: Floats, percentiles: Sequence[float]) -> Statistics:
        return statistics_of(cells, self.log.layout, np.array(percentiles), Interpolation.LINEAR)

    def _compare(
        self, what: str, found: Statistics, parts: Sequence[Ints], percentiles: Sequence[float]
    ) -> Iterator[Compared]:
        for column, percentile in enumerate(percentiles):
            errors = []
            for row, part in enumerate(parts):
                if len(part) and found.count[row] > 0:
                    exact = nearest_rank(part, percentile)
                    error = abs(found.values[row, column] - exact)
                    errors.append((error / 1000, error / found.widths[row, column], error / max(exact, 1)))
            if errors:
                worst = [max(column) for column in zip(*errors, strict=True)]
                yield Compared(f"{self.where}, {what}", percentile, len(errors), *worst)


def nearest_rank(values: Ints, percentile: float) -> int:
    """The smallest value that at least `percentile` percent of the values do not exceed."""
    rank = max(int(np.ceil(percentile / 100 * len(values) * (1 - 1e-12))), 1)
    return int(np.partition(values, rank - 1)[rank - 1])
