"""Records one step while it runs: rows, events and measurements in its folder, and reports for watchers.

Rule: it only records. The writer thread writes to disk, so the step does not wait; only `begin` and `stored`, which
reads results back, wait for the disk.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Any

from ....protocol.messages import Result
from ...connectors.element_figures import Connected
from ...connectors.gathered import Gathered, GatherState
from ...connectors.gathering import GatheredSubinterval
from ...control.decision import ControlRow, Measured
from ...live.reports import NOTE, MeasuredSoFar, StepBegins
from ...output.connector_files import ConnectorFiles
from ...output.csv_text import utc
from ...output.histogram_db_reader import HistogramReader
from ...output.record_types import MeasuredWindow, SubintervalRecord, SummaryRecord, WindowRecord
from ...output.step_folder import StepFolder
from ...plan.model import Step
from ...rollup.decode_result import whole
from ...rollup.instances import Rollups
from ...rollup.merge import Merger
from ...rollup.window import Window
from ...summary.measured import MeasurementRow
from ..step.step_measurements import real_length_ns
from ..step.step_types import ClosedSubinterval, SoFar, StepOutcome, SummedMeasurement
from .run_recorder import RunRecorder, control_cell
from .step_reports import instances_of, remaining_s, subinterval_report
from .step_result import StepResult


class StepRecorder:
    """The recorder of one step; `begin` makes it, with the step's folder."""

    def __init__(
        self,
        run: RunRecorder,
        step: Step,
        rollups: Rollups,
        folder: StepFolder,
        connectors: ConnectorFiles | None,
        begun_utc_ns: int,
    ) -> None:
        """`connectors`: None where there are none."""
        self._run = run
        self._step = step
        self._rollups = rollups
        self._folder = folder
        self._connectors = connectors
        self._measured: list[Measured] = []
        self._windows: dict[tuple[int, int, str], WindowRecord] = {}  # by first, last and suffix, in the file's order
        self._gone: set[str] = set()  # connectors, by name
        self.begun_utc_ns = begun_utc_ns
        self._remaining_s = step.planned_s
        self._later_steps_s = 0.0
        self._running = 0  # number of the subinterval that is running
        self._newest: MeasurementRow | None = None  # of what was measured so far
        self._judge: Callable[[StepOutcome], StepResult] | None = None
        self.stored_late = 0  # how often late results have been stored
        self._late: dict[int, dict[str, Result]] = {}  # by subinterval and host: to be stored
        self._late_lock = Lock()  # the loop adds, the writer's thread takes
        self._holes: dict[int, tuple[str, int]] = {}  # subintervals without some of their hosts: phase, start in UTC

    @classmethod
    async def begin(
        cls, run: RunRecorder, step: Step, rollups: Rollups, connected: Sequence[Connected] = ()
    ) -> "StepRecorder":
        """Make the step's folder. Raises OutputError."""
        utc_ns = run.clock.utc_ns()
        folder = await run.begin_step(step, utc_ns, rollups)
        connectors = run.connector_files(folder, step, rollups, connected) if connected else None
        return cls(run, step, rollups, folder, connectors, utc_ns)

    def shown(self, of_steps: int, later_steps_s: float, run_planned_s: float) -> None:
        """Report the begin of the step to watchers. `of_steps`: 0 where rounds decide how many.

        The steps after it are planned to take `later_steps_s`, and all steps `run_planned_s`.
        """
        self._later_steps_s = later_steps_s
        step = self._step
        begins = StepBegins(step.number, step.name, of_steps, step.planned_s, run_planned_s, step.subinterval_s)
        self._run.hub.show(begins)
        for note in self._step.notes:
            self.event("", NOTE, note)

    def judged_by(self, judge: Callable[[StepOutcome], StepResult]) -> None:
        """`judge`: what a step's outcome is as rows with verdicts. Pure: the writer's thread calls it, too."""
        self._judge = judge

    @property
    def wants_so_far(self) -> bool:
        """Whether it is time to record what was measured so far."""
        return self._judge is not None and self._run.so_far.is_due

    def so_far(self, take: Callable[[], SoFar]) -> Coroutine[Any, Any, None]:
        """Record what was measured so far, as if the step had ended so, and report it. Raises nothing."""
        return self._run.so_far.keep(take, self._sum, self._write_so_far, self._show_so_far)

    def _show_so_far(self) -> None:
        if self._newest is not None and self._newest.figures:
            self._run.hub.show(MeasuredSoFar(self._step.name, self._newest))

    def _write_so_far(self, outcome: StepOutcome) -> Callable[[], None]:
        """In a thread."""
        assert self._judge is not None
        result = self._judge(outcome)
        self._newest = result.ends.measured[-1]
        measured = [one.measured for one in outcome.measurements if isinstance(one, SummedMeasurement)]
        windows = tuple(MeasuredWindow(one.first, one.last, one.set_aside) for one in measured)
        connectors = "".join(map(self._connector_rows, measured))
        return self._run.write_so_far(self._step, result.records, result.ends, windows, connectors, self._rollups)

    def _connector_rows(self, measured: Measured) -> str:
        """Of connectors.csv; in a thread."""
        if self._connectors is None:
            return ""
        name = self._step.name + measured.suffix
        return self._connectors.summary(name, measured.first, measured.last, measured.set_aside)

    def record_subinterval(self, closed: ClosedSubinterval) -> None:
        """Record one subinterval that is merged and decided on. Raises OutputError."""
        self._running = closed.number + 1
        start_utc_ns = self._run.clock.utc_ns(closed.start_ns)
        end_utc_ns = start_utc_ns + real_length_ns(closed.interval, round(self._step.subinterval_s * 1e9))
        figures = closed.interval.figures.shown(closed.settings.response_rows())
        phase, settings, decision = str(closed.phase), closed.settings, closed.decision
        self._put(SubintervalRecord(closed.interval, figures, settings, phase, start_utc_ns, closed.timing))
        if closed.interval.absent:
            self._holes[closed.number] = phase, start_utc_ns
        self._tables(decision.rows)
        if decision.steady is not None:
            self._document("steady.json", decision.steady)
        self._remaining_s = remaining_s(closed, self._step, self._remaining_s)
        times = self._remaining_s, self._later_steps_s
        step, rollups = self._step, self._rollups
        report = subinterval_report(closed, figures, step, rollups, utc(end_utc_ns), *times)
        self._run.hub.show_subinterval(report, lambda by: instances_of(closed, figures, step, rollups.type(by)))

    def measured(self, measurement: SummedMeasurement) -> None:
        """Record a measurement: a row of windows.csv, and which rows of subintervals it includes. Where it was summed
        again, with late results, windows.csv is replaced as a whole."""
        measured, hosts = measurement.measured, len(measurement.measurement.hosts)
        start_utc_ns, end_utc_ns = map(self._run.clock.utc_ns, (measurement.start_ns, measurement.end_ns))
        row = WindowRecord(
            "measurement",
            measured.first,
            measured.last,
            len(measured.set_aside),
            start_utc_ns,
            end_utc_ns,
            hosts,
            measurement.why,
        )
        place = measured.first, measured.last, measured.suffix
        if place in self._windows:
            self._windows[place] = row
            self._run.writer.post(partial(self._folder.windows, [*self._windows.values()]))
            return
        self._windows[place] = row
        self._measured.append(measured)
        self._run.writer.post(partial(self._folder.window, row))
        counted = frozenset(range(measured.first, measured.last + 1)).difference(measured.set_aside)
        self._run.writer.post(partial(self._folder.measured, counted))

    def join(self, host: str, result: Result) -> None:
        """Store a late result of a subinterval that was recorded without it. Raises OutputError."""
        number = result.subinterval
        with self._late_lock:
            waits = number in self._late
            self._late.setdefault(number, {})[host] = result
        if not waits:  # the sum is made once for all hosts whose results have come by then
            self._run.writer.put(partial(self._join, number, *self._holes[number]))

    def late(self, host: str, result: Result) -> None:
        """Record a result that is not merged, in late/<host>.jsonl."""
        self._run.writer.post(partial(self._folder.late, host, result))

    def gathered(self, subinterval: GatheredSubinterval) -> None:
        """Record what connectors said of one subinterval. Raises OutputError."""
        for gathered in subinterval.gathers:  # of a host that is lost there is another event
            name = gathered.spec.name
            if gathered.state is GatherState.LOST and not gathered.spec.test_host and name not in self._gone:
                self._gone.add(name)
                self.event("", "connector", f"the connector {name} is gone: {gathered.why}")
        if self._connectors is not None:
            self._run.writer.put(partial(self._connectors.add, subinterval))

    def late_gather(self, gathered: Gathered) -> None:
        """Record a gather that came after its deadline."""
        if self._connectors is not None:
            self._run.writer.post(partial(self._connectors.late, gathered))

    def event(self, host: str, kind: str, text: str) -> None:
        """Record a row of events.csv, at the running subinterval."""
        self._run.event(kind, text, host, self._step.number, self._running)

    async def stored(self, measured: Measured) -> Window:
        """A measurement's subintervals, summed from histograms.sqlite. Raises OutputError."""
        return await self._run.writer.do(partial(self._sum, measured))

    def end(self, result: StepResult) -> None:
        """Write the step's rows of the summaries, the measurement's histograms, and its line in run.json."""
        for record in result.records:
            self._run.summary(self._step, record, self._rollups)
        if self._connectors is not None:
            self._run.writer.put(self._connectors.flush)
            for measured in self._measured:
                self._run.connector_summary(partial(self._connector_rows, measured))
        last = next((one for one in reversed(result.records) if one.measurement is not None), result.records[-1])
        self._histograms(last)
        if result.standing.measurement is not None and self._rollups.sections:
            self._run.writer.put(partial(self._folder.by_address, result.standing.measurement))
        for record in result.records:
            self._run.writer.put(record.release)
        self._run.end_step(result.ends)
        self._run.hub.show(result.ends)

    def _put(self, record: SubintervalRecord) -> None:
        self._run.writer.put(partial(self._folder.subinterval, record))

    def _tables(self, rows: Sequence[ControlRow]) -> None:
        """Append the rows that explain control's decisions, each to its file."""
        for file in dict.fromkeys(row.file for row in rows):
            mine = [row.cells for row in rows if row.file == file]
            text = [[control_cell(cell) for cell in cells.values()] for cells in mine]
            self._run.writer.put(partial(self._folder.table, file, list(mine[0]), text))

    def _document(self, file: str, content: Mapping[str, Any]) -> None:
        """A file that is written anew each time."""
        self._run.writer.put(partial(self._folder.document, file, content))

    def _histograms(self, record: SummaryRecord) -> None:
        if record.figures is not None:
            self._run.writer.put(partial(self._folder.histograms, record.figures))

    def _merger(self) -> Merger:
        return Merger(self._rollups, {host: self._rollups.order(host) for host in self._rollups.hosts()})

    def _join(self, number: int, phase: str, start_utc_ns: int) -> None:
        """In the writer's thread."""
        with self._late_lock:
            late = self._late.pop(number)
        merger = self._merger()
        merger.open(number)
        with HistogramReader(self._run.path / "histograms.sqlite") as stored:
            for other, one in stored.results(self._step.number, number, number):
                merger.add(other, one)
        for host, result in late.items():
            merger.add(host, whole(result))
        self._folder.join(phase, start_utc_ns, late, merger.close())
        self.stored_late += 1

    def _sum(self, measured: Measured, is_given_up: Callable[[], bool] = lambda: False) -> Window:
        """In a thread. Raises OutputError."""
        merger = self._merger()
        with HistogramReader(self._run.path / "histograms.sqlite") as stored:
            window = Window(merger.layout)
            for interval in stored.intervals(merger, self._step.number, measured.first, measured.last):
                if is_given_up():
                    break
                if interval.subinterval in measured.set_aside:
                    window.set_aside(interval)
                else:
                    window.add(interval)
        return window
