"""`ivypy.run`: a plan's run as one call that waits for its end, in a program or in a notebook.

Rule: the run has a thread and an event loop of its own, so that it works where a loop is running already. Ctrl-C, or a
notebook's stop button, ends it as Ctrl-C ends `ivypy run`: what was measured is kept, and is the result.
"""

import asyncio
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from ..errors import IvypyError, PlanError
from ..exit_codes import ExitCode
from ..live.reports import Nobody, Report, RunBegins, RunEnds, StepBegins, Subinterval, Watcher
from ..live.step_lines import done_and_all
from ..plan.load import load, read
from ..plan.model import Plan
from ..report.pictures import Picture, picture_of
from ..results.finished_run import why_no_results
from ..results.result_document import MeasurementDocument, ReasonDocument, StepDocument, result_of
from ..rollup.metrics import METRICS
from ..run.session.program_steps import plan_text
from ..run.session.run import Options, run_plan
from ..run.session.session_result import Known, SessionResult
from ..run.session.signals import Interrupts
from ..summary.headline import IOPS, text_of
from ..text.scaled import duration
from ..verdicts import Scope
from .loaded_runs import Frames, LoadedRuns
from .loaded_runs import load as load_runs

WAIT_S: Final = 0.1  # between two looks for a Ctrl-C
MOST_PRESSES: Final = 2  # a third would end the whole program


@dataclass(frozen=True, slots=True, repr=False)
class RunResult:
    """A run that has ended. `result["half"]["all=all"]["overall_iops"]` is a figure of a step."""

    folder: Path
    exit_code: int
    words: str  # the exit code's sentence
    steps: Mapping[str, SessionResult]

    def __getitem__(self, step: str) -> SessionResult:
        return self.steps[step]

    def load(self, frames: Frames | None = None) -> LoadedRuns:
        """Its tables, as `ivypy.load` gives them."""
        return load_runs(self.folder, frames)

    def picture(self, name: str = "latency") -> Picture:
        """A chart of it, as `LoadedRuns.picture` makes it."""
        return picture_of(self.folder, name)

    def __repr__(self) -> str:
        return f"<{self.folder.name}: exit code {self.exit_code}, {', '.join(map(repr, self.steps.values()))}>"

    def _repr_html_(self) -> str:
        return "".join(one._repr_html_() for one in self.steps.values())


def run(
    plan: Path | str | Mapping[str, Any],
    *,
    root: Path | str = "runs",
    destroy: str | None = None,
    defines: Mapping[str, str] | None = None,
    progress: bool = True,
) -> RunResult:
    """Run a plan to its end, and return what it measured.

    `plan` is a path, the text of a plan, or the same as a dict; the others are as of `ivypy run`. `progress`: show a
    line. An interrupted run returns what it measured. Raises IvypyError where nothing was measured.
    """
    loaded = _plan(plan, defines or {})
    watcher = ProgressLine(_shower()) if progress else Ends(Nobody())
    code = _waited(loaded, Options(Path(root), destroy, tuple(sys.argv)), watcher)
    return result_in(Path(watcher.folder), code)


def _plan(plan: Path | str | Mapping[str, Any], defines: Mapping[str, str]) -> Plan:
    if isinstance(plan, Mapping):
        return read(plan_text(plan), "plan", defines)
    if isinstance(plan, str) and "\n" in plan:
        return read(plan, "plan", defines)
    return load(Path(plan), defines)


def result_in(folder: Path, code: ExitCode) -> RunResult:
    """The run in a folder. Raises PlanError where it measured nothing."""
    if why := why_no_results(folder):
        raise PlanError(f"{folder}: {why}")
    document = result_of(folder, ())
    steps = Known({one.name: _step(one) for one in document.steps})
    return RunResult(folder, int(code), code.sentence, steps)


def _step(step: StepDocument) -> SessionResult:
    by_name: dict[str, list[MeasurementDocument]] = {}
    for measurement in step.measurements:
        by_name.setdefault(measurement.name, []).append(measurement)
    # The first row of each measurement is that of everything.
    measured = tuple(
        SessionResult(name, rows[0].verdict, _reasons(rows[0].reasons), _by_instance(rows), verdicts=_verdicts(rows))
        for name, rows in by_name.items()
    )
    shown = next(one for one, rows in zip(measured, by_name.values(), strict=True) if rows[0].stands)
    return SessionResult(step.name, step.verdict, _reasons(step.reasons), shown.figures, measured, shown.verdicts)


