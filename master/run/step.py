"""One step: the subinterval cycle, from `go` to the last host's `stopped`.

Rule: the controller never waits for one host beyond barrier 1's deadline, and never merges what came after it. A host
that misses a barrier goes on under the step's commands (so that it stops), but its numbers are kept apart. When the
step ends, nothing drives any more: whoever goes on is halted, and whoever does not stop is lost. All decisions are
control's; all merging is rollup's; here is only who is asked what, when.

Time: boundaries are `start + (k + 1) x length` on the controller's clock. The decision on subinterval k is taken
while k + 1 runs; with it goes the place of the boundary that ends k + 2.
"""

import asyncio
import errno
from array import array
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ...protocol.errors import ProtocolError
from ...protocol.messages import Continue, Cooldown, DyingWords, Go, Halt, Result, Stop, Stopped, StopReason
from ...protocol.payload import Array, ArrayType, Notice
from ...protocol.states import State as HostState
from ..control.decide import State, decide, opening
from ..control.decision import Decision, Edit, Measured
from ..control.observe import observe
from ..control.phase import Phase
from ..control.retarget import retargeted
from ..hosts.driver import DRIVING, Delivered, Driver, Event, Lost, barrier
from ..rollup.instances import Rollups
from ..rollup.merge import Interval
from ..rollup.settings import SettingsInForce
from ..rollup.validity import Outside
from ..text.suggestions import listed
from ..verdicts import Finding, Reason
from .boundaries import Boundaries
from .fleet import Fleet
from .host_settings import Told
from .hung_ios import hung
from .interlock import Moments, timing_of
from .live_changes import Changes, Disturbed
from .resolve_settings import steered
from .step_merge import Merging
from .step_records import ClosedSubinterval, Recorder, StepOutcome

LEAD_S: Final = 0.3  # from `go` to the start at least: for the message, the threads, and a busy controller
LEAD_PER_HOST_S: Final = 0.001
LEAD_MARGIN_S: Final = 0.2  # beyond two round trips to the farthest host
LONGEST_LEAD_S: Final = 5.0  # whatever one host's round trip is
BARRIER_1: Final = 0.75  # of a subinterval, after its end
HOLD_HALT_S: Final = 3.0  # after a halt, for the cut results and `stopped`
CATCH_S: Final = 12.0  # after a stop, for `stopped`: hosts catch what is in flight for up to 10 s
NEVER: Final = 1 << 62  # a subinterval that every result comes too late for
STOOD_STILL_NS: Final = 10**9  # the controller, for so long that leases were not renewed
ENDED_EARLY: Final = "it ended the step by itself"  # why, it says afterwards
LOADED: Final = (Phase.WARMUP, Phase.RUN, Phase.TRANSIENT)
MOST_NAMED: Final = 5  # workload instances that are spelled out
MOST_FAULTS: Final = 20  # kinds of I/O errors that are told one by one
PAUSED: Final = "paused; `ivypy unpause` goes on"


@dataclass(slots=True)
class _Hosts:
    """Who is still to deliver, and who is only to be stopped."""

    live: set[Driver]  # deliver into the merge
    late: set[Driver] = field(default_factory=set)  # missed a barrier: commanded, not merged
    awaited: set[Driver] = field(default_factory=set)  # of the live: those whose result is not in yet

    def leave(self, driver: Driver) -> None:
        """It takes no part any more."""
        for those in (self.live, self.late, self.awaited):
            those.discard(driver)

    def set_aside(self, driver: Driver) -> None:
        """It is commanded, and no more merged."""
        self.leave(driver)
        self.late.add(driver)


