"""Adding up the results of some hosts: a driver process does it for its hosts, the controller for the rest.

Rule: exact, in any order and in any partition: buckets are added, scalars are stored until the subinterval closes. So
the partial merges of all processes, combined, equal the merge of a single process bit by bit. A result is checked
completely before any of it is used.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

import numpy as np

from ...protocol.counters import SERIES, Count, Moment, SectionCount
from ...protocol.messages import Result
from .arrays import NO_LEAST, Buckets, Floats, Ints, Words
from .decode_result import DecodedResult, decode_result
from .host_cpu import HostCpu, host_cpu


@dataclass(frozen=True, slots=True, eq=False)
class MergePlaces:
    """Where the results of some hosts are added: their part of a merge layout."""

    numbers: Mapping[str, tuple[int, ...]]  # a host's workload instances, in `go`'s order
    class_rows: Mapping[str, Ints]  # per host (classes, direct types): which of `rows` each class is added to
    rows: Ints  # (r,) of the layout, ascending
    sections: int = 0  # of each LUN


@dataclass(frozen=True, slots=True, eq=False)
class PartialMerge:
    """One subinterval of some hosts. A host that is not in has the values of an empty measurement."""

    subinterval: int
    order: tuple[str, ...]  # H' hosts, in the order of the arrays
    hosts: frozenset[str]  # those that are in
    counts: Ints  # (I', Count)
    moments: Words  # (G', SERIES, Moment)
    length_ns: Ints  # (H',)
    cpu: Floats  # (H', HostCpu); nan where unknown
    rows: Ints  # (r,) of the layout
    buckets: tuple[Buckets, ...]  # one per series, over `rows`
    sections: Words  # (I', sections, SectionCount)


@dataclass(slots=True, eq=False)
class _OpenSum:
    """The sums of the open subinterval so far; named as in PartialMerge."""

    subinterval: int
    counts: Ints
    moments: Words
    length_ns: Ints
    cpu: Floats
    sections: Words
    tables: list[Buckets]  # one per series: room for what is used of it, or more
    used: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)] * SERIES)  # bucket ranges, by series
    hosts: set[str] = field(default_factory=set)

    def add_buckets(self, unpacked: DecodedResult, class_rows: Ints) -> None:
        """Add a host's buckets to the rows of every type that is not a sum of another."""
        rows = class_rows.tolist()
        spans, buckets = unpacked.spans.tolist(), unpacked.buckets
        for series, (low, high) in _ranges(spans).items():
            self.covering(series, low, high)
        start = 0
        for place, (first, width) in enumerate(spans):
            if width:
                table = self.tables[place % SERIES]
                used, first = buckets[start : start + width], first - table.low
                for row in rows[place // SERIES]:
                    table.counts[row, first : first + width] += used
                start += width

    def covering(self, series: int, low: int, high: int) -> Buckets:
        """The table of a series, with room for the buckets [low, high)."""
        self.used[series] = _both(self.used[series], (low, high))
        self.tables[series] = self.tables[series].covering(low, high)
        return self.tables[series]


class PartialMerger:
    """Adds up subinterval by subinterval: `open` one, `add` results to it, `close` it."""

    def __init__(self, places: MergePlaces) -> None:
        self._places = places
        self._order = tuple(places.numbers)
        self._position = {host: i for i, host in enumerate(self._order)}
        self._instances = consecutive({host: len(numbers) for host, numbers in places.numbers.items()})
        self._classes = consecutive({host: len(rows) for host, rows in places.class_rows.items()})
        self._guess = [(0, 0)] * SERIES  # bucket ranges of the previous subinterval, which the next may have too
        self._sum: _OpenSum | None = None  # None: no subinterval is open

    @property
    def subinterval(self) -> int:
        """The open one; -1: none is."""
        return -1 if self._sum is None else self._sum.subinterval

    @property
    def hosts(self) -> Set[str]:
        """Whose results are in the open subinterval."""
        return self._opened().hosts

    def open(self, subinterval: int) -> None:
        """Begin a subinterval; whatever was added since the last `close` is dropped."""
        moments = np.zeros((_end(self._classes), SERIES, len(Moment)), np.uint64)
        moments[..., Moment.MIN] = NO_LEAST
        rows = len(self._places.rows)
        self._sum = _OpenSum(
            subinterval=subinterval,
            counts=np.zeros((_end(self._instances), len(Count)), np.int64),
            moments=moments,
            length_ns=np.zeros(len(self._order), np.int64),
            cpu=np.full((len(self._order), len(HostCpu)), np.nan),
            sections=np.zeros((_end(self._instances), self._places.sections, len(SectionCount)), np.uint64),
            tables=[Buckets(low, np.zeros((rows, high - low), np.uint64)) for low, high in self._guess],
        )

    def check(self, host: str, result: Result) -> DecodedResult:
        """Raises ProtocolError if the result does not fit."""
        places = self._places
        return decode_result(host, result, places.numbers[host], len(places.class_rows[host]), places.sections)

    def add(self, host: str, result: Result, unpacked: DecodedResult) -> None:
        """Add one host's result of the open subinterval, decoded by `check`."""
        into = self._opened()
        into.hosts.add(host)
        into.counts[self._instances[host]] = unpacked.counts
        into.sections[self._instances[host]] = unpacked.sections
        into.moments[self._classes[host]] = unpacked.moments
        position = self._position[host]
        into.length_ns[position] = result.length_ns
        if result.cpu:
            into.cpu[position] = host_cpu(result.cpu, result.taken, result.length_ns)
        into.add_buckets(unpacked, self._places.class_rows[host])

    def put(self, part: PartialMerge) -> None:
        """Add a partial merge of some of these hosts and rows."""
        into = self._opened()
        into.hosts |= part.hosts
        instances = _joined(self._instances, part.order)
        into.counts[instances] = part.counts
        into.sections[instances] = part.sections
        into.moments[_joined(self._classes, part.order)] = part.moments
        positions = [self._position[host] for host in part.order]
        into.length_ns[positions] = part.length_ns
        into.cpu[positions] = part.cpu
        rows = self._places.rows.searchsorted(part.rows)
        for series, more in enumerate(part.buckets):
            if more.counts.shape[1]:
                table = into.covering(series, more.low, more.high)
                table.counts[rows, more.low - table.low : more.high - table.low] += more.counts

    def close(self) -> PartialMerge:
        """The sum; its arrays belong to the caller."""
        whole = self._opened()
        self._sum, self._guess = None, whole.used
        return PartialMerge(
            subinterval=whole.subinterval,
            order=self._order,
            hosts=frozenset(whole.hosts),
            counts=whole.counts,
            moments=whole.moments,
            length_ns=whole.length_ns,
            cpu=whole.cpu,
            rows=self._places.rows,
            buckets=tuple(_within(*used, table) for used, table in zip(whole.used, whole.tables, strict=True)),
            sections=whole.sections,
        )

    def _opened(self) -> _OpenSum:
        assert self._sum is not None, "open() comes first"
        return self._sum


def consecutive(sizes: Mapping[str, int]) -> dict[str, slice]:
    """Consecutive slices of the given sizes."""
    slices, start = {}, 0
    for name, size in sizes.items():
        slices[name] = slice(start, start + size)
        start += size
    return slices


def _end(places: Mapping[str, slice]) -> int:
    return max((place.stop for place in places.values()), default=0)


def _joined(places: Mapping[str, slice], names: Iterable[str]) -> Ints:
    """The slices of some names, as indices."""
    return np.concatenate([np.zeros(0, np.int64), *(np.arange(places[n].start, places[n].stop) for n in names)])


def _within(low: int, high: int, table: Buckets) -> Buckets:
    """The buckets [low, high) of a table; the others are unused."""
    return Buckets(low, table.counts[:, low - table.low : high - table.low] if high else table.counts[:, :0])


def _ranges(spans: Sequence[Sequence[int]]) -> dict[int, tuple[int, int]]:
    """Per series that any class uses, the range [low, high) of its buckets."""
    ranges: dict[int, tuple[int, int]] = {}
    for place, (first, width) in enumerate(spans):
        if width:
            ranges[place % SERIES] = _both(ranges.get(place % SERIES, (0, 0)), (first, first + width))
    return ranges


def _both(first: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """The range that covers two; (0, 0) is none."""
    if not first[1]:
        return other
    return min(first[0], other[0]), max(first[1], other[1])
