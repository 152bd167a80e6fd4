"""What a session of tests may not leave behind: processes, loop devices, mounts, folders in memory, namespaces.

Every process that a test starts inherits the session's name in its environment, every folder in memory is made below
the session's own, and the lab's namespaces begin with the name: other sessions on this machine are not mistaken for it.
"""

import contextlib
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
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
    while (left := _left()) and time.monotonic() < until:
        time.sleep(0.1)
    return [os.fsencode(line).decode(errors="backslashreplace") for line in left]  # a name may be no text


def _left() -> list[str]:
    return [line for name, check in CHECKS.items() for line in _lines(name, check)]


def _lines(name: str, check: Callable[[], Iterable[str]]) -> list[str]:
    """What a check finds. One that fails is a finding itself: it may not take the tests' report with it."""
    try:
        return list(check())
    except Exception as error:
        return [f"the check of {name} failed: {error!r}"]


def _memory() -> str | None:
    return "/dev/shm" if os.path.isdir("/dev/shm") else None


def _processes() -> Iterator[str]:
    mark = f"{NAME}={session_name()}\0".encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            if mark in path.read_bytes():
                words = (path.parent / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                name = (path.parent / "comm").read_text().strip()
                yield f"process {path.parent.name} ({name}): {words[:200]}"


def _below_session(path: str, but_not: str) -> bool:
    """Whether a path is in the session's folder in memory, and is not that part of the session's own disk."""
    root = memory_root()
    inside = Path(path).relative_to(root).parts if path.startswith(f"{root}/") else ()
    return bool(inside) and not (inside[0].startswith(DISK) and inside[1:] == (but_not,))


def loop_devices(sys: Path = Path("/sys")) -> Iterator[str]:
    """Those over a file of this session."""
    for path in sys.glob("block/loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            backing = os.fsdecode(path.read_bytes()).strip()
            if _below_session(backing, but_not="image"):
                yield f"loop device {path.parts[-3]} over {backing}"


def mounts(mountinfo: bytes) -> Iterator[str]:
    """Those in a folder of this session."""
    for line in mountinfo.splitlines():
        point = os.fsdecode(line.split()[4])
        if _below_session(point, but_not="disk"):
            yield f"mount {point}"


def _own_mounts() -> Iterator[str]:
    return mounts(Path("/proc/self/mountinfo").read_bytes())


def _folders() -> Iterator[str]:
    for path in memory_root().iterdir():
        if not path.name.startswith(DISK):
            yield f"folder {path}"


def _namespaces() -> Iterator[str]:
    with contextlib.suppress(OSError):
        for name in os.listdir("/run/netns"):
            if name.startswith(f"iv{session_name()}"):
                yield f"network namespace {name}"


CHECKS: dict[str, Callable[[], Iterable[str]]] = {
    "processes": _processes,
    "loop devices": loop_devices,
    "mounts": _own_mounts,
    "folders": _folders,
    "network namespaces": _namespaces,
}
