"""Write counters of block devices: whether anybody has written one since it was inspected.

Rule: who opened a device without a claim and is hidden from us (a process outside of our container, a kernel target)
still moves the kernel's counters. They are noted at each inspection, and again whenever we close what we wrote
ourselves, so no time is spent on waiting for them to move.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ..devices.block_devices import ROOT, BlockDevice

SECTOR: Final = 512  # bytes; the kernel's unit in diskstats, whatever the device's block size


@dataclass(frozen=True)
class Writes:
    """Of one device, since the machine started."""

    completed: int
    bytes: int


def read_writes(root: Path = ROOT) -> dict[int, Writes]:
    """The write counters of every block device, partitions too, by st_rdev; empty where /proc does not show them."""
    try:
        text = (root / "proc/diskstats").read_text()
    except OSError:
        return {}
    rows = (line.split() for line in text.splitlines())
    return {
        os.makedev(int(row[0]), int(row[1])): Writes(int(row[7]), int(row[9]) * SECTOR) for row in rows if len(row) > 9
    }


@dataclass
class WriteCounters:
    """State: the counters as they were when `note` was last called."""

    root: Path = ROOT
    _noted: Mapping[int, Writes] = field(default_factory=dict)

    def note(self) -> None:
        """Read the counters: writes from now on count."""
        self._noted = read_writes(self.root)

    def since(self, device: BlockDevice) -> Writes:
        """The writes to a device since `note`; none where a counter is not known, or began again from 0."""
        number = os.makedev(*device.number)
        before, now = self._noted.get(number), read_writes(self.root).get(number)
        if before is None or now is None or now.completed < before.completed:
            return Writes(0, 0)
        return Writes(now.completed - before.completed, now.bytes - before.bytes)
