"""Opening the files of a run's folder, which may be another user's, and damaged on purpose.

Rule: whoever reads must neither wait for ever nor be led to files of his own. So only plain files are opened, and a
symbolic link of another user only where it leads to a file of that user.
"""

import errno
import os
from pathlib import Path
from stat import S_ISLNK, S_ISREG
from typing import BinaryIO


def open_run_file(path: Path) -> BinaryIO:
    """Raises OSError, also for what is not read."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _check(path, os.fstat(descriptor))
        return os.fdopen(descriptor, "rb")
    except OSError:
        os.close(descriptor)
        raise


def read_run_file(path: Path) -> bytes:
    """Raises OSError, also for what is not read."""
    with open_run_file(path) as file:
        return file.read()


def check_run_file(path: Path) -> None:
    """For files that a library opens. Raises OSError."""
    _check(path, path.stat())


def may_follow(link_owner: int, file_owner: int, reader: int) -> bool:
    """Whether a user reads through a link: through his own, and through one to a file of the link's owner."""
    return link_owner in (reader, file_owner)


def _check(path: Path, file: os.stat_result) -> None:
    if not S_ISREG(file.st_mode):
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    link = path.lstat()
    if S_ISLNK(link.st_mode) and not may_follow(link.st_uid, file.st_uid, os.geteuid()):
        raise OSError(errno.EPERM, "another user's link to a file that is not theirs", str(path))
