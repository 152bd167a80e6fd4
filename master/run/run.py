"""One run: connect, discover, consent, create, the steps, close.

Rule: nothing is created or written on a host before every host has answered, every LUN is found, and consent was
checked for the most that any step could do. A step that fails costs itself; a run goes on while a host is left.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ... import __version__
from ...protocol.parameters import Parameters
from ..control.decide import ControlState
from ..drivers.process import DriverProcess, driver_processes
from ..drivers.split import processes_for
from ..errors import HostsError, IvypyError, NoHostLeft, OutputError
from ..hosts.bundle import slave_bundle
from ..hosts.driver import Lost, barrier
from ..hosts.login_throttle import LoginGate
from ..live.reports import Remark, RunEnds, Watcher
from ..live.socket_server import served
from ..output.csv_text import utc
from ..output.writer_thread import PATIENCE_S
from ..plan.model import OnIoError, Plan, Step
from ..rollup.instances import RollupInstance, Rollups
from ..rollup.validity import Outside
from ..text.suggestions import suggestion
from ..verdicts import ExitCode, Finding, Reason, Verdict
from . import consent
from .baseline_step import Key, Measured, Reference, References
from .control_api import Desk, Running
from .discovery import Discovered, begin_again, create, discover, prepare, with_files
from .edit_policy import beyond
from .fleet import GOODBYE, Fleet, Opener, connected
from .host_notices import notices_passed_on
from .host_settings import Told
from .live_changes import EditRefused
from .open import opener
from .placement import to_create
from .resolve_settings import NotMeasured, resolve
from .run_recorder import Clock, RunRecorder
from .signals import Presses
from .step import StepSequence
from .step_control import begun_with, state_for
from .step_recorder import StepRecorder
from .step_result import StepResult, exit_code_of, result_of, without_measurement

REJOIN_S: Final = 60.0  # between steps, for a host that is connected again: its files are created anew
QUIET_S: Final = 15.0  # at most: with a longer lease, the steps that follow say that a host may drive beside them


SLOW_DISK_S: Final = 2.0  # at the end of the run: then its watchers are told what is waited for


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line adds to a plan."""

    root: Path  # the run's folder is made in it
    destroy: str | None  # the token
    command_line: tuple[str, ...]
    processes: int | None = None  # that drive hosts; None: as many as hosts and cores ask for


async def run_plan(plan: Plan, options: Options, watcher: Watcher, presses: Presses) -> ExitCode:
    """Run `plan` to its end. Raises IvypyError where it cannot be run."""
    return await Run(plan, options, watcher, presses, opener(slave_bundle(), LoginGate())).run()


