"""Reads run folders of ivypy: histograms.sqlite, which has every host's histograms of every subinterval.

Rule: one source per host, step and latency; the step is its `job`. A subinterval is a record (start, start + length]
on the controller's clock. Random and sequential I/O are added; reads and writes stay apart.

Response times are blank where the run's own rows leave them blank: in subintervals in which some I/Os have none, since
their instance was at max (the same rule as Figures.has_response); and in the row `whole` of a step, if the step's row
in the run's summary leaves them blank.
"""

import csv
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import numpy as np

from ....protocol.counters import RESPONSES, SERIES_OF_0_1, SERVICES, Kind, Moment
from ....protocol.histogram import BUCKETS
from ....protocol.lines import inflated
from ....protocol.payload import ArrayType
from ...errors import OutputError, PlanError
from ...output.csv_text import unguarded, whole_lines
from ...plan.attempts import attempts_that_count
from ...verdicts import Verdict
from ..faults import Fault
from .records import Records
from .source import DIRECTIONS, Direction, Format, Source
from .text_rows import Reading

_SERIES_OF: Final = {"service": SERVICES, "response": RESPONSES}  # by kind
_DIRECTION_OF: Final = {
    Kind.RANDOM_READ: Direction.READ,
    Kind.SEQUENTIAL_READ: Direction.READ,
    Kind.RANDOM_WRITE: Direction.WRITE,
    Kind.SEQUENTIAL_WRITE: Direction.WRITE,
    Kind.TRIM: Direction.TRIM,
}
_PLACES: Final = "SELECT host, start_utc_ns, length_ns, phase FROM result WHERE step = ? ORDER BY subinterval"
_RESULTS: Final = (
    "SELECT subinterval, phase, start_utc_ns, length_ns, moments, spans, buckets, bucket_type FROM result"
    " WHERE step = ? AND host = ? AND subinterval > ? ORDER BY subinterval LIMIT 64"
)
_MOMENTS: Final = (
    "SELECT subinterval, phase, start_utc_ns, length_ns, moments FROM result"
    " WHERE step = ? AND host = ? AND subinterval > ? ORDER BY subinterval LIMIT 64"
)


