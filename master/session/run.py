"""One run: connect, discover, consent, create, the steps, close.

Rule: nothing is created or written on a host before every host has answered, every LUN is found, and consent was
checked for the most that any step could do. A step that fails costs itself; a run goes on while a host is left.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ... import __version__
from ...protocol.parameters import Parameters
from ..control.decide import State
from ..errors import IvypyError, NoHostLeft, OutputError
from ..hosts.bundle import slave_bundle
from ..hosts.driver import Lost
from ..hosts.gate import LoginGate
from ..live.hub import Hub
from ..live.report import Remark, RunEnds, StepBegins, Watcher
from ..live.server import served
from ..output.records import Event
from ..output.table import utc
from ..plan.model import OnIoError, Plan, Step
from ..plan.words import suggestion
from ..rollup.instances import RollupInstance, Rollups
from ..verdicts import ExitCode, Finding, Verdict
from . import consent
from .brain import begun_with, state_for
from .changes import EditRefused
from .desk import Desk, Running
from .discover import Discovered, discover, prepare
from .fleet import Fleet, Opener, connected
from .hearing import remarks_told
from .interrupt import Presses
from .keep import Clock, StepKeeper
from .open import opener
from .permitted import beyond
from .record import RunRecorder, StepRecorder
from .result import StepResult, exit_code_of, result_of, without_measurement
from .settings import Key, NotMeasured, resolve
from .step import StepSequence
from .told import Told


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line adds to a plan."""

    root: Path  # the run's folder is made in it
    destroy: str | None  # the token
    command_line: tuple[str, ...]


async def run_plan(plan: Plan, options: Options, watcher: Watcher, presses: Presses) -> ExitCode:
    """Run `plan` to its end. Raises IvypyError where it cannot be run."""
    return await Run(plan, options, watcher, presses, opener(slave_bundle(), LoginGate())).run()


