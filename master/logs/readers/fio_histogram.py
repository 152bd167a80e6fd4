"""fio's histogram logs (write_hist_log): rows of `time_ms, direction, block_size, bucket counts`.

Rule: the counts are of the I/Os since the direction's previous row; what fio never writes (the I/Os after the last
row) is estimated by unlogged_tail.py. The block size is that of the I/O that triggered the row, so it is
ignored.

How rows become intervals (start, end] per direction, each rule proven against logs of every I/O of the same run:

- A row's stamp is the end of its interval; it begins where the direction's previous row ended. The first row of a
  log begins with the job, or one period before its stamp where that is later, and as many periods earlier as
  catch-up rows follow it (logging_period.py).
- fio writes a row at the first completion after it fell due. So where a row comes more than a period late, nothing
  completed between the moment it fell due (at most one period after the previous row) and its stamp: its I/Os lie
  in (previous, previous + period], but for one, which completed at the stamp. Where the slowest took as long as the
  silence before the stamp, it is that one: it stalled. Else (a pause of the job) it may be any of them: the median one
  is taken, and both it and the slowest are marked as I/Os that may have completed at the other's time.
- After a stall, catch-up rows follow with the same stamp, one completion each: moments.
- In a log that jobs share (per_job_logs=0), stamps go back to where the first job's began. Anywhere else, stamps
  that go back are a fault.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from .bad_lines import line_of_row
from .bucket_layouts import FIO_3, Layout
from .records import NS_PER_MS, Buckets, Counts, Directions, Ints, LogClock, Records
from .row_arrays import HistogramRows
from .source import DIRECTIONS
from .text_rows import Reading

_FEWEST_TO_COMPARE = 20  # I/Os: two jobs may well have a row of fewer in common
_LATE = 2  # periods after which a row is late: below, it is jitter


def read(reading: Reading, split_late: bool = True) -> Iterator[Records]:
    """The log's records, a batch at a time; each batch is valid until the next. Faults go to `reading`.

    `split_late`: see above; without, a record is a row.
    """
    source, into = reading.source, HistogramRows(reading.source)
    period_ms = source.period_ns / NS_PER_MS if source.period_ns else None
    aligner = Aligner(period_ms, source.epoch, source.begins_ms, layout=source.layout, split_late=split_late)
    clock = LogClock(source.start_ns, source.drift)
    for text, (rows, entries, *_) in reading.parse(into.parse):
        records, backwards = aligner.records(
            into.stamps[:rows], into.directions[:rows], into.first[: rows + 1], into.buckets[:entries],
            into.counts[:entries], clock,
        )  # fmt: skip
        if len(records):
            yield records
        if backwards:
            reading.fault(
                f"the stamp goes back from {backwards.before_ms} to {backwards.stamp_ms} ms: expected stamps that rise "
                f"within a direction, or (in a log that jobs share) that begin again near {backwards.first_ms} ms",
                line=reading.line + line_of_row(text, backwards.row),
                left_out="the rest of the file",
            )
            return
    reading.late_rows, reading.catch_up_rows = aligner.late_rows, aligner.catch_up_rows
    reading.repeated_jobs = aligner.repeated_jobs


@dataclass(frozen=True, slots=True)
class Backwards:
    """Stamps go back in row `row` of a batch, where no next job of a shared log begins."""

    row: int
    before_ms: int
    stamp_ms: int
    first_ms: int  # where a shared log's next job would begin


@dataclass(slots=True)
class Aligner:
    """State, per direction: where the last row ended. `period_ms` None: unknown, so no row counts as late."""

    period_ms: float | None
    epoch: bool  # stamps count from 1970: the first row's begin cannot be the job's
    begins_ms: tuple[int | None, ...] = (None,) * len(DIRECTIONS)  # of the first job's first rows, where known
    first_ms: int | None = None  # the first stamp of the log
    previous: list[int | None] = field(default_factory=lambda: [None] * len(DIRECTIONS))
    layout: Layout = FIO_3
    split_late: bool = True  # place the I/Os of late rows where they must have been
    late_rows: int = 0
    catch_up_rows: int = 0
    job_rows: list[int] = field(default_factory=list)  # of the last batch: where jobs begin
    first_rows: set[bytes] = field(default_factory=set)  # the rows that jobs begin with
    repeated_jobs: int = 0  # jobs that begin with a row that an earlier one began with

    def starts(self, stamps: Ints, directions: Directions) -> tuple[Ints, Backwards | None]:
        """The begin of each row, ms; of the rows before the fault, if stamps go back where they must not."""
        starts = np.empty_like(stamps)
        done = 0
        self.job_rows = [0] if self.first_ms is None else []
        while (bad := self._fill(stamps[done:], directions[done:], starts[done:])) is not None:
            done += bad
            stamp_ms, before_ms = int(stamps[done]), self.previous[directions[done]] or 0
            assert self.first_ms is not None  # rows were filled
            if stamp_ms > self.first_ms + _LATE * (self.period_ms or 0):
                return starts[:done], Backwards(done, before_ms, stamp_ms, self.first_ms)
            self.previous = [None] * len(DIRECTIONS)  # the next job of a shared log begins
            self.job_rows.append(done)
        return starts, None

    def _fill(self, stamps: Ints, directions: Directions, starts: Ints) -> int | None:
        """Fill in `starts` up to the first stamp that goes back, and return that row."""
        if self.first_ms is None:
            self.first_ms = int(stamps[0])
        rows = [np.flatnonzero(directions == d) for d in range(len(DIRECTIONS))]
        bad: list[int] = []
        for direction, (index, before) in enumerate(zip(rows, self.previous, strict=True)):
            if not len(index):
                continue
            own = stamps[index]
            starts[index[1:]] = own[:-1]
            starts[index[0]] = self._begin(int(own[0]), direction) if before is None else before
            bad.extend(index[own < starts[index]][:1].tolist())
        first_bad = min(bad, default=None)
        for d, index in enumerate(rows):
            kept = index if first_bad is None else index[index < first_bad]
            if len(kept):
                self.previous[d] = int(stamps[kept[-1]])
        return first_bad

    def _begin(self, stamp_ms: int, direction: int) -> int:
        """Where a direction's first row begins."""
        period = round(self.period_ms or 0)
        known_ms = self.begins_ms[direction]
        if known_ms is not None and known_ms <= stamp_ms > _LATE * period:
            return known_ms
        if self.epoch:
            return stamp_ms - period
        return stamp_ms - period if period and stamp_ms > _LATE * period else 0

    def records(
        self, stamps: Ints, directions: Directions, first: Ints, buckets: Buckets, counts: Counts, clock: LogClock
    ) -> tuple[Records, Backwards | None]:
        """Rows of one batch (`first` has one more entry than rows) as records; late rows are split."""
        starts, backwards = self.starts(stamps, directions)
        rows = len(starts)
        self._compare_jobs(stamps, directions, first, buckets, counts)
        plain = Records(starts, stamps[:rows], directions[:rows], first[:rows], first[1 : rows + 1], buckets, counts)
        self.catch_up_rows += int((plain.starts == plain.ends).sum())
        if self.period_ms and self.split_late:
            lengths = plain.ends - plain.starts
            late = np.flatnonzero((lengths > _LATE * self.period_ms) & (plain.stop > plain.first))
            if len(late):
                self.late_rows += len(late)
                plain = _split_late(plain, late, round(self.period_ms), self.layout)
        return _on_clock(plain, clock), backwards

    def _compare_jobs(
        self, stamps: Ints, directions: Directions, first: Ints, buckets: Buckets, counts: Counts
    ) -> None:
        """Count the jobs whose first row is an earlier one's: stamp, direction and all buckets."""
        for row in self.job_rows:
            held = slice(first[row], first[row + 1])
            if counts[held].sum() < _FEWEST_TO_COMPARE:
                continue
            content = b"".join(part.tobytes() for part in (buckets[held], counts[held]))
            found = f"{stamps[row]},{directions[row]}:".encode() + content
            self.repeated_jobs += found in self.first_rows
            self.first_rows.add(found)


