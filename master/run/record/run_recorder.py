"""Records one run: its folder, written by one thread, and the reports that watchers are shown.

Rule: callers report what happened; this module decides when and in which thread it is written. Nobody waits for the
disk while a step runs. run.json is written anew at the beginning and end of each step, so that it shows how far a run
came that was cut off.
"""

import asyncio
import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from ....protocol.lines import encode_line
from ....protocol.messages import Hello
from ....protocol.parameters import MAX, NEVER, Parameters
from ...connectors.element_figures import Connected
from ...control.decision import Cell
from ...errors import OutputError
from ...exit_codes import ExitCode
from ...hosts.host_logs import HostLogs
from ...hosts.host_spec import HostSpec
from ...live.broadcast import Broadcast
from ...live.reports import EventLine, Watcher
from ...output.connector_files import ConnectorFiles
from ...output.csv_text import utc
from ...output.folder import RunFolder
from ...output.full_disk import patiently
from ...output.record_types import Event, HostRecord, LunRecord, MeasuredWindow, RunRecord, StepRecord, SummaryRecord
from ...output.run_lock import RunLock
from ...output.step_folder import StepFolder
from ...output.writer_thread import Writer
from ...plan.attempts import ROUND_COLUMN
from ...plan.model import TOTAL_IOPS, Plan, Step
from ...plan.read.field_types import written
from ...results.result_document import write_result
from ...rollup.instances import InstanceKey, Rollups
from ...rollup.merge_layout import MergeLayout
from ...summary.measured import StepEnds
from ...text.plan_parameters import Value
from ...version import VERSION
from ..setup.placement import Placement
from .so_far import SoFarKeeper

MOST_EVENTS: Final = 10_000  # that wait for the disk
LOGGED_EVERY_S: Final = 0.1  # lines of hosts' logs are written together


_OWN_COLUMN: Final = (TOTAL_IOPS,)  # summary.csv has `iops_setting` in any case


class RunClock:
    """The controller's clock, and the same as UTC: anchored once, so that the stamps of a run never jump."""

    def __init__(self, now_ns: Callable[[], int], utc_ns: int) -> None:
        """`utc_ns`: the time now."""
        self.now_ns = now_ns
        self._ahead_ns = utc_ns - now_ns()

    def utc_ns(self, at_ns: int | None = None) -> int:
        """An instant of the controller's clock, now if None, as UTC."""
        return (self.now_ns() if at_ns is None else at_ns) + self._ahead_ns


