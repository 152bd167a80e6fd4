"""How much memory is left for I/O buffers: of the machine, and of the control groups that this process is in.

Rule: pure functions of files, which are handed in by their root. Less a tenth is what instances may take: what the
kernel and other processes need grows with I/O as well. A group's limit counts for all groups above it, too, and its
page cache is not in use: the kernel gives it up first. Huge pages that an administrator reserved are memory that is
taken already: they are counted apart.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Optional

from ..kernel_files import number_in

SPARE: Final = 0.1  # of what is available
RESERVED_PAGE: Final = 2 << 20
UNLIMITED: Final = 1 << 60  # a v1 group without a limit has one near 2**63
BESIDE_INSTANCE: Final = 8192  # the most bytes of an instance apart from its I/O buffers and tags; a test holds it
TAG: Final = 128  # bytes


@dataclass(frozen=True)
class Available:
    """Bytes that are left, and where the narrowest limit is."""

    size: int
    where: str  # a noun phrase, such as "of this machine"

    @property
    def usable(self) -> int:
        """Without the tenth that is left to others."""
        return int(self.size * (1 - SPARE))


def available(root: Path) -> Optional[Available]:
    """The least that the machine and each group above this process have left; None where nothing is known."""
    found = [*_of_machine(root), *_of_groups(root)]
    return min(found, key=lambda one: one.size, default=None)


def reserved_left(root: Path) -> int:
    """Bytes in huge pages of 2 MiB that are reserved, and nobody's."""
    sizes = _meminfo(root)
    if sizes.get("Hugepagesize", 0) != RESERVED_PAGE:
        return 0
    folder = root / "sys/kernel/mm/hugepages/hugepages-2048kB"
    free, promised = number_in(folder / "free_hugepages") or 0, number_in(folder / "resv_hugepages") or 0
    return max(free - promised, 0) * RESERVED_PAGE


def why_too_much(areas: Sequence[int], beside: int, root: Path, reserved: bool) -> str:
    """Why I/O buffers of these sizes, and `beside` bytes of other memory, cannot be allocated, with what to change; ""
    if they can. `reserved`: areas of 2 MiB and more may take reserved huge pages.
    """
    left = available(root)
    if left is None:
        return ""
    from_reserved = _from_reserved(areas, reserved_left(root)) if reserved else 0
    ordinary = sum(areas) + beside - from_reserved
    if ordinary <= left.usable:
        return ""
    besides = f", beside {_mib(from_reserved)} in reserved huge pages" if from_reserved else ""
    return (
        f"they need {_mib(ordinary)} of memory for I/O buffers{besides}, and {_mib(left.usable)} can be used "
        f"({_mib(left.size)} available {left.where}, less {SPARE:.0%}): lower maxtags, the largest blocksize, or the "
        "number of LUNs or workloads"
    )


def _from_reserved(areas: Sequence[int], left: int) -> int:
    """How much of these is in reserved huge pages: an area is as a whole, or not at all."""
    taken = 0
    for area in areas:
        if RESERVED_PAGE <= area <= left - taken:
            taken += area
    return taken


def _mib(size: int) -> str:
    return f"{size / (1 << 20):,.0f} MiB"


def _meminfo(root: Path) -> "dict[str, int]":
    """Sizes in bytes, of /proc/meminfo."""
    try:
        words = [line.split() for line in (root / "proc/meminfo").read_text().splitlines()]
    except OSError:
        return {}
    return {line[0].rstrip(":"): int(line[1]) * 1024 for line in words if len(line) == 3 and line[1].isdigit()}


def _of_machine(root: Path) -> Iterator[Available]:
    size = _meminfo(root).get("MemAvailable")
    if size is not None:
        yield Available(size, "on this machine")


def _of_groups(root: Path) -> Iterator[Available]:
    for folder, names in _groups(root):
        limit, used = number_in(folder / names[0]), number_in(folder / names[1])
        if limit is None or used is None or limit >= UNLIMITED:  # "max" is no number
            continue
        cache = _reclaimable(folder / "memory.stat")
        yield Available(max(limit - max(used - cache, 0), 0), f"in the control group {folder}")


def _groups(root: Path) -> "Iterator[tuple[Path, tuple[str, str]]]":
    """Each group that limits this process, from its own up: its folder, and the names of the limit and the use."""
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            top, names = _first(root, "sys/fs/cgroup/memory"), ("memory.limit_in_bytes", "memory.usage_in_bytes")
        elif controllers == "":
            top = _first(root, "sys/fs/cgroup/unified", "sys/fs/cgroup")
            names = ("memory.max", "memory.current")
        else:
            continue
        for part in (Path(path.lstrip("/")), *Path(path.lstrip("/")).parents):
            if top is not None and ".." not in part.parts:
                yield top / part, names


def _first(root: Path, *places: str) -> Optional[Path]:
    return next((root / place for place in places if (root / place).is_dir()), None)


def _lines(path: Path) -> "list[str]":
    try:
        return [line for line in path.read_text().splitlines() if line.count(":") >= 2]
    except OSError:
        return []


def _reclaimable(stat: Path) -> int:
    """The file pages of a group that nobody uses at present, in bytes."""
    try:
        words = dict(line.split(" ", 1) for line in stat.read_text().splitlines() if " " in line)
    except OSError:
        return 0
    return int(words.get("total_inactive_file", words.get("inactive_file", "0")))


def prefer_as_victim(root: Path, score: int = 500) -> None:
    """Where memory runs out, the kernel is to end this process rather than another one's. May not be allowed."""
    place = root / "proc/self/oom_score_adj"
    if (number_in(place) or 0) < score:
        with contextlib.suppress(OSError):
            place.write_text(str(score))
