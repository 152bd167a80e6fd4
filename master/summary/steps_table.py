"""The table at the end of a run: a line for each measurement; below it, of those that need it, in at most three lines,
the verdict and its cause, which figures can be used, and one remedy.

Rule: a figure that its verdict discredits stands in brackets, [1.2 k], and one that is of a part of what was planned in
parentheses, (1.2 k); a line below the row says where hosts are missing. The width chooses the columns, as for
subintervals.
"""

import shlex
from collections.abc import Sequence
from typing import Final

from ..causes import DISCREDITED, is_explained, remedy_of
from ..exit_codes import ExitCode
from ..text.scaled import WIDEST
from ..text.table import ColumnGroup, TextColumn, header_lines, row_line
from ..text.wrapping import shortened
from ..verdicts import Finding, Reason, Scope, Severity, Verdict
from .headline import IOPS, OF_FLUSHES, OF_MEASUREMENT, SLIM, fitting, full_title, grouped, scope_of, title_of
from .measured import MeasurementRow, StepEnds
from .rounds_table import last_rounds, rounds_lines, rounds_tables, without_rounds

LEAST_NAME: Final = 18
_VERDICTS_OF_CODES: Final = {ExitCode.PARTIAL: Verdict.PARTIAL, ExitCode.INVALID: Verdict.INVALID}
WIDEST_NAME: Final = 48  # half of it holds the load of a level
_VERDICT: Final = TextColumn("verdict", -7)
_WIDTH: Final = WIDEST + 2  # of a figure, in brackets
_GOALS: Final = (
    Reason.ACCURACY_NOT_REACHED, Reason.STEADY_NOT_REACHED, Reason.ROUNDS_NOT_STEADY, Reason.STEADY_LOST,
    Reason.TARGET_NOT_HELD,
)  # fmt: skip


def steps_table(
    steps: Sequence[StepEnds], width: int, folder: str = "", explained: bool = True, each_round: bool = False
) -> list[str]:
    """The table; of steps in rounds the means of the last ones, or `each_round`; then, where it is `explained`, the
    measurements that are not all valid, and how to have all reasons of the run in `folder`. A remedy is printed once.
    """
    rounds = [] if each_round or not explained else last_rounds(steps)
    once = without_rounds(steps) if rounds else steps
    measured = [(step.number, row) for step in once for row in step.measured]
    lines = _measured_lines(measured, width) if measured else []
    for table in rounds_tables(steps) if rounds else ():
        lines += [*([""] if lines else []), *rounds_lines(table, width)]
    of_rounds = [(step.number, row) for step in rounds for row in step.measured if row.verdict is not Verdict.VALID]
    return lines + (_explanation([*measured, *of_rounds], folder) if explained else [])


def _measured_lines(measured: Sequence[tuple[int, MeasurementRow]], width: int) -> list[str]:
    metrics = fitting(OF_MEASUREMENT, width)
    longest = max(len(f"{number} {row.name}") for number, row in measured)
    groups = _groups(metrics, longest, width)
    name = abs(groups[0].columns[0].width)
    lines = header_lines(groups)
    for number, row in measured:
        cells = [row.shown(metric) for metric in metrics]
        lines.append(row_line(groups, [shortened(f"{number} {row.name}", name), row.verdict, *cells]))
        lines += [f"{'':{name}} of {row.missing}"] if row.missing else []
    return lines


def _explanation(measured: Sequence[tuple[int, MeasurementRow]], folder: str) -> list[str]:
    known: set[str] = set()
    lines = []
    for number, row in measured:
        if words_of(row):
            lines += [_verdict_line(number, row), *(f"  {line}" for line in advice_lines(row, known))]
    if not all(is_told(row) for _, row in measured):
        lines += details_lines([finding for _, row in measured for finding in row.findings], folder)
    return ["", *lines] if lines else []


def _groups(metrics: Sequence[str], longest: int, width: int) -> list[ColumnGroup]:
    """The columns, the name's as wide as there is room for. `longest`: of the names."""
    first, *others = (
        ColumnGroup(title, tuple(TextColumn(title_of(metric), _WIDTH) for metric in some))
        for title, some in grouped(metrics)
    )
    figures = sum(3 + group.width for group in others) + 2 + first.width + len(_VERDICT.title)
    name = max(LEAST_NAME, min(longest, WIDEST_NAME, width - figures))
    return [ColumnGroup("", (TextColumn("step", -name), _VERDICT, *first.columns)), *others]


