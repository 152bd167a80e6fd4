"""One step: the subinterval cycle, from `go` to the last host's `stopped`.

Rule: the controller never waits for one host beyond barrier 1's deadline, and never merges what came after it. A host
that misses a barrier goes on under the step's commands (so that it stops), but its numbers are kept apart. When the
step ends, nothing drives any more: whoever goes on is halted, and whoever does not stop is lost. All decisions are
control's; all merging is rollup's; here is only who is asked what, when.

Time: boundaries are `start + (k + 1) x length` on the controller's clock. The decision on subinterval k is taken
while k + 1 runs; with it goes the place of the boundary that ends k + 2.
"""

import asyncio
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ...protocol.errors import ProtocolError
from ...protocol.messages import (
    Array,
    ArrayType,
    Continue,
    Cooldown,
    DyingWords,
    Go,
    Halt,
    Remark,
    Result,
    Stop,
    Stopped,
    StopReason,
)
from ...protocol.states import State as HostState
from ..control.decide import State, decide, opening
from ..control.decision import Decision, Edit, Measured
from ..control.phase import Phase
from ..control.retarget import retargeted
from ..hosts.driver import Driver, Event, Lost, barrier
from ..rollup.instances import Rollups
from ..rollup.merge import Interval, Merger
from ..rollup.validity import Outside
from ..verdicts import Finding, Reason
from .changes import Changes, Disturbed
from .fleet import Fleet
from .keeper import Closed, Ended, Keeper
from .settings import steered
from .timing import Moments, timing_of
from .told import Told

LEAD_S: Final = 0.3  # from `go` to the start: for the message, the threads, and a busy controller
LEAD_PER_HOST_S: Final = 0.001
BARRIER_1: Final = 0.75  # of a subinterval, after its end
HOLD_HALT_S: Final = 3.0  # after a halt, for the cut results and `stopped`
CATCH_S: Final = 12.0  # after a stop, for `stopped`: hosts catch what is in flight for up to 10 s
NEVER: Final = 1 << 62  # a subinterval that every result comes too late for
DRIVING: Final = (HostState.RUNNING, HostState.ENDING)
LOADED: Final = (Phase.WARMUP, Phase.RUN, Phase.TRANSIENT)
PAUSED: Final = "paused; `ivypy unpause` goes on"
MOST_MOVED: Final = 0.001  # of a subinterval: how far a boundary is moved to follow a host's clock


@dataclass(slots=True)
class _Hosts:
    """Who is still to deliver, and who is only to be stopped."""

    live: set[Driver]  # deliver into the merge
    late: set[Driver] = field(default_factory=set)  # missed a barrier: commanded, not merged


