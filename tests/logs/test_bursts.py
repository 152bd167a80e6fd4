"""Bursty jobs: logs with long gaps, from a simulated fio, every I/O of which is known."""

import re
from pathlib import Path

import pytest

from ivypy.master.exit_codes import ExitCode
from tests.support.log_simulator import Io, logged, paced, truths, write_histogram_log, write_latency_log
from tests.support.log_table import counts, intervals
from tests.support.logs import run

NS = 300_000


def bursts(every_s: float, count: int, ios: int, rate: float, start_s: float = 0.0, direction: int = 0) -> list[Io]:
    """`ios` I/Os at `rate`, every `every_s` seconds."""
    return [io for n in range(count) for io in paced(rate, ios / rate, NS, start_s + n * every_s, direction)]


JOBS = {  # name: I/Os, log_hist_msec, the most I/Os that lie in a neighbour of their interval
    "a-second-every-8": (bursts(8, 5, 1001, 1001), 1000),
    "an-instant-every-8": (bursts(8, 5, 1002, 100_000, 0.0095), 1000),
    "four-seconds-late": (bursts(8, 5, 1000, 10_000, 4.02), 1000),
    "fine-rows": (bursts(5, 6, 800, 1000, 0.1), 100),
    "two-bursts": (bursts(8, 2, 1000, 2000), 1000),
    "read-and-write": (bursts(8, 4, 1000, 2000) + bursts(6, 5, 500, 1000, 2.0, direction=1), 500),
    "uneven-gaps": ([io for s in (0, 3, 10, 12.5, 30) for io in bursts(1, 1, 700, 2000, s)], 250),
}


def misplaced(path: Path, ios: list[Io], period_ms: int, *options: object) -> float:
    """The share of the logged I/Os that lie in another interval of a second than they completed in."""
    found = counts(intervals(run(path, *options)))
    true = [one.count for one in truths(logged(ios, period_ms), 1000, len(found))]
    off = sum(abs(one - other) for one, other in zip(found, true, strict=True))
    return off / 2 / sum(true)


@pytest.mark.parametrize("options", [(), ("--log-hist-msec", "own")], ids=["found", "given"])
@pytest.mark.parametrize("name", JOBS)
def test_bursts_are_shown_where_they_were(tmp_path: Path, name: str, options: tuple[str, ...]) -> None:
    ios, period_ms = JOBS[name]
    path = write_histogram_log(tmp_path / "a_clat_hist.1.log", ios, period_ms)
    words = [str(period_ms) if word == "own" else word for word in options]
    assert misplaced(path, ios, period_ms, *words) < 0.03


def test_burst_example_of_the_documentation_is_shown_as_documented(tmp_path: Path) -> None:
    """1,001 I/Os at once every 8 s: a row of 1,001, seven empty ones, and so on."""
    ios = bursts(8, 4, 1001, 2000)
    path = write_histogram_log(tmp_path / "a_clat_hist.1.log", ios, 1000)
    ran = run(path)
    found = [round(count) for count in counts(intervals(ran))]
    assert found[0] == 1001 and found[1:7] == [0] * 6
    assert found[8] >= 985 and found[9:15] == [0] * 6
    assert found[7] + found[8] == found[15] + found[16] == 1001, "the first of a burst are stamped with its first ms"


def test_the_slowest_io_of_a_burst_is_in_its_interval_and_marked(tmp_path: Path) -> None:
    """A pause is no stall: nothing shows that the I/O after it was the slowest of the row that it wrote."""
    ios = bursts(8, 3, 1000, 4000, 0.1)
    ios[400] = Io(ios[400].at_ms, 80_000_000)
    found = intervals(run(write_histogram_log(tmp_path / "a_clat_hist.1.log", ios, 500)))
    highs = [float(one["latency_us_max"] or 0) for one in found]
    assert highs[0] == pytest.approx(80_000, rel=0.02), "where it completed"
    assert max(highs[1:]) < 1000
    assert "split <1% mean max p99_9;" in found[0]["notes"], "but the row does not say so; p50 and p99 are sure"


def test_intervals_that_hold_a_pause_whole_are_not_split(tmp_path: Path) -> None:
    path = write_histogram_log(tmp_path / "a_clat_hist.1.log", bursts(8, 3, 1000, 4000, 0.1), 500)
    assert all("split" not in one["notes"] for one in intervals(run(path, "--interval", "20s")))


@pytest.mark.parametrize("period_ms", [100, 250, 333, 500, 1000, 2000])
def test_the_period_is_found_by_all_logs_together(tmp_path: Path, period_ms: int) -> None:
    """Jobs with gaps of different lengths; none says enough alone where the period is not round."""
    for number in range(1, 7):
        ios = bursts(4 + 1.37 * number, 8, 400, 3000, 0.01 * number)
        write_histogram_log(tmp_path / f"a_clat_hist.{number}.log", ios, period_ms)
    ran = run(tmp_path)
    said = re.findall(
        r"log_hist_msec of .* is taken to be (\d+): .* show more than ([\d.]+) and at most ([\d.]+) ms", ran.err
    )
    assert said or "rows came more than a period late" in ran.err
    for taken, low, high in said:
        assert float(low) < period_ms <= float(high)
        assert int(taken) == pytest.approx(period_ms, rel=0.1)


