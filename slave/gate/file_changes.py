"""When a file was last changed, and whether only ivypy has changed it since something was noted about it.

Rule: the kernel sets a file's change time (ctime) at every change of contents or attributes, and no program can set it
back; a modification time (mtime) can be. What ivypy notes about a file is kept in an extended attribute that holds
only until the file's next change. To set an attribute is a change itself: so the note has the change time of just
before, and holds while the file's is at most LATEST_NS after that. Where it cannot be kept, nothing is noted: the user
is asked again.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Mapping
from typing import Final

LATEST_NS: Final = 50_000_000  # more than a tick of the clock that files' times are taken from
TRIES: Final = 20  # a machine that stalls between the two needs another
TICK_NS: Final = 10_000_000  # of that clock, at most
COARSE_NS: Final = 2_000_000_000  # of filesystems that keep no fractions of a second
CLOCK_REALTIME_COARSE: Final = 5  # Linux; Python has no name for it
NO_ATTRIBUTES: Final = (errno.ENOTSUP, errno.EPERM, errno.EACCES, errno.ENOSYS, errno.ENOSPC, errno.EDQUOT)


def last_change(place: str | int) -> str:
    """When a file was last changed: its change time, and its modification time where that is another.

    Waits for one tick where it was changed just now, so that no later change has the same time.
    """
    status = os.stat(place)
    _wait_past(status.st_ctime_ns)
    return times_of(place)


def times_of(place: str | int) -> str:
    """As `last_change`, at once: a later change may still get the same time, for one tick."""
    return _times(os.stat(place))


def _times(status: os.stat_result) -> str:
    modified = "" if status.st_mtime_ns == status.st_ctime_ns else f" (contents {_utc(status.st_mtime_ns)})"
    return _utc(status.st_ctime_ns) + modified


def note(fd: int, name: str, value: bytes, left: str = "") -> bool:
    """Note something about an open file until its next change; False where that cannot be kept.

    Nor is it where the file is not as it was `left`: its last change then.
    """
    return note_all(fd, {name: value}, left)


def note_all(fd: int, notes: Mapping[str, bytes], left: str = "") -> bool:
    """As `note`: each note is a change, so those that are to hold together are set together."""
    _wait_past(os.fstat(fd).st_mtime_ns)  # else a change in the same tick would have the same time
    before = os.fstat(fd)
    if left and _times(before) != left:
        return False
    at_ns = before.st_ctime_ns
    for _ in range(TRIES):
        tail = b" %d %d %d" % (before.st_ino, before.st_mtime_ns, at_ns)
        if not all(put(fd, name, value + tail) for name, value in notes.items()):
            return False
        if all(noted(fd, name) is not None for name in notes):
            return True
        at_ns = os.fstat(fd).st_ctime_ns
    return False


def noted(place: str | int, name: str) -> bytes | None:
    """The note about a file; None where nothing is, or it was changed since."""
    try:
        status = os.stat(place)
        value, inode, modified_ns, at_ns = raw(place, name).rsplit(b" ", 3)
        same = (int(inode), int(modified_ns)) == (status.st_ino, status.st_mtime_ns)
        after_ns = status.st_ctime_ns - int(at_ns)
    except (OSError, ValueError):
        return None
    return value if same and 0 <= after_ns <= LATEST_NS else None


def raw(place: str | int, name: str) -> bytes:
    """An attribute as it stands, whatever changed since; b"" where there is none."""
    try:
        return os.getxattr(place, name)
    except OSError:
        return b""


def put(fd: int, name: str, value: bytes) -> bool:
    """Set an attribute; False where the filesystem has none, or this user may not."""
    try:
        os.setxattr(fd, name, value)
    except OSError as error:
        if error.errno not in NO_ATTRIBUTES:
            raise
        return False
    return True


def _wait_past(changed_ns: int) -> None:
    """Wait until a new change has another time than this one: for a tick at most."""
    granule_ns = TICK_NS if changed_ns % 10**9 else COARSE_NS
    age_ns = time.clock_gettime_ns(CLOCK_REALTIME_COARSE) - changed_ns
    if abs(age_ns) < granule_ns:
        time.sleep((granule_ns - age_ns) / 1e9)


def _utc(ns: int) -> str:
    seconds, rest = divmod(ns, 10**9)
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds)) + f".{rest:09} UTC"
