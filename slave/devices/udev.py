"""udev's database: what the system found out about a block device when it appeared.

Rule: it knows more than sysfs (whole model names, stable links), but may be missing altogether, in containers and
small systems; then the result is empty and sysfs must do.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Udev:
    properties: Mapping[str, str] = field(default_factory=dict)  # ID_SERIAL_SHORT ...
    links: tuple[str, ...] = ()  # below /dev: disk/by-id/nvme-...

    def text(self, *names: str) -> str:
        """The first of these properties that is there and not empty, its \\x20 escapes undone."""
        for name in names:
            value = unescaped(self.properties.get(name, "")).strip()
            if value:
                return value
        return ""

    @property
    def by_id(self) -> str:
        """The most telling of the stable names: by vendor, model and serial before bare numbers (wwn-, nvme-eui.)."""
        names = sorted(link.removeprefix("disk/by-id/") for link in self.links if link.startswith("disk/by-id/"))
        bare = re.compile(r"wwn-|nvme-(eui|nvme|uuid)\.|scsi-[0-9a-f]{16,}|dm-uuid-")
        return min(names, key=lambda name: (bool(bare.match(name)), name), default="")


def read(number: tuple[int, int], root: Path) -> Udev:
    """Read udev's record of the block device with this (major, minor); nothing where it has no entry."""
    try:
        text = (root / f"run/udev/data/b{number[0]}:{number[1]}").read_text("utf-8", "replace")
    except OSError:
        return Udev()
    return parse(text)


def parse(text: str) -> Udev:
    """One file of the database: `E:` lines are properties, `S:` lines links."""
    properties, links = {}, []
    for line in text.splitlines():
        kind, _, rest = line.partition(":")
        if kind == "E":
            name, _, value = rest.partition("=")
            properties[name] = value
        elif kind == "S":
            links.append(rest)
    return Udev(properties, tuple(links))


def unescaped(text: str) -> str:
    """`SAMSUNG\\x20SSD` as it was before udev encoded it."""
    return re.sub(r"\\x([0-9a-fA-F]{2})", lambda found: chr(int(found[1], 16)), text)
