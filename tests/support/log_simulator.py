"""fio's histogram logger, simulated: from every I/O that completed to the rows that fio would write.

Rule: as in fio's source. A direction's clock begins at its first completion; at each completion that finds it a
period or more behind, a row of all I/Os since the last one is written, and the clock advances by one period.
What completed after the last row is never written.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ivypy.protocol.histogram import bucket_of
from tests.support.logs import log, row


@dataclass(frozen=True)
class Io:
    at_ms: float  # its completion, from the job's start
    ns: int  # its latency
    direction: int = 0


def paced(rate: float, seconds: float, ns: int, start_s: float = 0.0, direction: int = 0) -> list[Io]:
    """I/Os at equal distances."""
    return [Io(1000 * (start_s + (n + 0.5) / rate), ns, direction) for n in range(round(rate * seconds))]


def rows_of(ios: Iterable[Io], period_ms: int, epoch_ms: int = 0) -> list[str]:
    """The lines of the log."""
    lines: list[str] = []
    last: dict[int, int] = {}
    since: dict[int, Counter[int]] = {}
    for io in sorted(ios, key=lambda io: io.at_ms):
        elapsed = int(io.at_ms)
        since.setdefault(io.direction, Counter())[bucket_of(io.ns)] += 1
        if not last.setdefault(io.direction, elapsed):
            last[io.direction] = 0
        if elapsed - last[io.direction] >= period_ms:
            lines.append(row(epoch_ms + elapsed, io.direction, since.pop(io.direction)))
            last[io.direction] += period_ms
    return lines


def logged(ios: Iterable[Io], period_ms: int) -> list[Io]:
    """The I/Os that are in the log: those until a direction's last row."""
    lines = [line.split(", ", 2) for line in rows_of(ios, period_ms)]
    last = {int(direction): int(stamp) for stamp, direction, _ in lines}
    return [io for io in ios if int(io.at_ms) <= last.get(io.direction, -1)]


def write_histogram_log(path: Path, ios: Iterable[Io], period_ms: int, epoch_ms: int = 0) -> Path:
    return log(path, rows_of(ios, period_ms, epoch_ms))


def write_latency_log(path: Path, ios: Iterable[Io], epoch_ms: int = 0) -> Path:
    """Every I/O, in fio's order: that of completion."""
    ordered = sorted(ios, key=lambda io: io.at_ms)
    return log(path, [f"{epoch_ms + int(io.at_ms)}, {io.ns}, {io.direction}, 4096, 0\n" for io in ordered])


@dataclass(frozen=True)
class Truth:
    """What an interval really holds; latencies in us."""

    count: int
    low: float
    high: float
    values: tuple[float, ...]

    def percentile(self, percent: float) -> float:
        """By nearest rank."""
        return self.values[max(math.ceil(percent / 100 * len(self.values)), 1) - 1]


def truths(ios: Sequence[Io], interval_ms: int, intervals: int) -> list[Truth]:
    """Of the intervals (0, length], (length, 2 length] ..."""
    found = []
    for number in range(intervals):
        begin, end = number * interval_ms, (number + 1) * interval_ms
        values = tuple(sorted(io.ns / 1000 for io in ios if begin < io.at_ms <= end))
        found.append(Truth(len(values), values[0] if values else 0, values[-1] if values else 0, values))
    return found
