"""A run as fixed columns of text: one line per subinterval, readable for hours, the same in a log as on a screen.

Rule: a number keeps its unit (the header says it) and its column; nothing is scaled but by three significant
digits of latency. A blank is a number that would not be true.
"""

from collections.abc import Callable
from typing import Final

from .reports import EventLine, Latency, MeasurementRow, Report, RunEnds, RunStatus, StepBegins, StepEnds, Subinterval
from .socket_messages import Changed, HostAnswer

HEADER_EVERY: Final = 20  # lines
HEADER: Final = (
    f"{'UTC':8}  {'phase':9} {'#':>4} {'target':>9} {'IOPS':>10} {'MiB/s':>8}"
    f" | {'service p50':>11} {'p99':>8} {'max us':>9} | {'response p50':>12} {'p99':>8} {'max us':>9}"
    f" | {'hosts':>7} {'CPU%':>9}"
)


def microseconds(value: float | None) -> str:
    """Latency with three significant digits, whole from 100 us on."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def count(value: float | None, digits: int = 0) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def duration(seconds: float) -> str:
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return (
        f"{hours}h{minutes:02}m{whole % 60:02}s" if hours else f"{minutes}m{whole % 60:02}s" if minutes else f"{whole}s"
    )


def _latency(latency: Latency, wide: int) -> str:
    return f"{microseconds(latency.p50_us):>{wide}} {microseconds(latency.p99_us):>8} {microseconds(latency.max_us):>9}"


def subinterval_line(report: Subinterval) -> str:
    target = report.target_iops if isinstance(report.target_iops, str) else count(report.target_iops)
    cpu = "-" if report.busy_percent is None else f"{report.busy_percent:.0f}/{report.busiest_percent or 0:.0f}"
    line = (
        f"{report.utc[11:19]}  {report.phase:9} {report.number:>4} {target:>9} {count(report.iops):>10}"
        f" {count(report.mib_per_s, 1):>8} | {_latency(report.service, 11)} | {_latency(report.response, 12)}"
        f" | {f'{report.hosts_in}/{report.hosts_of}':>7} {cpu:>9}"
    )
    if report.errors:
        line += f"  {report.errors:,} errors"
    return line


def _with_messages(report: Subinterval) -> str:
    """A line of the log, with what control says at its end."""
    return "  ".join(filter(None, (subinterval_line(report), "; ".join(report.messages))))


def place(step: StepBegins) -> str:
    """Which of the run's steps it is, numbered as its folder is."""
    return f"step {step.number} of 0..{step.of_steps - 1}"


def step_line(report: StepBegins) -> str:
    about = f", about {duration(report.planned_s)}" if report.planned_s else ""
    return f"{place(report)}: {report.name}{about}"


def event_line(report: EventLine) -> str:
    return f"{report.utc[11:19]}  {report.host + ': ' if report.host else ''}{report.text}"


def verdict_lines(report: StepEnds) -> list[str]:
    """The step's verdict with its reasons; those of several measurements each below it."""
    if len(report.measured) == 1:
        return [_verdict_line(report.number, report.measured[0])]
    each = [f"  {_verdict_line(report.number, one)}" for one in report.measured]
    return [f"step {report.number} {report.name}: {report.verdict}, {len(each)} measurements", *each]


def _verdict_line(number: int, measured: MeasurementRow) -> str:
    why = "; ".join(str(finding) for finding in measured.findings)
    return f"step {number} {measured.name}: {measured.verdict}{': ' + why if why else ''}"


WIDEST_NAME: Final = 48  # half of it holds the load of a level
STEPS_HEADER: Final = (
    f" {'verdict':8} {'IOPS':>10} {'+-':>6} {'MiB/s':>8} | {'service mean':>12} {'p50':>8} {'p99':>8}"
    f" {'max us':>9} | {'response mean':>13} {'p50':>8} {'p99':>8} {'max us':>9}"
)


def steps_table(report: RunEnds) -> list[str]:
    """The table at the end of a run, a line for each measurement, with the reasons below it."""
    measured = [(step.number, one) for step in report.steps for one in step.measured]
    names = [f"{number} {one.name}" for number, one in measured]
    wide = min(max([24, *map(len, names)]), WIDEST_NAME)
    lines = [f"{'step':{wide}}{STEPS_HEADER}"]
    for name, (_, one) in zip(names, measured, strict=True):
        half = "-" if one.half_width_percent is None else f"{one.half_width_percent:.1f}%"
        lines.append(
            f"{_fitted(name, wide):{wide}} {one.verdict:8} {count(one.iops):>10} {half:>6}"
            f" {count(one.mib_per_s, 1):>8}"
            f" | {microseconds(one.service_mean_us):>12} {_latency(one.service, 8)}"
            f" | {microseconds(one.response_mean_us):>13} {_latency(one.response, 8)}"
        )
    lines += [f"  {_verdict_line(number, one)}" for number, one in measured if one.findings]
    return lines


def _fitted(name: str, wide: int) -> str:
    """A name without its middle where it is too long: its end distinguishes the levels of a staircase."""
    if len(name) <= wide:
        return name
    end = (wide - 1) // 2
    return f"{name[: wide - 1 - end]}~{name[-end:]}"


def standing_lines(standing: RunStatus) -> list[str]:
    """Step, phase, last figures, what control says, what remains, and the hosts."""
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
            lines += [HEADER, subinterval_line(last), *(f"  {said}" for said in last.messages)]
            left, all_left = duration(last.step_remaining_s), duration(last.run_remaining_s)
            lines.append(f"{left} left of the step, {all_left} of the run")
        else:
            lines.append("its first subinterval has not closed yet")
    lost = {name: reason for name, reason in standing.hosts.items() if reason}
    count = len(standing.hosts)
    lines.append(f"{count - len(lost)} of {count} host{'s' * (count != 1)} taking part")
    return lines + [f"  {name}: {reason}" for name, reason in lost.items()]


def changed_lines(changed: Changed) -> list[str]:
    """What is different now, and since when on which host."""
    if not changed.what:
        return ["nothing changed: these settings were in force already"]
    lines = [changed.what, *(f"  {_took(took)}" for took in changed.took)]
    if changed.discarded:
        lines.append(f"{changed.discarded:,} overdue I/Os were discarded")
    return lines


def _took(took: HostAnswer) -> str:
    if took.failed:
        return f"{took.host}: did not apply it: {took.failed}"
    return f"{took.host}: in force since {took.utc}, in subinterval {took.subinterval}"


class TextLines:
    """Writes every report as plain lines."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._since_header = HEADER_EVERY

    def show(self, report: Report) -> None:
        for line in self.lines(report):
            self._write(line)

    def lines(self, report: Report) -> list[str]:
        match report:
            case StepBegins():
                self._since_header = HEADER_EVERY
                return ["", step_line(report)]
            case Subinterval():
                header = [HEADER] if self._since_header >= HEADER_EVERY else []
                self._since_header = 1 if header else self._since_header + 1
                return [*header, _with_messages(report)]
            case EventLine():
                return [event_line(report)]
            case StepEnds():
                return verdict_lines(report)
            case RunEnds():
                table = ["", *steps_table(report)] if report.steps else []
                return [*table, "", report.words, report.folder]
            case RunStatus():
                return standing_lines(report)

    def close(self) -> None:
        pass
