"""I/O errors of a step, and I/Os that had not completed when a host stopped: which workload instances they belong to.

Rule: what was caught after the end took no longer than `longest_caught_ns`, so an I/O that was older than that at the
last boundary is one that was not caught. What was younger then may be of any instance that had I/O in flight.
"""

import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ....protocol.counters import Count
from ....protocol.messages import Result, Stopped
from ...rollup.instances import Rollups
from ...rollup.validity import ScopedFinding
from ...text.suggestions import listed
from ...verdicts import Finding, Reason, Severity

MOST_NAMED: Final = 5  # workload instances that are spelled out
MOST_FAULTS: Final = 20  # kinds of I/O errors that are reported one by one

Report = Callable[[str, str, str], None]  # host, kind, text: an event
Find = Callable[[ScopedFinding], None]


@dataclass(frozen=True, slots=True)
class Hung:
    """I/Os of one host that did not complete."""

    count: int
    oldest_ns: int
    numbers: tuple[int, ...]  # of the workload instances; of all that it may be of where `sure` is false
    sure: bool
    oldest_at_end_ns: int  # how long the oldest of theirs had been under way at the last boundary

    @property
    def words(self) -> str:
        return f"{self.count:,} I/Os have not completed, the oldest for {self.oldest_ns / 1e9:.1f} s"


def hung(stopped: Stopped, last: Result | None, numbers: Sequence[int]) -> Hung | None:
    """`last`: the host's last result; `numbers`: its workload instances, in the result's order. None: all completed."""
    if not stopped.uncaught:
        return None
    if last is None:
        return Hung(stopped.uncaught, stopped.oldest_uncaught_ns, tuple(numbers), False, 0)
    counts = np.frombuffer(last.counts.data, "<i8").reshape(-1, len(Count))
    oldest, flying = counts[:, Count.OLDEST_IN_FLIGHT_NS], counts[:, Count.IN_FLIGHT] > 0
    surely = flying & (oldest > stopped.longest_caught_ns)
    those = surely if surely.any() else flying
    instances = tuple(numbers[place] for place in np.flatnonzero(those).tolist())
    at_end_ns = int(oldest[those].max(initial=0))
    sure = bool(surely.any()) or len(instances) == 1
    return Hung(stopped.uncaught, stopped.oldest_uncaught_ns, instances, sure, at_end_ns)


class IoFaults:
    """State: which I/O errors of a step were reported, and which instances have I/Os that did not complete."""

    def __init__(self, rollups: Rollups, length_ns: int, report: Report, find: Find) -> None:
        """`find` gets each finding."""
        self._rollups = rollups
        self._length_ns = length_ns
        self._report = report
        self._find = find
        self._reported: set[tuple[str, int, int, bool]] = set()  # host, number, errno, of every I/O
        self.hung: list[tuple[str, int]] = []  # (host, number)

    def errors(self, host: str, result: Result) -> None:
        """Report the first I/O errors of each kind and workload instance, and the first subinterval in which nothing
        but errors came of it; how many there are, rows say."""
        if not result.faults:
            return
        counts = np.frombuffer(result.counts.data, "<i8").reshape(-1, len(Count))
        completed = dict(zip(self._rollups.order(host), counts[:, Count.COMPLETED].tolist(), strict=True))
        for fault in result.faults:
            every = not completed[fault.number]
            key = host, fault.number, fault.errno, every
            if key not in self._reported and len(self._reported) < MOST_FAULTS:
                self._reported.add(key)
                kind = errno.errorcode.get(fault.errno, str(fault.errno)) if fault.errno else "short transfers"
                said = f"every I/O failed, {kind}" if every else kind
                text = f"{self._id(host, fault.number)}: {said} ({fault.count:,} in subinterval {result.subinterval})"
                self._report(host, "io_errors", text)

    def stop_run(self, host: str, since: int) -> None:
        """Its errors end the run; nothing from subinterval `since` on is a measurement."""
        self._find(ScopedFinding(Finding(Reason.IO_ERRORS, "on_io_error: stop", Severity.INVALID), host, since=since))
        self._report(host, "io_errors", "on_io_error: stop; the run is halted")

    def stopped(self, host: str, stopped: Stopped, newest: Result | None, running: int) -> None:
        """Report the I/Os that failed or had not completed when a host stopped."""
        found = hung(stopped, newest, self._rollups.order(host))
        if found is not None:
            self._report_hung(host, found, newest.subinterval if newest else running)
        if stopped.failed:
            text = f"{stopped.failed:,} I/Os that were in flight at the end of the step failed: no row counts them"
            self._report(host, "io_errors", text)

    def _report_hung(self, host: str, hung: Hung, last: int) -> None:
        """With the LUNs; it concerns the subintervals, up to `last`, in which they were under way."""
        names = listed([str(self._id(host, number)) for number in hung.numbers], MOST_NAMED)
        words = f"{hung.words}: {'' if hung.sure else 'perhaps '}of {names}"
        self._report(host, "hung_ios", words)
        since = max(0, last + 1 - -(-hung.oldest_at_end_ns // self._length_ns))
        for number in hung.numbers:
            self._find(ScopedFinding(Finding(Reason.HUNG_IOS, words), host, number, since))
        self.hung += [(host, number) for number in hung.numbers]

    def _id(self, host: str, number: int) -> str:
        return next((one.id for one in self._rollups.instances if (one.host, one.number) == (host, number)), "?")
