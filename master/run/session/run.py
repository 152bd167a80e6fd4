"""One run: connect, discover, consent, create, the steps, close.

Rule: nothing is created or written on a host before every host has answered, every LUN is found, and consent was
checked for the most that any step could do.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from ....protocol.messages import DyingWords
from ...connectors.connector_spec import HOST
from ...connectors.lifecycle import Connectors, Launch, launcher, opened
from ...drivers.controller_side import DriverProcess, driver_processes
from ...drivers.split import processes_for
from ...errors import IvypyError, OutputError
from ...exit_codes import ExitCode
from ...hosts.bundle import slave_bundles
from ...hosts.login_throttle import LoginThrottle
from ...live.reports import EventLine, RunBegins, RunEnds, Watcher
from ...live.socket_server import served
from ...output.csv_text import utc
from ...output.writer_thread import PATIENCE_S
from ...plan.model import Plan
from ...summary.steps_table import ending_of
from ...text.scaled import scaled_size
from ...text.suggestions import did_you_mean, listed
from ...version import VERSION
from ..record.run_recorder import RunClock, RunRecorder
from ..record.step_result import StepResult
from ..setup import consent
from ..setup.connect import Opener, connected, opener
from ..setup.differences import host_differences, lun_differences
from ..setup.discover_luns import PlacedPlan, create, discover, prepare
from ..setup.fleet import Fleet, HaltCause
from ..setup.placement import to_create
from .control_api import ControlApi
from .signals import STOP, Interrupts
from .step_runner import StepRunner

SLOW_DISK_S: Final = 2.0  # at the end of the run: then watchers are shown what it waits for


@dataclass(frozen=True, slots=True)
class Options:
    """The options that the command line adds to a plan."""

    root: Path  # the run's folder is made in it
    destroy: str | None  # the token
    command_line: tuple[str, ...]
    repeat: str = ""  # the command that takes the token, where the plan has no file
    processes: int | None = None  # that drive hosts; None: as many as hosts and cores ask for


async def run_plan(plan: Plan, options: Options, watcher: Watcher, presses: Interrupts) -> ExitCode:
    """Run `plan` to its end. Raises IvypyError where it cannot be run."""
    bundles, throttle = slave_bundles(), LoginThrottle()
    return await Run(plan, options, watcher, presses, opener(bundles, throttle), launcher(throttle)).run()


class Run:
    """One run from its folder to its exit code. Its steps are run by the StepRunner that `opened` yields."""

    def __init__(
        self,
        plan: Plan,
        options: Options,
        watcher: Watcher,
        presses: Interrupts,
        opening: Opener,
        launch: Launch | None = None,
    ) -> None:
        """Make the run's folder; no host is connected yet. Raises OutputError.

        `launch`: what starts connectors; None: there are none.
        """
        loop = asyncio.get_running_loop()
        self._options = options
        self._presses = presses
        self._opening = opening
        self._launch = launch
        clock = RunClock(lambda: int(loop.time() * 1e9), time.time_ns())
        self.recorder = RunRecorder(options.root, plan, clock, options.command_line, watcher)
        self._plan = plan.seeded(self.recorder.seed)
        self.api = ControlApi(str(plan.path or plan.name), self.recorder, presses)
        self._results: dict[str, StepResult] = {}
        self._creating = False  # files have been asked for
        self._agreed_to = False  # the hosts' LUNs are placed, and nothing speaks against driving them
        self.code = ExitCode.INTERNAL

    @property
    def folder(self) -> Path:
        return self.recorder.path

    async def run(self) -> ExitCode:
        """The plan's steps, one after the other."""
        self.recorder.noted(planned_steps=[step.name for step in self._plan.steps])
        async with self.opened() as steps:
            await steps.run_all()
        return self.code

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[StepRunner]:
        """Everything but the steps: from the first connection to the last word. Raises IvypyError."""
        async with AsyncExitStack() as socket:
            try:
                hosts = len(self._plan.hosts)
                self.recorder.hub.show(RunBegins(str(self.folder), str(self._plan.path or self._plan.name), hosts))
                await self._serve(socket)
                processes = await socket.enter_async_context(self._processes())
                async with self._connected(processes) as steps:
                    yield steps
                    self.code = steps.exit_code()
            except IvypyError as error:
                self.code = error.exit_code
                raise
            except asyncio.CancelledError:
                self.code = ExitCode.INTERRUPTED
                raise
            finally:
                await self._close()

    @asynccontextmanager
    async def _connected(self, processes: Mapping[str, DriverProcess]) -> AsyncIterator[StepRunner]:
        """The steps, on hosts that are connected and whose LUNs are placed, agreed to and created."""
        plan, recorder = self._plan, self.recorder
        async with (
            connected(
                plan.hosts, self._opening, recorder.host_log, VERSION, recorder.clock.now_ns, plan.may_miss,
                processes, recorder.host_log_path, self._parted,
            ) as (fleet, reconnecting),
            opened(self._launch, recorder.host_log, self._connector_event) as connectors,
        ):  # fmt: skip
            self.api.shows(fleet.drivers)
            self._presses.shows(lambda: recorder.hub.show_first(self.api.standing()))
            await prepare(plan, fleet)
            await connectors.start(plan.connectors, fleet.lag)
            self._check_metrics(connectors, {one.name for one in plan.connectors})
            discovered = await self._agreed(fleet, connectors)
            self._check_attributes(discovered)
            await self._start_on_hosts(connectors, fleet, discovered)
            self._check_metrics(connectors, {HOST})
            recorder.noted(connectors=connectors.described())
            self._agreed_to = True
            for host, fault in fleet.missed.items():
                recorder.event("missed", f"the run continues without it: {fault.what}; {fault.remedy}", host)
            recorder.discovered(plan.hosts, fleet.hellos(), discovered.placement)
            self._show(_setup_words(len(fleet.alive), discovered))
            self._show_differences(fleet, discovered)
            self._presses.halts(partial(self._halt, fleet))  # until now a press cancels: there was no I/O to halt
            yield StepRunner(plan, recorder, fleet, reconnecting, discovered, connectors, self.api, self._results)

    def _halt(self, fleet: Fleet) -> None:
        fleet.interrupt(HaltCause.USER)  # whatever the disk says
        by = self._presses.by
        with contextlib.suppress(OutputError):  # the run ends with it anyway
            if by and by != STOP:  # which has a row with who sent it
                self.recorder.event("stop", f"by {by}")

    def _show_differences(self, fleet: Fleet, discovered: PlacedPlan) -> None:
        """Show how hosts and LUNs differ, before their results are merged."""
        for line in host_differences(fleet.hellos()):
            self.recorder.event("host_difference", f"hosts differ: {line}")
        for line in lun_differences(discovered.placement, discovered.rollups):
            self.recorder.event("lun_difference", f"LUNs differ: {line}")

    async def _close(self) -> None:
        """Write what is left, and report how the run ended. Raises OutputError."""
        patience = asyncio.get_running_loop().call_later(SLOW_DISK_S, self._slow_disk)
        try:
            if self.code is ExitCode.INTERRUPTED and self._presses.by:
                with contextlib.suppress(OutputError):  # which `close` raises again
                    self.recorder.noted(interrupted_by=self._presses.by)
            await self.recorder.close(self.code, self._kept)
        except OutputError as error:
            self.code = error.exit_code
            raise
        finally:
            patience.cancel()
            self._last_word()

    @property
    def _kept(self) -> bool:
        """A run that is refused before it did anything leaves no folder."""
        return self._agreed_to or self._creating or self.code not in (ExitCode.REFUSED, ExitCode.PLAN)

    def _slow_disk(self) -> None:
        self._show(f"the disk of {self.folder} has not written everything yet; waiting for up to {PATIENCE_S:g} s")

    def _show(self, words: str) -> None:
        """To watchers; not an event of the run."""
        self.recorder.hub.show(EventLine(utc(self.recorder.clock.utc_ns()), "", words))

    def _processes(self) -> AbstractAsyncContextManager[Mapping[str, DriverProcess]]:
        hosts, wanted = self._plan.hosts, self._options.processes
        if wanted is None:
            wanted = processes_for(len(hosts), len(os.sched_getaffinity(0)))
        return driver_processes(hosts, wanted, self._plan.lease_s)

    def _parted(self, host: str, words: DyingWords | None) -> None:
        """A host has ended: report its last words, or the files that may be left on it."""
        if words is not None:
            if not words.clean:
                self.recorder.event("last_words", words.words, host)
            return
        files = [file for file in to_create(self._plan, host) if not file.keep] if self._creating else []
        if files:
            names = ", ".join(f"{file.path} ({consent.counted(file.count, 'file')})" for file in files)
            self.recorder.event(
                "files_left", f"it sent no dying words: {names} may be left there, until its lease ends", host
            )

    def _last_word(self) -> None:
        """However the run ended: where its folder is, and what its steps came to."""
        ends = tuple(result.ends for result in self._results.values())
        folder = str(self.folder) if self._kept else ""
        self.recorder.hub.show(RunEnds(folder, ends, int(self.code), ending_of(self.code, ends, self._presses.by)))

    async def _serve(self, until: AsyncExitStack) -> None:
        """Open the control socket; a run without one is the same run."""
        try:
            path = await until.enter_async_context(served(self.folder.name, self.api, self.recorder.hub))
        except OutputError as error:
            self.recorder.event("no_socket", f"the run cannot be edited or attached to: {error}")
        else:
            self.recorder.noted(socket=str(path))

    def _check_attributes(self, discovered: PlacedPlan) -> None:
        """Raise PlanFaults where a connector gives no LUN an attribute that the plan expects of it."""
        given = {name for lun in discovered.placement.luns for name in lun.attributes}
        faults = [
            (self._plan.luns.place, f"connector {one.name}: it gives the attribute {name!r} to none of the plan's LUNs")
            for one in self._plan.connectors
            for name in one.attributes
            if self._launch is not None and name not in given
        ]
        if faults:
            raise self._plan.faults(faults)

    def _check_metrics(self, connectors: Connectors, names: Collection[str]) -> None:
        """Raise PlanFaults where a step's control looks at a metric that the connectors of these names do not have."""
        if self._launch is None:
            return
        known = connectors.metrics
        faults = [
            (step.place, f"step {step.name!r}: {_no_metric(focus.metric, focus.connector, known)}")
            for step in self._plan.steps
            for _, focus in (*step.control.checked(), *step.control.steered())
            if focus.connector in names and focus.metric not in known.get(focus.connector, ())
        ]
        if faults:
            raise self._plan.faults(faults)

    async def _start_on_hosts(self, connectors: Connectors, fleet: Fleet, discovered: PlacedPlan) -> None:
        """Ask the test hosts what they have for the connector that they are."""
        usual = self._plan.host_connector
        if usual is None or self._launch is None:
            return
        await connectors.begin_on_hosts(usual, discovered.paths, fleet.alive)

    def _connector_event(self, kind: str, text: str, host: str) -> None:
        self.recorder.event(kind, text, host)

    async def _agreed(self, fleet: Fleet, connectors: Connectors) -> PlacedPlan:
        """Look first, check consent, and only then have files created."""
        plan = self._plan
        seen = await discover(plan, fleet, connectors.attributes)
        seen.check_answers()
        options = self._options
        consent.check(seen.targets, plan.destroy, options.destroy, str(plan.path or plan.name), options.repeat)
        if not plan.luns.create:
            return seen
        files = sum(file.count for file in plan.luns.create)
        self._creating = True
        self.recorder.event("creating", f"creating {consent.counted(files, 'file')} on each host")
        async with fleet.notices_to(lambda host, notice: self.recorder.event(notice.kind, notice.text, host)):
            completed = await create(plan, fleet, seen, connectors.attributes)
        completed.check_answers()
        return completed


def _no_metric(metric: str, connector: str, known: Mapping[str, Collection[str]]) -> str:
    if connector not in known:
        return f"{metric}: the connector {connector} is not there; the lines above say why"
    there = did_you_mean(metric, known[connector]) or f"; {listed(sorted(known[connector]))}"
    return f"there is no metric {metric}{there}"


def _setup_words(hosts: int, discovered: PlacedPlan) -> str:
    """The sentence on what the run has found, before its first step."""
    placement = discovered.placement
    driven = {(lun.host, lun.lun.path): lun.lun.size for lun in placement.lun_of.values()}
    size, instances = scaled_size(sum(driven.values())), consent.counted(len(placement.instances), "workload instance")
    luns = f"1 LUN of {size}" if len(driven) == 1 else f"{len(driven)} LUNs, {size} in all"
    return f"{consent.counted(hosts, 'host')} connected; {luns}; {instances}"
