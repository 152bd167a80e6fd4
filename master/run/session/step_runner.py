"""The steps of a run, one after the other, on hosts that are connected and agreed to.

Rule: a step that fails costs itself; a run goes on while a host is left. Between steps, hosts that were lost and are
connected again take part from the next step on.
"""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Final

from ....protocol.parameters import Parameters
from ...connectors.lifecycle import Connectors
from ...control.control_state import ControlState
from ...errors import HostsError, NoHostLeft
from ...exit_codes import ExitCode
from ...hosts.driver import Lost, barrier
from ...plan.attempts import attempt_name, step_of_attempt, step_of_plan
from ...plan.describe import planned_s
from ...plan.model import OnIoError, OnLoss, Plan, Step
from ...rollup.instances import InstanceKey, RollupInstance, Rollups
from ...rollup.validity import ScopedFinding
from ...summary.rounds_table import last_rounds, without_rounds
from ...text.suggestions import suggestion
from ...verdicts import Finding, Reason
from ..edits.edit_policy import violations
from ..edits.edit_types import EditRefused
from ..record.run_recorder import RunRecorder
from ..record.slo_alerts import SloAlerts
from ..record.step_recorder import StepRecorder
from ..record.step_result import StepResult, exit_code_of, result_of, without_measurement
from ..setup.baseline_step import Measured, Reference, References
from ..setup.differences import backend_difference
from ..setup.discover_luns import PlacedPlan, begin_again, with_files
from ..setup.fleet import Fleet, HaltCause
from ..setup.host_settings import HostSettings
from ..setup.reconnect import Reconnection
from ..setup.resolve_settings import NotMeasured, resolve, shared_anew
from ..step.live_step import LiveStep, control_for, opening_parameters
from ..step.step import StepCycle
from ..step.step_context import StepContext
from ..step.step_types import StepOutcome
from .control_api import ControlApi, RunningStep
from .rounds_run import RoundsRun

REJOIN_S: Final = 60.0  # between steps, for a host that is connected again: its files are created anew
QUIET_S: Final = 15.0  # at most: with a longer lease, the steps that follow say that a host may drive beside them


