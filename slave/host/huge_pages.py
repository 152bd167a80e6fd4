"""Huge pages: in which pages the I/O buffers really are, which explains why one run was faster than another.

Rule: what the kernel reports (/proc/self/smaps_rollup), not what was requested.
"""

from typing import Final

from ...protocol.quantities import exact_size
from ..kernel_files import Place

HUGE: Final = 2 << 20  # below this, I/O buffers are in ordinary pages
SMAPS: Final = "/proc/self/smaps_rollup"


def describe_buffers(large: int, place: Place = SMAPS) -> str:
    """In which pages so many bytes of I/O buffers are, as a sentence."""
    sizes = smaps_sizes(place)
    reserved = min(sizes.get("Private_Hugetlb", 0), large)
    transparent = min(sizes.get("AnonHugePages", 0), large - reserved)
    ordinary = large - reserved - transparent
    parts = [(reserved, "reserved huge pages"), (transparent, "transparent huge pages"), (ordinary, "ordinary pages")]
    said = ", ".join(f"{exact_size(size)} in {what}" for size, what in parts if size)
    return f"I/O buffers of {exact_size(HUGE)} and more: {said}"


def smaps_sizes(place: Place) -> dict[str, int]:
    """The sizes in a file of smaps, in bytes; none where it cannot be read."""
    try:
        with open(place) as file:
            words = [line.split() for line in file]
    except OSError:
        return {}
    return {line[0].rstrip(":"): int(line[1]) * 1024 for line in words if len(line) == 3 and line[2] == "kB"}
