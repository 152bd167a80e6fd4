"""What workload threads say of themselves: how busy they were."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from ivypy.master.rollup.instances import Rollups
from ivypy.master.rollup.parameters_in_force import Settings
from ivypy.master.rollup.thread_stats import ThreadTotals
from ivypy.master.rollup.validity import check_validity
from ivypy.master.rollup.window import Window
from ivypy.protocol.counters import LATENESS, RESPONSES, SERVICES, Count, ThreadCount
from ivypy.protocol.parameters import Iops, Parameters
from ivypy.protocol.payload import ArrayType, CpuTaken
from tests.support.rollup import instance, merger_of
from tests.support.rollup_results import HostData, packed, result

US = 1000
S = 10**9
LENGTH = 5 * S
SUBINTERVALS = 20
DONE = 2000  # I/Os in each

Thread = Mapping[ThreadCount, int]
CPU, BUSY_WAIT = ThreadCount.CPU_TIME, ThreadCount.BUSY_WAIT


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
        (({CPU: S, BUSY_WAIT: S // 4},), 75, False),  # more than the small budget: not yet taken for spinning
        (({CPU: S // 2, BUSY_WAIT: S},), 0, True),  # put aside while it spun
    ],
)
def test_how_busy_threads_are(threads: tuple[Thread, ...], busy: float, spins: bool) -> None:
    seen = workers_of(table(*threads), table(*threads)).seen()
    assert (seen.busy_percent, seen.spins) == (busy, spins)


def findings(
    threads: Sequence[Thread], iops: Iops = 400.0, cpu: tuple[float, float] = (20, 10), wait: float = 0.0
) -> str:
    """The findings of a host with these workload threads."""
    rollups = Rollups.build([instance(0, "h1")], [])
    merger = merger_of(rollups)
    window = Window(merger.layout)
    samples = {(0, SERVICES[0]): [1000 * US] * DONE}
    if iops != "max":
        samples |= {(0, RESPONSES[0]): [1000 * US] * DONE, (0, LATENESS): [0] * DONE}
    data = HostData(1, 1, samples, {(0, Count.DUE): DONE, (0, Count.SUBMITTED): DONE, (0, Count.COMPLETED): DONE})
    figures = [{ThreadCount.SWAPPED: 1, ThreadCount.COMPLETED: DONE} | dict(thread) for thread in threads]
    columns = packed([value for row in table(*figures) for value in row], ArrayType.I64)
    for k in range(SUBINTERVALS):
        merger.open(k)
        merger.add("h1", result(data, k, LENGTH, threads=columns, cpu=cpu, taken=CpuTaken(wait=wait)))
        window.add(merger.close())
    settings = Settings.of(rollups, {("h1", 0): Parameters(iops=iops)})
    return "; ".join(str(one) for one in check_validity(window.measurement(), settings, 0.0025, 5.0).findings[0])


@pytest.mark.parametrize("iops", ["max", 400.0])
@pytest.mark.parametrize(
    ("threads", "cpu", "says"),
    [
        ([{CPU: LENGTH}], (20.0, 94.0), "host_limit[note] (busiest workload thread 100 %)"),
        ([{CPU: LENGTH // 2}], (20.0, 94.0), ""),
        ([{CPU: LENGTH // 2}], (20.0, 96.0), "host_limit[note] (busiest core 96 %)"),
        # what spins keeps its core busy, and its own work is what counts
        ([{CPU: LENGTH, BUSY_WAIT: LENGTH // 2}], (20.0, 100.0), ""),
        ([{CPU: LENGTH, BUSY_WAIT: LENGTH // 32}], (20.0, 100.0), "host_limit[note] (busiest core 100 %)"),
        # others of the host could have helped
        (
            [{}, {CPU: LENGTH}, *[{}] * 14],
            (20.0, 100.0),
            "host_limit[note] (one thread of 16 was busy, 15 had time left (h1, thread 1 100 %): use more of them with "
            "`spread`)",
        ),
        (
            [{CPU: 96 * LENGTH // 100}, {CPU: 98 * LENGTH // 100}, {CPU: LENGTH // 4}, {CPU: LENGTH // 2}],
            (20.0, 100.0),
            "host_limit[note] (2 threads of 4 were busy, 1 had time left (h1, thread 1 98 %): use more of them with "
            "`spread`)",
        ),
        ([{CPU: LENGTH}, {CPU: LENGTH}], (20.0, 94.0), "host_limit[note] (busiest workload thread 100 %)"),
        ([{CPU: LENGTH}, {CPU: LENGTH // 2}], (20.0, 94.0), "host_limit[note] (busiest workload thread 100 %)"),
        # the neighbour busy-waits: it has time left
        (
            [{CPU: LENGTH}, {CPU: LENGTH, BUSY_WAIT: LENGTH}],
            (20.0, 100.0),
            "host_limit[note] (one thread of 2 was busy, 1 had time left (h1, thread 0 100 %): use more of them with "
            "`spread`)",
        ),
        ([{}, {}], (20.0, 94.0), ""),
    ],
)
def test_a_busy_generator_is_noted(threads: Sequence[Thread], iops: Iops, cpu: tuple[float, float], says: str) -> None:
    assert findings(threads, iops, cpu=cpu) == says


@pytest.mark.parametrize(("wait", "says"), [(5.0, "one thread of 2 was busy"), (54.0, "busiest workload thread 100 %")])
def test_a_thread_that_waits_for_its_core_has_no_time_left(wait: float, says: str) -> None:
    assert says in findings([{CPU: LENGTH}, {CPU: LENGTH // 3}], "max", cpu=(20.0, 94.0), wait=wait)
