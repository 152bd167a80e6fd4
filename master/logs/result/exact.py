"""Percentiles of single I/Os without buckets: every latency is kept and sorted.

Rule: for as many I/Os as memory holds (16 bytes each), and by completion only. The percentile is numpy's (linear
between the two nearest ranks), as smallfile's tool prints it; its error is none, so its width is 0.
"""

from collections.abc import Sequence
from threading import Lock

import numpy as np

from ...stats.percentiles import fewest_ios
from ..readers.records import Floats, Ints, Samples
from ..timeline.resample import EVERY
from ..timeline.rollups import Slice
from .interval_statistics import Statistics
from .series import Series, Span, Splits


class ExactSamples:
    """One rollup instance's latencies, each with its quantum. Threads may add at once."""

    def __init__(self, length_ns: int) -> None:
        self.length_ns = length_ns
        self._quanta: list[Ints] = []
        self._values: list[Ints] = []
        self._lock = Lock()

    def add_samples(self, samples: Samples, mask: int = EVERY, begin_ns: int | None = None) -> None:
        wanted = (mask >> samples.directions) & 1 != 0
        quanta, values = (samples.ends[wanted] - 1) // self.length_ns, samples.values[wanted]
        with self._lock:
            self._quanta.append(quanta)
            self._values.append(values)

    def finish(self, instance: Slice, percentiles: Sequence[float], spans: Sequence[Span]) -> Series:
        quanta = np.concatenate([np.empty(0, np.int64), *self._quanta])
        values = np.concatenate([np.empty(0, np.int64), *self._values])
        order = np.lexsort((values, quanta))
        quanta, values = quanta[order], values[order].astype(np.float64)
        present, first = np.unique(quanta, return_index=True)
        parts = np.split(values, first[1:]) if len(present) else []
        statistics = exact_statistics(parts, percentiles)
        return Series(
            instance,
            self.length_ns,
            tuple(percentiles),
            present,
            statistics,
            exact_statistics([values], percentiles),
            tuple(spans),
            Splits.none(statistics.count, len(percentiles)),
        )


def exact_statistics(parts: Sequence[Floats], percentiles: Sequence[float]) -> Statistics:
    """Of each array of latencies (ns), which may be empty."""
    shape = (len(parts), len(percentiles))
    values = np.full(shape, np.nan)
    count, sums = np.zeros(len(parts)), np.zeros(len(parts))
    at_least, widths = np.zeros(shape, bool), np.zeros(shape)
    stdev, low, high = (np.full(len(parts), np.nan) for _ in range(3))
    insufficient = np.zeros(shape, bool)
    widths[[not len(part) for part in parts]] = np.nan
    for row, part in enumerate(parts):
        count[row] = len(part)
        if len(part):
            sums[row], low[row], high[row] = part.sum(), part.min(), part.max()
            stdev[row] = part.std(ddof=1) if len(part) > 1 else 0.0
            values[row] = np.percentile(part, percentiles)
            insufficient[row] = [0 < p < 100 and len(part) < fewest_ios(p / 100) for p in percentiles]
    return Statistics(
        count,
        sums,
        stdev,
        low,
        high,
        values,
        widths,
        at_least,
        insufficient,
        np.zeros(len(parts), bool),
    )
