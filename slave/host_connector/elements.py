"""Which block devices the LUNs of a run are on, by sysfs: whole disks, partitions, what disks are composed of, and NVMe
controllers.

Rule: where LUNs have no blocks in common, the instances of an element type have no I/O in common, so that a sum over
them is true. So a partition is no `disk`: its I/Os are its disk's, too. And of a volume on multipath devices on paths,
the paths alone are `component`s: what is at the bottom, each as a whole disk.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from ...protocol.older_python import zip_strict
from ...protocol.payload import Fact
from ..bounded_calls import call_all
from ..devices.block_devices import ROOT
from ..devices.mounts import mount_of, parse_mountinfo
from ..devices.storage_exports import number_of
from .block_stats import counted

DeviceNumbers = Mapping[str, tuple[int, ...]]  # by the path of each LUN: st_rdev

DISK, PARTITION, COMPONENT, NVME = "disk", "partition", "component", "nvme"  # element types
PATH: Final = "path"  # the attribute by which elements join LUNs
ANSWER_S: Final = 5.0  # for a LUN's filesystem; of one that does not answer, nothing is reported
_CONTROLLER: Final = re.compile(r"nvme\d+")
_NAMESPACE: Final = re.compile(r"nvme(\d+)n(\d+)")  # its paths, with NVMe's own multipathing, are nvme0c1n1


@dataclass(frozen=True)
class Elements:
    """By the kernel's name: the folder in sysfs. `facts` are what joins them with LUNs."""

    disks: Mapping[str, str]
    partitions: Mapping[str, str]
    components: Mapping[str, str]
    controllers: Mapping[str, str]
    interrupts: Mapping[str, tuple[int, ...]]  # of disks and components: the numbers of those that are theirs alone
    facts: tuple[Fact, ...]


NO_ELEMENTS: Final = Elements({}, {}, {}, {}, {}, ())


def device_numbers(luns: Sequence[str]) -> DeviceNumbers:
    """Of the block device that each LUN is, or of those that its filesystem is on; none for NFS and the like."""
    answers = call_all([partial(_device_numbers, path) for path in luns], ANSWER_S)
    return {path: numbers for path, numbers in zip_strict(luns, answers) if isinstance(numbers, tuple)}


def _device_numbers(path: str) -> tuple[int, ...]:
    status = os.stat(path)
    if stat.S_ISBLK(status.st_mode):
        return (status.st_rdev,)
    return (status.st_dev,) if os.major(status.st_dev) else _numbers_of_btrfs(path)


def _numbers_of_btrfs(path: str, root: Path = ROOT) -> tuple[int, ...]:
    """The devices of the btrfs that a file is on, of which mountinfo names one; none for another filesystem."""
    mount = mount_of(os.path.realpath(path), parse_mountinfo((root / "proc/self/mountinfo").read_bytes()))
    if mount is None or mount.filesystem != "btrfs":
        return ()
    folder = _folder(os.stat(mount.source).st_rdev, root)
    for filesystem in _entries(root / "sys/fs/btrfs"):
        members = [entry.resolve() for entry in _entries(filesystem / "devices")]
        if folder in members:
            return tuple(number for member in sorted(members) if (number := number_of(member)))
    return ()


def find_elements(numbers: DeviceNumbers, root: Path = ROOT) -> Elements:
    """The elements below LUNs, whose paths are given with the numbers of their devices (`device_numbers`)."""
    disks, partitions = dict[str, str](), dict[str, str]()
    components, controllers = dict[str, str](), dict[str, str]()
    facts: list[Fact] = []
    for path, folder in ((path, _folder(number, root)) for path, some in numbers.items() for number in some):
        if not (folder / "stat").exists():
            continue
        disk = whole(folder)
        facts.append(Fact(DISK, disk.name, PATH, path))
        if folder != disk:
            partitions[folder.name] = str(folder)
            facts.append(Fact(PARTITION, folder.name, PATH, path))
        if disk.name in disks:
            continue  # several LUNs are on it
        disks[disk.name] = str(disk)
        below = {part.name: str(part) for part in bottom(disk, root, {disk}) if part != disk}
        serving = {one.name: str(one) for part in (disk, *map(Path, below.values())) for one in nvme_controllers(part)}
        facts += [Fact(DISK, disk.name, COMPONENT, name) for name in below]
        facts += [Fact(DISK, disk.name, NVME, name) for name in serving]
        components.update(below)
        controllers.update(serving)
    return Elements(
        disks={name: folder for name, folder in disks.items() if counted(Path(folder))},
        partitions={name: folder for name, folder in partitions.items() if counted(whole(Path(folder)))},
        components={name: folder for name, folder in components.items() if counted(Path(folder))},
        controllers=controllers,
        interrupts=own_interrupts({**disks, **components}, root),
        facts=tuple(facts),
    )


def _folder(number: int, root: Path) -> Path:
    return (root / "sys/dev/block" / f"{os.major(number)}:{os.minor(number)}").resolve()


def whole(folder: Path) -> Path:
    """The disk that a partition is of; a disk itself."""
    return folder.parent if (folder / "partition").exists() else folder


def bottom(disk: Path, root: Path, known: set[Path]) -> Iterator[Path]:
    """The whole disks at the bottom of a disk: of one that is composed of no other, itself."""
    members = sorted({whole(entry.resolve()) for entry in _entries(disk / "slaves")}) or nvme_paths(disk, root)
    if not members:
        yield disk
    for member in members:
        if member not in known:
            known.add(member)
            yield from bottom(member, root, known)


def nvme_paths(disk: Path, root: Path) -> list[Path]:
    """The paths of a namespace that NVMe's own multipathing shows as one disk."""
    match = _NAMESPACE.fullmatch(disk.name)
    if match is None:
        return []
    path = re.compile(rf"nvme{match[1]}c\d+n{match[2]}")
    return sorted(entry.resolve() for entry in _entries(root / "sys/block") if path.fullmatch(entry.name))


def nvme_controllers(disk: Path) -> list[Path]:
    """A disk's `device` is its controller; that of several paths is a subsystem, with a link to each controller."""
    device = (disk / "device").resolve()
    if _CONTROLLER.fullmatch(device.name):
        return [device]
    return sorted(entry.resolve() for entry in _entries(device) if _CONTROLLER.fullmatch(entry.name))


def own_interrupts(folders: Mapping[str, str], root: Path) -> dict[str, tuple[int, ...]]:
    """The interrupts of each disk's adapter, if no other disk is attached to it."""
    disks = [str(entry.resolve()) for entry in _entries(root / "sys/block")]
    interrupts = {}
    for name, folder in folders.items():
        adapter = _adapter(Path(folder))
        if adapter is not None and sum(disk.startswith(f"{adapter}/") for disk in disks) == 1:
            numbers = (entry.name for entry in _entries(adapter / "msi_irqs"))
            interrupts[name] = tuple(sorted(int(number) for number in numbers if number.isdigit()))
    return interrupts


def _adapter(disk: Path) -> Path | None:
    """The nearest device above a disk that has interrupts."""
    return next((place for place in disk.parents if (place / "msi_irqs").is_dir()), None)


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []
