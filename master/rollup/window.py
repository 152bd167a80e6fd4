"""A window: consecutive subintervals summed into one measurement.

Rule: exact, and in memory that does not grow with the window's length. Histograms and moments add, the state at the
end is the last subinterval's, rates are each host's I/Os over that host's own real time. A window is never summed
over a change of its set of hosts: `fits` says whether a subinterval may be added.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...protocol.counters import KINDS, RESPONSE, SERIES, SERVICE, Count, Moment
from ..stats.block_bootstrap import stated_half_width
from ..stats.confidence import FEWEST_STATED, half_width, ratio_half_width
from ..stats.histograms import NS_PER_US
from .arrays import (
    LIMBS,
    NO_LEAST,
    STATES,
    Buckets,
    Floats,
    Ints,
    Merged,
    RowMoments,
    Words,
    added,
    no_buckets,
    reals,
    sum_of,
    words_of,
)
from .decode_result import threads_of
from .figures import PERCENTILES
from .merge import MergedSubinterval, merged_rates, presence
from .merge_layout import MergeLayout
from .overload import Account, Outstanding
from .thread_stats import ThreadSummary, ThreadTotals

MOST_SAMPLES: Final = 512  # when a series has so many, neighbours are put together
MOST_HISTOGRAMS: Final = 128  # likewise
STATED_ROWS: Final = 16  # rows whose percentiles have a half-width: it takes their histograms of every subinterval


class BatchedFigures:
    """Figures of R rows over time, at most MOST_SAMPLES of them: what comes after is kept as means of 2, 4, 8 ...

    A mean of batches has the same half-width as the mean of what is in them, and memory stays as it is.
    """

    def __init__(self, figures: int, rows: int) -> None:
        self._samples: list[Floats] = []  # each (figures, R)
        self._part = np.zeros((figures, rows))
        self._in_part = 0
        self._batch = 1

    def add(self, figures: Floats) -> None:
        """One subinterval's figures, shape (figures, R)."""
        self._part = self._part + figures
        self._in_part += 1
        if self._in_part < self._batch:
            return
        self._samples.append(self._part / self._batch)
        self._part, self._in_part = np.zeros_like(self._part), 0
        if len(self._samples) == MOST_SAMPLES:
            pairs = zip(self._samples[::2], self._samples[1::2], strict=True)
            self._samples = [(one + other) / 2 for one, other in pairs]
            self._batch *= 2

    def array(self) -> Floats:
        """Shape (samples, figures, R); an unfinished batch is left out."""
        return np.array(self._samples).reshape(-1, *self._part.shape)


class BatchedHistograms:
    """Histograms of the first STATED_ROWS rows over time, at most MOST_HISTOGRAMS of them: beyond that, neighbours are
    added together, so that memory stays as it is."""

    def __init__(self, series: tuple[int, ...]) -> None:
        self._series = series
        self._parts: list[Buckets] = []
        self._open: Buckets | None = None  # what an unfinished batch comes to
        self._in_part = 0
        self._batch = 1

    def add(self, merged: Merged) -> None:
        """One subinterval."""
        rows = min(STATED_ROWS, len(merged.counts))
        parts = [merged.buckets[one] for one in self._series]
        found = sum_of([Buckets(one.low, one.counts[:rows]) for one in parts], rows)
        found = Buckets(found.low, found.counts.copy())
        self._open = found if self._open is None else sum_of([self._open, found], rows)
        self._in_part += 1
        if self._in_part < self._batch:
            return
        self._parts.append(self._open)
        self._open, self._in_part = None, 0
        if len(self._parts) == MOST_HISTOGRAMS:
            pairs = zip(self._parts[::2], self._parts[1::2], strict=True)
            self._parts = [sum_of([*pair], rows) for pair in pairs]
            self._batch *= 2

    def stated(self, fraction: float, moments: RowMoments) -> "PercentileHalfWidths":
        """The half-widths of what was added so far, whose moments are `moments`."""
        series = list(self._series)
        least, most = moments.least[:, series].min(axis=1), moments.most[:, series].max(axis=1)
        return PercentileHalfWidths(tuple(self._parts), fraction, least, most)


