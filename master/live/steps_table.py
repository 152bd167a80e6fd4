"""The table at the end of a run: a line for each measurement, below it their verdicts, causes, reasons and remedies.

Rule: a figure that its verdict discredits stands in brackets, [1.2 k], and one that is of a part of what was planned in
parentheses, (1.2 k); a line below the row says where hosts are missing. The width chooses the columns, as for
subintervals.
"""

from collections.abc import Callable, Sequence
from typing import Final

from ..causes import remedy_of
from ..text.scaled import WIDEST, scaled_count, scaled_time
from ..text.wrapping import shortened
from ..verdicts import Reason, Verdict
from .reports import Latency, MeasurementRow, StepEnds
from .subinterval_lines import MIDDLE, NARROW, NARROWEST, WIDE

Cell = tuple[str, Callable[[MeasurementRow], str]]  # title, text

MOST_REASONS: Final = 3  # of a measurement; the CSV has all
LEAST_NAME: Final = 18
WIDEST_NAME: Final = 48  # half of it holds the load of a level
_WIDTH: Final = WIDEST + 2  # of a figure, in brackets


def marked(figure: str, verdict: Verdict) -> str:
    """A figure that is discredited, `[42.1 k]`, or partial, `(42.1 k)`; others as they are."""
    before, behind = {Verdict.INVALID: ("[", "]"), Verdict.PARTIAL: ("(", ")")}.get(verdict, ("", ""))
    return f"{before}{figure}{behind}" if figure != "-" else figure


def _half(one: MeasurementRow) -> str:
    return "-" if one.half_width_percent is None else f"{one.half_width_percent:.1f}%"


_IOPS: Final[Cell] = "IOPS", lambda one: marked(scaled_count(one.iops), one.rate_verdict)
_HALF: Final[Cell] = "+-", lambda one: marked(_half(one), one.rate_verdict)
_MIB: Final[Cell] = "MiB/s", lambda one: marked(scaled_count(one.mib_per_s), one.rate_verdict)


def _service(name: str) -> Cell:
    return _title(name), lambda one: marked(
        scaled_time(_us(one.service_mean_us, one.service, name)), one.service_verdict
    )


def _response(name: str) -> Cell:
    return _title(name), lambda one: marked(
        scaled_time(_us(one.response_mean_us, one.response, name)), one.response_verdict
    )


def _title(name: str) -> str:
    return name.replace("_", ".")


def _us(mean_us: float | None, latency: Latency, name: str) -> float | None:
    """`name`: mean, or a field of Latency without its unit."""
    if name == "mean":
        return mean_us
    us: float | None = getattr(latency, f"{name}_us")
    return us


LAYOUTS: Final[dict[int, tuple[tuple[str, tuple[Cell, ...]], ...]]] = {  # by width: groups of columns
    NARROWEST: (("", (_IOPS,)), ("service", (_service("p99"),)), ("response", (_response("p99"),))),
    NARROW: (
        ("", (_IOPS, _HALF)),
        ("service", (_service("mean"), _service("p99"))),
        ("response", (_response("p99"),)),
    ),
    MIDDLE: (
        ("", (_IOPS, _HALF, _MIB)),
        ("service", tuple(map(_service, ("mean", "p99", "max")))),
        ("response", tuple(map(_response, ("mean", "p99")))),
    ),
    WIDE: (
        ("", (_IOPS, _HALF, _MIB)),
        ("service", tuple(map(_service, ("mean", "p50", "p99", "p99_9", "max")))),
        ("response", tuple(map(_response, ("mean", "p99", "p99_9", "max")))),
    ),
}


def steps_table(steps: Sequence[StepEnds], width: int, explained: bool = True) -> list[str]:
    """The table; then, where it is `explained`, what is to be said of each measurement. A remedy is printed once."""
    measured = [(step.number, one) for step in steps for one in step.measured]
    groups = LAYOUTS[max((least for least in LAYOUTS if least <= width), default=NARROWEST)]
    figures = sum(2 + (_WIDTH + 1) * len(cells) for _, cells in groups) + len("verdict")
    longest = max((len(f"{number} {one.name}") for number, one in measured), default=0)
    name = max(LEAST_NAME, min(longest, WIDEST_NAME, width - figures))
    titles = [f"{title:{(_WIDTH + 1) * len(cells) - 1}}" for title, cells in groups]
    lines = [f"{'':{name}} {'':7} {' | '.join(titles)}".rstrip(" |")]
    lines.append(_row(name, "step", "verdict", groups, lambda cell: cell[0]))
    for number, one in measured:
        lines.append(_row(name, f"{number} {one.name}", one.verdict, groups, lambda cell, one=one: cell[1](one)))  # type: ignore[misc]
        lines += [f"{'':{name}} of {one.missing}"] if one.missing else []
    known: set[Reason] = set()
    for number, one in measured if explained else ():
        if one.findings:
            lines += [f"  {line}" for line in _measurement_lines(number, one, known)]
    return lines


def _row(
    width: int, name: str, verdict: str, groups: tuple[tuple[str, tuple[Cell, ...]], ...], text: Callable[[Cell], str]
) -> str:
    figures = [" ".join(f"{text(cell):>{_WIDTH}}" for cell in cells) for _, cells in groups]
    return f"{shortened(name, width):{width}} {verdict:7} {' | '.join(figures)}".rstrip()


def verdict_lines(report: StepEnds) -> list[str]:
    """The step's verdict with its cause and reasons; those of several measurements each below it."""
    known: set[Reason] = set()
    if len(report.measured) == 1:
        return _measurement_lines(report.number, report.measured[0], known)
    each = [line for one in report.measured for line in _measurement_lines(report.number, one, known)]
    head = f"step {report.number} {report.name}: {report.verdict}, {len(report.measured)} measurements"
    return [head, *(f"  {line}" for line in each)]


def _measurement_lines(number: int, measured: MeasurementRow, known: set[Reason]) -> list[str]:
    """Verdict and cause, then the reasons that weigh most; the remedy of those that are not `known`, which they are
    then. A remedy of several stands once."""
    lines = [f"step {number} {measured.name}: {measured.verdict}{': ' + measured.cause if measured.cause else ''}"]
    reasons = measured.findings
    remedies: set[str] = set()
    for finding in reasons[:MOST_REASONS]:
        lines.append(f"  {finding}")
        remedy = remedy_of(finding, reasons)
        if finding.reason not in known and remedy not in remedies:
            lines.append(f"    {remedy}")
        known.add(finding.reason)
        remedies.add(remedy)
    if len(reasons) > MOST_REASONS:
        lines.append(f"  and {len(reasons) - MOST_REASONS} more: see summary.all.csv")
    return lines
