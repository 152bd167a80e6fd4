"""Block devices as sysfs and udev describe them.

Rule: every device with a size and a node in /dev is listed, partitions as devices of their own with the attribute
`partition_of`. What the system does not tell is left out of the attributes, never guessed. A partition has the
facts that matter for driving it (block sizes, queue), but not its disk's identity (vendor, model, serial, wwn,
transport): a selection by vendor must not find a disk and its partitions as so many LUNs.

All paths are below `root`, so that tests can show trees of devices which their machine does not have.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ...protocol.payload import Attribute
from ..kernel_files import cpu_list, first_line, number_in, ranges
from . import udev

SECTOR: Final = 512  # sysfs counts sizes in these, whatever the device's own block size is
_CONTROLLER: Final = re.compile(r"nvme\d+")  # nvme0n1 is a namespace
ROOT: Final = Path("/")


@dataclass(frozen=True)
class BlockDevice:
    name: str  # the kernel's: sda, nvme0n1p1, dm-0
    path: str
    number: tuple[int, int]  # major, minor
    size: int  # bytes
    block: int  # logical block size, bytes
    folder: Path  # in sysfs
    disk: Path  # in sysfs: the whole disk's folder; of a whole disk, its own
    attributes: dict[str, Attribute] = field(repr=False)

    @property
    def is_partition(self) -> bool:
        return self.folder != self.disk

    @property
    def partitions(self) -> tuple[str, ...]:
        """The kernel's names of its partitions."""
        if self.is_partition:
            return ()
        names = [name for name in os.listdir(self.folder) if name.startswith(self.folder.name)]
        return tuple(sorted(name for name in names if (self.folder / name / "partition").exists()))

    @property
    def holders(self) -> tuple[str, ...]:
        """The devices that are built upon it: dm-0 (LVM, multipath, encryption), md0, bcache0."""
        folder = self.folder / "holders"
        return tuple(sorted(entry.name for entry in folder.iterdir())) if folder.is_dir() else ()


def all_devices(root: Path = ROOT) -> Iterator[BlockDevice]:
    """Every block device that could be driven, disks before their partitions, in the order of their names."""
    for entry in sorted((root / "sys/block").iterdir()):
        disk = entry.resolve()
        for folder in (disk, *sorted(p.parent for p in disk.glob("*/partition"))):
            device = describe(folder, root)
            if device is not None:
                yield device


def at(path: str, root: Path = ROOT) -> BlockDevice | None:
    """The block device behind a path; None where it has no size or sysfs does not know it.

    Raises OSError where nothing is at that path, ValueError where it is no block device.
    """
    status = os.stat(path)
    if not stat.S_ISBLK(status.st_mode):
        raise ValueError(f"{path} is no block device")
    return numbered(status.st_rdev, root)


def numbered(number: int, root: Path = ROOT) -> BlockDevice | None:
    """The block device with this st_rdev; None where it has no size or sysfs does not know it."""
    link = root / "sys/dev/block" / f"{os.major(number)}:{os.minor(number)}"
    return describe(link.resolve(), root) if link.exists() else None


def describe(folder: Path, root: Path) -> BlockDevice | None:
    """The block device of one sysfs folder; None where there is nothing to drive: no size, no node, a hidden path."""
    size = number_in(folder / "size") or 0
    major, _, minor = first_line(folder / "dev").partition(":")
    if not size or not minor or number_in(folder / "hidden"):
        return None
    disk = folder.parent if (folder / "partition").exists() else folder
    path = node(folder, root)
    if not path:
        return None
    number = (int(major), int(minor))
    block = number_in(disk / "queue/logical_block_size") or SECTOR
    values: dict[str, Attribute | None] = {
        "path": path,
        "name": folder.name,
        "kind": "block",
        "size": size * SECTOR,
        "logical_block_size": block,
        "physical_block_size": number_in(disk / "queue/physical_block_size"),
        "rotational": number_in(disk / "queue/rotational"),
        "scheduler": scheduler(first_line(disk / "queue/scheduler")),
        "nr_requests": number_in(disk / "queue/nr_requests"),
        "hw_queues": hw_queues(disk),
        **queue_settings(disk),
        "irq_cores": irq_cores(disk, root),
        "numa_node": numa_node(disk),
        "read_only": number_in(folder / "ro"),
    }
    known = udev.read(number, root)
    values["by_id"] = known.by_id or by_id_link(path, root)
    if folder == disk:
        values |= identity(disk, known)
    else:
        values["partition_of"] = disk.name
    attributes = {name: value for name, value in values.items() if value is not None and value != ""}
    return BlockDevice(folder.name, path, number, size * SECTOR, block, folder, disk, attributes)


def queue_settings(disk: Path) -> dict[str, Attribute | None]:
    """The settings of its queue that make latency, under the kernel's own names."""
    queue = disk / "queue"
    numbers = ("fua", "max_sectors_kb", "wbt_lat_usec", "nomerges", "rq_affinity", "io_poll")
    words = ("write_cache", "zoned")
    found: dict[str, Attribute | None] = {name: number_in(queue / name) for name in numbers}
    return {**found, **{name: first_line(queue / name) for name in words}}