class PercentileHalfWidths:
    """Half-widths of a percentile, computed when they are first read; the histograms are dropped then."""

    def __init__(self, parts: tuple[Buckets, ...], fraction: float, least: Words, most: Words) -> None:
        """`least` and `most`: (R,) the shortest and the longest latency, ns."""
        self._parts, self._fraction = parts, fraction
        self._least, self._most = least.astype(np.float64), most.astype(np.float64)
        self._found: Floats = np.full(len(least), np.nan)

    def half_widths_us(self) -> Floats:
        """(R,); nan where none is stated."""
        parts, self._parts = self._parts, ()
        used = [part for part in parts if part.counts.shape[1]]
        if len(parts) < FEWEST_STATED or not used:
            return self._found
        low, high = min(part.low for part in used), max(part.high for part in used)
        counts = np.stack([part.padded(low, high).counts for part in parts]).astype(np.float64)
        for row in range(counts.shape[1]):
            least, most = float(self._least[row]), float(self._most[row])
            self._found[row] = stated_half_width(counts[:, row], low, least, most, self._fraction) / NS_PER_US
        return self._found


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """A finished window: a summary row and its verdict are computed from it."""

    first: int  # subinterval
    last: int  # subinterval
    subintervals: int
    layout: MergeLayout
    hosts: frozenset[str]  # that are in
    merged: Merged
    account: Account  # (I,) the due and the done of each workload instance
    iops_half_width: Floats  # (R,) of overall_iops, at 95 %; nan where none can be stated
    service_half_width_us: Floats  # (R,) of overall_service_us_mean
    response_half_width_us: Floats  # (R,) of overall_response_us_mean
    service_p99: PercentileHalfWidths  # of overall_service_us_p99, of the first STATED_ROWS rows
    response_p99: PercentileHalfWidths  # of overall_response_us_p99, likewise
    cores: dict[str, tuple[float, ...]]  # host: busy percent per core over the window
    uncovered: dict[str, int]  # host: boundaries without a free buffer, and threads that did not hand over
    cut: dict[str, int]  # host: the subinterval whose result it marked as its step's last
    length_ns: Ints  # (H,) real length of each host's subintervals together; 0 where it is not in
    faults: dict[tuple[str, int, int], int]  # (host, workload number, errno; 0: short transfers): how many
    workers: dict[str, ThreadSummary]  # host: what its workload threads did