def run_sentence(steps: Sequence[StepEnds], is_whole: bool) -> str:
    """How many of the steps are valid, and why the others are not: "1 of 3 steps is valid. half, mixed: others use the
    CPU." "" where no step has ended. `is_whole`: the run came to its own end."""
    ended = "" if is_whole else " that ended"
    why: dict[str, list[StepEnds]] = {}
    for step in steps:
        if words := _whys(step)[0] or (str(step.verdict) if step.verdict is not Verdict.VALID else ""):
            why.setdefault(words, []).append(step)
    valid = sum(step.verdict is Verdict.VALID for step in steps)
    if not steps:
        return ""
    if valid == len(steps):
        head = f"The step{ended} is valid." if valid == 1 else f"All steps{ended} are valid."
    else:
        head = f"{valid or 'None'} of {len(steps)} steps{ended} {'is' if valid == 1 else 'are'} valid."
    each = [f"{_listed([one.name for one in some])}: {words}{_and_more(some)}." for words, some in why.items()]
    return " ".join([head, *each] if valid or steps[1:] else each)


def ending_of(code: ExitCode, steps: Sequence[StepEnds], interrupted_by: str = "") -> str:
    """The last sentence of a run that exits with this code: which steps it is about, where it is about some.

    `interrupted_by`: a signal or command, where it is known."""
    if code is ExitCode.OK and any(row.cause.startswith(DISCREDITED) for step in steps for row in step.measured):
        return f"{code.sentence.rstrip('.')}; do not use the figures in brackets."
    if code is ExitCode.INTERRUPTED:
        head, _, rest = code.sentence.partition("; ")
        is_measured = any(row.figures for step in steps for row in step.measured)
        by = f"Interrupted by {interrupted_by}" if interrupted_by else head
        return f"{by}; {rest if is_measured else 'nothing was measured.'}"
    verdict = _VERDICTS_OF_CODES.get(code)
    concerned = [f"{step.number} {step.name}" for step in steps if step.verdict is verdict]
    if verdict is None or not concerned:
        return code.sentence
    head, be = ("Step", "is") if len(concerned) == 1 else ("Steps", "are")
    return f"{head} {_listed(concerned)} {be} {code.sentence.partition(' is ')[2]}"


def _whys(step: StepEnds) -> list[str]:
    """The deciding reason, without its figures, and the others."""
    return _phrases(step.standing, detailed=False) or [""]


def _and_more(steps: Sequence[StepEnds]) -> str:
    """How many reasons there are beside the first: " and 2 more reasons"; of several steps the most."""
    counts = {len(_whys(step)) - 1 for step in steps}
    most = max(counts)
    return f" and {'up to ' * (len(counts) > 1)}{most} more reason{'s' * (most > 1)}" if most else ""


def _listed(names: Sequence[str]) -> str:
    """At most three, so that a sentence stays one."""
    return ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:2])} and {len(names) - 2} more"


def verdict_lines(report: StepEnds) -> list[str]:
    """The step's verdict, its headline and its cause; those of several measurements each below it."""
    each = [_verdict_line(report.number, row, _headline(row)) for row in report.measured]
    if len(each) == 1:
        return each
    head = f"step {report.number} {report.name}: {report.verdict}, {len(each)} measurements"
    return [head, *(f"  {line}" for line in each)]


def _verdict_line(number: int, measured: MeasurementRow, headline: str = "") -> str:
    """Its verdict, what a search found, and why."""
    said = with_joint(words_of(measured))
    return f"step {number} {measured.name}: {measured.verdict}{headline}{said}{', '.join(['', *in_memory(measured)])}"


def in_memory(measured: MeasurementRow) -> list[str]:
    """Say what the page cache did for a measurement: whoever sees its figures has to know."""
    return [one.detail for one in measured.findings if one.reason is Reason.PAGE_CACHE]


def with_joint(words: str) -> str:
    """Join it to the verdict that it explains: ": why" or ", but do not use the response times: why"."""
    if not words:
        return ""
    return f", but {words}" if words.startswith(DISCREDITED) else f": {words}"


def _headline(measured: MeasurementRow) -> str:
    """The most important figures, as far as they are known, with their marks."""
    shown = [(metric, measured.shown(metric)) for metric in OF_MEASUREMENT[SLIM] if metric in measured.figures]
    words = [f", {text} IOPS" if metric == IOPS else f", {full_title(metric)} {text}" for metric, text in shown]
    if measured.figures.get(OF_FLUSHES[0]):
        rate, mean = map(measured.shown, OF_FLUSHES)
        words.append(f", {rate} flushes/s of {mean}")
    return "".join(words)


def advice_lines(measured: MeasurementRow, known: set[str]) -> list[str]:
    """At most two lines below a verdict: which figures can be used where not all can; and what to do, unless that
    remedy is `known`, which it is then."""
    lines = []
    if measured.cause.startswith(DISCREDITED) and why_of(measured) != measured.cause:
        lines.append(measured.cause)
    elif measured.verdict is Verdict.INVALID and measured.figures:
        known_scopes = {scope_of(metric) for metric in measured.figures}
        valid = [scope for scope in Scope if scope in known_scopes and measured.verdict_of(scope) is Verdict.VALID]
        usable = " and ".join(scope.figures for scope in valid)
        lines += [f"its {usable} can be used"] if valid else []
    if measured.findings and measured.findings[0].severity is not Severity.NOTE:
        lines += _unknown(remedy_of(measured.findings[0], measured.findings), known)
    return lines


