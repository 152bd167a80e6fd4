"""Files that ivypy makes to drive, and removes.

Rule: a file is written only by the process that made it, from nothing (O_EXCL), and only that process removes it, at
its exit, unless it is to be kept. Made files carry the extended attribute `user.ivypy`: "making", and "made" once they
are whole. What already stands at a path is used as it is, if it was made by ivypy, is whole and has exactly the size
asked for; everything else there is somebody's, and refused. (A file of one's own that may be overwritten is named
under the plan's `files`, where the user has to agree to it.) A file that is made or used so is locked (flock) until
the process ends, however it ends: no other run drives it meanwhile, or finds it removed.
"""

import errno
import fcntl
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ..protocol.messages import FileToCreate, Refusal
from ..protocol.quantities import of_bytes, roughly
from .content import pieces

MARK: Final = "user.ivypy"
MAKING, MADE = b"making", b"made"
SYNC_EVERY: Final = 64 << 20  # bytes: so that no fsync takes long, and little memory is dirty
REPORT_EVERY_S: Final = 10.0
IN_USE: Final = (
    "it is in use by another ivypy run, or by another host of this one: choose another path ({host} in it becomes the"
    " host's name), or wait"
)


class Cancelled(Exception):
    """The slave is to end; what was being made is removed."""


class CannotMake(Exception):
    """Files that cannot be made; nothing was."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        super().__init__("; ".join(f"{r.what}: {r.reason}" for r in refusals))
        self.refusals = tuple(refusals)


@dataclass(frozen=True, slots=True)
class Wanted:
    """One file to be there."""

    path: str
    size: int
    keep: bool


def wanted(asked: FileToCreate) -> list[Wanted]:
    """The single files of one entry of the plan; "{}" in the path is each one's number, from 0.

    Raises CannotMake.
    """
    path = os.path.abspath(os.path.expanduser(asked.path))
    if asked.count < 1 or asked.size < 1:
        raise CannotMake(
            [Refusal(path, f"{asked.count} files of {asked.size} bytes are none: ask for at least 1 of each")]
        )
    if asked.count > 1 and "{}" not in path:
        raise CannotMake(
            [Refusal(path, f"{asked.count} files need {{}} in their path, which becomes each one's number")]
        )
    return [Wanted(path.replace("{}", str(i)), asked.size, asked.keep) for i in range(asked.count)]


class Files:
    """Remembers the files that this process made or has for itself; thread-safe enough for one maker."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[os.stat_result, bool]] = {}  # path -> (what it is, whether it is kept)
        self._locks: dict[str, int] = {}  # path -> the open file that holds its lock; the end of the process closes it
        self._cancelled = threading.Event()

    def make(self, files: Sequence[Wanted], tell: Callable[[str], None]) -> None:
        """Have all of `files` there; those made are written whole and synced. Blocks; `tell` gets sentences meanwhile.

        Raises CannotMake with every reason (nothing is left of those that this call made), or Cancelled.
        """
        missing, refusals = self._look(files)
        if not refusals:
            refusals = list(_short_of_space(missing))
        if refusals:
            raise CannotMake(refusals)
        to_make = {file.path for file in missing}
        for file in files:
            if file.path not in to_make:
                tell(f"{file.path} is used as it is: ivypy made it before, with exactly {of_bytes(file.size)}")
        report = _Progress(sum(file.size for file in missing), len(missing), tell)
        made: list[Wanted] = []
        try:
            for file in missing:
                made.append(file)
                self._write(file, report)
        except OSError as error:
            self._remove(f.path for f in made)
            raise CannotMake([Refusal(made[-1].path, f"it cannot be written: {error.strerror}")]) from None
        except Cancelled:
            self._remove(f.path for f in made)
            raise
        report.done()

    def cancel(self) -> None:
        """Let `make` end soon, wherever it is; called from another thread."""
        self._cancelled.set()

    def remove(self) -> None:
        """Remove what was made and is not kept."""
        self._remove([path for path, (_, keep) in self._made.items() if not keep])

    def _look(self, files: Sequence[Wanted]) -> tuple[list[Wanted], list[Refusal]]:
        """(the files that have to be made, what stands against others)."""
        missing, refusals = [], []
        for file in files:
            reason = _against(file)
            if reason is None:
                missing.append(file)
            elif reason := reason or self._lock_there(file.path):
                refusals.append(Refusal(file.path, reason))
        counted = Counter(file.path for file in files)
        refusals += [
            Refusal(path, "it is to be created twice: give each file a path of its own")
            for path, count in counted.items()
            if count > 1
        ]
        return missing, refusals

    def _lock_there(self, path: str) -> str:
        """Have for ourselves a whole file that is there; why that cannot be, or ""."""
        if path in self._locks:
            return ""
        try:
            fd = _opened(path)
        except OSError as error:
            return f"it cannot be opened: {error.strerror}"
        if _lock(fd) and _is_at(path, fd):  # whoever had it may have removed it between our looks
            self._locks[path] = fd
            return ""
        os.close(fd)
        return IN_USE

    def _write(self, file: Wanted, report: "_Progress") -> None:
        fd = os.open(file.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        self._locks[file.path] = fd
        self._made[file.path] = (os.fstat(fd), False)  # removed at exit until it is whole
        _lock(fd)  # nobody else can have it: it has not been marked as made
        _mark(fd, MAKING)
        unsynced = 0
        for piece in pieces(file.size):
            if self._cancelled.is_set():
                raise Cancelled
            _write_all(fd, piece)
            report.add(len(piece))
            unsynced += len(piece)
            if unsynced >= SYNC_EVERY:
                os.fdatasync(fd)
                unsynced = 0
        _mark(fd, MADE)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        self._made[file.path] = (os.fstat(fd), file.keep)

    def _remove(self, paths: Iterable[str]) -> None:
        for path in list(paths):
            entry = self._made.pop(path, None)
            try:
                # Somebody may have put another file there meanwhile; that one is not ours.
                if entry is not None and os.path.samestat(os.lstat(path), entry[0]):
                    os.unlink(path)
            except OSError:
                pass  # gone already
            if (fd := self._locks.pop(path, None)) is not None:
                os.close(fd)


def made_by_ivypy(path: str) -> bool:
    """Whether a file carries the mark of a whole file that ivypy made."""
    return _marked(path) == MADE


def _against(file: Wanted) -> str | None:
    """None: it is missing; "": it is there and right; else why it is neither."""
    try:
        status = os.lstat(file.path)
    except FileNotFoundError:
        folder = os.path.dirname(file.path)
        if not os.path.isdir(folder):
            return f"there is no folder {folder}: make it"
        if os.statvfs(folder).f_flag & os.ST_RDONLY:
            return f"{folder} is on a read-only filesystem: choose another folder, or mount it writable"
        if not os.access(folder, os.W_OK):
            return f"{folder} may not be written by this user: choose another folder, or change its mode"
        return None
    except OSError as error:
        return f"it cannot be looked at: {error.strerror}"
    match _marked(file.path):
        case b"made" if status.st_size == file.size:
            return ""
        case b"made":
            there, asked = of_bytes(status.st_size), of_bytes(file.size)
            return f"ivypy made it before, but with {there} and not {asked}: remove it"
        case b"making":
            return "another ivypy is making it, or was killed while it did: remove it if none is running"
    return (
        "it is there, and ivypy did not make it, so it is not overwritten: choose another path, remove it, or name it"
        " under `files` if its contents may be lost"
    )


def _short_of_space(files: Sequence[Wanted]) -> Iterable[Refusal]:
    """A refusal for each filesystem that has not enough room for the files that go there."""
    by_device: dict[int, list[Wanted]] = {}
    for file in files:
        by_device.setdefault(os.stat(os.path.dirname(file.path)).st_dev, []).append(file)
    for group in by_device.values():
        folder = os.path.dirname(group[0].path)
        space = os.statvfs(folder)
        free, needed = space.f_bavail * space.f_frsize, sum(file.size for file in group)
        be = "is" if len(group) == 1 else "are"
        if needed > free:
            yield Refusal(
                group[0].path,
                f"{_counted(len(group))}, {of_bytes(needed)}, {be} to be created, and {folder} has"
                f" {roughly(free)} free: free some, or ask for less",
            )


def _opened(path: str) -> int:
    """For writing, where that may be: some network filesystems lock nothing else. Raises OSError."""
    flags = os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, os.O_RDWR | flags)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
    return os.open(path, os.O_RDONLY | flags)