def _on_clock(records: Records, clock: LogClock) -> Records:
    starts = clock.common(records.starts * NS_PER_MS)
    ends = clock.common(records.ends * NS_PER_MS)
    elsewhere = None if records.elsewhere is None else clock.common(records.elsewhere * NS_PER_MS)
    return replace(records, starts=starts, ends=ends, elsewhere=elsewhere)


def _split_late(records: Records, late: Ints, period_ms: int, layout: Layout) -> Records:
    """Of each late row, one I/O at its stamp, and the others within a period of its begin; the slowest of them apart
    where it may be the one at the stamp."""
    starts, stamps, counts = records.starts[late], records.ends[late], records.counts.copy()
    due = starts + period_ms
    slowest = records.stop[late] - 1
    edges = layout.edges[1:][records.buckets[slowest]]
    endless = layout.open_ended & (records.buckets[slowest] == layout.buckets - 1)
    has_stalled = endless | (edges >= (stamps - due) * NS_PER_MS)
    at_stamp = np.where(has_stalled, slowest, _medians(counts, records.first[late], records.stop[late]))
    counts[at_stamp] -= np.uint64(1)
    is_apart = ~has_stalled & (counts[slowest] > 0)  # else it was the row's only I/O
    counts[slowest[is_apart]] -= np.uint64(1)
    ends, stop = records.ends.copy(), records.stop.copy()
    ends[late] = due
    for _ in range(2):  # a row's last bucket is one that it has I/Os in
        stop[late] -= (stop[late] > records.first[late]) & (counts[stop[late] - 1] == 0)
    entries = np.concatenate([at_stamp, slowest[is_apart]])
    ends_apart = np.concatenate([stamps, due[is_apart]])
    more = len(counts) + np.arange(len(entries))
    return Records(
        np.concatenate([records.starts, stamps, starts[is_apart]]),
        np.concatenate([ends, ends_apart]),
        np.concatenate([records.directions, records.directions[late], records.directions[late[is_apart]]]),
        np.concatenate([records.first, more]),
        np.concatenate([stop, more + 1]),
        np.concatenate([records.buckets, records.buckets[entries]]),
        np.concatenate([counts, np.ones(len(entries), np.uint64)]),
        elsewhere=np.concatenate([ends, np.where(is_apart, due, stamps), stamps[is_apart]]),
    )


def _medians(counts: Counts, first: Ints, stop: Ints) -> Ints:
    """The entries of rows that hold their median I/Os."""
    upto = np.concatenate([[0], np.cumsum(counts.astype(np.int64))])
    entries: Ints = np.searchsorted(upto[1:], (upto[first] + upto[stop] + 1) // 2)
    return entries
