"""Logs of several hosts on one clock."""

from pathlib import Path

import pytest

from ivypy.master.errors import PlanError
from ivypy.master.logs.timeline.clock_alignment import HostStart, read_start_times
from tests.support.log_table import counts, intervals, table, whole
from tests.support.logs import log, row, run

BASE = 1_700_000_000_000


def hosts(folder: Path, base_ms: int = 0) -> list[Path]:
    """Two hosts: ten I/Os in the third second, by each one's own clock."""
    rows = [row(base_ms + 1000 * n, 0, {500: 10} if n == 3 else {}) for n in range(1, 9)]
    return [log(folder / host / "a_clat_hist.1.log", rows) for host in ("h1", "h2")]


def starts(folder: Path, text: str) -> Path:
    path = folder / "starts.csv"
    path.write_text(text)
    return path


def test_without_a_table_relative_logs_start_together_and_that_is_reported(tmp_path: Path) -> None:
    ran = run(*hosts(tmp_path))
    assert counts(intervals(ran))[:4] == [0, 0, 20, 0]
    assert "the 2 hosts are assumed to have started together" in ran.err


def test_a_table_of_starts_moves_hosts_apart(tmp_path: Path) -> None:
    path = starts(tmp_path, "host,start,uncertainty_s\nh1,1700000000,0.002\nh2,2023-11-14T22:13:22Z,0.001\n")
    ran = run(*hosts(tmp_path), "--start-times", path)
    found = intervals(ran)
    assert counts(found)[:6] == [0, 0, 10, 0, 10, 0], "the second host began two seconds later"
    assert found[0]["start_utc"] == "2023-11-14T22:13:20.000Z" and found[2]["start_s"] == "2"
    assert "estimated misalignment of the hosts: up to 0.004 s" in ran.err


def test_drift_moves_the_end_more_than_the_begin(tmp_path: Path) -> None:
    """A clock that runs 10 % fast says 3 s after 2.73 s."""
    path = starts(tmp_path, "host,start,drift_ppm\nh1,0,0\nh2,0,500000\n")
    ran = run(*hosts(tmp_path), "--start-times", path)
    assert counts(intervals(ran))[:4] == [0, pytest.approx(10), pytest.approx(10), 0]


def test_stamps_from_1970_need_no_table(tmp_path: Path) -> None:
    found = intervals(run(*hosts(tmp_path, BASE)))
    assert (found[0]["start_s"], found[0]["start_utc"]) == ("0", "2023-11-14T22:13:20.000Z")
    assert counts(found)[:4] == [0, 0, 20, 0]


def test_intervals_lie_on_the_clock_or_on_the_begin(tmp_path: Path) -> None:
    paths = hosts(tmp_path, BASE + 700)
    clock, begin = (intervals(run(*paths, "--align", align)) for align in ("clock", "start"))
    assert clock[0]["start_utc"] == "2023-11-14T22:13:20.000Z"
    assert (begin[0]["start_utc"], begin[0]["start_s"]) == ("2023-11-14T22:13:20.700Z", "0")
    assert counts(begin)[2] == 20, "a row is an interval"
    assert sum(counts(clock)) == sum(counts(begin)) == 20


def test_stamps_of_both_sorts_need_the_table(tmp_path: Path) -> None:
    one, other = hosts(tmp_path / "a")[0], hosts(tmp_path / "b", BASE)[1]
    assert "give the starts with --start-times" in run(one, other).err


WRONG = [
    ("nothing\n1\n", "line 1: expected a header with host, start"),
    ("host,start\nh1,yesterday\nh2,2023-11-14T22:13:22\n", "line 2: start 'yesterday' is neither"),
    ("host,start\nh1,yesterday\nh2,2023-11-14T22:13:22\n", "line 3: start '2023-11-14T22:13:22' has no time zone"),
    ("host,start\nh1,5\nh1,6\n", "line 3: host 'h1' is listed twice"),
]


@pytest.mark.parametrize(("text", "says"), WRONG)
def test_faulty_start_times_are_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(PlanError, match=says):
        read_start_times(starts(tmp_path, text))


def test_a_host_missing_from_the_start_times_is_a_fault(tmp_path: Path) -> None:
    ran = run(*hosts(tmp_path), "--start-times", starts(tmp_path, "host,start\nh1,5\n"))
    assert "host 'h2' is not in the table of start times (h1)" in ran.err


