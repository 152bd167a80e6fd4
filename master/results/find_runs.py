"""Which run folders the words of a command line mean.

Rule: a run that is named has to have results. One in a folder of runs that has none, since it was refused or is in its
first step, is left out, and whoever asked is told.
"""

from pathlib import Path

from ..errors import PlanError
from ..live.socket_client import NoSuchRun, connected
from .checked_files import RUN_JSON, read_record
from .finished_run import why_no_results


def runs_of(word: str, left_out: list[str]) -> list[Path]:
    """A word is a run's folder, a folder of runs, or the id of an active run. `left_out`: takes the runs of a folder
    that have no results, and why. Raises PlanError where it names no run."""
    path = Path(word)
    if word and path.is_dir() and not _is_run(path):
        return _within(path, left_out)
    return [_one(word, path)]


def newest_of(word: str) -> Path:
    """The run that a word names, as above; of a folder of runs the one that began last.

    Raises PlanError where it names no run.
    """
    path = Path(word)
    if not word or not path.is_dir() or _is_run(path):
        return _one(word, path)
    return max(_below(path), key=lambda run: (_start(run), run.name))


def _start(run: Path) -> str:
    """When it began; "" where its run.json cannot be read: then any other is newer."""
    try:
        return read_record(run)["start_utc"] or ""
    except PlanError:
        return ""


def _one(word: str, path: Path) -> Path:
    """A run's folder, or that of an active run whose id the word is."""
    if not word:
        raise PlanError("the name of a run is empty; name its folder")
    if _is_run(path):
        return path
    if path.exists():
        raise PlanError(f"{path}: a file; name the run's folder" + (f": {path.parent}" if _is_run(path.parent) else ""))
    try:
        with connected(word) as client:
            return Path(client.standing().folder)
    except NoSuchRun as error:
        raise PlanError(str(error)) from None


def _within(folder: Path, left_out: list[str]) -> list[Path]:
    """The runs in a folder that have results."""
    runs = _below(folder)
    whys = {run: why_no_results(run) for run in runs}
    left_out += [f"{run}: left out: {why}" for run, why in whys.items() if why]
    if found := [run for run in runs if not whys[run]]:
        return found
    raise PlanError(f"{folder}: none of its {len(runs)} runs has results; {runs[0].name}: {whys[runs[0]]}")


def _below(folder: Path) -> list[Path]:
    """The runs in a folder, of which there is one at least. Raises PlanError."""
    if runs := sorted(one.parent for one in folder.glob(f"*/{RUN_JSON}")):
        return runs
    if _is_run(folder.parent):
        raise PlanError(f"{folder}: a part of a run; name the run's folder: {folder.parent}")
    raise PlanError(f"{folder}: no run's folder (it has no {RUN_JSON}), and no folder of runs")


def _is_run(folder: Path) -> bool:
    return (folder / RUN_JSON).is_file()
