"""Which block devices and files have blocks in common with a block device, by sysfs.

Rule: what is served from a device (a volume, a loop device over it) is not in here: that is a use of it. So siblings on
one disk do not overlap, but each overlaps their disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...protocol.refusals import RefusalReason
from ..devices.block_devices import BlockDevice
from ..devices.storage_exports import LunKey, Use, backing_of, block, number_of
from ..kernel_files import number_in, path_in


@dataclass(frozen=True)
class Overlap:
    """A block device, or a file, that has blocks in common with a LUN; the LUN itself first of all."""

    subject: str  # of a sentence: "it", "/dev/sdb1 on it"
    what: LunKey
    folder: Path | None = None  # in sysfs, of a block device
    path: str = ""  # of what a loop device is over: nobody has a claim on that for it
    partly: bool = False  # and it is over a part of that


def overlaps_of(device: BlockDevice, root: Path) -> Iterator[Overlap]:
    """Whatever is written where this device is: its partitions, its disk, what it is made of; itself first."""
    yield from _overlap("it", device.folder)
    for name in device.partitions:
        yield from _overlap(f"/dev/{name} on it", device.folder / name)
    if device.is_partition:
        yield from _overlap(f"{_node(device.disk)}, which it is a part of,", device.disk)
    yield from _below(device.disk, root, {device.disk})


def _below(disk: Path, root: Path, known: set[Path]) -> Iterator[Overlap]:
    """The parts that a whole device is made of: the members of a volume or array, what a loop device is over; and so on
    down.
    """
    slaves = disk / "slaves"
    for member in sorted(slaves.iterdir()) if slaves.is_dir() else ():
        yield from _member(member.resolve(), root, known)
    backing = backing_of(disk, root)
    if backing is None:
        return
    path = path_in(disk / "loop/backing_file")
    partly = bool(number_in(disk / "loop/offset") or number_in(disk / "loop/sizelimit"))
    if backing[0] == "file":
        yield Overlap(f"{path} below it", backing, None, path, partly)
        return
    folder = (root / f"sys/dev/block/{os.major(backing[1])}:{os.minor(backing[1])}").resolve()
    yield from _member(folder, root, known, _node(folder), partly)


def _member(folder: Path, root: Path, known: set[Path], path: str = "", partly: bool = False) -> Iterator[Overlap]:
    if folder in known:
        return
    known.add(folder)
    yield from _overlap(f"{_node(folder)} below it", folder, path, partly)
    if (folder / "partition").exists():
        yield from _overlap(f"{_node(folder.parent)} below it", folder.parent)
        yield from _below(folder.parent, root, known)
        return
    for part in sorted(folder.glob("*/partition")):
        yield from _overlap(f"{_node(part.parent)} below it", part.parent)
    yield from _below(folder, root, known)


def _overlap(subject: str, folder: Path, path: str = "", partly: bool = False) -> Iterator[Overlap]:
    if number := number_of(folder):
        yield Overlap(subject, block(number), folder, path, partly)


def _node(folder: Path) -> str:
    return "/dev/" + folder.name.replace("!", "/")


def held_below(overlap: Overlap, within: set[LunKey]) -> Iterator[Use]:
    """The uses of the device that a loop device is over, and of what is built upon it."""
    if not overlap.path or overlap.folder is None:
        return
    parts = sorted(part.parent.name for part in overlap.folder.glob("*/partition"))
    if parts:
        yield Use(RefusalReason.PARTITIONED_BELOW, {"names": ", ".join(parts), "path": overlap.path})
    for holder in sorted((overlap.folder / "holders").glob("*")):
        if (number := number_of(holder)) and block(number) not in within:
            yield Use(RefusalReason.HAS_HOLDER, {"holder": holder.name})
