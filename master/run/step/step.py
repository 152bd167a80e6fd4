"""One step: the subinterval cycle, from `go` to the last host's `stopped`.

    start           `go`; all hosts begin at one instant                         step_start.py
    barrier 1       every live host's result is merged, or the host is late      result_barrier.py
    observe         what control sees of it                                      control/observe.py
    decide          continue or stop, and edits                                  control/control_state.py
    barrier 2       every host acknowledges what follows                         step_commands.py
    record          rows on disk, reports to watchers                            step_recorder.py
    measure         windows, their sums, the checks of a measurement             step_measurements.py
    check           timing: of the controller, and of the hosts' clocks          interlock.py

Rule: the controller never waits for one host beyond barrier 1's deadline. When the step ends, every host is halted; a
host that does not stop is lost.

Time: boundaries are `start + (k + 1) x length` on the controller's clock. The decision on subinterval k is taken
while k + 1 runs; with it goes the place of the boundary that ends k + 2. Where a result or the controller is late, the
hosts go on, and later subintervals have ended by then: their number goes into the observation, since what control
changes acts after them, and they are decided on at once.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ....protocol.messages import Go, Result
from ....protocol.states import State as HostState
from ...connectors.gathering import Gathering
from ...control.decision import Alert, Decision, Measured
from ...control.late_hosts import LateHosts
from ...control.observation import Phase
from ...control.observe import Samples, connector_samples, observe
from ...hosts.driver import DRIVING, Driver
from ...rollup.parameters_in_force import Settings, SettingsInForce, is_other_load
from ...rollup.validity import ScopedFinding
from ...rollup.volumes import Volumes, until_the_end, volumes_of
from ...verdicts import Finding, Reason, Severity
from ..edits.live_changes import EditEffect
from ..setup.resolve_settings import steered
from .boundaries import Boundaries
from .interlock import InterlockChecks, Moments, timing_of
from .io_faults import IoFaults
from .live_step import LiveStep
from .redistribution import Redistribution
from .result_barrier import HOLD_HALT_S, Collected, ResultBarrier
from .step_commands import StepCommands, farthest_s, send_halt
from .step_context import StepContext
from .step_hosts import StepHosts
from .step_measurements import StepMeasurements
from .step_merge import StepMerge
from .step_start import StepStart
from .step_states import Change
from .step_types import ClosedSubinterval, SoFar, StepOutcome

CATCH_S: Final = 12.0  # after a stop, for `stopped`: hosts catch what is in flight for up to 10 s
LOADED: Final = (Phase.WARMUP, Phase.RUN, Phase.TRANSIENT)
PAUSED: Final = "paused; `ivypy unpause` continues"
NO_CONNECTORS: Final = Gathering((), ())
NO_HOST: Final = "every host was late or lost"


class StepCycle:
    """Holds one running step. `run` it once; `outcome` says how it ended."""

    def __init__(
        self,
        context: StepContext,
        live: LiveStep,
        raise_alert: Callable[[Alert], None],
        gathering: Gathering = NO_CONNECTORS,
    ) -> None:
        """The hosts that are idle now take part. `raise_alert` gets each breach of a threshold, and must not block."""
        self._fleet, self._rollups, self._recorder = context.fleet, context.rollups, context.recorder
        self._progress, self._length_s, self._length_ns = context.progress, context.length_s, context.length_ns
        self._live = live
        self._gathering = gathering
        self._raise_alert = raise_alert
        self._findings: list[ScopedFinding] = []
        self._ended: Sequence[ScopedFinding] | None = None  # its findings; None until the step is over
        self._keeping: asyncio.Task[None] | None = None  # of what was measured so far
        self._judged = LateHosts(frozenset())  # as in the subinterval that was decided on
        self._of_connectors: Samples = {}  # of the subinterval that was decided on
        self._decided_with: Settings | None = None  # in force at the end of that one
        self._settings = SettingsInForce(self._rollups)
        self._changes = live.changes
        order = {name: self._rollups.order(name) for name in self._rollups.hosts()}
        drivers = [one for one in self._fleet.alive if one.name in order and one.state is HostState.IDLE]
        length_ns, report = self._length_ns, self._recorder.event
        boundaries, merging = Boundaries(length_ns), StepMerge(self._rollups, order, drivers)
        self._hosts = StepHosts(drivers, context)
        self._faults = IoFaults(self._rollups, length_ns, report, self._findings.append)
        self._measurements = StepMeasurements(length_ns, self._recorder.measured)
        self._interlock = InterlockChecks(length_ns, report)
        self._results = ResultBarrier(context, self._hosts, merging, boundaries, self._faults, self._joined)
        self._start = StepStart(context, self._hosts, boundaries, self._results, self._interlock.placed)
        self._redistribution = Redistribution(context, self._hosts, self._changes)
        self._commands = StepCommands(context, self._hosts, boundaries, self._changes)

    async def run(self) -> None:
        start_ns = await self._start.go(self._findings.append)
        recorder = self._recorder
        self._gathering.begin(start_ns, self._length_ns, recorder.gathered, recorder.late_gather)
        try:
            await self._subintervals(start_ns)
        finally:
            if self._keeping is not None:
                self._keeping.cancel()
            await self._redistribution.end()
            await self._gathering.end()

    async def _subintervals(self, start_ns: int) -> None:
        """The cycle, until every host has stopped."""
        progress, hosts = self._progress, self._hosts
        self._changes.begin(start_ns)
        first = self._live.control.opening()
        self._changes.steers(steered(first.edits, self._rollups, self._changes.in_force(), hosts.names))
        announced, self._judged = first.next_phase, LateHosts(hosts.names)
        while self._goes_on and (k := progress.running) <= progress.last:
            end_ns = start_ns + (k + 1) * self._length_ns
            collected = await self._results.collect(k, end_ns, self._commands.halt)
            self._take_readings(k, collected)
            await self._connectors(k)
            merged_ns = self._fleet.now_ns()
            if not (interval := collected.interval).hosts and not self._results.has_early:
                break
            effect = self._changes.seen(interval)
            settings = self._settings.of(self._changes.in_force(), interval.part, self._changes.as_planned)
            volumes = volumes_of(interval, settings)
            interval = until_the_end(interval, volumes)
            collected = replace(collected, interval=interval)
            decision, acknowledged = Decision(self._after_the_end(k + 1)), dict[Driver, int]()
            deciding, late = progress.is_deciding, self._ended_since(end_ns)
            if deciding and effect is EditEffect.PAUSED:
                decision = Decision(announced, progress=PAUSED, paused=True)
            elif deciding and collected.covered:  # it is decided on with the one whose result covers it
                decision = Decision(announced)
            elif deciding:
                decision = self._decide(collected, settings, volumes, announced, effect, late)
            if deciding and self._live.skipped_by and not decision.done:
                decision = self._end_with_measured(decision)
            decided_ns = self._fleet.now_ns()
            if deciding:
                left_s = (end_ns + self._length_ns - decided_ns) / 1e9
                acknowledged = await self._commands.follow(k, late, start_ns, decision, left_s)
                self._redistribution.follow()
            start, in_ns, arrived = end_ns - self._length_ns, collected.in_ns, collected.arrived
            at = Moments(start, end_ns, in_ns, merged_ns, decided_ns, arrived, acknowledged)
            self._record(collected, announced, effect, decision, at, settings)
            hosts.ended({name for name, result in interval.results.items() if result.last})
            announced = decision.next_phase
            progress.close()
        self._changes.close("the step has ended")
        no_host = progress.is_deciding
        if no_host:
            progress.move(Change.NO_HOST)
        await self._wait_until_stopped(hosts.commanded)
        self._end(no_host)

    @property
    def _goes_on(self) -> bool:
        """Whether there is or may be a result of the running subinterval."""
        hosts = self._hosts
        return bool(hosts.live or self._results.has_early or (hosts.late and not self._progress.is_halted))

    def _joined(self, host: str, result: Result) -> None:
        """A result of a subinterval that was decided on came late."""
        self._measurements.joined(result.subinterval)
        self._changes.joined(host, result)
        self._lose_misfits(self._gathering.take_late(host, result, self._fleet.now_ns()))

    def _take_readings(self, k: int, collected: Collected) -> None:
        """Take what hosts read of themselves from their results."""
        arrived_ns = {driver.name: at_ns for driver, at_ns in collected.arrived.items()}
        lost = {driver.name: driver.lost for driver in self._fleet.drivers.values() if driver.lost is not None}
        self._lose_misfits(self._gathering.take_results(k, collected.interval.results, arrived_ns, lost))

    def _lose_misfits(self, misfits: Mapping[str, str]) -> None:
        for host, why in misfits.items():
            self._fleet.drivers[host].lose(f"protocol error: {why}")

    def _ended_since(self, end_ns: int) -> int:
        """How many whole subintervals have ended after the one that ended at `end_ns`, by when a command arrives."""
        arrives_ns = self._fleet.now_ns() + round(farthest_s(self._hosts.part) / 2 * 1e9)
        return max(arrives_ns - end_ns, 0) // self._length_ns

    def _after_the_end(self, number: int) -> Phase:
        """The phase of a subinterval that nothing is decided on."""
        return Phase.TAIL if number <= self._commands.last_loaded else Phase.COOLDOWN

    async def _connectors(self, k: int) -> None:
        """Wait for the gathers of the connectors that control looks at; an interrupt ends that."""
        names = {focus.connector for focus in self._live.control.focuses if focus.connector}
        if not names or not self._progress.is_deciding:
            return
        waits = {
            asyncio.ensure_future(self._gathering.wait(k, names)),
            asyncio.ensure_future(self._fleet.interrupted.wait()),
        }
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def outcome(self) -> StepOutcome:
        """How the step ended; where it is given up, with what was measured until then. Raises OutputError."""
        findings = self._end()
        measurements = await self._measurements.all_summed(self._recorder.stored)
        return StepOutcome(measurements, tuple(findings), tuple(self._faults.hung))

    def _keep(self) -> None:
        """Have recorded what was measured so far, if it is time; it may read the disk, so nobody waits for it.

        It is taken at once: between a decision and its record, control is ahead of what was measured.
        """
        if self._recorder.wants_so_far and (self._keeping is None or self._keeping.done()):
            self._keeping = asyncio.create_task(self._recorder.so_far(self._so_far))

    def _so_far(self) -> SoFar:
        cut, findings = None, [*self._found(), *self._interlock.findings]
        if not self._progress.is_complete:
            cut = self._live.control.cut_short(self._progress.decided)
            findings += self._found_in(cut)
        severity = Severity.NOTE if cut is None else Severity.PARTIAL
        after = f"after subinterval {self._progress.running}"
        findings.append(ScopedFinding(Finding(Reason.CONTROLLER_ENDED, after, severity)))
        hung = tuple(self._faults.hung)
        unsummed, summed = self._measurements.so_far(cut, self._recorder.stored_late)
        return SoFar(unsummed, lambda windows: StepOutcome(summed(windows), tuple(findings), hung))

    def _found(self) -> list[ScopedFinding]:
        """The findings of the step so far."""
        parts = self._live.findings, self._findings, self._changes.findings(), self._hosts.findings()
        return [one for part in parts for one in part]

    def _decide(
        self,
        collected: Collected,
        settings: Settings,
        volumes: Volumes | None,
        announced: Phase,
        effect: EditEffect,
        late: int,
    ) -> Decision:
        """Control's decision on a closed subinterval. `late`: how many subintervals have ended since."""
        interval, k = collected.interval, self._progress.running
        start_s = k * self._length_ns / 1e9
        edited = effect in (EditEffect.EDITED, EditEffect.CATCHING_UP)
        focuses = self._live.control.focuses
        before, self._judged = self._judged, self._judged.after(k, interval.part, interval.absent, self._length_s)
        self._note_unawaited(before)
        rows = interval.layout.rows_of(self._judged.judged)
        self._of_connectors = connector_samples(
            self._rollups, rows, focuses, lambda metric, row: self._gathering.sample(k, metric, row)
        )
        seen = observe(
            interval, settings, focuses, start_s, self._length_s, announced, edited, self._judged, before, late,
            self._of_connectors, is_other_load(self._decided_with, settings), volumes,
        )  # fmt: skip
        self._decided_with = settings
        decision = self._live.decide(seen)
        if effect is EditEffect.CATCHING_UP and not decision.measured:
            decision = replace(
                decision, progress=f"{self._changes.catching_up:,} I/Os of the earlier load are still outstanding"
            )
        self._note_measured(decision.measured)
        self._progress.decide(k)
        if decision.done:
            self._progress.move(Change.DONE)
            if seen.volumes is not None and seen.volumes.all_ended:
                self._recorder.event("", "ended", f"its workloads {decision.progress}")
        return decision

    def _end_with_measured(self, decision: Decision) -> Decision:
        """The decision that ends the step with what it has measured."""
        cut = _because(f"ivypy skip, by {self._live.skipped_by}", self._live.control.cut_short(self._progress.decided))
        self._note_measured([cut])
        self._progress.move(Change.DONE)
        return replace(decision, next_phase=Phase.TAIL, edits=(), measured=(*decision.measured, cut))

    def _note_measured(self, measured: Iterable[Measured]) -> None:
        for one in measured:
            self._progress.measure_until(one.last)
            self._findings += self._found_in(one)

    def _found_in(self, measured: Measured) -> Iterator[ScopedFinding]:
        """The findings of one measurement."""
        yield from self._changes.edited(measured.first, measured.last)
        if self._live.control.focuses:  # else it has gone by no figures
            yield from self._judged.findings(measured)

    def _note_unawaited(self, before: LateHosts) -> None:
        if not self._live.control.focuses:
            return
        for host in self._judged.since.keys() - before.since.keys():
            words = f"{self._judged.missed[host] - 1} subintervals in a row were without it: control goes by the others"
            self._recorder.event(host, "not_awaited", words)

    def _end(self, no_host: bool = False) -> Sequence[ScopedFinding]:
        """Close the measurement that the end cuts short, and return the findings of the step. The first call counts.

        `no_host`: it was cut short because none was left.
        """
        if self._ended is not None:
            return self._ended
        if not self._progress.is_complete:
            cut = self._live.control.cut_short(self._progress.decided)
            cut = _because(NO_HOST, cut) if no_host else cut
            self._note_measured([cut])
            self._measurements.close(cut)
        findings = self._found()
        if no_host:  # the lost hosts are the reason for the early end
            findings = [replace(one, since=min(one.since, max(cut.last, 0))) for one in findings]
        self._ended = [*findings, *self._interlock.findings]
        return self._ended

    def _record(
        self, collected: Collected, announced: Phase, effect: EditEffect, decision: Decision, at: Moments,
        settings: Settings,
    ) -> None:  # fmt: skip
        """Hand over a subinterval that was decided on."""
        progress, interval = self._progress, collected.interval
        stalled_ns, cpu_ns = self._fleet.lag.take()
        progress.stalled(stalled_ns)
        timing = timing_of(interval, at, stalled_ns, cpu_ns)
        may_end = (progress.decided, *self._live.control.may_end)
        decided = progress.decided == progress.running  # by control: not in a pause, nor after its end
        overdue_ns = max(at.decided - at.end - self._length_ns, 0) if decided else 0
        k, phase = progress.running, self._phase(announced, effect, decision.set_aside)
        of_connectors = self._of_connectors if decided else {}
        closed = ClosedSubinterval(
            k, phase, at.start, interval, decision, timing, settings, may_end, of_connectors, overdue_ns
        )
        self._recorder.record_subinterval(closed)
        for alert in decision.alerts:
            self._raise_alert(alert)
        self._measurements.add(closed)
        self._interlock.check(closed, self._hosts.live | self._hosts.late)
        self._keep()

    def _phase(self, announced: Phase, effect: EditEffect, set_aside: bool) -> Phase:
        """The phase that a subinterval has become: what it was announced as, unless something came in between."""
        if effect is not EditEffect.NO and announced in LOADED:
            return Phase.TRANSIENT
        if set_aside:
            return Phase.DISTURBED
        return Phase.TAIL if announced is Phase.RUN and self._progress.is_halted else announced

    async def _wait_until_stopped(self, left: set[Driver]) -> None:
        """Halt those that are left, whom nothing else ends, and wait for every host's `stopped`, for a bounded time.

        A host that gives none is lost, and with it goes its lease.
        """
        fleet, progress = self._fleet, self._progress
        deadline = fleet.lag.deadline(CATCH_S)
        if progress.is_halted:
            deadline.bring_forward(progress.halted_ns + round(HOLD_HALT_S * 1e9))
        halted: set[Driver] = set()
        while busy := self._busy():
            if fleet.interrupted.is_set() and not progress.is_halted:
                halted.update(driver for driver in busy if driver.state in DRIVING)
                deadline.bring_forward(await self._commands.halt_those(busy) + round(HOLD_HALT_S * 1e9))
            if new := [driver for driver in busy if driver in left - halted and driver.state in DRIVING]:
                halted.update(new)
                await send_halt(new, fleet.lag)
            event = await self._results.next_event(deadline)
            if event is not None:
                self._results.take_after(*event)
            elif deadline.has_passed():
                break
        for driver in self._busy():
            driver.lose("it has not stopped; later steps are without it")
        while not fleet.inbox.empty():
            self._results.take_after(*fleet.inbox.get_nowait())

    def _busy(self) -> list[Driver]:
        """The hosts that drive, or may yet: a `go` that was not answered in time can still be answered `ready`."""
        return [driver for driver in self._fleet.alive if driver.state in DRIVING or driver.has_pending(Go)]


def _because(cause: str, measured: Measured) -> Measured:
    """A measurement that was cut short, saying what cut it."""
    cut = (Reason.SHORTENED, Reason.INTERRUPTED)
    findings = (
        replace(one, detail=", ".join(filter(None, (cause, one.detail)))) if one.reason in cut else one
        for one in measured.findings
    )
    return replace(measured, findings=tuple(findings))