class Run:
    """Remembers one run: its folder, its hosts, what they were told, and each step's result."""

    def __init__(self, plan: Plan, options: Options, watcher: Watcher, presses: Presses, opening: Opener) -> None:
        loop = asyncio.get_running_loop()
        self._plan = plan
        self._options = options
        self._presses = presses
        self._opening = opening
        self._clock = Clock(lambda: int(loop.time() * 1e9), time.time_ns())
        self._recorder = RunRecorder(options.root, plan, self._clock, options.command_line, watcher)
        self._watcher = self._recorder.hub
        self._results: dict[str, StepResult] = {}
        self._orphans: dict[tuple[str, str], str] = {}  # host and LUN, with the step whose I/Os have not come back
        self.desk = Desk(str(plan.path or plan.name), self._recorder, presses, self._measured)
        self._creating = False  # files have been asked for
        self._cut_short = False  # steps of the plan were left out
        self.code = ExitCode.INTERNAL

    @property
    def folder(self) -> Path:
        return self._recorder.path

    async def run(self) -> ExitCode:
        """The plan's steps, one after the other."""
        async with self.opened():
            for step in self._plan.steps:
                await self.rejoin()
                if not self.goes_on():
                    break
                try:
                    await self.step(step)
                except NoHostLeft:
                    break
        return self.code

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Everything but the steps: from the first connection to the last word. Raises IvypyError."""
        plan, recorder = self._plan, self._recorder
        async with AsyncExitStack() as socket:
            try:
                await self._serve(socket)
                processes = await socket.enter_async_context(self._processes())
                async with connected(
                    plan.hosts, self._opening, recorder.host_log, self._clock.now_ns, __version__, processes,
                    recorder.host_log_path, self._parted, plan.may_miss,
                ) as fleet:  # fmt: skip
                    self._fleet = self.desk.fleet = fleet
                    self._told = Told(fleet)
                    self._presses.status = lambda: self._watcher.show_first(self.desk.standing())
                    await prepare(plan, fleet)
                    self._discovered = self.desk.discovered = await self._agreed(fleet)
                    for host, fault in fleet.missed.items():
                        self._recorder.event(
                            "missed", f"the run goes on without it: {fault.what}; {fault.remedy}", host
                        )
                    recorder.discovered(plan.hosts, fleet.hellos(), self._discovered.placement)
                    self._presses.halts(fleet.interrupted.set)  # until now a press cancels: there was no I/O to halt
                    yield
                    self.code = self._exit_code(fleet)
            except IvypyError as error:
                self.code = error.exit_code
                raise
            except asyncio.CancelledError:
                self.code = ExitCode.INTERRUPTED
                raise
            finally:
                patience = asyncio.get_running_loop().call_later(SLOW_DISK_S, self._slow_disk)
                try:
                    await recorder.close(self.code)
                except OutputError as error:
                    self.code = error.exit_code
                    raise
                finally:
                    patience.cancel()
                    self._last_word()

    def _slow_disk(self) -> None:
        words = f"the disk of {self.folder} has not taken everything yet; it is given {PATIENCE_S:g} s"
        self._watcher.show(Remark(utc(self._clock.utc_ns()), "", words))

    def _processes(self) -> AbstractAsyncContextManager[Mapping[str, DriverProcess]]:
        hosts, wanted = self._plan.hosts, self._options.processes
        if wanted is None:
            wanted = processes_for(len(hosts), len(os.sched_getaffinity(0)))
        return driver_processes(hosts, wanted, self._plan.lease_s)

    def _parted(self, host: str, words: str | None) -> None:
        """A host was told to end: what may be left on it is said."""
        if words is not None:
            if words != GOODBYE:
                self._recorder.event("last_words", words, host)
            return
        files = [file for file in to_create(self._plan, host) if not file.keep] if self._creating else []
        if files:
            names = ", ".join(f"{file.path} ({consent.counted(file.count, 'file')})" for file in files)
            self._recorder.event(
                "files_left", f"it did not say goodbye: {names} may be left there, until its lease ends", host
            )

    def _last_word(self) -> None:
        """However the run ended: where its folder is, and what its steps came to."""
        ends = tuple(result.ends for result in self._results.values())
        self._watcher.show(RunEnds(str(self.folder), ends, int(self.code), self.code.sentence))

    async def _serve(self, until: AsyncExitStack) -> None:
        """Open the control socket; a run without one is the same run."""
        try:
            path = await until.enter_async_context(served(self.folder.name, self.desk, self._watcher))
        except OutputError as error:
            self._recorder.event("no_socket", f"the run cannot be edited or attached to: {error}")
        else:
            self._recorder.noted(socket=str(path))

    async def _agreed(self, fleet: Fleet) -> Discovered:
        """Look first, check consent, and only then have files created."""
        plan = self._plan
        seen = await discover(plan, fleet)
        seen.check_answers()
        consent.check(seen.targets, plan.destroy, self._options.destroy, str(plan.path or plan.name))
        if not plan.luns.create:
            return seen
        files = sum(file.count for file in plan.luns.create)
        self._creating = True
        self._recorder.event("creating", f"creating {consent.counted(files, 'file')} on each host")
        async with notices_passed_on(fleet, lambda host, text: self._recorder.event("remark", text, host)):
            completed = await create(plan, fleet, seen)
        completed.check_answers()
        return completed

    async def rejoin(self) -> None:
        """Between steps: hosts that were lost, and are connected again by now, take part from here on."""
        fleet = self._fleet
        if fleet.everybody or not self._told.begun:
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
        deadline = asyncio.get_running_loop().time() + REJOIN_S
        began, failed = await barrier(
            [driver for driver in await fleet.back() if driver.name not in fleet.may_drive()],
            lambda driver: begin_again(self._plan, driver, self._discovered),
            deadline,
        )
        for driver, files in began.items():
            try:
                self._discovered = self.desk.discovered = with_files(self._discovered, driver.name, files)
            except HostsError as error:
                failed[driver] = str(error)
            else:
                fleet.drivers[driver.name] = driver
                self._told.forget(driver.name)
                self._recorder.event(
                    "rejoined", "it is connected again, and takes part from the next step on", driver.name
                )
        for driver, reason in failed.items():
            driver.lose(reason)
            self._recorder.event("not_rejoined", f"it is connected again, but cannot take part: {reason}", driver.name)

    def goes_on(self) -> bool:
        """Whether another step may begin; if not, why is said."""
        if self._fleet.interrupted.is_set():
            self._cut_short = True
            return False
        return not self._no_host_left()

    def _no_host_left(self) -> bool:
        """Whether no step can be run any more, and what became of the hosts is said."""
        if self._fleet.alive:
            return False
        while not self._fleet.inbox.empty():
            driver, event = self._fleet.inbox.get_nowait()
            if isinstance(event, Lost):
                self._recorder.event("lost", event.reason, driver.name)
        self._recorder.event("stopped", "no host is left")
        self._cut_short = True
        return True

    @property
    def rollups(self) -> Rollups:
        return self._discovered.rollups

    def replan(self, plan: Plan) -> None:
        """Go on with `plan`, which is the same but for its steps."""
        self._plan = plan

    async def program(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """What a program has asked for, for run.json."""
        self._recorder.noted(program=list(entries))

    def parameters_of(self, step: Step, measured: Measured | None = None) -> Mapping[Key, Parameters]:
        """What `step` begins with. Raises PlanFaults, NotMeasured, and EditRefused for what was not agreed to."""
        discovered = self._discovered
        parameters = resolve(self._plan, step, discovered.placement, discovered.rollups, measured or self._measured)
        if reasons := beyond(parameters, discovered):
            raise EditRefused(reasons)
        return parameters

    async def step(self, step: Step) -> StepResult:
        """Run one step, if what it refers to was measured. Raises HostsError, NoHostLeft, PlanFaults."""
        discovered, references = self._discovered, References(self._measured)
        try:
            parameters = self.parameters_of(step, references)
            control = state_for(self._plan, step, discovered.rollups, parameters, references)
        except NotMeasured as error:
            return await self._skip(step, discovered, error.finding)
        first = not self._told.begun
        hosts = [driver.name for driver in self._fleet.alive]
        await self._told.tell(discovered, begun_with(control, discovered.rollups, parameters, hosts))
        if self._no_host_left():
            raise NoHostLeft(f"step {step.name!r}: no host is left; {self.folder}/events.csv says what became of them")
        if first:
            self._recorder.workloads(discovered.rollups, parameters)
        beforehand = [*self._missing(), *references.findings(), *self._orphaned()]
        return await self._step(self._fleet, discovered, step, control, self._told, beforehand)

    def _orphaned(self) -> Iterator[Outside]:
        """Whose LUNs the step before left with I/Os that had not come back."""
        for instance in self.rollups.instances:
            if (before := self._orphans.get((instance.host, instance.lun))) is not None:
                words = f"{instance.host}: {instance.lun}: of step {before}, some had not come back when it ended"
                yield Outside(Finding(Reason.ORPHANED_IOS, words), instance.host, instance.number)

    def _missing(self) -> list[Outside]:
        """What the hosts that were missed at the beginning are to every row that would have been theirs, too."""
        return [
            Outside(Finding(Reason.HOST_LOST, f"{host} is missing: {fault.what}"), of_many_hosts=True)
            for host, fault in self._fleet.missed.items()
        ]

    async def _quiet(self) -> None:
        """A step is not to begin while a host that was given up may still drive."""
        if may_drive := self._fleet.may_drive():
            names = ", ".join(sorted(may_drive))
            self._recorder.event("waiting", f"for the leases of hosts that were given up while they drove: {names}")
            await self._fleet.quiet(QUIET_S)

    async def _step(
        self,
        fleet: Fleet,
        discovered: Discovered,
        step: Step,
        control: ControlState,
        told: Told,
        beforehand: Iterable[Outside],
    ) -> StepResult:
        parameters = told.parameters
        recorder = await StepRecorder.begin(self._recorder, step, discovered.rollups)
        recorder.shown(len(self._plan.steps), self._planned_s(step.number + 1))
        sequence = StepSequence(
            fleet, discovered.rollups, told, control, step.subinterval_s, step.cooldown_subintervals, recorder,
            stop_on_error=self._plan.on_io_error is OnIoError.STOP,
        )  # fmt: skip
        sequence.found(beforehand)
        self.desk.running = Running(step.number, sequence)

        def result() -> StepResult:
            found = [*sequence.so_far().findings, *recorder.findings]
            tolerance = self._plan.achieved_iops_tolerance
            return result_of(step, recorder.begun_utc_ns, found, recorder.taken, discovered, tolerance, parameters)

        try:
            ended = await sequence.run()
            luns = {(one.host, one.number): one.lun for one in discovered.rollups.instances} if ended.hung else {}
            self._orphans = {(host, luns[host, number]): step.name for host, number in ended.hung}
            await recorder.finish()
        except asyncio.CancelledError:  # the hosts are given up, what was measured is not
            await recorder.sum_up()
            self._end(recorder, result())
            raise
        finally:
            self.desk.running = None
        return self._end(recorder, result())

    async def _skip(self, step: Step, discovered: Discovered, why: Finding) -> StepResult:
        """A step that cannot be run: a row that says why."""
        recorder = await StepRecorder.begin(self._recorder, step, discovered.rollups)
        return self._end(recorder, without_measurement(step, recorder.begun_utc_ns, discovered, why))

    def _end(self, recorder: StepRecorder, result: StepResult) -> StepResult:
        recorder.end(result)
        self._results[result.ends.name] = result
        return result

    def _measured(self, step: str, instance: RollupInstance) -> Reference:
        """What a rollup instance measured in an earlier step. Raises NotMeasured."""
        result = self._results.get(step)
        if result is None:
            raise NotMeasured(f"no step {step!r} has been run{suggestion(step, self._results)}")
        verdict, why = result.verdicts[instance.row], result.reasons[instance.row]
        if verdict is Verdict.INVALID:
            raise NotMeasured(f"step {step} is invalid for {instance}: {why}")
        return result.reference(instance.row)

    def _planned_s(self, first_step: int) -> float:
        return sum(step.planned_s for step in self._plan.steps[first_step:])

    def _exit_code(self, fleet: Fleet) -> ExitCode:
        if fleet.interrupted.is_set() and self._presses.count:
            return ExitCode.INTERRUPTED
        code = exit_code_of(self._results.values())
        if self._cut_short and code is ExitCode.OK:
            return ExitCode.PARTIAL if self._results else ExitCode.HOSTS
        return code
