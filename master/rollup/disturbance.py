"""Whether the generator was disturbed in a subinterval: a workload thread wanted a core of its host and did not get it.

Rule (*Independence*): this follows from what the slave measures about itself (`Result.taken`), never from latencies or
rates: what is set aside must not be chosen by the figures. So what follows from how fast the storage is does not
disturb: a CPU quota, which the slave's own work uses up, and kernel threads, which do the storage's work. For the same
reason the shares are of the subinterval's length, not of the time for which a thread wanted its core.

A limit of it: a thread that sleeps in a stall of the storage wants no core, so run-queue delay in such a subinterval is
short, and it is set aside less often than others. Nothing with a fault (an I/O error) is set aside: it has to be seen.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ...protocol.messages import Result
from ...protocol.payload import CpuTaken
from ..verdicts import Finding, Reason

_THIS_HOST: Final = "local"  # as plans name the machine that the controller runs on
MOST_UNDISTURBED_PERCENT: Final = 5.0  # of the subinterval's length; above, the generator was disturbed


class Cause(StrEnum):
    """The causes that keep workload threads from running."""

    RUN_QUEUE_DELAY = "run-queue delay"
    STEAL = "steal"
    MACHINE_STALL = "machine stall"


@dataclass(frozen=True, slots=True)
class Disturbance:
    """The worst that one subinterval's hosts did to the generator."""

    cause: Cause
    host: str
    percent: float  # of the subinterval's length
    others_percent: float = 0.0  # of the time of the host's cores: what other programs used


def lost_percent(taken: CpuTaken, length_ns: int) -> dict[Cause, float]:
    """Percent of a subinterval for which the host's worst-placed workload thread lost its core, by cause.

    Run-queue delay counts as far as other processes, in user mode, used the core: their part of what others used on the
    whole host stands for their part on that core.
    """
    processes = min(taken.others_user / taken.others, 1.0) if taken.others else 0.0
    return {
        Cause.RUN_QUEUE_DELAY: min(taken.wait, taken.others_beside * processes),
        Cause.STEAL: taken.steal_beside,
        Cause.MACHINE_STALL: min(100 * taken.stalled_ns / max(length_ns, 1), 100.0),
    }


def disturbance(results: Mapping[str, Result]) -> Disturbance | None:
    """Find what disturbed the generator most in one subinterval, by host; None where nothing did above the threshold,
    or where a host had I/O errors.
    """
    if any(result.faults for result in results.values()):
        return None
    lost = [
        Disturbance(cause, host, percent, result.taken.others)
        for host, result in results.items()
        for cause, percent in lost_percent(result.taken, result.length_ns).items()
        if percent > MOST_UNDISTURBED_PERCENT
    ]
    return max(lost, key=lambda one: one.percent, default=None)


def causes(disturbances: Iterable[Disturbance]) -> str:
    """In words, the most frequent first: `run-queue delay, machine stall`."""
    return ", ".join(cause for cause, _ in Counter(one.cause for one in disturbances).most_common())


def too_busy(disturbances: Sequence[Disturbance]) -> str:
    """Why nothing can be said, in words; at least one disturbance: `this host is too busy to say: others use 95 % of
    the CPU (run-queue delay)`."""
    host, _ = Counter(one.host for one in disturbances).most_common(1)[0]
    own = [one for one in disturbances if one.host == host]
    name = "this host" if host == _THIS_HOST else host
    others = sum(one.others_percent for one in own) / len(own)
    lost = sum(one.percent for one in own) / len(own)
    if others >= lost and Cause.RUN_QUEUE_DELAY in {one.cause for one in own}:
        return f"{name} is too busy to say: others use {others:.0f} % of the CPU ({causes(own)})"
    return f"{name} is too busy to say: threads had no core for {lost:.0f} % of the time ({causes(own)})"


def set_aside_finding(disturbances: Sequence[Disturbance], counted: int) -> tuple[Finding, ...]:
    """The note of a measurement of `counted` subintervals, without the disturbed ones; () if there were none."""
    if not disturbances:
        return ()
    of_all = counted + len(disturbances)
    return (Finding(Reason.SET_ASIDE, f"{len(disturbances)} of {of_all} subintervals: {causes(disturbances)}"),)