def sources_of(path: Path, latencies: Sequence[str], all_phases: bool) -> list[Source] | Fault:
    """The sources in a run's histograms.sqlite at `path`, one per host, step and latency.

    They have only the subintervals of phase `run`, unless `all_phases`; of a step that was repeated, those of its last
    attempt. A Fault if the file cannot be read, is of
    another version, or has no such subinterval with I/Os.
    """
    from ...control.observation import Phase  # with the next, a fifth of a second, which logs need not wait for
    from ...output.histogram_db_reader import HistogramReader

    other_phases = () if all_phases else tuple(phase.value for phase in Phase if phase is not Phase.RUN)
    sources: list[Source] = []
    try:
        with HistogramReader(path) as stored:
            steps = stored.steps()
        counting = attempts_that_count(steps.values())
        with closing(_connect(path)) as base:
            summaries = _summaries(path.parent)
            discredited = _discredited(summaries / "summary.all.csv")
            blank = {rollup: _blank_rows(summaries / f"summary.{rollup}.csv") for rollup in ("all", "host")}
            for number, name in steps.items():
                if name not in counting:
                    continue
                rows = list(base.execute(_PLACES, (number,)))
                hosts = dict.fromkeys(row[0] for row in rows if row[3] not in other_phases)
                recorded = {host: _recorded(base, number, host, other_phases) for host in hosts}
                for host in hosts:
                    own = [row[1:] for row in rows if row[0] == host]
                    begins, lengths, _ = zip(*(row for row in own if row[2] not in other_phases), strict=True)
                    sources += [
                        Source(
                            path,
                            Format.IVYPY,
                            latency,
                            host,
                            f"step{number:04d}.{name}",
                            epoch=True,
                            first_ns=begins[0],
                            period_ns=sorted(lengths)[len(lengths) // 2],
                            step=number,
                            last_ns=begins[-1] + lengths[-1],
                            run=str(path.parent),
                            other_phases=other_phases,
                            gaps=_gaps(own, other_phases),
                            not_measured=tuple((at, at + length) for at, length, phase in own if phase != Phase.RUN),
                            unpaced=recorded[host].unpaced if latency == "response" else (),
                            blank_rollups=_blank_rollups(blank, number, host) if latency == "response" else frozenset(),
                            is_discredited=(number, latency) in discredited,
                        )
                        for latency in latencies
                        if _is_used(recorded, host, latency)
                    ]
    except (OutputError, OSError, sqlite3.Error, ValueError) as error:
        return Fault(str(path), f"is not a run of ivypy that can be read: {error}")
    return sources or Fault(
        str(path), "holds no I/Os: the run ended before its first subinterval under load, or recorded no such latency"
    )


def _summaries(folder: Path) -> Path:
    """Where a run's summaries are; of a run.json that is damaged, or not there, beside it."""
    from ...results.checked_files import results_of

    try:
        return results_of(folder)
    except PlanError:
        return folder


def _gaps(rows: Iterable[tuple[int, int, str]], other_phases: tuple[str, ...]) -> tuple[tuple[int, int], ...]:
    """(begin, end) in ns of the subintervals that are left out between others. `rows`: (begin, length, phase)."""
    gaps: list[tuple[int, int]] = []
    end_ns: int | None = None  # of the last that is used
    is_open = False
    for begin_ns, length_ns, phase in rows:
        if phase in other_phases:
            is_open = True
            continue
        if is_open and end_ns is not None:
            gaps.append((end_ns, begin_ns))
        end_ns, is_open = begin_ns + length_ns, False
    return tuple(gaps)


def left_out(path: Path, other_phases: tuple[str, ...]) -> list[str]:
    """How many subintervals of these phases a run has: "2 warmup"."""
    query = "SELECT phase, COUNT(*) FROM (SELECT DISTINCT step, subinterval, phase FROM result) GROUP BY phase"
    with closing(_connect(path)) as base:
        counts = dict(base.execute(query))
    return [f"{counts[phase]} {phase}" for phase in other_phases if phase in counts]


@dataclass(frozen=True, slots=True)
class _Recorded:
    """The histograms that a host recorded in a step."""

    latencies: frozenset[str]  # those that any I/O has
    unpaced: tuple[tuple[int, int], ...]  # the stretches of subintervals in which some I/Os have no response time


def _recorded(base: sqlite3.Connection, step: int, host: str, other_phases: tuple[str, ...]) -> _Recorded:
    latencies: set[str] = set()
    unpaced: list[tuple[int, int]] = []
    was_paced = True
    series = _series_stored(base)
    for phase, begin_ns, length_ns, moments in _rows(base, _MOMENTS, step, host):
        if phase in other_phases:
            continue
        known = np.frombuffer(inflated(moments), "<u8").reshape(-1, series, len(Moment))
        ios = {
            name: known[:, [place for place, _ in _stored(of, series)], Moment.COUNT].sum()
            for name, of in _SERIES_OF.items()
        }
        latencies |= {name for name, count in ios.items() if count}
        is_paced = ios["response"] == ios["service"]
        if not is_paced:
            unpaced.append((begin_ns if was_paced else unpaced.pop()[0], begin_ns + length_ns))
        was_paced = is_paced
    return _Recorded(frozenset(latencies), tuple(unpaced))


def _is_used(recorded: Mapping[str, _Recorded], host: str, latency: str) -> bool:
    """Whether a host's step is a source of this latency.

    A step at iops max has no response times, and is no source of them. It is one if another host has some, because
    the response times of all hosts together are blank in its subintervals.
    """
    if latency in recorded[host].latencies:
        return True
    is_beside_one = any(latency in other.latencies for other in recorded.values())
    return latency == "response" and is_beside_one and bool(recorded[host].unpaced)


def _blank_rows(summary: Path) -> set[tuple[int, str]] | None:
    """(step, rollup instance) of the summary's rows that have service times and no response times; None where the run
    has no such summary."""
    if not summary.exists():
        return None
    with open(summary, newline="", encoding="utf-8") as file:
        return {
            (int(row["step"]), unguarded(row["rollup_instance"]))
            for row in csv.DictReader(whole_lines(file))
            if row.get("overall_service_us_mean") and not row.get("overall_response_us_mean")
        }


def _discredited(summary: Path) -> set[tuple[int, str]]:
    """(step, latency) of what the run's own verdicts speak against; 0.1.0 had one verdict for all figures."""
    if not summary.exists():
        return set()
    with open(summary, newline="", encoding="utf-8") as file:
        return {
            (int(row["step"]), latency)
            for row in csv.DictReader(whole_lines(file))
            for latency in _SERIES_OF
            if row.get(f"{latency}_verdict", row.get("verdict")) == Verdict.INVALID
        }


def _blank_rollups(blank: Mapping[str, set[tuple[int, str]] | None], step: int, host: str) -> frozenset[str]:
    """For which slices (`all`, `host`) a host's whole step is blank; without summary.host.csv, `host` is as `all`."""
    of_all = (step, "all") in (blank["all"] or ())
    of_host = of_all if blank["host"] is None else (step, host) in blank["host"]
    return frozenset(rollup for rollup, is_blank in (("all", of_all), ("host", of_host)) if is_blank)


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)


