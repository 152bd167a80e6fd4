"""Rows about hosts and their threads: cpu.csv, interlock.csv, threads.csv, clock.csv.

Rule: a row per host and subinterval (threads.csv: per thread), durations as they were counted, in the unit of the
column's name.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from ...protocol.counters import ThreadCount
from ...protocol.messages import Result
from ..rollup.unpack import threads_of
from .records import HostTiming, SubintervalRecord, Timing
from .table import cells, number_cells

Row = Sequence[Any]

_TIMES: Final = (
    ThreadCount.DISPATCH, ThreadCount.SWITCHOVER, ThreadCount.LATENESS_P50, ThreadCount.LATENESS_P99,
    ThreadCount.LATENESS_MAX, ThreadCount.HARVEST_GAP_P99, ThreadCount.HARVEST_GAP_MAX, ThreadCount.IN_SUBMIT,
    ThreadCount.CPU_TIME, ThreadCount.ANCHOR_CORRECTION, ThreadCount.SPUN,
    ThreadCount.HARVEST_LATE_SUM, ThreadCount.HARVEST_LATE_P99,
)  # fmt: skip


def core_numbers(cores: Mapping[str, Sequence[int]]) -> list[int]:
    """The numbers of all cores of all hosts: the columns core_<number> of cpu.csv."""
    return sorted({core for host in cores.values() for core in host})


def cpu_rows(record: SubintervalRecord, cores: Mapping[str, Sequence[int]]) -> Iterator[Row]:
    """`cores`: per host, the numbers of the cores in the order in which it reports them (`hello.cores`)."""
    numbers = core_numbers(cores)
    for host, result in record.interval.results.items():
        busy = dict(zip(cores.get(host, ()), result.cpu, strict=False))
        start: list[Any] = [record.interval.subinterval, host]
        if busy:
            busiest = max(busy, key=lambda core: busy[core])
            start += [_short(sum(busy.values()) / len(busy)), busiest, _short(busy[busiest])]
        else:
            start += [None, None, None]
        yield [*start, *(_short(busy[core]) if core in busy else None for core in numbers)]


def interlock_rows(record: SubintervalRecord) -> Iterator[Row]:
    """The controller's side and the worst of each host's threads."""
    for host, result in record.interval.results.items():
        timing = record.timing.hosts.get(host)
        yield [record.interval.subinterval, host, *_controller(record.timing, timing), *_worst(result)]


def _controller(timing: Timing, host: HostTiming | None) -> list[Any]:
    acknowledged = host.acknowledgement_ns if host else None
    return [
        _ms(host.send_up_ns) if host else None,
        _ms(timing.barrier_1_ns),
        _ms(timing.processing_ns),
        None if acknowledged is None else _ms(acknowledged),
        _ms(timing.barrier_2_ns),
        _ms(timing.left_ns),
    ]


def _worst(result: Result) -> list[Any]:
    threads = threads_of(result)
    collected = _ms(result.collected_ns - result.start_ns - result.length_ns)
    if not len(threads):
        return [collected, 0, len(result.missing), *([None] * 9)]
    worst = threads.max(axis=0)
    return [
        collected,
        len(threads),
        int((threads[:, ThreadCount.SWAPPED] == 0).sum()),
        int(threads[:, ThreadCount.OVERRUNS].sum()),
        *(_us(int(worst[column])) for column in _TIMES[:7]),
        _short(100 * int(worst[ThreadCount.IN_SUBMIT]) / result.length_ns),
    ]


def thread_rows(record: SubintervalRecord) -> str:
    """Every thread's figures as CSV lines, times in microseconds; many thousands, so formatted as one table."""
    threads = {host: threads_of(result) for host, result in record.interval.results.items()}
    starts = [
        f"{record.interval.subinterval},{start},{number}"
        for start, figures in zip(map(_cell, threads), threads.values(), strict=True)
        for number in range(len(figures))
    ]
    if not starts:
        return ""
    table = np.concatenate(list(threads.values()))
    rows = number_cells([("%.9g", table[:, c] / 1e3) if c in _TIMES else ("%d", table[:, c]) for c in ThreadCount])
    return "".join(f"{start},{row}\n" for start, row in zip(starts, rows, strict=True))


@cache
def _cell(text: str) -> str:
    return cells([text])


def clock_rows(record: SubintervalRecord) -> Iterator[Row]:
    """Where each host's clock stood."""
    for host, timing in record.timing.hosts.items():
        yield [
            record.interval.subinterval, host, _us(timing.offset_ns), _us(timing.error_bound_ns),
            _short(timing.rate_ppm), _us(timing.start_skew_ns), _us(timing.boundary_skew_ns),
        ]  # fmt: skip


def _ms(ns: int) -> float:
    return ns / 1e6


def _us(ns: int) -> float:
    return ns / 1e3


def _short(value: float) -> str:
    return f"{value:.5g}"
