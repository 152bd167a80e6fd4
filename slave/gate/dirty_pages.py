"""How much of what a step wrote through the page cache waits there at a boundary: the dirty pages of its LUNs.

Rule: the kernel counts them by walking the cached pages of a LUN, some 50 ns for each. So it is called only where
something may be dirty, and for no more than COST of the time on average; but always at a step's last boundary. Between
calls, all that the disk writes counts as written from what the last call found. What may have been written since the
boundary does not count, nor what is more than the step wrote. So this is never too much, but where pages are dirty in
part: the kernel counts those whole, and large folios, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, Optional

COST: Final = 0.01  # of the time

CountDirty = Callable[[int], Optional[int]]  # bytes, by a LUN's descriptor; None: the kernel does not tell


@dataclass(frozen=True)
class LunWrites:
    """Of one LUN in one subinterval, in bytes."""

    written: int  # by us, through the cache
    by_disk: int  # all that its disk wrote
    uncertain: int = 0  # that may have been written since the boundary


@dataclass
class _Lun:
    written: int = 0  # by us, since the step began
    dirty: int = 0  # of that, for certain
    may_be_dirty: bool = False
    counted: bool = True  # the kernel can

    def after(self, writes: LunWrites) -> None:
        self.written += writes.written
        self.may_be_dirty = self.may_be_dirty or writes.written > 0
        self.dirty = max(self.dirty - writes.by_disk, 0)

    def miss(self) -> None:
        """A subinterval in which its disk was not counted."""
        self.dirty, self.may_be_dirty = 0, True

    def look(self, counted: int | None, uncertain: int) -> None:
        if counted is None:
            self.counted = False
            return
        self.dirty = min(max(counted - uncertain, 0), self.written)
        self.may_be_dirty = counted > 0


class DirtyPages:
    """State: what each LUN of a step had dirty, and the time that is left for further calls."""

    def __init__(
        self, luns: Collection[int], count: CountDirty, clock_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        """`luns`: a descriptor of each that instances may write through the cache, which is clean now."""
        self._luns = {fd: _Lun() for fd in luns}
        self._count, self._clock_ns = count, clock_ns
        self._left_ns = self._cost_ns = 0  # for calls; what the last ones took

    def add(
        self, writes: Mapping[int, LunWrites], length_ns: int, complete: bool, last: bool
    ) -> Mapping[int, int | None]:
        """Bytes that are dirty for certain at the end of a subinterval of that length, by LUN; None where the kernel
        does not tell. `complete`: no thread's writes are still to come; `last`: nothing is written after it.
        """
        for fd, lun in self._luns.items():
            if fd in writes:
                lun.after(writes[fd])
            else:
                lun.miss()
        self._left_ns += int(COST * length_ns)
        waiting = [fd for fd in writes if self._luns[fd].may_be_dirty and self._luns[fd].counted]
        if waiting and (last or (complete and self._left_ns >= self._cost_ns)):
            begin_ns = self._clock_ns()
            for fd in waiting:
                self._luns[fd].look(self._count(fd), writes[fd].uncertain)
            self._cost_ns = self._clock_ns() - begin_ns
            self._left_ns -= self._cost_ns
        return {fd: self._luns[fd].dirty if self._luns[fd].counted else None for fd in writes}
