"""What a session of tests may not leave behind: processes, loop devices, mounts, folders in memory, namespaces.

Every process that a test starts inherits the session's name in its environment, every folder in memory is made below
the session's own, and the lab's namespaces begin with the name: other sessions on this machine are not mistaken for it.
"""

import contextlib
import os
import secrets
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

NAME = "IVYPY_TEST_SESSION"  # in the environment: four hexadecimal digits
DISK = "d-"  # the session's own disk, which is there until the very end
PATIENCE_S = 20.0  # for what is about to end when the last test has ended


@contextlib.contextmanager
def session() -> Iterator[None]:
    """Name this session, and make its folder in memory: by a short name, since the path of a socket is short."""
    name = os.environ[NAME] = secrets.token_hex(2)
    folder = Path(_memory() or tempfile.gettempdir()) / f"ivypy-{name}"
    folder.mkdir()
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # what is in it was reported
            folder.rmdir()


def session_name() -> str:
    return os.environ.get(NAME, "none")


def memory_root() -> Path:
    """The session's folder in memory, where the machine has one; outside of a session, the machine's."""
    root = Path(_memory() or tempfile.gettempdir())
    own = root / f"ivypy-{session_name()}"
    return own if own.is_dir() else root


def found() -> list[str]:
    """What is left of this session, a line each, once what is about to end has ended."""
    until = time.monotonic() + PATIENCE_S
    while (
        left := [*_processes(), *_loop_devices(), *_mounts(), *_folders(), *_namespaces()]
    ) and time.monotonic() < until:
        time.sleep(0.1)
    return left


def _memory() -> str | None:
    return "/dev/shm" if os.path.isdir("/dev/shm") else None


def _processes() -> Iterator[str]:
    mark = f"{NAME}={session_name()}\0".encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            if mark in path.read_bytes():
                words = (path.parent / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                yield f"process {path.parent.name}: {words[:200]}"


def _below_session(path: str, but_not: str) -> bool:
    """Whether a path is in the session's folder in memory, and is not that part of the session's own disk."""
    root = memory_root()
    inside = Path(path).relative_to(root).parts if path.startswith(f"{root}/") else ()
    return bool(inside) and not (inside[0].startswith(DISK) and inside[1:] == (but_not,))


def _loop_devices() -> Iterator[str]:
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            backing = path.read_text().strip()
            if _below_session(backing, but_not="image"):
                yield f"loop device {path.parts[3]} over {backing}"


def _mounts() -> Iterator[str]:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        point = line.split()[4]
        if _below_session(point, but_not="disk"):
            yield f"mount {point}"


def _folders() -> Iterator[str]:
    for path in memory_root().iterdir():
        if not path.name.startswith(DISK):
            yield f"folder {path}"


def _namespaces() -> Iterator[str]:
    with contextlib.suppress(OSError):
        for name in os.listdir("/run/netns"):
            if name.startswith(f"iv{session_name()}"):
                yield f"network namespace {name}"
