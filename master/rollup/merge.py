"""Merging one step's results, subinterval by subinterval, into every rollup instance at once.

Rule: exact, in any order of arrival, and in memory that does not grow. A result is checked against the layout
completely before any of it is used, so a malformed one costs its host and changes nothing. Histograms are added as
they come, for the finest rollup types only; the coarser ones, `all` first, are sums of those when the subinterval
closes. Scalars are put in their place as they come and summed when it closes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...protocol.counters import KINDS, SERIES, SERVICE, Count, Moment, ThreadCount
from ...protocol.errors import ProtocolError
from ...protocol.messages import Result
from .instances import Rollups
from .layout import Layout
from .merged import HIGHEST, LIMBS, NO_LEAST, Buckets, Floats, Ints, Merged, Moments, Presence, Words, limbs_of
from .unpack import Unpacked, threads_of, unpack


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """One closed subinterval: all that rows, control and later windows are computed from."""

    subinterval: int
    layout: Layout
    merged: Merged
    results: Mapping[str, Result]  # of the hosts that are in: CPU, threads, faults, and the arrays as they came
    length_ns: Ints  # (H,) real length of each host's; 0 where it is not in
    class_io: Words  # (G, KINDS, 2) I/Os and bytes of each merge class

    @property
    def hosts(self) -> frozenset[str]:
        """The hosts that are in."""
        return frozenset(self.results)

    @property
    def last(self) -> bool:
        """Whether a host said that this was its step's last subinterval."""
        return any(result.last for result in self.results.values())

    def uncovered(self) -> dict[str, int]:
        """Hosts whose result does not cover exactly this subinterval: how many boundaries found no free buffer, and
        how many threads did not hand theirs over."""
        found = {}
        for host, result in self.results.items():
            overruns = int(threads_of(result)[:, ThreadCount.OVERRUNS].sum()) + len(result.missing)
            if overruns:
                found[host] = overruns
        return found


