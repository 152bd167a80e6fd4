"""histograms.sqlite: what is read is what was merged, over any window, after any crash."""

import os
import shutil
import sqlite3
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ivypy.master.errors import OutputError
from ivypy.master.output.histogram_db import HistogramWriter
from ivypy.master.output.histogram_db_reader import HistogramReader
from ivypy.master.rollup.decode_result import light
from ivypy.master.rollup.instances import Rollups
from ivypy.master.rollup.merge import MergedSubinterval, Merger
from ivypy.master.rollup.window import Window, carried
from ivypy.protocol.counters import LATENESS, SERIES, SERVICES, Moment, SectionCount
from ivypy.protocol.lines import decode_line, encode_line
from ivypy.protocol.messages import Result
from ivypy.protocol.payload import ArrayType
from tests.support.rollup_results import fault, packed, result
from tests.support.small_run import HOSTS, LENGTH, SPECS, START, data, interval, rollups, samples

SLICED = rollups()
SUBINTERVALS = 5


def merger() -> Merger:
    return Merger(SLICED, {host: SLICED.order(host) for host in HOSTS})


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("base") / "histograms.sqlite"
    write(path, SUBINTERVALS)
    return path


def write(path: Path, subintervals: int) -> None:
    merging = merger()
    writer = HistogramWriter(path)
    for step, name in enumerate(("max", "half")):
        writer.step(step, name, merging.layout)
        for k in range(subintervals):
            writer.subinterval(step, "warmup" if k == 0 else "run", START + k * LENGTH, interval(merging, k))
    writer.close()


def window_of(intervals: list[MergedSubinterval]) -> Window:
    window = Window(merger().layout)
    for one in intervals:
        window.add(one)
    return window


def test_stored_steps_subintervals_and_classes_are_listed(base: Path) -> None:
    with HistogramReader(base) as stored:
        assert stored.steps() == {0: "max", 1: "half"}
        assert [one.number for one in stored.subintervals(1)] == list(range(SUBINTERVALS))
        first = stored.subintervals(0)[0]
        assert (first.phase, first.start_utc_ns, first.length_ns, first.hosts) == ("warmup", START, LENGTH, HOSTS)
        classes = stored.classes(0)
        assert [(one.host, one.number, one.workloads) for one in classes] == [
            ("h1", 0, (0,)), ("h1", 1, (1,)), ("h2", 0, (0,)), ("h2", 1, (1,)),
        ]  # fmt: skip
        assert classes[3].rollups == {"all": "all", "host": "h2", "host+port": "h2+2:A", "port": "2:A"}


@pytest.mark.parametrize(("first", "last"), [(0, 4), (1, 3), (2, 2)])
def test_a_window_summed_from_it_is_the_window_that_was_added_up(base: Path, first: int, last: int) -> None:
    merging = merger()
    window = window_of([interval(merging, k) for k in range(first, last + 1)])
    found = window.measurement().merged
    with HistogramReader(base) as stored:
        for row in SLICED.rows:
            summed = stored.window(0, first, last, row.type, row.name)
            assert (carried(summed.limbs) == found.moments.limbs[row.row]).all()
            assert (summed.least == found.moments.least[row.row]).all()
            assert (summed.most == found.moments.most[row.row]).all()
            for series, buckets in enumerate(found.buckets):
                assert (summed.buckets[series, buckets.low : buckets.high] == buckets.counts[row.row]).all()
                assert summed.buckets[series].sum() == summed.moment(series, Moment.COUNT)


def test_sums_are_those_of_the_samples(base: Path) -> None:
    with HistogramReader(base) as stored:
        found = stored.window(0, 1, 2, "host", "h1")
    ns = [one for k in (1, 2) for klass in (0, 1) for one in samples("h1", k)[klass, SERVICES[0]]]
    assert found.moment(SERVICES[0], Moment.COUNT) == len(ns)
    assert found.moment(SERVICES[0], Moment.SUM) == sum(ns)
    assert found.moment(SERVICES[0], Moment.SQUARES_LOW) == sum(one * one for one in ns)
    assert found.moment(LATENESS, Moment.BYTES) == 8192 * 2 * 220


