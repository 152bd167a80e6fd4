"""Files that ivypy creates to drive, and removes.

Rule: a file is written only by the process that created it, from nothing (O_EXCL), and only that process removes it, at
its exit, unless it is to be kept; or, where that one was killed, the one that takes its place in the same run. What
already stands at a path is used or refused as `existing_files` says; after a run that wrote to it, its mark is set
anew. (A file of one's own that may be overwritten is named under the plan's `files`, where the user has to agree to it,
too.) A file that is created or used so is locked (flock) until the process ends, however it ends: no other run drives
it meanwhile, or finds it removed.
"""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from ...protocol.payload import Identity, Notice, NoticeKind, Refusal
from ...protocol.quantities import exact_size, rough_size
from ...protocol.refusals import RefusalReason
from ..devices.storage_exports import LunKey, lun_key
from ..gate.file_changes import note, note_all, noted, put, times_of
from ..gate.holds import lock
from ..worker_progress import WORK
from .existing_files import (
    MADE,
    MAKING,
    MARK,
    CannotCreate,
    Existing,
    PlannedFile,
    against_use,
    another_file,
    existing_at,
    open_to_lock,
)
from .lun_identity import WRITTEN

PIECE: Final = 1 << 20
SYNC_EVERY: Final = 64 << 20  # bytes: so that no fsync takes long, and little memory is dirty
REPORT_EVERY_S: Final = 10.0
NONE_USED: Final[Mapping[str, Identity]] = MappingProxyType({})


class Cancelled(Exception):
    """The slave is to end; files that were being created are removed."""


