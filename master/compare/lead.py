"""The first lines of a comparison for a reader who sees no more: what was tested, and which side is faster."""

from itertools import groupby
from math import log
from typing import Final

from ..results.checked_files import read_table
from ..results.finished_run import FinishedRun
from ..rollup.instances import ALL
from ..summary.driven import driven, load_parts
from .compare import Comparison
from .outcomes import Basis, Judged, Outcome
from .render_text import percent, short_name

_MOST_NAMED: Final = 3  # figures


def tested_lines(comparison: Comparison) -> list[str]:
    """The load and the LUNs, as the newest run's report has them; a line for each side where they differ."""
    lines = [" · ".join(_driven(side[-1])) if side else "" for side in (comparison.a, comparison.b)]
    if lines[0] == lines[1] or not all(lines):
        return [line for line in lines[1:] if line]
    return [f"{letter}: {line}" for letter, line in zip("AB", lines, strict=True)]


def which_is_faster(comparison: Comparison) -> str:
    """A sentence of the largest change of each step; "" where none is shown."""
    rows = [row for row in comparison.rows if row.outcome in (Outcome.BETTER, Outcome.WORSE)]
    largest = [max(some, key=_size) for _, some in groupby(rows, lambda row: row.compared.key)]
    named = sorted(largest, key=_size, reverse=True)[:_MOST_NAMED]
    if not named:
        return ""
    more = len(largest) - len(named)
    begin = "B is" if comparison.basis is Basis.RUNS else "Of these two runs B is"  # of which others may differ
    return f"{begin} {', '.join(map(_in_words, named))}{f' and {more} more' if more else ''}."


def _driven(run: FinishedRun) -> list[str]:
    loads = [load_parts(row.cells) for key, row in run.rows.items() if key.rollup_type == ALL]
    return driven(loads, run.luns, read_table(run.folder / "workloads.csv"))


def _size(row: Judged) -> float:
    change = row.compared.relative
    return abs(log(1 + change)) if change is not None and change > -1 else 0.0


def _in_words(row: Judged) -> str:
    """ "8.1 % slower at max (service_p99)" """
    size = percent(row.compared.relative).lstrip("+-").replace("%", " %")
    how = "slower" if row.outcome is Outcome.WORSE else "faster"
    return f"{size} {how} at {row.compared.key} ({short_name(row.compared.metric)})"
