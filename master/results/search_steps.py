"""Reads the probes of a step that searched, from its find.csv."""

from pathlib import Path
from typing import Final

from ..control.probe import ProbeAnswer
from ..errors import PlanError
from ..output.file_names import step_folder
from ..summary.search_probes import ProbeRow, probe_table
from .checked_files import read_table

_TEXTS: Final = ("probe", "metric", "answer", "sustained")
_NUMBERS: Final = ("total_iops", "target")  # never blank


def read_probes(folder: Path, number: int, name: str) -> list[ProbeRow]:
    """The rows of a step's find.csv; none where it did not search. Raises PlanError where they are of no search."""
    path = folder / step_folder(number, name) / "find.csv"
    rows: list[ProbeRow] = [*read_table(path)]
    try:
        for row in rows:
            _check(row)
    except (KeyError, ValueError) as error:
        raise PlanError(f"{path}: not read: no probes of a search: {error}") from None
    return rows


def _check(row: ProbeRow) -> None:
    """Raises KeyError, ValueError."""
    for column in _TEXTS:
        row[column]
    for column in _NUMBERS:
        float(row[column])
    ProbeAnswer(row["answer"])
    probe_table([row])
