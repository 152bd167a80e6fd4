"""A run on a terminal: the lines of a log without those of subintervals, scrolling, above what changes in place: a bar
for the step and one for the plan, the last subinterval, what was measured so far, the worst instance, and control's
messages.
"""

import math
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final, TextIO

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Column
from rich.text import Text

from ..summary.measured import StepEnds
from ..text.wrapping import wrapped
from ..verdicts import Verdict
from .line_view import TextLines
from .reports import EventLine, MeasuredSoFar, Report, RunEnds, StepBegins, Subinterval
from .step_lines import done_and_all, left, local_now, step_position
from .subinterval_lines import last_lines

_STYLE = {Verdict.VALID: "green", Verdict.PARTIAL: "yellow", Verdict.FAILED: "red", Verdict.INVALID: "red"}
_BAR: Final = 20  # columns, on the narrowest terminal beside the longest end ("done Tue 02:15, 28m00s")


class _Bars(Progress):
    """The bars, and below them the last subinterval, and what was measured so far."""

    last: Subinterval | None = None
    so_far: MeasuredSoFar | None = None

    def get_renderables(self) -> Iterable[RenderableType]:
        yield from super().get_renderables()
        if self.last is None:
            return
        width = self.console.width
        for line in ("", *last_lines(self.last, self.so_far, width)):
            for piece in wrapped(line, width) or [""]:
                yield Text(piece, no_wrap=True, overflow="ellipsis")


class Terminal:
    def __init__(self, stream: TextIO | None = None, now: Callable[[], datetime] = local_now) -> None:
        self._console = Console(file=stream, highlight=False, soft_wrap=True)
        self._now = now
        self._progress = _Bars(
            TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")),
            BarColumn(bar_width=_BAR),
            TextColumn("{task.fields[end]}", table_column=Column(no_wrap=True)),
            console=self._console,
            expand=True,
            transient=True,
            auto_refresh=False,  # it changes with reports alone; a thread could not say that nobody is there
            redirect_stdout=False,
            redirect_stderr=False,  # which has its own way out, and waits for nobody
        )
        self._step: TaskID | None = None
        self._plan: TaskID | None = None
        self._begins: StepBegins | None = None
        self._lines = TextLines(lambda line: None, lambda: self._console.width, every_s=math.inf)

    def show(self, report: Report) -> None:
        match report:
            case StepBegins():
                self._begin(report)
            case Subinterval():
                self._advance(report)
            case MeasuredSoFar():
                self._progress.so_far = report
                if self._step is not None:  # now: with the next subinterval it would be a row behind
                    self._progress.refresh()
            case RunEnds():
                self.close()
        style = self._style(report)
        for line in self._lines.lines(report):
            self._console.print(escape(line), style=style)

    def close(self) -> None:
        self._progress.stop()

    def _begin(self, report: StepBegins) -> None:
        self._begins = report
        self._progress.last = self._progress.so_far = None
        self._progress.start()
        for task in (self._step, self._plan):
            if task is not None:
                self._progress.remove_task(task)
        name = escape(f"{step_position(report)}: {report.name}")
        self._step = self._progress.add_task(name, total=max(report.planned_s, 0.001), end="")
        self._plan = None
        if report.of_steps != 1:
            self._plan = self._progress.add_task("all steps", total=max(report.run_planned_s, 0.001), end="")

    def _advance(self, report: Subinterval) -> None:
        now = self._now()
        if self._step is not None and self._begins is not None:
            done, total = done_and_all(self._begins, report)
            end = left(report.step_remaining_s, report.paused, now)
            self._progress.update(self._step, completed=done, total=max(total, 0.001), end=end)
        if self._plan is not None:
            total = next(one.total or 0.0 for one in self._progress.tasks if one.id == self._plan)
            done = max(total - report.run_remaining_s, 0.0)
            self._progress.update(self._plan, completed=done, end=left(report.run_remaining_s, report.paused, now))
        self._progress.last = report
        if self._step is not None:
            self._progress.refresh()

    def _style(self, report: Report) -> str | None:
        match report:
            case StepBegins():
                return "bold"
            case StepEnds():
                return _STYLE[report.verdict]
            case EventLine():
                return "yellow"
        return None