def _reasons(reasons: Sequence[ReasonDocument]) -> tuple[str, ...]:
    return tuple(f"{one.reason}[{one.severity}]" + (f" ({one.detail})" if one.detail else "") for one in reasons)


def _by_instance(rows: Sequence[MeasurementDocument]) -> Known[Mapping[str, float | None]]:
    return Known({f"{one.rollup_type}={one.rollup_instance}": _figures(one) for one in rows})


def _verdicts(rows: Sequence[MeasurementDocument]) -> Known[Mapping[str, str]]:
    return Known({f"{one.rollup_type}={one.rollup_instance}": _scoped(one) for one in rows})


def _scoped(one: MeasurementDocument) -> Known[str]:
    return Known({str(scope): getattr(one, f"{scope}_verdict") for scope in Scope})


def _figures(one: MeasurementDocument) -> Known[float | None]:
    return Known({name: one.metrics.get(name) for name in METRICS})


def _waited(plan: Plan, options: Options, watcher: Watcher) -> ExitCode:
    """Run it in a thread of its own; a KeyboardInterrupt here is a press there."""
    ended: list[ExitCode | BaseException] = []
    began, done = threading.Event(), threading.Event()  # an interrupted Thread.join takes a thread for ended
    inside: dict[str, Any] = {}

    async def main() -> ExitCode:
        task = asyncio.current_task()
        assert task is not None
        inside.update(presses=Interrupts(task.cancel), loop=asyncio.get_running_loop())
        began.set()
        return await run_plan(plan, options, watcher, inside["presses"])

    def work() -> None:
        try:
            ended.append(asyncio.run(main()))
        except asyncio.CancelledError:
            ended.append(ExitCode.INTERRUPTED)
        except BaseException as error:
            ended.append(error)
        finally:
            began.set()
            done.set()

    threading.Thread(target=work, name="ivypy-run", daemon=True).start()
    began.wait()
    presses = 0
    while not done.is_set():
        try:
            done.wait(WAIT_S)
        except KeyboardInterrupt:
            presses += 1
            if presses <= MOST_PRESSES and not inside["loop"].is_closed():
                inside["loop"].call_soon_threadsafe(inside["presses"].press)
    (outcome,) = ended
    if isinstance(outcome, IvypyError) or not isinstance(outcome, ExitCode):
        raise outcome
    return outcome


class Ends:
    """A watcher that keeps where the run is."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self.folder = ""

    def show(self, report: Report) -> None:
        if isinstance(report, RunBegins):
            self.folder = report.folder
        self._watcher.show(report)

    def close(self) -> None:
        self._watcher.close()


class ProgressLine(Ends):
    """Shows one line, in place: the step, how far it is, its rate."""

    def __init__(self, show: Callable[[str], None]) -> None:
        super().__init__(Nobody())
        self._show = show
        self._step: StepBegins | None = None

    def show(self, report: Report) -> None:
        super().show(report)
        if isinstance(report, StepBegins):
            self._step = report
            self._show(self._line(0.0, report.planned_s, ""))
        elif isinstance(report, Subinterval) and self._step is not None:
            done, _ = done_and_all(self._step, report)
            rate = f"  {text_of(IOPS, report.figures)} IOPS"
            self._show(self._line(done, done + report.step_remaining_s, rate))
        elif isinstance(report, RunEnds):
            self._show(f"{report.words} {report.folder}\n")

    def _line(self, done_s: float, all_s: float, more: str) -> str:
        assert self._step is not None
        share = min(done_s / all_s, 1.0) if all_s > 0 else 0.0
        bar = "█" * round(20 * share) + "░" * (20 - round(20 * share))
        of_steps = f" of {self._step.of_steps}" if self._step.of_steps else ""
        place = f"{self._step.number + 1}{of_steps}"
        return f"{place} {self._step.name}  {bar}  {duration(done_s)} of {duration(all_s)}{more}"


def _shower() -> Callable[[str], None]:
    """Return the function that shows a line in place: in a notebook an output that is replaced, else the terminal's own
    line.
    """
    if "ipykernel" in sys.modules:
        display: Any = import_module("IPython.display").display
        handle = display({"text/plain": ""}, raw=True, display_id=True)
        return lambda text: handle.update({"text/plain": text.strip()}, raw=True)
    if sys.stderr.isatty():
        return lambda text: print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
    return lambda text: print(text.strip(), file=sys.stderr) if text.endswith("\n") else None
