"""Checks what exists where a file is to be created, and whether ivypy may use it.

Rule: files that ivypy creates carry the extended attribute `user.ivypy`: "making", and once they are whole "made",
noted until the file's next change (file_changes.py). A whole file of exactly the size requested, not changed since, is
used as it is. If it was changed (by somebody, or by a run that was killed), it is used only if the user
agreed to that; everything else there is somebody's, and refused.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ...protocol.consent_check import consent_faults, lasting
from ...protocol.payload import FileToCreate, Identity, Refusal
from ...protocol.quantities import exact_size
from ...protocol.refusals import RefusalReason
from ..gate.file_changes import noted, raw
from ..gate.holds import lock
from .lun_identity import identity_of_file

MARK: Final = "user.ivypy"
MAKING, MADE = b"making", b"made"
MOST_FILES: Final = 100_000  # of one entry


class CannotCreate(Exception):
    """Files cannot be created; none was."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        super().__init__("; ".join(f"{r.what}: {r.reason}" for r in refusals))
        self.refusals = tuple(refusals)


@dataclass(frozen=True)
class PlannedFile:
    """One file that is to exist before the workloads start."""

    path: str
    size: int
    keep: bool


def planned_files(asked: FileToCreate) -> list[PlannedFile]:
    """The single files of one entry of the plan; "{}" in the path is each one's number, from 0.

    Raises CannotCreate.
    """
    path = os.path.abspath(os.path.expanduser(asked.path))
    if asked.count < 1 or asked.size < 1:
        reason = RefusalReason.FILES_OF_NOTHING.sentence(count=asked.count, size=asked.size)
        raise CannotCreate([Refusal(path, reason)])
    if asked.count > MOST_FILES:
        reason = RefusalReason.TOO_MANY_FILES.sentence(count=asked.count, most=MOST_FILES)
        raise CannotCreate([Refusal(path, reason)])
    if asked.count > 1 and "{}" not in path:
        raise CannotCreate([Refusal(path, RefusalReason.FILES_UNNUMBERED.sentence(count=asked.count))])
    return [PlannedFile(path.replace("{}", str(i)), asked.size, asked.keep) for i in range(asked.count)]


def all_planned_files(asked: Iterable[FileToCreate]) -> list[PlannedFile]:
    """The single files of all entries. Raises CannotCreate, with all reasons."""
    files: list[PlannedFile] = []
    refusals: list[Refusal] = []
    for one in asked:
        try:
            files += planned_files(one)
        except CannotCreate as error:
            refusals += error.refusals
    if refusals:
        raise CannotCreate(refusals)
    return files


class Existing(Enum):
    """The file that exists where one is to be created, if it may be used."""

    NOTHING = "nothing"
    OURS = "ours"  # ivypy made it, and nobody but ivypy has changed it since
    CHANGED = "changed"  # ivypy made it; it was changed since, and nobody knows by whom


def existing_at(file: PlannedFile) -> Existing | str:
    """Inspect what exists at its path; or return the reason why the file can neither be created nor used."""
    try:
        status = os.lstat(file.path)
    except FileNotFoundError:
        return _against_making(file.path) or Existing.NOTHING
    except OSError as error:
        return RefusalReason.NOT_INSPECTED.sentence(error=error.strerror)
    made = raw(file.path, MARK).split(b" ")[0] if stat.S_ISREG(status.st_mode) else b""
    if made == MADE and status.st_size == file.size:
        return Existing.OURS if noted(file.path, MARK) == MADE else Existing.CHANGED
    if made and _is_used(file.path):
        return RefusalReason.IN_USE.sentence()
    if made == MADE:
        present, asked = exact_size(status.st_size), exact_size(file.size)
        return RefusalReason.MADE_LARGER_OR_SMALLER.sentence(present=present, asked=asked)
    if made == MAKING:
        return RefusalReason.HALF_MADE.sentence()
    return RefusalReason.NOT_OURS.sentence()


def _against_making(path: str) -> str:
    """Why a file cannot be created at this path, where nothing exists; or ""."""
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        return RefusalReason.NO_FOLDER.sentence(folder=folder)
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        return RefusalReason.FOLDER_READ_ONLY.sentence(folder=folder)
    if not os.access(folder, os.W_OK):
        return RefusalReason.FOLDER_DENIED.sentence(folder=folder)
    return ""


def against_use(fd: int, path: str, agreed: Identity | None, made: bool) -> str:
    """Lock a whole file that exists, and check it again: why it must not be used, or "".

    `made`: for this run, by a slave that is no more and may have written to it.
    """
    if not lock(fd) or not _is_at(path, fd):  # its owner may have removed it between our checks
        return RefusalReason.IN_USE.sentence()
    if noted(fd, MARK) == MADE:
        return ""
    if agreed is None:
        return RefusalReason.WRITTEN_BY_SOMEBODY.sentence()
    return another_file(fd, path, agreed, made)


def another_file(fd: int, path: str, agreed: Identity, made: bool) -> str:
    """Why it is not the very file that was agreed to, or ""; one that was `made` for this run may have been written."""
    try:
        present = identity_of_file(path, os.fstat(fd).st_size, fd)
    except OSError as error:
        return RefusalReason.FILE_UNIDENTIFIED.sentence(error=error.strerror)
    same = lasting if made else lambda identity: identity
    return consent_faults({path: same(agreed)}, {path: same(present)}).get(path, "")


def _is_used(path: str) -> bool:
    """Whether another process has the lock of a file that ivypy made."""
    try:
        fd = open_to_lock(path)
    except OSError:
        return False
    try:
        return not lock(fd)  # a lock that was taken here ends with the open file
    finally:
        os.close(fd)


def open_to_lock(path: str) -> int:
    """For writing, where that may be: some network filesystems lock nothing else. Raises OSError."""
    flags = os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, os.O_RDWR | flags)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
    return os.open(path, os.O_RDONLY | flags)


def _is_at(path: str, fd: int) -> bool:
    """Whether an open file still stands at its path."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(fd))
    except OSError:
        return False
