"""The comparison of runs that a client chooses: as `ivypy compare` decides it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ..compare.compare import Question, compare
from ..compare.page_data import page_data
from ..compare.sides import Sides

MOST_COMPARED: Final = 200  # runs


def compared(before: Mapping[Path, str], after: Mapping[Path, str], metrics: tuple[str, ...]) -> dict[str, Any]:
    """The answer. The runs' ids by their folders; `metrics`: besides the usual ones. Raises PlanError."""
    comparison = compare(Sides(tuple(before), tuple(after)), Question(more=metrics))
    return page_data(comparison, {**before, **after})
