"""Finds what stands at a path, as something to drive: a block device or a regular file.

Rule: read again each time, since devices come, go and grow; what is neither is refused with a remedy.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...protocol.refusals import RefusalReason
from ..devices.block_devices import ROOT, BlockDevice, numa_node, numbered
from ..devices.mounts import mount_of
from ..devices.storage_exports import LunKey, lun_key, number_of
from ..gate.write_gate import Evidence, Surroundings, block_evidence, file_evidence
from ..kernel_files import number_in

# O_DIRECT's unit for a file whose filesystem is on no single block device. Larger than some need (NFS needs none),
# but btrfs, which needs this, would quietly take smaller I/Os through its page cache.
FILE_BLOCK: Final = 4096


class NotDrivable(Exception):
    """Nothing that can be driven is at that path; the text states what is, and the remedy."""


@dataclass(frozen=True)
class LunTarget:
    path: str
    kind: str  # "block" or "file"
    size: int  # bytes
    block: int  # O_DIRECT's unit, bytes
    filesystem: str  # of a file: its type; else ""
    mount: str  # of a file: where that is mounted
    device: BlockDevice | None  # of a block device
    what: LunKey
    node: int | None = None  # NUMA node of the device, or of that below a file; None: none is known
    read_only: bool = False  # of a file: its filesystem is mounted so
    disk: int = 0  # st_rdev of the whole disk that it is, is a part of, or lies on; 0: none is known

    def evidence(self, around: Surroundings, held: int = -1) -> Evidence:
        """The evidence against writing to it; see write_gate.py."""
        return block_evidence(self.device, around, held) if self.device else file_evidence(self.path, around, held)


def find_target(path: str, around: Surroundings, root: Path = ROOT) -> LunTarget:
    """Find the block device or file at `path`. Raises NotDrivable."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise NotDrivable(RefusalReason.NOTHING_THERE.sentence(error=error.strerror)) from None
    if stat.S_ISBLK(status.st_mode):
        device = numbered(status.st_rdev, root)
        if device is None:
            raise NotDrivable(RefusalReason.NO_SIZE.sentence())
        node = numa_node(device.disk)
        return LunTarget(
            path, "block", device.size, device.block, "", "", device, lun_key(status), node, disk=number_of(device.disk)
        )
    if stat.S_ISREG(status.st_mode):
        if status.st_size == 0:
            raise NotDrivable(RefusalReason.EMPTY_FILE.sentence())
        mount = mount_of(os.path.realpath(path), around.mounts)
        filesystem, point, fixed = (mount.filesystem, mount.point, mount.read_only) if mount else ("", "", False)
        disk = disk_below(status.st_dev, root)
        block, node = file_block(disk), numa_node(disk)
        key, number = lun_key(status), number_of(disk)
        return LunTarget(path, "file", status.st_size, block, filesystem, point, None, key, node, fixed, number)
    what = RefusalReason.FOLDER if stat.S_ISDIR(status.st_mode) else RefusalReason.NO_DEVICE_OR_FILE
    raise NotDrivable(what.sentence())


def disk_below(device: int, root: Path = ROOT) -> Path:
    """The sysfs folder of the disk below the filesystem with this st_dev; one that is not there, where it has none."""
    folder = (root / "sys/dev/block" / f"{os.major(device)}:{os.minor(device)}").resolve()
    return folder.parent if (folder / "partition").exists() else folder


def file_block(disk: Path) -> int:
    """O_DIRECT's unit for files of a filesystem on this disk: the disk's logical block size."""
    return number_in(disk / "queue/logical_block_size") or FILE_BLOCK
