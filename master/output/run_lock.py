"""Whether a run's process lives: it holds a lock on a file in the run's folder, which ends with the process.

Rule: the lock belongs to the open file (OFD), so that no other reader or writer of the same process ends it. The file
is marked only once the lock is held: where a file system knows no locks, nothing is said about the process.
"""

import contextlib
import fcntl
import os
import struct
from pathlib import Path
from typing import Final

from .run_files import open_run_file

FILE: Final = ".running"
_MARK: Final = b"locked\n"
_FLOCK: Final = struct.Struct("@hhqqi4x")  # type, whence, start, length (0: to the end), process
_WHOLE: Final = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)


class RunLock:
    """Held from the start until `release`, or the end of the process."""

    def __init__(self, folder: Path) -> None:
        """Never raises: a run without it is known by its socket."""
        self._path = folder / FILE
        self._file = contextlib.ExitStack()
        with contextlib.suppress(OSError):
            file = self._file.enter_context(open(self._path, "xb", buffering=0))
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, _WHOLE)
            file.write(_MARK)

    def release(self) -> None:
        """The run is over, and run.json says so."""
        with contextlib.suppress(OSError):
            self._path.unlink()
        self._file.close()


def holds(folder: Path) -> bool | None:
    """Whether a process holds the run's lock; None where that cannot be known. FileNotFoundError where it made none."""
    try:
        with open_run_file(folder / FILE) as file:
            found = fcntl.fcntl(file, fcntl.F_OFD_GETLK, _WHOLE)
            if _FLOCK.unpack(found)[0] != fcntl.F_UNLCK:
                return True
            return False if file.read(len(_MARK)) == _MARK else None
    except FileNotFoundError:
        raise
    except OSError:
        return None
