"""Barrier 1: merges every live host's result of one subinterval, and handles whatever else hosts send meanwhile.

Rule: the load goes on whatever is awaited here, so a host has seconds, however short a subinterval is: a hiccup costs
nothing but a later decision. A host that is not in by the deadline is late and awaited no longer, until a result of it
arrives by its own deadline again, even if the others, who are nearer, were in before; while none is in, nobody is late
before OF_A_LEASE is over. A controller that was stalled first reads the results that arrived, then extends the deadline
by the stall. A result that arrived is in, though its host may be lost before its subinterval is collected.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from ....protocol.errors import ProtocolError
from ....protocol.messages import DyingWords, Result, Stopped
from ....protocol.payload import Notice
from ...hosts.controller_lag import Deadline
from ...hosts.driver import Delivered, Driver, Event, Lost
from ...rollup.merge import MergedSubinterval
from ..setup.fleet import HaltCause
from .boundaries import Boundaries
from .io_faults import IoFaults
from .step_context import StepContext
from .step_hosts import StepHosts
from .step_merge import StepMerge
from .step_states import NEVER, PATIENCE

USUAL_PATIENCE_NS: Final = 6 * 10**9  # after a subinterval's end
OF_A_LEASE: Final = 0.6  # the most; a host that is silent for half a lease is lost before that
HOLD_HALT_S: Final = 3.0  # after a halt, for the cut results and `stopped`


@dataclass(frozen=True, slots=True)
class Collected:
    """One subinterval's results, as barrier 1 leaves them."""

    interval: MergedSubinterval
    arrived: dict[Driver, int]  # when each result was read, on the controller's clock
    covered: bool  # a host is not in, for a later result of it, which is here, covers this subinterval
    in_ns: int  # when the last awaited event arrived, or the deadline; not before it was waited for; controller's clock


@dataclass(slots=True)
class _Awaited:
    """The subinterval that is awaited."""

    number: int
    arrived: dict[Driver, int] = field(default_factory=dict)  # as Collected has it


