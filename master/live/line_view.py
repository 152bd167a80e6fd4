"""A run as lines of text: the same in a log as on a screen, for the width that it has."""

import shutil
import sys
from collections.abc import Callable
from datetime import datetime
from typing import Final

from ..summary.headline import MIDDLE
from ..summary.measured import StepEnds
from ..summary.steps_table import steps_table, verdict_lines
from ..text.wrapping import wrapped
from .instances_table import instances_lines
from .reports import EventLine, Instances, Report, RunBegins, RunEnds, RunStatus, StepBegins, Subinterval
from .step_lines import left, local_now, step_line, step_position
from .subinterval_lines import header_lines, subinterval_lines
from .terminal_width import columns_of

HEADER_EVERY: Final = 20  # subintervals


def columns_of_output() -> int | None:
    return columns_of(sys.stdout)


def width_of_log() -> int:
    """The columns that COLUMNS names, or MIDDLE."""
    return shutil.get_terminal_size((MIDDLE, 24)).columns


def run_lines(report: RunBegins) -> list[str]:
    """Where the results are going to be."""
    hosts = f"{report.hosts} host{'s' * (report.hosts != 1)}"
    return [f"{report.plan}: connecting to {hosts}; results in {report.folder}"]


def event_line(report: EventLine) -> str:
    return f"{report.utc[11:19]}  {report.host + ': ' if report.host else ''}{report.text}"


class TextLines:
    """Writes every report as plain lines."""

    def __init__(
        self,
        write: Callable[[str], None],
        columns: Callable[[], int | None] = columns_of_output,
        with_messages: bool = True,
    ) -> None:
        """`columns`: of the terminal, now; None: a log, whose lines stay whole. `with_messages`: control's messages
        have lines among the others."""
        self._write = write
        self._columns = columns
        self._with_messages = with_messages
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
                return run_lines(report)
            case StepBegins():
                self._since_header = HEADER_EVERY
                return ["", step_line(report)]
            case Subinterval():
                header = header_lines(width) if self._since_header >= HEADER_EVERY else []
                self._since_header = 1 if header else self._since_header + 1
                return [*header, *subinterval_lines(report, width, self._with_messages)]
            case Instances():
                return instances_lines(report, width)
            case EventLine():
                return [event_line(report)]
            case StepEnds():
                return verdict_lines(report)
            case RunEnds():
                table = ["", *steps_table(report.steps, width)] if report.steps else []
                return [*table, *([""] if table else []), report.words, *filter(None, [report.folder])]
            case RunStatus():
                return standing_lines(report, width, local_now())

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
            lines += [*header_lines(width), *subinterval_lines(last, width)]
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
