"""Sizes in bytes as text, for messages of both ends."""

from typing import Final

UNITS: Final = tuple((f"{prefix}iB", 1 << 10 * power) for power, prefix in reversed(list(enumerate("KMGTPE", 1))))


def exact_size(size: int) -> str:
    """`65536` is "64 KiB", `1000` is "1,000 bytes": in binary units where three digits are enough, else exact."""
    for unit, scale in UNITS:
        shown = f"{size / scale:g}"  # six digits
        if size >= scale and size * 1000 % scale == 0 and float(shown) * scale == size:
            return f"{shown} {unit}"
    return f"{size:,} bytes"


def rough_size(size: int) -> str:
    """Three digits, where precision does not matter: "3.22 GiB"."""
    for unit, scale in UNITS:
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size} bytes"
