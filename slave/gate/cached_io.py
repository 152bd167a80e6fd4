"""Which of a step's I/O through the page cache reached its disks: what came from memory, and what waits there.

Rule: only what is certain counts, so CACHED and DIRTY are never too much, but as said below. What each source sees:

- Reads, all of this process together: what the kernel charges to it for reading. That has what it reads ahead for us
  and what the slave reads itself, but nothing that others read. Less our direct reads, the rest serves our buffered
  reads, now or later. (Direct reads of holes reach no disk, and count as if they did.)
- Reads, by disk: what the disk read less our direct reads, others' included. That says which disks' instances the
  memory served; what it leaves open is shared by what they read. Where the kernel charges nothing, it is all there is:
  then what a disk has read ahead serves later reads, for at most twice the readahead of each instance, or AHEAD.
- Writes: the dirty pages of each LUN (`dirty_pages`). Where the kernel does not count those, what we wrote less all
  that the disk wrote: blocks that were overwritten in the cache stay in it, and others' writes hide ours. A LUN that is
  flushed often has no more dirty than that, either: the kernel counts a large folio whole for one dirty block. Others
  hide little there. Without flushes, that may be too much, but never more than was written.

On a disk without counters nothing is known: all is UNSEEN.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...protocol.counters import Count
from ...protocol.older_python import zip_strict
from ..devices.block_devices import ROOT
from ..devices.diskstats import Transferred, read_charged, read_transferred
from ..host_connector.block_stats import counted
from ..kernel_files import number_in
from .dirty_pages import CountDirty, DirtyPages, LunWrites
from .foreign_io import RATE_MARGIN, in_parts

AHEAD: Final = 16 << 20  # bytes that a disk may have read ahead of us, at least
OFTEN: Final = 16 << 20  # bytes from one flush to the next
_WIDTH: Final = len(Count)


@dataclass(frozen=True)
class CachedInstance:
    disk: int  # st_rdev of the whole disk; 0: none is known
    direct: bool
    blocksize: int  # the largest size of an I/O
    written_lun: int = -1  # a descriptor of the LUN that it may write through the cache; -1: none
    unflushed: int | None = None  # bytes of its writes from one flush to the next, 0: each is durable; None: no flush


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

    most_ahead: int = AHEAD  # of reads
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
            self.ahead = min(self.ahead, self.most_ahead + uncertain)
            self.unwritten = max(self.unwritten, -uncertain)
        return cached, min(max(self.unwritten, 0), self.written)


@dataclass
class ChargedReads:
    """Bytes that the kernel charged to this process for reads through the cache, and that we did not read yet.

    It charges a read when it is submitted, and we count it later: so this may be ahead of us, and is never behind.
    """

    ahead: int = 0

    def add(self, ours: int, charged: int) -> int:
        """The bytes that memory served of `ours` in this subinterval. `charged`: less direct reads."""
        left = self.ahead + charged - ours
        self.ahead = max(left, 0)
        return min(max(-left, 0), ours)


def attributed(total: int, certain: Mapping[int, int], read: Mapping[int, int]) -> dict[int, int]:
    """Of each disk, its part of `total` bytes that memory served: what its own account is certain of, and of the rest,
    as much as of what else was `read` there.
    """
    disks = list(read)
    first = min(total, sum(certain.values()))
    parts = in_parts(first, [certain[disk] for disk in disks])
    rest = in_parts(total - first, [read[disk] - part for disk, part in zip_strict(disks, parts)])
    return {disk: part + more for disk, part, more in zip_strict(disks, parts, rest)}


@dataclass
class _CachedDisk:
    buffered: Sequence[int]  # places in `go`'s order
    direct: Sequence[int]
    luns: Mapping[int, Sequence[int]]  # places of those that may write it, by its descriptor
    account: CacheAccount
    before: Transferred | None = None  # None: not counted

    def since(self, now: Transferred | None) -> Moved | None:
        """Its transfers since the last time; None where these are not known."""
        before, self.before = self.before, now
        if now is None or before is None or now.read < before.read or now.written < before.written:
            self.account = CacheAccount(self.account.most_ahead)
            return None
        return Moved(now.read - before.read, now.written - before.written)


@dataclass(frozen=True)
class _Cached:
    """One disk in one subinterval, in bytes."""

    read: int  # by us, through the cache
    cached: int  # of these, by the disk's account
    dirty: int  # likewise
    written: int  # by the disk


class CachedIo:
    """State: the accounts of a step's disks."""

    def __init__(
        self,
        instances: Sequence[CachedInstance],
        root: Path = ROOT,
        ours_counted: bool = True,
        count_dirty: CountDirty = lambda lun: None,
    ) -> None:
        """Of `go`'s order. All counts from now on, which is before the step: then nothing that is read for it is
        missed. `ours_counted`: whether the I/Os of this slave's backend reach disks at all.
        """
        self._instances, self._root = instances, root
        self._written = [0] * len(instances)  # by each, since the step began
        places = range(len(instances)) if ours_counted else ()
        on_disk: dict[int, list[int]] = {}
        for place in places:
            on_disk.setdefault(instances[place].disk, []).append(place)
        self._unseen: list[int] = []
        self._direct: list[int] = []  # on any disk with counters
        self._disks: dict[int, _CachedDisk] = {}
        for number, on_it in on_disk.items():
            buffered = [place for place in on_it if not instances[place].direct]
            if not _has_counters(number, root):
                self._unseen += buffered
                continue
            direct = [place for place in on_it if instances[place].direct]
            self._direct += direct
            if buffered:
                most_ahead = max(AHEAD, 2 * len(buffered) * _read_ahead(number, root))
                self._disks[number] = _CachedDisk(buffered, direct, self._luns_of(buffered), CacheAccount(most_ahead))
        self._pages = DirtyPages([lun for disk in self._disks.values() for lun in disk.luns], count_dirty)
        self._reads = ChargedReads()
        self._charged = read_charged(root) if self._disks else None  # None: not known, and not asked again
        self._read_all()

    def _luns_of(self, buffered: Sequence[int]) -> Mapping[int, Sequence[int]]:
        luns: dict[int, list[int]] = {}
        for place in buffered:
            if (lun := self._instances[place].written_lun) >= 0:
                luns.setdefault(lun, []).append(place)
        return luns

    def _read_all(self) -> dict[int, Moved | None]:
        counters = read_transferred(self._root) if self._disks else {}
        return {number: disk.since(counters.get(number)) for number, disk in self._disks.items()}

    def _charged_since(self) -> int | None:
        """Bytes that this process was charged for since the last time; None where that is not known."""
        before = self._charged
        self._charged = read_charged(self._root) if before is not None else None
        return None if before is None or self._charged is None else self._charged - before

    def add(self, counts: bytes, length_ns: int, lag_ns: int, complete: bool, last: bool = False) -> bytes:
        """`counts` of a subinterval of that length, with what the cache did for its buffered instances; its end was
        `lag_ns` ago. `complete`: every thread handed its counts over; `last`: of the step.

        Instances on one disk share what was cached by what they read, those on one LUN what is dirty by what they
        wrote.
        """
        if not self._disks and not self._unseen:
            return counts
        rows = array("q", counts)
        late = max(lag_ns, 0) / max(length_ns, 1)
        moved, charged = self._read_all(), self._charged_since()  # before dirty pages are counted
        done: dict[int, _Cached] = {}
        for number, disk in self._disks.items():
            if (by_disk := moved[number]) is None:
                self._add_unseen(rows, disk.buffered)
            else:
                done[number] = self._of_disk(rows, disk, by_disk, late, complete)
        cached = {number: of_disk.cached for number, of_disk in done.items()}
        if charged is not None:
            read = {number: of_disk.read for number, of_disk in done.items()}
            total = self._reads.add(sum(read.values()), charged - _of(rows, self._direct).read)
            cached = attributed(total, cached, read)
        for place, written in enumerate(rows[Count.WRITTEN :: _WIDTH]):
            self._written[place] += written
        for number, total in cached.items():
            places = self._disks[number].buffered
            self._share(rows, places, Count.CACHED, total, [_read_by(rows, place) for place in places])
        self._add_dirty(rows, done, length_ns, 0.0 if last else late, complete, last)
        self._add_unseen(rows, self._unseen)
        return rows.tobytes()

    def _of_disk(self, rows: array[int], disk: _CachedDisk, done: Moved, late: float, complete: bool) -> _Cached:
        ours, direct = _of(rows, disk.buffered), _of(rows, disk.direct)
        uncertain = self._in_flight(rows, (*disk.buffered, *disk.direct)) + _since(_bytes_of(ours + direct), late)
        cached, dirty = disk.account.add(ours, done - direct, uncertain, complete)
        return _Cached(ours.read, cached, dirty, done.written)

    def _add_dirty(
        self,
        rows: array[int],
        done: Mapping[int, _Cached],
        length_ns: int,
        late: float,
        complete: bool,
        last: bool,
    ) -> None:
        writes: dict[int, LunWrites] = {}
        for number, of_disk in done.items():
            for lun, places in self._disks[number].luns.items():
                written = _of(rows, places).written
                goes_on = [place for place in places if not rows[place * _WIDTH + Count.ENDED_NS]]
                uncertain = self._in_flight(rows, places) + _since(_of(rows, goes_on).written, late)
                writes[lun] = LunWrites(written, of_disk.written, uncertain)
        dirty = self._pages.add(writes, length_ns, complete, last)
        for number, of_disk in done.items():
            disk = self._disks[number]
            counted = {lun: total for lun in disk.luns if (total := dirty[lun]) is not None}
            if counted and len(counted) == len(disk.luns):
                flushed = [lun for lun in counted if self._is_flushed(disk.luns[lun])]
                by_pages = [counted[lun] for lun in flushed]
                counted.update(zip_strict(flushed, in_parts(min(sum(by_pages), of_disk.dirty), by_pages)))
                parts = [(disk.luns[lun], total) for lun, total in counted.items()]
            else:
                parts = [(disk.buffered, of_disk.dirty)]
            for places, total in parts:
                self._share(rows, places, Count.DIRTY, total, [self._written[place] for place in places])

    def _is_flushed(self, places: Sequence[int]) -> bool:
        """Whether all that wrote this LUN so far flush it often."""
        sizes = [self._instances[place].unflushed for place in places if self._written[place]]
        return all(size is not None and size <= OFTEN for size in sizes)

    @staticmethod
    def _share(rows: array[int], places: Sequence[int], column: Count, total: int, by: Sequence[int]) -> None:
        if total:
            for place, part in zip_strict(places, in_parts(total, by)):
                rows[place * _WIDTH + column] = part

    def _in_flight(self, rows: array[int], places: Sequence[int]) -> int:
        return sum(rows[place * _WIDTH + Count.IN_FLIGHT] * self._instances[place].blocksize for place in places)

    @staticmethod
    def _add_unseen(rows: array[int], places: Sequence[int]) -> None:
        for place in places:
            rows[place * _WIDTH + Count.UNSEEN] = rows[place * _WIDTH + Count.BYTES]


def _since(size: int, late: float) -> int:
    """The bytes that may have been done since the boundary, where `size` were before: `late` subintervals ago."""
    return int(RATE_MARGIN * size * late)


def _read_ahead(disk: int, root: Path) -> int:
    """Bytes that the kernel may read ahead on this disk."""
    folder = root / "sys/dev/block" / f"{os.major(disk)}:{os.minor(disk)}"
    return (number_in(folder / "queue/read_ahead_kb") or 0) << 10


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