@dataclass(frozen=True, slots=True)
class _Loss:
    """A host that took part and went, whatever becomes of it afterwards."""

    since: int  # the first subinterval that is without it
    why: str


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
        recorder: Recorder,
        stop_on_error: bool,
    ) -> None:
        self._fleet = fleet
        self._rollups = rollups
        self._told = told
        self.control = control
        self._length_s = length_s
        self._length_ns = round(length_s * 1e9)
        self.changes = Changes(told, self._length_ns)
        self._cooldown = cooldown
        self._recorder = recorder
        self._stop_on_error = stop_on_error
        self._findings: list[Outside] = []
        self._part: set[Driver] = set()  # the hosts that were told to go
        self._losses: dict[Driver, _Loss] = {}  # of these: those that the step lost
        self._measured: list[Measured] = []
        self._stopped: dict[str, Stopped] = {}
        self._newest: dict[Driver, Result] = {}
        self._hung: list[tuple[str, int]] = []  # workload instances whose I/Os had not come back at the end
        self._faults: set[tuple[str, int, int]] = set()  # host, number and errno of I/O errors that were told
        self._early: dict[int, dict[Driver, tuple[Result, int]]] = {}
        self._boundaries = Boundaries(self._length_ns)
        self._settings = SettingsInForce(rollups)
        self._halted_ns: int | None = None
        self._stopping = False  # stop or halt was sent
        self._complete = False  # control is done
        self._ended: StepOutcome | None = None
        self._seen = -1  # the last subinterval that control saw
        self._last = NEVER  # the step's last subinterval
        self._running = 0  # the subinterval that runs
        self._stood_ns = 0  # for how long the controller got round to nothing, at most in a subinterval

    async def run(self) -> StepOutcome:
        start_ns, hosts = await self._go()
        self.changes.begin(start_ns)
        first = opening(self.control)
        part = frozenset(driver.name for driver in self._part)
        self.changes.steers(steered(first.edits, self._rollups, self._told.parameters, part))
        k, announced, seen_hosts = 0, first.next_phase, part
        while hosts.live and k <= self._last:
            interval, arrived, in_ns = await self._barrier_1(k, start_ns, hosts)
            barrier_1_ns = self._fleet.now_ns()
            if not interval.hosts:
                break
            same_hosts = interval.hosts == seen_hosts
            disturbed = self.changes.seen(interval)
            settings = self._settings.of(self.changes.in_force(), interval.hosts)
            decision, asked = Decision(Phase.COOLDOWN), False
            if not self._stopping and disturbed is Disturbed.PAUSED:
                decision = Decision(announced, say=PAUSED)
            elif not self._stopping:
                seen_hosts = interval.hosts
                start_s = k * self._length_ns / 1e9
                edited = disturbed in (Disturbed.EDITED, Disturbed.CATCHING_UP)
                focuses = self.control.focuses
                seen = observe(interval, settings, focuses, start_s, self._length_s, announced, same_hosts, edited)
                self.control, decision = decide(self.control, seen)
                if disturbed is Disturbed.CATCHING_UP and not decision.measured:
                    decision = replace(decision, say=f"{self.changes.owed:,} I/Os of the load before are still to do")
                self._take_measured(decision.measured)
                self._seen, self._complete, asked = k, decision.done, True
            decided_ns = self._fleet.now_ns()
            left_s = max((start_ns + (k + 2) * self._length_ns - decided_ns) / 1e9, 0.1)
            async with asyncio.TaskGroup() as both:  # on its way to a host the edit is first, and holds up nothing
                both.create_task(self._steer(decision.edits, hosts, left_s))
                commanding = both.create_task(self._command(k, start_ns, decision, hosts, left_s))
            acknowledged = commanding.result()
            start, end = (start_ns + j * self._length_ns for j in (k, k + 1))
            at = Moments(start, end, in_ns, barrier_1_ns, decided_ns, arrived, acknowledged)
            stood_ns, cpu_ns = self._fleet.lag.take()
            self._stood_ns = max(self._stood_ns, stood_ns)
            timing = timing_of(interval, at, stood_ns, cpu_ns)
            phase = self._phase(announced, disturbed)
            may_end = (self._seen, *self.control.may_end)
            overdue_ns = max(decided_ns - end - self._length_ns, 0) if asked else 0
            closed = ClosedSubinterval(k, phase, start, interval, decision, timing, settings, may_end, overdue_ns)
            self._recorder.closed(closed)
            hosts.live = {driver for driver in hosts.live if not interval.results[driver.name].last}  # told to
            announced = decision.next_phase
            k = self._running = k + 1
        self.changes.close("the step has ended")
        cause = "" if self._stopping else "every host was late or lost"
        await self._wait_until_stopped(hosts.live | hosts.late)
        return self.so_far(cause)

    def so_far(self, cause: str = "") -> StepOutcome:
        """How the step ended; where it is given up, with what was measured until then. `cause`: why it was cut short.

        Nothing of the step is told after it.
        """
        if self._ended is not None:
            return self._ended
        if not self._complete:
            cut = _because(cause, self.control.cut_short(self._seen))
            self._take_measured([cut])
            self._recorder.cut_short(cut)
        findings = [*self._findings, *self.changes.found(), *self._lost()]
        if not self._complete and cause:  # those that went are why it ends where it does
            findings = [replace(one, since=min(one.since, max(self._measured[-1].last, 0))) for one in findings]
        interrupted = self._halted_ns is not None
        self._ended = StepOutcome(tuple(self._measured), tuple(findings), self._stopped, interrupted, tuple(self._hung))
        return self._ended

    def retarget(self, targets: Mapping[str, float], words: str) -> None:
        """Other targets for instances that control holds at one; `words` say which, and who wants it."""
        self.control = retargeted(self.control, targets, self._running)
        words = f"{words}, in subinterval {self._running}"
        self._findings.append(Outside(Finding(Reason.EDITED, words), since=self._running))

    def _take_measured(self, measured: Iterable[Measured]) -> None:
        for one in measured:
            self._measured.append(one)
            self._findings += self.changes.edited(one.first, one.last)

    def found(self, outside: Iterable[Outside]) -> None:
        """What is known of the step from elsewhere."""
        self._findings += outside

    def _phase(self, announced: Phase, disturbed: Disturbed) -> Phase:
        """What a subinterval has become: what it was announced as, unless something came in between."""
        if disturbed is not Disturbed.NO and announced in LOADED:
            return Phase.TRANSIENT
        return Phase.TAIL if announced is Phase.RUN and self._halted_ns is not None else announced

    async def _go(self) -> tuple[int, _Hosts]:
        """Start all hosts at one instant. Those that are not ready in time are not part of the step."""
        order = {name: self._rollups.order(name) for name in self._rollups.hosts()}
        drivers = [driver for driver in self._fleet.alive if driver.name in order and driver.state is HostState.IDLE]
        self._part.update(drivers)
        self._merging = Merging(self._rollups, order, drivers)
        lead_ns = round(lead_s(drivers) * 1e9)
        start_ns = self._fleet.now_ns() + lead_ns

        async def go(driver: Driver) -> None:
            classes = self._rollups.classes(driver.name)
            local_ns = driver.clock.to_local(start_ns)
            self._boundaries.begin(driver, local_ns)
            await driver.ask(
                Go, start_ns=local_ns, length_ns=self._length_ns,
                order=_u32(classes.order), classes=_u32(classes.of),
            )  # fmt: skip

        deadline = asyncio.get_running_loop().time() + lead_ns / 1e9
        ready, failed = await barrier(drivers, go, deadline)
        for driver, reason in failed.items():
            self._miss(driver, f"not ready at the start: {reason}", 0)
        absent = [name for name in order if name not in {driver.name for driver in drivers}]
        for name in absent:
            self._findings.append(Outside(Finding(Reason.HOST_LOST, f"{name} did not take part"), name))
        self._findings += _beside(self._fleet, start_ns, self._length_ns)
        return start_ns, _Hosts(set(ready), set(failed))

    # Barrier 1: results.

    async def _barrier_1(self, k: int, start_ns: int, hosts: _Hosts) -> tuple[Interval, dict[Driver, int], int]:
        """Merge every live host's result k; whoever has not delivered at the deadline is late.

        Returns when each result arrived, too, and when the last thing came that was waited for.
        """
        self._merging.open(k)
        hosts.awaited = set(hosts.live)
        arrived: dict[Driver, int] = {}
        for driver, (result, arrived_ns) in self._early.pop(k, {}).items():
            self._merge(driver, result, arrived_ns, arrived, hosts)
        patience_ns = round(BARRIER_1 * self._length_ns)
        in_ns = max(arrived.values(), default=0)
        deadline_ns = start_ns + (k + 1) * self._length_ns + patience_ns
        while hosts.awaited:
            if self._fleet.interrupted.is_set() and self._halted_ns is None:
                deadline_ns = min(deadline_ns, await self._halt(hosts) + round(HOLD_HALT_S * 1e9))
            event = await self._next_event(deadline_ns)
            if event is not None:
                in_ns = max(in_ns, self._came_ns(event[1]))
                self._take(*event, k, arrived, hosts)
            elif self._fleet.now_ns() >= deadline_ns:
                in_ns = deadline_ns
                deadline_ns = max(deadline_ns, self._fleet.lag.patient_until_ns(patience_ns))
                if self._fleet.now_ns() >= deadline_ns:
                    break
        for driver in sorted(hosts.awaited, key=lambda driver: driver.name):
            self._miss(driver, f"no result of subinterval {k} by barrier 1", k)
            hosts.set_aside(driver)
        interval, missing = await self._merging.close()
        if missing:  # with the process that had them; so their hosts are lost, which the inbox says
            arrived = {driver: at_ns for driver, at_ns in arrived.items() if driver.name not in missing}
            while not self._fleet.inbox.empty():
                self._take(*self._fleet.inbox.get_nowait(), k, arrived, hosts)
        return interval, arrived, in_ns

    def _came_ns(self, event: Event) -> int:
        """When something that barrier 1 may wait for came."""
        match event:
            case Delivered(_, arrived_ns):
                return arrived_ns
            case Stopped() | Lost():
                return self._fleet.now_ns()
        return 0

    async def _next_event(self, deadline_ns: int) -> "tuple[Driver, Event] | None":
        """What happens next; None at the deadline, or at the first interrupt."""
        if not self._fleet.inbox.empty():
            return self._fleet.inbox.get_nowait()
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
        if not self._fleet.takes_part(driver):
            return
        if isinstance(event, Delivered):
            self._newest[driver] = event.result
        match event:
            case Delivered(result) if driver in hosts.late or result.subinterval < k:
                self._recorder.late(driver.name, result)
                kind = "late" if result.subinterval <= self._last else "beyond"  # of which nobody asked for a result
                self._recorder.event(driver.name, kind, f"result of subinterval {result.subinterval}: kept apart")
            case Delivered(result, arrived_ns) if result.subinterval > k:
                self._early.setdefault(result.subinterval, {})[driver] = (result, arrived_ns)
            case Delivered(result, arrived_ns):
                self._merge(driver, result, arrived_ns, arrived, hosts)
            case Stopped():
                self._stopped[driver.name] = event
                self._tell_hung(driver, event)
                if event.failed:
                    words = (
                        f"{event.failed:,} I/Os that were in flight at the end of the step failed: no row counts them"
                    )
                    self._recorder.event(driver.name, "io_errors", words)
                if event.reason is not StopReason.COMMANDED:
                    self._drop(driver, hosts, self._why_stopped(event.reason), k, arrived, "ended")
                elif driver not in arrived:
                    hosts.leave(driver)
            case DyingWords():
                self._recorder.event(driver.name, "dying_words", f"thread {event.thread}: {event.words}")
            case Notice():
                self._recorder.event(driver.name, "remark", event.text)
            case Lost():
                self._drop(driver, hosts, event.reason, k, arrived)

    def _merge(self, driver: Driver, result: Result, now_ns: int, arrived: dict[Driver, int], hosts: _Hosts) -> None:
        if driver not in hosts.live:
            return
        if result.last and result.length_ns == 0 and self._stopping:
            hosts.leave(driver)  # halted before its start: there is nothing to merge
            return
        if result.last and self._halted_ns is None and result.subinterval != self._last:
            self._ended_early(driver, result, hosts)
            return
        if wrong := self._boundaries.against(driver, result):
            driver.lose(f"protocol error: the result of subinterval {result.subinterval} is not as placed: {wrong}")
            return
        try:
            self._merging.add(driver, result)
        except ProtocolError as error:
            driver.lose(f"protocol error: {error}")
            return
        except Exception as error:
            driver.blame(error)
            return
        arrived[driver] = now_ns
        hosts.awaited.discard(driver)
        self._tell_faults(driver.name, result)
        if result.faults and self._stop_on_error and not self._fleet.interrupted.is_set():
            since = self._measured[-1].last + 1 if self._measured else 0  # treads that were measured before had none
            self._findings.append(Outside(Finding(Reason.IO_ERRORS, "on_io_error: stop"), driver.name, since=since))
            self._recorder.event(driver.name, "io_errors", "on_io_error: stop; the run is halted")
            self._fleet.interrupted.set()

    def _ended_early(self, driver: Driver, result: Result, hosts: _Hosts) -> None:
        """Its last result, which nobody asked for: cut somewhere, and so no subinterval of the others."""
        self._losses.setdefault(driver, _Loss(result.subinterval, ENDED_EARLY))
        self._recorder.late(driver.name, result)
        self._recorder.event(driver.name, "ended", f"{ENDED_EARLY} in subinterval {result.subinterval}")
        hosts.set_aside(driver)

    def _tell_hung(self, driver: Driver, stopped: Stopped) -> None:
        """What has not come back, and of which LUNs; it concerns the subintervals in which it was under way."""
        newest = self._newest.get(driver)
        found = hung(stopped, newest, self._rollups.order(driver.name))
        if found is None:
            return
        names = listed([str(self._id(driver.name, number)) for number in found.numbers], MOST_NAMED)
        words = f"{found.words}: {'' if found.sure else 'perhaps '}of {names}"
        self._recorder.event(driver.name, "hung_ios", words)
        last = newest.subinterval if newest else self._running
        since = max(0, last + 1 - -(-found.oldest_at_end_ns // self._length_ns))
        finding = Finding(Reason.HUNG_IOS, words)
        self._findings += [Outside(finding, driver.name, number, since) for number in found.numbers]
        self._hung += [(driver.name, number) for number in found.numbers]

    def _tell_faults(self, host: str, result: Result) -> None:
        """The first I/O errors of each kind and workload instance; how many there are, rows say."""
        for fault in result.faults:
            key = host, fault.number, fault.errno
            if key not in self._faults and len(self._faults) < MOST_FAULTS:
                self._faults.add(key)
                kind = errno.errorcode.get(fault.errno, str(fault.errno)) if fault.errno else "short transfers"
                text = f"{self._id(host, fault.number)}: {kind} ({fault.count:,} in subinterval {result.subinterval})"
                self._recorder.event(host, "io_errors", text)

    def _id(self, host: str, number: int) -> str:
        return next((one.id for one in self._rollups.instances if (one.host, one.number) == (host, number)), "?")

    def _miss(self, driver: Driver, why: str, k: int) -> None:
        self._findings.append(Outside(Finding(Reason.HOST_LATE, f"{driver.name}: {why}"), driver.name, since=k))
        self._recorder.event(driver.name, "late", why)

    def _why_stopped(self, reason: StopReason) -> str:
        """A step that a host ended by itself, for whichever reason."""
        if reason is not StopReason.LEASE:
            return "a workload thread died"
        stood_ns = max(self._stood_ns, self._fleet.lag.stood_ns())
        still = f" while the controller stood still for {stood_ns / 1e9:.1f} s" if stood_ns >= STOOD_STILL_NS else ""
        return f"its lease ran out{still}"

    def _drop(
        self, driver: Driver, hosts: _Hosts, why: str, k: int, arrived: Container[Driver], kind: str = "lost"
    ) -> None:
        """The step is without the host. What counts is that it was told to go, not whether it was still waited for."""
        if driver in self._part:
            since = min(k, self._running) + (driver in arrived)
            before = self._losses.get(driver)
            if before is None or before.why == ENDED_EARLY:
                self._losses[driver] = _Loss(before.since if before else since, why)
        self._recorder.event(driver.name, kind, why)
        hosts.leave(driver)

    def _lost(self) -> list[Outside]:
        return [
            Outside(Finding(Reason.HOST_LOST, f"{driver.name}: {loss.why}"), driver.name, since=loss.since)
            for driver, loss in self._losses.items()
        ]

    # Barrier 2: commands.

    async def _command(
        self, k: int, start_ns: int, decision: Decision, hosts: _Hosts, left_s: float
    ) -> dict[Driver, int]:
        """Tell every host what follows from subinterval k, and wait for all until k + 1 ends."""
        if self._stopping:
            return {}

        async def tell(driver: Driver) -> int:
            if decision.done and self._cooldown:
                await driver.ask(Cooldown, subinterval=k + 2)
            if decision.done:
                await driver.ask(Stop, last=self._last)
            elif self._boundaries.has(driver):
                await driver.ask(Continue, subinterval=k + 2, boundary_ns=self._boundary(driver, k + 2, start_ns))
            return self._fleet.now_ns()

        self._stopping = decision.done
        if decision.done:
            self._last = k + 1 + self._cooldown
            self.changes.close("the step is ending; it runs without a measurement")
        running = [d for d in (*hosts.live, *hosts.late) if d.lost is None and d.state is HostState.RUNNING]
        answers, failed = await barrier(running, tell, asyncio.get_running_loop().time() + left_s)
        for driver, reason in failed.items():
            self._recorder.event(driver.name, "late", f"no answer to what followed subinterval {k}: {reason}")
        return answers

    def _boundary(self, driver: Driver, k: int, start_ns: int) -> int:
        """Where subinterval k ends on the host's clock, as its offset says now."""
        return self._boundaries.place(driver, k, driver.clock.to_local(start_ns + (k + 1) * self._length_ns))

    async def _steer(self, edits: Sequence[Edit], hosts: _Hosts, within_s: float) -> None:
        """What control wants changed, to all hosts at once that drive."""
        if not edits:
            return
        live, late = ({driver.name for driver in those} for those in (hosts.live, hosts.late))
        failed = await self.changes.steer(
            lambda parameters: steered(edits, self._rollups, parameters, live, late), within_s
        )
        for host, reason in failed.items():
            self._recorder.event(host, "edit", f"control's edit failed: {reason}")

    async def _halt(self, hosts: _Hosts) -> int:
        """Submit nothing more from now, on all hosts at once. Returns when that was."""
        halted_ns = self._halted_ns = self._fleet.now_ns()
        self._stopping = True
        self.changes.close("the run is being halted")
        self._recorder.event("", "halt", "nothing more is submitted; catching what is in flight")
        for driver, reason in (await _halted(hosts.live | hosts.late)).items():
            self._drop(driver, hosts, f"not halted: {reason}", self._running, ())
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


def lead_s(drivers: Sequence[Driver]) -> float:
    """From `go` to the start: every host has to hear of it, get ready, and be heard to be."""
    far = min(2 * max((driver.round_trip_s for driver in drivers), default=0.0) + LEAD_MARGIN_S, LONGEST_LEAD_S)
    return max(LEAD_S, far) + LEAD_PER_HOST_S * len(drivers)


async def _halted(hosts: Iterable[Driver]) -> dict[Driver, str]:
    """Halt those that drive, all at once. Returns who has not said within a second that it does, and why."""
    driving = [driver for driver in hosts if driver.state in DRIVING]
    deadline = asyncio.get_running_loop().time() + 1.0
    _, failed = await barrier(driving, lambda driver: driver.ask(Halt), deadline)
    return failed


def _beside(fleet: Fleet, start_ns: int, length_ns: int) -> Iterator[Outside]:
    """Hosts that were given up, which may drive beside the step until their leases end."""
    for name, until_ns in fleet.may_drive().items():
        if until_ns > start_ns:
            words = f"{name} was given up, and its lease ends {(until_ns - start_ns) / 1e9:.1f} s after the start"
            yield Outside(Finding(Reason.LOST_HOST_ACTIVE, words), until=(until_ns - start_ns) // length_ns)


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
