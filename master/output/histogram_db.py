"""histograms.sqlite, written: every result of every host as it was sent, so that any window can be summed afterwards.

Rule: arrays are stored as they came over the link, compressed and once per merge class; nothing is lost. One
transaction a subinterval, with a rollback journal (WAL fails on NFS), so that whatever prefix of a run survives can be
read. histogram_db_reader.py reads it.
"""

import base64
import json
import sqlite3
import zlib
from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Final

import numpy as np

from ...protocol.counters import SERIES, Moment
from ...protocol.histogram import BITS, GROUPS
from ...protocol.messages import Result
from ..rollup.arrays import Merged, integers
from ..rollup.instances import ALL
from ..rollup.merge import MergedSubinterval
from ..rollup.merge_layout import MergeLayout
from .csv_text import not_written
from .full_disk import patiently

VERSION: Final = 1  # of the schema: PRAGMA user_version

SCHEMA: Final = """
-- the bucket layout (protocol/histogram.py), and how many series a merge class has (protocol/counters.py)
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE step (number INTEGER PRIMARY KEY, name TEXT NOT NULL);

-- a merge class: the numbers of its workload instances, and its instance in every rollup type, as JSON
CREATE TABLE class (
    step INTEGER NOT NULL, host TEXT NOT NULL, class INTEGER NOT NULL, workloads TEXT NOT NULL, rollups TEXT NOT NULL,
    PRIMARY KEY (step, host, class)
) WITHOUT ROWID;

-- one host's subinterval; the arrays are those of protocol/counters.py: zlib streams of little-endian integers
CREATE TABLE result (
    step INTEGER NOT NULL, subinterval INTEGER NOT NULL, host TEXT NOT NULL,
    phase TEXT NOT NULL,
    start_utc_ns INTEGER NOT NULL, -- of the subinterval, by the controller's clock
    length_ns INTEGER NOT NULL, -- as it really was on this host
    counts BLOB NOT NULL, -- i8 (instances, Count)
    moments BLOB NOT NULL, -- u8 (classes, SERIES, Moment)
    spans BLOB NOT NULL, -- u4 (classes, SERIES, 2)
    buckets BLOB NOT NULL, -- the used ranges one after the other
    bucket_type TEXT NOT NULL, -- u4 or u8
    threads BLOB NOT NULL, -- i8 (threads, ThreadCount)
    rest TEXT NOT NULL -- JSON: what else the result said; `sections` in base64
);
CREATE UNIQUE INDEX result_place ON result (step, subinterval, host);

-- the sum of all these, as merged when the subinterval closed, so that whoever draws it need not read every host's
CREATE TABLE total (
    step INTEGER NOT NULL, subinterval INTEGER NOT NULL,
    moments BLOB NOT NULL, -- u8 (TOTAL_SERIES, TotalMoment)
    spans BLOB NOT NULL, -- u4 (TOTAL_SERIES, 2)
    buckets BLOB NOT NULL, -- u8: the used ranges one after the other
    PRIMARY KEY (step, subinterval)
) WITHOUT ROWID;
"""

TOTAL_SERIES: Final = 8  # service and response times of each kind of reads and writes: the first ones
PATIENCE_S: Final = 60.0  # for readers that hold the file locked: as long as for a slow disk


class TotalMoment(IntEnum):
    """Columns of `moments` in the table `total`; times in nanoseconds."""

    COUNT = 0
    SUM = 1
    MIN = 2
    MAX = 3