def irq_cores(disk: Path, root: Path) -> str:
    """The cores that serve the interrupts of the device, or of the adapter that it is attached to; "" if not known."""
    place = disk.resolve()
    while not (place / "msi_irqs").is_dir():
        if place == place.parent:
            return ""
        place = place.parent
    cores: set[int] = set()
    for entry in (place / "msi_irqs").iterdir():
        irq = root / "proc/irq" / entry.name
        cores |= {*cpu_list(first_line(irq / "effective_affinity_list") or first_line(irq / "smp_affinity_list"))}
    return ranges(cores)


def node(folder: Path, root: Path) -> str:
    """The device's path: /dev/mapper/NAME where it has such a name, since dm numbers change; "" if it has no node."""
    names = ["dev/" + folder.name.replace("!", "/")]
    if mapped := first_line(folder / "dm/name"):
        names.insert(0, "dev/mapper/" + mapped)
    return next((f"/{name}" for name in names if (root / name).exists()), "")


def identity(disk: Path, known: udev.Udev) -> dict[str, Attribute | None]:
    """Who made a whole disk, which one it is, and how it is reached."""
    device = disk / "device"
    uuid = first_line(disk / "dm/uuid")
    return {
        "vendor": known.text("ID_VENDOR_ENC", "ID_VENDOR") or first_line(device / "vendor"),
        "model": known.text("ID_MODEL_ENC", "ID_MODEL") or first_line(device / "model"),
        "serial": known.text("ID_SCSI_SERIAL", "ID_SERIAL_SHORT", "ID_SERIAL") or serial(disk),
        "wwn": known.text("ID_WWN_WITH_EXTENSION", "ID_WWN") or wwn(disk),
        "firmware": first_line(device / "firmware_rev") or first_line(device / "rev"),
        "transport": transport(disk),
        "multipath": first_line(disk / "dm/name") if uuid.startswith("mpath-") else None,
    }


def serial(disk: Path) -> str:
    """From virtio, NVMe, or page 0x80 of a SCSI device, whose text begins at byte 4."""
    for place in (disk / "serial", disk / "device/serial"):
        if text := first_line(place):
            return text
    try:
        return (disk / "device/vpd_pg80").read_bytes()[4:].decode("ascii", "replace").strip(" \0")
    except OSError:
        return ""


def wwn(disk: Path) -> str:
    """As udev writes it: naa.6006... is 0x6006...; NVMe's eui. and nvme. names stay as they are."""
    text = first_line(disk / "wwid") or first_line(disk / "device/wwid")
    if text.startswith("naa."):
        return "0x" + text.removeprefix("naa.")
    return text if text.startswith(("eui.", "nvme.", "uuid.")) else ""


def transport(disk: Path) -> str | None:
    """How the device is reached: nvme, nvme_tcp, nvme_rdma, nvme_fc, virtio, usb, fc, iscsi, sas or sata."""
    if disk.name.startswith("nvme"):
        by = first_line(disk / "device/transport") or "pcie"
        return "nvme" if by == "pcie" else f"nvme_{by}"
    parts = disk.resolve().parts
    for part in parts:
        if part.startswith("usb"):
            return "usb"
        if part.startswith("virtio"):
            return "virtio"
        if part.startswith("session") and part[7:].isdigit():
            return "iscsi"
        if part.startswith("rport-"):
            return "fc"
        if part.startswith(("end_device-", "sas_")):
            return "sas"
        if part.startswith("ata") and part[3:].isdigit():
            return "sata"
    return None


def scheduler(text: str) -> str | None:
    """The one in brackets, of "none [mq-deadline] kyber"."""
    _, bracket, rest = text.partition("[")
    return rest.partition("]")[0] if bracket else text or None


def hw_queues(disk: Path) -> int | None:
    """How many hardware queues it has; None where it has none (dm, md, zram), and nr_requests limits nothing."""
    return sum(1 for _ in (disk / "mq").iterdir()) if (disk / "mq").is_dir() else None


def numa_node(disk: Path) -> int | None:
    """Of the nearest device above the disk that has one; -1, the kernel's value for none, is none.

    An NVMe multipath head is below no device, but a subsystem: its node is that of its paths, if these have one.
    """
    place = (disk / "device").resolve() if (disk / "device").exists() else disk
    controllers = [link for link in place.glob("nvme*") if _CONTROLLER.fullmatch(link.name)]
    if controllers:
        nodes = {_node_above(link.resolve()) for link in controllers}
        return nodes.pop() if len(nodes) == 1 else None
    return _node_above(place)


def _node_above(place: Path) -> int | None:
    while place != place.parent:
        found = number_in(place / "numa_node")
        if found is not None:
            return found if found >= 0 else None
        place = place.parent
    return None


def by_id_link(path: str, root: Path) -> str:
    """The stable name of a device by the links in /dev, where udev's database cannot be read."""
    folder = root / "dev/disk/by-id"
    if not folder.is_dir():
        return ""
    target = (root / path.lstrip("/")).resolve()
    return udev.Udev(links=tuple(f"disk/by-id/{e.name}" for e in folder.iterdir() if e.resolve() == target)).by_id
