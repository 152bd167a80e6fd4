"""The identity of a LUN: what distinguishes a device or file from every other that may later be at its path.

Rule: only what stays with a LUN counts, over a restart of the machine, too: what its maker or its volume manager
named it, or which file it is. A file is known by its last change, too: the user agreed to lose what it holds now, and
not what it will hold; what ivypy itself writes then does not count. A partition is known by its disk, its own number
there, and where it starts. What nobody named is known by which attachment it is since the machine was started; where
the kernel does not count these (before 5.15), by the bytes at its ends. A held LUN is looked at through that hold.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import hashlib
import os
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Final

from ...protocol.consent_check import CHANGED, FINGERPRINT, START
from ...protocol.payload import Identity
from ...protocol.text import sendable
from ..devices import udev
from ..devices.block_devices import ROOT, BlockDevice, numbered
from ..devices.block_devices import identity as names_of
from ..devices.dm_table import DmTarget, table_of
from ..devices.storage_exports import LOOP_GET_STATUS64, LOOP_INFO64, lun_key
from ..gate.file_changes import last_change, noted
from ..gate.holds import drop_cached, through
from ..kernel_files import first_line, path_in
from .lun_target import LunTarget

WRITTEN: Final = "user.ivypy.written"  # of a file that ivypy wrote: its last change before that, as it was agreed to
Facts = tuple[tuple[str, str], ...]
Extent = tuple[int, int]  # sectors: the first, and the one behind the last

SHOWN: Final = 200  # characters of a table; of a longer one a hash stands in the identity
END: Final = 64 << 10  # bytes at each end that a fingerprint is of
LOOP_INFO: Final = struct.Struct("=QQQQQ")  # device, inode, device (of a device), offset, size limit
STATX: Final = 256  # bytes
STATX_BTIME: Final = 0x800
BIRTH: Final = struct.Struct("=qI")  # seconds, nanoseconds
BIRTH_AT: Final = 80
PCI: Final = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")  # domain:bus:device.function


def identity_of(lun: LunTarget, held: int = -1, root: Path = ROOT) -> Identity:
    """Which LUN it is; `held`: an open file of it. Without one it is opened for a moment, where that is needed.

    May block where the LUN does. Raises OSError where it cannot be opened or read, and has to be, and ESTALE where its
    path leads to another by now.
    """
    if held >= 0:
        return _identity_through(held, lun, held, root)
    place = os.open(lun.path, os.O_PATH | os.O_CLOEXEC)
    try:
        return _identity_through(place, lun, held, root)
    finally:
        os.close(place)


def _identity_through(place: int, lun: LunTarget, held: int, root: Path) -> Identity:
    if lun_key(os.fstat(place)) != lun.what:
        raise OSError(errno.ESTALE, "its path became another's")
    if lun.device is None:
        return identity_of_file(through(place), lun.size, held, root)
    return _identity(lun.size, _device(lun.device, through(place), held, root), root)


def identity_of_file(path: str, size: int, held: int = -1, root: Path = ROOT) -> Identity:
    """Which file it is, through links; as `identity_of`."""
    return _identity(size, _file(path, held), root)


def _identity(size: int, facts: Facts, root: Path) -> Identity:
    """As it may travel, and come back the same."""
    return Identity(machine(root), size, tuple((name, sendable(value)) for name, value in facts))


@cache
def machine(root: Path = ROOT) -> str:
    """Which machine this is, however it is called: a hash of its number, and of its board's where that may be read.

    Machines that were cloned may share the one, and seldom the other.
    """
    places = ("etc/machine-id", "sys/class/dmi/id/product_uuid")
    numbers = [first_line(root / place) for place in places]
    return hashlib.sha256("\n".join(numbers if any(numbers) else [os.uname().nodename]).encode()).hexdigest()[:16]


def _device(device: BlockDevice, path: str, held: int, root: Path, within: Extent | None = None) -> Facts:
    """`within`: these sectors of it, where what is elsewhere does not count."""
    disk = device.disk
    number = tuple(map(int, first_line(disk / "dev").split(":")))
    known = udev.read((number[0], number[1]), root)
    names = names_of(disk, known)
    values = {
        "wwn": names["wwn"],
        "serial": names["serial"],
        "dm uuid": first_line(disk / "dm/uuid"),
        "md uuid": first_line(disk / "md/uuid") or known.text("MD_UUID"),
    }
    facts = tuple((name, str(value)) for name, value in values.items() if value)
    facts = facts or _backing(device, path, held, root) or _attached(disk, root)
    table = _table(disk, (number[0], number[1]), root, None if device.is_partition else within)
    return (facts or _ends(path, held)) + table + _partition(device, root)


def _table(disk: Path, number: tuple[int, int], root: Path, within: Extent | None) -> Facts:
    """Of a device-mapper device: what it is made of, whatever numbers that has now; `within` these sectors of it.

    A multipath map is known by its LUN: its table has the paths that there are, which come and go.
    """
    uuid = first_line(disk / "dm/uuid")
    if not (disk / "dm").exists() or uuid.startswith("mpath-"):
        return ()
    below = {first_line(folder / "dev"): folder for folder in (disk / "slaves").glob("*")}
    made_of = cache(partial(_made_of, root))  # a table may have thousands of lines, all of them of one disk
    lines = [one for one in map(partial(_line, below, made_of, within), table_of(number, root)) if one]
    text = "; ".join(lines)
    shown = text if len(text) <= SHOWN else hashlib.sha256(text.encode()).hexdigest()[:16]
    return (("table", shown),) if lines else ()


def _line(
    below: Mapping[str, Path],
    made_of: Callable[[Path, str, Extent | None], str],
    within: Extent | None,
    target: DmTarget,
) -> str:
    """A line of a table, "" if it is not within these sectors."""
    first, behind = within or (target.start, target.start + target.length)
    end = min(target.start + target.length, behind)
    if end <= max(first, target.start):
        return ""
    words = [
        made_of(
            below[word], target.kind, _of_a_table(below[word], replace(target, length=end - target.start).mapped(place))
        )
        if word in below
        else word
        for place, word in enumerate(target.lasting)
    ]
    return " ".join((f"{target.start}+{end - target.start}", target.kind, *words))


def _of_a_table(folder: Path, within: Extent | None) -> Extent | None:
    """These sectors of a device that has a table itself; of others all is the same."""
    return within if (folder / "dm").exists() else None


def _made_of(root: Path, folder: Path, kind: str, within: Extent | None) -> str:
    """Which device is below one of this kind.

    A volume of LVM is known by its UUID: LVM moves and extends it while it is used. So is the pool of a thin volume,
    which grows by what is written there. Of other devices, only what is mapped counts.
    """
    uuid = first_line(folder / "dm/uuid")
    if uuid.startswith("LVM-") or (uuid and kind == "thin"):
        return uuid
    number = first_line(folder / "dev")
    major, _, minor = number.partition(":")
    device = numbered(os.makedev(int(major), int(minor)), root)
    facts = _device(device, device.path, -1, root, within) if device is not None else (("number", number),)
    return "(" + ", ".join(f"{name} {value!r}" for name, value in facts) + ")"


def _partition(device: BlockDevice, root: Path) -> Facts:
    if not device.is_partition:
        return ()
    uevent = path_in(device.folder / "uevent").splitlines()
    named = next((line.removeprefix("PARTUUID=") for line in uevent if line.startswith("PARTUUID=")), "")
    named = named or udev.read(device.number, root).text("ID_PART_ENTRY_UUID")
    start = ("start", first_line(device.folder / "start"))
    return (("PARTUUID", named), start) if named else (start,)


def _backing(device: BlockDevice, path: str, held: int, root: Path) -> Facts:
    """Of a loop device: which file is behind it, or which device, and from where on."""
    backing = path_in(device.disk / "loop/backing_file")
    if not backing:
        return ()
    with _opened(path, held) as fd:
        info = bytearray(LOOP_INFO64)
        fcntl.ioctl(fd, LOOP_GET_STATUS64, info, True)
    number, inode, node, offset, limit = LOOP_INFO.unpack_from(info)
    below = numbered(node, root) if node else None
    behind = _behind(below, root) if below is not None else _backing_file(device, backing, number, inode, root)
    until = (("up to", str(limit)),) if limit else ()
    return (*behind, ("offset", str(offset)), *until)


def _behind(device: BlockDevice, root: Path) -> Facts:
    """Which device a loop device is over. Its node in /dev does not identify it: it stays while the backing changes."""
    facts = _device(device, device.path, -1, root)
    return tuple((name if name in (START, FINGERPRINT) else f"{name} below", fact) for name, fact in facts)


def _backing_file(device: BlockDevice, backing: str, number: int, inode: int, root: Path) -> Facts:
    birth = ""
    with contextlib.suppress(OSError):
        status = os.stat(backing)
        # It may have been moved away, and another put in its place.
        birth = _birth(backing) if (status.st_dev, status.st_ino) == (number, inode) else ""
    # Without its birth, a file that was removed cannot be distinguished from another that has its inode now.
    more = (("born", birth),) if birth else _attached(device.disk, root)
    return (("backing file", _named(number, inode)), *more)


def _attached(disk: Path, root: Path) -> Facts:
    """Which attachment of a disk it is, of all since the machine was started, and at which place of the PCI bus."""
    attachment = first_line(disk / "diskseq")
    started = first_line(root / "proc/sys/kernel/random/boot_id")
    if not attachment or not started:
        return ()
    connection = first_line(disk / "pid") if disk.name.startswith("nbd") else ""  # a device may be connected again
    more = (("connection", connection),) if connection else ()
    place = [part for part in disk.resolve().parts if PCI.fullmatch(part)]
    where = (("PCI path", "/".join(place)),) if place else ()
    return (*where, ("attachment", attachment), *more, (START, started))


def _file(path: str, held: int) -> Facts:
    place = through(held) if held >= 0 else path
    status = os.stat(place)
    named = ("file", _named(status.st_dev, status.st_ino))
    birth = _birth(place)
    which = (("born", birth),) if birth else _ends(place, held)
    return (named, *which, (CHANGED, changed(place)))


def changed(place: str | int) -> str:
    """When a file was last changed; by ivypy only, since it was agreed to: as it was then."""
    agreed = noted(place, WRITTEN)
    return last_change(place) if agreed is None else agreed.decode("ascii", "replace")


def _named(device: int, inode: int) -> str:
    return f"{os.major(device)}:{os.minor(device)}:{inode}"


def _birth(path: str) -> str:
    """When a file was made, seconds and nanoseconds; "" where the system does not report it."""
    buffer = ctypes.create_string_buffer(STATX)
    try:
        failed = ctypes.CDLL(None, use_errno=True).statx(-100, os.fsencode(path), 0, STATX_BTIME, buffer)
    except AttributeError:
        return ""  # the C library does not know it
    if failed or not int.from_bytes(buffer.raw[:4], "little") & STATX_BTIME:
        return ""
    seconds, nanoseconds = BIRTH.unpack_from(buffer.raw, BIRTH_AT)
    return f"{seconds}.{nanoseconds:09}"


@contextlib.contextmanager
def _opened(path: str, held: int) -> Iterator[int]:
    if held >= 0:
        yield held
        return
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def _ends(path: str, held: int) -> Facts:
    """The first and the last bytes, as they are on the device."""
    with _opened(path, held) as fd:
        size = os.lseek(fd, 0, os.SEEK_END)
        length = min(size, END)
        drop_cached(fd, [(0, length), (size - length, size)])
        ends = os.pread(fd, length, 0) + os.pread(fd, length, size - length)
    if len(ends) < 2 * length:
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    return ((FINGERPRINT, hashlib.sha256(ends).hexdigest()[:16]),)