def test_a_series_adds_up_to_its_window(base: Path) -> None:
    with HistogramReader(base) as stored:
        series = dict(stored.series(0, "port", "1:A", 1))
        assert list(series) == [1, 2, 3, 4]
        total = sum((one.buckets for one in series.values()), np.zeros_like(series[1].buckets))
        assert (total == stored.window(0, 1, 4, "port", "1:A").buckets).all()


def test_intervals_are_merged_again_as_they_were(base: Path) -> None:
    merging = merger()
    with HistogramReader(base) as stored:
        again = window_of(list(stored.intervals(merger(), 0, 1, 3))).measurement()
    before = window_of([interval(merging, k) for k in (1, 2, 3)]).measurement()
    assert (again.first, again.last, again.cores) == (before.first, before.last, before.cores)
    assert (again.merged.counts == before.merged.counts).all()
    assert (again.merged.rates == before.merged.rates).all()
    assert again.iops_half_width.tolist() == pytest.approx(before.iops_half_width.tolist(), nan_ok=True)


@pytest.mark.parametrize("sections", [0, 100])
@pytest.mark.parametrize("by_process", [False, True])
def test_results_come_back_complete(tmp_path: Path, sections: int, by_process: bool) -> None:
    """As they came over the link: decoded from a line, stored, read; of hosts that a driver process has, too."""
    sliced = Rollups.build(SLICED.instances, SPECS, sections)
    by_address = packed(range(sections * len(sliced.order("h1")) * len(SectionCount)), ArrayType.U64)
    said = result(
        data("h1", 0), 0, LENGTH, faults=(fault(1, 5, 2),), missing=(3,), last=True, cpu=(1.5, 99.25),
        sections=by_address,
    )  # fmt: skip
    came = decode_line(encode_line(said))
    assert isinstance(came, Result) and came.buckets.packed
    merging = Merger(sliced, {host: sliced.order(host) for host in HOSTS})
    merging.open(0)
    merging.add("h1", came)
    merged = merging.close()
    if by_process:
        merged = replace(merged, results={"h1": light(came)})
    writer = HistogramWriter(tmp_path / "x.sqlite")
    writer.subinterval(0, "run", START, merged)
    writer.close()
    with HistogramReader(tmp_path / "x.sqlite") as stored:
        assert list(stored.results(0)) == [("h1", said)]


DAMAGES = [
    ("buckets", zlib.compress(bytes(1 << 20)), "inflates to more than"),
    ("buckets", b"x", "damaged array"),
    ("spans", zlib.compress(b"\0\0\0\0\xff\xff\xff\xff"), "more buckets than there are"),
    ("spans", "text", "bytes-like"),
    ("moments", zlib.compress(bytes(8))[:-1], "damaged array"),
    ("spans", zlib.compress(bytes(8)) + b"x", "damaged array"),
]


@pytest.mark.parametrize("table", ["result", "total"])
@pytest.mark.parametrize(("column", "packed", "said"), DAMAGES)
def test_arrays_that_ivypy_did_not_write_are_refused(
    base: Path, tmp_path: Path, table: str, column: str, packed: bytes | str, said: str
) -> None:
    """A small stream may inflate to a thousand times its size."""
    path = tmp_path / "histograms.sqlite"
    shutil.copy(base, path)
    with sqlite3.connect(path) as changed:
        changed.execute(f"UPDATE {table} SET {column} = ?", (packed,))
    with HistogramReader(path) as reader, pytest.raises(OutputError, match=f"{path}: not read: .*{said}"):
        list(reader.results(0) if table == "result" else reader.totals(0))


def test_an_unknown_slice_is_a_key_error(base: Path) -> None:
    with HistogramReader(base) as stored, pytest.raises(KeyError, match="host=h3"):
        stored.window(0, 0, 4, "host", "h3")


def test_an_empty_window_sums_to_zero(base: Path) -> None:
    with HistogramReader(base) as stored:
        assert stored.window(0, 7, 9).buckets.sum() == 0
        assert not list(stored.series(0, first=7)) and not list(stored.intervals(merger(), 0, 7))
        assert stored.subintervals(5) == []


