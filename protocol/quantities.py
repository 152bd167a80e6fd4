"""Sizes in sentences, on both sides."""

from typing import Final

UNITS: Final = tuple((f"{prefix}iB", 1 << 10 * power) for power, prefix in reversed(list(enumerate("KMGTPE", 1))))


def of_bytes(size: int) -> str:
    """`65536` is "64 KiB", `1000` is "1,000 bytes": in binary units where three digits are enough, else exact."""
    for unit, scale in UNITS:
        if size >= scale and size * 1000 % scale == 0:
            return f"{size / scale:g} {unit}"
    return f"{size:,} bytes"


def roughly(size: int) -> str:
    """Three digits, for what is only good for an impression: "3.22 GiB"."""
    for unit, scale in UNITS:
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size} bytes"
