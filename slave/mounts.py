"""What is mounted, and what is swap: the parts of /proc that say which storage is in use.

Rule: text in, data out; paths come with the kernel's octal escapes undone. Only this process's mount namespace is
seen; a mount in another one shows as a device that is opened exclusively.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mount:
    number: tuple[int, int]  # of the filesystem; a device's own, but not for btrfs, overlay, nfs
    point: str
    filesystem: str
    source: str
    read_only: bool


def parse_mountinfo(text: str) -> tuple[Mount, ...]:
    """/proc/self/mountinfo: `id parent major:minor root point options [tags] - type source super-options`."""
    found = []
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        fields, more = before.split(), after.split()
        if len(fields) < 6 or len(more) < 2:
            continue
        major, _, minor = fields[2].partition(":")
        options = [*fields[5].split(","), *(more[2].split(",") if len(more) > 2 else [])]
        found.append(
            Mount((int(major), int(minor)), unescaped(fields[4]), more[0], unescaped(more[1]), "ro" in options)
        )
    return tuple(found)


def parse_swaps(text: str) -> tuple[str, ...]:
    """/proc/swaps: the paths of devices and files, below one line of headings."""
    return tuple(unescaped(line.split()[0]) for line in text.splitlines()[1:] if line.strip())


def mount_of(path: str, mounts: Sequence[Mount]) -> Mount | None:
    """The mount that a real path (no links in it) lies on: of the longest point that holds it, the newest."""
    best = None
    for mount in mounts:
        inside = path == mount.point or path.startswith(mount.point.rstrip("/") + "/")
        if inside and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best


def unescaped(text: str) -> str:
    """`/mnt/a\\040b` is "/mnt/a b"; bytes above 127 are UTF-8."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)