def test_it_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    merging, path = merger(), tmp_path / "x.sqlite"
    writer = HistogramWriter(path)
    writer.step(0, "max", merging.layout)
    with HistogramReader(path) as stored:
        for k in range(3):
            writer.subinterval(0, "run", START, interval(merging, k))
            assert [one.number for one in stored.subintervals(0)] == list(range(k + 1))
    writer.close()


KILLED = """
import os, sys
from pathlib import Path
from ivypy.master.output.histogram_db import HistogramWriter
from tests.support.small_run import START, interval
from tests.output.test_histogram_db_reader import merger
merging = merger()
writer = HistogramWriter(Path(sys.argv[1]))
writer.step(0, "max", merging.layout)
for k in range(3):
    writer.subinterval(0, "run", START, interval(merging, k))
writer._base.execute("PRAGMA cache_size = 1")  # so that pages reach the file before the transaction ends
writer._base.set_trace_callback(lambda statement: os._exit(9) if statement == "COMMIT" else None)
writer.subinterval(0, "run", START, interval(merging, 3))
"""


@pytest.mark.slow
def test_a_crash_within_a_transaction_loses_that_subinterval_only(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", KILLED, path], env=os.environ | {"PYTHONPATH": str(root)}, check=False)
    assert done.returncode == 9
    assert path.with_name("x.sqlite-journal").exists()  # hot: the crash was in the middle
    with HistogramReader(path) as stored:
        assert [one.number for one in stored.subintervals(0)] == [0, 1, 2]
        assert stored.window(0, 0, 2).moment(SERVICES[0], Moment.COUNT) == 3 * 400


def test_other_files_are_refused(base: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database, but long enough to be looked at as one, which it is not\n" * 20)
    shutil.copy(base, tmp_path / "newer")
    with sqlite3.connect(tmp_path / "newer") as newer:
        newer.execute("PRAGMA user_version = 2")
    newer.close()
    for name, says in (
        ("text", "not read: file is not a database"),
        ("gone", "not read: No such file or directory"),
        ("newer", "not read: its schema is version 2, this ivypy reads version 1"),
    ):
        with pytest.raises(OutputError, match=f"{name}: {says}"):
            HistogramReader(tmp_path / name)


def test_a_full_disk_is_an_error_with_the_path(tmp_path: Path) -> None:
    merging, path = merger(), tmp_path / "x.sqlite"
    writer = HistogramWriter(path)
    writer.step(0, "max", merging.layout)
    writer.subinterval(0, "run", START, interval(merging, 0))
    (pages,) = writer._base.execute("PRAGMA page_count").fetchone()
    writer._base.execute(f"PRAGMA max_page_count = {pages}")  # sqlite's own "disk full"
    with pytest.raises(OutputError, match=r"x.sqlite: not written: database or disk is full"):
        for k in range(1, 20):
            writer.subinterval(0, "run", START, interval(merging, k))
    writer.close()
    with HistogramReader(path) as stored:
        assert stored.window(0, 0, 0).buckets.shape == (SERIES, 2560)


def test_a_new_base_needs_a_folder(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"histograms.sqlite: not written: unable to open database file"):
        HistogramWriter(tmp_path / "gone" / "histograms.sqlite")


def test_whoever_reads_slowly_never_keeps_the_run_from_writing(tmp_path: Path) -> None:
    path, merging = tmp_path / "histograms.sqlite", merger()
    writer = HistogramWriter(path)
    writer.step(0, "max", merging.layout)
    for k in range(100):
        writer.subinterval(0, "run", START + k * LENGTH, interval(merging, k))
    with HistogramReader(path) as stored:
        reading = stored.results(0), stored.totals(0)
        for one in reading:
            next(one)
        writer.subinterval(0, "run", START + 100 * LENGTH, interval(merging, 100))  # would fail after PATIENCE_S
        assert [sum(1 for _ in one) for one in reading] == [2 * 101 - 1, 101 - 1]
    writer.close()
