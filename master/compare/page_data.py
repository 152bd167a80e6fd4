"""A comparison as the page shows it: what `--json` has, with ids of runs, titles, and a band for each figure.

Rule: `ivypy web` and `ivypy compare --html` have the same answer, under the same address.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ..report.archive import quoted
from ..results.finished_run import FinishedRun
from ..rollup.metrics import Quantity
from ..stats.comparison import range_of_next
from .compare import Comparison, comparable_names
from .lead import tested_lines, which_is_faster
from .outcomes import FEWEST_RUNS, Judged
from .render_data import data_of, row_data
from .render_text import short_name

OVERLAID: Final = 5, 3  # runs of each side that are drawn over each other, the last ones


def page_data(comparison: Comparison, ids: Mapping[Path, str]) -> dict[str, Any]:
    """`ids`: of the runs that the page can open, by their folders."""
    data = data_of(comparison)
    names = {run.folder: run.folder.name for run in (*comparison.a, *comparison.b)}
    for side in "ab":
        for entry in data[side]:
            folder = Path(entry["folder"])
            entry |= {"id": ids.get(folder), "run": names[folder], "parent": folder.resolve().parent.name}
    rows = [
        {**row_data(judged), **_shown(judged, len(comparison.a)), "is_added": is_added}
        for is_added, some in ((False, comparison.rows), (True, comparison.added))
        for judged in some
    ]
    overlaid = [run.name for run in overlaid_of(comparison)]
    lead = {"tested": tested_lines(comparison), "faster": which_is_faster(comparison)}
    return {**data, **lead, "rows": rows, "overlaid": overlaid, "metrics": comparable_names()}


def overlaid_of(comparison: Comparison) -> Sequence[FinishedRun]:
    """The runs that are drawn over each other: all of a few, else the last ones of each side."""
    most_a, most_b = OVERLAID
    if len(comparison.a) + len(comparison.b) <= most_a + most_b:
        return (*comparison.a, *comparison.b)
    return (*comparison.a[-most_a:], *comparison.b[-most_b:])


def _shown(judged: Judged, runs_of_a: int) -> dict[str, Any]:
    compared = judged.compared
    values = [one.compared for one in compared.runs[:runs_of_a] if one.compared]
    band = range_of_next(values) if len(values) >= FEWEST_RUNS else None
    return {
        "key": str(compared.key),
        "title": short_name(compared.metric),
        "is_rate": compared.metric.is_rate,
        "set": "response" if compared.metric.quantity is Quantity.RESPONSE else "service",
        "band": band,
    }


def address_of(a: Collection[str], b: Collection[str]) -> str:
    """Of the answer, by the runs' ids, as the page asks for it."""
    return f"/api/compare?a={','.join(map(quoted, a))}&b={','.join(map(quoted, b))}&metric="


def route_of(a: Collection[str], b: Collection[str]) -> str:
    """Of the view."""
    return f"#/compare/{','.join(map(quoted, a))}/{','.join(map(quoted, b))}"
