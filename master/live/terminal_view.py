"""A run on a terminal: the same lines as in a log, scrolling, above a progress bar that says what remains."""

from typing import TextIO

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from ..verdicts import Verdict
from .line_view import TextLines, duration, place
from .reports import EventLine, Report, RunEnds, StepBegins, StepEnds, Subinterval

_STYLE = {Verdict.VALID: "green", Verdict.PARTIAL: "yellow", Verdict.INVALID: "red"}


class Terminal:
    def __init__(self, stream: TextIO | None = None) -> None:
        self._console = Console(file=stream, highlight=False, soft_wrap=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[remaining]}"),
            console=self._console,
            transient=True,
            auto_refresh=False,  # it changes with reports alone; a thread could not say that nobody is there
            redirect_stdout=False,
            redirect_stderr=False,  # which has its own way out, and waits for nobody
        )
        self._task: TaskID | None = None
        self._lines = TextLines(lambda line: None)

    def show(self, report: Report) -> None:
        match report:
            case StepBegins():
                self._begin(report)
            case Subinterval():
                self._advance(report)
            case RunEnds():
                self.close()
        style = self._style(report)
        for line in self._lines.lines(report):
            self._console.print(escape(line), style=style)

    def close(self) -> None:
        self._progress.stop()

    def _begin(self, report: StepBegins) -> None:
        self._progress.start()
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._task = self._progress.add_task(
            escape(f"{place(report)}: {report.name}"),
            total=max(report.planned_s, 0.001),
            remaining="",
        )

    def _advance(self, report: Subinterval) -> None:
        if self._task is None:
            return
        total = self._progress.tasks[0].total or 0.0
        self._progress.update(
            self._task,
            completed=max(total - report.step_remaining_s, 0.0),
            remaining=f"{duration(report.step_remaining_s)} left, {duration(report.run_remaining_s)} in all",
            refresh=True,
        )

    def _style(self, report: Report) -> str | None:
        match report:
            case StepBegins():
                return "bold"
            case StepEnds():
                return _STYLE[report.verdict]
            case EventLine():
                return "yellow"
        return None
