"""docs/columns.md, internals/columns.md, verdicts.md and exit-codes.md, printed from the program's own tables.

scripts/docs writes them; a test compares them.
"""

from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from typing import Final

from ...protocol.parameters import PARAMETERS
from ..exit_codes import NOT_REACHED, OF_COMMANDS, ORDER, ExitCode
from ..rollup.figures import CATEGORIES, FLUSH, RELEASES
from ..rollup.metrics import HOSTS, LATENESS, LOAD, METRICS, Metric
from ..rollup.thread_stats import BUSY_PERCENT
from ..stats.confidence import FEWEST_STATED
from ..stats.percentiles import FEWEST_BEYOND
from ..text.suggestions import OLD_NAMES
from ..verdicts import ALL, STEP, Reason, Severity, Verdict
from .column import Column, Group
from .columns import FILES, METRIC_COLUMNS, OF_THE_MACHINERY, OTHER_FILES, metric_columns

_GENERATED: Final = "<!-- Printed by scripts/docs from the program's own tables: do not edit. -->"

_COLUMNS_START: Final = f"""\
A name says category, quantity, unit and statistic: `read_service_us_p99`. No file scales its numbers. A blank cell: the
number does not exist.

- **Percentiles** come from merged histograms, are within 1/128 of the sample, and blank where fewer than
  {FEWEST_BEYOND} samples lie above (insufficient samples).
- **Response times** are blank where a workload instance is not paced, and in the summary where the load was not
  sustained.
- **Categories** (`write`, `random_read` ...) have columns once they saw an I/O. `ivypy query`, `ivypy export` and
  `ivypy.load` have all.
- **Rates** are sums over hosts, each by the real length of its own subinterval.
- **Half-widths** allow for subintervals that depend on each other; blank below {FEWEST_STATED} subintervals.
- **Parameters** that differ between instances read `value(k/n)`: k of n have it. A range reads `first-end` or `all`.
- **Elements** are what connectors report about: ports, pools, processors of an array, disks.
- **Digits**: counts are exact; min, max and percentiles have nine digits, all else seven.
- **File names**: bytes outside [A-Za-z0-9._=+-] become %XX; long names end in a hash. `index.csv` maps them.
"""

_OLD_START: Final = """\
## Renamed since 0.1.0

`ivypy steady` and `ivypy percentiles` read those folders, too; `ivypy steady --metric` takes either name.
"""

_VERDICTS_START: Final = """\
A row of a summary has four verdicts: `rate_verdict`, `service_verdict` and `response_verdict` of its figures, and
`verdict` of what the step was for: the metrics that its measure, steady, slo, find or pid looks at, else rates and
service times. Figures in brackets, `[1,234]`, are invalid: do not use them. In parentheses, `(1,234)`, they are
partial. A step at `50% of step X` needs only a valid rate of X. Step by step: [my run is invalid](invalid.md).

"""

_REASONS_START: Final = f"""\
## Reasons

The column `reasons` has them with severity and detail, joined with `; `: `generator_late[note] (12% of the mean)`.
`ivypy show --reasons` prints all, the console only the most important. Below, the remedy is in italics, and in
parentheses:

- **severity**: a `note` changes no verdict. `partial`, `failed` and `invalid` become the verdict; the worst counts.
- **scope**: the figures concerned: rate (IOPS, MiB/s), service times, response times or all. `step`: only `verdict`.

Lateness and reap delay are compared mean with mean and p99 with p99
([statistics](internals/statistics.md#lateness-and-reap-delay)). A core is busy from {BUSY_PERCENT:g} % on.
"""


LONG_REMEDY: Final = 80  # characters

_CODES_OF_STEPS: Final = """\
## Of a run

A step's [verdict](verdicts.md) gives its code:

- `invalid`: {invalid}; or {target}, where only a target was not reached ({targets}); or {slo} for a threshold that was
  missed by a figure that is valid all the same.
  A threshold whose figure is not to be used is {invalid}, never {slo}: so it is where the load was not sustained, or
  where CPU time that others took (`cpu_contention`), or a missing host, may explain the miss.
- `failed`: {slo} for a missed threshold, {target} for an unresolved search.
- `partial`: {partial}. `valid`: 0.

Of several steps, the first of these counts: {order}. An interrupted run exits with {interrupted}.
"""


def pages() -> dict[str, str]:
    """File name in docs/: text."""
    return {
        "columns.md": columns_page(),
        "internals/columns.md": diagnosis_page(),
        "verdicts.md": verdicts_page(),
        "exit-codes.md": exit_codes_page(),
    }


def columns_page() -> str:
    """Every file that users read, every column, every metric."""
    files = _files(file for file in FILES if file not in OF_THE_MACHINERY)
    diagnostics = (
        f"[Columns for diagnosis](internals/columns.md): {', '.join(f'`{file}`' for file in OF_THE_MACHINERY)}; and "
        "names before 0.2.\n"
    )
    others = "## Other files\n\n" + "".join(f"- `{one}`: {content}\n" for one, content in OTHER_FILES.items())
    return _page(
        "Columns",
        [_COLUMNS_START, *files, others, diagnostics, "## Metrics\n\n" + _metrics()],
    )


def diagnosis_page() -> str:
    """The files that show how ivypy itself worked and decided."""
    start = (
        "How threads, clocks and the controller worked, and how control decided; the rest: [columns](../columns.md).\n"
    )
    return _page("Columns for diagnosis", [start, *_files(OF_THE_MACHINERY), _OLD_START, _old_names()])


