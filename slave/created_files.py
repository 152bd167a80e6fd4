"""Files that ivypy makes to drive, and removes.

Rule: a file is written only by the process that made it, from nothing (O_EXCL), and only that process removes it, at
its exit, unless it is to be kept; or, where that one was killed, the one that takes its place in the same run. Made
files carry the extended attribute `user.ivypy`: "making", and once they are whole "made", with the file's inode and the
time of its last change. What already stands at a path is used as it is, if it was made by ivypy, is whole, has exactly
the size asked for, and was not changed since; after a run that wrote to it, the attribute is set anew. If it was
changed (by somebody, or by a run that was killed), it is used only if the user agreed to that; everything else there is
somebody's, and refused. (A file of one's own that may be overwritten is named under the plan's `files`, where the user
has to agree to it, too.) A file that is made or used so is locked (flock) until the process ends, however it ends: no
other run drives it meanwhile, or finds it removed.
"""

import contextlib
import errno
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from ..protocol.agreement import unagreed
from ..protocol.messages import FileToCreate, Identity, Notice, NoticeKind, Refusal
from ..protocol.quantities import of_bytes, roughly
from .fill_data import pieces
from .lun_identity import identity_of_file
from .storage_exports import What, what_is
from .worker_progress import WORK
from .write_gate import lock

MARK: Final = "user.ivypy"
MAKING, MADE = b"making", b"made"  # MADE is followed by what the file was then
MOST_FILES: Final = 100_000  # of one entry
SYNC_EVERY: Final = 64 << 20  # bytes: so that no fsync takes long, and little memory is dirty
REPORT_EVERY_S: Final = 10.0
NONE_USED: Final[Mapping[str, Identity]] = MappingProxyType({})
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
    if asked.count > MOST_FILES:
        raise CannotMake([Refusal(path, f"{asked.count} files are more than {MOST_FILES:,}: ask for fewer")])
    if asked.count > 1 and "{}" not in path:
        raise CannotMake(
            [Refusal(path, f"{asked.count} files need {{}} in their path, which becomes each one's number")]
        )
    return [Wanted(path.replace("{}", str(i)), asked.size, asked.keep) for i in range(asked.count)]


def all_wanted(asked: Iterable[FileToCreate]) -> list[Wanted]:
    """The single files of all entries. Raises CannotMake, with all reasons."""
    files: list[Wanted] = []
    refusals: list[Refusal] = []
    for one in asked:
        try:
            files += wanted(one)
        except CannotMake as error:
            refusals += error.refusals
    if refusals:
        raise CannotMake(refusals)
    return files


class There(Enum):
    """What stands where a file is to be made, if it may be used."""

    NOTHING = "nothing"
    OURS = "ours"  # ivypy made it, and nobody but ivypy has written to it since
    CHANGED = "changed"  # ivypy made it; it was written since, and nobody knows by whom