class Merger:
    """Merges one step's results: `open` a subinterval, `add` each host's result, `close` it."""

    def __init__(self, rollups: Rollups, order: Mapping[str, Sequence[int]]) -> None:
        """`order`: per host the workload instances that take part in the step, as `go` lists them."""
        self.layout = Layout.build(rollups, order)
        self._used = [(0, 0)] * SERIES  # bucket ranges of the subinterval before: a good guess for the next
        self._is_open = False

    def open(self, subinterval: int) -> None:
        """Begin with nothing merged; what was added since the last `close` is forgotten."""
        layout = self.layout
        instances, classes, rows = len(layout.to_classes.order), len(layout.class_host), len(layout.rollups.rows)
        self._is_open = True
        self._subinterval = subinterval
        self._results: dict[str, Result] = {}
        self._counts = np.zeros((instances, len(Count)), np.int64)
        self._moments = np.zeros((classes, SERIES, len(Moment)), np.uint64)
        self._moments[..., Moment.MIN] = NO_LEAST
        self._length_ns = np.zeros(len(layout.hosts), np.int64)
        self._cpu = np.full((len(layout.hosts), 2), np.nan)  # busy percent: mean over cores, busiest core
        self._tables = [Buckets(low, np.zeros((rows, high - low), np.uint64)) for low, high in self._used]
        self._used = [(0, 0)] * SERIES

    def add(self, host: str, result: Result) -> None:
        """Merge one host's result. Raises ProtocolError, and changes nothing, if it does not fit or is out of turn."""
        layout = self.layout
        if not self._is_open or result.subinterval != self._subinterval or host in self._results:
            raise ProtocolError(f"{host}: a result of subinterval {result.subinterval} is out of turn")
        classes = layout.classes[host]
        unpacked = unpack(host, result, layout.numbers[host], classes.stop - classes.start)
        self._results[host] = result
        self._counts[layout.instances[host]] = unpacked.counts
        self._moments[classes] = unpacked.moments
        position = layout.position[host]
        self._length_ns[position] = result.length_ns
        if result.cpu:
            self._cpu[position] = sum(result.cpu) / len(result.cpu), max(result.cpu)
        self._add_histograms(unpacked, layout.class_rows[classes])

    def close(self) -> Interval:
        """The subinterval, merged from the results that were added."""
        self._is_open = False
        layout = self.layout
        self._sum_coarser()
        class_io = self._moments[:, SERVICE : SERVICE + KINDS, [Moment.COUNT, Moment.BYTES]]
        merged = Merged(
            rollups=layout.rollups,
            counts=merged_counts(layout, self._counts),
            moments=merged_moments(layout, self._moments),
            buckets=tuple(self._tables),
            rates=merged_rates(layout, class_io, self._length_ns),
            presence=presence(layout, self._length_ns, self._cpu),
        )
        interval = Interval(self._subinterval, layout, merged, self._results, self._length_ns, class_io)
        del self._results, self._counts, self._moments, self._tables  # they are the interval's now
        return interval

    def _add_histograms(self, unpacked: Unpacked, class_rows: Ints) -> None:
        """Add a host's buckets to the rows of every type that is a sum of no other."""
        rows = class_rows[:, self.layout.direct].tolist()
        spans, buckets = unpacked.spans.tolist(), unpacked.buckets
        for series, (low, high) in _ranges(spans).items():
            self._used[series] = _both(self._used[series], (low, high))
            self._tables[series] = self._tables[series].covering(low, high)
        start = 0
        for place, (first, width) in enumerate(spans):
            if width:
                table = self._tables[place % SERIES]
                used, first = buckets[start : start + width], first - table.low
                for row in rows[place // SERIES]:
                    table.counts[row, first : first + width] += used
                start += width

    def _sum_coarser(self) -> None:
        """Fill the rows of the types that are sums of finer ones, and drop buckets that nobody used."""
        for series, (low, high) in enumerate(self._used):
            table = self._tables[series]
            counts = table.counts[:, low - table.low : high - table.low] if high else table.counts[:, :0]
            if high:
                for reduction in self.layout.between_rows:
                    reduction.into(counts, counts)
            self._tables[series] = Buckets(low, counts)


def _ranges(spans: Sequence[Sequence[int]]) -> dict[int, tuple[int, int]]:
    """Per series that any class uses, the range [low, high) of its buckets."""
    found: dict[int, tuple[int, int]] = {}
    for place, (first, width) in enumerate(spans):
        if width:
            found[place % SERIES] = _both(found.get(place % SERIES, (0, 0)), (first, first + width))
    return found


def _both(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """The range that covers two; (0, 0) is none."""
    if not one[1]:
        return other
    return min(one[0], other[0]), max(one[1], other[1])


def merged_counts(layout: Layout, counts: Ints) -> Ints:
    """Counters of instances (I, Count) as those of rows (R, Count)."""
    classes = np.zeros((len(layout.class_host), len(Count)), np.int64)
    rows = np.zeros((len(layout.rollups.rows), len(Count)), np.int64)
    highest = list(HIGHEST)
    layout.to_classes.into(classes, counts)
    extremes = np.zeros((len(classes), len(highest)), np.int64)
    layout.to_classes.into(extremes, counts[:, highest], np.maximum)
    row_extremes = np.zeros((len(rows), len(highest)), np.int64)
    for reduction in layout.to_rows:
        reduction.into(rows, classes)
        reduction.into(row_extremes, extremes, np.maximum)
    rows[:, highest] = row_extremes
    return rows


def merged_moments(layout: Layout, moments: Words) -> Moments:
    """Moments of classes (G, SERIES, Moment) as those of rows."""
    rows = len(layout.rollups.rows)
    limbs = np.zeros((rows, SERIES, LIMBS), np.uint64)
    least = np.full((rows, SERIES), NO_LEAST)
    most = np.zeros((rows, SERIES), np.uint64)
    parts = limbs_of(moments)
    for reduction in layout.to_rows:
        reduction.into(limbs, parts)
        reduction.into(least, moments[..., Moment.MIN], np.minimum)
        reduction.into(most, moments[..., Moment.MAX], np.maximum)
    return Moments(limbs, least, most)


def merged_rates(layout: Layout, class_io: Words, length_ns: Ints) -> Floats:
    """I/Os and bytes per second of rows: every host's divided by that host's own real length (H,), then added."""
    seconds = length_ns[layout.class_host][:, None, None] * 1e-9
    classes: Floats = np.divide(class_io, seconds, out=np.zeros(class_io.shape), where=seconds > 0)
    rows = np.zeros((len(layout.rollups.rows), KINDS, 2))
    for reduction in layout.to_rows:
        reduction.into(rows, classes)
    return rows


def presence(layout: Layout, length_ns: Ints, cpu: Floats) -> Presence:
    """What rows are of. `cpu` (H, 2): mean and busiest core of each host; a host that is not in has length 0."""
    size = len(layout.rollups.rows)
    rows, hosts = (part[length_ns[layout.pairs[1]] > 0] for part in layout.pairs)
    hosts_in = np.bincount(rows, minlength=size)

    def mean(values: Floats) -> Floats:
        total = np.bincount(rows, weights=values[hosts], minlength=size)
        found: Floats = np.divide(total, hosts_in, out=np.full(size, np.nan), where=hosts_in > 0)
        return found

    busiest = np.full(size, np.nan)
    np.fmax.at(busiest, rows, cpu[hosts, 1])
    return Presence(
        length_s=mean(np.multiply(length_ns, 1e-9, dtype=np.float64)),
        hosts_in=hosts_in,
        hosts_of=layout.host_count,
        instances=layout.instance_count,
        cpu_percent=mean(cpu[:, 0]),
        busiest_core_percent=busiest,
    )
