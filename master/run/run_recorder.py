"""What a run leaves on disk, as the session tells it: the run folder behind its one writer thread.

Rule: the session says what happened; when and by which thread it is written is decided here, and nothing that is said
while a step runs waits for the disk. run.json is written anew
at every step's beginning and end, so that a run that was cut off says how far it came.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from ... import __version__
from ...protocol.messages import Hello, Result
from ...protocol.parameters import Parameters
from ..control.decision import Cell, Row
from ..errors import OutputError
from ..hosts.log import HostLogs
from ..hosts.spec import HostSpec
from ..output.folder import RunFolder
from ..output.histogram_db_reader import Stored
from ..output.records import (
    Event,
    HostRecord,
    LunRecord,
    RunRecord,
    StepRecord,
    SubintervalRecord,
    SummaryRecord,
    WindowRecord,
)
from ..output.step_folder import StepFolder
from ..output.writer_thread import Writer
from ..plan.model import Plan, Step
from ..rollup.instances import Rollups
from ..rollup.merge import Merger
from ..rollup.merge_layout import Layout
from ..rollup.window import Window
from ..verdicts import ExitCode, Verdict
from .placement import Placement

MOST_EVENTS: Final = 10_000  # that wait for the disk
LOGGED_EVERY_S: Final = 0.1  # lines of hosts' logs are written together


class RunRecorder:
    """Remembers the run's folder, its writer, its open logs, and run.json as it stands."""

    def __init__(self, root: Path, plan: Plan, utc_ns: int, command_line: Sequence[str]) -> None:
        """Make the folder. Raises OutputError."""
        self._folder = RunFolder.create(root, plan.name, datetime.fromtimestamp(utc_ns / 1e9, UTC))
        self._writer = Writer(str(self._folder.path))
        self._logs = HostLogs(self._log_soon, self._log_lacks)
        self._lacking = 0  # events that were not written
        self._run = RunRecord(__version__, tuple(command_line), str(plan.path or ""), utc_ns)
        self._cores: Mapping[str, Sequence[int]] = {}
        self._folder.plan(plan.text)
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

    def event(self, event: Event) -> None:
        """A row of events.csv, if the disk takes it: of so many that wait, further ones are counted."""
        if self._writer.waiting > MOST_EVENTS:
            self._lacking += 1
            return
        if self._lacking:
            self._writer.post(
                partial(self._folder.event, _lacks(event.utc_ns, "events.csv", f"{self._lacking:,} rows"))
            )
            self._lacking = 0
        self._writer.post(partial(self._folder.event, event))

    def noted(self, **more: Any) -> None:
        """What else run.json is to say."""
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
        self._writer.put(partial(self._folder.hosts, records))
        self._writer.put(partial(self._folder.luns, luns))
        self._write_run()

    def workloads(self, rollups: Rollups, parameters: Mapping[tuple[str, int], Parameters]) -> None:
        """As they are first created."""
        self._writer.put(partial(self._folder.workloads, rollups, parameters))

    async def step(self, step: Step, utc_ns: int, rollups: Rollups) -> "StepRecorder":
        """A step begins."""
        layout = Layout.build(rollups, {host: rollups.order(host) for host in rollups.hosts()})
        self._run = replace(self._run, steps=(*self._run.steps, StepRecord(step.number, step.name, utc_ns)))
        self._write_run()
        cores = {host: self._cores.get(host, ()) for host in rollups.hosts()}
        folder = await self._writer.do(partial(self._folder.step, step.number, step.name, layout, cores))
        return StepRecorder(self, step, folder, rollups)

    async def close(self, utc_ns: int, code: ExitCode) -> None:
        """The run ends. Raises OutputError if anything could not be written."""
        self._run = replace(self._run, end_utc_ns=utc_ns, exit_code=int(code))
        try:
            self._write_run()
            await self._writer.do(self._finish)
        except OutputError:
            with suppress(OutputError):
                await self._writer.last(self._finish_in_need)
            raise
        finally:
            self._writer.close()

    def _finish(self) -> None:
        """In the writer's thread, as what follows."""
        self._logs.close()
        self._folder.close()

    def _finish_in_need(self) -> None:
        with suppress(OutputError):
            self._logs.close()
        self._folder.run_over(self._run)

    def _log_soon(self) -> None:
        """In the loop."""
        asyncio.get_running_loop().call_later(LOGGED_EVERY_S, self._writer.post, self._logs.flush)

    def _log_lacks(self, host: str, lines: int) -> None:
        text = f"{lines:,} lines"
        self._folder.event(_lacks(time.time_ns(), f"log/{self._folder.log(host).name}", text, host))

    def _write_run(self) -> None:
        self._writer.put(partial(self._folder.run, self._run))