class RunRecorder:
    """Holds the run's folder, its writer, its open logs, its watchers, and run.json as it stands."""

    def __init__(self, root: Path, plan: Plan, clock: RunClock, command_line: Sequence[str], watcher: Watcher) -> None:
        """Make the folder. Raises OutputError."""
        self.clock = clock
        utc_ns = clock.utc_ns()
        self._folder = RunFolder.create(root, plan.name, datetime.fromtimestamp(utc_ns / 1e9, UTC))
        self._lock = RunLock(self._folder.path)
        self.hub = Broadcast(watcher, self._console_lost, [spec.name for spec in plan.rollups])
        self.writer = Writer(str(self._folder.path), partial(self.event, "results_disk"))
        self._logs = HostLogs(self._log_soon, self._log_lacks, patiently)
        self._lacking = 0  # events that were not written
        self.seed = seed_of_run(self._folder.path.name, utc_ns)
        self._run = RunRecord(
            VERSION, tuple(command_line), str(plan.path or ""), utc_ns, self.seed, more={"uid": os.geteuid()}
        )
        self._written = self._run  # as run.json has it
        self._cores: Mapping[str, Sequence[int]] = {}
        self.so_far = SoFarKeeper(self.writer, partial(self.event, "so_far"))
        self._looped = dict.fromkeys(name for step in plan.steps for name in step.loop if name not in _OWN_COLUMN)
        if any(step.control.rounds for step in plan.steps):
            self._looped[ROUND_COLUMN] = None
        self._folder.plan(_with_seed(plan, self.seed))
        self._folder.run(self._run)

    @property
    def path(self) -> Path:
        return self._folder.path

    def host_log(self, host: str) -> Callable[[str], None]:
        """The log of one host's whole conversation."""
        return self._logs.of(host, self._folder.log(host))

    def host_log_path(self, host: str) -> Path:
        """Where a host's log is, for a process that writes it."""
        return self._folder.log(host)

    def event(
        self, kind: str, text: str, host: str = "", step: int | None = None, subinterval: int | None = None,
        at_ns: int | None = None, shown: str = "",
    ) -> None:  # fmt: skip
        """A row of events.csv, and the same for watchers, in the words of `shown` if given; `at_ns`: now if None."""
        utc_ns = self.clock.utc_ns(at_ns)
        self._write_event(Event(utc_ns, kind, text, step, subinterval, host))
        self.hub.show(EventLine(utc(utc_ns), host, shown or text, kind))

    def _write_event(self, event: Event) -> None:
        """If the disk takes it: where too many wait, further ones are counted."""
        if self.writer.waiting > MOST_EVENTS:
            self._lacking += 1
            return
        if self._lacking:
            self.writer.post(partial(self._folder.event, _lacks(event.utc_ns, "events.csv", f"{self._lacking:,} rows")))
            self._lacking = 0
        self.writer.post(partial(self._folder.event, event))

    def _console_lost(self, why: OSError) -> None:
        self.event("console_lost", f"standard output is gone ({why.strerror or why}); `ivypy attach` shows the run")

    def noted(self, **more: Any) -> None:
        """More entries of run.json."""
        self._run = replace(self._run, more={**self._run.more, **more})
        self._write_run()

    def discovered(self, hosts: Sequence[HostSpec], hellos: Mapping[str, Hello], placement: Placement) -> None:
        """Who takes part, with what."""
        self._cores = {name: hello.cores for name, hello in hellos.items()}
        self._run = replace(self._run, hosts=dict(hellos))
        records = [
            HostRecord(spec.name, spec.launcher, spec.address, hellos[spec.name])
            for spec in hosts
            if spec.name in hellos
        ]
        luns = [LunRecord(lun.host, replace(lun.lun, attributes=dict(lun.attributes))) for lun in placement.luns]
        self.writer.put(partial(self._folder.hosts, records))
        self.writer.put(partial(self._folder.luns, luns))
        self._write_run()

    def workloads(self, rollups: Rollups, parameters: Mapping[InstanceKey, Parameters]) -> None:
        """As they are first created."""
        self.writer.put(partial(self._folder.workloads, rollups, parameters))

    async def begin_step(self, step: Step, utc_ns: int, rollups: Rollups) -> StepFolder:
        """The folder of a step, and its line in run.json. Raises OutputError."""
        layout = MergeLayout.build(rollups, {host: rollups.order(host) for host in rollups.hosts()})
        begun = StepRecord(step.number, step.name, utc_ns, thresholds=tuple(map(str, step.control.slo)))
        self._run = replace(self._run, steps=(*self._run.steps, begun))
        self._write_run()
        self.so_far.begin()
        cores = {host: self._cores.get(host, ()) for host in rollups.hosts()}
        return await self.writer.do(partial(self._folder.step, step.number, step.name, layout, cores))

    def connector_files(
        self, folder: StepFolder, step: Step, rollups: Rollups, connected: Sequence[Connected]
    ) -> ConnectorFiles:
        """Open the files of what connectors report in a step."""
        return self._folder.connector_files(folder, step.number, rollups, connected, self.clock.utc_ns)

    def connector_summary(self, rows: Callable[[], str]) -> None:
        """Rows of connectors.csv, made by the writer's thread."""
        self.writer.put(lambda: self._folder.connector_summary(rows()))

    def rounds(self, rows: Sequence[Mapping[str, Cell]]) -> None:
        """A round of a step has ended: rows of rounds.csv."""
        text = [[control_cell(cell) for cell in row.values()] for row in rows]
        self.writer.put(partial(self._folder.rounds, text))

    def summary(self, step: Step, record: SummaryRecord, rollups: Rollups) -> None:
        """A measurement of a step: its row in every summary."""
        self.writer.put(partial(self._summary_of(step, record, rollups), self._folder))

    def _summary_of(self, step: Step, record: SummaryRecord, rollups: Rollups) -> Callable[[RunFolder], None]:
        loop = {name: _cell(name, step.loop.get(name)) for name in self._looped}
        name = step.name + record.suffix
        return lambda folder: folder.summary(step.number, name, record, rollups, loop)

    def write_so_far(
        self, step: Step, records: Sequence[SummaryRecord], ends: StepEnds, windows: tuple[MeasuredWindow, ...],
        connectors: str, rollups: Rollups,
    ) -> Callable[[], None]:  # fmt: skip
        """A job for the writer's thread: what stands there if the controller is killed, the running step's rows and its
        entry in run.json. `connectors`: rows of connectors.csv."""
        run = _ended(self._run, ends, self.clock.utc_ns())
        *before, mine = run.steps
        run = replace(run, steps=(*before, replace(mine, windows=windows)))
        summaries = [self._summary_of(step, one, rollups) for one in records]
        if connectors:
            summaries.append(lambda folder: folder.connector_summary(connectors))
        return partial(self._folder.so_far, run, summaries)

    def end_step(self, ends: StepEnds) -> None:
        """The entry in run.json of the step that began last."""
        self._run = _ended(self._run, ends, self.clock.utc_ns())
        self._write_run()
        self.writer.put(self._folder.drop_so_far)

    async def close(self, code: ExitCode, keep: bool) -> None:
        """The run ends; its folder is removed unless `keep`. Raises OutputError if anything could not be written."""
        self._run = replace(self._run, end_utc_ns=self.clock.utc_ns(), exit_code=int(code))
        try:
            self._write_run()
            await self.writer.do(self._finish)
            await self.writer.do(partial(write_result, self.path) if keep else self._folder.remove)
        except OutputError as error:
            with suppress(OutputError):
                await self.writer.last(partial(self._finish_in_need, error.exit_code))
            raise
        finally:
            self.so_far.close()
            self.writer.close()
            self._lock.release()

    def _finish(self) -> None:
        """In the writer's thread, as what follows."""
        self._logs.close()
        self._folder.close()

    def _finish_in_need(self, code: ExitCode) -> None:
        with suppress(OutputError):
            self._logs.close()
        ended = replace(self._written, end_utc_ns=self._run.end_utc_ns, exit_code=int(code))
        self._folder.run_over(ended)  # no verdict of a step whose rows were not written

    def _log_soon(self) -> None:
        """In the loop."""
        asyncio.get_running_loop().call_later(LOGGED_EVERY_S, self.writer.post, self._logs.flush)

    def _log_lacks(self, host: str, lines: int) -> None:
        text = f"{lines:,} lines"
        self._folder.event(_lacks(time.time_ns(), f"log/{self._folder.log(host).name}", text, host))

    def _write_run(self) -> None:
        self.writer.put(partial(self._write, self._run))

    def _write(self, run: RunRecord) -> None:
        """In the writer's thread."""
        self._folder.run(run)
        self._written = run


