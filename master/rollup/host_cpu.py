"""A host's CPU in one subinterval or over a window: how busy it was, and what kept the slave's threads from running.

Rule: shares of time, so that over several subintervals each counts by its length. What stalled and throttled the slave
is time too; the longest stall is a maximum.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np

from ...protocol.payload import CpuTaken
from .arrays import Floats, Ints

# (wait, others beside): a thread that wakes often waits some microseconds each time, on an idle machine too, so a short
# wait needs others with a good part of the core. With little of others, threads wait for each other.
LEAST_WAIT_PERCENT: Final = ((1.0, 25.0), (5.0, 5.0))
LEAST_STEAL_PERCENT: Final = 1.0  # of a core's time: the p99 may show it
LEAST_STOPPED: Final = 1e-3  # of the time: the p99.9 may show it


class HostCpu(IntEnum):
    """Columns of (hosts, HostCpu), percent. Over several hosts: the mean, but of HIGHEST the highest."""

    BUSY = 0  # mean over cores
    BUSIEST = 1  # the busiest core
    OTHERS = 2
    STEAL = 3
    WAIT = 4
    THROTTLED = 5
    STALLED = 6


HIGHEST: Final = (HostCpu.BUSIEST, HostCpu.WAIT, HostCpu.STALLED)


def host_cpu(busy: Sequence[float], taken: CpuTaken, length_ns: int) -> list[float]:
    """A host's row; `busy` percent of each core, at least one."""
    cores_ns = length_ns * len(busy)
    return [
        sum(busy) / len(busy),
        max(busy),
        taken.others,
        taken.steal,
        taken.wait,
        100 * taken.throttled_ns / cores_ns,
        100 * taken.stalled_ns / length_ns,
    ]


@dataclass(slots=True)
class TakenTotals:
    """Adds up what one host's threads did not get, subinterval by subinterval."""

    length_ns: int = 0
    others: float = 0.0  # percent x nanoseconds, as all percentages here
    others_user: float = 0.0
    others_beside: float = 0.0
    steal: float = 0.0
    steal_beside: float = 0.0
    busiest_beside: float = 0.0
    wait: float = 0.0
    throttled_ns: int = 0
    stalled_ns: int = 0
    longest_stall_ns: int = 0

    def add(self, taken: CpuTaken, length_ns: int) -> None:
        self.length_ns += length_ns
        self.others += taken.others * length_ns
        self.others_user += taken.others_user * length_ns
        self.others_beside += taken.others_beside * length_ns
        self.steal += taken.steal * length_ns
        self.steal_beside += taken.steal_beside * length_ns
        self.busiest_beside += taken.busiest_beside * length_ns
        self.wait += taken.wait * length_ns
        self.throttled_ns += taken.throttled_ns
        self.stalled_ns += taken.stalled_ns
        self.longest_stall_ns = max(self.longest_stall_ns, taken.longest_stall_ns)

    def seen(self) -> CpuTaken:
        """Over all of them."""
        over = max(self.length_ns, 1)
        return CpuTaken(
            self.others / over, self.others_user / over, self.others_beside / over, self.steal / over,
            self.steal_beside / over, self.busiest_beside / over, self.wait / over, self.throttled_ns,
            self.stalled_ns, self.longest_stall_ns,
        )  # fmt: skip


def _users(taken: CpuTaken) -> str:
    """Whoever used what the slave did not: kernel threads run in kernel mode alone."""
    processes = taken.others_user * 2 >= taken.others
    return "other processes" if processes else "the kernel (its threads, interrupts) and other processes"


@dataclass(frozen=True, slots=True)
class Contention:
    """Something that kept a host's threads from running."""

    percent: float  # of the time, for the thread that it kept longest
    detail: str
    sentence: str  # the same, in short


def lost_shares(taken: CpuTaken, length_ns: int, kept_ns: Ints, stolen_ns: Ints) -> Floats:
    """The part of the time, 0 to 1, for which the threads of each of a host's instances were kept from running.

    `kept_ns`, `stolen_ns`: (instances,) over `length_ns`, see Count. What the host as a whole shows none of is noise.
    A thread waits, or loses its core to the hypervisor, never both; a machine's stall may be either of them.
    """
    waited = kept_ns * (_waited(taken) or _throttled(taken, length_ns))
    stolen = stolen_ns * (taken.steal_beside >= LEAST_STEAL_PERCENT)
    stalled_ns = taken.stalled_ns if _stalled(taken, length_ns) else 0
    shares: Floats = np.minimum(np.maximum(waited + stolen, stalled_ns) / length_ns, 1.0)
    return shares


def _waited(taken: CpuTaken) -> bool:
    return any(taken.wait >= wait and taken.others_beside >= others for wait, others in LEAST_WAIT_PERCENT)


def _throttled(taken: CpuTaken, length_ns: int) -> bool:
    return taken.throttled_ns > LEAST_STOPPED * length_ns


def _stalled(taken: CpuTaken, length_ns: int) -> bool:
    return taken.stalled_ns > LEAST_STOPPED * length_ns


def _part(time_ns: float, length_ns: int) -> str:
    """Some milliseconds are much of a short time: `2 ms (31 % of the time)`."""
    return f"{time_ns / 1e6:,.0f} ms ({100 * time_ns / length_ns:.2g} % of the time)"


def contentions(taken: CpuTaken, length_ns: int) -> list[Contention]:
    """The causes that kept a host's threads from running so much that figures may show it."""
    causes = []
    if _waited(taken):
        used = f"{_users(taken)} used {taken.others:.0f} % of this host's CPU"
        beside = (
            f" and {taken.others_beside:.0f} % of one core, a workload thread waited {taken.wait:.0f} % of the time "
            "for its core"
        )
        causes.append(Contention(taken.wait, used + beside, used))
    if taken.steal_beside >= LEAST_STEAL_PERCENT:
        stolen = _part(taken.steal_beside / 100 * length_ns, length_ns)
        causes.append(
            Contention(
                taken.steal_beside,
                f"the hypervisor took {taken.steal:.2g} % of the cores and {taken.steal_beside:.2g} % of a workload "
                "thread's core (steal)",
                f"the hypervisor took a workload thread's core for {stolen}",
            )
        )
    if _throttled(taken, length_ns):
        throttled = f"the cgroup throttled the slave for {taken.throttled_ns / 1e6:,.0f} ms"
        # Of several cores: a thread was held back for what it waited, at most.
        percent = min(taken.wait, 100 * taken.throttled_ns / length_ns)
        causes.append(Contention(percent, throttled, throttled))
    elif _stalled(taken, length_ns):
        causes.append(
            Contention(
                100 * taken.stalled_ns / length_ns,
                f"machine stalls: no thread of the slave ran for {taken.stalled_ns / 1e6:,.0f} ms in total, "
                f"{taken.longest_stall_ns / 1e6:,.0f} ms at the longest",
                f"the whole machine stalled for {_part(taken.stalled_ns, length_ns)}",
            )
        )
    return causes
