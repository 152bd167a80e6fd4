"""Holds on LUNs: an open file that keeps others away from a block device or a file, and reads through it.

Rule: a block device is held by an exclusive claim, a file by a lock. What is held is read and opened through the hold
(`through`), whatever its path names by then.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import signal
import stat
import struct
import sys
import time
from collections.abc import Iterable
from typing import Final

from ..devices import signatures
from ..devices.storage_exports import LunKey, lun_key

# Two slaves on one machine may inspect a device in the same instant, and each inspection claims it for a moment.
CLAIM_TRIES: Final = 4
CLAIM_PAUSE_S: Final = 0.02
FS_IOC_GETFLAGS: Final = 0x80086601  # linux/fs.h, of 64-bit machines
FS_IMMUTABLE_FL, FS_APPEND_FL = 0x10, 0x20
IMMUTABLE, APPEND_ONLY = "immutable", "append-only"
LOCK: Final = struct.Struct("@hhqqi0q")  # struct flock of a 64-bit machine: type, whence, start, length (0: all), pid


def hold(path: str, locked: frozenset[LunKey] = frozenset()) -> int:
    """An open file of the block device or regular file at `path`, which nobody else can hold until it is closed.

    Of a block device it is a claim, of a file a lock; `locked`: files that this process has a lock of already. Raises
    OSError: EBUSY where someone else has a claim or lock, ENOTBLK where it is neither device nor file; that is not
    opened, since opening alone makes some things act (a watchdog, a tape).
    """
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        status = os.fstat(place)
        if stat.S_ISBLK(status.st_mode):
            return claim(through(place))
        if stat.S_ISREG(status.st_mode):
            held = os.open(through(place), os.O_RDONLY | os.O_CLOEXEC)
            if lun_key(status) in locked or lock(held):
                return held
            os.close(held)
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        raise OSError(errno.ENOTBLK, os.strerror(errno.ENOTBLK))
    finally:
        os.close(place)


def lock(fd: int) -> bool:
    """Whether the file is ours alone from now on. Where a filesystem has no locks, it counts as ours."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def is_written(path: str) -> bool | None:
    """Whether anyone, the kernel too, has a file open or mapped for writing; None where the kernel does not report it.

    By a lease, which the kernel grants for reading only while there is no such one (fcntl(2), F_SETLEASE), to a file's
    owner and to root, on the filesystems of the machine itself.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)  # else who opens it in this moment would end us by SIGIO
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(fd)
    return False


def is_locked(path: str) -> bool:
    """Whether anyone has a lock on any byte of a file (fcntl(2), F_SETLK and F_OFD_SETLK), as qemu and databases do.

    Other kinds of locks (flock) are not among these, nor those of a filesystem that has none.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        answer = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    except OSError:
        return False
    finally:
        os.close(fd)
    return bool(LOCK.unpack(answer)[0] != fcntl.F_UNLCK)


def fixed_as(path: str) -> str:
    """Whether nobody, root included, may overwrite a file: IMMUTABLE, APPEND_ONLY or "" (chattr(1))."""
    flags = bytearray(8)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        fcntl.ioctl(fd, FS_IOC_GETFLAGS, flags, True)
    except OSError:
        return ""  # a filesystem without such flags
    finally:
        os.close(fd)
    found = int.from_bytes(flags[:4], sys.byteorder)
    return IMMUTABLE if found & FS_IMMUTABLE_FL else APPEND_ONLY if found & FS_APPEND_FL else ""


def through(held: int) -> str:
    """The path that opens again what this descriptor holds, and nothing else."""
    return f"/proc/self/fd/{held}"


def claim(path: str) -> int:
    """An open file that keeps everyone else from mounting the block device or claiming it too, until it is closed.

    Raises OSError, EBUSY where someone else has a claim.
    """
    for _ in range(CLAIM_TRIES - 1):
        try:
            return os.open(path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            time.sleep(CLAIM_PAUSE_S)
    return os.open(path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC)


def is_claimed(path: str) -> bool:
    """Whether someone has a block device opened exclusively. What cannot be opened is noticed when it is read."""
    try:
        os.close(claim(path))
    except OSError as error:
        return error.errno == errno.EBUSY
    return False


def read_ends(path: str) -> tuple[signatures.DeviceEnds | None, str]:
    """(the bytes of a device or file that signatures are in, why they could not be read)."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        return None, str(error.strerror)
    try:
        size = os.lseek(fd, 0, os.SEEK_END)
        length = min(size, signatures.READ)
        inside = [at for at in signatures.FURTHER if at + signatures.BLOCK <= size]
        drop_cached(fd, [(0, length), (size - length, size), *((at, at + signatures.BLOCK) for at in inside)])
        further = tuple((at, _pread(fd, signatures.BLOCK, at)) for at in inside)
        return signatures.DeviceEnds(_pread(fd, length, 0), _pread(fd, length, size - length), size, further), ""
    except OSError as error:
        return None, str(error.strerror)
    finally:
        os.close(fd)


def drop_cached(fd: int, extents: Iterable[tuple[int, int]]) -> None:
    """Have these bytes read from the LUN: what another machine wrote to a shared device does not show in this one's
    page cache. The rest stays, since steps may be about what is in the cache.
    """
    size = os.lseek(fd, 0, os.SEEK_END)
    for start, end in extents:
        first = start // mmap.PAGESIZE * mmap.PAGESIZE
        last = -(-end // mmap.PAGESIZE) * mmap.PAGESIZE
        if last > first:
            os.posix_fadvise(fd, first, 0 if last >= size else last - first, os.POSIX_FADV_DONTNEED)


def _pread(fd: int, length: int, offset: int) -> bytes:
    data = os.pread(fd, length, offset)
    if len(data) < length:
        raise OSError(errno.EIO, f"{len(data)} of {length} bytes at {offset} could be read")
    return data
