"""I/Os that had not come back when a host stopped: of which workload instances they are, as far as its data tell.

Rule: what was caught after the end took no longer than `longest_caught_ns`, so an I/O that was older than that at the
last boundary is one that was not caught. What was younger then may be of any instance that had I/O in flight.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...protocol.counters import Count
from ...protocol.messages import Result, Stopped


@dataclass(frozen=True, slots=True)
class Hung:
    """What did not come back to one host."""

    count: int
    oldest_ns: int
    numbers: tuple[int, ...]  # of the workload instances; of all that it may be of where `sure` is false
    sure: bool
    oldest_at_end_ns: int  # how long the oldest of theirs had been under way at the last boundary

    @property
    def words(self) -> str:
        return f"{self.count:,} I/Os have not come back, the oldest for {self.oldest_ns / 1e9:.1f} s"


def hung(stopped: Stopped, last: Result | None, numbers: Sequence[int]) -> Hung | None:
    """`last`: the host's last result; `numbers`: its workload instances, in the result's order. None: all came back."""
    if not stopped.uncaught:
        return None
    if last is None:
        return Hung(stopped.uncaught, stopped.oldest_uncaught_ns, tuple(numbers), False, 0)
    counts = np.frombuffer(last.counts.data, "<i8").reshape(-1, len(Count))
    oldest, flying = counts[:, Count.OLDEST_IN_FLIGHT_NS], counts[:, Count.IN_FLIGHT] > 0
    surely = flying & (oldest > stopped.longest_caught_ns)
    those = surely if surely.any() else flying
    found = tuple(numbers[place] for place in np.flatnonzero(those).tolist())
    at_end_ns = int(oldest[those].max(initial=0))
    sure = bool(surely.any()) or len(found) == 1
    return Hung(stopped.uncaught, stopped.oldest_uncaught_ns, found, sure, at_end_ns)
