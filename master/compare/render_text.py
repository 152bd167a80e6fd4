"""A comparison as text of 80 columns, and as Markdown."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from ..exit_codes import ExitCode
from ..results.finished_run import FinishedRun
from ..rollup.figures import OVERALL
from ..rollup.metrics import SHORT_NAMES, Metric, unit_word
from ..summary.headline import figure_text, marked
from ..text.metric_amounts import MetricUnit
from ..text.wrapping import shortened, wrapped
from ..verdicts import Verdict
from .compare import Comparison
from .connector_metrics import ConnectorCompared
from .outcomes import ALPHA, Basis, Compared, Judged, Outcome, exit_code

WIDTH: Final = 80
MOST_LISTED: Final = 5  # runs of a side; of more, the first and the last
MOST_DIFFERENCES: Final = 30  # lines; JSON and HTML have all
SAME: Final = "A and B have the same plan, hosts, LUNs and settings."
CONNECTORS: Final = "What connectors said; no direction is better, and the exit code does not depend on it."
_NAME: Final = 19
_TITLES: Final = ("A", "B", "change", "95 % interval", "outcome")
_SHORT: Final = {full: short for short, full in reversed([*SHORT_NAMES.items()])}  # the first: service_p99, not p99


def short_name(metric: Metric) -> str:
    """As `--metric` takes it."""
    return _SHORT.get(metric.name, metric.name).removeprefix(f"{OVERALL}_")


def percent(change: float | None) -> str:
    """A change in %, with three digits below 100."""
    if change is None:
        return "-"
    size = abs(100 * change)
    return f"{100 * change:+.{2 if size < 9.995 else 1 if size < 99.95 else 0}f}%"


def interval(row: Judged) -> str:
    return "-" if row.interval is None else " ".join(map(percent, row.interval))


def conclusion(comparison: Comparison) -> str:
    """State in a sentence or two what the exit code says."""
    rows = [row for row in comparison.rows if not row.is_of_other_load]
    if not comparison.other_loads:
        return _of_same_load(comparison, rows)
    differ = f"Not the same load: {', '.join(comparison.other_loads)}."
    if comparison.exit_code == ExitCode.SLO_MISSED:
        return f"{_of_same_load(comparison, rows)} {differ}"
    return f"{differ} Of the other steps: {_of_same_load(comparison, rows)}" if rows else differ


def _of_same_load(comparison: Comparison, rows: Sequence[Judged]) -> str:
    """Of these rows."""
    limit = f"{100 * comparison.limit:g} %"
    match exit_code(rows, comparison.basis):
        case ExitCode.OK:
            return f"No regression: no figure is worse by more than {limit}."
        case ExitCode.SLO_MISSED:
            worse = _named([row for row in rows if row.is_regression])
            return f"Regression: worse by more than {limit}: {worse}."
    if comparison.basis is not Basis.RUNS:
        return f"Cannot tell whether there is a regression beyond {limit}: three runs or more a side decide."
    unknown = [row for row in rows if not row.is_no_regression]
    if not unknown:
        return f"Cannot tell whether there is a regression beyond {limit}: nothing could be compared."
    if all(row.outcome is Outcome.NOT_COMPARED for row in unknown):
        return f"Cannot tell whether there is a regression beyond {limit}: not compared: {_named(unknown)}."
    return f"Cannot tell whether there is a regression beyond {limit}: more or longer runs would: {_named(unknown)}."


def _named(rows: Sequence[Judged]) -> str:
    names = [f"{row.compared.key}: {short_name(row.compared.metric)}" for row in rows]
    more = len(names) - 3
    return ", ".join(names[:3]) + (f" and {more} more" if more > 0 else "")


def method(comparison: Comparison) -> str:
    """State what the intervals and outcomes follow from; "" where nothing was compared."""
    compared = sum(row.p is not None for row in comparison.rows)
    if not compared:
        return ""
    correction = (
        f"The outcomes are corrected for {compared} comparisons (Holm: one false alarm or more in at most "
        f"{100 * ALPHA:g} % of such tables); the intervals are not. "
    )
    return (
        f"The intervals follow from {comparison.basis.value}. {correction if compared > 1 else ''}"
        f"Equivalent: the change is within {100 * comparison.limit:g} %."
    )


def text_of(comparison: Comparison) -> str:
    """For a terminal: lines of at most 80 columns, but for paths and other long words."""
    return "\n".join(piece for line in _lines(comparison) for piece in wrapped(line, WIDTH))


def _lines(comparison: Comparison) -> Iterator[str]:
    for letter, runs in (("A", comparison.a), ("B", comparison.b)):
        yield f"{letter}: {counted_runs(runs)}{listed_runs(runs)}"
    yield from _what_differs(comparison)
    for note in comparison.notes:
        yield f"note: {note}"
    for key, rows in groupby(comparison.rows, lambda row: row.compared.key):
        yield ""
        yield from row_lines((str(key), *_TITLES))
        whys: dict[str, list[str]] = {}
        for row in rows:
            yield from row_lines(cells(row))
            if row.compared.why:
                whys.setdefault(row.compared.why, []).append(short_name(row.compared.metric))
        for why, names in whys.items():
            yield f"  {', '.join(names)}: {why}"
    yield from named_runs(comparison)
    yield from _connectors(comparison.connectors)
    yield ""
    yield from filter(None, [method(comparison)])
    yield conclusion(comparison)


def _connectors(rows: Sequence[ConnectorCompared]) -> Iterator[str]:
    if rows:
        yield from ("", CONNECTORS)
    for key, some in groupby(rows, lambda row: row.key):
        yield ""
        yield from row_lines((str(key), *_TITLES))
        for row in some:
            name, *figures = connector_cells(row)
            yield from row_lines((f" {name}", *figures))
            yield from (f"    {note}" for note in row.notes)


def connector_cells(row: ConnectorCompared) -> tuple[str, ...]:
    """Of a row of the table."""
    a, b = ("-" if value is None else f"{value:.4g}" for value in (row.a, row.b))
    between = "-" if row.interval is None else " ".join(map(percent, row.interval))
    return connector_name(row), a, b, percent(row.relative), between, row.outcome


def connector_name(row: ConnectorCompared) -> str:
    return f"{row.metric} ({row.unit})" if row.unit else row.metric


def cells(row: Judged) -> tuple[str, ...]:
    """Of a row of the table."""
    compared = row.compared
    sides = (_side(compared, side) for side in "AB")
    return (
        f" {shortened(short_name(compared.metric), _NAME - 1)}", *sides,
        percent(compared.relative), interval(row), row.outcome,
    )  # fmt: skip


def _side(compared: Compared, side: str) -> str:
    """Its figure; in brackets where no run counts, since it is invalid."""
    invalid = compared.invalid(side)
    if invalid is not None:
        return marked(figure_text(compared.metric.name, invalid), Verdict.INVALID)
    return figure_text(compared.metric.name, compared.a if side == "A" else compared.b)


def figures_text(row: Judged) -> str:
    """In a line: both sides with their unit, the change, its interval and the outcome."""
    _, a, b, change, between, outcome = cells(row)
    metric = row.compared.metric
    unit = "" if metric.unit is MetricUnit.US else unit_word(metric.name)  # times have theirs
    return f"{a} -> {b}{unit and f' {unit}'}, {change}, 95 % interval {between}, {outcome}"


def row_lines(texts: Sequence[str]) -> Iterator[str]:
    """A line; a long name has one of its own. What brackets take beyond their column, the change gives."""
    name, a, b, change, between, outcome = texts
    if len(name) > _NAME:
        yield name
        name = ""
    sides = f"{name:{_NAME}} {a:>7} {b:>7}"
    yield f"{sides}{change:>{_NAME + 24 - len(sides)}} {between:>16} {outcome}"


def listed_runs(runs: Sequence[FinishedRun]) -> str:
    """After their number: all of a few, else the first and the last."""
    folders = [str(run.folder) for run in runs]
    if len(folders) > MOST_LISTED:
        return f": {folders[0]} to {folders[-1]}"
    return f": {' '.join(folders)}" if folders else ""


def named_runs(comparison: Comparison) -> Iterator[str]:
    """The folders of the runs that some row leaves out by name, A7: of a side whose runs are not all listed."""
    left_out = {one.run for row in comparison.rows for one in row.compared.runs if one.left_out}
    for runs in (comparison.a, comparison.b):
        named = [run for run in runs if run.name in left_out]
        if len(runs) > MOST_LISTED >= len(named):
            yield from (f"{run.name}: {run.folder}" for run in named)


def counted_runs(runs: Sequence[FinishedRun]) -> str:
    return f"{len(runs)} run{'s' if len(runs) != 1 else ''}"


def _what_differs(comparison: Comparison) -> Iterator[str]:
    lines = lines_of_differences(comparison)
    if not lines:
        yield SAME
        return
    yield "What differs between A and B:"
    for line in lines[:MOST_DIFFERENCES]:
        yield f"  {line}"
    if len(lines) > MOST_DIFFERENCES:
        yield f"  and {len(lines) - MOST_DIFFERENCES} more: see --json or --html"


def markdown_of(comparison: Comparison) -> str:
    """For a ticket."""
    lines = [f"**{_plain(conclusion(comparison))}**", ""]
    for letter, runs in (("A", comparison.a), ("B", comparison.b)):
        lines.append(f"- {letter}: {counted_runs(runs)}{_literal_runs(runs)}")
    lines += [f"- {_literal(line)}" for line in named_runs(comparison)]
    lines += [f"- note: {_literal(note)}" for note in comparison.notes]
    differ = lines_of_differences(comparison)
    lines += ["", "What differs between A and B:", ""] if differ else ["", SAME]
    lines += [f"- {_literal(line)}" for line in differ]
    lines += ["", "| step | metric | A | B | change | 95 % interval | p (Holm) | outcome |"]
    lines += ["|---|---|--:|--:|--:|--:|--:|---|", *map(_markdown_row, comparison.rows)]
    if comparison.connectors:
        lines += ["", CONNECTORS, "", "| step | metric | A | B | change | 95 % interval | p (Holm) | outcome |"]
        lines += ["|---|---|--:|--:|--:|--:|--:|---|", *map(_markdown_connector, comparison.connectors)]
    words = method(comparison)
    return "\n".join([*lines, *(["", words] if words else [])])


def _literal_runs(runs: Sequence[FinishedRun]) -> str:
    folders = [_literal(str(run.folder)) for run in runs]
    if len(folders) > MOST_LISTED:
        return f": {folders[0]} to {folders[-1]}"
    return f": {', '.join(folders)}" if folders else ""


def _markdown_row(row: Judged) -> str:
    _, a, b, change, between, outcome = cells(row)
    why = f" ({_literal(row.compared.why)})" if row.compared.why else ""
    name = short_name(row.compared.metric)
    texts = (_literal(str(row.compared.key)), name, a, b, change, between, p_text(row), f"{outcome}{why}")
    return f"| {' | '.join(texts)} |"


def _markdown_connector(row: ConnectorCompared) -> str:
    _, a, b, change, between, outcome = connector_cells(row)
    why = f" ({_literal('; '.join(row.notes))})" if row.notes else ""
    name = _literal(connector_name(row))
    return f"| {' | '.join((_literal(str(row.key)), name, a, b, change, between, p_text(row), f'{outcome}{why}'))} |"


def p_text(row: Judged | ConnectorCompared) -> str:
    return "-" if row.p is None else f"{row.p:.2g}"


def lines_of_differences(comparison: Comparison) -> list[str]:
    """All of them, the plan's first."""
    return [*(f"plan: {line}" for line in comparison.plan_lines), *map(str, comparison.differences)]


def _plain(text: str) -> str:
    """As Markdown within bold."""
    return text.replace("\\", "\\\\").replace("*", "\\*").replace("_", "\\_").replace("`", "\\`").replace("<", "&lt;")


def _literal(text: str) -> str:
    """As Markdown that shows just this, also within a table."""
    quoted = text.replace("|", "\\|").replace("`", "'").replace("\n", " ")
    return f"`{quoted}`"