class HistogramWriter:
    """Writes; used from one thread at a time."""

    def __init__(self, path: Path) -> None:
        """A new file. Raises OutputError."""
        self._path = path
        try:
            self._base = sqlite3.connect(path, PATIENCE_S, isolation_level=None, check_same_thread=False)
            self._base.execute("PRAGMA journal_mode = DELETE")
            self._base.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = {VERSION}; COMMIT")
            layout = {"buckets_per_power_of_two": 1 << BITS, "groups": GROUPS, "series": SERIES}
            self._insert("meta", [(key, str(value)) for key, value in layout.items()])
        except sqlite3.Error as error:
            raise not_written(path, error) from error

    def step(self, number: int, name: str, layout: MergeLayout) -> None:
        """A step begins. Raises OutputError."""
        rows = layout.rollups.rows
        classes = []
        for host, place in layout.classes.items():
            host_classes = layout.rollups.classes(host, layout.numbers[host])
            workloads: list[list[int]] = [[] for _ in host_classes.rows]
            for one, klass in zip(host_classes.order, host_classes.class_of, strict=True):
                workloads[klass].append(one)
            for klass in range(place.stop - place.start):
                rollups = {rows[row].type: rows[row].name for row in host_classes.rows[klass]}
                classes.append((number, host, klass, json.dumps(workloads[klass]), json.dumps(rollups)))
        self._write({"step": [(number, name)], "class": classes})

    def subinterval(self, step: int, phase: str, start_utc_ns: int, interval: MergedSubinterval) -> None:
        """All results of a closed subinterval, in one transaction. Raises OutputError."""
        rows = [
            (step, interval.subinterval, host, phase, start_utc_ns, *_stored(result, interval.layout.rollups.sections))
            for host, result in interval.results.items()
        ]
        self._write({"result": rows, "total": [(step, interval.subinterval, *_total(interval.merged))]})

    def join(
        self, step: int, phase: str, start_utc_ns: int, hosts: Collection[str], interval: MergedSubinterval
    ) -> None:
        """Late results of a closed subinterval, and the sum with them. Raises OutputError.

        `interval`: all results of the subinterval, those of `hosts` among them.
        """
        number = interval.subinterval
        sections = interval.layout.rollups.sections
        rows = [(step, number, host, phase, start_utc_ns, *_stored(interval.results[host], sections)) for host in hosts]
        self._write(
            {"result": rows, "total": [(step, number, *_total(interval.merged))]},
            ("DELETE FROM total WHERE step = ? AND subinterval = ?", (step, number)),
        )

    def close(self) -> None:
        self._base.close()

    def _write(
        self, tables: Mapping[str, Sequence[tuple[object, ...]]], first: tuple[str, tuple[int, ...]] | None = None
    ) -> None:
        """Insert rows in one transaction, after the statement `first`."""

        def write() -> None:
            self._base.execute("BEGIN IMMEDIATE")
            try:
                if first is not None:
                    self._base.execute(*first)
                for table, rows in tables.items():
                    self._insert(table, rows)
                self._base.execute("COMMIT")
            except BaseException:
                if self._base.in_transaction:
                    self._base.execute("ROLLBACK")
                raise

        try:
            patiently(write)
        except sqlite3.Error as error:
            raise not_written(self._path, error) from error

    def _insert(self, table: str, rows: Sequence[tuple[object, ...]]) -> None:
        if rows:
            self._base.executemany(f"INSERT INTO {table} VALUES ({','.join('?' * len(rows[0]))})", rows)


def _total(merged: Merged) -> tuple[bytes, ...]:
    """The columns of `total` from moments on."""
    row = next(rollup.row for rollup in merged.rollups.rows if rollup.type == ALL)
    moments_of, shown = merged.moments, slice(TOTAL_SERIES)
    moments = np.empty((TOTAL_SERIES, len(TotalMoment)), "<u8")
    moments[:, TotalMoment.COUNT] = integers(moments_of.limbs[row, shown], Moment.COUNT)
    moments[:, TotalMoment.SUM] = integers(moments_of.limbs[row, shown], Moment.SUM)
    moments[:, TotalMoment.MIN] = moments_of.least[row, shown]
    moments[:, TotalMoment.MAX] = moments_of.most[row, shown]
    spans, buckets = [], []
    for series in merged.buckets[shown]:
        used = np.flatnonzero(series.counts[row])
        first, end = (int(used[0]), int(used[-1]) + 1) if len(used) else (0, 0)
        spans.append((series.low + first, end - first))
        buckets.append(series.counts[row, first:end])
    texts = (moments, np.array(spans, "<u4"), np.concatenate(buckets).astype("<u8"))
    return tuple(zlib.compress(text.tobytes(), 1) for text in texts)


def _stored(result: Result, sections: int) -> tuple[object, ...]:
    """The columns of `result` from length_ns on."""
    rest: dict[str, object] = {
        "start_ns": result.start_ns,
        "collected_ns": result.collected_ns,
        "last": result.last,
        "cpu": result.cpu,
        "taken": vars(result.taken),
        "faults": [(fault.number, fault.errno, fault.count) for fault in result.faults],
        "missing": result.missing,
    }
    if sections:
        rest["sections"] = base64.b64encode(result.sections.stream).decode()
    return (
        result.length_ns, result.counts.stream, result.moments.stream, result.spans.stream, result.buckets.stream,
        result.buckets.type.value, result.threads.stream, json.dumps(rest, separators=(",", ":")),
    )  # fmt: skip
