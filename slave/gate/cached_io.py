"""Which of a step's I/O through the page cache reached its disk: what instances did less what their disk did.

Rule: as in `foreign_io`, bytes are compared, per whole disk, and only what is certain counts. Direct instances on the
disk did their part of what the disk did. Reads: what the disk reads ahead of us serves later reads, for at most AHEAD
bytes, and what may have been on its way at a boundary. All else that the disk reads, for others too, counts as read for
us: CACHED is never too much. Writes: the cache writes to the disk later. Blocks that were overwritten before that were
never written, and stay in DIRTY. All else that the disk writes (a journal, others' data) counts as ours: DIRTY is never
too much, either. On a disk without counters nothing is known: all is UNSEEN.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ...protocol.counters import Count
from ...protocol.older_python import zip_strict
from ..devices.block_devices import ROOT
from ..devices.diskstats import Transferred, read_transferred
from ..host_connector.block_stats import counted
from .foreign_io import RATE_MARGIN, in_parts

AHEAD: Final = 16 << 20  # bytes that a disk may have read ahead of us
_WIDTH: Final = len(Count)


@dataclass(frozen=True)
class CachedInstance:
    disk: int  # st_rdev of the whole disk; 0: none is known
    direct: bool
    blocksize: int  # the largest size of an I/O


@dataclass(frozen=True)
class Moved:
    """Bytes, in one subinterval."""

    read: int = 0
    written: int = 0

    def __add__(self, other: Moved) -> Moved:
        return Moved(self.read + other.read, self.written + other.written)

    def __sub__(self, other: Moved) -> Moved:
        return Moved(self.read - other.read, self.written - other.written)


@dataclass
class CacheAccount:
    """One disk's account of what went through the page cache, in bytes.

    A disk's counters are read after the boundary, and it completes an I/O before we know. So it may be ahead of us, and
    never behind: what it is ahead is kept for the next subinterval.
    """

    ahead: int = 0  # what the disk read, and we did not yet
    unwritten: int = 0  # what we wrote, and the disk did not; below 0 where the disk is ahead
    written: int = 0  # by us

    def add(self, ours: Moved, disk: Moved, uncertain: int, complete: bool) -> tuple[int, int]:
        """(bytes that we read without the disk in this subinterval, bytes that are dirty at its end).

        `ours`: through the cache; `disk`: less direct I/O; `uncertain`: how far ahead a disk may be; `complete`: no
        thread's counts are still to come, by which it would be still further ahead.
        """
        left = self.ahead + disk.read - ours.read
        cached = min(max(-left, 0), ours.read)
        self.ahead = left + cached
        self.written += ours.written
        self.unwritten += ours.written - disk.written
        if complete:
            self.ahead = min(self.ahead, AHEAD + uncertain)
            self.unwritten = max(self.unwritten, -uncertain)
        return cached, min(max(self.unwritten, 0), self.written)


@dataclass
class _CachedDisk:
    buffered: Sequence[int]  # places in `go`'s order
    direct: Sequence[int]
    account: CacheAccount = field(default_factory=CacheAccount)
    before: Transferred | None = None  # None: not counted

    def since(self, now: Transferred | None) -> Moved | None:
        """Its transfers since the last time; None where these are not known."""
        before, self.before = self.before, now
        if now is None or before is None or now.read < before.read or now.written < before.written:
            self.account = CacheAccount()
            return None
        return Moved(now.read - before.read, now.written - before.written)


class CachedIo:
    """State: the accounts of a step's disks."""

    def __init__(self, instances: Sequence[CachedInstance], root: Path = ROOT, ours_counted: bool = True) -> None:
        """Of `go`'s order. Disks count from now on, which is before the step: then nothing that they read for it is
        missed. `ours_counted`: whether the I/Os of this slave's backend reach disks at all.
        """
        self._instances, self._root = instances, root
        self._written = [0] * len(instances)  # by each, since the step began
        places = range(len(instances)) if ours_counted else ()
        on_disk: dict[int, list[int]] = {}
        for place in places:
            on_disk.setdefault(instances[place].disk, []).append(place)
        self._unseen: list[int] = []
        self._disks: dict[int, _CachedDisk] = {}
        for number, on_it in on_disk.items():
            buffered = [place for place in on_it if not instances[place].direct]
            if not buffered:
                continue
            if _has_counters(number, root):
                direct = [place for place in on_it if instances[place].direct]
                self._disks[number] = _CachedDisk(buffered, direct)
            else:
                self._unseen += buffered
        self._read_all()

    def _read_all(self) -> dict[int, Moved | None]:
        counters = read_transferred(self._root) if self._disks else {}
        return {number: disk.since(counters.get(number)) for number, disk in self._disks.items()}

    def add(self, counts: bytes, length_ns: int, lag_ns: int, complete: bool) -> bytes:
        """`counts` of a subinterval of that length, with what the cache did for its buffered instances; its end was
        `lag_ns` ago. `complete`: every thread handed its counts over.

        Instances on one disk share what was cached by what they read, and what is dirty by what they wrote.
        """
        if not self._disks and not self._unseen:
            return counts
        rows = array("q", counts)
        moved = self._read_all()
        for number, disk in self._disks.items():
            done = moved[number]
            if done is None:
                self._add_unseen(rows, disk.buffered)
                continue
            ours, direct = _of(rows, disk.buffered), _of(rows, disk.direct)
            uncertain = self._in_flight(rows, (*disk.buffered, *disk.direct)) + (
                RATE_MARGIN * _bytes_of(ours + direct) * max(lag_ns, 0) // max(length_ns, 1)
            )
            cached, dirty = disk.account.add(ours, done - direct, uncertain, complete)
            self._share(rows, disk.buffered, cached, dirty)
        self._add_unseen(rows, self._unseen)
        return rows.tobytes()

    def _share(self, rows: array[int], places: Sequence[int], cached: int, dirty: int) -> None:
        for place in places:
            self._written[place] += rows[place * _WIDTH + Count.WRITTEN]
        reads = [_read_by(rows, place) for place in places]
        writes = [self._written[place] for place in places]
        for column, total, by in ((Count.CACHED, cached, reads), (Count.DIRTY, dirty, writes)):
            if total:
                for place, part in zip_strict(places, in_parts(total, by)):
                    rows[place * _WIDTH + column] = part

    def _in_flight(self, rows: array[int], places: Sequence[int]) -> int:
        return sum(rows[place * _WIDTH + Count.IN_FLIGHT] * self._instances[place].blocksize for place in places)

    @staticmethod
    def _add_unseen(rows: array[int], places: Sequence[int]) -> None:
        for place in places:
            rows[place * _WIDTH + Count.UNSEEN] = rows[place * _WIDTH + Count.BYTES]


def _has_counters(disk: int, root: Path) -> bool:
    """Whether the kernel counts what this disk does."""
    folder = root / "sys/dev/block" / f"{os.major(disk)}:{os.minor(disk)}"
    return disk != 0 and counted(folder.resolve())


def _read_by(rows: array[int], place: int) -> int:
    return rows[place * _WIDTH + Count.BYTES] - rows[place * _WIDTH + Count.WRITTEN]


def _of(rows: array[int], places: Sequence[int]) -> Moved:
    return Moved(
        sum(_read_by(rows, place) for place in places), sum(rows[place * _WIDTH + Count.WRITTEN] for place in places)
    )


def _bytes_of(moved: Moved) -> int:
    return moved.read + moved.written
