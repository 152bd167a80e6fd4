"""A run as lines of text: the same in a log as on a screen, for the width that it has."""

import shutil
import textwrap
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from ..text.scaled import duration, time_of_day
from .instances_table import instances_lines
from .reports import (
    EventLine,
    Instances,
    Report,
    RunBegins,
    RunEnds,
    RunStatus,
    StepBegins,
    StepEnds,
    Subinterval,
    Watcher,
)
from .socket_messages import Changed, HostAnswer
from .steps_table import steps_table, verdict_lines
from .subinterval_lines import MIDDLE, header_lines, subinterval_lines

HEADER_EVERY: Final = 20  # subintervals


def local_now() -> datetime:
    """For the time of day at which something ends, in the reader's zone."""
    return datetime.now().astimezone()


def width_of_output() -> int:
    """Columns of the terminal, or what COLUMNS says; of a log, MIDDLE."""
    return shutil.get_terminal_size((MIDDLE, 24)).columns


def run_lines(report: RunBegins) -> list[str]:
    """Where the results are going to be."""
    hosts = f"{report.hosts} host{'s' * (report.hosts != 1)}"
    return [f"{report.plan}: connecting to {hosts}; results in {report.folder}"]


def place(step: StepBegins) -> str:
    """Which of the run's steps it is: its number, as its folder has it, and how many there are."""
    return f"step {step.number}" + (f" ({step.number + 1} of {step.of_steps})" if step.of_steps > 1 else "")


def step_line(report: StepBegins) -> str:
    about = f", about {duration(report.planned_s)}" if report.planned_s else ""
    return f"{place(report)}: {report.name}{about}"


def event_line(report: EventLine) -> str:
    return f"{report.utc[11:19]}  {report.host + ': ' if report.host else ''}{report.text}"


def done_at(remaining_s: float, now: datetime) -> str:
    """The time of day when what takes that long will be done, and how long it takes: `done 14:32, 3h58m`."""
    return f"done {time_of_day(now + timedelta(seconds=remaining_s), now)}, {duration(remaining_s)}"


def standing_lines(standing: RunStatus, width: int, now: datetime) -> list[str]:
    """Step, phase, last figures, control's messages, what remains, the instances that were asked for, and the hosts."""
    lines = [f"{standing.plan} (pid {standing.pid}), {standing.folder}"]
    lines += [f"  {line}" for step in standing.ended for line in verdict_lines(step)]
    step, last = standing.step, standing.last
    if step is None:
        lines.append("no step has begun")
    elif not standing.running:
        lines.append(f"between steps, after {place(step)}")
    else:
        lines.append(f"{place(step)}: {step.name}{', paused' if standing.paused else ''}")
        if last is not None and last.step == step.name:
            lines += [*header_lines(width), *subinterval_lines(last, width)]
            if standing.paused:
                lines.append("the measurement starts again when the run goes on")
            else:
                lines.append(f"step {done_at(last.step_remaining_s, now)}; run {done_at(last.run_remaining_s, now)}")
        else:
            lines.append("its first subinterval has not closed yet")
    if standing.instances is not None:
        lines += ["", *instances_lines(standing.instances, width), ""]
    lost = {name: reason for name, reason in standing.hosts.items() if reason}
    count = len(standing.hosts)
    lines.append(f"{count - len(lost)} of {count} host{'s' * (count != 1)} taking part")
    return lines + [f"  {name}: {reason}" for name, reason in lost.items()]


def changed_lines(changed: Changed, now: datetime) -> list[str]:
    """What is different now, since when on which host, and what that means for the step."""
    if not changed.what:
        return ["nothing changed: these settings were in force already"]
    lines = [changed.what, *(f"  {_took(took)}" for took in changed.took)]
    if changed.discarded:
        lines.append(f"{changed.discarded:,} overdue I/Os were discarded")
    if changed.restarts:
        remaining_s = changed.step_remaining_s
        end = "" if remaining_s is None else f"; the step is now {done_at(remaining_s, now)}"
        lines.append(f"the measurement begins again{end}")
    return lines


def _took(took: HostAnswer) -> str:
    if took.failed:
        return f"{took.host}: did not apply it: {took.failed}"
    return f"{took.host}: in force since {took.utc}, in subinterval {took.subinterval}"


def wrapped(line: str, width: int) -> list[str]:
    """A line in pieces that fit, cut between words; all but the first are indented further."""
    if len(line) <= width:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()))
    return textwrap.wrap(
        line.strip(), width, initial_indent=indent, subsequent_indent=indent + "  ", break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


class TextLines:
    """Writes every report as plain lines."""

    def __init__(
        self, write: Callable[[str], None], width: Callable[[], int] = width_of_output, with_messages: bool = True
    ) -> None:
        """`width`: columns that there are now. `with_messages`: control's messages have lines among the others."""
        self._write = write
        self._width = width
        self._with_messages = with_messages
        self._since_header = HEADER_EVERY

    def show(self, report: Report) -> None:
        for line in self.lines(report):
            self._write(line)

    def lines(self, report: Report) -> list[str]:
        match report:
            case RunBegins():
                return run_lines(report)
            case StepBegins():
                self._since_header = HEADER_EVERY
                return ["", step_line(report)]
            case Subinterval():
                width = self._width()
                header = header_lines(width) if self._since_header >= HEADER_EVERY else []
                self._since_header = 1 if header else self._since_header + 1
                return [*header, *subinterval_lines(report, width, self._with_messages)]
            case Instances():
                return instances_lines(report, self._width())
            case EventLine():
                return [event_line(report)]
            case StepEnds():
                return verdict_lines(report)
            case RunEnds():
                table = ["", *steps_table(report, self._width())] if report.steps else []
                return [*table, *([""] if table else []), report.words, *filter(None, [report.folder])]
            case RunStatus():
                return standing_lines(report, self._width(), local_now())

    def close(self) -> None:
        pass


class OnlyTheEnd:
    """Writes how the run ended, and its folder."""

    def __init__(self, lines: TextLines) -> None:
        self._lines = lines

    def show(self, report: Report) -> None:
        if isinstance(report, RunEnds):
            self._lines.show(replace(report, steps=()))

    def close(self) -> None:
        pass


class WithResult:
    """Shows a run, and at its end a result instead of the table of its steps."""

    def __init__(self, inner: Watcher, write: Callable[[str], None], result: Callable[[RunEnds], list[str]]) -> None:
        self._inner = inner
        self._write = write
        self._result = result

    def show(self, report: Report) -> None:
        if not isinstance(report, RunEnds) or not report.steps:
            self._inner.show(report)
            return
        self._inner.close()
        for line in ["", *self._result(report)]:
            self._write(line)

    def close(self) -> None:
        self._inner.close()
