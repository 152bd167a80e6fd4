"""Which person root is: several may be root on one machine, and their runs have one folder of sockets.

Rule: it only keeps a person from a mistake. Who is root may do everything, and name any run.
"""

import os
import socket
import struct
from contextlib import suppress
from pathlib import Path
from typing import Final

from .socket_paths import connect

_CREDENTIALS: Final = struct.Struct("3i")  # of SO_PEERCRED: process, user, group
_UNSET: Final = 2**32 - 1  # a login that the kernel does not know: a container, a daemon


def real_user(process: int) -> int | None:
    """The user who became root, of a process: by sudo, or else by logging in; None where nothing says so."""
    place = Path(f"/proc/{process}")
    with suppress(OSError, ValueError):
        for one in (place / "environ").read_bytes().split(b"\0"):
            name, _, value = one.partition(b"=")
            if name == b"SUDO_UID":
                return int(value)
    with suppress(OSError, ValueError):
        login = int((place / "loginuid").read_text())
        return None if login == _UNSET else login
    return None


def of_another(path: Path) -> int | None:
    """The real user of the run at this socket, where both of us are root and it is surely another person; else None."""
    if os.geteuid() != 0:
        return None
    own, other = real_user(os.getpid()), _listener(path)
    return other if own is not None and own != other else None


def _listener(path: Path) -> int | None:
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connect(connection, path, 1)
        found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        return real_user(_CREDENTIALS.unpack(found)[0])
    return None
