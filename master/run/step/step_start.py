"""The start of a step: `go` to all hosts, which begin at one instant.

Rule: hosts are prepared before, so `go` only has to reach them, and their threads to wake up. The lead, from `go` to
the start, follows from what the hosts needed before. If a host is not ready by then (a busy host answers late), those
that began are halted, the host is waited for, and the step starts anew, once; nothing of the first attempt is kept.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ....protocol.messages import Go
from ....protocol.payload import packed_numbers
from ....protocol.states import State as HostState
from ...hosts.driver import DRIVING, Driver, barrier
from ...rollup.validity import ScopedFinding
from ...verdicts import Finding, Reason
from ..setup.fleet import Fleet
from .boundaries import Boundaries
from .io_faults import Find
from .result_barrier import ResultBarrier
from .step_commands import farthest_s, send_halt
from .step_context import StepContext
from .step_hosts import StepHosts

LEAD_S: Final = 0.3  # from `go` to the start at least: for the message, the threads, and a busy controller
LEAD_PER_HOST_S: Final = 0.001
LEAD_MARGIN_S: Final = 0.2  # beyond two round trips to the farthest host
LONGEST_LEAD_S: Final = 5.0  # whatever one host's round trip is
READY_FACTOR: Final = 2  # times what the slowest host needed for its last `go`


class StepStart:
    """Starts one step's hosts."""

    def __init__(
        self,
        context: StepContext,
        hosts: StepHosts,
        boundaries: Boundaries,
        results: ResultBarrier,
        placed: Callable[[Driver], None],
    ) -> None:
        """`placed`: called as a host's start is placed."""
        self._fleet, self._rollups, self._recorder = context.fleet, context.rollups, context.recorder
        self._length_ns, self._timeout_s = context.length_ns, context.start_timeout_s
        self._hosts = hosts
        self._boundaries = boundaries
        self._results = results
        self._placed = placed

    async def go(self, find: Find) -> int:
        """Start all hosts at one instant, which is returned. Those that are not ready in time twice are late."""
        part = self._hosts.part
        start_ns, ready, failed = await self._attempt(part, lead_s(part, self._timeout_s))
        if any(driver.has_pending(Go) for driver in failed) and not self._fleet.interrupted.is_set():
            names = ", ".join(driver.name for driver in failed if driver.has_pending(Go))
            self._recorder.event("", "start", f"not ready at the start: {names}; the step starts anew, once")
            again = await self._put_off()
            start_ns, ready, failed_again = await self._attempt(again, lead_s(again, self._timeout_s))
            failed = {driver: why for driver, why in failed.items() if driver not in again} | failed_again
        self._hosts.begin(ready)
        for driver, reason in failed.items():
            self._hosts.not_ready(driver, f"not ready at the start: {reason}")
        for name in self._rollups.hosts():
            if name not in self._hosts.names:
                find(ScopedFinding(Finding(Reason.HOST_LOST, f"{name} did not take part"), name))
                self._recorder.event(name, "absent", f"the step begins without it: {self._fleet.absence(name)}")
        for one in _given_up(self._fleet, start_ns, self._length_ns):
            find(one)
        return start_ns

    async def _attempt(self, drivers: Sequence[Driver], lead: float) -> tuple[int, list[Driver], dict[Driver, str]]:
        """Send `go`: (the start, the hosts that are ready by then, why others are not)."""
        lead_ns = round(lead * 1e9)
        start_ns = self._fleet.now_ns() + lead_ns

        async def go(driver: Driver) -> None:
            classes = self._rollups.classes(driver.name)
            self._placed(driver)
            local_ns = driver.clock.to_local(start_ns)
            self._boundaries.begin(driver, local_ns)
            await driver.request(
                Go, start_ns=local_ns, length_ns=self._length_ns,
                order=packed_numbers(classes.order), classes=packed_numbers(classes.class_of),
                sections=self._rollups.sections,
            )  # fmt: skip

        ready, failed = await barrier(drivers, go, self._fleet.lag.deadline(lead_ns / 1e9))
        return start_ns, list(ready), failed

    async def _put_off(self) -> list[Driver]:
        """Halt the hosts that began, and wait for those that have not answered. Returns those that can start anew."""
        deadline = self._fleet.lag.deadline(self._timeout_s)
        halted: set[Driver] = set()
        while self._busy() and not self._fleet.interrupted.is_set():
            if new := [driver for driver in self._busy() if driver.state in DRIVING and driver not in halted]:
                halted.update(new)
                await send_halt(new, self._fleet.lag)
            event = await self._results.next_event(deadline)
            if event is not None:
                self._results.discard(*event)
            elif deadline.has_passed():
                break
        while not self._fleet.inbox.empty():  # states are ahead of events
            self._results.discard(*self._fleet.inbox.get_nowait())
        self._results.begin_anew()
        busy = self._busy()
        return [
            driver
            for driver in self._hosts.part
            if driver.lost is None and driver.state is HostState.IDLE and driver not in busy
        ]

    def _busy(self) -> list[Driver]:
        return [
            driver
            for driver in self._hosts.part
            if driver.lost is None and (driver.state in DRIVING or driver.has_pending(Go))
        ]


def lead_s(drivers: Sequence[Driver], longest_s: float) -> float:
    """From `go` to the start: every host has to receive it, get ready, and answer."""
    far_s = min(2 * farthest_s(drivers) + LEAD_MARGIN_S, LONGEST_LEAD_S)
    slow_s = min(READY_FACTOR * max((driver.ready_s for driver in drivers), default=0.0), longest_s)
    return max(LEAD_S, far_s, slow_s) + LEAD_PER_HOST_S * len(drivers)


def _given_up(fleet: Fleet, start_ns: int, length_ns: int) -> Iterator[ScopedFinding]:
    """Hosts that were given up, which may drive beside the step until their leases end."""
    for name, until_ns in fleet.may_drive().items():
        if until_ns > start_ns:
            words = f"{name} was given up, and its lease ends {(until_ns - start_ns) / 1e9:.1f} s after the start"
            yield ScopedFinding(Finding(Reason.LOST_HOST_ACTIVE, words), until=(until_ns - start_ns) // length_ns)