def test_the_period_comes_from_a_regular_log_of_the_same_job(tmp_path: Path) -> None:
    write_histogram_log(tmp_path / "a_clat_hist.1.log", paced(1000, 20, NS), 700)
    ios = bursts(9, 2, 900, 3000)
    path = write_histogram_log(tmp_path / "a_clat_hist.2.log", ios, 700)
    ran = run(tmp_path, "--by", "file")
    assert "is taken to be" not in ran.err
    found = intervals(ran, str(path))
    assert [round(count) for count in counts(found)[1:8]] == [0] * 7


def test_rows_that_do_not_bound_the_period_are_named(tmp_path: Path) -> None:
    """Two rows, a gap between: any period would do."""
    path = write_histogram_log(tmp_path / "a_clat_hist.1.log", bursts(9, 3, 1, 1000, 0.5), 100)
    assert run(path).code is ExitCode.OK


@pytest.mark.parametrize(("start_s", "count", "is_conditional"), [(2.0, 2, True), (0.0, 2, True), (0.0, 4, False)])
def test_one_gap_bounds_the_period_only_if_the_job_began_with_it(
    tmp_path: Path, start_s: float, count: int, is_conditional: bool
) -> None:
    """Nothing shows when the first I/O came: 20 rows until 6 s are 300 ms from the start on, or 200 ms from 2 s on."""
    path = write_histogram_log(tmp_path / "a_clat_hist.1.log", bursts(4, count, 600, 5000, start_s), 200)
    assert ("if the first I/O came at the job's start" in run(path).err) == is_conditional


def check(tmp_path: Path, ios: list[Io], period_ms: int, *options: object) -> tuple[ExitCode, str]:
    single = write_latency_log(tmp_path / "a_clat.1.log", ios)
    histogram = write_histogram_log(tmp_path / "a_clat_hist.1.log", ios, period_ms)
    ran = run("--check", single, histogram, *options)
    return ran.code, ran.out


@pytest.mark.parametrize("name", JOBS)
def test_check_passes_where_intervals_are_right(tmp_path: Path, name: str) -> None:
    code, out = check(tmp_path, *JOBS[name])
    assert (code, "I/Os in their own interval of 1s: yes" in out) == (ExitCode.OK, True), out


@pytest.mark.parametrize("name", ["a-second-every-8", "an-instant-every-8", "uneven-gaps"])
def test_check_fails_where_a_wrong_period_spreads_bursts(tmp_path: Path, name: str) -> None:
    """The rows' own intervals are right whatever the period; what is shown over time is not."""
    code, out = check(tmp_path, *JOBS[name], "--log-hist-msec", 20_000)
    assert code is ExitCode.INVALID
    assert re.search(r"I/Os in their own interval of 1s: NO", out), out


def test_check_tells_the_jobs_of_shared_logs_apart(tmp_path: Path) -> None:
    """per_job_logs=0: one job after the other in both logs, and no job's I/Os after its last row in the histograms."""
    jobs = [[Io(n + job, (100 + 7 * n % 90 + job) * 1000) for n in range(1, 2600)] for job in range(3)]
    parts: dict[str, list[str]] = {name: [] for name in ("a_clat.log", "a_clat_hist.log")}
    for ios in jobs:
        parts["a_clat.log"].append(write_latency_log(tmp_path / "one", ios).read_text())
        parts["a_clat_hist.log"].append(write_histogram_log(tmp_path / "one", ios, 500).read_text())
    for name, texts in parts.items():
        (tmp_path / name).write_text("".join(texts))
    ran = run("--check", *(tmp_path / name for name in parts))
    assert ran.code is ExitCode.OK and "0 I/Os have a stamp outside" in ran.out, ran.out
    (tmp_path / "a_clat.log").write_text("".join(parts["a_clat.log"][:2]))
    ran = run("--check", *(tmp_path / name for name in parts))
    assert ran.code is ExitCode.INVALID and "the histograms are of 3 jobs, the latency log of 2" in ran.out


def test_check_notices_ios_in_other_buckets(tmp_path: Path) -> None:
    """50 I/Os of a row moved up by 40 buckets: no percentile that is shown moves by its bucket's width."""
    ios = paced(1000, 3.1, NS)
    ios[100:150] = [Io(io.at_ms, 200_000) for io in ios[100:150]]
    single = write_latency_log(tmp_path / "a_clat.1.log", ios)
    ios[100:150] = [Io(io.at_ms, 250_000) for io in ios[100:150]]
    ran = run("--check", single, write_histogram_log(tmp_path / "a_clat_hist.1.log", ios, 1000))
    assert ran.code is ExitCode.INVALID
    assert "within the bucket's width in every row's own interval: yes" in ran.out
    assert "I/Os in the bucket of their latency in every row: NO (50 in another)" in ran.out


def test_check_ends_with_its_worst_percentile(tmp_path: Path) -> None:
    """Rows of 700 ms, one of them slow: in intervals of a second its I/Os are in two."""
    ios = [Io(n, 50_000_000 if 1400 < n <= 2000 else NS) for n in range(1, 5000)]
    _, out = check(tmp_path, ios, 700)
    assert re.search(
        r"I/Os in their own interval of 1s: .* percentiles there are off by up to 16,[\d.]+% \(p99.9\)", out
    ), out
