"""A run as lines of text: the same in a log as on a screen, for the width that it has.

Rule: in short, what a reader has to know: a subinterval now and then, the step's verdict with its cause, and the table
at the end. In detail, every subinterval with reads, writes and all messages, and every reason.
"""

import math
import shutil
import sys
from collections.abc import Callable
from datetime import datetime
from typing import Final

from ..summary.headline import MIDDLE
from ..summary.measured import StepEnds
from ..summary.steps_table import reason_lines, steps_table, verdict_lines
from ..text.wrapping import wrapped
from .instances_table import instances_lines
from .reports import (
    SET_UP,
    EventLine,
    Instances,
    MeasuredSoFar,
    Report,
    RunBegins,
    RunEnds,
    RunStatus,
    StepBegins,
    Subinterval,
)  # fmt: skip
from .step_lines import left, local_now, step_line, step_position
from .subinterval_lines import detailed_lines, header_lines, last_lines, message_lines, subinterval_lines
from .terminal_width import columns_of

HEADER_EVERY: Final = 20  # lines of subintervals


def columns_of_output() -> int | None:
    return columns_of(sys.stdout)


def width_of_log() -> int:
    """The columns that COLUMNS names, or MIDDLE."""
    return shutil.get_terminal_size((MIDDLE, 24)).columns


def event_line(report: EventLine) -> str:
    return f"{report.utc[11:19]}  {report.host + ': ' if report.host else ''}{report.text}"


class TextLines:
    """Writes every report as plain lines."""

    def __init__(
        self,
        write: Callable[[str], None],
        columns: Callable[[], int | None] = columns_of_output,
        every_s: float = 0.0,
        in_detail: bool = False,
    ) -> None:
        """`columns`: of the terminal, now; None: a log, whose lines stay whole. `every_s`: of so many seconds a
        subinterval is shown; inf: none is."""
        self._write = write
        self._columns = columns
        self._every_s = 0.0 if in_detail else every_s
        self._in_detail = in_detail
        self._every = 1  # of so many subintervals one is shown
        self._said = 1  # the same, as it was said last
        self._folder = ""  # of the run, until it was shown
        self._last: Subinterval | None = None  # of the step
        self._told: tuple[str, ...] = ()  # its news that have been shown
        self._was_wrong = False  # whether hosts were missing, or I/Os failed
        self._since_header = HEADER_EVERY

    def show(self, report: Report) -> None:
        for line in self.lines(report):
            self._write(line)

    def lines(self, report: Report) -> list[str]:
        columns = self._columns()
        lines = self._whole_lines(report, width_of_log() if columns is None else columns)
        return lines if columns is None else [piece for line in lines for piece in wrapped(line, columns)]

    def _whole_lines(self, report: Report, width: int) -> list[str]:
        """The tables are for the width, prose is as long as it is."""
        match report:
            case RunBegins():
                self._folder = report.folder
                return [f"{report.plan}: connecting to {report.hosts} host{'s' * (report.hosts != 1)}"]
            case StepBegins():
                return self._begun(report)
            case Subinterval():
                return self._subinterval(report, width)
            case Instances():
                return instances_lines(report, width)
            case MeasuredSoFar():
                return []
            case EventLine():
                return [event_line(report)] if self._in_detail or report.kind not in SET_UP else []
            case StepEnds():
                return reason_lines(report) if self._in_detail else [*self._news(), *verdict_lines(report)]
            case RunEnds():
                table = ["", *steps_table(report.steps, width, report.folder)] if report.steps else []
                return [*table, *([""] if table else []), report.words, *filter(None, [report.folder])]
            case RunStatus():
                return standing_lines(report, width, local_now())

    def _begun(self, report: StepBegins) -> list[str]:
        self._last, self._told, self._was_wrong = None, (), False
        # Only now: a run that is refused keeps no folder.
        before, self._folder = [*([f"results in {self._folder}"] if self._folder else []), ""], ""
        short = step_line(report)
        if self._every_s == math.inf:
            return [*before, short]
        self._every = max(round(self._every_s / report.subinterval_s), 1)
        line = step_line(report, self._every)
        if line == short or self._said == self._every:
            return [*before, short]
        self._said = self._every
        return [*before, line]

    def _subinterval(self, report: Subinterval, width: int) -> list[str]:
        self._last = report
        is_wrong = report.hosts_in < report.hosts_of or bool(report.figures.get("errors"))
        begins = is_wrong and not self._was_wrong
        self._was_wrong = is_wrong
        if self._every_s == math.inf or ((report.number + 1) % self._every and not begins):
            return []
        header = header_lines(width) if self._since_header >= HEADER_EVERY else []
        self._since_header = 1 if header else self._since_header + 1
        if self._in_detail:
            return [*header, *detailed_lines(report, width)]
        return [*header, *subinterval_lines(report, width), *self._news()]

    def _news(self) -> list[str]:
        """Those of the last subinterval that have not been told."""
        if self._last is None:
            return []
        news = [words for words in self._last.news if words not in self._told]
        self._told = self._last.news
        return message_lines(news)

    def close(self) -> None:
        pass


def standing_lines(standing: RunStatus, width: int, now: datetime) -> list[str]:
    """Step, phase, last figures, control's messages, what remains, the instances that were asked for, and the hosts."""
    lines = [f"{standing.plan} (pid {standing.pid}), {standing.folder}"]
    lines += [f"  {line}" for step in standing.ended for line in verdict_lines(step)]
    step, last = standing.step, standing.last
    if step is None:
        lines.append("no step has begun")
    elif not standing.running:
        lines.append(f"between steps, after {step_position(step)}")
    else:
        lines.append(f"{step_position(step)}: {step.name}{', paused' if standing.paused else ''}")
        if last is not None and last.step == step.name:
            lines += last_lines(last, standing.so_far, width)
            step_left, run_left = (
                left(remaining_s, standing.paused, now) for remaining_s in (last.step_remaining_s, last.run_remaining_s)
            )
            lines.append(f"step {step_left}; run {run_left}")
            if standing.paused:
                lines.append("the measurement starts again when the run goes on: ivypy unpause")
        else:
            lines.append("its first subinterval has not closed yet")
    if standing.instances is not None:
        lines += ["", *instances_lines(standing.instances, width), ""]
    lost = {name: reason for name, reason in standing.hosts.items() if reason}
    count = len(standing.hosts)
    lines.append(f"{count - len(lost)} of {count} host{'s' * (count != 1)} taking part")
    return lines + [f"  {name}: {reason}" for name, reason in lost.items()]
