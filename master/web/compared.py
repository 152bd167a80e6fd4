"""The comparison of runs that a client chooses: as `ivypy compare` decides it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ..compare.compare import Question, compare
from ..compare.limit import USUAL_LIMIT, parse_limit
from ..compare.page_data import page_data
from ..compare.sides import Sides

MOST_COMPARED: Final = 200  # runs


def compared(
    before: Mapping[Path, str], after: Mapping[Path, str], metrics: tuple[str, ...], limit: str = ""
) -> dict[str, Any]:
    """The answer. The runs' ids by their folders; `metrics`: shown besides the usual ones; `limit`: as --max-regression
    takes it, "" for the usual one. Raises PlanError.
    """
    question = Question(limit=parse_limit(limit) if limit else USUAL_LIMIT, added=metrics)
    comparison = compare(Sides(tuple(before), tuple(after)), question)
    return page_data(comparison, {**before, **after})
