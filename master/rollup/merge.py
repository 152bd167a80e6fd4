"""Merging one step's results, subinterval by subinterval, into every rollup instance at once.

Rule: exact, in any order of arrival and in any partition (partial_merge.py), and in memory that does not grow. A result
is checked completely before any of it is used, so a malformed one costs its host and changes nothing. Histograms are
added on arrival, for the finest rollup types only; when the subinterval closes, the coarser types are computed as sums
of these. Scalars are stored on arrival and summed at the close.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...protocol.counters import SERIES, SERVICES, Count, Moment, ThreadCount
from ...protocol.errors import ProtocolError
from ...protocol.messages import Result
from .arrays import HIGHEST, LIMBS, NO_LEAST, RATED, Floats, Ints, Merged, Presence, RowMoments, Words, limbs_of
from .decode_result import threads_of
from .figures import Figures
from .host_cpu import HIGHEST as HIGHEST_CPU
from .host_cpu import HostCpu
from .instances import Rollups
from .merge_layout import MergeLayout
from .partial_merge import PartialMerge, PartialMerger


@dataclass(frozen=True, slots=True, eq=False)
class MergedSubinterval:
    """One closed subinterval: rows, control's input and windows are computed from it."""

    subinterval: int
    layout: MergeLayout
    merged: Merged
    figures: Figures  # of `merged`, computed once for all who read them; with every row's response times
    counts: Ints  # (I, Count)
    results: Mapping[str, Result]  # of the hosts that are in: CPU, threads, faults, and the arrays as received
    length_ns: Ints  # (H,) real length of each host's; 0 where it is not in
    class_io: Words  # (G, RATED, 2) I/Os and bytes of each merge class
    sections: Words  # (I, sections, SectionCount)
    absent: frozenset[str] = frozenset()  # hosts that take part, and are not in: late, or in a later result

    def known_instances(self) -> NDArray[np.bool_]:
        """(I,) those whose host is in."""
        known = np.zeros(len(self.counts), bool)
        for host in self.results:
            known[self.layout.instances[host]] = True
        return known

    @property
    def hosts(self) -> frozenset[str]:
        """The hosts that are in."""
        return frozenset(self.results)

    @property
    def part(self) -> frozenset[str]:
        """The hosts that take part, in or not."""
        return self.hosts | self.absent

    @property
    def last(self) -> bool:
        """Whether a host marked this as its step's last subinterval."""
        return any(result.last for result in self.results.values())

    def uncovered(self) -> dict[str, int]:
        """Hosts some of whose threads are in other subintervals than the rest, with the number of boundaries at which
        those had no free buffer, and of threads that did not hand over their buffer."""
        uncovered = {}
        for host, result in self.results.items():
            overruns = threads_of(result)[:, ThreadCount.OVERRUNS]
            if count := int(overruns.sum()) - len(overruns) * _of_all(overruns) + len(result.missing):
                uncovered[host] = count
        return uncovered

    def covered(self) -> dict[str, int]:
        """Hosts whose result covers subintervals before this one, too, of all their threads; with how many."""
        return {host: count for host, result in self.results.items() if (count := covered_by(result))}


def covered_by(result: Result) -> int:
    """How many subintervals before its own a result covers, of all of its host's threads."""
    return _of_all(threads_of(result)[:, ThreadCount.OVERRUNS])


def _of_all(overruns: Ints) -> int:
    """The boundaries at which no thread had a free buffer."""
    return int(overruns.min()) if len(overruns) else 0


