"""Intervals against the truth: a simulated fio, every I/O of which is known."""

import re
from pathlib import Path

import pytest

from tests.support.log_simulator import Io, paced, truths, write_histogram_log, write_latency_log
from tests.support.log_table import counts, intervals, whole
from tests.support.logs import log, row, run

FAST, SLOW = 290_000, 8_000_000  # ns


def bursts_of_slow_ios(intervals_with_slow: list[int], length_ms: int, count: int) -> list[Io]:
    """300 fast I/Os a second, and five slow ones in the middle of the named intervals."""
    slow = [Io(length_ms * (n + 0.5) + k, SLOW) for n in intervals_with_slow for k in range(5)]
    return sorted(paced(300, count * length_ms / 1000, FAST) + slow, key=lambda io: io.at_ms)


@pytest.mark.parametrize("period_ms", [100, 250, 500])
def test_rows_that_end_near_the_grid_do_not_leak_into_the_next_interval(tmp_path: Path, period_ms: int) -> None:
    """fio stamps rows of 500 ms with 501, 1001, 1502 ...: their slow I/Os are their interval's alone."""
    ios = bursts_of_slow_ios([0, 3, 7, 8, 12], 500, 15)
    path = write_histogram_log(tmp_path / "a_clat_hist.1.log", ios, period_ms)
    found = intervals(run(path, "--interval", "500ms", "--percentiles", "50,99,99.9"))
    assert len(found) in (14, 15), "the last row may not have been written"
    for one, true in zip(found[:14], truths(ios, 500, 15), strict=False):
        assert float(one["latency_us_max"]) == pytest.approx(true.high, rel=1 / 64), one
        assert float(one["latency_us_p99_9"]) == pytest.approx(true.percentile(99.9), rel=1 / 64), one
        assert float(one["count"]) == pytest.approx(true.count, abs=3)
        assert float(one["count"]).is_integer() and "split" not in one["notes"]


TOLERANCES = [  # row's end, interval, counts, what it shows
    (1010, "1s", [100], "10 ms are within the tolerance of a row of a second (2 % of it: 20 ms)"),
    (1020, "1s", [100], "and so are 20"),
    (1021, "1s", [100 * 1000 / 1021, 100 * 21 / 1021], "beyond, the row is split by its overlap"),
    (110, "100ms", [100], "of short rows 10 ms"),
    (9_000, "10s", [100], "a row that ends long before the grid is not stretched"),
    (8, "4ms", [50, 50], "at a boundary nothing is moved"),
    (9, "4ms", [50, 50], "of rows of a few ms a quarter of the interval is the most"),
]


@pytest.mark.parametrize(("stamp", "interval", "expected", "says"), TOLERANCES, ids=[t[3] for t in TOLERANCES])
def test_row_ends_within_the_tolerance_count_as_on_the_grid(
    tmp_path: Path, stamp: int, interval: str, expected: list[float], says: str
) -> None:
    path = log(tmp_path / "a_clat_hist.1.log", [row(stamp, 0, {900: 100})])
    found = intervals(run(path, "--interval", interval))
    assert counts(found) == pytest.approx(expected, rel=1e-5)
    assert all(("split" in one["notes"]) == (stamp == 1021 or interval == "4ms") for one in found)


def test_split_rows_are_marked_with_the_figures_that_may_be_the_neighbours(tmp_path: Path) -> None:
    """Rows of 1 s at half seconds: the slow I/Os of 1.6 s are shown in (0, 1] s too, and marked there."""
    ios = sorted([*paced(1000, 6, FAST, 0.5), *(Io(1600 + k, SLOW) for k in range(5))], key=lambda io: io.at_ms)
    path = write_histogram_log(tmp_path / "a_clat_hist.1.log", ios, 1000)
    found = intervals(run(path, "--interval", "1s", "--percentiles", "50,99.9"))
    assert [("split" in one["notes"]) for one in found] == [True] * len(found)
    assert found[1]["notes"].startswith("split 100% count 0..2006 mean max p50")
    halves = intervals(run(path, "--interval", "2s", "--percentiles", "50,99.9"))
    assert halves[0]["notes"].startswith("split 33% count 1001..2006 mean max")
    assert halves[1]["notes"].startswith("split 50% count 1000..3005 mean max"), "the other side of the same row"
    assert "split" in halves[2]["notes"] and "max" not in halves[2]["notes"], "fast I/Os only, cut or not"


