"""HdrHistogram's files, for its viewers: .hgrm (one percentile distribution) and .hlog (a histogram an interval).

Rule: our buckets are written through their middles into an HdrHistogram of two significant digits in nanoseconds,
whose cells are finer than ours, so nothing is lost that was there. Counts are whole there: weighted ones are rounded
such that each bucket's counts of all intervals add up to the bucket's I/Os. Values in .hgrm are microseconds. Formats:
HdrHistogram's log format 1.3 with V2 compressed payloads.
"""

import base64
import math
import struct
import zlib
from collections.abc import Iterator
from typing import Final

import numpy as np

from ...stats.percentiles import clamped, percentile_buckets
from ..readers.records import NS_PER_S, Floats
from ..result.series import Histograms, Series

_DIGITS: Final = 2
_HALF_BITS: Final = 7  # sub-buckets: 2 * 10^_DIGITS, rounded up to 2^8, of which the upper half is used
_COOKIE: Final = 0x1C849303 | 0x10
_COMPRESSED_COOKIE: Final = 0x1C849304 | 0x10
_HIGHEST_NS: Final = 1 << 46
_TICKS: Final = 5  # steps per halving of the distance to 100 %
_LAST_TICK: Final = 1 - 1e-9


def hgrm(series: Series) -> str:
    """The percentile distribution of the whole span."""
    assert series.histograms is not None
    histograms = series.histograms
    counts = histograms.cells.sum(axis=0)
    upto, total = np.cumsum(counts), float(counts.sum())
    whole, middles = series.whole, histograms.layout.middles[histograms.base :][: len(counts)]
    middles = clamped(middles, whole.low[:1], whole.high[:1]) / 1000
    lines = ["       Value     Percentile TotalCount 1/(1-Percentile)", ""]
    ticks = list(_ticks())
    buckets, _ = percentile_buckets(counts[None], ticks)
    for share, bucket in zip(ticks, buckets[:, 0].tolist(), strict=True):
        inverse = f"{1 / (1 - share):14.2f}" if share < 1 else ""
        lines.append(f"{middles[bucket]:12.3f} {share:2.12f} {upto[bucket]:10.0f} {inverse}".rstrip())
        if upto[bucket] >= total and share < 1:
            lines.append(f"{middles[bucket]:12.3f} {1:2.12f} {upto[bucket]:10.0f}")
            break
    if whole.saturated[0]:
        lines.append("#[Saturated: the mean, the deviation, the maximum and values equal to it are lower bounds]")
    lines += [
        f"#[Mean    = {whole.mean[0] / 1000:12.3f}, StdDeviation   = {whole.stdev[0] / 1000:12.3f}]",
        f"#[Max     = {whole.high[0] / 1000:12.3f}, Total count    = {total:12.0f}]",
        f"#[Buckets = {histograms.layout.groups:12d}, SubBuckets     = {64:12d}]",
    ]
    return "\n".join(lines) + "\n"


def _ticks() -> Iterator[float]:
    """Shares that come nearer to 1 in steps that halve with the distance."""
    share = 0.0
    while share < _LAST_TICK:
        yield share
        halvings = math.floor(math.log2(1 / (1 - share))) + 1
        share += 1 / (_TICKS * 2**halvings)
    yield 1.0


def hlog(series: Series) -> str:
    """A line per interval that holds anything; stamps in seconds."""
    assert series.histograms is not None
    histograms, length = series.histograms, series.length_ns / NS_PER_S
    start = series.first * length
    lines = [
        "#[Logged by ivypy percentiles; latencies in nanoseconds]",
        "#[Histogram log format version 1.3]",
        f"#[StartTime: {start:.3f} (seconds since epoch)]",
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
    ]
    for quantum, cells, high in zip(histograms.quanta, whole_counts(histograms), series.statistics.high, strict=True):
        payload = base64.b64encode(encode(histograms, cells)).decode("ascii")
        lines.append(f"{int(quantum) * length:.3f},{length:.3f},{high / 1e6:.3f},{payload}")
    return "\n".join(lines) + "\n"


def whole_counts(histograms: Histograms) -> Floats:
    """The cells, rounded: a bucket's sum up to any interval is off by at most half an I/O, and its last sum by none."""
    return np.diff(np.rint(np.cumsum(histograms.cells, axis=0)), axis=0, prepend=0)


def encode(histograms: Histograms, cells: Floats) -> bytes:
    """One histogram of whole counts, V2 compressed."""
    middles = histograms.layout.middles[histograms.base :][: len(cells)]
    counts: dict[int, int] = {}
    for middle, count in zip(middles, cells, strict=True):
        if count:
            index = _index(int(middle))
            counts[index] = counts.get(index, 0) + int(count)
    body = _counts(counts)
    header = struct.pack(">iiiiqqd", _COOKIE, len(body), 0, _DIGITS, 1, _HIGHEST_NS, 1.0)
    packed = zlib.compress(header + body)
    return struct.pack(">ii", _COMPRESSED_COOKIE, len(packed)) + packed


def _index(ns: int) -> int:
    """HdrHistogram's cell of a value."""
    bucket = max(ns.bit_length() - (_HALF_BITS + 1), 0)
    return ((bucket + 1) << _HALF_BITS) + (ns >> bucket) - (1 << _HALF_BITS)


def _counts(counts: dict[int, int]) -> bytes:
    """ZigZag LEB128: a count, or a run of empty cells as a negative number."""
    out = bytearray()
    before = -1
    for index in sorted(counts):
        if (empty := index - before - 1) > 0:
            out += _zigzag(-empty)
        out += _zigzag(counts[index])
        before = index
    return bytes(out)


def _zigzag(value: int) -> bytes:
    """Seven bits a byte, the lowest first; the ninth byte would hold eight, which no count here needs."""
    rest = (value << 1) ^ (value >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)