def _lock(fd: int) -> bool:
    """Whether the file is ours alone from now on. Where the filesystem knows no locks, it has to be taken as that."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def _is_at(path: str, fd: int) -> bool:
    """Whether an open file still stands at its path."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(fd))
    except OSError:
        return False


def _marked(path: str) -> bytes:
    try:
        return os.getxattr(path, MARK, follow_symlinks=False)
    except OSError:
        return b""


def _mark(fd: int, value: bytes) -> None:
    """Where the filesystem has no such attributes, a file that is kept will not be known as ours the next time."""
    try:
        os.setxattr(fd, MARK, value)
    except OSError as error:
        if error.errno not in (errno.ENOTSUP, errno.EPERM, errno.ENOSYS):
            raise


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _counted(files: int) -> str:
    return "1 file" if files == 1 else f"{files} files"


class _Progress:
    """Tells how far it is, now and then."""

    def __init__(self, size: int, count: int, tell: Callable[[str], None]) -> None:
        self._size, self._count, self._tell = size, count, tell
        self._written = 0
        self._began = self._told = time.monotonic()

    def add(self, size: int) -> None:
        self._written += size
        now = time.monotonic()
        if now - self._told >= REPORT_EVERY_S:
            self._told = now
            self._tell(f"creating files: {roughly(self._written)} of {of_bytes(self._size)} written")

    def done(self) -> None:
        if self._count:
            taken = time.monotonic() - self._began
            self._tell(f"created {_counted(self._count)}, {of_bytes(self._size)}, in {taken:.1f} s")
