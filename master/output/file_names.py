"""File names made from names that users, vendors and operating systems chose.

Rule: bytes outside [A-Za-z0-9._=+-] become %XX, so a name never leaves its folder and reads back by unquoting; a
long one keeps its beginning and ends in a hash of the whole. Two names never give one file name.
"""

import hashlib
import re
from typing import Final

SO_FAR: Final = "so_far"  # the folder of what the running step has measured
LONGEST: Final = 180  # bytes of a stem; file systems allow 255, and endings are added
_PLAIN: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._=+-")
_HISTOGRAM: Final = ".histogram"


def stem(name: str) -> str:
    """A file's name without its ending. Never empty, never starting with a dot, never ending in ".histogram"."""
    escaped = "".join(
        chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in name.encode("utf-8", "surrogateescape")
    )
    if escaped.startswith("."):
        escaped = "%2E" + escaped[1:]
    if escaped.endswith(_HISTOGRAM):  # X.histogram.csv is the histogram of X
        escaped = escaped[: -len(_HISTOGRAM)] + "%2E" + _HISTOGRAM[1:]
    if len(escaped) <= LONGEST:
        return escaped or "%"
    digest = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return f"{_whole(escaped[: LONGEST - len(digest) - 2])}%%{digest}"  # no escape makes %%


def _whole(beginning: str) -> str:
    """Without an escape that was cut in two at the end."""
    return re.sub(r"%[0-9A-F]?$", "", beginning)


def step_folder(number: int, name: str) -> str:
    """`step0003.half`"""
    return f"step{number:04d}.{stem(name)}"
