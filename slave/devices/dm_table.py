"""The table of a device-mapper device: what it is made of. Its UUID stays while `dmsetup reload` gives it another one.

Rule: the kernel's own record, by an ioctl that only root may make; where that is not possible, there is no table.
"""

from __future__ import annotations

import fcntl
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CONTROL: Final = "dev/mapper/control"
HEADER: Final = struct.Struct("=3IIIIiIIIQ128s129s7s")  # struct dm_ioctl of linux/dm-ioctl.h
SPEC: Final = struct.Struct("=QQiI16s")  # struct dm_target_spec; its parameters follow, up to a zero byte
DM_TABLE_STATUS: Final = 0xC138FD0C
DM_STATUS_TABLE_FLAG, DM_BUFFER_FULL_FLAG, DM_SECURE_DATA_FLAG = 1 << 4, 1 << 8, 1 << 15
VERSION: Final = (4, 0, 0)
LEAST, MOST = 16 << 10, 4 << 20  # bytes of the answer
KEY_AT: Final = {"crypt": 1}  # which parameter is a secret, by type
# How many parameters (without the key) say which data it is, by type; those behind change while it is used. Of others,
# all do.
LASTING: Final = {"crypt": 4, "cache": 4, "writecache": 4, "snapshot": 2, "thin-pool": 3, "vdo": 2, "integrity": 3}


@dataclass(frozen=True)
class DmTarget:
    """A stretch of a device that is mapped to others."""

    start: int  # sectors
    length: int
    kind: str  # linear, striped, crypt ...
    parameters: tuple[str, ...]  # devices as major:minor; without keys

    @property
    def lasting(self) -> tuple[str, ...]:
        """The parameters without those that change while it is used: thresholds, flags, how far it is in sync."""
        words = self.parameters
        if self.kind not in ("raid", "mirror") or len(words) < 2 or not words[1].isdecimal():
            return words[: LASTING.get(self.kind)]
        behind = 2 + int(words[1])  # settings, or arguments of the log
        return (*words[:1], *words[2:3], *words[behind:]) if self.kind == "raid" else words[behind:]

    def mapped(self, place: int) -> tuple[int, int] | None:
        """Which sectors of the device at this place of the parameters it maps: the first, and the one behind the last.

        None where all may count.
        """
        after = self.parameters[place + 1 : place + 2]
        if self.kind not in ("linear", "crypt") or not after or not after[0].isdecimal():
            return None
        return int(after[0]), int(after[0]) + self.length


def table_of(number: tuple[int, int], root: Path) -> tuple[DmTarget, ...]:
    """The active table of the device with this number; none where it cannot be read."""
    try:
        control = os.open(root / CONTROL, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return ()
    try:
        return _targets(_answer(control, number))
    except OSError:
        return ()
    finally:
        os.close(control)


def _answer(control: int, number: tuple[int, int]) -> bytes:
    """Raises OSError."""
    size = LEAST
    flags = DM_STATUS_TABLE_FLAG | DM_SECURE_DATA_FLAG
    while True:
        buffer = bytearray(size)
        HEADER.pack_into(buffer, 0, *VERSION, size, HEADER.size, 0, 0, flags, 0, 0, os.makedev(*number), b"", b"", b"")
        fcntl.ioctl(control, DM_TABLE_STATUS, buffer, True)
        if not HEADER.unpack_from(buffer)[7] & DM_BUFFER_FULL_FLAG or size >= MOST:
            return bytes(buffer)
        size *= 4


def _targets(answer: bytes) -> tuple[DmTarget, ...]:
    header = HEADER.unpack_from(answer)
    first, count = header[4], header[5]
    targets, at = [], first
    for _ in range(count):
        start, length, _, following, kind = SPEC.unpack_from(answer, at)
        end = answer.find(b"\0", at + SPEC.size)
        text = answer[at + SPEC.size : end if end >= 0 else None].decode("utf-8", "replace").split()
        name = kind.split(b"\0", 1)[0].decode("utf-8", "replace")
        known = tuple(word for place, word in enumerate(text) if place != KEY_AT.get(name))
        targets.append(DmTarget(start, length, name, known))
        at = first + following
    return tuple(targets)
