"""When fio's rows begin and end, and what a late row tells."""

from pathlib import Path

import numpy as np
import pytest

from ivypy.master.logs.readers.fio_histogram import Aligner, Backwards
from ivypy.master.logs.readers.records import LogClock
from tests.support.log_table import counts, intervals, table, whole
from tests.support.logs import log, row, run

READ, WRITE, TRIM = 0, 1, 2
EPOCH = 1_700_000_000_000

# period, epoch, (stamp, direction) ..., begins
BEGINS = [
    pytest.param(1000, False, [(1001, READ), (2003, READ)], [0, 1001], id="relative"),
    pytest.param(
        1000, False, [(1001, READ), (1001, WRITE), (2003, WRITE), (2004, READ)], [0, 0, 1001, 1001], id="mixed"
    ),
    pytest.param(1000, False, [(9001, READ), (9300, WRITE)], [8001, 8300], id="first-row-late"),
    pytest.param(None, False, [(9001, READ)], [0], id="one-row"),
    pytest.param(1000, True, [(EPOCH, READ), (EPOCH + 1000, READ)], [EPOCH - 1000, EPOCH], id="epoch"),
    pytest.param(None, True, [(EPOCH, READ)], [EPOCH], id="epoch-one-row"),
    pytest.param(100, False, [(100, READ), (200, READ), (4200, READ), (4200, READ)], [0, 100, 200, 4200], id="stall"),
    pytest.param(100, False, [(666, READ), (1000, READ), (1333, READ)], [566, 666, 1000], id="sparse"),
    pytest.param(100, False, [(100, READ), (200, TRIM), (300, READ)], [0, 0, 100], id="trim"),
    pytest.param(100, False, [(100, READ), (900, READ), (101, READ), (201, READ)], [0, 100, 0, 101], id="shared"),
    pytest.param(100, False, [(100, READ), (900, WRITE), (100, WRITE), (102, READ)], [0, 800, 0, 0], id="shared-mixed"),
]


@pytest.mark.parametrize(("period", "epoch", "rows", "expected"), BEGINS)
def test_where_rows_begin(period: float | None, epoch: bool, rows: list[tuple[int, int]], expected: list[int]) -> None:
    stamps, directions = np.array([stamp for stamp, _ in rows]), np.array([d for _, d in rows], np.uint8)
    found, backwards = Aligner(period, epoch).starts(stamps, directions)
    assert backwards is None
    assert found.tolist() == expected


def test_stamps_that_go_back_in_the_middle_are_a_fault() -> None:
    aligner = Aligner(100, epoch=False)
    starts, backwards = aligner.starts(np.array([100, 200, 900, 700, 800]), np.zeros(5, np.uint8))
    assert starts.tolist() == [0, 100, 200]
    assert backwards == Backwards(3, 900, 700, 100)


SLOW, QUICK = 1855 - 64 * 2, 1000  # buckets of 4.2 s and of 1.7 ms
# a late row's slowest I/Os, and begin, end, where else the I/Os may have completed, I/Os
LATE = [
    pytest.param(SLOW, [(200, 300, 300, {5: 7, SLOW: 1}), (4200, 4200, 4200, {SLOW: 1})], id="stall"),
    pytest.param(
        QUICK,
        [(200, 300, 300, {5: 6, QUICK: 1}), (4200, 4200, 300, {5: 1}), (200, 300, 4200, {QUICK: 1})],
        id="pause",
    ),
]


@pytest.mark.parametrize(("slowest", "expected"), LATE)
def test_a_late_row_is_one_io_at_its_stamp_and_the_rest_before_it_fell_due(
    slowest: int, expected: list[tuple[int, int, int, dict[int, int]]]
) -> None:
    """Nothing completed after the row fell due (200 + 100 ms) but the I/O that made fio write it."""
    aligner = Aligner(100, epoch=False)
    records, _ = aligner.records(
        np.array([100, 200, 4200]),
        np.zeros(3, np.uint8),
        np.array([0, 1, 2, 4]),
        np.array([5, 5, 5, slowest], np.uint16),
        np.array([10, 10, 7, 2], np.uint64),
        LogClock(),
    )
    assert records.elsewhere is not None
    found = [
        (
            *(int(ns) // 10**6 for ns in moments),
            {int(bucket): int(n) for bucket, n in zip(records.buckets[a:b], records.counts[a:b], strict=True) if n},
        )
        for *moments, a, b in zip(
            records.starts, records.ends, records.elsewhere, records.first, records.stop, strict=True
        )
    ]
    assert found == [(0, 100, 100, {5: 10}), (100, 200, 200, {5: 10}), *expected]
    assert aligner.late_rows == 1


def test_a_log_that_jobs_share_is_read_job_by_job(tmp_path: Path) -> None:
    jobs = [row(stamp, 0, {500: 10}) for _ in range(3) for stamp in (1000, 2000, 3000)]
    assert counts(intervals(run(log(tmp_path / "a_clat_hist.log", jobs)))) == [30, 30, 30]


def test_trims_count(tmp_path: Path) -> None:
    path = log(tmp_path / "a_clat_hist.1.log", [row(1000, 2, {500: 4}), row(1000, 0, {500: 3}), row(2000, 2, {500: 5})])
    ran = run(path, "--by", "all,direction")
    assert (whole(ran)["count"], whole(ran, "trim")["count"], whole(ran, "read")["count"]) == ("12", "9", "3")
    assert not intervals(ran, "write"), "a direction without I/Os is no slice"


def test_records_are_cut_by_their_overlap_in_time(tmp_path: Path) -> None:
    """As the published tool's own tests: rows at 2000 and 7000 ms, quanta of 5 s; but stamps are ends."""
    rows = [row(2000, 1, {1: 10, 2: 20}), row(7000, 1, {1: 10, 2: 20})]
    found = intervals(run(log(tmp_path / "a_clat_hist.1.log", rows), "--interval", "5s"))
    assert counts(found) == [pytest.approx(30 + 0.6 * 30), pytest.approx(0.4 * 30)]


def test_per_host_names_and_folders(tmp_path: Path) -> None:
    """`.log.HOST` as fio's client writes it, or a folder a host."""
    for name in ("a_clat_hist.1.log.alpha", "a_clat_hist.1.log.beta"):
        log(tmp_path / name, [row(1000, 0, {5: 1})])
    for name in ("h1/b_clat_hist.1.log", "h2/b_clat_hist.1.log"):
        log(tmp_path / name, [row(1000, 0, {5: 1})])
    hosts = {found["rollup_instance"] for found in table(run(*sorted(tmp_path.glob("a_*")), "--by", "host"))}
    assert hosts == {"alpha", "beta"}
    hosts = {found["rollup_instance"] for found in table(run(*sorted(tmp_path.glob("h*/*")), "--by", "host+job"))}
    assert hosts == {"h1+b", "h2+b"}