def test_fractions_of_a_second_are_exact(tmp_path: Path) -> None:
    path = starts(tmp_path, "host, start\nh1, 1700000000.123456789\n")
    assert read_start_times(path) == {"h1": HostStart("h1", 1_700_000_000_123_456_789)}


def test_smallfile_threads_start_when_their_names_say(tmp_path: Path) -> None:
    """The published tool ignores it: threads that began 2 s apart look as if they ran together."""
    for thread, start in (("00", "1700000000.5"), ("01", "1700000002.5")):
        log(tmp_path / f"rsptimes_{thread}_h1_create_{start}.csv", ["create, 0.1, 0.2\n"] * 10)
    assert counts(intervals(run(*sorted(tmp_path.iterdir())))) == [10, 0, 10]
    assert {found["rollup_instance"] for found in table(run(tmp_path, "--by", "host+job"))} == {"h1+create"}


UPTIME = 3_456_000_214  # ms; 40 days


@pytest.mark.parametrize("begin_ms", [1_845_000, UPTIME], ids=["half an hour", "40 days"])
def test_no_row_is_made_up_for_the_uptime_before_the_first_row(tmp_path: Path, begin_ms: int) -> None:
    """fio's log_alternate_epoch_clock_id=1: stamps count from the machine's start."""
    paths = [
        log(tmp_path / f"a_clat_hist.{job}.log", [row(begin_ms + 1000 * n + job, 0, {500: 10}) for n in range(1, 6)])
        for job in (1, 2)
    ]
    ran = run(*paths)
    found = intervals(ran)
    assert counts(found) == [20] * 5 and found[0]["start_s"] == "0" and found[0]["start_utc"] == ""
    assert whole(ran)["iops"] == "20" and "split" not in ran.out
    assert f"2 logs begin up to {begin_ms // 1000 + 1} s after time 0" in ran.err
    on_their_clock = intervals(run(*paths, "--align", "clock"))
    assert on_their_clock[0]["start_s"] == str(begin_ms // 1000) and sum(counts(on_their_clock)) == 100


def test_time_before_a_stalled_first_row_is_covered(tmp_path: Path) -> None:
    """The row's slowest I/O took as long."""
    rows = [row(90_000, 0, {1855: 1}), *(row(90_000 + 1000 * n, 0, {500: 10}) for n in range(1, 4))]
    assert whole(run(log(tmp_path / "a_clat_hist.1.log", rows)))["covered_s"] == "93"


def test_single_ios_on_another_clock_begin_with_the_first(tmp_path: Path) -> None:
    rows = [f"{UPTIME + 100 * n}, 500000, 0, 4096, 0\n" for n in range(30)]
    ran = run(log(tmp_path / "a_clat.1.log", rows))
    assert sum(counts(intervals(ran))) == 30 and len(intervals(ran)) == 4
    assert "1 log begins up to 3456000 s after time 0" in ran.err


def test_means_of_100_seconds_begin_with_their_job(tmp_path: Path) -> None:
    rows = [f"{100_000 * n}, 500000, 0, 0, 0\n" for n in range(1, 4)]
    assert len(intervals(run(log(tmp_path / "a_clat.1.log", rows)))) == 300


@pytest.mark.parametrize("base_ms", [BASE, 0], ids=["1970", "uptime"])
def test_intervals_begin_with_rows_that_agree_on_when(tmp_path: Path, base_ms: int) -> None:
    """Each row is up to 9 ms late, as fio's are."""
    paths = [
        log(
            tmp_path / f"a_clat_hist.{job}.log",
            [row(base_ms + 90_470 + 500 * n + 7 * n % 10 * job % 10, 0, {500: 10}) for n in range(8)],
        )
        for job in (1, 2)
    ]
    ran = run(*paths)
    assert counts(intervals(ran)) == [40] * 4 and "split" not in ran.out
    assert "intervals begin with the logs' rows" in ran.err


def test_intervals_begin_on_the_clock_where_rows_do_not_agree(tmp_path: Path) -> None:
    for job, offset in ((1, 0), (2, 400)):
        log(tmp_path / f"a_clat_hist.{job}.log", [row(BASE + offset + 1000 * n, 0, {500: 10}) for n in range(1, 6)])
    ran = run(*sorted(tmp_path.iterdir()))
    assert intervals(ran)[0]["start_utc"] == "2023-11-14T22:13:20.000Z" and "begin with the logs' rows" not in ran.err
