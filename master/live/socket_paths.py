"""Where a run's control socket is, and which runs there are.

Rule: a socket lies in a folder that only its user may enter: `$XDG_RUNTIME_DIR/ivypy`, else one of the user's own in
the system's temporary folder. Owner and mode of that folder are looked at each time, by the run and by its clients.
A socket at which nobody listens any more is removed by the next run.
"""

import contextlib
import os
import socket
import stat
import struct
import tempfile
import time
from pathlib import Path
from typing import Final

from ..errors import OutputError

LONGEST_PATH: Final = 107  # bytes: sun_path, less its final zero
YOUNG_S: Final = 10.0  # a socket that refuses may be one that is only about to listen
MOST_BROTHERS: Final = 100


def folder(make: bool) -> Path | None:
    """The folder of this user's sockets; None if there is none and it is not to be made.

    Raises OutputError where there is one that others may write to.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    usual = Path(runtime) / "ivypy"
    if runtime and _is_ours(runtime) and len(os.fsencode(usual)) < LONGEST_PATH - 32:
        path = usual
    else:
        path = Path(tempfile.gettempdir()) / f"ivypy-{os.geteuid()}"
    try:
        if make:
            with contextlib.suppress(FileExistsError):
                path.mkdir(mode=0o700)
        status = path.lstat()
    except FileNotFoundError:
        if make:
            raise OutputError(f"{path}: there is no such folder to make it in") from None
        return None
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror}") from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise OutputError(
            f"{path}: is not a folder that only you may enter (mode 0700), so no control socket is put there; remove it"
        )
    return path


def _is_ours(path: str) -> bool:
    """Whether it is a folder of this user's: sudo may leave another's XDG_RUNTIME_DIR."""
    try:
        status = os.stat(path)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def bound(run: str) -> tuple[socket.socket, Path]:
    """A socket for the run of that id, bound but not listening, open to its user only. Raises OutputError."""
    place = folder(make=True)
    assert place is not None
    remove_stale(place)
    room = LONGEST_PATH - len(os.fsencode(place)) - len("/-99.sock")
    stem = os.fsencode(run)[:room].decode(errors="ignore")
    for brother in range(1, MOST_BROTHERS):
        path = place / (f"{stem}.sock" if brother == 1 else f"{stem}-{brother}.sock")
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listening.bind(str(path))
            path.chmod(0o600)
        except OSError as error:
            listening.close()
            if path.exists():
                continue
            raise OutputError(f"{path}: no socket can be made there: {error.strerror or error}") from error
        return listening, path
    raise OutputError(f"{place}: holds {MOST_BROTHERS} sockets called {stem}; remove those of runs that are over")


def remove_stale(place: Path) -> None:
    """Remove the sockets of runs that are over and could not do so themselves."""
    for path in place.glob("*.sock"):
        with contextlib.suppress(OSError):
            if time.time() - path.lstat().st_mtime > YOUNG_S and not answers(path):
                path.unlink()


def connect(connection: socket.socket, path: Path, seconds: int) -> None:
    """Connect; where others fill the queue of connections, wait for a place, as Python's own time limits do not.

    Raises OSError: BlockingIOError after the time.
    """
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", seconds, 0))
    connection.connect(str(path))


def answers(path: Path) -> bool:
    """Whether somebody listens at a socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trying:
        try:
            connect(trying, path, 1)
        except BlockingIOError:
            return True  # a run that is too busy to accept, or flooded
        except OSError:
            return False
    return True


def running() -> list[Path]:
    """The sockets of this user's runs that listen, newest first. Raises OutputError."""
    place = folder(make=False)
    if place is None:
        return []
    sockets = []
    for path in place.glob("*.sock"):
        with contextlib.suppress(OSError):
            sockets.append((path.lstat().st_mtime_ns, path))
    return [path for _, path in sorted(sockets, reverse=True) if answers(path)]
