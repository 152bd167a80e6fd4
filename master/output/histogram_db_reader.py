"""histograms.sqlite, read: what every host said of every subinterval; sums over any window and rollup instance.

Rule: reading needs nothing but the file, works while the run is still writing, and adds exactly what merging added. The
file is locked only while a few rows are fetched, since the run cannot write meanwhile.
"""

import base64
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Final
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from ...protocol.counters import SERIES, SERIES_OF_0_1, Moment
from ...protocol.histogram import BITS, BUCKETS, GROUPS
from ...protocol.lines import inflated
from ...protocol.messages import NO_SECTIONS, IoFault, Result
from ...protocol.payload import Array, ArrayType, CpuTaken
from ..errors import OutputError
from ..rollup.arrays import LIMBS, NO_LEAST, integers, limbs_of
from ..rollup.instances import ALL
from ..rollup.merge import MergedSubinterval, Merger, covered_by
from ..text.foreign_json import json_of
from .histogram_db import VERSION, TotalMoment
from .run_files import check_run_file

EVER: Final = 1 << 62
ROWS_AT_ONCE: Final = 64


@dataclass(frozen=True, slots=True)
class StoredClass:
    """A merge class of one host in one step."""

    host: str
    number: int
    workloads: tuple[int, ...]
    rollups: Mapping[str, str]  # rollup type: instance


@dataclass(frozen=True, slots=True)
class StoredSubinterval:
    number: int
    phase: str
    start_utc_ns: int
    length_ns: int  # the longest of any host
    hosts: tuple[str, ...]


@dataclass(slots=True, eq=False)
class Distribution:
    """Sums of all series (protocol/counters.py), each over all its buckets."""

    buckets: NDArray[np.uint64] = field(default_factory=lambda: np.zeros((SERIES, BUCKETS), np.uint64))
    limbs: NDArray[np.uint64] = field(default_factory=lambda: np.zeros((SERIES, LIMBS), np.uint64))
    least: NDArray[np.uint64] = field(default_factory=lambda: np.full(SERIES, NO_LEAST))  # ns
    most: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(SERIES, np.uint64))  # ns

    def moment(self, series: int, moment: Moment) -> int:
        """COUNT, BYTES, SUM or, for SQUARES_LOW, the whole sum of squares: exact."""
        return int(integers(self.limbs[series], moment))

    def add(self, result: Result, classes: Collection[int]) -> None:
        """Add some merge classes of a stored result."""
        moments = np.frombuffer(result.moments.data, "<u8").reshape(-1, SERIES, len(Moment))
        spans = np.frombuffer(result.spans.data, "<u4").reshape(-1, 2).astype(np.int64)
        ends = spans[:, 1].cumsum()
        buckets = np.frombuffer(result.buckets.data, "<" + result.buckets.type)
        for klass in classes:
            self.limbs += limbs_of(moments[klass])
            np.minimum(self.least, moments[klass, :, Moment.MIN], out=self.least)
            np.maximum(self.most, moments[klass, :, Moment.MAX], out=self.most)
            for series in range(SERIES):
                place = klass * SERIES + series
                first, count = spans[place]
                self.buckets[series, first : first + count] += buckets[ends[place] - count : ends[place]]


@dataclass(frozen=True, slots=True, eq=False)
class StoredTotal:
    """A row of `total`: all hosts of a subinterval."""

    moments: NDArray[np.uint64]  # (TOTAL_SERIES, TotalMoment), ns
    spans: NDArray[np.int64]  # (TOTAL_SERIES, 2): the first used bucket of each series, and how many
    buckets: NDArray[np.uint64]  # the used ranges one after the other