def _ended(run: RunRecord, ends: StepEnds, utc_ns: int) -> RunRecord:
    """With the end of the step that began last."""
    *before, ended = run.steps
    ended = replace(
        ended,
        end_utc_ns=utc_ns,
        verdict=str(ends.verdict),
        reasons=tuple(map(str, ends.findings)),
        measured=json.loads(encode_line(ends))["measured"],
    )
    return replace(run, steps=(*before, ended))


def control_cell(cell: Cell) -> str | int | None:
    """Of a table that explains control's decisions."""
    if isinstance(cell, bool):
        return str(cell).lower()
    return f"{cell:.9g}" if isinstance(cell, float) else cell


def _cell(name: str, value: Value | None) -> int | float | str | None:
    """A looped parameter's value in a cell: a number where it is one, else as a plan has it.

    `max` and `never` are numbers, too, so that the column has nothing but numbers.
    """
    if value in (MAX, NEVER):
        return "inf"
    return value if value is None or isinstance(value, int | float) else written(name, value)


def seed_of_run(name: str, start_utc_ns: int) -> int:
    """The seed of workloads that have none, from the name of the run's folder and its start: other addresses in every
    run, so that none finds in a cache what an earlier one read."""
    return int.from_bytes(hashlib.sha256(f"{name}\n{start_utc_ns}".encode()).digest()[:4], "little")


def _with_seed(plan: Plan, seed: int) -> str:
    """The plan's text, and below it how to repeat the addresses of this run."""
    without = [workload.name for workload in plan.workloads if workload.parameters.seed is None]
    if not without:
        return plan.text
    end = "" if plan.text.endswith("\n") else "\n"
    return f"{plan.text}{end}# The seed of this run; to repeat its addresses, in {', '.join(without)}: seed: {seed}\n"


def _lacks(utc_ns: int, file: str, what: str, host: str = "") -> Event:
    return Event(utc_ns, "not_written", f"{file} lacks {what}: the disk was too slow", host=host)
