"""Which parts of a file were never written.

Rule: reads of a hole, or of an extent that fallocate made and nobody wrote, never reach the disk: a factor of seven
was measured. So they are counted, by FS_IOC_FIEMAP, where the filesystem has it; others (tmpfs, NFS) have none.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from typing import Final

from ...protocol.payload import Notice, NoticeKind

FS_IOC_FIEMAP: Final = 0xC020660B
SYNC: Final = 0x1  # write out what is not allocated yet, before mapping
LAST, UNWRITTEN = 0x1, 0x800
BATCH: Final = 512  # extents requested at once
HEADER: Final = struct.Struct("=QQLLLL")  # start, length, flags, mapped, room, reserved
EXTENT: Final = struct.Struct("=QQQ16xL12x")  # offset in the file, on the device, length; flags


def unwritten_bytes(path: str) -> int:
    """How many bytes of a file are holes or unwritten extents; 0 where the filesystem does not report it.

    Raises OSError where the file cannot be opened.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(fd).st_size
        return size - _written(fd, size)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.ENOTTY, errno.ENOSYS, errno.EINVAL):
            return 0
        raise
    finally:
        os.close(fd)


def _written(fd: int, size: int) -> int:
    written, at = 0, 0
    while at < size:
        request = bytearray(HEADER.size + BATCH * EXTENT.size)
        HEADER.pack_into(request, 0, at, size - at, SYNC, 0, BATCH, 0)
        fcntl.ioctl(fd, FS_IOC_FIEMAP, request, True)
        mapped = HEADER.unpack_from(request)[3]
        if mapped == 0:  # a hole up to the end
            break
        for i in range(mapped):
            offset, _, length, flags = EXTENT.unpack_from(request, HEADER.size + i * EXTENT.size)
            if not flags & UNWRITTEN:
                written += min(offset + length, size) - offset
            at = offset + length
            if flags & LAST:
                return written
    return written


def notice(path: str) -> Notice | None:
    """The notice about a file that was not written whole; None if it was."""
    missing = unwritten_bytes(path)
    if not missing:
        return None
    return Notice(
        NoticeKind.UNWRITTEN_EXTENTS,
        f"{missing:,} of {os.path.getsize(path):,} bytes of {path} were never written, so reads of them do not reach"
        " the disk: write the file whole once, or let the plan `create` it",
    )
