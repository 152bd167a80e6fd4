"""The gate: what must not be written, whatever plan and user say.

Rule: signed or held is never written. First the evidence is gathered (`of_block`, `of_file`), then judged: a pure
function from evidence to sentences, each with its remedy. What cannot be read cannot be cleared, so it is refused. The
controller shows these sentences before a run; the slave gathers and judges anew before it opens a LUN for writing,
since a device may have been mounted in between. It holds the LUN first (`hold`), so that nobody mounts it behind the
look, and looks at and opens what it holds (`through`), whatever its path may name by then.
"""

import errno
import os
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from . import signatures
from .blocks import ROOT, BlockDevice
from .kernel import first_line, path_in
from .mounts import Mount, mount_of, parse_mountinfo, parse_swaps

# Two slaves on one machine may look at a device in the same instant, and each look is an exclusive claim.
CLAIM_TRIES: Final = 4
CLAIM_PAUSE_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What of this machine's storage is in use; read once for many LUNs."""

    mounts: tuple[Mount, ...]
    points: Mapping[tuple[int, int], tuple[str, ...]]  # where a device, by (major, minor), is mounted
    swaps: tuple[str, ...]
    loops: tuple[tuple[str, str], ...]  # (loop device, path of its backing file)

    @classmethod
    def read(cls, root: Path = ROOT) -> Self:
        loops = [
            (f"/dev/{entry.name}", backing)
            for entry in sorted((root / "sys/block").glob("loop*"))
            if (backing := path_in(entry / "loop/backing_file"))
        ]
        mounts = parse_mountinfo((root / "proc/self/mountinfo").read_bytes())
        points: dict[tuple[int, int], tuple[str, ...]] = {}
        for mount in mounts:
            # btrfs has a number of its own making in mountinfo; there the source says which device it is.
            device = _device(mount.source) if mount.source.startswith("/dev/") else None
            for number in {mount.number, device or mount.number}:
                points[number] = (*points.get(number, ()), mount.point)
        return cls(
            mounts,
            points,
            parse_swaps((root / "proc/swaps").read_bytes()),
            tuple(loops),
        )


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks against writing to a LUN; by default nothing does."""

    path: str
    mounted: tuple[tuple[str, str], ...] = ()  # (path of the device or of its partition, mount point)
    swap: tuple[str, ...] = ()  # the device, or those of its partitions, that are swap
    partitions: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()
    backs: tuple[str, ...] = ()  # the loop devices that a file is the backing of
    names: int = 1  # of a file: hard links
    read_only: str = ""  # what is: "the device", or the filesystem's mount point
    claimed: bool = False  # someone has it opened exclusively
    signatures: tuple[str, ...] = ()
    unreadable: str = ""  # why its first or last bytes cannot be read


def judge(seen: Evidence) -> tuple[str, ...]:
    """Why it must not be written, a sentence with its remedy each; empty if nothing stands against it."""
    path = seen.path
    found = [
        f"it is mounted at {point}: umount {point}"
        if device == path
        else f"{device} on it is mounted at {point}: umount {point}"
        for device, point in seen.mounted
    ]
    found += [f"{device} is in use as swap: swapoff {device}" for device in seen.swap]
    if seen.partitions:
        names = ", ".join(seen.partitions)
        found.append(f"it has partitions ({names}): wipefs -a {path} and blockdev --rereadpt {path}, if none is wanted")
    if seen.holders:
        names = ", ".join(seen.holders)
        found.append(
            f"{names} is built upon it: take it out of that volume, array or map first, or name {names} itself"
        )
    found += [f"it is the backing file of {loop}: losetup -d {loop}" for loop in seen.backs]
    if seen.names > 1:
        found.append(f"it is one file under {seen.names} names: copy it, so that no other name loses its contents")
    if seen.read_only == path:
        found.append(f"it is read-only: blockdev --setrw {path}")
    elif seen.read_only:
        found.append(f"{seen.read_only} is mounted read-only: mount -o remount,rw {seen.read_only}")
    if seen.claimed and not (seen.mounted or seen.swap or seen.holders):
        found.append(f"another program has opened it exclusively: find it with fuser -v {path}, and end it")
    for name in seen.signatures:
        found.append(f"it has the signature of {name}: wipefs -a {path}, if its contents are not wanted")
    if seen.unreadable:
        found.append(f"it cannot be told what it holds ({seen.unreadable}): only what can be read may be written")
    return tuple(map(_readable, found))


def of_block(device: BlockDevice, around: Surroundings, held: int = -1) -> Evidence:
    """Look at a block device. Opens it read-only for a moment; may block where the device does.

    `held`: our own hold on it, if there is one; it is looked at through that, and its claim speaks against nothing.
    """
    names = [(device.path, device.number)]
    for name in device.partitions:
        major, _, minor = first_line(device.folder / name / "dev").partition(":")
        names.append((f"/dev/{name}", (int(major or 0), int(minor or 0))))
    mounted, swap = [], []
    for path, number in names:
        mounted += [(path, point) for point in around.points.get(number, ())]
        swap += [path for entry in around.swaps if _device(entry) == number]
    ends, unreadable = read_ends(through(held) if held >= 0 else device.path)
    return Evidence(
        device.path,
        mounted=tuple(dict.fromkeys(mounted)),
        swap=tuple(dict.fromkeys(swap)),
        partitions=device.partitions,
        holders=device.holders,
        read_only=device.path if first_line(device.folder / "ro") == "1" else "",
        claimed=held < 0 and is_claimed(device.path),
        signatures=signatures.found(ends) if ends else (),
        unreadable=unreadable,
    )


def of_file(path: str, around: Surroundings, held: int = -1) -> Evidence:
    """Look at a regular file, through links, or at that which is `held`. Raises OSError where it is not there."""
    real = os.path.realpath(through(held) if held >= 0 else path)
    status = os.fstat(held) if held >= 0 else os.stat(real)
    mount = mount_of(real, around.mounts)
    ends, unreadable = read_ends(through(held) if held >= 0 else real)
    return Evidence(
        path,
        swap=tuple(entry for entry in around.swaps if _is_file(entry, real, status)),
        backs=tuple(loop for loop, backing in around.loops if _is_file(backing, real, status)),
        names=status.st_nlink,
        read_only=mount.point if mount and mount.read_only else "",
        signatures=signatures.found(ends) if ends else (),
        unreadable=unreadable,
    )


def hold(path: str) -> int:
    """An open file of the block device or regular file at `path`; of a block device it is a claim.

    Raises OSError: EBUSY where someone else has a claim, ENOTBLK where it is neither; that is not opened, since opening
    alone makes some things act (a watchdog, a tape).
    """
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        mode = os.fstat(place).st_mode
        if stat.S_ISBLK(mode):
            return claim(through(place))
        if stat.S_ISREG(mode):
            return os.open(through(place), os.O_RDONLY | os.O_CLOEXEC)
        raise OSError(errno.ENOTBLK, os.strerror(errno.ENOTBLK))
    finally:
        os.close(place)


def through(held: int) -> str:
    """The path that opens anew what this descriptor holds, and nothing else."""
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
    """Whether someone has a block device opened exclusively. What cannot be opened at all shows when it is read."""
    try:
        os.close(claim(path))
    except OSError as error:
        return error.errno == errno.EBUSY
    return False


def read_ends(path: str) -> tuple[signatures.Ends | None, str]:
    """(the first and last bytes of a device or file, why they could not be read)."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        return None, str(error.strerror)
    try:
        # What another machine wrote to a shared device does not show in this one's page cache.
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        size = os.lseek(fd, 0, os.SEEK_END)
        length = min(size, signatures.READ)
        return signatures.Ends(_pread(fd, length, 0), _pread(fd, length, size - length), size), ""
    except OSError as error:
        return None, str(error.strerror)
    finally:
        os.close(fd)


def _readable(sentence: str) -> str:
    """A byte of a path that is no UTF-8 as `\\xff`: sentences travel, and are printed."""
    return os.fsencode(sentence).decode("utf-8", "backslashreplace")


def _pread(fd: int, length: int, offset: int) -> bytes:
    data = os.pread(fd, length, offset)
    if len(data) < length:
        raise OSError(errno.EIO, f"{len(data)} of {length} bytes at {offset} could be read")
    return data


def _device(path: str) -> tuple[int, int] | None:
    """(major, minor) of the block device at a path; None if there is none."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return (os.major(status.st_rdev), os.minor(status.st_rdev)) if stat.S_ISBLK(status.st_mode) else None


def _is_file(path: str, real: str, status: os.stat_result) -> bool:
    """Whether a path is that file, perhaps by another mount; looked at only if likely, since its own may hang."""
    if os.path.basename(path) != os.path.basename(real):
        return False
    try:
        return os.path.samestat(os.stat(path), status)
    except (OSError, ValueError):
        return False
