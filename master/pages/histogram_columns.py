"""The histograms of one rollup instance over time, as a page takes them: binary, a column per stretch of time.

The answer is little-endian: a u32, the length of the header; the header, JSON, padded with spaces so that what follows
begins at a multiple of 8; then the counts of each set, u32, row-major (columns, buckets).

    {"group": 4, "first": [0, 4, ...], "start": [...], "length_s": [...], "in_measurement": [...], "bits": 6,
     "sets": [{"name": "read.service", "low": 700, "high": 1100, "offset": 0,
               "count": [...], "min_us": [...], "max_us": [...], "sum_us": [...], "valid": [...]}]}

A column is `group` neighbouring subintervals, a power of two, so that there are at most MOST_COLUMNS; the columns of an
answer take the place of those that the page has from its first one on. `offset` counts bytes from the first count.
`valid` is 0 where response times have no meaning, since some I/O was not paced. Buckets are those of
protocol/histogram.py: the page takes the percentile from them exactly as master/stats/percentiles.py does.
"""

import json
import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...protocol.counters import RESPONSES, SERVICES, Kind
from ...protocol.histogram import BITS

MOST_COLUMNS: Final = 1200
SETS: Final[Mapping[str, tuple[int, ...]]] = {  # the series of which each is the sum
    f"{direction}.{time}": tuple(series[kind] for kind in kinds)
    for time, series in (("service", SERVICES), ("response", RESPONSES))
    for direction, kinds in (
        ("read", (Kind.RANDOM_READ, Kind.SEQUENTIAL_READ)),
        ("write", (Kind.RANDOM_WRITE, Kind.SEQUENTIAL_WRITE)),
    )
}
SERIES_SHOWN: Final = 8  # the first ones: those of reads and writes


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """One histogram, and the moments of what is in it; times in nanoseconds."""

    low: int  # its first bucket
    counts: NDArray[np.uint64]
    count: int
    total: int
    least: int
    most: int

    @property
    def high(self) -> int:
        return self.low + len(self.counts)


def added(parts: Sequence[Cells]) -> Cells | None:
    """The sum of histograms; None of none."""
    if len(parts) <= 1:
        return parts[0] if parts else None
    low, high = min(part.low for part in parts), max(part.high for part in parts)
    counts = np.zeros(high - low, np.uint64)
    for part in parts:
        counts[part.low - low : part.high - low] += part.counts
    return Cells(
        low,
        counts,
        sum(part.count for part in parts),
        sum(part.total for part in parts),
        min(part.least for part in parts),
        max(part.most for part in parts),
    )


Column = Mapping[str, Cells]  # by the name of a set, those that hold any I/O


@dataclass(frozen=True, slots=True, eq=False)
class Times:
    """The times of each subinterval, by its place: lists of one length."""

    start: Sequence[float]  # unix seconds
    length_s: Sequence[float]
    in_measurement: Sequence[int]
    valid: Mapping[str, Sequence[bool]]  # of each set


def group_of(subintervals: int) -> int:
    """How many neighbouring subintervals make a column."""
    group = 1
    while subintervals > group * MOST_COLUMNS:
        group *= 2
    return group


def encoded(columns: Sequence[Column], times: Times, first: int, names: Collection[str] = tuple(SETS)) -> bytes:
    """The answer for the subintervals from `first` on, or from the begin of the column that it is in.

    `names`: of the sets; logs that do not tell reads from writes have `all.service` and `all.response` instead.
    """
    group = group_of(len(columns))
    begins = range(first - first % group, len(columns), group)
    grouped = [_grouped(columns[begin : begin + group], names) for begin in begins]
    sets, arrays, offset = [], [], 0
    for name in names:
        valid = [int(all(times.valid[name][begin : begin + group])) for begin in begins]
        if (made := _set([one.get(name) for one in grouped])) is not None:
            about, counts = made
            sets.append({"name": name, "offset": offset, **about, "valid": valid})
            arrays.append(counts)
            offset += counts.nbytes
    header = {
        "group": group,
        "first": [*begins],
        "start": [times.start[begin] for begin in begins],
        "length_s": [sum(times.length_s[begin : begin + group]) for begin in begins],
        "in_measurement": [max(times.in_measurement[begin : begin + group]) for begin in begins],
        "bits": BITS,
        "sets": sets,
    }
    text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
    text += b" " * (-(4 + len(text)) % 8)
    return b"".join([struct.pack("<I", len(text)), text, *(one.tobytes() for one in arrays)])


def _grouped(columns: Sequence[Column], names: Collection[str]) -> Column:
    if len(columns) == 1:
        return columns[0]
    sums = {name: added([one[name] for one in columns if name in one]) for name in names}
    return {name: cells for name, cells in sums.items() if cells is not None}


def _set(cells: Sequence[Cells | None]) -> tuple[dict[str, Any], NDArray[np.uint32]] | None:
    """A set's part of the header, and its counts; None where it holds nothing at all."""
    used = [cell for cell in cells if cell is not None]
    if not used:
        return None
    low, high = min(cell.low for cell in used), max(cell.high for cell in used)
    counts = np.zeros((len(cells), high - low), "<u4")
    for row, cell in enumerate(cells):
        if cell is not None:
            counts[row, cell.low - low : cell.high - low] = np.minimum(cell.counts, 0xFFFFFFFF)
    return {
        "low": low,
        "high": high,
        "count": [cell.count if cell else 0 for cell in cells],
        "min_us": [cell.least / 1000 if cell else None for cell in cells],
        "max_us": [cell.most / 1000 if cell else None for cell in cells],
        "sum_us": [cell.total / 1000 if cell else 0 for cell in cells],
    }, counts