class HistogramReader:
    """An open histograms.sqlite. Nothing is changed in it. Close it, or use it in a `with`."""

    def __init__(self, path: Path) -> None:
        """Raises OutputError for a file that is missing, or that another version of ivypy wrote."""
        self._path = path
        try:
            check_run_file(path)
            # rw, where that is allowed: after a crash in mid-transaction the journal must be rolled back first
            self._base = sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True, check_same_thread=False)
            self._base.execute("PRAGMA query_only = ON")
            (version,) = self._base.execute("PRAGMA user_version").fetchone()
            meta = dict(self._base.execute("SELECT key, value FROM meta")) if version == VERSION else {}
        except OSError as error:
            raise OutputError(f"{path}: not read: {error.strerror}") from error
        except sqlite3.Error as error:
            raise OutputError(f"{path}: not read: {error}") from error
        if version != VERSION:
            raise OutputError(f"{path}: not read: its schema is version {version}, this ivypy reads version {VERSION}")
        if (meta.get("buckets_per_power_of_two"), meta.get("groups")) != (str(1 << BITS), str(GROUPS)):
            raise OutputError(f"{path}: not read: its histograms have other buckets")
        found = self._base.execute("SELECT 1 FROM sqlite_master WHERE name = 'total'").fetchone()
        self.has_totals = found is not None  # those of an older ivypy have none
        self._series = int(meta.get("series", SERIES_OF_0_1))

    def __enter__(self) -> "HistogramReader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._base.close()

    def steps(self) -> dict[int, str]:
        """Number and name of each step that began."""
        return dict(self._base.execute("SELECT number, name FROM step ORDER BY number"))

    def classes(self, step: int) -> list[StoredClass]:
        query = "SELECT host, class, workloads, rollups FROM class WHERE step = ? ORDER BY host, class"
        return [
            StoredClass(host, number, tuple(json_of(workloads)), json_of(rollups))
            for host, number, workloads, rollups in self._base.execute(query, (step,))
        ]

    def subintervals(self, step: int) -> list[StoredSubinterval]:
        """Those that closed, in order."""
        query = (
            "SELECT subinterval, phase, start_utc_ns, MAX(length_ns), json_group_array(host) FROM result"
            " WHERE step = ? GROUP BY subinterval ORDER BY subinterval"
        )
        return [
            StoredSubinterval(number, phase, start, length, tuple(sorted(json_of(hosts))))
            for number, phase, start, length, hosts in self._base.execute(query, (step,))
        ]

    def results(
        self, step: int, first: int = 0, last: int = EVER, hosts: Collection[str] | None = None
    ) -> Iterator[tuple[str, Result]]:
        """(host, what it said) for the subintervals first to last, in order; `hosts`: only of these."""
        query = (
            "SELECT host, subinterval, length_ns, counts, moments, spans, buckets, bucket_type, threads, rest"
            " FROM result WHERE step = ? AND (subinterval, host) > (?, ?) AND subinterval <= ?"
            " ORDER BY subinterval, host LIMIT ?"
        )
        place = (first, "")
        while rows := self._base.execute(query, (step, *place, last, ROWS_AT_ONCE)).fetchall():
            for host, *columns in rows:
                if hosts is None or host in hosts:
                    with self._damaged():
                        result = _with_all_series(_result(*columns), self._series)
                    yield host, result
            place = rows[-1][1], rows[-1][0]

    def newest(self) -> int:
        """A mark of the result that was stored last, for `first_since`."""
        (newest,) = self._base.execute("SELECT COALESCE(MAX(rowid), 0) FROM result").fetchone()
        return int(newest)

    def first_since(self, step: int, mark: int) -> int | None:
        """The first subinterval that has got a result since a mark: it may be one that had closed before."""
        query = "SELECT MIN(subinterval) FROM result WHERE rowid > ? AND +step = ?"  # +: not by the index of steps
        (first,) = self._base.execute(query, (mark, step)).fetchone()
        return None if first is None else int(first)

    def totals(self, step: int, first: int = 0) -> Iterator[tuple[int, StoredTotal]]:
        """(subinterval, all hosts together) from the subinterval `first` on, in order; only where `has_totals`."""
        query = (
            "SELECT subinterval, moments, spans, buckets FROM total"
            " WHERE step = ? AND subinterval >= ? ORDER BY subinterval LIMIT ?"
        )
        while rows := self._base.execute(query, (step, first, ROWS_AT_ONCE)).fetchall():
            for number, *arrays in rows:
                with self._damaged():
                    moments, spans = (inflated(one) for one in arrays[:2])
                    used = np.frombuffer(spans, "<u4").reshape(-1, 2).astype(np.int64)
                    total = StoredTotal(
                        np.frombuffer(moments, "<u8").reshape(-1, len(TotalMoment)),
                        used,
                        np.frombuffer(inflated(arrays[2], 8 * buckets_of(spans)), "<u8"),
                    )
                yield number, total
            first = rows[-1][0] + 1

    @contextmanager
    def _damaged(self) -> Iterator[None]:
        """Raises OutputError for arrays that cannot be what ivypy wrote."""
        try:
            yield
        except (ValueError, TypeError, KeyError) as error:
            raise OutputError(f"{self._path}: not read: {error}") from error

    def intervals(self, merger: Merger, step: int, first: int = 0, last: int = EVER) -> Iterator[MergedSubinterval]:
        """The subintervals first to last merged again, or to the last with a result; one without results is empty.

        A result that covers subintervals before the first, too, is left out.
        """
        part = self.hosts(step, first, last)
        number = first
        merger.open(number)
        for host, result in self.results(step, first, last):
            while number < result.subinterval:
                yield merger.close(part)
                number += 1
                merger.open(number)
            if number - covered_by(result) >= first:
                merger.add(host, result)
        while part and number <= last:
            yield merger.close(part)
            if last == EVER:
                return
            number += 1
            merger.open(number)

    def hosts(self, step: int, first: int = 0, last: int = EVER) -> frozenset[str]:
        """Those that have a result there."""
        query = "SELECT DISTINCT host FROM result WHERE step = ? AND subinterval BETWEEN ? AND ?"
        return frozenset(host for (host,) in self._base.execute(query, (step, first, last)))

    def series(
        self, step: int, rollup_type: str = ALL, instance: str = ALL, first: int = 0, last: int = EVER
    ) -> Iterator[tuple[int, Distribution]]:
        """(subinterval, its distribution) of one rollup instance, in order."""
        number, distribution = -1, Distribution()
        chosen = self.chosen(step, rollup_type, instance)
        for host, result in self.results(step, first, last):
            if result.subinterval != number:
                if number >= 0:
                    yield number, distribution
                number, distribution = result.subinterval, Distribution()
            distribution.add(result, chosen.get(host, ()))
        if number >= 0:
            yield number, distribution

    def window(self, step: int, first: int, last: int, rollup_type: str = ALL, instance: str = ALL) -> Distribution:
        """The distribution of one rollup instance over the subintervals first to last."""
        distribution = Distribution()
        chosen = self.chosen(step, rollup_type, instance)
        for host, result in self.results(step, first, last):
            distribution.add(result, chosen.get(host, ()))
        return distribution

    def chosen(self, step: int, rollup_type: str, instance: str) -> dict[str, list[int]]:
        """Host: its classes that belong to a rollup instance. Raises KeyError if none does."""
        chosen: dict[str, list[int]] = {}
        for one in self.classes(step):
            if one.rollups.get(rollup_type) == instance:
                chosen.setdefault(one.host, []).append(one.number)
        if not chosen:
            raise KeyError(f"{rollup_type}={instance}")
        return chosen


