"""docs/columns.md, docs/verdicts.md and docs/exit-codes.md, printed from the tables that the program runs on.

scripts/docs writes them; a test compares them.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from ..exit_codes import NOT_REACHED, OF_COMMANDS, ORDER, ExitCode
from ..rollup.figures import CATEGORIES
from ..rollup.generator_checks import LATENESS_INVALID, LATENESS_NOTE
from ..rollup.metrics import HOSTS, LATENESS, LOAD, METRICS
from ..rollup.thread_stats import BUSY_PERCENT
from ..stats.confidence import FEWEST_STATED
from ..stats.percentiles import FEWEST_BEYOND
from ..text.suggestions import OLD_NAMES
from ..verdicts import ALL, STEP, Reason, Severity, Verdict
from .column import Column, Group
from .columns import FILES, METRIC_COLUMNS, OTHER_FILES, metric_columns

_GENERATED: Final = "<!-- Printed by scripts/docs from the program's own tables: do not edit. -->"
_COLUMNS_HEAD: Final = ("column", "unit", "meaning")

_COLUMNS_START: Final = f"""\
Column names are lower_snake: category, what, unit, statistic. No file scales its numbers. A blank cell means that the
number does not exist: nothing was counted, or the figure would have no meaning.

- **Digits**: counts are exact. Times that are whole or half nanoseconds (min, max, percentiles) have nine significant
  digits, everything else seven.
- **Percentiles** come from the merged histogram and are never means of percentiles. The figure is the middle of the
  bucket that holds the sample of that rank. It is at most 1/128 away from the sample, and never outside min and max. It
  is blank where fewer than {FEWEST_BEYOND} samples lie above it (insufficient samples).
- **Response time** starts when the I/O fell due, so it includes the wait during a stall. It is blank where a workload
  instance of the row is not paced, and in the summary where the load was not sustained.
- **Categories**: the files of rollup instances have the columns of a category (`write`, `random_read` ...) once it saw
  an I/O, in all rows. What has no columns did nothing. The tables of `ivypy query`, `ivypy export` and `ivypy.load`
  have all columns.
- **Rates** are sums over hosts; each host's I/Os are divided by the real length of its own subinterval.
- **Half-widths** belong to the printed figure. They allow for subintervals that depend on each other (effective sample
  size), and are blank for fewer than {FEWEST_STATED} subintervals.
- **Parameters** that differ between workload instances read `value(k/n)`: k of the row's n instances have it. A range
  reads `first-end`, in bytes, or `all`.
- **File names**: bytes of instance names outside [A-Za-z0-9._=+-] become %XX, and long names end in a hash; index.csv
  maps names to files.
- **Slow disks**: a disk that is slow, or stalls for a while, delays these files and nothing else. If events or log
  lines are lost because of that, `events.csv` says so (`not_written`). Results are never left out: after 60 s without
  progress the run ends with an error.
"""

_OLD_START: Final = """\
## Renamed since 0.1.0

`ivypy steady` and `ivypy percentiles` read the run folders of 0.1.0, too; `ivypy steady --metric` takes either name.
"""

_VERDICTS_START: Final = """\
Every row of a summary has four verdicts: `rate_verdict`, `service_verdict` and `response_verdict` of its rates, service
times and response times, and `verdict` of what the step was for: the metrics that its measure, steady, slo, find or pid
looks at (and of a search also the rate, its result), else rates and service times. The console shows figures that are
discredited in brackets, `[1,234]`, and partial ones in parentheses, `(1,234)`, with the hosts below the row where some
are missing: `of 1 of 3 hosts`. A step that takes `50% of step X` needs only a valid rate of X.

"""

_REASONS_START: Final = """\
## Reasons

The column `reasons` lists each reason with its severity and what was seen, for example
`generator_late[note] (12% of the mean)`; several are joined with `; `.

- **severity**: `note` leaves a verdict as it is; `partial`, `failed` and `invalid` are the verdict of the figures in
  the reason's scope. The worst counts.