class ResultBarrier:
    """Keeps results that arrive early, and passes on everything that hosts send during a step."""

    def __init__(
        self,
        context: StepContext,
        hosts: StepHosts,
        merging: StepMerge,
        boundaries: Boundaries,
        faults: IoFaults,
        joined: Callable[[str, Result], None],
    ) -> None:
        """`joined` gets each late result that was stored."""
        self._fleet, self._recorder, self._progress = context.fleet, context.recorder, context.progress
        self._hosts = hosts
        self._merging = merging
        self._boundaries = boundaries
        self._faults = faults
        self._joined = joined
        self._stop_on_error = context.stop_on_error
        self._length_ns = context.length_ns
        self._longest_ns = round(OF_A_LEASE * context.lease_ns)
        self._patience_ns = max(round(PATIENCE * self._length_ns), min(USUAL_PATIENCE_NS, self._longest_ns))
        self._start_ns = 0  # of the first subinterval; as `collect` was told last
        self._open = _Awaited(0)
        self._holes: dict[int, set[str]] = {}  # by closed subinterval: who takes part, and was not in
        self._early: dict[int, dict[Driver, tuple[Result, int]]] = {}  # by subinterval: result, and when it was read

    async def collect(self, k: int, end_ns: int, halt: Callable[[], Awaitable[int]]) -> Collected:
        """Merge every live host's result of subinterval `k`, which ends at `end_ns` (controller's clock). A host whose
        result has not arrived by the deadline is late. An interrupt calls `halt`, which returns the time of the halt.
        """
        fleet, hosts, patience_ns = self._fleet, self._hosts, self._patience_ns
        self._start_ns = end_ns - (k + 1) * self._length_ns
        self._open = opened = _Awaited(k)
        self._merging.open(k)
        begun_ns = fleet.now_ns()
        hosts.await_live(but={driver for number, those in self._early.items() if number > k for driver in those})
        for driver, (result, arrived_ns) in self._early.pop(k, {}).items():
            self._merge(driver, result, arrived_ns)
        while not fleet.inbox.empty():  # of hosts that are not awaited, too
            self._take(*fleet.inbox.get_nowait())
        in_ns = max((begun_ns, *opened.arrived.values()))
        deadline = Deadline(fleet.lag, end_ns + patience_ns, patience_ns)
        alone = Deadline(fleet.lag, end_ns + max(patience_ns, self._longest_ns), patience_ns)
        while True:
            if fleet.interrupted.is_set() and not self._progress.is_halted:  # though nobody is awaited
                until_ns = await halt() + round(HOLD_HALT_S * 1e9)
                deadline.bring_forward(until_ns)
                alone.bring_forward(until_ns)
            if not (hosts.awaited or hosts.live or self._progress.is_halted):
                hosts.await_late()
            if not hosts.awaited:
                break
            patient = deadline if hosts.live - hosts.awaited else alone
            event = await self.next_event(patient)
            if event is not None:
                in_ns = max(in_ns, self._came_ns(event[1]))
                self._take(*event)
            elif patient.has_passed():
                in_ns = patient.at_ns
                break
        for driver in hosts.in_order(hosts.awaited & hosts.live):
            hosts.is_late(driver, k)
        later = frozenset(driver.name for those in self._early.values() for driver in those)
        interval = await self._merging.close(hosts.taking_part | later)
        if interval.absent and (interval.hosts or later):  # else the step ends without it
            self._holes[k] = set(interval.absent)
        return Collected(interval, opened.arrived, not later.isdisjoint(interval.absent), in_ns)

    @property
    def has_early(self) -> bool:
        """Whether there are results of subintervals that have not been collected yet."""
        return bool(self._early)

    async def next_event(self, deadline: Deadline) -> "tuple[Driver, Event] | None":
        """The next event from a host; None at the deadline, or at the first interrupt."""
        fleet = self._fleet
        if not fleet.inbox.empty():
            return fleet.inbox.get_nowait()
        inbox = asyncio.ensure_future(fleet.inbox.get())
        waits: set[asyncio.Future[Any]] = {inbox}
        if not self._progress.is_halted:
            waits.add(asyncio.ensure_future(fleet.interrupted.wait()))
        wait_s = max(deadline.left_s, 0.0)
        try:
            await asyncio.wait(waits, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
            return inbox.result() if inbox.done() else None
        finally:
            for wait in waits:
                wait.cancel()

    def take_after(self, driver: Driver, event: Event) -> None:
        """Handle an event that arrived after the step's last subinterval; a result in it is not merged."""
        if self._open.number != NEVER:
            self._open = _Awaited(NEVER)
        self._take(driver, event)

    def discard(self, driver: Driver, event: Event) -> None:
        """Handle an event of a start that was given up: its results count for nothing."""
        if not isinstance(event, Delivered | Stopped):
            self._take(driver, event)

    def begin_anew(self) -> None:
        """After a start that was given up."""
        self._merging.begin()

    def _came_ns(self, event: Event) -> int:
        """When an event that barrier 1 may wait for arrived, on the controller's clock; 0 for any other."""
        match event:
            case Delivered(_, arrived_ns):
                return arrived_ns
            case Stopped() | Lost():
                return self._fleet.now_ns()
        return 0

    def _take(self, driver: Driver, event: Event) -> None:
        if not self._fleet.takes_part(driver):
            return
        hosts = self._hosts
        match event:
            case Delivered(result, arrived_ns):
                hosts.note_result(driver, result)
                self._take_result(driver, result, arrived_ns)
            case Stopped():
                self._faults.stopped(driver.name, event, hosts.newest.get(driver), self._progress.running)
                hosts.has_stopped(driver, event, self._first_without(driver), driver in self._open.arrived)
            case DyingWords():
                self._recorder.event(driver.name, "dying_words", f"thread {event.thread}: {event.words}")
                hosts.died(driver, event.words)
            case Notice():
                self._recorder.event(driver.name, event.kind, event.text)
            case Lost():
                hosts.lose(driver, event.reason, self._first_without(driver))

    def _first_without(self, driver: Driver) -> int:
        """The first subinterval that no result of a host will be in, if it leaves now."""
        early = [number for number, those in self._early.items() if driver in those]
        awaited = min(self._open.number, self._progress.running)
        return max(early) + 1 if early else awaited + (driver in self._open.arrived)

    def _take_result(self, driver: Driver, result: Result, at_ns: int) -> None:
        hosts, progress, k = self._hosts, self._progress, self._open.number
        if driver in hosts.aside:
            self._recorder.late(driver.name, result)
            return
        if driver not in hosts.live and driver not in hosts.late:
            return
        late = result.subinterval < k
        if result.last and result.length_ns == 0 and not progress.is_deciding:
            hosts.leave(driver)  # halted before its start: there is nothing to merge
            return
        if result.last and not late and not progress.is_halted and result.subinterval < progress.last:
            self._recorder.late(driver.name, result)
            hosts.ended_early(driver, result.subinterval)
            return
        if wrong := self._boundaries.against(driver, result):
            driver.lose(f"protocol error: the result of subinterval {result.subinterval} is not as placed: {wrong}")
            return
        if late:
            self._join(driver, result)
            if driver in hosts.late and at_ns <= self._deadline_ns(result.subinterval):
                hosts.await_too(driver)
            return
        if driver in hosts.late:
            hosts.is_back(driver, k)
        if result.subinterval > k:  # of `k` there is none: this one covers it, too; or `k` is in already
            hosts.is_in(driver)
            self._early.setdefault(result.subinterval, {})[driver] = (result, at_ns)
        else:
            self._merge(driver, result, at_ns)

    def _deadline_ns(self, subinterval: int) -> int:
        """Until when a result of it is in time, on the controller's clock."""
        return self._start_ns + (subinterval + 1) * self._length_ns + self._patience_ns

    def _join(self, driver: Driver, result: Result) -> None:
        """A late result: it is still the truth about its subinterval, if that is recorded."""
        if driver.name not in self._holes.get(result.subinterval, ()):
            self._recorder.late(driver.name, result)
            return
        if not _taken(driver, partial(self._merging.check, driver, result)):
            return
        hole = self._holes[result.subinterval]
        hole.discard(driver.name)
        if not hole:
            del self._holes[result.subinterval]
        self._recorder.join(driver.name, result)
        self._joined(driver.name, result)
        self._hosts.came_late(driver)
        self._note_errors(driver, result)

    def _merge(self, driver: Driver, result: Result, at_ns: int) -> None:
        if not _taken(driver, partial(self._merging.add, driver, result)):
            return
        self._open.arrived[driver] = at_ns
        self._hosts.is_in(driver)
        self._note_errors(driver, result)

    def _note_errors(self, driver: Driver, result: Result) -> None:
        self._faults.errors(driver.name, result)
        if result.faults and self._stop_on_error and not self._fleet.interrupted.is_set():
            # The measurements that are complete had none, unless this result of one of them came late.
            self._faults.stop_run(driver.name, since=min(self._progress.unmeasured, result.subinterval))
            self._fleet.interrupt(HaltCause.IO_ERROR)


def _taken(driver: Driver, take: Callable[[], object]) -> bool:
    """Whether what a host sent could be taken; else the host is lost."""
    try:
        take()
    except ProtocolError as error:
        driver.lose(f"protocol error: {error}")
    except Exception as error:
        driver.lose_for_bug(error)
    else:
        return True
    return False
