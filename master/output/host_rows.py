"""Rows about hosts and their threads: cpu.csv, interlock.csv, threads.csv, clock.csv.

Rule: a row per host and subinterval (threads.csv: per thread), durations as they were counted, in the unit of the
column's name. A thousand hosts are many numbers, so each table is made of columns, for all hosts in one go.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...protocol.counters import ThreadCount
from ...protocol.messages import Result
from ...protocol.payload import CpuTaken
from ..rollup.arrays import Floats, Ints
from ..rollup.decode_result import threads_of
from .csv_text import cells, number_cells
from .record_types import HostTiming, SubintervalRecord

Row = Sequence[Any]

_SHORT: Final = "%.5g"
_NS: Final = "%.15g"  # of whole nanoseconds, in whatever unit: every digit of 11 days

_TIMES: Final = (
    ThreadCount.DISPATCH, ThreadCount.SWITCHOVER, ThreadCount.LATENESS_P50, ThreadCount.LATENESS_P99,
    ThreadCount.LATENESS_MAX, ThreadCount.POLL_GAP_P99, ThreadCount.POLL_GAP_MAX, ThreadCount.IN_SUBMIT,
    ThreadCount.CPU_TIME, ThreadCount.CLOCK_ADJUSTMENT, ThreadCount.BUSY_WAIT,
    ThreadCount.REAP_DELAY_SUM, ThreadCount.REAP_DELAY_P99,
)  # fmt: skip


def core_numbers(cores: Mapping[str, Sequence[int]]) -> list[int]:
    """The numbers of all cores of all hosts: the columns core_<number> of cpu.csv."""
    return sorted({core for host in cores.values() for core in host})


def cpu_rows(record: SubintervalRecord, cores: Mapping[str, Sequence[int]]) -> str:
    """`cores`: per host, the numbers of the cores in the order in which it reports them (`hello.cores`)."""
    numbers = core_numbers(cores)
    column = {core: place for place, core in enumerate(numbers)}
    results = record.interval.results
    busy = np.full((len(results), len(numbers) + 1), np.nan)  # no core is in the last column
    for row, (host, result) in enumerate(results.items()):
        places = [column[core] for core, _ in zip(cores.get(host, ()), result.cpu, strict=False)]
        busy[row, places] = result.cpu[: len(places)]
    known = ~np.isnan(busy)
    has_value = known.any(axis=1)
    mean = np.divide(np.nansum(busy, axis=1), known.sum(axis=1), out=np.full(len(busy), np.nan), where=has_value)
    busiest = np.where(known, busy, -1.0).argmax(axis=1)
    columns = [
        (_SHORT, mean),
        ("%.9g", np.where(has_value, np.array([*numbers, np.nan])[busiest], np.nan)),
        (_SHORT, busy[np.arange(len(busy)), busiest]),
        *_taken([result.taken for result in results.values()], has_value),
        *((_SHORT, busy[:, place]) for place in range(len(numbers))),
    ]
    return _host_lines(record, results, columns)


def _taken(taken: Sequence[CpuTaken], known: NDArray[np.bool_]) -> list[tuple[str, Floats]]:
    """Columns of cpu.csv from cpu_others_percent on."""

    def column(figure: Callable[[CpuTaken], float]) -> tuple[str, Floats]:
        return _SHORT, np.where(known, np.array([figure(one) for one in taken], np.float64), np.nan)

    return [
        column(lambda one: one.others),
        column(lambda one: one.others_beside),
        column(lambda one: one.steal),
        column(lambda one: one.steal_beside),
        column(lambda one: one.wait),
        column(lambda one: one.throttled_ns / 1e6),
        column(lambda one: one.stalled_ns / 1e6),
        column(lambda one: one.longest_stall_ns / 1e6),
    ]


def interlock_rows(record: SubintervalRecord) -> str:
    """The controller's side and the worst of each host's threads."""
    results, timing = record.interval.results, record.timing
    own = [timing.hosts.get(host) for host in results]
    columns = [
        (_NS, _of(own, lambda host: host.send_up_ns) / 1e6),
        *((_NS, np.full(len(own), ns / 1e6)) for ns in (timing.barrier_1_ns, timing.processing_ns)),
        (_NS, _of(own, lambda host: host.acknowledgement_ns) / 1e6),
        *(
            (_NS, np.full(len(own), ns / 1e6))
            for ns in (timing.barrier_2_ns, timing.left_ns, timing.stalled_ns, timing.cpu_ns)
        ),
        *_worst(list(results.values())),
    ]
    return _host_lines(record, results, columns)


def _worst(results: Sequence[Result]) -> list[tuple[str, Floats]]:
    """Columns of interlock.csv from collected_ms on; blank where a host has no threads."""
    table, counts = _threads(results)
    some = counts > 0
    starts = (counts.cumsum() - counts)[some]
    ends_ns = np.array([result.start_ns + result.length_ns for result in results], np.int64)
    lengths_ns = np.array([result.length_ns for result in results], np.int64)
    missing = np.array([len(result.missing) for result in results])

    def over(ufunc: np.ufunc, figures: Ints) -> Floats:
        """Of each host's threads; nan where it has none."""
        reduced = np.full(len(counts), np.nan)
        if len(starts):
            reduced[some] = ufunc.reduceat(figures, starts)
        return reduced

    def each(ios: ThreadCount, calls: ThreadCount) -> Floats:
        """I/Os per call; nan where there was none."""
        many = over(np.add, table[:, calls])
        return over(np.add, table[:, ios]) / np.where(many > 0, many, np.nan)

    return [
        (_NS, (np.array([result.collected_ns for result in results], np.int64) - ends_ns) / 1e6),
        ("%d", counts),
        ("%d", np.where(some, over(np.add, (table[:, ThreadCount.SWAPPED] == 0).astype(int)), missing)),
        ("%.9g", over(np.add, table[:, ThreadCount.OVERRUNS])),
        *((_NS, over(np.maximum, table[:, time]) / 1e3) for time in _TIMES[:7]),
        (_SHORT, 100 * over(np.maximum, table[:, ThreadCount.IN_SUBMIT]) / lengths_ns),
        (_SHORT, 100 * over(np.maximum, table[:, ThreadCount.CPU_TIME]) / lengths_ns),
        (_SHORT, each(ThreadCount.SUBMITTED, ThreadCount.SUBMIT_CALLS)),
        (_SHORT, each(ThreadCount.COMPLETED, ThreadCount.REAPS)),
    ]