def _rows(base: sqlite3.Connection, query: str, step: int | None, host: str) -> Iterator[tuple[Any, ...]]:
    """The rows of a host's subintervals, without the number; few at once, since the run cannot write meanwhile."""
    last = -1
    while rows := base.execute(query, (step, host, last)).fetchall():
        yield from (row[1:] for row in rows)
        last = rows[-1][0]


def _stored(of: Sequence[int], series: int) -> list[tuple[int, Direction]]:
    """Those of a run that has so many series, and the direction of their I/O."""
    return [(of[kind], direction) for kind, direction in _DIRECTION_OF.items() if of[kind] < series]


def _series_stored(base: sqlite3.Connection) -> int:
    """How many series a merge class has in this run."""
    found = base.execute("SELECT value FROM meta WHERE key = 'series'").fetchone()
    return int(found[0]) if found else SERIES_OF_0_1


def read(reading: Reading) -> Iterator[Records]:
    """One source's subintervals, a batch each. Faults go to `reading`."""
    source = reading.source
    try:
        with closing(_connect(source.path)) as base:
            series = _series_stored(base)
            for phase, begin_ns, length_ns, *arrays in _rows(base, _RESULTS, source.step, source.host):
                if phase in source.other_phases:
                    continue
                begin_ns += source.start_ns
                records = _records(begin_ns, begin_ns + length_ns, _SERIES_OF[source.quantity], series, *arrays)
                if len(records):
                    yield records
    except (sqlite3.Error, ValueError, IndexError) as error:
        reading.fault(f"cannot be read: {error}", left_out="the rest")


def _records(
    begin_ns: int,
    end_ns: int,
    series_of: Sequence[int],
    series_count: int,
    moments: bytes,
    spans: bytes,
    buckets: bytes,
    bucket_type: str,
) -> Records:
    """One subinterval: a row per direction that has I/Os, all merge classes added."""
    used = np.frombuffer(inflated(spans), "<u4").reshape(-1, 2).astype(np.int64)
    known = np.frombuffer(inflated(moments), "<u8").reshape(-1, series_count, len(Moment))
    bucket = ArrayType(bucket_type)
    counts = np.frombuffer(inflated(buckets, bucket.size * int(used[:, 1].sum())), f"<{bucket}")
    ends = used[:, 1].cumsum()
    cells = np.zeros((len(DIRECTIONS), BUCKETS), np.uint64)
    lowest, highest = np.full(len(DIRECTIONS), np.iinfo(np.int64).max), np.zeros(len(DIRECTIONS), np.int64)
    sums = np.zeros(len(DIRECTIONS))
    squares = [0] * len(DIRECTIONS)
    for klass in range(len(known)):
        for series, of_series in _stored(series_of, series_count):
            direction = DIRECTIONS.index(of_series)
            first, length = used[klass * series_count + series]
            if length:
                end = ends[klass * series_count + series]
                cells[direction, first : first + length] += counts[end - length : end]
                lowest[direction] = min(lowest[direction], int(known[klass, series, Moment.MIN]))
                highest[direction] = max(highest[direction], int(known[klass, series, Moment.MAX]))
                sums[direction] += float(known[klass, series, Moment.SUM])
                high = int(known[klass, series, Moment.SQUARES_HIGH])
                squares[direction] += (high << 64) + int(known[klass, series, Moment.SQUARES_LOW])
    filled = np.flatnonzero(cells.any(axis=1))
    rows, entries = np.nonzero(cells[filled])
    stop = np.searchsorted(rows, np.arange(len(filled)), side="right").astype(np.int64)
    return Records(
        np.full(len(filled), begin_ns),
        np.full(len(filled), end_ns),
        filled.astype(np.uint8),
        np.concatenate([[0], stop[:-1]]).astype(np.int64) if len(filled) else stop,
        stop,
        entries.astype(np.uint16),
        cells[filled][rows, entries],
        lowest[filled],
        highest[filled],
        sums[filled],
        np.array(squares, np.float64)[filled],
    )
