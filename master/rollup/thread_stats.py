"""How busy a host's workload threads were over a window.

Rule: sums, which add over subintervals. Memory does not grow with the window.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from ...protocol.counters import ThreadCount
from ..stats.percentiles import NS_PER_US
from .arrays import Ints

# Where others want its core, a thread busy-waits for a sixteenth of its time at most, unless with `spin: on`.
SPINS_FROM: Final = 0.3
BUSY_PERCENT: Final = 95.0  # a thread, or a core, that had no time left
IDLE_PERCENT: Final = 50.0  # a thread that could drive as much again
_SUMS: Final = (ThreadCount.CPU_TIME, ThreadCount.BUSY_WAIT, ThreadCount.IN_SUBMIT, ThreadCount.SUBMIT_CALLS)


@dataclass(frozen=True, slots=True)
class ThreadSummary:
    """One host's, over a window."""

    busy_percent: float  # of its busiest thread: time on a core, less what it was busy-waiting
    busiest: int  # number of that thread
    busy: int  # threads without time left
    idle: int  # threads that could drive as much again
    threads: int
    spins: bool  # a thread keeps its core busy by busy-waiting: the core's own figure says nothing
    submit_us: float  # mean time of a submit call, over all threads


class ThreadTotals:
    """Adds up one host's threads, subinterval by subinterval."""

    def __init__(self) -> None:
        self._length_ns = 0
        self._sums = np.zeros((0, len(_SUMS)), np.int64)

    def add(self, threads: Ints, length_ns: int) -> None:
        """`threads`: (threads, ThreadCount) of one result."""
        if len(threads) > len(self._sums):
            self._sums = np.pad(self._sums, ((0, len(threads) - len(self._sums)), (0, 0)))
        self._sums[: len(threads)] += threads[:, _SUMS]
        self._length_ns += length_ns

    def seen(self) -> ThreadSummary:
        cpu, spun, in_submit, calls = self._sums.T
        length_ns = max(self._length_ns, 1)
        percent = np.minimum((cpu - spun) / length_ns, 1) * 100  # a length may end before the threads' work does
        return ThreadSummary(
            busy_percent=float(np.max(percent, initial=0)),
            busiest=int(np.argmax(percent)) if len(percent) else 0,
            busy=int(np.count_nonzero(percent >= BUSY_PERCENT)),
            idle=int(np.count_nonzero(percent < IDLE_PERCENT)),
            threads=len(percent),
            spins=bool(np.any(spun > SPINS_FROM * length_ns)),
            submit_us=float(in_submit.sum() / max(calls.sum(), 1) / NS_PER_US),
        )
