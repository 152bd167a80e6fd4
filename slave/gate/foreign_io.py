"""Other I/O on the disks that a step drives: what a disk did less what this slave's workload instances did on it.

Rule: bytes are compared, not requests, which the block layer merges and splits, and per whole disk, to which its
partitions and the files on it add up. A disk's counters are read somewhat after a boundary, when I/Os may have
completed that the result does not have. So only what is certain counts: how much more than ours the disk did, less
all that may have been in flight or have completed since the boundary. It counts once it is certain, for good.

The page cache reads ahead, and writes later: on a disk with instances that use it in a step, or that still has to write
what they wrote in an earlier one, nothing is counted as foreign.
"""

from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from ...protocol.counters import Count
from ...protocol.older_python import zip_strict
from ..devices.block_devices import ROOT
from ..devices.diskstats import read_transferred

_WIDTH: Final = len(Count)
RATE_MARGIN: Final = 2  # by how much more than on average a disk may have done since the boundary


def read_bytes(root: Path = ROOT) -> dict[int, int]:
    """Bytes read and written by every block device, by st_rdev; empty where /proc does not show them."""
    return {number: done.read + done.written for number, done in read_transferred(root).items()}


class _Disk:
    """One disk's account, in bytes: all that it did less ours, and how far that may be from the truth."""

    def __init__(self, places: Sequence[int]) -> None:
        self.places = places  # of its instances in `go`'s order
        self._counter = -1  # -1: not read yet
        self._more = 0  # what it did more than we did since the step began
        self._least = 0  # what it may have done more, at the least, at any earlier instant
        self._late = False  # a thread's counts are still to come

    def begin(self, counter: int) -> None:
        self._counter = counter

    def certain(self, counter: int, ours: int, uncertain: int, complete: bool) -> int:
        """The bytes that others wrote or read since the last time, for certain. `uncertain`: bytes that may be on one
        side only.
        """
        if counter < self._counter or self._counter < 0:
            self._counter, self._more, self._least = counter, 0, uncertain
            return 0
        self._more += counter - self._counter - ours
        self._counter = counter
        if not complete:
            return 0
        found = self._more - uncertain - self._least
        self._least = self._more - uncertain if found > 0 else min(self._least, self._more + uncertain)
        return max(found, 0)


class ForeignIo:
    """State: the accounts of a step's disks."""

    def __init__(
        self, disks: Sequence[int], blocksizes: Sequence[int], root: Path = ROOT, ours_counted: bool = True
    ) -> None:
        """Of each instance, in `go`'s order: the st_rdev of its disk (0: none is known), the largest size of an I/O.

        `ours_counted`: whether the kernel counts this slave's I/Os; NVMe commands, and those of null, it does not, so
        all that a disk's counters show is others'.
        """
        self._ours_counted = ours_counted
        places: dict[int, list[int]] = {}
        for place, disk in enumerate(disks):
            if disk:
                places.setdefault(disk, []).append(place)
        self._disks: Mapping[int, _Disk] = {disk: _Disk(of) for disk, of in places.items()}
        self._blocksizes = blocksizes
        self._root = root

    def begin(self) -> None:
        """At the start of the step."""
        counters = read_bytes(self._root)
        for number, disk in self._disks.items():
            disk.begin(counters.get(number, -1))

    def add(self, counts: bytes, length_ns: int, lag_ns: int, complete: bool) -> bytes:
        """`counts` of a subinterval of that length, with what others did on the instances' disks; its end was `lag_ns`
        ago. `complete`: every thread handed its counts over.

        Instances on one disk share what others did there by what they did themselves, so that it is the same part of
        what each of them did.
        """
        if not self._disks:
            return counts
        rows = array("q", counts)
        done, flying = rows[Count.BYTES :: _WIDTH], rows[Count.IN_FLIGHT :: _WIDTH]
        counters = read_bytes(self._root)
        for number, disk in self._disks.items():
            if (counter := counters.get(number)) is None:
                continue
            ours, in_flight = 0, 0
            if self._ours_counted:
                ours = sum(done[place] for place in disk.places)
                in_flight = sum(flying[place] * self._blocksizes[place] for place in disk.places)
            uncertain = in_flight + RATE_MARGIN * ours * max(lag_ns, 0) // max(length_ns, 1)
            if found := disk.certain(counter, ours, uncertain, complete):
                for place, part in zip_strict(disk.places, in_parts(found, [done[p] for p in disk.places])):
                    rows[place * _WIDTH + Count.FOREIGN_BYTES] = part
        return rows.tobytes()


def in_parts(total: int, by: Sequence[int]) -> list[int]:
    """`total` in parts as large as `by`, to the last byte; equal ones where these are all 0."""
    weights = by if any(by) else [1] * len(by)
    total_weight, shares, before = sum(weights), [], 0
    for weight in weights:
        after = before + weight
        shares.append(total * after // total_weight - total * before // total_weight)
        before = after
    return shares
