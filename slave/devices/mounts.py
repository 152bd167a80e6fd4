"""Lists what is mounted, and what is swap: the parts of /proc that show which storage is in use.

Rule: bytes in, data out. The kernel escapes what it separates by (blank, tab, newline): a path may hold every other
byte as it is, what Unicode takes for a blank or an end of line among them. Paths come unescaped, as os.fsdecode has
them. A mountinfo shows one mount namespace; see `openers` for the others.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Mount:
    number: tuple[int, int]  # of the filesystem; a device's own, but not for btrfs, overlay, nfs
    point: str
    filesystem: str
    source: str
    read_only: bool


def parse_mountinfo(text: bytes) -> tuple[Mount, ...]:
    """/proc/self/mountinfo: `id parent major:minor root point options [tags] - type source super-options`."""
    mounts = []
    for line in text.split(b"\n"):
        before, _, after = line.partition(b" - ")
        fields, more = before.split(b" "), after.split(b" ")
        if len(fields) < 6 or len(more) < 2:
            continue
        major, _, minor = fields[2].partition(b":")
        options = [*fields[5].split(b","), *(more[2].split(b",") if len(more) > 2 else [])]
        point, filesystem, source = map(unescaped, (fields[4], more[0], more[1]))
        mounts.append(Mount((int(major), int(minor)), point, filesystem, source, b"ro" in options))
    return tuple(mounts)


def parse_swaps(text: bytes) -> tuple[str, ...]:
    """/proc/swaps: the paths of devices and files, below one line of headings; blanks and tabs end them."""
    paths = [re.split(rb"[ \t]", line, maxsplit=1)[0] for line in text.split(b"\n")[1:]]
    return tuple(unescaped(path) for path in paths if path)


def mount_of(path: str, mounts: Sequence[Mount]) -> Mount | None:
    """The mount that a real path (no links in it) lies on: of the longest point that holds it, the newest."""
    best = None
    for mount in mounts:
        inside = path == mount.point or path.startswith(mount.point.rstrip("/") + "/")
        if inside and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best


def unescaped(text: bytes) -> str:
    """`/mnt/a\\040b` is "/mnt/a b"."""
    if b"\\" not in text:
        return os.fsdecode(text)
    return os.fsdecode(re.sub(rb"\\([0-3][0-7]{2})", lambda found: bytes([int(found[1], 8)]), text))
