"""One run: connect, discover, consent, create, the steps, close.

Rule: nothing is created or written on a host before every host has answered, every LUN is found, and consent was
checked for the most that any step could do. A step that fails costs itself; a run goes on while a host is left.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ... import __version__
from ..control.fixed import Fixed
from ..hosts.bundle import slave_bundle
from ..hosts.gate import LoginGate
from ..live.report import Remark, RunEnds, StepBegins, Watcher
from ..output.records import Event
from ..output.table import utc
from ..plan.model import OnIoError, Plan, Step
from ..rollup.instances import RollupInstance
from ..verdicts import ExitCode, Verdict
from . import consent
from .discover import Discovered, discover, prepare
from .fleet import Fleet, Opener, connected
from .interrupt import Presses
from .keep import Clock, StepKeeper
from .open import opener
from .record import RunRecorder, StepRecorder
from .result import StepResult, result_of, without_measurement
from .settings import NotMeasured, resolve
from .step import StepSequence
from .told import Told

TAIL: Final = 1  # subintervals that run while the decision to stop is on its way


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
        self._watcher = watcher
        self._presses = presses
        self._opening = opening
        self._now_ns: Callable[[], int] = lambda: int(loop.time() * 1e9)
        self._clock = Clock(time.time_ns(), self._now_ns())
        self._results: dict[str, StepResult] = {}

    async def run(self) -> ExitCode:
        plan = self._plan
        begun = self._clock.utc_ns(self._now_ns())
        recorder = self._recorder = RunRecorder(self._options.root, plan, begun, self._options.command_line)
        code = ExitCode.INTERNAL
        try:
            async with connected(plan.hosts, self._opening, recorder.host_log, self._now_ns, __version__) as fleet:
                self._presses.first = fleet.interrupted.set
                await prepare(plan, fleet)
                discovered = await self._agreed(fleet)
                await recorder.discovered(plan.hosts, fleet.hellos(), discovered.placement)
                await self._steps(fleet, discovered)
                code = self._exit_code(fleet)
        finally:
            await recorder.close(self._clock.utc_ns(self._now_ns()), code)
        ends = tuple(result.ends for result in self._results.values())
        self._watcher.show(RunEnds(str(recorder.path), ends, int(code), code.sentence))
        return code

    async def _agreed(self, fleet: Fleet) -> Discovered:
        """Look first, check consent, and only then have files created."""
        plan = self._plan
        seen = await discover(plan, fleet, create=False)
        consent.check(seen.targets, plan.destroy, self._options.destroy, str(plan.path or plan.name))
        if not plan.luns.create:
            return seen
        files = sum(file.count for file in plan.luns.create)
        self._event("creating", f"creating {consent.counted(files, 'file')} on each host")
        return await discover(plan, fleet, create=True)

    async def _steps(self, fleet: Fleet, discovered: Discovered) -> None:
        told = Told(fleet)
        for step in self._plan.steps:
            if fleet.interrupted.is_set():
                break
            if not fleet.alive:
                self._event("stopped", "no host is left")
                break
            try:
                parameters = resolve(self._plan, step, discovered.placement, discovered.rollups, self._measured)
            except NotMeasured as error:
                await self._skip(step, discovered, str(error))
                continue
            first = not told.parameters
            await told.tell(discovered, parameters)
            if first:
                await self._recorder.workloads(discovered.rollups, parameters)
            await self._step(fleet, discovered, step, told)

    async def _step(self, fleet: Fleet, discovered: Discovered, step: Step, told: Told) -> None:
        parameters = told.parameters
        begun = self._clock.utc_ns(self._now_ns())
        recorder = await self._recorder.step(step, begun, discovered.rollups)
        keeper = StepKeeper(
            step,
            recorder,
            self._watcher,
            self._clock,
            self._now_ns,
            lambda left_s: left_s + self._planned_s(step.number + 1),
        )
        self._watcher.show(StepBegins(step.number, step.name, len(self._plan.steps), _planned_s(step)))
        control = Fixed(step.warmup_subintervals, step.measure_subintervals)
        sequence = StepSequence(
            fleet, discovered.rollups, told, control, step.subinterval_s, step.cooldown_subintervals, keeper,
            stop_on_error=self._plan.on_io_error is OnIoError.STOP,
        )  # fmt: skip
        ended = await sequence.run()
        result = result_of(step, begun, ended, keeper, discovered, self._plan.achieved_iops_tolerance, parameters)
        await self._end(recorder, result)

    async def _skip(self, step: Step, discovered: Discovered, why: str) -> None:
        """A step that cannot be run: a row that says why."""
        begun = self._clock.utc_ns(self._now_ns())
        recorder = await self._recorder.step(step, begun, discovered.rollups)
        result = without_measurement(step, begun, discovered, why)
        await self._end(recorder, result)

    async def _end(self, recorder: StepRecorder, result: StepResult) -> None:
        ends = result.ends
        utc_ns = self._clock.utc_ns(self._now_ns())
        await recorder.ended(result.records, utc_ns, ends.verdict, [str(finding) for finding in ends.findings])
        self._results[ends.name] = result
        self._watcher.show(ends)

    def _measured(self, step: str, instance: RollupInstance) -> float:
        """The IOPS that a rollup instance measured in an earlier step. Raises NotMeasured."""
        result = self._results[step]
        verdict, why = result.verdicts[instance.row], result.reasons[instance.row]
        if verdict is Verdict.INVALID:
            raise NotMeasured(f"step {step} is invalid for {instance}: {why}")
        return result.iops[instance.row]

    def _planned_s(self, first_step: int) -> float:
        return sum(_planned_s(step) for step in self._plan.steps[first_step:])

    def _event(self, kind: str, text: str) -> None:
        utc_ns = self._clock.utc_ns(self._now_ns())
        self._recorder.event(Event(utc_ns, kind, text))
        self._watcher.show(Remark(utc(utc_ns), "", text))

    def _exit_code(self, fleet: Fleet) -> ExitCode:
        if fleet.interrupted.is_set():
            return ExitCode.INTERRUPTED
        verdicts = {verdict for result in self._results.values() for verdict in result.verdicts}
        if Verdict.INVALID in verdicts or len(self._results) < len(self._plan.steps):
            return ExitCode.INVALID
        return ExitCode.PARTIAL if Verdict.PARTIAL in verdicts else ExitCode.OK


def _planned_s(step: Step) -> float:
    return step.warmup_s + step.measure_s + step.cooldown_s + TAIL * step.subinterval_s