- **remedy**: what to do about it. The console shows the cause where one is found (a reason that explains others, like
  other processes on the host's CPU), else the reason that weighs most, and one remedy; `ivypy show --reasons` all.
- **scope**: the figures that the reason discredits: `rate` (IOPS, MiB/s), `service` times, `response` times or all. A
  reason of scope `step` discredits none: only the column `verdict` has it.
"""


_CODES_OF_STEPS: Final = """\
## Of a run

Each step has a code, which follows from its verdict ([verdicts](verdicts.md)):

- `invalid`: {invalid}, or {target} where the only reasons are targets that were not reached
  ({targets}).
  A threshold whose figure is discredited or blank, or that stands beside a load that was not sustained, gives
  {invalid}, never {slo}. So does one that a load at
  max misses, where the CPU time that was taken from it may explain the miss (`cpu_contention`);
  and a rate that has to be higher, where it lacks the share of a host.
- `failed`: {slo} where a threshold is missed, or {target} where a search ended unresolved.
- `partial`: {partial}. `valid`: 0.

Of the codes of several steps, the first of these counts: {order}. An interrupted run always exits with {interrupted}.
"""


def pages() -> dict[str, str]:
    """File name in docs/: text."""
    return {"columns.md": columns_page(), "verdicts.md": verdicts_page(), "exit-codes.md": exit_codes_page()}


def columns_page() -> str:
    """Every file, every column, every metric."""
    files = [f"## {file}\n\n" + _file(groups) for file, groups in FILES.items()]
    rows = ((f"`{one}`", content) for one, content in OTHER_FILES.items())
    others = "## Other files\n\n" + _table(("file", "content"), rows)
    return _page("Columns", [_COLUMNS_START, *files, others, "## Metrics\n\n" + _metrics(), _OLD_START, _old_names()])


def verdicts_page() -> str:
    """Verdicts, and every reason with its severities and scope."""
    verdicts = _table(("verdict", "meaning"), ((f"`{verdict}`", verdict.sentence) for verdict in Verdict))
    by_severity = sorted(Reason, key=lambda reason: -max(map([*Severity].index, reason.severities)))
    return _page(
        "Verdicts",
        [
            _VERDICTS_START + verdicts,
            _REASONS_START,
            _table(("reason", "severity", "scope", "meaning", "remedy"), map(_reason, by_severity)),
            "## Limits\n",
            f"Lateness and reap delay are compared mean with mean and p99 with p99: a note above {LATENESS_NOTE:.0%}\n"
            f"of the response or service time, `invalid` above {LATENESS_INVALID:.0%}. A core counts as busy from\n"
            f"{BUSY_PERCENT:g} % on.\n",
        ],
    )


def _reason(reason: Reason) -> tuple[str, ...]:
    scope = {ALL: "all", STEP: "step"}.get(reason.scope) or ", ".join(reason.scope)
    return f"`{reason.word}`", ", ".join(reason.severities[::-1]), scope, reason.sentence, reason.remedy


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
            _table(("command", "code", "meaning"), others),
        ],
    )


def _file(groups: Sequence[Group]) -> str:
    """A file's columns in their order. Columns that depend on plan and hosts are described in words."""
    parts: list[str] = []
    columns: list[Column] = []
    for group in groups:
        if group is not METRIC_COLUMNS and not isinstance(group, str):
            columns.extend(group)
            continue
        parts += [_table(_COLUMNS_HEAD, map(_cells, columns))] if columns else []
        columns = []
        words = group if isinstance(group, str) else "every metric, in the order of [Metrics](#metrics)"
        parts.append(f"Then {words}.\n")
    return "\n".join([*parts, *([_table(_COLUMNS_HEAD, map(_cells, columns))] if columns else [])])


def _old_names() -> str:
    return _table(("0.1.0", "now"), ((f"`{old}`", f"`{now}`") for old, now in OLD_NAMES.items()))


def _metrics() -> str:
    first, *others = CATEGORIES
    of_first = [metric for metric in METRICS.values() if metric.category == first]
    return "\n".join(
        (
            _table(_COLUMNS_HEAD, map(_cells, metric_columns((*LOAD, *HOSTS)))),
            f"Then, for `{first}` and in the same way for {', '.join(f'`{other}`' for other in others)}:\n",
            _table(_COLUMNS_HEAD, map(_cells, metric_columns(of_first))),
            "At the end, for all paced I/O together:\n",
            _table(_COLUMNS_HEAD, map(_cells, metric_columns(LATENESS))),
        )
    )


def _cells(column: Column) -> tuple[str, ...]:
    return f"`{column.name}`", column.unit, column.meaning


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in lines)


def _page(title: str, parts: Sequence[str]) -> str:
    return "\n".join((f"# {title}\n\n{_GENERATED}\n", *parts))