def _files(names: Iterable[str]) -> list[str]:
    """A section for each file; those with the same columns have one."""
    same: dict[tuple[Group, ...], list[str]] = {}
    for file in names:
        same.setdefault(FILES[file], []).append(file)
    explained: set[Column] = set()
    return [
        f"## {', '.join(f'`{file}`' for file in files)}\n\n" + _file(groups, explained)
        for groups, files in same.items()
    ]


def verdicts_page() -> str:
    """Verdicts, and every reason with its severities and scope."""
    verdicts = "".join(f"- `{verdict}`: {verdict.sentence}\n" for verdict in Verdict)
    by_severity = sorted(Reason, key=lambda reason: -max(map([*Severity].index, reason.severities)))
    first = {reason.remedy: reason for reason in reversed(by_severity)}
    reasons = "".join(_reason(reason, first[reason.remedy]) for reason in by_severity)
    return _page("Verdicts", [_VERDICTS_START + verdicts, _REASONS_START, reasons])


def _reason(reason: Reason, first: Reason) -> str:
    """A reason; a long remedy that `first` has, too, stands there."""
    scope = {ALL: "all", STEP: "step"}.get(reason.scope) or ", ".join(reason.scope)
    severities = ", ".join(reason.severities[::-1])
    remedy = reason.remedy.replace("log/<host>.log", "`log/<host>.log`")
    if reason is not first and len(remedy) > LONG_REMEDY:
        remedy = f"As for `{first.word}`."
    return f"- `{reason.word}` ({severities}; {scope}): {reason.sentence}\n  *{remedy}*\n"


def exit_codes_page() -> str:
    """Every exit code; which of several holds; and what they mean of other commands than `ivypy run`."""
    rows = ((str(code.value), code.name.lower(), code.sentence) for code in ExitCode)
    order = ", ".join(str(code.value) for code in ORDER if code is not ExitCode.OK)
    targets = ", ".join(f"`{reason.word}`" for reason in Reason if reason in NOT_REACHED)
    others = ((f"`{command}`", str(code.value), meaning) for command, code, meaning in OF_COMMANDS)
    return _page(
        "Exit codes",
        [
            _table(("code", "name", "meaning"), rows),
            _CODES_OF_STEPS.format(
                order=order,
                targets=targets,
                interrupted=ExitCode.INTERRUPTED.value,
                slo=ExitCode.SLO_MISSED.value,
                target=ExitCode.NOT_REACHED.value,
                partial=ExitCode.PARTIAL.value,
                invalid=ExitCode.INVALID.value,
            ),
            "## Of other commands\n",
            "".join(f"- {command} {code}: {meaning}\n" for command, code, meaning in others),
        ],
    )


def _file(groups: Sequence[Group], explained: set[Column]) -> str:
    """A file's columns in their order; metrics, parameters and what a file before explains by their names alone."""
    lines: list[str] = []
    for group in groups:
        if group is METRIC_COLUMNS:
            lines.append("- every [metric](#metrics)\n")
        elif isinstance(group, str):
            lines.append(f"- {group}\n")
        else:
            for after, columns in groupby(group, lambda column: _after_names(column, explained)):
                same = [*columns]
                if {column.name for column in same} == PARAMETERS.keys():
                    lines.append("- every key of a [workload](plan.md#workloads), but `select` and `once`\n")
                    continue
                lines += map(_line, same) if after is None else [f"- {_names(same)}{after}\n"]
            explained.update(group)
    return "".join(lines)


def _after_names(column: Column, explained: set[Column]) -> str | None:
    """Return what follows the name of a column that is explained elsewhere."""
    if column.name in METRICS or column.name in PARAMETERS:
        return ""
    return ": as above" if column in explained else None


def _line(column: Column) -> str:
    return f"- `{column.name}`{f' ({column.unit})' if column.unit else ''}: {column.meaning}\n"


def _names(columns: Iterable[Column]) -> str:
    return ", ".join(f"`{column.name}`" for column in columns)


def _old_names() -> str:
    return ", ".join(f"`{old}`: `{now}`" for old, now in OLD_NAMES.items()) + "\n"


def _metrics() -> str:
    first, *others = CATEGORIES
    of_first = [metric for metric in METRICS.values() if metric.category == first]
    return "\n".join(
        (
            _series((*LOAD, *HOSTS)),
            f"For `{first}`, and in the same way for {_listed({*others} - {*RELEASES, FLUSH}, others)}; of "
            f"{_listed((*RELEASES, FLUSH), others)} rates and service times:\n",
            _series(of_first),
            "For all paced I/O together:\n",
            _series(LATENESS),
            "`_sd`: standard deviation (n - 1). `_p99`: 99 % took at most this long. `_min` and `_max` are exact.\n",
        )
    )


def _listed(names: Collection[str], ordered: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in ordered if name in names)


def _series(metrics: Iterable[Metric]) -> str:
    """A line for each metric; the statistics of one time stand in one."""
    lines: list[str] = []
    for (category, _), several in groupby(metrics, lambda metric: metric.series):
        same = [*several]
        if category and len(same) > 1:
            meaning, _, _ = same[0].meaning.rpartition(": ")
            lines.append(f"- {_names(metric_columns(same))}: {meaning}\n")
        else:
            lines += map(_line, metric_columns(same))
    return "".join(lines)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in lines)


def _page(title: str, parts: Sequence[str]) -> str:
    return "\n".join((f"# {title}\n\n{_GENERATED}\n", *parts))