class Files:
    """Remembers the files that this process made or has for itself; thread-safe enough for one maker."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[os.stat_result, bool]] = {}  # path -> (what it is, whether it is kept)
        self._locks: dict[str, int] = {}  # path -> the open file that holds its lock; the end of the process closes it
        self._cancelled = threading.Event()

    def make(
        self,
        files: Sequence[Wanted],
        tell: Callable[[Notice], None],
        used: Mapping[str, Identity] = NONE_USED,
        inherited: Container[str] = (),
    ) -> None:
        """Have all of `files` there; those made are written whole and synced. Blocks; `tell` gets notices meanwhile.

        `used`, by path: changed files that are used all the same, since the user agreed to it. Of these, those that are
        `inherited` (made for this run by a process that is no more) are this one's to remove. Raises CannotMake with
        every reason (nothing is left of those that this call made), or Cancelled.
        """
        missing, refusals = self._look(files, used)
        self._inherit([file for file in files if file.path in inherited], used)
        if not refusals:
            refusals = list(_short_of_space(missing))
        if refusals:
            raise CannotMake(refusals)
        to_make = {file.path for file in missing}
        for file in files:
            if file.path not in to_make:
                text = f"{file.path} is used as it is: ivypy made it before, with exactly {of_bytes(file.size)}"
                tell(Notice(NoticeKind.FILE_REUSED, text))
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

    def made(self) -> frozenset[str]:
        """The paths of those that are this process's to remove unless they are kept."""
        return frozenset(self._made)

    def locked(self) -> frozenset[What]:
        """The files that this process has for itself."""
        return frozenset(what_is(os.fstat(fd)) for fd in self._locks.values())

    def held(self, path: str) -> int:
        """The open file of one that was made or is used; for as long as this process has it."""
        return self._locks[path]

    def settle(self, written: Container[What]) -> None:
        """Mark those of our files that were `written` as they are now. Nothing may be writing to them any more."""
        for fd in self._locks.values():
            with contextlib.suppress(OSError):  # the mark is then an old one, and the user is asked the next time
                if what_is(os.fstat(fd)) in written:
                    _mark(fd, _made(os.fstat(fd)))

    def remove(self) -> None:
        """Remove what was made and is not kept."""
        self._remove([path for path, (_, keep) in self._made.items() if not keep])

    def _look(self, files: Sequence[Wanted], used: Mapping[str, Identity]) -> tuple[list[Wanted], list[Refusal]]:
        """(the files that have to be made, what stands against others)."""
        missing, refusals = [], []
        for file in files:
            found = there(file)
            if found is There.NOTHING:
                missing.append(file)
            elif reason := found if isinstance(found, str) else self._take(file, used.get(file.path)):
                refusals.append(Refusal(file.path, reason))
        counted = Counter(file.path for file in files)
        refusals += [
            Refusal(path, "it is to be created twice: give each file a path of its own")
            for path, count in counted.items()
            if count > 1
        ]
        return missing, refusals

    def _take(self, file: Wanted, agreed: Identity | None) -> str:
        """Have for ourselves a whole file that is there; why that cannot be, or ""."""
        path = file.path
        if path in self._locks:
            return ""
        try:
            fd = _opened(path)
        except OSError as error:
            return f"it cannot be opened: {error.strerror}"
        reason = _against_use(fd, path, agreed)
        if reason:
            os.close(fd)
        else:
            self._locks[path] = fd
        return reason

    def _inherit(self, files: Iterable[Wanted], used: Mapping[str, Identity]) -> None:
        """Have those that are used for our own to remove; only where each is the very file that was made."""
        for file in files:
            fd, agreed = self._locks.get(file.path), used.get(file.path)
            if fd is not None and agreed is not None and not _another(fd, file.path, agreed):
                self._made[file.path] = (os.fstat(fd), file.keep)

    def _write(self, file: Wanted, report: "_Progress") -> None:
        fd = os.open(file.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        self._locks[file.path] = fd
        self._made[file.path] = (os.fstat(fd), False)  # removed at exit until it is whole
        lock(fd)  # nobody else can have it: it has not been marked as made
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
        os.fsync(fd)
        _mark(fd, _made(os.fstat(fd)))
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
    return _marked(path).split(b" ")[0] == MADE


def there(file: Wanted) -> There | str:
    """What stands at its path; or in a sentence why the file can neither be made nor used."""
    try:
        status = os.lstat(file.path)
    except FileNotFoundError:
        return _against_making(file.path) or There.NOTHING
    except OSError as error:
        return f"it cannot be looked at: {error.strerror}"
    mark = _marked(file.path)
    match mark.split(b" ")[0]:
        case b"made" if status.st_size == file.size:
            return There.OURS if mark == _made(status) else There.CHANGED
        case b"made":
            present, asked = of_bytes(status.st_size), of_bytes(file.size)
            return f"ivypy made it before, but with {present} and not {asked}: remove it"
        case b"making":
            return "another ivypy is making it, or was killed while it did: remove it if none is running"
    return (
        "it is there, and ivypy did not make it, so it is not overwritten: choose another path, remove it, or name it"
        " under `files` if its contents may be lost"
    )


def _against_making(path: str) -> str:
    """Why a file cannot be made at this path, where nothing is; or ""."""
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        return f"there is no folder {folder}: make it"
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        return f"{folder} is on a read-only filesystem: choose another folder, or mount it writable"
    if not os.access(folder, os.W_OK):
        return f"{folder} may not be written by this user: choose another folder, or change its mode"
    return ""


def _against_use(fd: int, path: str, agreed: Identity | None) -> str:
    """Lock a whole file that is there, and judge it anew: why it is not to be used, or ""."""
    if not lock(fd) or not _is_at(path, fd):  # whoever had it may have removed it between our looks
        return IN_USE
    if _marked(fd) == _made(os.fstat(fd)):
        return ""
    if agreed is None:
        return (
            "ivypy made it, and it was written since, by somebody or by a run that was killed: remove it, or agree to"
            " it with the token that `ivypy devices` prints"
        )
    return _another(fd, path, agreed)


def _another(fd: int, path: str, agreed: Identity) -> str:
    """Why it is not the very file that was agreed to, or ""."""
    try:
        found = identity_of_file(path, os.fstat(fd).st_size, fd)
    except OSError as error:
        return f"it cannot be told which file it is: {error.strerror}"
    return unagreed({path: agreed}, {path: found}).get(path, "")


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


def _is_at(path: str, fd: int) -> bool:
    """Whether an open file still stands at its path."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(fd))
    except OSError:
        return False


def _marked(place: str | int) -> bytes:
    try:
        return os.getxattr(place, MARK, follow_symlinks=isinstance(place, int))
    except OSError:
        return b""


def _made(status: os.stat_result) -> bytes:
    """The mark of a whole file that is now so; to set it changes nothing of this."""
    return b"%s %d %d" % (MADE, status.st_ino, status.st_mtime_ns)


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

    def __init__(self, size: int, count: int, tell: Callable[[Notice], None]) -> None:
        self._size, self._count, self._tell = size, count, tell
        self._written = 0
        self._began = self._told = time.monotonic()

    def add(self, size: int) -> None:
        WORK.step()
        self._written += size
        now = time.monotonic()
        if now - self._told >= REPORT_EVERY_S:
            self._told = now
            text = f"creating files: {roughly(self._written)} of {of_bytes(self._size)} written"
            self._tell(Notice(NoticeKind.CREATING_FILES, text))

    def done(self) -> None:
        if self._count:
            taken = time.monotonic() - self._began
            text = f"created {_counted(self._count)}, {of_bytes(self._size)}, in {taken:.1f} s"
            self._tell(Notice(NoticeKind.FILES_CREATED, text))
