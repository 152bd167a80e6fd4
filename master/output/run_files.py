"""Opening the files of a run's folder, which may be another user's, and damaged on purpose.

Rule: whoever reads must neither wait for ever nor be led to files of his own. So only plain files are opened, and a
symbolic link of another user, as any part of a path, only where it leads to a file of that user. What was checked is
held meanwhile: a path may lead elsewhere a moment later.
"""

import errno
import os
from pathlib import Path
from stat import S_ISLNK, S_ISREG
from typing import BinaryIO, Final

MOST_LINKS: Final = 40  # as of the kernel


def open_run_file(path: Path) -> BinaryIO:
    """Raises OSError, also for what is not read."""
    held = _held(path)
    try:
        return os.fdopen(os.open(f"/proc/self/fd/{held}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    finally:
        os.close(held)


def read_run_file(path: Path) -> bytes:
    """Raises OSError, also for what is not read."""
    with open_run_file(path) as file:
        return file.read()


def check_run_file(path: Path) -> None:
    """For files that a library opens. Raises OSError."""
    os.close(_held(path))


def may_follow(link_owner: int, file_owner: int, reader: int) -> bool:
    """Whether a user reads through a link: through his own, root's, and one to a file of the link's owner."""
    return link_owner in (0, reader, file_owner)


def _held(path: Path) -> int:
    """A descriptor (O_PATH) of what may be read at the path. Raises OSError."""
    held, owners = _walked(path)
    try:
        file = os.fstat(held)
        if not S_ISREG(file.st_mode):
            raise OSError(errno.EINVAL, "not a plain file", str(path))
        if not all(may_follow(owner, file.st_uid, os.geteuid()) for owner in owners):
            raise OSError(errno.EPERM, "another user's link to a file that is not theirs", str(path))
    except OSError:
        os.close(held)
        raise
    return held


def _walked(path: Path) -> tuple[int, list[int]]:
    """(a descriptor of what is at the path, the owners of the links that lead there). Raises OSError."""
    left, owners = [*reversed(path.parts)], list[int]()
    folder = os.open("/" if path.is_absolute() else ".", os.O_PATH | os.O_CLOEXEC)
    try:
        while left:
            entry = os.open(left.pop(), os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            status = os.fstat(entry)
            if S_ISLNK(status.st_mode):
                left += reversed(Path(os.readlink("", dir_fd=entry)).parts)
                os.close(entry)
                owners.append(status.st_uid)
                if len(owners) > MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
            else:
                os.close(folder)
                folder = entry
    except OSError as error:
        os.close(folder)
        raise OSError(error.errno, error.strerror, str(path)) from None
    return folder, owners
