"""The page cache of LUNs between steps: what was written is written back, what was read is dropped.

Rule: both may take minutes, and go piece by piece in turns of a second, so that each turn shows that it advances. A LUN
that does not finish a piece is given up, like any that does not answer. What the kernel cannot do is left out: fsync
alone writes back as well.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import stat
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from ...protocol.older_python import zip_strict
from ...protocol.payload import Notice, NoticeKind
from ..bounded_calls import ANSWER_S, call_all
from ..gate.holds import through

PIECE: Final = 8 << 20  # bytes: a slow disk writes them within ANSWER_S
TURN_S: Final = 1.0
NOTICED: Final = 0.01  # of a LUN: less in the cache changes no figure
BLKFLSBUF: Final = 0x1261
CACHESTAT: Final = 451  # the number of the system call, of every processor; since Linux 6.5
SYNC_FILE_RANGE: Final = 7  # wait for earlier writeback of these pages, write them, wait for that
MOST_MAPPED: Final = 64 << 30  # bytes of a LUN whose pages are looked at one by one, where there is no cachestat
MAPPED: Final = 1 << 30  # of these at once
IN_MEMORY: Final = frozenset({"tmpfs", "ramfs", "devtmpfs", "hugetlbfs"})  # their cache is where the data is

Settling = Generator[None, None, float]
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p


@dataclass(frozen=True)
class CachedLun:
    path: str
    open: Callable[[], int]  # a descriptor of its own; raises OSError
    drop: bool  # what is in the cache, once that is written back


@dataclass(frozen=True)
class _Turn:
    over: bool
    left: float = 0.0  # the part of the LUN that is still in the cache


def settle(luns: Sequence[CachedLun]) -> list[Notice | None]:
    """Write all of these back, and drop what is to be dropped; of each, a notice of what could not be done.

    May take long, but each call of `call_all` in it has the time of every call.
    """
    notices: list[Notice | None] = [None] * len(luns)
    work = {place: _settling(lun) for place, lun in enumerate(luns)}
    while work:
        turns = call_all([partial(_turn, settling) for settling in work.values()], ANSWER_S)
        for place, turn in zip_strict(list(work), turns):
            if not (isinstance(turn, _Turn) and not turn.over):
                notices[place] = _notice(luns[place].path, turn)
                del work[place]
    return notices


def _notice(path: str, turn: _Turn | OSError | None) -> Notice | None:
    if turn is None:
        text = f"{path} did not write back within {ANSWER_S:g} s what earlier steps left in the page cache"
        return Notice(NoticeKind.NOT_WRITTEN_BACK, text)
    if isinstance(turn, OSError):
        text = f"{path} cannot write back what earlier steps left in the page cache: {turn.strerror}"
        return Notice(NoticeKind.NOT_WRITTEN_BACK, text)
    if turn.left <= NOTICED:
        return None
    text = f"{100 * turn.left:.0f} % of {path} stays in the page cache: another process has it mapped"
    return Notice(NoticeKind.STAYS_CACHED, text)


def _turn(settling: Settling) -> _Turn:
    """As many pieces as a turn has time for, and at least the next. Raises OSError."""
    until = time.monotonic() + TURN_S
    try:
        next(settling)
        while time.monotonic() < until:
            next(settling)
    except StopIteration as end:
        return _Turn(True, end.value)
    return _Turn(False)


def _settling(lun: CachedLun) -> Settling:
    """Yield after each piece; the part of the LUN that stays in the cache. Raises OSError."""
    fd = lun.open()
    try:
        size = os.lseek(fd, 0, os.SEEK_END)
        if _cached_pages(fd) == 0:  # a large LUN has many pieces
            sync(fd)
            return 0.0
        for start in range(0, size, PIECE):
            write_back(fd, start, PIECE)
            yield
        sync(fd)
        yield
        if not lun.drop:
            return 0.0
        for start in range(0, size, PIECE):
            last = start + PIECE >= size
            os.posix_fadvise(fd, start, 0 if last else PIECE, os.POSIX_FADV_DONTNEED)
            yield
        if stat.S_ISBLK(os.fstat(fd).st_mode):
            flush_buffers(fd)
            yield
        resident = cached_bytes(fd, size)
        return 0.0 if resident is None else min(resident / size, 1.0)
    finally:
        os.close(fd)


def write_back(fd: int, start: int, length: int) -> None:
    """Write the dirty pages of these bytes to the LUN, and wait for that; where the kernel cannot, fsync will."""
    if (call := getattr(_LIBC, "sync_file_range", None)) is not None:
        call(fd, ctypes.c_int64(start), ctypes.c_int64(length), ctypes.c_uint(SYNC_FILE_RANGE))


def sync(fd: int) -> None:
    """Write all of it back, with what the file system keeps about it. Raises OSError."""
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EROFS):  # a file system that is never written
            raise


def flush_buffers(fd: int) -> None:
    """Drop all that the kernel keeps of a block device; without the right to it, nothing happens."""
    try:
        fcntl.ioctl(fd, BLKFLSBUF, 0)
    except PermissionError:
        pass


def cached_bytes(fd: int, size: int) -> int | None:
    """How many bytes of it are in the page cache; None where the kernel does not tell."""
    pages = _cached_pages(fd)
    if pages is None and size <= MOST_MAPPED and _may_look(fd):
        pages = _resident_pages(fd, size)
    return None if pages is None else pages * mmap.PAGESIZE


def _may_look(fd: int) -> bool:
    """Whether mincore tells this user the truth: others are told that all pages are there."""
    return os.fstat(fd).st_uid == os.geteuid() or os.access(through(fd), os.W_OK)


def dirty_bytes(fd: int) -> int | None:
    """How many bytes of it are in the page cache and not on its disk; None where the kernel does not tell.

    Pages count whole, and so do large folios. One that was changed while it is written counts as two, but all of them
    for no more than are cached.
    """
    pages = _cachestat(fd)
    return None if pages is None else min(pages.dirty + pages.written_back, pages.cached) * mmap.PAGESIZE


def _cached_pages(fd: int) -> int | None:
    pages = _cachestat(fd)
    return None if pages is None else pages.cached


@dataclass(frozen=True)
class _Pages:
    cached: int
    dirty: int
    written_back: int  # at this moment


def _cachestat(fd: int) -> _Pages | None:
    """By cachestat(2), which walks them all."""
    everything = (ctypes.c_uint64 * 2)(0, 0)  # from, length; 0: to the end
    counted = (ctypes.c_uint64 * 5)()  # in the cache, dirty, under writeback, evicted, lately evicted
    failed = _LIBC.syscall(ctypes.c_long(CACHESTAT), ctypes.c_uint(fd), everything, counted, ctypes.c_uint(0))
    return None if failed else _Pages(*counted[:3])


def _resident_pages(fd: int, size: int) -> int | None:
    """By mincore(2), which brings nothing into the cache."""
    pages = 0
    for start in range(0, size, MAPPED):
        length = min(MAPPED, size - start)
        at = _LIBC.mmap(
            None, ctypes.c_size_t(length), mmap.PROT_READ, mmap.MAP_SHARED, ctypes.c_int(fd), ctypes.c_int64(start)
        )
        if at in (None, ctypes.c_void_p(-1).value):
            return None
        flags = ctypes.create_string_buffer(-(-length // mmap.PAGESIZE))
        failed = _LIBC.mincore(ctypes.c_void_p(at), ctypes.c_size_t(length), flags)
        _LIBC.munmap(ctypes.c_void_p(at), ctypes.c_size_t(length))
        if failed:
            return None
        pages += len(flags.raw) - flags.raw.count(0)
    return pages
