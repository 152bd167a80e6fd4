"""fio's `random_distribution`, as the keys of a workload.

Rule: pure. zipf and pareto are the same laws; fio scatters their places by a hash, with which some places are shared
and others never visited, a plan by a permutation. Zones are those of a plan, one list for all operations.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from ..text.places import MOST_HOT, HotZone, HotZones, Position
from ..text.units import format_fraction, format_hot_zones, format_number
from .description import Settings
from .fio_text import percentage

_ZIPF, _PARETO = 1.1, 0.2  # fio's defaults
_IRWIN_HALL: Final = 1 / 12  # fio's normal: standard deviation of the mean of twelve even numbers, of the range
_MOST_PARETO: Final = 0.99
_ZONED: Final = ("zoned", "zoned_abs")
WORDS: Final = ("random", "zipf", "pareto", "normal", *_ZONED)
_NUMBER: Final = re.compile(r"\d+(\.\d+)?([eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class Law:
    """Keys of a workload, and where they are not what fio does."""

    keys: Settings = ()
    why: str = ""  # they differ
    nearest: str = ""
    keeps_map: bool = False  # fio still visits each block once, unless `norandommap`

    @property
    def is_even(self) -> bool:
        return not self.keys


EVEN: Final = Law(keeps_map=True)


def law_of(text: str, size: Callable[[str], int]) -> Law:
    """`size` reads a size. Raises ValueError."""
    word, _, rest = text.partition(":")
    if word == "random":
        return EVEN
    if word in _ZONED:
        return _zoned(rest, None if word == "zoned" else size)
    if word not in WORDS:
        raise ValueError(f"{text!r} is not a distribution; fio has {', '.join(WORDS)}")
    number, _, center = rest.partition(":")
    value = float(number) if _NUMBER.fullmatch(number) else None
    if value is None and (number or word == "normal"):
        raise ValueError(f"{text!r} has no number; write for example {word}:{_ZIPF if word == 'zipf' else 20}")
    why = "fio's begins at that place, and its hash puts places anywhere" if center else ""
    nearest = "the plan's frequent places lie all over the range" if center else ""
    if word == "zipf":
        theta = _ZIPF if value is None else value
        if not 0 < theta <= 16:
            raise ValueError(f"{text!r} is out of range; theta is above 0 and at most 16")
        return Law((("zipf", format_number(theta)),), why, nearest)
    if word == "pareto":
        share = _PARETO if value is None else value
        if not 0 < share <= _MOST_PARETO:
            raise ValueError(f"{text!r} is out of range; ivypy has above 0 and at most {_MOST_PARETO}")
        return Law((("pareto", format_fraction(share)),), why, nearest)
    why = "fio's is the mean of twelve even numbers, whose places it scatters by a hash"
    keys = (("normal", format_fraction(round(_IRWIN_HALL, 4))),)
    return Law(keys, why, f"the plan has {format_fraction(round(_IRWIN_HALL, 4))} around the middle")


def _zoned(text: str, size: Callable[[str], int] | None) -> Law:
    """`60/10:30/20:10/70`: shares of the I/Os, and of the range; with a comma before those of writes."""
    directions = [_zones(part, size) for part in text.split(",")]
    if len(directions) > 2:
        raise ValueError("fio has zones of reads and of writes, and no third ones")
    reads = directions[0]
    writes = directions[1] if len(directions) > 1 else reads
    zones = _merged(reads, writes, _of_bytes if size else _of_percent)
    if len(zones) > MOST_HOT:
        raise ValueError(f"it has {len(zones)} zones; a workload has at most {MOST_HOT}")
    return Law((("hot_zones", format_hot_zones(zones)),), keeps_map=True)


Piece = tuple[float, float, float]  # share of the I/Os; first and last place, percent or bytes


def _zones(text: str, size: Callable[[str], int] | None) -> list[Piece]:
    whole = 100.0 if size is None else float("inf")
    pairs = [pair.partition("/") for pair in text.split(":") if pair]
    if not pairs:
        raise ValueError("there are no zones; write for example zoned:90/10:10/90")
    read = percentage_points if size is None else size
    shares = _filled([share for share, _, _ in pairs], percentage_points, 100.0)
    lengths = _filled([length for _, _, length in pairs], read, whole)
    if abs(sum(shares) - 100) > 1e-6:
        raise ValueError(f"the I/Os of its zones add up to {sum(shares):g} %, not to 100")
    if sum(lengths) > whole + 1e-6:
        raise ValueError(f"its zones are {sum(lengths):g} % of the range")
    pieces, at = [], 0.0
    for share, length in zip(shares, lengths, strict=True):
        pieces.append((share / 100, at, at + length))
        at += length
    return [piece for piece in pieces if piece[2] > piece[1]]


def percentage_points(text: str) -> float:
    return percentage(text) * 100


def _filled(texts: Sequence[str], read: Callable[[str], float], whole: float) -> list[float]:
    """Those that are not given have equal parts of what is left."""
    values = [float(read(text)) if text.strip() else None for text in texts]
    given = sum(value for value in values if value is not None)
    missing = values.count(None)
    if missing and whole == float("inf"):
        raise ValueError("a zone has no size; write for example zoned_abs:90/10G:10/90G")
    each = max(whole - given, 0.0) / missing if missing else 0.0
    return [each if value is None else value for value in values]


def _merged(reads: Sequence[Piece], writes: Sequence[Piece], position: Callable[[float], Position]) -> HotZones:
    """One list of zones, each within one zone of both; without those that get no I/O."""
    edges = sorted({edge for piece in (*reads, *writes) for edge in piece[1:]})
    zones = [
        HotZone((position(start), position(end)), _share(reads, start, end), _share(writes, start, end))
        for start, end in pairwise(edges)
    ]
    return tuple(zone for zone in zones if zone.reads + zone.others > 0)


def _share(pieces: Sequence[Piece], start: float, end: float) -> float:
    shares = [share * (end - start) / (last - first) for share, first, last in pieces if first <= start and end <= last]
    return round(sum(shares), 9)


def _of_percent(edge: float) -> Position:
    return Position(fraction=round(edge / 100, 9))


def _of_bytes(edge: float) -> Position:
    return Position(bytes=round(edge))
