"""Reads the bytes that each block device has transferred, and those that the kernel charges to this process."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from .block_devices import ROOT, SECTOR


@dataclass(frozen=True)
class Transferred:
    """Of one device, in bytes."""

    read: int
    written: int


def read_transferred(root: Path = ROOT) -> dict[int, Transferred]:
    """The counters of every block device, partitions too, by st_rdev; empty where /proc does not show them."""
    try:
        text = (root / "proc/diskstats").read_text()
    except OSError:
        return {}
    rows = (line.split(None, 10) for line in text.splitlines())
    return {
        os.makedev(int(row[0]), int(row[1])): Transferred(int(row[5]) * SECTOR, int(row[9]) * SECTOR)
        for row in rows
        if len(row) > 10
    }


def read_charged(root: Path = ROOT) -> int | None:
    """The bytes that this process had read from block devices, by all its threads; None where that is not shown.

    The kernel charges who submits a read, for its readahead, too; io_uring's workers are threads of their process.
    """
    try:
        text = (root / "proc/self/io").read_text()
    except OSError:
        return None
    value = dict(line.partition(": ")[::2] for line in text.splitlines()).get("read_bytes", "")
    return int(value) if value.isdecimal() else None