class CreatedFiles:
    """The files that this process created or locked; `cancel` may be called from another thread than the others."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[os.stat_result, bool]] = {}  # path -> (what it is, whether it is kept)
        self._locks: dict[str, int] = {}  # path -> the open file that holds its lock; the end of the process closes it
        self._written: set[str] = set()  # paths of those that this process wrote from nothing
        self._to_mark: set[str] = set()  # paths of those that stay: `remove` never closes these
        self._notes: dict[str, dict[str, bytes]] = {}  # by path: what to mark it with, if more than MADE
        self._cancelled = threading.Event()

    def create(
        self,
        files: Sequence[PlannedFile],
        notify: Callable[[Notice], None],
        used: Mapping[str, Identity] = NONE_USED,
        inherited: Container[str] = (),
    ) -> None:
        """Create those of `files` that do not exist: written whole and synced. Blocks; `notify` gets notices meanwhile.

        `used`, by path: changed files that are used all the same, since the user agreed to it. Of these, those that are
        `inherited` (made for this run by a process that is no more) are this one's to remove. Raises CannotCreate with
        every reason (nothing is left of those that this call made), or Cancelled.
        """
        missing, refusals = self._check_existing(files, used, inherited)
        self._inherit([file for file in files if file.path in inherited], used)
        if not refusals:
            refusals = list(_short_of_space(missing))
        if refusals:
            raise CannotCreate(refusals)
        to_make = {file.path for file in missing}
        for file in files:
            if file.path not in to_make:
                text = f"{file.path} is used as it is: ivypy made it before, with exactly {exact_size(file.size)}"
                notify(Notice(NoticeKind.FILE_REUSED, text))
        report = _WriteProgress(sum(file.size for file in missing), len(missing), notify)
        made: list[PlannedFile] = []
        try:
            for file in missing:
                made.append(file)
                self._write(file, report)
        except OSError as error:
            self._remove(f.path for f in made)
            reason = RefusalReason.NOT_WRITTEN.sentence(error=error.strerror)
            raise CannotCreate([Refusal(made[-1].path, reason)]) from None
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

    def locked(self) -> frozenset[LunKey]:
        """The files that this process has for itself."""
        keys = set()
        for fd in list(self._locks.values()):
            with contextlib.suppress(OSError):  # it is removed in this moment, by another thread
                keys.add(lun_key(os.fstat(fd)))
        return frozenset(keys)

    def written(self) -> frozenset[LunKey]:
        """Of the locked ones, those that this process wrote itself, from nothing."""
        return frozenset(lun_key(os.fstat(self._locks[path])) for path in self._written)

    def held(self, path: str) -> int:
        """The open file of one that was made or is used; for as long as this process has it."""
        return self._locks[path]

    def settle(self, written: Mapping[LunKey, str]) -> list[str]:
        """Mark those of our files that were `written` as they are now, unless somebody changed one after that change.

        Nothing may be writing to them any more. Returns those that could not be marked: the user has to agree to them
        the next time.
        """
        unmarked = []
        for path, fd in list(self._locks.items()):  # others are being removed meanwhile, and closed
            if path not in self._to_mark:
                continue
            try:
                left = written.get(lun_key(os.fstat(fd)))
                if left is not None and not self._mark(fd, path, left):
                    unmarked.append(path)
            except OSError:
                unmarked.append(path)
        return unmarked

    def _mark(self, fd: int, path: str, left: str) -> bool:
        """False where that cannot be kept; one that somebody changed is not to be marked."""
        return left not in ("", times_of(fd)) or note_all(fd, self._notes.get(path, {MARK: MADE}), left)

    def remove(self) -> None:
        """Remove what was made and is not kept."""
        self._remove([path for path, (_, keep) in self._made.items() if not keep])

    def _check_existing(
        self, files: Sequence[PlannedFile], used: Mapping[str, Identity], inherited: Container[str]
    ) -> tuple[list[PlannedFile], list[Refusal]]:
        """(the files that have to be created, refusals of others)."""
        missing, refusals = [], []
        for file in files:
            existing = existing_at(file)
            if existing is Existing.NOTHING:
                missing.append(file)
            elif (
                reason := existing
                if isinstance(existing, str)
                else self._take(file, used.get(file.path), file.path in inherited)
            ):
                refusals.append(Refusal(file.path, reason))
        counted = Counter(file.path for file in files)
        refusals += [
            Refusal(path, RefusalReason.CREATED_TWICE.sentence()) for path, count in counted.items() if count > 1
        ]
        return missing, refusals

    def _take(self, file: PlannedFile, agreed: Identity | None, made: bool) -> str:
        """Lock a whole file that exists; why that cannot be, or ""; `made`: by an earlier slave of this run."""
        path = file.path
        if path in self._locks:
            return ""
        try:
            fd = open_to_lock(path)
        except OSError as error:
            return RefusalReason.NOT_OPENED.sentence(error=error.strerror)
        reason = against_use(fd, path, agreed, made)
        if reason:
            os.close(fd)
        else:
            self._locks[path] = fd
            self._to_mark.add(path)
            if (agreed_to := noted(fd, WRITTEN)) is not None:  # a token for it stays good, as only ivypy writes it
                self._notes[path] = {MARK: MADE, WRITTEN: agreed_to}
        return reason

    def _inherit(self, files: Iterable[PlannedFile], used: Mapping[str, Identity]) -> None:
        """Take over the removal of those that are used; only if each is exactly the file that was created."""
        for file in files:
            fd, agreed = self._locks.get(file.path), used.get(file.path)
            if fd is not None and agreed is not None and not another_file(fd, file.path, agreed, made=True):
                self._made[file.path] = (os.fstat(fd), file.keep)
                if not file.keep:
                    self._to_mark.discard(file.path)

    def _write(self, file: PlannedFile, report: _WriteProgress) -> None:
        fd = os.open(file.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        self._locks[file.path] = fd
        self._written.add(file.path)
        self._made[file.path] = (os.fstat(fd), False)  # removed at exit until it is whole
        lock(fd)  # nobody else can have it: it has not been marked as made
        put(fd, MARK, MAKING)  # without attributes, a file that is kept is not recognized the next time
        unsynced = 0
        for piece in random_pieces(file.size):
            if self._cancelled.is_set():
                raise Cancelled
            _write_all(fd, piece)
            report.add(len(piece))
            unsynced += len(piece)
            if unsynced >= SYNC_EVERY:
                os.fdatasync(fd)
                unsynced = 0
        os.fsync(fd)
        note(fd, MARK, MADE)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        self._made[file.path] = (os.fstat(fd), file.keep)
        if file.keep:
            self._to_mark.add(file.path)

    def _remove(self, paths: Iterable[str]) -> None:
        for path in list(paths):
            entry = self._made.pop(path, None)
            self._written.discard(path)
            self._to_mark.discard(path)
            try:
                # Somebody may have put another file there meanwhile; that one is not ours.
                if entry is not None and os.path.samestat(os.lstat(path), entry[0]):
                    os.unlink(path)
            except OSError:
                pass  # gone already
            if (fd := self._locks.pop(path, None)) is not None:
                os.close(fd)


def _short_of_space(files: Sequence[PlannedFile]) -> Iterable[Refusal]:
    """A refusal for each filesystem that has not enough room for the files that go there."""
    by_device: dict[int, list[PlannedFile]] = {}
    for file in files:
        by_device.setdefault(os.stat(os.path.dirname(file.path)).st_dev, []).append(file)
    for group in by_device.values():
        folder = os.path.dirname(group[0].path)
        space = os.statvfs(folder)
        free, needed = space.f_bavail * space.f_frsize, sum(file.size for file in group)
        be = "is" if len(group) == 1 else "are"
        if needed > free:
            reason = RefusalReason.NO_SPACE.sentence(
                files=_counted(len(group)), needed=exact_size(needed), be=be, folder=folder, free=rough_size(free)
            )
            yield Refusal(group[0].path, reason)


def random_pieces(size: int) -> Iterator[bytes]:
    """`size` random bytes, in pieces of PIECE and one shorter at the end, faster than disks take them.

    One random MiB is made at the start; each piece is that one with every byte value replaced by another, by a new
    random permutation of the 256 values. So nothing can compress it, and no block of 512 bytes occurs twice: it would
    have to be the same place under two permutations that agree on all of its some 220 values.
    """
    base = os.urandom(min(size, PIECE))
    permutations = random.Random(os.urandom(32))
    for start in range(0, size, PIECE):
        piece = base.translate(bytes(permutations.sample(range(256), 256)))
        yield piece if size - start >= PIECE else piece[: size - start]


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _counted(files: int) -> str:
    return "1 file" if files == 1 else f"{files} files"


class _WriteProgress:
    """Sends a notice of its progress every REPORT_EVERY_S."""

    def __init__(self, size: int, count: int, notify: Callable[[Notice], None]) -> None:
        self._size, self._count, self._notify = size, count, notify
        self._written = 0
        self._began = self._notified = time.monotonic()

    def add(self, size: int) -> None:
        WORK.step()
        self._written += size
        now = time.monotonic()
        if now - self._notified >= REPORT_EVERY_S:
            self._notified = now
            text = f"creating files: {rough_size(self._written)} of {rough_size(self._size)} written"
            self._notify(Notice(NoticeKind.CREATING_FILES, text))

    def done(self) -> None:
        if self._count:
            taken = time.monotonic() - self._began
            text = f"created {_counted(self._count)}, {exact_size(self._size)}, in {taken:.1f} s"
            self._notify(Notice(NoticeKind.FILES_CREATED, text))