class StepRecorder:
    """One step's part of the run folder."""

    def __init__(self, run: RunRecorder, step: Step, folder: StepFolder, rollups: Rollups) -> None:
        self._run = run
        self._step = step
        self._folder = folder
        self._rollups = rollups

    def subinterval(self, record: SubintervalRecord) -> None:
        self._run._writer.put(partial(self._folder.subinterval, record))

    def rows(self, rows: Sequence[Row]) -> None:
        """What explains control's decisions: each row to the end of its file."""
        for file in dict.fromkeys(row.file for row in rows):
            mine = [row.cells for row in rows if row.file == file]
            text = [[_shown(cell) for cell in cells.values()] for cells in mine]
            self._run._writer.put(partial(self._folder.table, file, list(mine[0]), text))

    def document(self, file: str, content: Mapping[str, Any]) -> None:
        """A file of the step that is written anew each time."""
        self._run._writer.put(partial(self._folder.document, file, content))

    def late(self, host: str, result: Result) -> None:
        self._run._writer.post(partial(self._folder.late, host, result))

    def event(self, event: Event) -> None:
        self._run.event(event)

    def window(self, record: WindowRecord) -> None:
        self._run._writer.post(partial(self._folder.window, record))

    async def summed(self, first: int, last: int) -> Window:
        """A window summed again from what was stored."""
        return await self._run._writer.do(partial(self._sum, first, last))

    async def ended(
        self, records: Sequence[SummaryRecord], utc_ns: int, verdict: Verdict, reasons: Sequence[str]
    ) -> None:
        """The step is judged: its rows in the summaries, the measurement's histograms, its line in run.json."""
        run = self._run
        for record in records:
            run._writer.put(
                partial(run._folder.summary, self._step.number, self._step.name + record.suffix, record, self._rollups)
            )
        last = next((one for one in reversed(records) if one.measurement is not None), records[-1])
        if last.measurement is not None:
            shown = last.settings.paced & last.judgement.reached
            run._writer.put(partial(self._folder.histograms, last.measurement, shown))
        *before, mine = run._run.steps
        mine = replace(mine, end_utc_ns=utc_ns, verdict=str(verdict), reasons=tuple(reasons))
        run._run = replace(run._run, steps=(*before, mine))
        run._write_run()

    def _sum(self, first: int, last: int) -> Window:
        """In the writer's thread."""
        layout_order = {host: self._rollups.order(host) for host in self._rollups.hosts()}
        with Stored(self._run.path / "histograms.sqlite") as stored:
            merger = Merger(self._rollups, layout_order)
            window = Window(merger.layout)
            for interval in stored.intervals(merger, self._step.number, first, last):
                window.add(interval)
        return window


def _lacks(utc_ns: int, file: str, what: str, host: str = "") -> Event:
    return Event(utc_ns, "not_written", f"{file} lacks {what}: the disk did not take them in time", host=host)


def _shown(cell: Cell) -> str | int | None:
    if isinstance(cell, bool):
        return str(cell).lower()
    return f"{cell:.9g}" if isinstance(cell, float) else cell
