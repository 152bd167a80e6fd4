"""Files that a user names on the command line, as with `-o`, `--save` and `--plot`.

Rule: no command writes to a block device by its name: that is for a run, with consent.
"""

from collections.abc import Callable
from pathlib import Path

from ..errors import OutputError, PlanError


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