class StepRunner:
    """Holds the placed plan, the settings of the hosts, and each step's result."""

    def __init__(
        self,
        plan: Plan,
        recorder: RunRecorder,
        fleet: Fleet,
        reconnecting: Reconnection,
        discovered: PlacedPlan,
        connectors: Connectors,
        api: ControlApi,
        results: dict[str, StepResult],
    ) -> None:
        """`results` gets each step's, by its name in the plan."""
        self._plan = plan
        self._recorder = recorder
        self._fleet = fleet
        self._reconnecting = reconnecting
        self._discovered = discovered
        self._connectors = connectors
        self._api = api
        self._results = results
        self._host_settings = HostSettings(fleet)
        self._orphans: dict[tuple[str, str], str] = {}  # host and LUN, with the step whose I/Os have not come back
        self._repeats = 0  # runs of steps beyond each one's first: later ones have higher numbers than in the plan
        self._rounds: RoundsRun | None = None  # those that are running
        self._cut_short = False  # steps of the plan were left out
        self._stopped = False  # by `on_invalid: stop`

    @property
    def rollups(self) -> Rollups:
        return self._discovered.rollups

    async def run_all(self) -> None:
        """The plan's steps, while a host is left and nobody interrupts."""
        for rounds, group in groupby(self._plan.steps, key=lambda step: step.control.rounds):
            steps = [*group]
            if not await (self._in_turn(steps) if rounds is None else self._in_rounds(RoundsRun(rounds, steps))):
                break

    async def _in_turn(self, steps: Iterable[Step]) -> bool:
        """Whether all were run, and the run goes on."""
        for step in steps:
            await self.rejoin()
            if not self.goes_on():
                return False
            try:
                await self.step(step)
            except NoHostLeft:
                return False
        return True

    async def _in_rounds(self, rounds: RoundsRun) -> bool:
        """The passes of a step, until its rounds are over."""
        self._rounds = rounds
        try:
            while await self._in_turn(rounds.passes()):
                so_far = rounds.close()
                self._recorder.rounds(so_far.rows())
                self._recorder.event("round", f"{so_far.spec.step}: {so_far.in_words}")
                if so_far.is_over:
                    return True
                self._repeats += len(rounds.steps)
            return False
        finally:
            self._rounds = None

    async def rejoin(self) -> None:
        """Between steps: hosts that were lost, and are connected again by now, take part from here on."""
        fleet = self._fleet
        if fleet.everybody or not self._host_settings.begun:
            return
        await self._quiet()
        joining = asyncio.ensure_future(self._rejoin())
        interrupted = asyncio.ensure_future(fleet.interrupted.wait())
        try:
            await asyncio.wait((joining, interrupted), return_when=asyncio.FIRST_COMPLETED)
        finally:
            interrupted.cancel()
            joining.cancel()
        if not joining.cancelled() and joining.done():
            joining.result()

    async def _rejoin(self) -> None:
        fleet = self._fleet
        began, failed = await barrier(
            [driver for driver in await self._reconnecting.connected_again() if driver.name not in fleet.may_drive()],
            lambda driver: begin_again(
                self._plan, driver, self._discovered, self._host_settings.backends.get(driver.name, "")
            ),
            fleet.lag.deadline(REJOIN_S),
        )
        for driver, files in began.items():
            try:
                self._discovered = with_files(self._discovered, driver.name, files)
            except HostsError as error:
                failed[driver] = str(error)
            else:
                fleet.drivers[driver.name] = driver
                self._host_settings.forget(driver.name)
                self._recorder.event(
                    "rejoined", "it is connected again, and takes part from the next step on", driver.name
                )
        for driver, reason in failed.items():
            driver.lose(reason)
            self._recorder.event("not_rejoined", f"it is connected again, but cannot take part: {reason}", driver.name)

    def goes_on(self) -> bool:
        """Whether another step may begin; reports why not."""
        if self._stopped:
            return False
        if self._fleet.interrupted.is_set():
            self._cut_short = True
            return False
        return not self._no_host_left()

    def replan(self, plan: Plan) -> None:
        """Go on with `plan`, which is the same but for its steps."""
        self._plan = plan

    async def program(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Write a program's steps to run.json."""
        self._recorder.noted(program=list(entries))

    def parameters_of(self, step: Step, measured: Measured | None = None) -> Mapping[InstanceKey, Parameters]:
        """The parameters that `step` begins with. Raises PlanFaults, NotMeasured, and EditRefused for what was not
        agreed to.
        """
        discovered = self._discovered
        parameters = resolve(self._plan, step, discovered.placement, discovered.rollups, measured or self._measured)
        if reasons := violations(parameters, discovered):
            raise EditRefused(reasons)
        return parameters

    async def step(self, step: Step) -> StepResult:
        """Run one step, and again as its `on_invalid` says: the result of the last attempt.

        Raises HostsError, NoHostLeft, PlanFaults.
        """
        result = await self._attempt(step)
        for attempt in range(2, step.on_invalid.repeats + 2):
            if not result.is_invalid_by_itself or not result.was_run or result.was_skipped:
                return result
            await self.rejoin()
            if not self.goes_on():
                return result
            again = replace(step, name=attempt_name(step.name, attempt))
            self._recorder.event("repeated", f"step {result.ends.name} is invalid: it is run again, as {again.name}")
            self._repeats += 1
            result = await self._attempt(again)
        if step.on_invalid.stop and result.is_invalid_by_itself and not result.was_skipped:
            self._recorder.event("stopped", f"step {step.name} is invalid, and its on_invalid is stop")
            self._stopped = True
        return result

    async def _attempt(self, step: Step) -> StepResult:
        """Run a step once, if what it refers to was measured."""
        step, first = replace(step, number=step.number + self._repeats), not self._host_settings.begun
        await self._connectors.restart(self._fleet.interrupted)
        for another in (True, False):
            discovered, references = self._discovered, References(self._measured)
            try:
                parameters = self.parameters_of(step, references)
                control = control_for(step, discovered.rollups, parameters, references)
            except NotMeasured as error:
                return await self._record_unmeasured(step, error.finding)
            hosts = [driver.name for driver in self._fleet.alive]
            shared = self._shared_anew(parameters, hosts)
            begins = opening_parameters(control, discovered.rollups, {**parameters, **shared}, hosts)
            await self._host_settings.apply(discovered, begins)
            if not another or not self._reconnecting.waiting():
                break
            await self.rejoin()  # a host that was connected again meanwhile
        if self._no_host_left():
            folder = self._recorder.path
            raise NoHostLeft(f"step {step.name!r}: no host is left; {folder}/events.csv says what happened to them")
        if any(one.iops and begins[key] == one for key, one in shared.items()):  # else control has set them
            self._recorder.event("redistributed", f"step {step.name}: the others drive what absent hosts were to drive")
        if first:
            self._recorder.workloads(discovered.rollups, parameters)
            self._recorder.noted(backends=self._backends())
        return await self._step(step, control, [*self._missing(), *references.findings(), *self._orphaned()])

    def _shared_anew(
        self, parameters: Mapping[InstanceKey, Parameters], hosts: Collection[str]
    ) -> Mapping[InstanceKey, Parameters]:
        """The parameters with which these hosts drive the load of absent ones, too, where the plan says so."""
        if not self._redistributes:
            return {}
        rollups = self._discovered.rollups
        lost = {*rollups.hosts()} - {*hosts} - self._fleet.may_drive().keys()
        return shared_anew(parameters, rollups, lost, hosts)

    @property
    def _redistributes(self) -> bool:
        return self._plan.on_loss is OnLoss.REDISTRIBUTE

    async def _step(self, step: Step, control: ControlState, beforehand: Sequence[ScopedFinding]) -> StepResult:
        """Run a step whose workload instances are created; `beforehand`: what is known of it already."""
        discovered, parameters = self._discovered, self._host_settings.parameters
        await self._connectors.find_on_new_hosts(self._fleet.alive)
        gathering = self._connectors.gathering(discovered.rollups)
        recorder = await StepRecorder.begin(self._recorder, step, discovered.rollups, gathering.connected)
        place = step.number - self._repeats
        open_end = any(one.control.rounds for one in self._plan.steps[place:])
        steps = 0 if open_end else len(self._plan.steps) + self._repeats
        recorder.shown(steps, self._later_s(step, place), planned_s(self._plan.steps))
        live = LiveStep(self._host_settings, control, round(step.subinterval_s * 1e9))
        live.note(beforehand)
        alerts = SloAlerts(step, recorder.event)
        context = StepContext(
            self._fleet, discovered.rollups, recorder, live.progress, step.subinterval_s, step.cooldown_subintervals,
            redistributes=self._redistributes, stop_on_error=self._plan.on_io_error is OnIoError.STOP,
            lease_ns=round(self._plan.lease_s * 1e9), start_timeout_s=self._plan.start_timeout_s,
        )  # fmt: skip
        cycle = StepCycle(context, live, alerts.raise_alert, gathering)

        def result(ended: StepOutcome) -> StepResult:
            tolerance, utc_ns = self._plan.achieved_iops_tolerance, self._recorder.clock.utc_ns
            return result_of(step, recorder.begun_utc_ns, ended, discovered, tolerance, parameters, utc_ns)

        def final(ended: StepOutcome) -> StepResult:
            judged = result(ended)
            why = None if self._rounds is None else self._rounds.finding(step, judged)
            if why is None or judged.standing.figures is None:
                return judged
            return result(replace(ended, findings=(*ended.findings, ScopedFinding(why))))

        recorder.judged_by(result)
        with self._api.editing(RunningStep(step.number, step.subinterval_s, live, discovered, self._measured)):
            try:
                await cycle.run()
                await alerts.close()
                ended = await cycle.outcome()
            except asyncio.CancelledError:  # the hosts are given up, what was measured is not
                self._end(recorder, result(await cycle.outcome()))
                raise
        luns = {(one.host, one.number): one.lun for one in discovered.rollups.instances} if ended.hung else {}
        self._orphans = {(host, luns[host, number]): step.name for host, number in ended.hung}
        return self._end(recorder, replace(final(ended), was_skipped=bool(live.skipped_by)))

    async def _record_unmeasured(self, step: Step, why: Finding) -> StepResult:
        """A step that cannot be run: a row that says why."""
        recorder = await StepRecorder.begin(self._recorder, step, self.rollups)
        return self._end(recorder, without_measurement(step, recorder.begun_utc_ns, self._discovered, why))

    def _end(self, recorder: StepRecorder, result: StepResult) -> StepResult:
        recorder.end(result)
        self._results[step_of_attempt(result.ends.name)] = result
        return result

    def exit_code(self) -> ExitCode:
        """The exit code that follows from the steps that were run."""
        if HaltCause.USER in self._fleet.causes:
            return ExitCode.INTERRUPTED
        code = exit_code_of(self._that_count())
        if self._cut_short and code is ExitCode.OK:
            return ExitCode.PARTIAL if self._results else ExitCode.HOSTS
        return code

    def _that_count(self) -> list[StepResult]:
        """The results that the run's exit code follows from: of steps in rounds, the last rounds."""
        ends = [result.ends for result in self._results.values()]
        counting = {step.number for step in (*without_rounds(ends), *last_rounds(ends))}
        return [result for result in self._results.values() if result.ends.number in counting]

    def _backends(self) -> Mapping[str, str]:
        """How each host does I/O; reports where hosts differ."""
        decided = self._host_settings.backends
        backends = {driver.name: decided.get(driver.name, self._plan.engine.backend) for driver in self._fleet.alive}
        if line := backend_difference(backends):
            self._recorder.event("host_difference", f"hosts differ: {line}")
        return backends

    def _no_host_left(self) -> bool:
        """Whether no step can be run any more; reports why each host was lost."""
        if self._fleet.alive:
            return False
        while not self._fleet.inbox.empty():
            driver, event = self._fleet.inbox.get_nowait()
            if isinstance(event, Lost):
                self._recorder.event("lost", event.reason, driver.name)
        self._recorder.event("stopped", "no host is left")
        self._cut_short = True
        return True

    def _orphaned(self) -> Iterator[ScopedFinding]:
        """Whose LUNs the step before left with I/Os that had not come back."""
        for instance in self.rollups.instances:
            if (before := self._orphans.get((instance.host, instance.lun))) is not None:
                words = f"{instance.host}: {instance.lun}: of step {before}, some had not completed when it ended"
                yield ScopedFinding(Finding(Reason.ORPHANED_IOS, words), instance.host, instance.number)

    def _missing(self) -> list[ScopedFinding]:
        """Findings of the hosts that were missed at the beginning, for every row that would have been theirs, too."""
        return [
            ScopedFinding(Finding(Reason.HOST_LOST, f"{host} is missing: {fault.what}"), of_many_hosts=True)
            for host, fault in self._fleet.missed.items()
        ]

    async def _quiet(self) -> None:
        """Wait while a host that was given up may still drive."""
        if may_drive := self._fleet.may_drive():
            names = ", ".join(sorted(may_drive))
            self._recorder.event("waiting", f"for the leases of lost hosts: {names}")
            await self._fleet.quiet(QUIET_S)

    def _measured(self, step: str, instance: RollupInstance) -> Reference:
        """The figures that a rollup instance measured in an earlier step. Raises NotMeasured."""
        again = (of_round for name, of_round in reversed(self._results.items()) if step_of_plan(name) == step)
        result = self._results.get(step) or next(again, None)
        if result is None:
            raise NotMeasured(f"no step {step!r} has been run{suggestion(step, self._results)}")
        return result.reference(instance)

    def _later_s(self, step: Step, place: int) -> float:
        """How long what follows a step may take, in seconds. `place`: of the step in the plan."""
        if self._rounds is None:
            return planned_s(self._plan.steps[place + 1 :])
        return self._rounds.later_s(step) + planned_s(self._plan.steps[self._rounds.steps[-1].number + 1 :])