class Window:
    """Sums intervals of one step."""

    def __init__(self, layout: MergeLayout) -> None:
        rows = len(layout.rollups.rows)
        self.subintervals = 0
        self._layout = layout
        self._last: MergedSubinterval | None = None
        self._counts = np.zeros((rows, len(Count)), np.int64)
        self._limbs = np.zeros((rows, SERIES, LIMBS), np.uint64)
        self._least = np.full((rows, SERIES), NO_LEAST)
        self._most = np.zeros((rows, SERIES), np.uint64)
        self._buckets = [no_buckets(rows)] * SERIES
        self._account = Account.none(len(layout.class_of))
        self._class_io = np.zeros((len(layout.class_host), KINDS, 2), np.uint64)
        self._length_ns = np.zeros(len(layout.hosts), np.int64)
        self._samples = BatchedFigures(5, rows)
        self._services = BatchedHistograms(tuple(range(SERVICE, SERVICE + KINDS)))
        self._responses = BatchedHistograms(tuple(range(RESPONSE, RESPONSE + KINDS)))
        self._busy: dict[str, Floats] = {}  # per core: percent x nanoseconds
        self._workers: dict[str, ThreadTotals] = {}
        self._uncovered: Counter[str] = Counter()
        self._cut: dict[str, int] = {}
        self._faults: Counter[tuple[str, int, int]] = Counter()

    def fits(self, interval: MergedSubinterval) -> bool:
        """Whether `interval` follows on the last one with the same set of hosts."""
        last = self._last
        return last is None or (interval.subinterval == last.subinterval + 1 and interval.hosts == last.hosts)

    def add(self, interval: MergedSubinterval) -> None:
        """Raises ValueError for an interval that does not fit."""
        if not self.fits(interval):
            raise ValueError(f"subinterval {interval.subinterval} does not continue the window")
        merged, moments = interval.merged, interval.merged.moments
        self._counts += merged.counts
        self._limbs = carried(self._limbs + moments.limbs)
        np.minimum(self._least, moments.least, out=self._least)
        np.maximum(self._most, moments.most, out=self._most)
        self._buckets = [added(total, part) for total, part in zip(self._buckets, merged.buckets, strict=True)]
        self._account = self._account.plus(Outstanding.of(interval.counts))
        self._class_io += interval.class_io
        self._length_ns += interval.length_ns
        self._samples.add(_figures(merged))
        self._services.add(merged)
        self._responses.add(merged)
        self._add_hosts(interval)
        self._last = interval
        self.subintervals += 1

    def measurement(self) -> Measurement:
        """The sum so far; more may be added afterwards. Raises ValueError if there is nothing."""
        last = self._last
        if last is None:
            raise ValueError("the window is empty")
        layout = self._layout
        cores, cpu = {}, np.full((len(layout.hosts), 2), np.nan)
        for host, busy in self._busy.items():
            position = layout.position[host]
            cores[host] = tuple((busy / self._length_ns[position]).tolist())
            if cores[host]:
                cpu[position] = sum(cores[host]) / len(cores[host]), max(cores[host])
        counts = self._counts.copy()
        counts[:, STATES] = last.merged.counts[:, STATES]
        samples = self._samples.array()
        moments = RowMoments(self._limbs.copy(), self._least.copy(), self._most.copy())
        return Measurement(
            first=last.subinterval - self.subintervals + 1,
            last=last.subinterval,
            subintervals=self.subintervals,
            layout=layout,
            hosts=last.hosts,
            merged=Merged(
                rollups=layout.rollups,
                counts=counts,
                moments=moments,
                buckets=tuple(Buckets(b.low, b.counts.copy()) for b in self._buckets),
                rates=merged_rates(layout, self._class_io, self._length_ns),
                presence=presence(layout, self._length_ns, cpu),
            ),
            account=self._account,
            iops_half_width=half_width(samples[:, 0], fewest=FEWEST_STATED),
            service_half_width_us=ratio_half_width(samples[:, 1], samples[:, 2], fewest=FEWEST_STATED) * 1e-3,
            response_half_width_us=ratio_half_width(samples[:, 3], samples[:, 4], fewest=FEWEST_STATED) * 1e-3,
            service_p99=self._services.stated(PERCENTILES["p99"], moments),
            response_p99=self._responses.stated(PERCENTILES["p99"], moments),
            cores=cores,
            uncovered=dict(self._uncovered),
            cut=dict(self._cut),
            length_ns=self._length_ns.copy(),
            faults=dict(self._faults),
            workers={host: workers.seen() for host, workers in self._workers.items()},
        )

    def _add_hosts(self, interval: MergedSubinterval) -> None:
        self._uncovered.update(interval.uncovered())
        for host, result in interval.results.items():
            busy = np.array(result.cpu) * result.length_ns
            self._busy[host] = self._busy[host] + busy if host in self._busy else busy
            if result.last:
                self._cut.setdefault(host, interval.subinterval)
            self._workers.setdefault(host, ThreadTotals()).add(threads_of(result), result.length_ns)
            for fault in result.faults:
                self._faults[host, fault.number, fault.errno] += fault.count


def carried(limbs: Words) -> Words:
    """The same sums with every limb but a sum's last below 2**32, so that more can be added for ever."""
    for moment in (Moment.COUNT, Moment.BYTES, Moment.SUM, Moment.SQUARES_LOW):
        for low in range(2 * moment, 2 * moment + words_of(moment) - 1):
            limbs[..., low + 1] += limbs[..., low] >> np.uint64(32)
            limbs[..., low] &= np.uint64(0xFFFFFFFF)
    return limbs


def _figures(merged: Merged) -> Floats:
    """What half-widths are computed from, per subinterval, shape (5, R): IOPS; sum of service times, ns; I/Os; the same
    two of response times."""
    found = [merged.rates[:, :, 0].sum(axis=1)]
    for first in (SERVICE, RESPONSE):
        limbs = merged.moments.limbs[:, first : first + KINDS]
        found += [reals(limbs, moment).sum(axis=1) for moment in (Moment.SUM, Moment.COUNT)]
    return np.stack(found)
