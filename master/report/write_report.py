"""A report of runs as a file: the page with its data inside; also the one that a run writes at its end.

Rule: it takes the place of an earlier report, and of no other file.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import Final

from ..errors import IvypyError, PlanError
from ..output.named_files import save
from .archive import Archive, ArchiveLimits, archive_of
from .one_file import MARK, page_of

NAME: Final = "report.html"
_HEAD: Final = 4096  # bytes in which the mark is
WHY_NOT: Final = "report: not written: "
RECORDING_S: Final = 1.5  # then no more instances are recorded
PATIENCE_S: Final = 10.0  # of a slow machine, or disk


def write_report(path: Path, folders: Sequence[Path], limits: ArchiveLimits | None = None) -> str:
    """Write the report; return what was written, in a line: "report.html: 2.1 MB". Raises PlanError, OutputError."""
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


def line_at_end(folder: Path, recording_s: float = RECORDING_S, patience_s: float = PATIENCE_S) -> str:
    """Write the report into the run's folder; what was written, or from WHY_NOT on what went wrong.

    Whatever happens to it, the run has ended with its results and its exit code. It takes a bounded time: what is not
    recorded soon is left out, and a disk that takes no file is not waited for.
    """
    end = time.monotonic() + recording_s
    limits = ArchiveLimits(is_late=lambda: time.monotonic() > end)
    lines: list[str] = []

    def write() -> None:
        try:
            lines.append(f"report: {write_report(folder / NAME, [folder], limits)}")
        except (IvypyError, OSError) as error:
            lines.append(f"{WHY_NOT}{error}")
        except Exception as error:  # only the report is lost
            lines.append(f"{WHY_NOT}{type(error).__name__}: {error}")

    writing = Thread(target=write, name="report", daemon=True)
    try:
        writing.start()
        writing.join(patience_s)
    except KeyboardInterrupt:
        return f"{WHY_NOT}interrupted"
    return lines[0] if lines else f"{WHY_NOT}it took longer than {patience_s:g} s; `ivypy report {folder}` writes it"
