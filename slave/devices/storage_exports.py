"""Finds what this machine serves from block devices and files without a claim that the kernel would report.

Rule: a use is found by what is used, not by its path: that may be another's by now, or lead elsewhere in another
mount namespace. What claims a device in the kernel (mounts, volumes, arrays, DRBD) shows by that, whatever its name.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...protocol.refusals import RefusalReason
from ..kernel_files import first_line, path_in

LunKey = tuple[
    str, int, int
]  # a LUN, by whatever path: its kind; a device's number, or where a file and which one it is

LOOP_GET_STATUS64: Final = 0x4C05
LOOP_INFO64: Final = 232  # bytes; the first three u64: the backing file's st_dev, st_ino, and of a device its st_rdev
NVMET: Final = "nvmet namespace"
EXPORTS: Final = (  # (files whose text is the path of what is exported, what exports it)
    ("sys/kernel/config/target/core/*/*/udev_path", "LIO backstore"),
    ("sys/kernel/config/nvmet/subsystems/*/namespaces/*/device_path", NVMET),
    ("sys/kernel/config/usb_gadget/*/functions/mass_storage.*/lun.*/file", "USB gadget"),
    ("sys/kernel/scst_tgt/devices/*/filename", "SCST device"),
)
FILEIO: Final = re.compile(r"\bFile: (.*?) +Size: ")  # in `info` of a LIO backstore that opens by path
UNSET: Final = ("", "none", "(null)")


@dataclass(frozen=True)
class Use:
    """That something uses a block device or file: how, and who, where that is known."""

    reason: RefusalReason
    words: Mapping[str, object]  # the fields of its sentence, but for the subject
    user: LunKey | None = None  # the block device that is served from it
    pid: int = 0  # the process that has it open
    size: int = -1  # bytes, of an open file

    def __hash__(self) -> int:
        """Of the words, too: a device that is mounted in a thousand places has a thousand uses of one reason."""
        return hash((self.reason, *self.words.values()))

    def sentence(self, subject: str) -> str:
        """`subject`: what is used, as a sentence calls it."""
        return self.reason.sentence(subject=subject, **self.words)


@dataclass(frozen=True)
class ServedPath:
    """A path that something is served from."""

    path: str
    use: Use
    what: Callable[[], LunKey | None]  # which device or file that is; may block as long as its filesystem does


def lun_key(status: os.stat_result) -> LunKey:
    """Which block device or file it is; for as long as it is held open, no other is the same."""
    if stat.S_ISBLK(status.st_mode):
        return block(status.st_rdev)
    return "file", status.st_dev, status.st_ino


def block(number: int) -> LunKey:
    """The block device of this st_rdev."""
    return "block", number, 0


def number_of(folder: Path) -> int:
    """st_rdev of the device of a folder in sysfs; 0 where it is none."""
    major, _, minor = first_line(folder / "dev").partition(":")
    return os.makedev(int(major), int(minor)) if minor else 0


def lun_key_at(root: Path, path: str) -> LunKey | None:
    """The file or device at a path below `root`; None where nothing is, or it cannot be read."""
    try:
        return lun_key(os.stat(root / path.lstrip("/")))
    except (OSError, ValueError):
        return None


def served_paths(root: Path) -> Iterator[ServedPath]:
    """Whatever this machine serves from block devices and files."""
    yield from _loops(root)
    yield from _zrams(root)
    yield from _exports(root)
    yield from _guests(root)


def backing_of(loop: Path, root: Path) -> LunKey | None:
    """The file or device that the loop device of this sysfs folder is over, by the kernel's own record; None where it
    is none.
    """
    path = path_in(loop / "loop/backing_file")
    return (_recorded(root / "dev" / loop.name) or lun_key_at(root, path)) if path else None


def _loops(root: Path) -> Iterator[ServedPath]:
    for entry in sorted((root / "sys/block").glob("loop*")):
        if path := path_in(entry / "loop/backing_file"):
            device = f"/dev/{entry.name}"
            use = Use(RefusalReason.BELOW_LOOP, {"device": device}, block(number_of(entry)))
            yield ServedPath(path, use, lambda entry=entry: backing_of(entry, root))  # type: ignore[misc]


def _recorded(loop: Path) -> LunKey | None:
    info = bytearray(LOOP_INFO64)
    try:
        fd = os.open(loop, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.ioctl(fd, LOOP_GET_STATUS64, info, True)
    except OSError:
        return None
    finally:
        os.close(fd)
    return recorded(info)


def recorded(info: bytes | bytearray) -> LunKey:
    """The file or device that a loop device is over, by the kernel's LOOP_INFO64 of it.

    Before Linux 4.16 lo_rdevice is st_dev of a file on a filesystem without a device; such have the major number 0.
    """
    device, inode, number = struct.unpack_from("=3Q", info)
    return block(number) if os.major(number) else ("file", device, inode)


def _zrams(root: Path) -> Iterator[ServedPath]:
    for entry in sorted((root / "sys/block").glob("zram*")):
        if (path := path_in(entry / "backing_dev")) not in UNSET:
            device = f"/dev/{entry.name}"
            use = Use(RefusalReason.BELOW_ZRAM, {"device": device}, block(number_of(entry)))
            yield ServedPath(path, use, lambda path=path: lun_key_at(root, path))  # type: ignore[misc]


def _exports(root: Path) -> Iterator[ServedPath]:
    for pattern, exporter in EXPORTS:
        for entry in sorted(root.glob(pattern)):
            yield from _export(root, path_in(entry), exporter, entry.parent)
    for entry in sorted(root.glob("sys/kernel/config/target/core/*/*/info")):
        if found := FILEIO.search(path_in(entry)):
            yield from _export(root, found[1], "LIO backstore", entry.parent)


def _guests(root: Path) -> Iterator[ServedPath]:
    """Xen's backends of guests' disks: the device is given by its number, in hexadecimal."""
    for entry in sorted(root.glob("sys/bus/xen-backend/devices/vbd-*/physical_device")):
        major, _, minor = first_line(entry).partition(":")
        if minor and (number := os.makedev(int(major, 16), int(minor, 16))):
            use = Use(RefusalReason.OF_XEN_GUEST, {"backend": entry.parent.name})
            yield ServedPath(f"/{entry.relative_to(root)}", use, lambda number=number: block(number))  # type: ignore[misc]


def _export(root: Path, text: str, exporter: str, folder: Path) -> Iterator[ServedPath]:
    path = text.partition("\n")[0].strip()
    if path not in UNSET:
        name = "/".join(folder.parts[-3::2] if exporter == NVMET else folder.parts[-2:])
        use = Use(RefusalReason.EXPORTED, {"exporter": exporter, "name": name})
        yield ServedPath(path, use, lambda: lun_key_at(root, path))
