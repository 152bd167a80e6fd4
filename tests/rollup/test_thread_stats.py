"""What workload threads say of themselves: how busy they were, and how late they looked for completions."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.rollup.instances import Rollups
from ivypy.master.rollup.parameters_in_force import Settings
from ivypy.master.rollup.thread_stats import ThreadTotals, reap_delay_us
from ivypy.master.rollup.validity import check_validity
from ivypy.master.rollup.window import Window
from ivypy.protocol.counters import LATENESS, RESPONSE, SERVICE, Count, ThreadCount
from ivypy.protocol.histogram import LIMIT_NS, bucket_of
from ivypy.protocol.parameters import Iops, Parameters
from ivypy.protocol.payload import ArrayType
from tests.support.rollup import instance, merger_of
from tests.support.rollup_results import HostData, packed, result

US = 1000
S = 10**9
LENGTH = 5 * S
SUBINTERVALS = 20
DONE = 2000  # I/Os in each

Thread = Mapping[ThreadCount, int]
CPU, BUSY_WAIT, SUM, P99 = (
    ThreadCount.CPU_TIME, ThreadCount.BUSY_WAIT, ThreadCount.REAP_DELAY_SUM, ThreadCount.REAP_DELAY_P99,
)  # fmt: skip


def table(*threads: Thread) -> list[list[int]]:
    return [[thread.get(column, 0) for column in ThreadCount] for thread in threads]


def workers_of(*results: list[list[int]]) -> ThreadTotals:
    workers = ThreadTotals()
    for threads in results:
        workers.add(np.array(threads, np.int64).reshape(-1, len(ThreadCount)), S)
    return workers


@pytest.mark.parametrize(
    ("threads", "busy", "spins"),
    [
        ((), 0, False),
        (({CPU: S // 2}, {CPU: S // 4}), 50, False),
        (({CPU: S, BUSY_WAIT: 3 * S // 4},), 25, True),
        (({CPU: S, BUSY_WAIT: S // 4},), 75, False),  # as much as a thread is awake without `spin`
        (({CPU: S // 2, BUSY_WAIT: S},), 0, True),  # put aside while it spun
    ],
)
def test_how_busy_threads_are(threads: tuple[Thread, ...], busy: float, spins: bool) -> None:
    seen = workers_of(table(*threads), table(*threads)).seen()
    assert (seen.busy_percent, seen.spins) == (busy, spins)


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 10**7), st.integers(0, 10**7)), max_size=30))
def test_lateness_adds_over_subintervals_threads_and_hosts(figures: list[tuple[int, int, int]]) -> None:
    threads: list[Thread] = [{ThreadCount.COMPLETED: n, SUM: n * mean, P99: p99} for n, mean, p99 in figures]
    in_one = workers_of(table(*threads)).seen()
    in_time = workers_of(*(table(thread) for thread in threads)).seen()
    on_hosts = [workers_of(table(thread)).seen() for thread in threads]
    mean, p99 = reap_delay_us([in_one])
    assert (mean, p99) == reap_delay_us([in_time]) == reap_delay_us(on_hosts)
    completed = sum(n for n, _, _ in figures)
    assert mean == pytest.approx(sum(n * late for n, late, _ in figures) / max(completed, 1) / 1e3)
    assert p99 <= max((late for n, _, late in figures if n), default=0) / 1e3 * (1 + 1 / 128)


@pytest.mark.parametrize("p99", [0, 1, 127, 128, 10**6, LIMIT_NS - 1, LIMIT_NS, 2**62])
def test_a_p99_stands_in_the_bucket_of_latencies(p99: int) -> None:
    assert workers_of(table({ThreadCount.COMPLETED: 3, P99: p99})).seen().p99s == {bucket_of(p99): 3}


def test_one_bad_subinterval_is_not_the_p99_of_all() -> None:
    good, bad = table({ThreadCount.COMPLETED: 100, P99: 64 * US}), table({ThreadCount.COMPLETED: 100, P99: 9000 * US})
    assert reap_delay_us([workers_of(good, bad, good).seen()])[1] == pytest.approx(64, rel=1 / 64)
    assert reap_delay_us([workers_of(bad, bad, good).seen()])[1] == pytest.approx(9000, rel=1 / 64)


def findings(thread: Thread, iops: Iops = 400.0, service_us: int = 1000, cpu: tuple[float, float] = (20, 10)) -> str:
    """The findings of a host with one workload thread."""
    rollups = Rollups.build([instance(0, "h1")], [])
    merger = merger_of(rollups)
    window = Window(merger.layout)
    samples = {(0, SERVICE): [service_us * US] * DONE}
    if iops != "max":
        samples |= {(0, RESPONSE): [service_us * US] * DONE, (0, LATENESS): [0] * DONE}
    data = HostData(1, 1, samples, {(0, Count.DUE): DONE, (0, Count.SUBMITTED): DONE, (0, Count.COMPLETED): DONE})
    figures = {ThreadCount.SWAPPED: 1, ThreadCount.COMPLETED: DONE} | dict(thread)
    threads = packed(table(figures)[0], ArrayType.I64)
    for k in range(SUBINTERVALS):
        merger.open(k)
        merger.add("h1", result(data, k, LENGTH, threads=threads, cpu=cpu))
        window.add(merger.close())
    settings = Settings.of(rollups, {("h1", 0): Parameters(iops=iops)})
    return "; ".join(str(one) for one in check_validity(window.measurement(), settings, 0.0025, 5.0).findings[0])


def late(mean_us: int, p99_us: int = 0) -> Thread:
    return {SUM: DONE * mean_us * US, P99: p99_us * US}


@pytest.mark.parametrize(
    ("thread", "iops", "service_us", "says"),
    [
        ({}, 400.0, 1000, ""),
        (late(100), 400.0, 1000, ""),
        (late(101), 400.0, 1000, "reap_delay[note] (10% of the mean)"),
        (late(250), 400.0, 1000, "reap_delay[note] (25% of the mean)"),
        (late(260), 400.0, 1000, "reap_delay[invalid] (26% of the mean)"),
        (late(10, 110), 400.0, 1000, "reap_delay[note] (11% of the p99)"),
        (late(110, 400), 400.0, 1000, "reap_delay[invalid] (11% of the mean, 40% of the p99)"),
        (late(5000, 0), 400.0, 1000, "reap_delay[invalid] (100% of the mean)"),  # by sampling it may come out as more
        # where a thread is always at work, its batches are part of the load
        (late(900, 898), "max", 1000, "reap_delay[note] (90% of the mean, 90% of the p99)"),
        # a thread's own pass, beside a device that is as fast as that
        (late(9, 9), 400.0, 10, ""),
        (late(10, 9), 400.0, 10, "reap_delay[invalid] (100% of the mean)"),
    ],
)
def test_reap_delays(thread: Thread, iops: Iops, service_us: int, says: str) -> None:
    assert findings(thread, iops, service_us) == says


@pytest.mark.parametrize("iops", ["max", 400.0])
@pytest.mark.parametrize(
    ("thread", "cpu", "says"),
    [
        ({CPU: LENGTH}, (20.0, 94.0), "host_limit[note] (busiest workload thread 100 %)"),
        ({CPU: LENGTH // 2}, (20.0, 94.0), ""),
        ({CPU: LENGTH // 2}, (20.0, 96.0), "host_limit[note] (busiest core 96 %)"),
        # what spins keeps its core busy, and its own work is what counts
        ({CPU: LENGTH, BUSY_WAIT: LENGTH // 2}, (20.0, 100.0), ""),
        ({CPU: LENGTH, BUSY_WAIT: LENGTH // 32}, (20.0, 100.0), "host_limit[note] (busiest core 100 %)"),
    ],
)
def test_a_busy_generator_is_noted(thread: Thread, iops: Iops, cpu: tuple[float, float], says: str) -> None:
    assert findings(thread, iops, cpu=cpu) == says
