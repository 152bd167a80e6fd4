"""How busy a host's workload threads were over a window, and how late they reaped completions.

Rule: sums, which add over subintervals, threads and hosts. A p99 does not add: the figure is the median of the p99s of
all threads and subintervals, each weighted by its completions. Memory does not grow with the window.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...protocol.counters import ThreadCount
from ...protocol.histogram import BUCKETS
from ..stats.percentiles import EDGES_NS, MIDDLES_NS, NS_PER_US, percentile_buckets
from .arrays import Ints

# Without `spin`, a thread is busy-waiting for a quarter of its time at most.
SPINS_FROM: Final = 0.3
_SUMS: Final = (ThreadCount.CPU_TIME, ThreadCount.BUSY_WAIT, ThreadCount.REAP_DELAY_SUM, ThreadCount.COMPLETED)
_USED: Final = np.array([*_SUMS, ThreadCount.REAP_DELAY_P99])


@dataclass(frozen=True, slots=True)
class ThreadSummary:
    """One host's, over a window."""

    busy_percent: float  # of its busiest thread: time on a core, less what it was busy-waiting
    spins: bool  # a thread keeps its core busy by `spin`: the core's own figure says nothing
    late_ns: int  # reap delay, summed over all completions
    completed: int
    p99s: Mapping[int, int]  # bucket of a thread's p99 of that in a subinterval: how many completions these were of


class ThreadTotals:
    """Adds up one host's threads, subinterval by subinterval."""

    def __init__(self) -> None:
        self._length_ns = 0
        self._sums = np.zeros((0, len(_SUMS)), np.int64)
        self._p99s: dict[int, int] = {}

    def add(self, threads: Ints, length_ns: int) -> None:
        """`threads`: (threads, ThreadCount) of one result."""
        if len(threads) > len(self._sums):
            self._sums = np.pad(self._sums, ((0, len(threads) - len(self._sums)), (0, 0)))
        used = threads[:, _USED]
        self._sums[: len(threads)] += used[:, :-1]
        self._length_ns += length_ns
        buckets = EDGES_NS[:-1].searchsorted(used[:, -1], "right") - 1
        for bucket, completed in zip(buckets.tolist(), used[:, -2].tolist(), strict=True):
            if completed:
                self._p99s[bucket] = self._p99s.get(bucket, 0) + completed

    def seen(self) -> ThreadSummary:
        cpu, spun, late, completed = self._sums.T
        length_ns = max(self._length_ns, 1)
        return ThreadSummary(
            busy_percent=float(np.max(cpu - spun, initial=0) / length_ns * 100),
            spins=bool(np.any(spun > SPINS_FROM * length_ns)),
            late_ns=int(late.sum()),
            completed=int(completed.sum()),
            p99s=dict(self._p99s),
        )


def reap_delay_us(seen: Iterable[ThreadSummary]) -> tuple[float, float]:
    """(mean, p99) of the reap delay on some hosts, in microseconds."""
    late_ns, p99s = 0, np.zeros((1, BUCKETS), np.int64)
    for one in seen:
        late_ns += one.late_ns
        for bucket, count in one.p99s.items():
            p99s[0, bucket] += count
    completed = int(p99s.sum())
    if not completed:
        return 0.0, 0.0
    buckets, _ = percentile_buckets(p99s, (0.5,))
    return late_ns / completed / NS_PER_US, float(MIDDLES_NS[buckets[0, 0]]) / NS_PER_US