class Run:
    """Remembers one run: its folder, its hosts, what they were told, and each step's result."""

    def __init__(self, plan: Plan, options: Options, watcher: Watcher, presses: Presses, opening: Opener) -> None:
        loop = asyncio.get_running_loop()
        self._plan = plan
        self._options = options
        self._watcher = Hub(watcher, self._console_lost)
        self._presses = presses
        self._opening = opening
        self._now_ns: Callable[[], int] = lambda: int(loop.time() * 1e9)
        self._clock = Clock(time.time_ns(), self._now_ns())
        self._recorder = RunRecorder(options.root, plan, self._utc_ns(), options.command_line)
        self._results: dict[str, StepResult] = {}
        self.desk = Desk(
            str(plan.path or plan.name), str(self.folder), self._watcher, presses,
            self._utc_ns, self._recorder.event, self._measured,
        )  # fmt: skip
        self._cut_short = False  # steps of the plan were left out
        self.code = ExitCode.INTERNAL

    @property
    def folder(self) -> Path:
        return self._recorder.path

    async def run(self) -> ExitCode:
        """The plan's steps, one after the other."""
        async with self.opened():
            for step in self._plan.steps:
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
                async with connected(plan.hosts, self._opening, recorder.host_log, self._now_ns, __version__) as fleet:
                    self._fleet = self.desk.fleet = fleet
                    self._told = Told(fleet)
                    self._presses.status = lambda: self._watcher.show_first(self.desk.standing())
                    await prepare(plan, fleet)
                    self._discovered = self.desk.discovered = await self._agreed(fleet)
                    await recorder.discovered(plan.hosts, fleet.hellos(), self._discovered.placement)
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
                try:
                    await recorder.close(self._utc_ns(), self.code)
                except OutputError as error:
                    self.code = error.exit_code
                    raise
                finally:
                    self._last_word()

    def _last_word(self) -> None:
        """However the run ended: where its folder is, and what its steps came to."""
        ends = tuple(result.ends for result in self._results.values())
        self._watcher.show(RunEnds(str(self.folder), ends, int(self.code), self.code.sentence))

    async def _serve(self, until: AsyncExitStack) -> None:
        """Open the control socket; a run without one is the same run."""
        try:
            path = await until.enter_async_context(served(self.folder.name, self.desk, self._watcher))
        except OutputError as error:
            self._event("no_socket", f"the run cannot be edited or attached to: {error}")
        else:
            await self._recorder.noted(socket=str(path))

    async def _agreed(self, fleet: Fleet) -> Discovered:
        """Look first, check consent, and only then have files created."""
        plan = self._plan
        seen = await discover(plan, fleet)
        consent.check(seen.targets, plan.destroy, self._options.destroy, str(plan.path or plan.name))
        if not plan.luns.create:
            return seen
        files = sum(file.count for file in plan.luns.create)
        self._event("creating", f"creating {consent.counted(files, 'file')} on each host")
        async with remarks_told(fleet, lambda host, text: self._event("remark", text, host)):
            return await discover(plan, fleet, seen)

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
                self._event("lost", event.reason, driver.name)
        self._event("stopped", "no host is left")
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
        await self._recorder.noted(program=list(entries))

    def parameters_of(self, step: Step) -> Mapping[Key, Parameters]:
        """What `step` begins with. Raises PlanFaults, NotMeasured, and EditRefused for what was not agreed to."""
        discovered = self._discovered
        parameters = resolve(self._plan, step, discovered.placement, discovered.rollups, self._measured)
        if reasons := beyond(parameters, discovered):
            raise EditRefused(reasons)
        return parameters

    async def step(self, step: Step) -> StepResult:
        """Run one step, if what it refers to was measured. Raises HostsError, NoHostLeft, PlanFaults."""
        discovered = self._discovered
        try:
            parameters = self.parameters_of(step)
            control = state_for(self._plan, step, discovered.rollups, parameters, self._measured)
        except NotMeasured as error:
            return await self._skip(step, discovered, Finding(error.reason, str(error)))
        first = not self._told.parameters
        await self._told.tell(discovered, begun_with(control, discovered.rollups, parameters))
        if self._no_host_left():
            raise NoHostLeft(f"step {step.name!r}: no host is left; {self.folder}/events.csv says what became of them")
        if first:
            await self._recorder.workloads(discovered.rollups, parameters)
        return await self._step(self._fleet, discovered, step, control, self._told)

    async def _step(self, fleet: Fleet, discovered: Discovered, step: Step, control: State, told: Told) -> StepResult:
        parameters = told.parameters
        begun = self._utc_ns()
        recorder = await self._recorder.step(step, begun, discovered.rollups)
        keeper = StepKeeper(
            step,
            recorder,
            self._watcher,
            self._clock,
            self._now_ns,
            lambda left_s: left_s + self._planned_s(step.number + 1),
            control.focuses,
        )
        self._watcher.show(StepBegins(step.number, step.name, len(self._plan.steps), step.planned_s))
        for note in step.notes:
            keeper.event("", "note", note)
        sequence = StepSequence(
            fleet, discovered.rollups, told, control, step.subinterval_s, step.cooldown_subintervals, keeper,
            stop_on_error=self._plan.on_io_error is OnIoError.STOP,
        )  # fmt: skip
        self.desk.running = Running(step.number, sequence)
        try:
            ended = await sequence.run()
            await keeper.ended()
        finally:
            self.desk.running = None
        result = result_of(step, begun, ended, keeper, discovered, self._plan.achieved_iops_tolerance, parameters)
        return await self._end(recorder, result)

    async def _skip(self, step: Step, discovered: Discovered, why: Finding) -> StepResult:
        """A step that cannot be run: a row that says why."""
        begun = self._utc_ns()
        recorder = await self._recorder.step(step, begun, discovered.rollups)
        result = without_measurement(step, begun, discovered, why)
        return await self._end(recorder, result)

    async def _end(self, recorder: StepRecorder, result: StepResult) -> StepResult:
        ends = result.ends
        utc_ns = self._utc_ns()
        await recorder.ended(result.records, utc_ns, ends.verdict, [str(finding) for finding in ends.findings])
        self._results[ends.name] = result
        self._watcher.show(ends)
        return result

    def _measured(self, step: str, instance: RollupInstance) -> float:
        """The IOPS that a rollup instance measured in an earlier step. Raises NotMeasured."""
        result = self._results.get(step)
        if result is None:
            raise NotMeasured(f"no step {step!r} has been run{suggestion(step, self._results)}")
        verdict, why = result.verdicts[instance.row], result.reasons[instance.row]
        if verdict is Verdict.INVALID:
            raise NotMeasured(f"step {step} is invalid for {instance}: {why}")
        return result.iops[instance.row]

    def _planned_s(self, first_step: int) -> float:
        return sum(step.planned_s for step in self._plan.steps[first_step:])

    def _utc_ns(self, at_ns: int | None = None) -> int:
        """An instant of the controller's clock, now if None, as UTC."""
        return self._clock.utc_ns(self._now_ns() if at_ns is None else at_ns)

    def _event(self, kind: str, text: str, host: str = "") -> None:
        utc_ns = self._utc_ns()
        self._recorder.event(Event(utc_ns, kind, text, host=host))
        self._watcher.show(Remark(utc(utc_ns), host, text))

    def _console_lost(self, why: OSError) -> None:
        words = f"standard output is gone ({why.strerror or why}); the run goes on, and `ivypy attach` shows it"
        self._event("console_lost", words)

    def _exit_code(self, fleet: Fleet) -> ExitCode:
        if fleet.interrupted.is_set() and self._presses.count:
            return ExitCode.INTERRUPTED
        code = exit_code_of(self._results.values())
        if self._cut_short and code is ExitCode.OK:
            return ExitCode.PARTIAL if self._results else ExitCode.HOSTS
        return code
