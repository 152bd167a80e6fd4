"""Files that a user names on the command line, as with `-o`, `--save` and `--plot`.

Rule: no command writes to a block device by its name: that is for a run, with consent.
"""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ..errors import OutputError, PlanError

_HEAD: Final = 16  # bytes in which two files of one kind are alike: a CSV header, what a picture begins with


def write_new(path: Path, text: str) -> None:
    """A file that is not there yet. Raises PlanError where it is, OutputError where it cannot be written."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise PlanError(f"{path}: the file exists; name another") from None
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from None


def save(path: Path, write: Callable[[], object]) -> None:
    """Have `write` write the file, also in the place of an earlier one. Raises PlanError, OutputError."""
    if path.is_block_device():
        raise PlanError(f"{path}: a block device; name a file")
    try:
        write()
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from None


def save_own(path: Path, write: Callable[[Path], object]) -> None:
    """Have `write` write a file, also in the place of an earlier one: of one that begins as the new one does.

    Raises PlanError, OutputError; the file is as it was then.
    """
    if path.exists() and not path.is_file():
        save(path, lambda: write(path))  # a pipe, standard output
        return
    place = path.resolve()
    try:
        folder = Path(tempfile.mkdtemp(prefix=".ivypy-", dir=place.parent))  # a name that nobody can put a link at
        beside = folder / place.name
        try:
            save(path, lambda: write(beside))
            if place.exists() and (old := _head(place)) and old != _head(beside):
                raise PlanError(f"{path}: the file is not one that this command wrote; name another, or remove it")
            os.replace(beside, place)
        finally:
            shutil.rmtree(folder)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from None


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD)
