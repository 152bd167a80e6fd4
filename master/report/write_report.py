"""A report of runs as a file: the page with its data inside.

Rule: it takes the place of an earlier report, and of no other file.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ..errors import PlanError
from ..output.named_files import save
from .archive import Archive, ArchiveLimits, archive_of
from .one_file import MARK, page_of

NAME: Final = "report.html"
_HEAD: Final = 4096  # bytes in which the mark is


def write_report(path: Path, folders: Sequence[Path], limits: ArchiveLimits | None = None) -> str:
    """What was written, in a line: "report.html: 2.1 MB". Raises PlanError, OutputError."""
    check_place(path, MARK.encode())
    archive = archive_of(folders, limits or ArchiveLimits())
    title = ", ".join(one.resolve().name for one in folders)
    return save_page(path, archive, title)


def save_page(path: Path, archive: Archive, title: str, above: str = "") -> str:
    """As above, of what is recorded already. `above`: markup that stands before the views."""
    check_place(path, MARK.encode())
    page = page_of(archive.content(), title, above).encode()
    save(path, lambda: path.write_bytes(page))
    return f"{path}: {len(page) / 1e6:.1f} MB"


def check_place(path: Path, mark: bytes) -> None:
    """Whether a file may be written there. `mark`: what the head of an earlier one has. Raises PlanError."""
    if not path.parent.is_dir():
        raise PlanError(f"{path}: there is no folder {path.parent}; make it first")
    if path.is_dir():
        raise PlanError(f"{path}: a folder; name a file")
    if not path.is_file() or not path.stat().st_size:
        return
    try:
        with path.open("rb") as file:
            is_ours = mark in file.read(_HEAD)
    except OSError as error:
        raise PlanError(f"{path}: not read: {error.strerror}") from None
    if not is_ours:
        raise PlanError(f"{path}: a file that ivypy has not written; name another")