def thread_rows(record: SubintervalRecord) -> str:
    """Every thread's figures, times in microseconds."""
    results = record.interval.results
    table, counts = _threads(list(results.values()))
    rows = number_cells([("%.9g", table[:, c] / 1e3) if c in _TIMES else ("%d", table[:, c]) for c in ThreadCount])
    starts = [
        f"{record.interval.subinterval},{_cell(host)},{number}"
        for host, count in zip(results, counts.tolist(), strict=True)
        for number in range(count)
    ]
    return "".join(f"{start},{row}\n" for start, row in zip(starts, rows, strict=True))


def clock_rows(record: SubintervalRecord) -> str:
    """Where each host's clock stood."""
    hosts = list(record.timing.hosts.values())
    columns = [
        (_NS, _of(hosts, lambda host: host.offset_ns) / 1e3),
        (_NS, _of(hosts, lambda host: host.error_bound_ns) / 1e3),
        (_SHORT, _of(hosts, lambda host: host.rate_ppm)),
        (_NS, _of(hosts, lambda host: host.start_skew_ns) / 1e3),
        (_NS, _of(hosts, lambda host: host.boundary_skew_ns) / 1e3),
        (_NS, _of(hosts, lambda host: host.jump_ns) / 1e3),
    ]
    return _host_lines(record, record.timing.hosts, columns)


def _of(hosts: Iterable[HostTiming | None], figure: Callable[[HostTiming], float | None]) -> Floats:
    """One figure of every host; nan where it is not known."""
    return np.array([np.nan if host is None else figure(host) for host in hosts], np.float64)


def _threads(results: Sequence[Result]) -> tuple[Ints, Ints]:
    """The threads of all hosts, shape (threads, ThreadCount), and how many each host has."""
    tables = [threads_of(result) for result in results]
    return np.concatenate([np.zeros((0, len(ThreadCount)), np.int64), *tables]), np.array([len(t) for t in tables], int)


def _host_lines(record: SubintervalRecord, hosts: Iterable[str], columns: Sequence[tuple[str, Floats]]) -> str:
    start, rows = f"{record.interval.subinterval},", number_cells(columns)
    return "".join(f"{start}{_cell(host)},{row}\n" for host, row in zip(hosts, rows, strict=True))


@cache
def _cell(text: str) -> str:
    return cells([text])