class StepSequence:
    """Remembers one running step. `run` it once."""

    def __init__(
        self,
        fleet: Fleet,
        rollups: Rollups,
        told: Told,
        control: State,
        length_s: float,
        cooldown: int,
        keeper: Keeper,
        stop_on_error: bool,
    ) -> None:
        self._fleet = fleet
        self._rollups = rollups
        self._told = told
        self.control = control
        self._length_ns = round(length_s * 1e9)
        self.changes = Changes(told, self._length_ns)
        self._cooldown = cooldown
        self._keeper = keeper
        self._stop_on_error = stop_on_error
        self._findings: list[Outside] = []
        self._measured: list[Measured] = []
        self._stopped: dict[str, Stopped] = {}
        self._early: dict[int, dict[Driver, tuple[Result, int]]] = {}
        self._placed: dict[Driver, int] = {}  # the local boundary that was placed last
        self._halted_ns: int | None = None
        self._stopping = False  # stop or halt was sent
        self._complete = False  # control is done
        self._seen = -1  # the last subinterval that control saw
        self._last = NEVER  # the step's last subinterval
        self._running = 0  # the subinterval that runs

    async def run(self) -> Ended:
        start_ns, hosts = await self._go()
        self.changes.begin(start_ns)
        first = opening(self.control)
        self.changes.steers(steered(first.edits, self._rollups, self._told.parameters))
        k, announced, seen_hosts = 0, first.next_phase, frozenset(d.name for d in hosts.live)
        while hosts.live and k <= self._last:
            interval, arrived, barrier_1_ns = await self._barrier_1(k, start_ns, hosts)
            if not interval.hosts:
                break
            same_hosts = interval.hosts == seen_hosts
            seen_hosts = interval.hosts
            disturbed, parameters = self.changes.seen(interval), self.changes.in_force()
            decision = Decision(Phase.COOLDOWN)
            if not self._stopping and disturbed is Disturbed.PAUSED:
                decision = Decision(announced, say=PAUSED)
            elif not self._stopping:
                start_s = k * self._length_ns / 1e9
                edited = disturbed is Disturbed.EDITED
                seen = self._keeper.see(interval, k, start_s, announced, same_hosts, edited)
                self.control, decision = decide(self.control, seen)
                self._measured += decision.measured
                self._seen, self._complete = k, decision.done
            decided_ns = self._fleet.now_ns()
            if decision.edits:
                await self._steer(decision.edits)
            acknowledged = await self._command(k, start_ns, decision, hosts)
            start, end = (start_ns + j * self._length_ns for j in (k, k + 1))
            timing = timing_of(interval, Moments(start, end, barrier_1_ns, decided_ns, arrived, acknowledged))
            phase = self._phase(announced, disturbed)
            await self._keeper.closed(Closed(k, phase, start, interval, decision, timing, parameters))
            hosts.live = {driver for driver in hosts.live if not interval.results[driver.name].last}
            announced = decision.next_phase
            k = self._running = k + 1
        self.changes.close("the step has ended")
        cause = "" if self._stopping else "every host was late or lost"
        await self._wait_until_stopped(hosts.live | hosts.late)
        if not self._complete:
            so_far = _because(cause, self.control.cut_short(self._seen))
            self._measured.append(so_far)
            await self._keeper.cut_short(so_far)
        return Ended(tuple(self._measured), tuple(self._findings), self._stopped, self._halted_ns is not None)

    def retarget(self, targets: Mapping[str, float]) -> None:
        """Other targets for instances that control holds at one."""
        self.control = retargeted(self.control, targets, self._running)

    def _phase(self, announced: Phase, disturbed: Disturbed) -> Phase:
        """What a subinterval has become: what it was announced as, unless something came in between."""
        if disturbed is not Disturbed.NO and announced in LOADED:
            return Phase.TRANSIENT
        return Phase.TAIL if announced is Phase.RUN and self._halted_ns is not None else announced

    async def _go(self) -> tuple[int, _Hosts]:
        """Start all hosts at one instant. Those that are not ready in time are not part of the step."""
        order = {name: self._rollups.order(name) for name in self._rollups.hosts()}
        drivers = [driver for driver in self._fleet.alive if driver.name in order and driver.state is HostState.IDLE]
        lead_ns = round((LEAD_S + LEAD_PER_HOST_S * len(drivers)) * 1e9)
        start_ns = self._fleet.now_ns() + lead_ns

        async def go(driver: Driver) -> None:
            classes = self._rollups.classes(driver.name)
            self._placed[driver] = driver.clock.to_local(start_ns)
            await driver.ask(
                Go, start_ns=self._placed[driver], length_ns=self._length_ns,
                order=_u32(classes.order), classes=_u32(classes.of),
            )  # fmt: skip
            self._placed[driver] += 2 * self._length_ns  # the end of subinterval 1; that of 2 is the first to be placed

        deadline = asyncio.get_running_loop().time() + lead_ns / 1e9
        ready, failed = await barrier(drivers, go, deadline)
        for driver, reason in failed.items():
            self._miss(driver, f"not ready at the start: {reason}")
        absent = [name for name in order if name not in {driver.name for driver in drivers}]
        for name in absent:
            self._findings.append(Outside(Finding(Reason.HOST_LOST, f"{name} did not take part"), name))
        self._merger = Merger(self._rollups, {name: order[name] for name in order})
        return start_ns, _Hosts(set(ready), set(failed))

    # Barrier 1: results.

    async def _barrier_1(self, k: int, start_ns: int, hosts: _Hosts) -> tuple[Interval, dict[Driver, int], int]:
        """Merge every live host's result k; whoever has not delivered at the deadline is late."""
        self._merger.open(k)
        arrived: dict[Driver, int] = {}
        for driver, (result, arrived_ns) in self._early.pop(k, {}).items():
            self._merge(driver, result, arrived_ns, arrived, hosts)
        deadline_ns = start_ns + round((k + 1 + BARRIER_1) * self._length_ns)
        while hosts.live - arrived.keys():
            if self._fleet.interrupted.is_set() and self._halted_ns is None:
                deadline_ns = min(deadline_ns, await self._halt(hosts) + round(HOLD_HALT_S * 1e9))
            event = await self._next_event(deadline_ns)
            if event is not None:
                self._take(*event, k, arrived, hosts)
            elif self._fleet.now_ns() >= deadline_ns:
                break
        for driver in sorted(hosts.live - arrived.keys(), key=lambda driver: driver.name):
            self._miss(driver, f"no result of subinterval {k} by barrier 1")
            hosts.late.add(driver)
        hosts.live = hosts.live & arrived.keys()
        return self._merger.close(), arrived, self._fleet.now_ns()

    async def _next_event(self, deadline_ns: int) -> "tuple[Driver, Event] | None":
        """What happens next; None at the deadline, or at the first interrupt."""
        inbox = asyncio.ensure_future(self._fleet.inbox.get())
        waits: set[asyncio.Future[Any]] = {inbox}
        if self._halted_ns is None:
            waits.add(asyncio.ensure_future(self._fleet.interrupted.wait()))
        wait_s = max((deadline_ns - self._fleet.now_ns()) / 1e9, 0.0)
        try:
            await asyncio.wait(waits, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
            return inbox.result() if inbox.done() else None
        finally:
            for wait in waits:
                wait.cancel()

    def _take(self, driver: Driver, event: Event, k: int, arrived: dict[Driver, int], hosts: _Hosts) -> None:
        now_ns = self._fleet.now_ns()
        match event:
            case Result() if driver in hosts.late or event.subinterval < k:
                self._keeper.late(driver.name, event)
                self._keeper.event(driver.name, "late", f"result of subinterval {event.subinterval}: kept apart")
            case Result() if event.subinterval > k:
                self._early.setdefault(event.subinterval, {})[driver] = (event, now_ns)
            case Result():
                self._merge(driver, event, now_ns, arrived, hosts)
            case Stopped():
                self._stopped[driver.name] = event
                if event.reason is not StopReason.COMMANDED:
                    words = {StopReason.LEASE: "its lease ran out", StopReason.DIED: "a workload thread died"}
                    self._drop(driver, hosts, Reason.HOST_LOST, words[event.reason])
                elif driver not in arrived:
                    hosts.live.discard(driver)
            case DyingWords():
                self._keeper.event(driver.name, "dying_words", f"thread {event.thread}: {event.words}")
            case Remark():
                self._keeper.event(driver.name, "remark", event.text)
            case Lost():
                self._drop(driver, hosts, Reason.HOST_LOST, event.reason)

    def _merge(self, driver: Driver, result: Result, now_ns: int, arrived: dict[Driver, int], hosts: _Hosts) -> None:
        if driver not in hosts.live:
            return
        if result.last and result.length_ns == 0 and self._stopping:
            hosts.live.discard(driver)  # halted before its start: there is nothing to merge
            return
        try:
            self._merger.add(driver.name, result)
        except ProtocolError as error:
            driver.lose(f"protocol error: {error}")
            return
        arrived[driver] = now_ns
        if result.faults and self._stop_on_error and not self._fleet.interrupted.is_set():
            self._findings.append(Outside(Finding(Reason.IO_ERRORS, "on_io_error: stop"), driver.name))
            self._keeper.event(driver.name, "io_errors", "on_io_error: stop; the run is halted")
            self._fleet.interrupted.set()

    def _miss(self, driver: Driver, why: str) -> None:
        self._findings.append(Outside(Finding(Reason.HOST_LATE, f"{driver.name}: {why}"), driver.name))
        self._keeper.event(driver.name, "late", why)

    def _drop(self, driver: Driver, hosts: _Hosts, reason: Reason, why: str) -> None:
        if driver in hosts.live or driver in hosts.late:
            self._findings.append(Outside(Finding(reason, f"{driver.name}: {why}"), driver.name))
        self._keeper.event(driver.name, "lost", why)
        hosts.live.discard(driver)
        hosts.late.discard(driver)

    # Barrier 2: commands.

    async def _command(self, k: int, start_ns: int, decision: Decision, hosts: _Hosts) -> dict[Driver, int]:
        """Tell every host what follows from subinterval k, and wait for all until k + 1 ends."""
        if self._stopping:
            return {}

        async def tell(driver: Driver) -> int:
            if decision.done and self._cooldown:
                await driver.ask(Cooldown, subinterval=k + 2)
            if decision.done:
                await driver.ask(Stop, last=self._last)
            elif driver in self._placed:
                await driver.ask(Continue, subinterval=k + 2, boundary_ns=self._boundary(driver, k + 2, start_ns))
            return self._fleet.now_ns()

        self._stopping = decision.done
        if decision.done:
            self._last = k + 1 + self._cooldown
            self.changes.close("the step is ending; it runs without a measurement")
        running = [d for d in (*hosts.live, *hosts.late) if d.lost is None and d.state is HostState.RUNNING]
        loop = asyncio.get_running_loop()
        left_s = (start_ns + (k + 2) * self._length_ns - self._fleet.now_ns()) / 1e9
        answers, failed = await barrier(running, tell, loop.time() + max(left_s, 0.1))
        for driver, reason in failed.items():
            self._keeper.event(driver.name, "late", f"no answer to what followed subinterval {k}: {reason}")
        return answers

    def _boundary(self, driver: Driver, k: int, start_ns: int) -> int:
        """Where subinterval k ends on the host's clock: as its offset says, moved no further than is allowed."""
        wanted = driver.clock.to_local(start_ns + (k + 1) * self._length_ns)
        even = self._placed[driver] + self._length_ns
        most = round(self._length_ns * MOST_MOVED)
        self._placed[driver] = min(max(wanted, even - most), even + most)
        return self._placed[driver]

    async def _steer(self, edits: Sequence[Edit]) -> None:
        """What control wants changed, to all hosts at once."""
        failed = await self.changes.steer(lambda parameters: steered(edits, self._rollups, parameters))
        for host, reason in failed.items():
            self._keeper.event(host, "edit", f"control's edit failed: {reason}")

    async def _halt(self, hosts: _Hosts) -> int:
        """Submit nothing more from now, on all hosts at once. Returns when that was."""
        halted_ns = self._halted_ns = self._fleet.now_ns()
        self._stopping = True
        self.changes.close("the run is being halted")
        self._keeper.event("", "halt", "nothing more is submitted; catching what is in flight")
        for driver, reason in (await _halted(hosts.live | hosts.late)).items():
            self._drop(driver, hosts, Reason.HOST_LOST, f"not halted: {reason}")
        return halted_ns

    async def _wait_until_stopped(self, left: set[Driver]) -> None:
        """Halt those that are left, whom nothing else ends, and wait for every host's `stopped`, for a bounded time.

        A host that gives none is lost, and with it goes its lease.
        """
        patience_s = HOLD_HALT_S if self._halted_ns is not None else CATCH_S
        since_ns = self._halted_ns if self._halted_ns is not None else self._fleet.now_ns()
        deadline_ns = since_ns + round(patience_s * 1e9)
        nobody = _Hosts(set())
        told: set[Driver] = set()
        while busy := self._busy():
            if self._fleet.interrupted.is_set() and self._halted_ns is None:
                told.update(driver for driver in busy if driver.state in DRIVING)
                halted_ns = await self._halt(_Hosts(set(busy)))
                deadline_ns = min(deadline_ns, halted_ns + round(HOLD_HALT_S * 1e9))
            if new := [driver for driver in busy if driver in left - told and driver.state in DRIVING]:
                told.update(new)
                await _halted(new)
            event = await self._next_event(deadline_ns)
            if event is not None:
                self._take(*event, NEVER, {}, nobody)
            elif self._fleet.now_ns() >= deadline_ns:
                break
        for driver in self._busy():
            driver.lose("it has not stopped; later steps are without it")
        while not self._fleet.inbox.empty():
            self._take(*self._fleet.inbox.get_nowait(), NEVER, {}, nobody)

    def _busy(self) -> list[Driver]:
        """The hosts that drive, or may yet: a `go` that was not answered in time can still be answered `ready`."""
        return [driver for driver in self._fleet.alive if driver.state in DRIVING or driver.unanswered(Go)]


async def _halted(hosts: Iterable[Driver]) -> dict[Driver, str]:
    """Halt those that drive, all at once. Returns who has not said within a second that it does, and why."""
    driving = [driver for driver in hosts if driver.state in DRIVING]
    deadline = asyncio.get_running_loop().time() + 1.0
    _, failed = await barrier(driving, lambda driver: driver.ask(Halt), deadline)
    return failed


def _because(cause: str, measured: Measured) -> Measured:
    """A measurement that was cut short, saying what cut it."""
    cut = (Reason.SHORTENED, Reason.INTERRUPTED)
    findings = (
        replace(one, detail=", ".join(filter(None, (cause, one.detail)))) if one.reason in cut else one
        for one in measured.findings
    )
    return replace(measured, findings=tuple(findings))


def _u32(numbers: Sequence[int]) -> Array:
    packed = array("I", numbers)
    return Array(ArrayType.U32, packed.tobytes())
