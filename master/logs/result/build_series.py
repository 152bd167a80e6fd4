"""From logs to series: read every log once, in threads, into the rollup instances that it belongs to.

Rule: nothing of a log is kept but sums. Logs are read in the order of their instances, and an instance is finished,
and its memory given back, when its last log has been read; so `--by file` over 128 logs needs no more memory than
a few of them. The text and the sums are worked on in C without the GIL, so threads do run side by side.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Final

import numpy as np

from ..faults import Fault
from ..readers import fio_histogram, fio_latency, ivypy_run, smallfile
from ..readers.bucket_layouts import IVYPY, Layout
from ..readers.records import Records, Samples
from ..readers.source import Format, Kind, Source
from ..readers.text_rows import Reading
from ..timeline.resample import Accumulator, Weighting, moved, on_grid, tolerance_ns
from ..timeline.rollups import Slice, SliceShare, shares_of
from ..timeline.unlogged_tail import JobTotals, Logged, Tail, estimate
from .exact import ExactSamples
from .interval_statistics import Interpolation
from .series import Blanks, Series, Span, finish

Batch = Records | Samples

_TAIL: Final = Path("tail (estimated)")

MOST_DRAWN: Final = 40  # instances whose histograms are kept in memory for a page; of more, those that are named
MOST_QUANTA: Final = 1_000_000  # that a log may span: beyond, a stamp is wrong, or the interval absurd
_OF_SINGLE_IOS: Final = (Format.FIO_LATENCY, Format.SMALLFILE)
_READERS: Final[dict[Format, Callable[[Reading], Iterator[Batch]]]] = {
    Format.FIO_HISTOGRAM: fio_histogram.read,
    Format.FIO_LATENCY: fio_latency.read,
    Format.SMALLFILE: smallfile.read,
    Format.IVYPY: ivypy_run.read,
}


@dataclass(frozen=True, slots=True)
class SeriesRequest:
    """The series to compute."""

    length_ns: int
    by: tuple[tuple[str, ...], ...] = (("all",),)
    percentiles: tuple[float, ...] = (50.0, 95.0, 99.0, 99.9)
    weighting: Weighting = Weighting.UNIFORM
    interpolation: Interpolation | None = None
    exact: bool = False  # keep single I/Os instead of buckets
    drawn: tuple[str, ...] = ()  # groups that are drawn, whose histograms are kept however many groups there are
    totals: dict[int, JobTotals] | None = None  # fio's JSON, for the tail

    def interpolation_of(self, log_format: str) -> Interpolation:
        """Runs have the figures of their own rows unless something else was asked for."""
        default = Interpolation.MIDPOINT if log_format == Format.IVYPY else Interpolation.LINEAR
        return self.interpolation or default


@dataclass(frozen=True, slots=True)
class BuiltSeries:
    series: tuple[Series, ...]
    faults: tuple[Fault, ...]
    notes: tuple[str, ...]
    spans: dict[Source, tuple[int, int]]  # (begin, end] that each log covers, ns


@dataclass(slots=True)
class _Live:
    """An instance whose logs are being read."""

    accumulator: Accumulator | ExactSamples
    waiting: int  # logs that are still to be read
    spans: list[Span] = field(default_factory=list)
    tail: list[tuple[int, int]] = field(default_factory=list)  # the span of the estimated tail
    unpaced: list[tuple[int, int]] = field(default_factory=list)  # where a run's I/Os have no response time
    is_blank: bool = False  # a run's own summary leaves the whole blank


class Analysis:
    """One pass over the logs. `layouts`: what each kind of histogram log is merged in."""

    def __init__(self, sources: Iterable[Source], layouts: dict[Kind, Layout], question: SeriesRequest) -> None:
        self.question, self.layouts = question, layouts
        self.sources = sorted(sources, key=lambda s: (s.kind, s.host, s.job, s.name))
        self._shares = {s: shares_of(s, question.by) for s in self.sources}
        self._lock = Lock()
        self._live: dict[Slice, _Live] = {}
        self._series: list[Series] = []
        self._spans: dict[Source, tuple[int, int]] = {}
        self._readings: list[Reading] = []
        self._logged: Logged | None = None
        self._tail_source = self._plan_tail()
        for source, shares in self._shares.items():
            for share in shares:
                self._expect(source, share)
        self._instances = len(self._live)

    def _expect(self, source: Source, share: SliceShare) -> None:
        live = self._live.get(share.instance)
        if live is None:
            live = self._live[share.instance] = _Live(self._new(source), 0)
        live.waiting += 1

    def _new(self, source: Source) -> Accumulator | ExactSamples:
        question = self.question
        if question.exact:
            return ExactSamples(question.length_ns)
        layout = self.layouts.get(source.kind, replace(IVYPY, open_ended=False))
        return Accumulator(layout, question.length_ns, question.weighting, source.format in _OF_SINGLE_IOS)

    def run(self, threads: int | None = None) -> BuiltSeries:
        """Read everything; faults are in the answer, whatever they were."""
        workers = max(1, min(threads or len(os.sched_getaffinity(0)), len(self.sources)))
        with ThreadPoolExecutor(workers) as pool:
            for done in [pool.submit(self._read, source) for source in self.sources]:
                done.result()
        notes = self._add_tail() if self._tail_source else ()
        faults = [fault for reading in sorted(self._readings, key=lambda r: r.source.name) for fault in reading.faults]
        return BuiltSeries(
            tuple(sorted(self._series, key=lambda s: s.instance)),
            tuple(faults),
            (*notes, *_stalls(self._readings), *_of_readings(self._readings)),
            self._spans,
        )

    def _read(self, source: Source) -> None:
        reading = Reading(source)
        shift = self.layouts[source.kind].coarseness - source.layout.coarseness if source.kind in self.layouts else 0
        span: tuple[int, int] | None = None
        samples = 0
        for batch in _READERS[source.format](reading):
            if shift and isinstance(batch, Records):
                batch = replace(batch, buckets=batch.buckets >> np.uint16(shift))
            if isinstance(batch, Records):
                batch = on_grid(batch, self.question.length_ns)
            wider = _wider(span, batch)
            if (quanta := (wider[1] - wider[0]) // self.question.length_ns) > MOST_QUANTA:
                what = f"spans {quanta:,} intervals by its stamps, where {MOST_QUANTA:,} are the most"
                reading.fault(what, "choose a longer interval", reading.line, "the rest of the file")
                break
            span = wider
            samples += len(batch)
            self._add(source, batch)
        if not samples and not source.unpaced and not reading.faults:
            reading.fault("holds no I/Os", left_out="the file")
        if span is not None and source.begin_ns is not None:  # it covers the time before its first I/O, too
            span = min(span[0], source.begin_ns), span[1]
        self._close(source, reading, span)

    def _add(self, source: Source, batch: Batch) -> None:
        for share in self._shares[source]:
            accumulator = self._live[share.instance].accumulator
            if isinstance(batch, Samples):
                accumulator.add_samples(batch, share.mask, source.begin_ns)
            elif isinstance(accumulator, Accumulator):
                accumulator.add_records(batch, share.mask, source.begin_ns)
        if self._logged is not None and isinstance(batch, Records):
            with self._lock:
                self._logged.add(batch)

    def _close(self, source: Source, reading: Reading, span: tuple[int, int] | None) -> None:
        """A log has been read: finish the instances for which it was the last."""
        ended: list[tuple[Slice, _Live]] = []
        with self._lock:
            self._readings.append(reading)
            if span is not None and source is not self._tail_source:
                self._spans[source] = span
            for share in self._shares[source]:
                live = self._live[share.instance]
                live.waiting -= 1
                live.unpaced += self._moved(source, source.unpaced)
                live.is_blank |= ("host" if share.instance.has("host") else "all") in source.blank_rollups
                if span is not None:
                    if source is self._tail_source:
                        live.tail.append(span)
                    else:
                        live.spans.append(
                            Span(*span, self._gaps_of(source, span), source.step_name, source.is_discredited)
                        )
                if not live.waiting:
                    ended.append((share.instance, self._live.pop(share.instance)))
        for instance, live in ended:
            series = self._finish(instance, live)
            if len(series.quanta):
                with self._lock:
                    self._series.append(series)

    def _gaps_of(self, source: Source, span: tuple[int, int]) -> tuple[tuple[int, int], ...]:
        gaps = self._moved(source, source.gaps)
        return tuple((begin, end) for begin, end in gaps if span[0] <= begin < end <= span[1])

    def _moved(self, source: Source, stretches: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """A source's stretches on the common clock, moved onto the grid as the records beside them are."""
        if not stretches:
            return []
        length_ns = self.question.length_ns
        near = tolerance_ns(np.array(source.period_ns or length_ns), length_ns)
        found = moved(np.array(stretches) + source.start_ns, near, length_ns).tolist()
        return [(begin, end) for begin, end in found]

    def _finish(self, instance: Slice, live: _Live) -> Series:
        question = self.question
        if isinstance(live.accumulator, ExactSamples):
            return live.accumulator.finish(instance, question.percentiles, live.spans)
        keep = bool(question.drawn) and (str(instance) in question.drawn or self._instances <= MOST_DRAWN)
        how = question.interpolation_of(instance.format)
        blanks = Blanks(tuple(live.unpaced), live.is_blank)
        return finish(instance, live.accumulator, question.percentiles, how, live.spans, live.tail, keep, blanks)

    def _plan_tail(self) -> Source | None:
        """A source of its own for the tail, so that its instances wait for it; hosts and jobs where all agree."""
        logs = [source for source in self.sources if source.format is Format.FIO_HISTOGRAM]
        if self.question.totals is None or not logs:
            return None
        self._logged = Logged(self.layouts[logs[0].kind])
        hosts, jobs = {log.host for log in logs}, {log.job for log in logs}
        tail = replace(logs[0], path=_TAIL, host=min(hosts) if len(hosts) == 1 else str(_TAIL),
                       job=min(jobs) if len(jobs) == 1 else str(_TAIL))  # fmt: skip
        self._shares[tail] = shares_of(tail, self.question.by)
        return tail

    def _add_tail(self) -> tuple[str, ...]:
        assert self._tail_source is not None and self._logged is not None and self.question.totals is not None
        tail: Tail = estimate(self.question.totals, self._logged, self._job_start())
        logged, self._logged = self._logged, None  # the tail is not logged
        span = None
        if len(tail.records):
            records = on_grid(tail.records, self.question.length_ns)
            span = _wider(None, records)
            self._add(self._tail_source, records)
        self._close(self._tail_source, Reading(self._tail_source), span)
        del logged
        return tail.notes

    def _job_start(self) -> int:
        """When the jobs began: 0, the table's start, or, where stamps do not show it, where the first log begins."""
        assert self._tail_source is not None
        first = min((begin for begin, _ in self._spans.values()), default=0)
        return first if self._tail_source.begin_ns is None else self._tail_source.start_ns


def _wider(span: tuple[int, int] | None, batch: Batch) -> tuple[int, int]:
    begins = batch.starts if isinstance(batch, Records) else batch.ends
    first, last = int(begins.min()), int(batch.ends.max())
    return (first, last) if span is None else (min(span[0], first), max(span[1], last))


def _of_readings(readings: Sequence[Reading]) -> Iterator[str]:
    for reading in sorted(readings, key=lambda r: r.source.name):
        yield from reading.notes()


def _stalls(readings: Sequence[Reading]) -> Iterator[str]:
    late = sum(reading.late_rows for reading in readings)
    if late:
        caught_up = sum(reading.catch_up_rows for reading in readings)
        yield (
            f"{late} rows came more than a period late: nothing completed before them (a stall, or a rate below one "
            f"I/O a period); {caught_up} rows with the stamp of the row before were added as moments"
        )
