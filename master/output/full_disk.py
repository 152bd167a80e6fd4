"""A full disk is waited for, as one that hangs is: what it did not take is written again until there is room.

Rule: only in the writer's thread (`patient`), and only what is written as a whole or not at all (`patiently`). Then
a write that failed may be made again. SQLite names no cause but ENOSPC: a quota that is used up (EDQUOT), or what NFS
reports in fsync, is an I/O error of it. So these are waited for, too: a broken disk costs as long as one that hangs.
"""

import errno
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

T = TypeVar("T")

FULL_S: Final = 50.0  # less than a job may wait (writer_thread.py), so that the run's end names the full disk
AGAIN_S: Final = 0.25
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_FULL_OF_SQLITE: Final = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC)


class FullDisk:
    """Since when the disk is full, in one thread."""

    def __init__(self, told: Callable[[str], None]) -> None:
        """`told` gets a sentence when the disk is found full, and one when it takes writes again."""
        self._told = told
        self._since_s: float | None = None

    def waits(self, error: Exception) -> bool:
        """Wait a little after a write that failed with this; False where it was not for that, or for too long."""
        if not is_full(error):
            return False
        now_s = time.monotonic()
        if self._since_s is None:
            self._since_s = now_s
            self._told(f"the results' disk {_state(error)}: waiting for up to {FULL_S:.0f} s; make room")
        if now_s - self._since_s >= FULL_S:
            return False
        time.sleep(AGAIN_S)
        return True

    def written(self) -> None:
        """A write succeeded."""
        if self._since_s is not None:
            self._told(f"the results' disk has room again, after {time.monotonic() - self._since_s:.1f} s")
            self._since_s = None


_OF_THREAD: Final = threading.local()


@contextmanager
def patient(disk: FullDisk) -> Iterator[None]:
    """In it, this thread waits for a full disk."""
    _OF_THREAD.disk = disk
    try:
        yield
    finally:
        _OF_THREAD.disk = None


def patiently(write: Callable[[], T]) -> T:
    """Call `write`, which writes all or nothing, and return its result. Raises its error."""
    disk: FullDisk | None = getattr(_OF_THREAD, "disk", None)
    while True:
        try:
            done = write()
        except (OSError, sqlite3.Error) as error:
            if disk is None or not disk.waits(error):
                raise
            continue
        if disk is not None:
            disk.written()
        return done


def is_full(error: Exception) -> bool:
    """Whether a file system, or a quota, has no room, or may have none."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", None) in _FULL_OF_SQLITE
    return isinstance(error, OSError) and error.errno in _FULL


def _state(error: Exception) -> str:
    if isinstance(error, sqlite3.Error) and error.sqlite_errorcode != sqlite3.SQLITE_FULL:
        return f"is full, its quota is used up, or it is broken ({error.sqlite_errorname})"
    return "is full"
