"""A window: consecutive subintervals summed into one measurement.

Rule: exact, and in memory that does not grow with the window's length. Histograms and moments add, the state at the
end is the last subinterval's, rates are each host's I/Os over that host's own real time. A window is never summed
over a change of its set of hosts: `fits` says whether a subinterval may be added.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...protocol.counters import KINDS, SERIES, SERVICE, Count, Moment
from .layout import Layout
from .merge import Interval, merged_rates, presence
from .merged import (
    LIMBS,
    NO_LEAST,
    STATES,
    Buckets,
    Floats,
    Merged,
    Moments,
    Words,
    added,
    no_buckets,
    reals,
    words_of,
)
from .statistics import half_width, ratio_half_width
from .unpack import threads_of
from .workers import Seen, Workers

MOST_SAMPLES: Final = 512  # when a series has so many, neighbours are put together


class Samples:
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


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """A finished window: what a summary row is computed and judged from."""

    first: int  # subinterval
    last: int  # subinterval
    subintervals: int
    layout: Layout
    hosts: frozenset[str]  # that are in
    merged: Merged
    in_flight: Floats  # (R,) mean of the numbers at its subintervals' ends
    iops_half_width: Floats  # (R,) of overall_iops, at 95 %; nan where none can be stated
    service_half_width_us: Floats  # (R,) of overall_service_us_mean
    cores: dict[str, tuple[float, ...]]  # host: busy percent per core over the window
    uncovered: dict[str, int]  # host: boundaries without a free buffer, and threads that did not hand over
    faults: dict[tuple[str, int, int], int]  # (host, workload number, errno; 0: short transfers): how many
    workers: dict[str, Seen]  # host: what its workload threads say of themselves


class Window:
    """Sums intervals of one step."""

    def __init__(self, layout: Layout) -> None:
        rows = len(layout.rollups.rows)
        self.subintervals = 0
        self._layout = layout
        self._last: Interval | None = None
        self._counts = np.zeros((rows, len(Count)), np.int64)  # also of the states, whose sum makes a mean
        self._limbs = np.zeros((rows, SERIES, LIMBS), np.uint64)
        self._least = np.full((rows, SERIES), NO_LEAST)
        self._most = np.zeros((rows, SERIES), np.uint64)
        self._buckets = [no_buckets(rows)] * SERIES
        self._class_io = np.zeros((len(layout.class_host), KINDS, 2), np.uint64)
        self._length_ns = np.zeros(len(layout.hosts), np.int64)
        self._samples = Samples(3, rows)
        self._busy: dict[str, Floats] = {}  # per core: percent x nanoseconds
        self._workers: dict[str, Workers] = {}
        self._uncovered: Counter[str] = Counter()
        self._faults: Counter[tuple[str, int, int]] = Counter()

    def fits(self, interval: Interval) -> bool:
        """Whether `interval` follows on the last one with the same set of hosts."""
        last = self._last
        return last is None or (interval.subinterval == last.subinterval + 1 and interval.hosts == last.hosts)

    def add(self, interval: Interval) -> None:
        """Raises ValueError for an interval that does not fit."""
        if not self.fits(interval):
            raise ValueError(f"subinterval {interval.subinterval} does not continue the window")
        merged, moments = interval.merged, interval.merged.moments
        self._counts += merged.counts
        self._limbs = carried(self._limbs + moments.limbs)
        np.minimum(self._least, moments.least, out=self._least)
        np.maximum(self._most, moments.most, out=self._most)
        self._buckets = [added(total, part) for total, part in zip(self._buckets, merged.buckets, strict=True)]
        self._class_io += interval.class_io
        self._length_ns += interval.length_ns
        self._samples.add(_figures(merged))
        self._add_hosts(interval)
        self._last = interval
        self.subintervals += 1

    def measurement(self) -> Measurement:
        """What was summed so far; more may be added afterwards. Raises ValueError if there is nothing."""
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
        return Measurement(
            first=last.subinterval - self.subintervals + 1,
            last=last.subinterval,
            subintervals=self.subintervals,
            layout=layout,
            hosts=last.hosts,
            merged=Merged(
                rollups=layout.rollups,
                counts=counts,
                moments=Moments(self._limbs.copy(), self._least.copy(), self._most.copy()),
                buckets=tuple(Buckets(b.low, b.counts.copy()) for b in self._buckets),
                rates=merged_rates(layout, self._class_io, self._length_ns),
                presence=presence(layout, self._length_ns, cpu),
            ),
            in_flight=self._counts[:, Count.IN_FLIGHT] / self.subintervals,
            iops_half_width=half_width(samples[:, 0]),
            service_half_width_us=ratio_half_width(samples[:, 1], samples[:, 2]) * 1e-3,
            cores=cores,
            uncovered=dict(self._uncovered),
            faults=dict(self._faults),
            workers={host: workers.seen() for host, workers in self._workers.items()},
        )

    def _add_hosts(self, interval: Interval) -> None:
        self._uncovered.update(interval.uncovered())
        for host, result in interval.results.items():
            busy = np.array(result.cpu) * result.length_ns
            self._busy[host] = self._busy[host] + busy if host in self._busy else busy
            self._workers.setdefault(host, Workers()).add(threads_of(result), result.length_ns)
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
    """What half-widths are computed from, per subinterval, shape (3, R): IOPS; sum of service times, ns; I/Os."""
    service = merged.moments.limbs[:, SERVICE : SERVICE + KINDS]
    sums, counts = (reals(service, moment).sum(axis=1) for moment in (Moment.SUM, Moment.COUNT))
    return np.stack([merged.rates[:, :, 0].sum(axis=1), sums, counts])