def buckets_of(spans: bytes) -> int:
    """How many buckets an array of (first, count) names. Raises ValueError where there are no such."""
    used = np.frombuffer(spans, "<u4").reshape(-1, 2).astype(np.int64)
    if (used.sum(axis=1) > BUCKETS).any():
        raise ValueError("a histogram has more buckets than there are")
    return int(used[:, 1].sum())


def _result(
    subinterval: int, length_ns: int, counts: bytes, moments: bytes, spans: bytes, buckets: bytes,
    bucket_type: str, threads: bytes, rest: str,
) -> Result:  # fmt: skip
    fields = json_of(rest)
    kind, used = ArrayType(bucket_type), _array(ArrayType.U32, spans)
    room = kind.size * buckets_of(used.data)
    return Result(
        subinterval=subinterval,
        start_ns=fields["start_ns"],
        length_ns=length_ns,
        last=fields["last"],
        collected_ns=fields["collected_ns"],
        cpu=tuple(fields["cpu"]),
        counts=_array(ArrayType.I64, counts),
        moments=_array(ArrayType.U64, moments),
        spans=used,
        buckets=Array(kind, inflated(buckets, room), buckets),
        threads=_array(ArrayType.I64, threads),
        faults=tuple(IoFault(*fault) for fault in fields["faults"]),
        missing=tuple(fields["missing"]),
        sections=_array(ArrayType.U64, base64.b64decode(fields["sections"])) if "sections" in fields else NO_SECTIONS,
        taken=CpuTaken(**{name: value for name, value in fields.get("taken", {}).items() if name in _TAKEN}),
    )


_TAKEN: Final = frozenset(one.name for one in fields(CpuTaken))  # other versions of ivypy have others


def _with_all_series(result: Result, stored: int) -> Result:
    """A result of fewer series, as 0.1.0 stored them: the last ones are empty."""
    if stored == SERIES:
        return result
    moments = np.frombuffer(result.moments.data, "<u8").reshape(-1, stored, len(Moment))
    spans = np.frombuffer(result.spans.data, "<u4").reshape(-1, stored, 2)
    added = ((0, 0), (0, SERIES - stored), (0, 0))
    moments, spans = np.pad(moments, added), np.pad(spans, added)
    moments[:, stored:, Moment.MIN] = NO_LEAST
    return replace(result, moments=Array(ArrayType.U64, moments.tobytes()), spans=Array(ArrayType.U32, spans.tobytes()))


def _array(kind: ArrayType, packed: bytes) -> Array:
    return Array(kind, inflated(packed), packed)
