"""A window: consecutive subintervals summed into one measurement.

Rule: exact, and in memory that does not grow with the window's length. Histograms and moments add, the state at the
end is the last subinterval's, rates are each host's I/Os over that host's own real time. So a host that is not in
some of the subintervals has the rate of those that it is in. No measurement continues across a change of the hosts that
take part: `fits` tells whether a subinterval may be added.

Subintervals that are set aside leave a gap in the sums, but not in the account of due and done I/O: what fell due in
them and is done later is not too much.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...protocol.counters import KINDS, RESPONSES, SERIES, SERVICES, Count, Moment, SectionCount
from ...protocol.payload import CpuTaken
from ..stats.confidence import FEWEST_STATED, half_width, ratio_half_width
from .arrays import (
    LIMBS,
    NO_LEAST,
    RATED,
    STATES,
    Buckets,
    Floats,
    Ints,
    Merged,
    RowMoments,
    Words,
    added,
    no_buckets,
    words_of,
)
from .decode_result import threads_of
from .figures import PERCENTILES
from .half_widths import BatchedFigures, BatchedHistograms, PercentileHalfWidths, figures_of
from .host_cpu import HostCpu, TakenTotals, host_cpu
from .merge import MergedSubinterval, merged_rates, presence
from .merge_layout import MergeLayout
from .overload import Account, Outstanding
from .sections import sum_of_sections
from .thread_stats import ThreadSummary, ThreadTotals

LOST: Final = (Count.KEPT_NS, Count.STOLEN_NS)


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """A finished window: a summary row and its verdict are computed from it."""

    first: int  # subinterval
    last: int  # subinterval
    subintervals: int
    layout: MergeLayout
    hosts: frozenset[str]  # that are in, in any of its subintervals
    merged: Merged
    account: Account  # (I,) the due and the done of each workload instance
    iops_half_width: Floats  # (R,) of overall_iops, at 95 %; nan where none can be stated
    service_half_width_us: Floats  # (R,) of overall_service_us_mean
    response_half_width_us: Floats  # (R,) of overall_response_us_mean
    service_p99: PercentileHalfWidths  # of overall_service_us_p99, of the first STATED_ROWS rows
    response_p99: PercentileHalfWidths  # of overall_response_us_p99, likewise
    cores: dict[str, tuple[float, ...]]  # host: busy percent per core over the window
    uncovered: dict[str, int]  # host: how often some of its threads were in another subinterval than the rest
    covered: dict[str, int]  # host: subintervals that are in the result of a later one
    within: dict[str, int]  # host: subintervals that its results are of, those that they cover among them
    cut: dict[str, int]  # host: the subinterval whose result it marked as its step's last
    length_ns: Ints  # (H,) real length of each host's subintervals together; 0 where it is not in
    faults: dict[tuple[str, int, int], int]  # (host, workload number, errno; 0: short transfers): how many
    workers: dict[str, ThreadSummary]  # host: what its workload threads did
    taken: dict[str, CpuTaken]  # host: what kept its threads from running, over the window
    lost: Ints  # (I, LOST) of each workload instance
    sections: Words  # (I, sections, SectionCount)
    ended_ns: Ints  # (I,) for how long it had ended at the end, by its volume; 0: it had not


class Window:
    """Sums intervals of one step."""

    def __init__(self, layout: MergeLayout) -> None:
        rows = len(layout.rollups.rows)
        self.subintervals = 0
        self._layout = layout
        self._first = 0  # subinterval
        self._last: MergedSubinterval | None = None
        self._aside: list[MergedSubinterval] = []  # set aside since the last one that was added
        self._counts = np.zeros((rows, len(Count)), np.int64)
        self._limbs = np.zeros((rows, SERIES, LIMBS), np.uint64)
        self._least = np.full((rows, SERIES), NO_LEAST)
        self._most = np.zeros((rows, SERIES), np.uint64)
        self._buckets = [no_buckets(rows)] * SERIES
        self._account = Account.none(len(layout.class_of))
        self._class_io = np.zeros((len(layout.class_host), RATED, 2), np.uint64)
        self._length_ns = np.zeros(len(layout.hosts), np.int64)
        self._sections = np.zeros((len(layout.class_of), layout.rollups.sections, len(SectionCount)), np.uint64)
        self._lost = np.zeros((len(layout.class_of), len(LOST)), np.int64)
        self._samples = BatchedFigures(5, rows)
        self._services = BatchedHistograms(SERVICES[:KINDS])
        self._responses = BatchedHistograms(RESPONSES)
        self._busy: dict[str, Floats] = {}  # per core: percent x nanoseconds
        self._workers: dict[str, ThreadTotals] = {}
        self._taken: dict[str, TakenTotals] = {}
        self._uncovered: Counter[str] = Counter()
        self._covered: Counter[str] = Counter()
        self._within: Counter[str] = Counter()
        self._cut: dict[str, int] = {}
        self._faults: Counter[tuple[str, int, int]] = Counter()

    @property
    def first(self) -> int:
        """The first subinterval that was added."""
        return self._first

    def fits(self, interval: MergedSubinterval) -> bool:
        """Whether `interval` directly follows the last one, and the same hosts take part."""
        last = self._newest()
        return last is None or (self._follows(interval) and interval.part == last.part)

    def set_aside(self, interval: MergedSubinterval) -> None:
        """Go on after `interval` without it. Raises ValueError where it does not follow, and before any was added."""
        if self._last is None or not self._follows(interval):
            raise ValueError(f"subinterval {interval.subinterval} is not within the window")
        self._aside.append(interval)

    def add(self, interval: MergedSubinterval) -> None:
        """Raises ValueError for an interval that does not follow the last one."""
        if not self._follows(interval):
            raise ValueError(f"subinterval {interval.subinterval} does not continue the window")
        merged, moments = interval.merged, interval.merged.moments
        self._counts += merged.counts
        self._limbs = carried(self._limbs + moments.limbs)
        np.minimum(self._least, moments.least, out=self._least)
        np.maximum(self._most, moments.most, out=self._most)
        self._buckets = [added(total, part) for total, part in zip(self._buckets, merged.buckets, strict=True)]
        for one in (*self._aside, interval):
            self._account = self._account.plus(Outstanding.of(one.counts, one.known_instances()))
        self._aside.clear()
        self._first = interval.subinterval if self._last is None else self._first
        self._class_io += interval.class_io
        self._length_ns += interval.length_ns
        self._lost += interval.counts[:, LOST]
        self._sections = sum_of_sections(self._sections, interval.sections)
        if not interval.absent:  # else it is no sample of what all hosts do
            self._samples.add(figures_of(merged))
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
        cores, cpu = {}, np.full((len(layout.hosts), len(HostCpu)), np.nan)
        taken = {host: totals.seen() for host, totals in self._taken.items()}
        for host, busy in self._busy.items():
            position = layout.position[host]
            cores[host] = tuple((busy / self._length_ns[position]).tolist())
            if cores[host]:
                cpu[position] = host_cpu(cores[host], taken[host], int(self._length_ns[position]))
        counts = self._counts.copy()
        counts[:, STATES] = last.merged.counts[:, STATES]
        samples = self._samples.array()
        moments = RowMoments(self._limbs.copy(), self._least.copy(), self._most.copy())
        return Measurement(
            first=self._first,
            last=last.subinterval,
            subintervals=self.subintervals,
            layout=layout,
            hosts=frozenset(host for host, length_ns in zip(layout.hosts, self._length_ns, strict=True) if length_ns),
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
            covered=dict(self._covered),
            within=dict(self._within),
            cut=dict(self._cut),
            length_ns=self._length_ns.copy(),
            faults=dict(self._faults),
            workers={host: workers.seen() for host, workers in self._workers.items()},
            taken=taken,
            lost=self._lost.copy(),
            sections=self._sections,  # each sum is a new array
            ended_ns=last.counts[:, Count.ENDED_NS].copy(),
        )

    def _newest(self) -> MergedSubinterval | None:
        return self._aside[-1] if self._aside else self._last

    def _follows(self, interval: MergedSubinterval) -> bool:
        last = self._newest()
        return last is None or interval.subinterval == last.subinterval + 1

    def _add_hosts(self, interval: MergedSubinterval) -> None:
        self._uncovered.update(interval.uncovered())
        self._covered.update(interval.covered())
        self._within.update([*interval.results])
        self._within.update(interval.covered())
        for host, result in interval.results.items():
            busy = np.array(result.cpu) * result.length_ns
            self._busy[host] = self._busy[host] + busy if host in self._busy else busy
            if result.last:
                self._cut.setdefault(host, interval.subinterval)
            self._workers.setdefault(host, ThreadTotals()).add(threads_of(result), result.length_ns)
            self._taken.setdefault(host, TakenTotals()).add(result.taken, result.length_ns)
            for fault in result.faults:
                self._faults[host, fault.number, fault.errno] += fault.count


def carried(limbs: Words) -> Words:
    """The same sums with every limb but a sum's last below 2**32, so that there is always room to add."""
    for moment in (Moment.COUNT, Moment.BYTES, Moment.SUM, Moment.SQUARES_LOW):
        for low in range(2 * moment, 2 * moment + words_of(moment) - 1):
            limbs[..., low + 1] += limbs[..., low] >> np.uint64(32)
            limbs[..., low] &= np.uint64(0xFFFFFFFF)
    return limbs
