"""The control groups that limit this process, as folders of the kernel's cgroup filesystems (v1 and v2).

Rule: a limit holds for a group and all below it, so every group counts from our own up to the top that is visible here.
"""

from pathlib import Path
from typing import Final

from ..devices.block_devices import ROOT
from ..devices.mounts import unescaped

_V1_NS: Final = "throttled_time"
_V2_US: Final = "throttled_usec"


def groups_with(controller: str, root: Path = ROOT) -> tuple[Path, ...]:
    """The folders of our group and those above it that may have this controller ("cpu"), ours first; () if none."""
    try:
        ours = (root / "proc/self/cgroup").read_text()
        mounted = (root / "proc/self/mountinfo").read_bytes()
    except (OSError, ValueError):
        return ()
    folders: list[Path] = []
    for line in ours.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        unified = number == "0" and not controllers
        if unified or controller in controllers.split(","):
            folders += _folders(path, "" if unified else controller, mounted, root)
    return tuple(folders)


def _folders(path: str, controller: str, mounted: bytes, root: Path) -> list[Path]:
    """`controller`: "" for the unified hierarchy (v2)."""
    for line in mounted.split(b"\n"):
        before, _, after = line.partition(b" - ")
        fields, more = before.split(b" "), after.split(b" ")
        if len(fields) < 6 or len(more) < 3:
            continue
        of_kind = more[0] == (b"cgroup" if controller else b"cgroup2")
        if of_kind and (not controller or controller.encode() in more[2].split(b",")):
            shown, point = unescaped(fields[3]), root / unescaped(fields[4]).lstrip("/")
            # In a container only a part of the tree is mounted; ".." is a group above what is visible.
            inside = path if shown == "/" else path.removeprefix(shown)
            parts = [] if ".." in inside.split("/") else [part for part in inside.split("/") if part]
            return [point.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1)]
    return []


def throttled_ns(groups: tuple[Path, ...]) -> tuple[int, ...]:
    """For how long its CPU quota has held each of these groups back so far, summed over cores; 0 where none is told."""
    return tuple(_throttled_ns(group) for group in groups)


def _throttled_ns(group: Path) -> int:
    try:
        text = (group / "cpu.stat").read_text()
    except OSError:
        return 0
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name in (_V1_NS, _V2_US) and value.isdigit():
            return int(value) * (1000 if name == _V2_US else 1)
    return 0