def _unknown(remedy: str, known: set[str]) -> list[str]:
    """The remedy, the first time."""
    if remedy in known:
        return []
    known.add(remedy)
    return [remedy]


def reason_lines(*steps: StepEnds) -> list[str]:
    """All reasons of the measurements of these steps. Notes that all of them have, mostly facts of the set-up, come
    first. A remedy is printed once."""
    known: set[str] = set()
    measured = [(step.number, row) for step in steps for row in step.measured]
    shared = _notes_of_all([row for _, row in measured]) if len(measured) > 1 else []
    lines = ["all measurements", *_finding_lines(shared, shared, known)] if shared else []
    for number, row in measured:
        own = [finding for finding in row.findings if finding not in shared]
        lines += [_verdict_line(number, row), *_finding_lines(own, row.findings, known)]
    return lines


def _notes_of_all(rows: Sequence[MeasurementRow]) -> list[Finding]:
    notes = [finding for finding in rows[0].findings if finding.severity is Severity.NOTE]
    return [note for note in notes if all(note in row.findings for row in rows)]


def _finding_lines(findings: Sequence[Finding], of_row: Sequence[Finding], known: set[str]) -> list[str]:
    lines = []
    for finding in findings:
        lines.append(f"  {finding}")
        lines += [f"    {remedy}" for remedy in _unknown(remedy_of(finding, of_row), known)]
    return lines


def details_lines(findings: Sequence[Finding], folder: str) -> list[str]:
    """How many reasons and notes there are, one of several measurements once, and what prints them."""
    if not findings:
        return []
    notes = {finding.reason for finding in findings if finding.severity is Severity.NOTE}
    weighty = {finding.reason for finding in findings if finding.severity is not Severity.NOTE}
    counts = ((len(weighty), "reason"), (len(notes), "note"))
    counted = " and ".join(f"{count} {word}{'s' * (count > 1)}" for count, word in counts if count)
    return [f"{counted}:", f"  ivypy show --reasons{f' {shlex.quote(folder)}' if folder else ''}"]


def is_told(measured: MeasurementRow) -> bool:
    """Whether its words have all of its reasons whole, so that nothing more can be shown: one, with its figures, or
    none."""
    others = [finding for finding in measured.findings if finding.reason is not Reason.SEARCH_FOUND]
    return why_of(measured) == "; ".join(map(_whole, others))


def _whole(finding: Finding) -> str:
    """A reason in plain words, with its figures."""
    return f"{finding.reason.short}{f' ({finding.detail})' if finding.detail else ''}"


def words_of(measured: MeasurementRow) -> str:
    """The load that a search found, and why the verdict is not valid; "" where there is neither."""
    found = [finding.detail for finding in measured.findings if finding.reason is Reason.SEARCH_FOUND]
    return "; ".join(filter(None, [*found, why_of(measured)]))


def why_of(measured: MeasurementRow, detailed: bool = True) -> str:
    """The cause of the verdict where it explains the reason that weighs most, else that reason, in plain words; then
    what else has a remedy of its own. "" where there are only notes. `detailed`: with the reason's figures.

    Only of a valid measurement it is why some of its figures are discredited.
    """
    first, *others = _phrases(measured, detailed) or [""]
    return f"{first}; also {', '.join(others)}" if others else first


def _phrases(measured: MeasurementRow, detailed: bool) -> list[str]:
    weighty = [finding for finding in measured.findings if finding.severity is not Severity.NOTE]
    about_others = measured.cause.startswith(DISCREDITED)
    if not weighty or (about_others and measured.verdict is Verdict.VALID):
        return [measured.cause] if measured.cause else []
    worst = weighty[0]
    words = _whole(worst) if detailed else worst.reason.short
    cause = "" if about_others else measured.cause
    phrases = [cause] if cause and is_explained(worst, measured.findings) else [words, *filter(None, [cause])]
    if phrases == [cause] and worst.reason in _GOALS:
        phrases = [f"{words}, most likely because {cause}"]
    known = {remedy_of(worst, measured.findings)}
    others = [_brief(one) for one in weighty[1:] if _unknown(remedy_of(one, measured.findings), known)]
    return phrases + [short for short in others if not any(one.startswith(short) for one in phrases)]


def _brief(finding: Finding) -> str:
    """A reason beside a worse one; of a threshold with what the figure was, since the user asked for it."""
    if finding.reason is not Reason.SLO_MISSED:
        return finding.reason.short
    return f"{finding.reason.short} ({finding.detail.partition(', ')[0]})"
