"""An engine that drives nothing: what it reports is staged by the test, so that every failure can be shown.

It keeps the real one's rules where the slave relies on them: commands are remembered, an edit is taken only when the
test says so, `fileno()` is written whenever something happened.
"""

import os
import threading
from dataclasses import dataclass, field

from ivypy.protocol.counters import Count
from ivypy.slave.engine._engine import Collected, Ended


def collected(subinterval: int, start_ns: int = 0, length_ns: int = 1, last: bool = False, **more: object) -> Collected:
    """A result of one instance that did nothing, and of no classes."""
    fields: dict[str, object] = {
        "counts": bytes(8 * len(Count)),
        "moments": b"",
        "spans": b"",
        "buckets": b"",
        "bucket_size": 4,
        "threads": b"",
        "faults": [],
        "missing": [],
        "sections": b"",
    } | more
    return Collected(subinterval, start_ns, length_ns, last, *fields.values())  # type: ignore[arg-type]


@dataclass
class FakeEngine:
    did: list[str] = field(default_factory=list)  # commands, as words
    finished: list[Collected] = field(default_factory=list)  # that all threads handed over
    unfinished: list[Collected] = field(default_factory=list)  # that some did: only by force
    taken: list[tuple[int, int, int]] = field(default_factory=list)
    ends: list[Ended] = field(default_factory=list)
    words: list[tuple[int, str]] = field(default_factory=list)
    held: list[int] = field(default_factory=list)  # threads that close cannot end
    faults: dict[str, OSError] = field(default_factory=dict)  # "create 2" -> what it raises
    hangs: dict[str, threading.Event] = field(default_factory=dict)  # "delete" -> until when it hangs
    lease_ns: int = 0
    prepared: int = 0  # progress

    def __post_init__(self) -> None:
        self._fd = os.eventfd(0, os.EFD_NONBLOCK)
        self._luns = 0

    def spoke(self) -> None:
        """Something happened that one of the methods reports."""
        os.eventfd_write(self._fd, 1)

    def _do(self, *words: object) -> None:
        said = " ".join(map(str, words))
        self.did.append(said)
        for known, over in self.hangs.items():
            if words[0] == known:
                over.wait()
        for known, fault in self.faults.items():
            if said.startswith(known):
                raise fault

    def fileno(self) -> int:
        return self._fd

    def spin(self, spin: str) -> None:
        if spin != "auto":
            self._do("spin", spin)

    def reserved_pages(self, may: bool) -> None:
        if may:
            self._do("reserved_pages")

    def open_lun(self, path: str, writable: bool, name: str | None = None, direct: bool = True) -> int:
        self._do("open_lun", name or path, "rw" if writable else "ro", *(() if direct else ("buffered",)))
        self._luns += 1
        return self._luns - 1

    def close_lun(self, lun: int) -> None:
        self._do("close_lun", lun)

    def create(
        self,
        number: int,
        lun: int,
        thread: int,
        ceiling: int,
        blocksize_ceiling: int,
        parameters: object,
        extents: tuple[tuple[int, int], ...] = (),
    ) -> None:
        self._do("create", number, "on", lun, "by", thread)

    def prepare(self) -> None:
        self._do("prepare")

    def progress(self) -> int:
        return self.prepared

    def delete(self, number: int) -> None:
        self._do("delete", number)

    def edit(self, edit: int, settings: object) -> None:
        self._do("edit", edit)

    def edited(self) -> tuple[int, int, int] | None:
        return self.taken.pop(0) if self.taken else None

    def go(
        self, start_ns: int, length_ns: int, order: bytes, classes: bytes, rows: bytes, *, sections: int = 0
    ) -> None:
        self._do("go")

    def place_boundary(self, subinterval: int, boundary_ns: int) -> None:
        self._do("place_boundary", subinterval)

    def cooldown(self, subinterval: int) -> None:
        self._do("cooldown", subinterval)

    def stop(self, last: int) -> None:
        self._do("stop", last)

    def halt(self) -> None:
        self._do("halt")

    def set_lease(self, until_ns: int) -> None:
        self.lease_ns = until_ns

    def collect(self, force: bool = False) -> Collected | None:
        if "collect" in self.hangs:
            self.hangs["collect"].wait()
        if self.finished:
            return self.finished.pop(0)
        return self.unfinished.pop(0) if force and self.unfinished else None

    def ended(self) -> Ended | None:
        return self.ends.pop(0) if self.ends else None

    def dying_words(self) -> list[tuple[int, str]]:
        words, self.words = self.words, []
        return words

    def close(self, timeout_s: float) -> list[int]:
        self._do("close")
        return self.held
