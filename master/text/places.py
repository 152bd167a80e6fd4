"""Places in a LUN or a range, as a plan states them: in percent, where no plan knows its size; and hot zones of these.

Rule: pure. A plan has some zones; on a LUN they are those, and the gaps between them, which share what is left.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from ...protocol.parameters import MOST_ZONES, Zone, Zones

_ROUNDING: Final = 1e-9  # of shares
MOST_HOT: Final = (MOST_ZONES - 1) // 2  # there may be gaps between all of them
_ANY: Final = 1 << 60  # bytes, of a range


@dataclass(frozen=True, slots=True)
class Position:
    """A place within a LUN: a fraction of its size, bytes from its start, or so many bytes after that fraction."""

    fraction: float | None = None
    bytes: int | None = None

    def within(self, size: int, block: int) -> int:
        """In bytes from the LUN's start; a fraction is rounded down to a whole block. Bytes after a fraction end with
        the LUN: who writes them does not know its size."""
        if self.fraction is None:
            return self.bytes or 0
        place = int(self.fraction * (size // block)) * block
        return place if self.bytes is None else min(place + self.bytes, size)


Span = tuple[Position, Position]
WHOLE: Final[Span] = (Position(fraction=0.0), Position(fraction=1.0))
BEGINNING: Final = Position(bytes=0)


def in_bytes(span: Span, lun_size: int, blocksize: int) -> tuple[int, int]:
    """A span of a LUN of that size; (0, 0) for all of it."""
    return (0, 0) if span == WHOLE else (span[0].within(lun_size, blocksize), span[1].within(lun_size, blocksize))


@dataclass(frozen=True, slots=True)
class HotZone:
    """A part of a range, and how many of the I/Os go there."""

    place: Span | Position  # of the range; as one position, so much behind the zone before
    reads: float  # share of the reads
    others: float  # share of all other I/Os


HotZones = tuple[HotZone, ...]


def zones_on(hot_zones: Sequence[HotZone], extent: tuple[int, int], align: int, largest: int) -> Zones:
    """The zones of a range that begins and ends at `extent`, in bytes, ascending; with the gaps that have a place for
    the `largest` I/O. Where there are none, the shares add up to what the plan says.

    `align`: fractions are rounded down to multiples of it.
    """
    zones = sorted(_placed(hot_zones, extent, align), key=lambda zone: (zone.start, zone.end))
    edges = [extent[0], *(edge for zone in zones for edge in (zone.start, zone.end)), extent[1]]
    gaps = [(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if end - start >= largest + align]
    left = (1 - sum(zone.reads for zone in zones), 1 - sum(zone.others for zone in zones))
    if not gaps or max(left) <= _ROUNDING:
        return tuple(zones)
    total = sum(end - start for start, end in gaps)
    others = [Zone(start, end, *((end - start) / total * max(share, 0.0) for share in left)) for start, end in gaps]
    return tuple(sorted([*zones, *others], key=lambda zone: (zone.start, zone.end)))


def _placed(hot_zones: Sequence[HotZone], extent: tuple[int, int], align: int) -> Iterator[Zone]:
    length = extent[1] - extent[0]
    end = extent[0]
    for zone in hot_zones:
        if isinstance(zone.place, Position):
            start, end = end, end + zone.place.within(length, align)
        else:
            start, end = (extent[0] + place.within(length, align) for place in zone.place)
        yield Zone(start, end, zone.reads, zone.others)


def _positions(hot_zones: Sequence[HotZone]) -> list[Position]:
    return [one for zone in hot_zones for one in (zone.place if isinstance(zone.place, tuple) else (zone.place,))]


def is_in_percent(places: Position | HotZones) -> bool:
    """Whether some of these depends on how large the range is. Hot zones do: what lies between them ends with it."""
    return isinstance(places, tuple) or places.fraction is not None


def do_overlap(hot_zones: Sequence[HotZone]) -> bool:
    """Whether some of the zones do, whatever the range is."""
    positions = _positions(hot_zones)
    if any(one.fraction is None for one in positions) and any(one.bytes is None for one in positions):
        return False
    zones = sorted(_placed(hot_zones, (0, _ANY), 1), key=lambda zone: (zone.start, zone.end))
    return any(one.end > other.start for one, other in pairwise(zones))


def cover_all(hot_zones: Sequence[HotZone]) -> bool:
    """Whether they leave nothing of the range, whatever that is."""
    if any(one.bytes is not None for one in _positions(hot_zones)):
        return False
    return sum(zone.end - zone.start for zone in _placed(hot_zones, (0, _ANY), 1)) >= _ANY