class Merger:
    """Merges one step's results: `open` a subinterval, `add` each host's result, `close` it."""

    def __init__(self, rollups: Rollups, order: Mapping[str, Sequence[int]]) -> None:
        """`order`: per host the workload instances that take part in the step, as `go` lists them."""
        self.layout = MergeLayout.build(rollups, order)
        self._adder = PartialMerger(self.layout.places())
        self._results: dict[str, Result] = {}

    @property
    def subinterval(self) -> int:
        """The open one; -1: none is."""
        return self._adder.subinterval

    def open(self, subinterval: int) -> None:
        """Begin a subinterval; whatever was added since the last `close` is dropped."""
        self._adder.open(subinterval)
        self._results = {}

    def add(self, host: str, result: Result) -> None:
        """Merge one host's result. Raises ProtocolError, and changes nothing, if it does not fit or is out of turn."""
        self._check_turn(host, result)
        self._adder.add(host, result, self._adder.check(host, result))
        self._results[host] = result

    def check(self, host: str, result: Result) -> None:
        """Raises ProtocolError if the result does not fit, whichever subinterval it is of."""
        self._adder.check(host, result)

    def note(self, host: str, result: Result) -> None:
        """Record a result whose numbers arrive in a partial merge. Raises ProtocolError if it is out of turn."""
        self._check_turn(host, result)
        self._results[host] = result

    def put(self, part: PartialMerge) -> None:
        """Merge a sum that a driver process made, of hosts whose results were noted."""
        self._adder.put(part)

    def add_noted(self, host: str, result: Result) -> None:
        """Merge the result of a noted host, whose partial merge will not arrive. Raises ProtocolError."""
        self._adder.add(host, result, self._adder.check(host, result))

    def close(self, part: Collection[str] = ()) -> MergedSubinterval:
        """The subinterval, merged from the results that were added. `part`: the hosts that take part in it."""
        total, layout = self._adder.close(), self.layout
        class_io = total.moments[:, SERVICES][..., [Moment.COUNT, Moment.BYTES]]
        for table in total.buckets:
            for reduction in layout.between_rows if table.counts.shape[1] else ():
                reduction.into(table.counts, table.counts)
        merged = Merged(
            rollups=layout.rollups,
            counts=merged_counts(layout, total.counts),
            moments=merged_moments(layout, total.moments),
            buckets=total.buckets,
            rates=merged_rates(layout, class_io, total.length_ns),
            presence=presence(layout, total.length_ns, total.cpu),
        )
        results = {host: self._results[host] for host in layout.hosts if host in self._results}
        figures = Figures(merged, np.ones(len(merged.counts), bool))
        return MergedSubinterval(
            total.subinterval, layout, merged, figures, total.counts, results, total.length_ns, class_io,
            total.sections, frozenset(part).difference(results),
        )  # fmt: skip

    def _check_turn(self, host: str, result: Result) -> None:
        if result.subinterval != self.subinterval or host in self._results:
            raise ProtocolError(f"{host}: a result of subinterval {result.subinterval} is out of turn")


def merged_counts(layout: MergeLayout, counts: Ints) -> Ints:
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


def merged_moments(layout: MergeLayout, moments: Words) -> RowMoments:
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
    return RowMoments(limbs, least, most)


def merged_rates(layout: MergeLayout, class_io: Words, length_ns: Ints) -> Floats:
    """I/Os and bytes per second of rows: every host's divided by that host's own real length (H,), then added."""
    seconds = length_ns[layout.class_host][:, None, None] / 1e9
    classes: Floats = np.divide(class_io, seconds, out=np.zeros(class_io.shape), where=seconds > 0)
    rows = np.zeros((len(layout.rollups.rows), RATED, 2))
    for reduction in layout.to_rows:
        reduction.into(rows, classes)
    return rows


def presence(layout: MergeLayout, length_ns: Ints, cpu: Floats) -> Presence:
    """The hosts and CPU of rows. `cpu` (H, HostCpu); a missing host has length 0."""
    size = len(layout.rollups.rows)
    rows, hosts = (part[length_ns[layout.pairs[1]] > 0] for part in layout.pairs)
    hosts_in = np.bincount(rows, minlength=size)

    def mean(values: Floats) -> Floats:
        total = np.bincount(rows, weights=values[hosts], minlength=size)
        found: Floats = np.divide(total, hosts_in, out=np.full(size, np.nan), where=hosts_in > 0)
        return found

    def highest(values: Floats) -> Floats:
        found = np.full(size, np.nan)
        np.fmax.at(found, rows, values[hosts])
        return found

    return Presence(
        length_s=mean(length_ns / 1e9),
        hosts_in=hosts_in,
        hosts_of=layout.host_count,
        instances=layout.instance_count,
        cpu=np.stack([(highest if one in HIGHEST_CPU else mean)(cpu[:, one]) for one in HostCpu], axis=1),
    )
