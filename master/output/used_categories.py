"""Of which categories of I/O the files of rollup instances have columns: of those that saw any.

Rule: rows are only ever appended. When a category sees its first I/O, the files get its columns in all rows at once:
each is replaced as a whole, and earlier rows say that there was nothing. So all rows of a file have its columns.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from ..rollup.arrays import Merged
from ..rollup.figures import CATEGORIES, OVERALL, kinds_in
from ..rollup.metrics import BLOCKS, METRICS, Metric, of_nothing
from .csv_text import not_written, replace_file

ALWAYS: Final = frozenset((OVERALL, ""))  # "": metrics that are about no category
_OVERALL_IOPS: Final = [*METRICS].index("overall_iops")  # before it there are only metrics that are always there


def used_in(merged: Merged) -> frozenset[str]:
    """The categories that saw I/O in any row."""
    return ALWAYS | {category for category in CATEGORIES if kinds_in(merged, category)}


def metrics_of(used: Iterable[str]) -> list[Metric]:
    """The metrics that files of these categories have, in order."""
    return [metric for category, metrics in BLOCKS if category in used for metric in metrics]


def widen(path: Path, had: frozenset[str], has: frozenset[str], after_metrics: int = 0) -> None:
    """Add the columns of more categories to a file whose metrics stand before its last `after_metrics` columns.

    Raises OutputError; the file is then as it was.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise not_written(path, error) from error
    header, *rows = text.splitlines(keepends=True)
    names = {metric.name: metric.name for metric in metrics_of(has)}
    lines = [_widened(header, had, has, after_metrics, lambda _: names)]
    lines += [_widened(row, had, has, after_metrics, of_nothing) for row in rows]
    replace_file(path.parent, path.name, "".join(lines))


def _widened(
    line: str, had: frozenset[str], has: frozenset[str], after_metrics: int, new: Callable[[str], Mapping[str, str]]
) -> str:
    """A line with the cells that it lacks: `new` of its overall_iops. No name, which may have commas, stands behind the
    metrics."""
    start, *cells = line.rsplit(",", len(metrics_of(had)) + after_metrics)
    added = new(cells[_OVERALL_IOPS])
    old = iter(cells)
    parts = [start]
    for category, metrics in BLOCKS:
        if category in has:
            parts += [next(old) if category in had else added[metric.name] for metric in metrics]
    return ",".join((*parts, *old))
