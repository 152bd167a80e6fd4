"""Which runs stand on each side of a comparison."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import PlanError
from ..results.find_runs import runs_of


@dataclass(frozen=True, slots=True)
class Sides:
    """The run folders of both sides."""

    a: tuple[Path, ...]
    b: tuple[Path, ...]
    left_out: tuple[str, ...] = ()  # runs of a folder of runs, and why
    is_history: bool = False  # B are the newest runs, A those before them: B may lack steps
    newest_left_out: tuple[str, ...] = ()  # of `left_out`: runs as new as B's, and those that cannot be read


def sides_of(a: Sequence[str], b: Sequence[str]) -> Sides:
    """Each word is a run's folder, a folder of runs, or the id of an active run.

    Raises PlanError for a word that names no run, and for a run that is named twice.
    """
    left_out: list[str] = []
    before, after = ([folder for word in words for folder in runs_of(word, left_out)] for words in (a, b))
    seen: set[Path] = set()
    for folder in (*before, *after):
        if folder.resolve() in seen:
            raise PlanError(f"{folder}: named twice; a run counts once, on one side")
        seen.add(folder.resolve())
    return Sides(tuple(before), tuple(after), tuple(left_out))
