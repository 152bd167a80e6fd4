"""Sees machine stalls: stretches in which no thread of the slave ran, though one was due to run.

A thread naps for NAP_S, over and over, on any core that the slave may use. If it wakes LEAST_NS or more too late, and
all threads of the process together ran for less than a tenth of that, then nothing of the slave had a core: the
hypervisor stopped the machine, a quota stopped the process, or others held every core. Python's own lock (the GIL)
makes the witness late as well, but then another thread of the process ran.

Trap: where the kernel does not know of stolen time, a thread that was on a core when the machine stopped seems to have
run; then that stall is not seen here, but as the thread's poll gap.
"""

import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

NAP_S: Final = 0.02
LEAST_NS: Final = 20_000_000  # by which it wakes too late; less, a scheduler makes one wait beside other programs
RAN: Final = 0.1  # of the stretch, by all threads together: then it was no stall


@dataclass(frozen=True)
class Stalls:
    total_ns: int
    longest_ns: int


class StallWitness:
    """Watches from its making until `close`."""

    def __init__(self, cores: Sequence[int]) -> None:
        """`cores`: those that the slave may use."""
        self._cores = cores
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._seen: list[tuple[int, int]] = []  # (when it ended, how long it was) on CLOCK_MONOTONIC
        threading.Thread(target=self._watch, name="stall witness", daemon=True).start()

    def take(self, until_ns: int) -> Stalls:
        """The stalls that ended since the last call and until this instant: one that lasts beyond it is the next's."""
        with self._lock:
            ended = [stall_ns for end_ns, stall_ns in self._seen if end_ns <= until_ns]
            self._seen = [stall for stall in self._seen if stall[0] > until_ns]
        return Stalls(sum(ended), max(ended, default=0))

    def close(self) -> None:
        self._closed.set()

    def _watch(self) -> None:
        with suppress(OSError):  # then it runs where the calling thread may
            os.sched_setaffinity(0, self._cores)
        before_ns, ran_ns = time.monotonic_ns(), time.process_time_ns()
        while not self._closed.wait(NAP_S):
            now_ns, now_ran_ns = time.monotonic_ns(), time.process_time_ns()
            if stall_ns := stall_in(now_ns - before_ns, now_ran_ns - ran_ns):
                with self._lock:
                    self._seen.append((now_ns, stall_ns))
            before_ns, ran_ns = now_ns, now_ran_ns


def stall_in(nap_ns: int, ran_ns: int) -> int:
    """How many nanoseconds of a nap were a stall, 0 for none; all threads of the process ran for `ran_ns` in it."""
    late_ns = nap_ns - round(NAP_S * 1e9)
    return late_ns if late_ns >= LEAST_NS and ran_ns < RAN * late_ns else 0
