"""Which run folders a word of the command line means."""

from pathlib import Path

from ..errors import PlanError
from ..live.socket_client import NoSuchRun, connected


def folders_of(words: tuple[str, ...], option: str) -> list[Path]:
    """The run folders of one side: each word is a run's folder, a folder of runs, or the id of an active run.

    Raises PlanError for a word that names no run, and for a run that is named twice.
    """
    found = [folder for word in words for folder in _folders(word, option)]
    real = [folder.resolve() for folder in found]
    for place, folder in enumerate(real):
        if folder in real[:place]:
            raise PlanError(f"{found[place]}: named twice in {option}; a run counts once")
    return found


def _folders(word: str, option: str) -> list[Path]:
    path = Path(word)
    if not word:
        raise PlanError(f"{option}: a name is empty; name a run's folder")
    if (path / "run.json").is_file():
        return [path]
    if path.is_dir():
        if within := sorted(one.parent for one in path.glob("*/run.json")):
            return within
        if (path.parent / "run.json").is_file():
            raise PlanError(f"{path}: a part of a run; name the run's folder: {path.parent}")
        raise PlanError(f"{path}: no run's folder (it has no run.json), and no folder of runs")
    if path.exists():
        raise PlanError(f"{path}: a file; name the run's folder" + (f": {path.parent}" if _is_in_run(path) else ""))
    try:
        with connected(word) as client:
            return [Path(client.standing().folder)]
    except NoSuchRun as error:
        raise PlanError(str(error)) from None


def _is_in_run(path: Path) -> bool:
    return (path.parent / "run.json").is_file()
