"""Prints what fiologparser_hist.py prints.

Kept as it is: a bucket's upper edge is that of the bucket after it, so that from 128 units on every value is half a
bucket too high; `samples` counts an I/O in every interval that it touches; intervals without samples have no row.
Better here: stamps from 1970 neither loop from time 0 nor see only the first record, and an empty second file is a
fault with its name.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from ..readers.bucket_layouts import Layout
from ..readers.detect_format import Hints
from ..readers.records import Floats, Ints
from .log import Rows, histogram_sources, read_rows
from .options import CompatOptions

_PERCENTILES: Final = (90.0, 95.0, 99.0)
_LETTERS: Final = {"r": 0, "w": 1, "t": 2}
_MIXED: Final = "m"
_CLOSE_MS: Final = 10  # --noweight: a stamp this close before an interval's end belongs to the next
_LONGEST_MS: Final = 20_000  # weighted: how far ahead rows are searched


@dataclass(frozen=True, slots=True)
class _Merged:
    """The rows of all logs in the order of their stamps."""

    stamps: Ints
    directions: np.ndarray
    counts: Floats
    highest: Ints  # each row's highest bucket that is not empty; -1: none


def lines(paths: Sequence[Path], hints: Hints, options: CompatOptions) -> Iterator[str]:
    percentiles = options.percentiles or _PERCENTILES
    sources = histogram_sources(paths, hints)
    values = _Values.of(sources[0].layout)
    merged = _merge([read_rows(source) for source in sources])
    letters = sorted(set(options.directions)) or [_MIXED]
    heads = ["end-time", *(["dir"] if options.directions else []), "samples", "min", "avg", "median"]
    yield ", ".join([*heads, *(f"{p:g}%" for p in percentiles), "max"])
    intervals = _weighted if options.weighted else _unweighted
    for end_ms, by_letter in intervals(merged, values, letters, options.interval_ms):
        for letter in letters:
            tally = by_letter[letter]
            if tally.samples > 0:
                yield _row(end_ms, letter, tally, values, percentiles, options)


@dataclass(frozen=True, slots=True)
class _Values:
    """The value that the tool takes a bucket for, in the log's unit."""

    middle: Floats
    low: Floats
    high: Floats
    per_ms: float

    @classmethod
    def of(cls, layout: Layout) -> "_Values":
        fine = (layout.edges // layout.unit_ns).astype(np.float64)
        step = fine[-1] - fine[-2]  # beyond the last bucket the group goes on
        low, next_low = fine[:-1], fine[1:]
        after = np.append(fine[2:], fine[-1] + step)
        if layout.coarseness:
            # the upper edge of the first fine bucket behind, rather than of the coarse one
            after = next_low + _fine_width(next_low)
        high = np.where(next_low < 128, next_low, after)
        return cls(low + (high - low) * 0.5, low, high, 1_000_000 / layout.unit_ns)


def _fine_width(value: Floats) -> Floats:
    """The width of fio's fine bucket at a value."""
    exponent: Floats = np.maximum(np.floor(np.log2(np.maximum(value, 1))) - 6, 0)
    return np.exp2(exponent)


@dataclass(slots=True)
class _Tally:
    cells: Floats
    samples: int = 0
    low: float | None = None
    high: float | None = None


def _merge(logs: Sequence[Rows]) -> _Merged:
    """By stamp; rows of one stamp log by log, as they stand."""
    stamps = np.concatenate([log.stamps for log in logs])
    directions = np.concatenate([log.directions for log in logs])
    counts = np.concatenate([log.counts for log in logs])
    order = np.argsort(stamps, kind="stable")
    counts = counts[order]
    used = counts > 0
    highest = np.where(used.any(axis=1), counts.shape[1] - 1 - used[:, ::-1].argmax(axis=1), -1)
    return _Merged(stamps[order], directions[order], counts, highest)


Interval = tuple[int, dict[str, _Tally]]


def _tallies(letters: Sequence[str], buckets: int) -> dict[str, _Tally]:
    return {letter: _Tally(np.zeros(buckets)) for letter in letters}


def _wanted(letters: Sequence[str], direction: int) -> list[str]:
    return [letter for letter in letters if letter == _MIXED or _LETTERS[letter] == direction]


def _unweighted(merged: _Merged, values: _Values, letters: Sequence[str], interval_ms: int) -> Iterator[Interval]:
    """Each row into the interval that holds its stamp."""
    numbers = (merged.stamps + _CLOSE_MS) // interval_ms
    for number in np.unique(numbers):
        tallies = _tallies(letters, merged.counts.shape[1])
        for row in np.flatnonzero(numbers == number):
            for letter in _wanted(letters, int(merged.directions[row])):
                tallies[letter].cells += merged.counts[row]
        for tally in tallies.values():
            used = np.flatnonzero(tally.cells)
            tally.samples = int(tally.cells.sum())
            if len(used):
                tally.low, tally.high = float(values.middle[used[0]]), float(values.middle[used[-1]])
        yield int(number + 1) * interval_ms, tallies


def _weighted(merged: _Merged, values: _Values, letters: Sequence[str], interval_ms: int) -> Iterator[Interval]:
    """An I/O of latency v spread over [stamp - interval/2 - v, stamp], looking 20 s ahead."""
    spread_ms = values.middle / values.per_ms
    first = int(merged.stamps[0])
    # A log that begins late (stamps from 1970) is not walked to from time 0.
    begin = 0 if first <= interval_ms + _LONGEST_MS // 1000 else _whole(first - _LONGEST_MS // 1000, interval_ms)
    while begin < merged.stamps[-1]:
        end = begin + interval_ms
        tallies = _tallies(letters, merged.counts.shape[1])
        low = int(np.searchsorted(merged.stamps, begin, side="right"))
        # As the tool's buffer: rows up to the first one beyond 20 s after the interval's end.
        high = min(int(np.searchsorted(merged.stamps, end + _LONGEST_MS, side="left")) + 1, len(merged.stamps))
        for row in range(low, high):
            stamp = int(merged.stamps[row])
            starts = (stamp - 0.5 * interval_ms) - spread_ms
            reached = starts < end  # slow buckets: from some one on
            if merged.highest[row] < 0 or not reached[merged.highest[row]]:
                continue
            _add(
                merged,
                values,
                row,
                reached,
                starts,
                (begin, end),
                [tallies[k] for k in _wanted(letters, int(merged.directions[row]))],
            )
        yield end, tallies
        begin = end


def _whole(ms: int, interval_ms: int) -> int:
    return ms - ms % interval_ms


def _add(
    merged: _Merged,
    values: _Values,
    row: int,
    reached: np.ndarray,
    starts: Floats,
    interval: tuple[int, int],
    tallies: Sequence[_Tally],
) -> None:
    first = int(np.argmax(reached))
    counts, begins = merged.counts[row, first:], starts[first:]
    stamp = float(merged.stamps[row])
    weights = (min(stamp, float(interval[1])) - np.maximum(begins, float(interval[0]))) / (stamp - begins)
    weighted = counts * weights
    used = np.flatnonzero(counts)
    low = float(values.low[first + max(0, used[0] - 1)])
    high = float(values.high[first + min(len(counts) - 1, used[-1] + 1)])
    for tally in tallies:
        tally.cells[first:] += weighted
        tally.samples += int(counts.sum())
        tally.low = low if tally.low is None else min(tally.low, low)
        tally.high = high if tally.high is None else max(tally.high, high)


def _row(
    end_ms: int,
    letter: str,
    tally: _Tally,
    values: _Values,
    percentiles: Sequence[float],
    options: CompatOptions,
) -> str:
    weights = tally.cells
    share = 100 * (weights.cumsum() - weights / 2.0) / weights.sum()
    found = np.interp([50.0, *percentiles], share, values.middle)
    mean = float(np.sum(values.middle * weights) / np.sum(weights))
    numbers = [number / options.divisor for number in (tally.low or 0.0, mean, *found, tally.high or 0.0)]
    texts = [f"{number:.{options.decimals}f}" for number in numbers]
    if options.divisor == 1:
        texts[0], texts[-1] = str(int(numbers[0])), str(int(numbers[-1]))
    return ", ".join([str(end_ms), *([letter] if options.directions else []), str(tally.samples), *texts])