def test_count_of_a_split_interval_has_bounds(tmp_path: Path) -> None:
    """Where rows crowd before a pause, I/Os that are shown after it were all before it: 0 is within the bounds."""
    rows = [row(1000 * n, 0, {900: 100}) for n in (1, 2)]
    rows += [row(2600, 0, {900: 40}), row(3400, 0, {900: 60}), row(4400, 0, {900: 10})]
    found = intervals(run(log(tmp_path / "a_clat_hist.1.log", rows), "--log-hist-msec", "1000"))
    bounds = [re.findall(r"count \S+", one["notes"]) for one in found]
    assert counts(found) == pytest.approx([100, 100, 70, 36, 4])
    assert bounds == [[], [], ["count 40..100"], ["count 0..70"], ["count 0..10"]]


def test_percentiles_below_the_slowest_of_the_interval_are_named_where_they_may_be_off(tmp_path: Path) -> None:
    """A quarter of the I/Os is of a cut row: p50 may lie a quarter further up or down, and the I/Os differ there."""
    spread = {bucket: 10 for bucket in range(800, 1000, 2)}
    rows = [row(750, 0, spread), row(1250, 0, {bucket: 5 for bucket in spread})]
    found = intervals(run(log(tmp_path / "a_clat_hist.1.log", rows), "--log-hist-msec", "750", "--percentiles", "50"))
    assert " mean p50" in found[0]["notes"] and " max" not in found[0]["notes"]
    rows = [row(750, 0, {900: 1000}), row(1250, 0, {900: 500})]
    found = intervals(run(log(tmp_path / "b_clat_hist.1.log", rows), "--log-hist-msec", "750", "--percentiles", "50"))
    assert found[0]["notes"] == "split 20% count 1000..1500 mean", "of one bucket, any half is the same"


def test_subintervals_of_a_run_do_not_leak_either(tmp_path: Path) -> None:
    """A subinterval is a little longer than its nominal length; see test_ivypy for the rest."""
    rows = [row(1001 * n, 0, {900: 100, 1200: n % 2}) for n in range(1, 6)]
    found = intervals(run(log(tmp_path / "a_clat_hist.1.log", rows)))
    assert [float(one["count"]) for one in found] == [101, 100, 101, 100, 101]


RATES = [  # seconds of 1,000 IOPS, interval, iops of each interval, notes of the last
    (4.0, "1s", [1000] * 4, ""),
    (5.5, "10s", [1000], "partial 55%"),
    (5.5, "1h", [1000], "partial <1%"),
    (12.25, "10s", [1000, 1000], "partial 22%"),
]


@pytest.mark.parametrize(("seconds", "interval", "expected", "notes"), RATES)
def test_iops_are_per_second_that_the_logs_cover(
    tmp_path: Path, seconds: float, interval: str, expected: list[int], notes: str
) -> None:
    ios = paced(1000, seconds + 0.001, FAST)  # the last one makes fio write the last row
    histograms = write_histogram_log(tmp_path / "a_clat_hist.1.log", ios, 250)
    single = write_latency_log(tmp_path / "a_clat.1.log", ios)
    for path in (histograms, single):
        ran = run(path, "--interval", interval)
        assert [float(one["iops"]) for one in intervals(ran)] == pytest.approx(expected, rel=0.02)
        partial = [word for word in intervals(ran)[-1]["notes"].split("; ") if "partial" in word]
        assert partial == ([notes] if notes else [])
        assert float(whole(ran)["iops"]) == pytest.approx(1000, rel=0.02)


def test_an_interval_that_no_log_covers_has_no_iops(tmp_path: Path) -> None:
    """Two hosts, the second a minute after the first ended."""
    for host, second in (("h1", 0), ("h2", 5)):
        ios = paced(100, 2, FAST)
        write_histogram_log(tmp_path / host / "a_clat_hist.1.log", ios, 500, 1_700_000_000_000 + 1000 * second)
    found = intervals(run(*sorted(tmp_path.glob("*/*.log"))))
    assert [one["iops"] == "" for one in found] == [False, False, True, True, True, False, False][: len(found)]
    assert found[3]["covered_s"] == "0"
