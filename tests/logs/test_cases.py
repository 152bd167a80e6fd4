"""The cases with known answers: what the published tools print, and what is right where they are not."""

import gzip
import itertools
import json
from collections import Counter
from pathlib import Path

import pytest

from ivypy.master.exit_codes import ExitCode
from ivypy.protocol.histogram import bucket_of
from tests.support.log_table import counts, intervals, whole
from tests.support.logs import FIO2, NULL4, SMALLFILE, STALL, Ran, case_logs, expected, log, row, run

PCTILES = ("--compat", "histo-log-pctiles")
HIST = ("--compat", "fiologparser_hist")
LOGPARSER = ("--compat", "fiologparser")
Q5 = ("--interval", "5s", "--percentiles", "0,25,50,90,99,99.9,99.99,100")
I3000 = ("--interval", "3s", "--divisor", 1000, "--decimals", 4, "--percentiles", "25,75,99.9")

PRINTED = [
    (NULL4, "pctiles-default", "*_clat_hist.*", PCTILES),
    (NULL4, "pctiles-msec", "*_clat_hist.1.*", (*PCTILES, "--output-unit", "msec")),
    (NULL4, "pctiles-q5-more", "*_clat_hist.*", (*PCTILES, *Q5)),
    (FIO2, "pctiles-v2", "*", PCTILES),
    (NULL4, "histpy-weighted", "*_clat_hist.*", HIST),
    (NULL4, "histpy-noweight", "*_clat_hist.*", (*HIST, "--weighting", "uniform")),
    (NULL4, "histpy-rwm", "*_clat_hist.*", (*HIST, "--directions", "rwm")),
    (NULL4, "histpy-i3000-p", "*_clat_hist.[12].*", (*HIST, *I3000)),
    (STALL, "histpy-weighted", "stall*", HIST),
    (STALL, "histpy-noweight", "stall*", (*HIST, "--weighting", "uniform")),
    (FIO2, "histpy-usbin", "*", HIST),
    (FIO2, "histpy-usbin-noweight", "*", (*HIST, "--weighting", "uniform")),
    (NULL4, "fiologparser-default", "null4_clat.*", LOGPARSER),
    (NULL4, "fiologparser-s", "null4_clat.*", (*LOGPARSER, "--show", "sum")),
    (NULL4, "fiologparser-a", "null4_clat.*", (*LOGPARSER, "--show", "average")),
    (NULL4, "fiologparser-f", "null4_clat.*", (*LOGPARSER, "--show", "full")),
]


@pytest.mark.parametrize(("case", "name", "glob", "options"), PRINTED, ids=[name for _, name, *_ in PRINTED])
def test_compat_prints_what_the_tool_prints(case: Path, name: str, glob: str, options: tuple[str, ...]) -> None:
    assert run(*options, *case_logs(case, glob)).lines == expected(case, name)


@pytest.mark.parametrize("tool", [PCTILES, HIST])
def test_a_folder_stands_for_the_histogram_logs_in_it(tool: tuple[str, ...]) -> None:
    in_folder = run(*tool, NULL4 / "in")
    assert in_folder.code is ExitCode.OK
    assert in_folder.out == run(*tool, *case_logs(NULL4, "*_clat_hist.*")).out


def test_a_folder_stands_for_the_latency_logs_in_it_if_they_are_of_one_quantity(tmp_path: Path) -> None:
    assert "in: holds logs of clat and lat, which must not be added" in run(*LOGPARSER, NULL4 / "in").err
    for path in case_logs(NULL4, "*_lat.*"):
        (tmp_path / Path(path).name).write_bytes(Path(path).read_bytes())
    assert run(*LOGPARSER, tmp_path).out == run(*LOGPARSER, *case_logs(NULL4, "*_lat.*")).out != ""


@pytest.mark.parametrize(
    ("tool", "says"),
    [
        (PCTILES, "is a folder without histogram logs of fio in it"),
        (HIST, "is a folder without histogram logs of fio in it"),
        (LOGPARSER, "is a folder without latency logs of fio in it"),
    ],
)
def test_a_folder_without_logs_and_a_missing_file_are_named(tool: tuple[str, ...], says: str, tmp_path: Path) -> None:
    assert run(*tool, tmp_path).err == f"{tmp_path}: {says}\n"
    assert run(*tool, tmp_path / "no.log").err == f"{tmp_path}/no.log: cannot be read: No such file or directory\n"


def test_where_pctiles_crashes_compat_goes_on() -> None:
    """Case 05 divides by zero there; its nsec is a NameError; coarse logs and trims are refused."""
    assert len(run(*PCTILES, *case_logs(STALL, "stall*")).lines[10:]) == 12
    nsec = run(*PCTILES, "--output-unit", "nsec", *case_logs(NULL4, "*_clat_hist.1.*")).lines
    usec = run(*PCTILES, *case_logs(NULL4, "*_clat_hist.1.*")).lines
    assert float(nsec[-1].split(",")[-1]) == pytest.approx(1000 * float(usec[-1].split(",")[-1]))


def test_where_fiologparser_crashes_compat_goes_on() -> None:
    lines = run(*LOGPARSER, "--show", "all", *case_logs(NULL4, "null4_clat.*")).lines
    assert lines[0] == "start-time, samples, min, avg, median, 90%, 95%, 99%, max"
    assert lines[1].startswith("0.000000, 6, 47.000000, 48.333333, 48.500000, 49.500000")


def test_the_same_numbers_as_pctiles_but_one_period_earlier(null4: Ran) -> None:
    """Theirs takes a stamp for the begin of its row. Ours: the same rows one second before; the first is not empty."""
    theirs = [line.split(", ") for line in expected(NULL4, "pctiles-default")[11:]]
    ours = intervals(null4)
    for mine, other in zip(ours, theirs, strict=False):
        assert float(mine["start_s"]) * 1000 == float(other[0]) - 1000
        assert float(mine["count"]) == pytest.approx(float(other[1]), rel=0.005)
        for column, number in (("p50", 3), ("p95", 4), ("p99", 5)):
            assert float(mine[f"latency_us_{column}"]) == pytest.approx(float(other[number]), rel=0.02)


@pytest.fixture(scope="module")
def null4() -> Ran:
    return run(*case_logs(NULL4, "*_clat_hist.*"), "--by", "all,direction,file")


def test_nothing_is_dropped_at_the_edges(null4: Ran) -> None:
    logged = 0
    for path in case_logs(NULL4, "*_clat_hist.*"):
        for line in gzip.decompress(Path(path).read_bytes()).decode().splitlines():
            logged += sum(int(cell) for cell in line.split(",")[3:])
    assert float(whole(null4)["count"]) == logged
    assert sum(counts(intervals(null4))) == pytest.approx(logged, rel=1e-9)
    assert sum(float(whole(null4, d)["count"]) for d in ("read", "write")) == logged
    assert sum(float(whole(null4, p)["count"]) for p in case_logs(NULL4, "*_clat_hist.*")) == logged


def test_the_tail_that_fio_never_wrote_is_estimated(tmp_path: Path) -> None:
    """Case 01's JSON knows 8.33 % more I/Os than its logs; with them, the percentiles are fio's own."""
    job = tmp_path / "fio.json"
    job.write_bytes(gzip.decompress((NULL4 / "in" / "fio-json-plus.json.gz").read_bytes()))
    ran = run(
        *case_logs(NULL4, "*_clat_hist.*"), "--fio-json", job, "--interpolation", "midpoint", "--by", "all,direction"
    )
    assert ran.err.count("8.33% of all") == 2
    assert float(whole(ran)["count"]) == 1_919_968
    for direction in ("read", "write"):
        bins: Counter[int] = Counter()
        for section in json.loads(job.read_text())["jobs"]:
            bins.update({int(ns): count for ns, count in section[direction]["clat_ns"]["bins"].items()})
        for percentile, column in ((50, "p50"), (99, "p99"), (99.9, "p99_9")):
            below = itertools.accumulate(bins[ns] for ns in sorted(bins))
            theirs = next(ns for ns, n in zip(sorted(bins), below, strict=True) if n >= percentile / 100 * bins.total())
            assert round(float(whole(ran, direction)[f"latency_us_{column}"]) * 1000) == theirs


def test_the_tail_has_as_many_ios_as_the_json_where_that_has_no_bins(tmp_path: Path) -> None:
    """Its shape is that of the logs, where most buckets hold a few I/Os only."""
    log_path = log(tmp_path / "a_clat_hist.1.log", [row(1000, 0, dict.fromkeys(range(500, 900), 1))])
    job = tmp_path / "fio.json"
    job.write_text(json.dumps({"jobs": [{"jobname": "a", "read": {"runtime": 2000, "clat_ns": {"N": 500}}}]}))
    assert whole(run(log_path, "--fio-json", job))["count"] == "500"


def test_a_stall_shows_where_it_happened() -> None:
    """Case 05: every process stood still from 2.74 s to 6.74 s. 40 catch-up rows a direction carry two stamps."""
    ran = run(*case_logs(STALL, "stall*"))
    found = intervals(ran)
    assert counts(found)[3:6] == [0, 0, 0]
    assert [row["latency_us_p50"] for row in found[3:6]] == [""] * 3, "no latency is not a latency of 0"
    assert counts(found)[2] == pytest.approx(2966, abs=10), "2.0 s to 2.742 s; the row (1.902, 2.002] is the one before"
    assert counts(found)[6] == pytest.approx(17034, abs=10), "what was outstanding came at once"
    assert all(count == pytest.approx(4000, abs=4) for count in counts(found)[7:11])
    assert sum(counts(found)) == pytest.approx(float(whole(ran)["count"]), rel=1e-9)
    assert "nothing completed before them" in ran.err


def test_slow_ios_show_while_they_were_in_flight(tmp_path: Path) -> None:
    """Eight I/Os of 4 s complete at 10 s, after nothing else did for 4 s: in flight from 6 s to 10 s."""
    slow, quick = 1855 - 64 * 2, 900  # a bucket of 4.2 s; one of some 300 us
    rows = [row(1000 * (n + 1), 0, {quick: 100}) for n in range(6)]
    rows.append(row(10_000, 0, {slow: 8}))
    path = log(tmp_path / "x_clat_hist.1.log", rows)
    late = [float(r["count"]) for r in intervals(run(path))]
    seen = intervals(run(path, "--weighting", "in-flight"))
    assert late[6:10] == [pytest.approx(7), 0, 0, 1], "by completion: one at 10 s, the others before 7 s"
    assert all(float(r["count"]) > 0 for r in seen), "in flight: no interval without"
    assert float(seen[8]["latency_us_p50"]) > 4e6
    assert sum(counts(seen)) == pytest.approx(608, rel=1e-8)


def test_fio_2_logs_are_microseconds() -> None:
    ran = run(*case_logs(FIO2, "*"), "--interpolation", "midpoint", "--percentiles", "50,99")
    theirs = [line.split(", ") for line in expected(FIO2, "pctiles-v2")[11:]]
    for mine, other in zip(intervals(ran), theirs, strict=False):
        assert float(mine["latency_us_p50"]) == pytest.approx(float(other[3]), rel=0.02)
    assert float(whole(ran)["latency_us_p50_width"]) == 8, "at a millisecond a bucket is 8 us wide"


def test_smallfile_as_its_own_tool_prints_it_but_whole() -> None:
    """All 320 samples: theirs drops those on a boundary (n = 24 at 300 s) and the tail after the last interval."""
    options = "--exact", "--interval", "100s", "--percentiles", "50,90,95,99", "--by", "all,host,file"
    fakes = case_logs(SMALLFILE, "*foo.com*")
    ran = run(*fakes, *options)
    printed = gzip.decompress((SMALLFILE / "expected" / "stats-fake-100s.stats-rsptimes.csv.gz").read_bytes()).decode()
    theirs = {
        line.split(",")[0]: line.split(", ")[1:-1]
        for line in printed.splitlines()
        if line.startswith(("all-", "host-"))
    }
    names = ("min", "max", "mean", "stdev", "p50", "p90", "p95", "p99")
    for instance, name in [
        ("all", "all-hosts:all-thrd,320"),
        ("host-21.foo.com", "host-21:all-thrd,160"),
        (fakes[0], "host-21:01,40"),
    ]:
        key, count = name.rsplit(",", 1)
        found, numbers = whole(ran, instance), [float(cell) for cell in theirs_of(printed, key)]
        assert (found["count"], numbers[0]) == (count, float(count))
        numbers[4] *= numbers[3] / 100  # theirs is in percent of the mean
        for column, number in zip(names, numbers[1:], strict=True):
            assert float(found[f"latency_us_{column}"]) == pytest.approx(number * 1e6, rel=1e-6)
    assert theirs
    assert sum(counts(intervals(ran))) == 320


def theirs_of(printed: str, key: str) -> list[str]:
    (line,) = [line for line in printed.splitlines() if line.startswith(f"{key},")]
    return [cell for cell in line.removeprefix(f"{key},").split(",") if cell.strip()]


def test_smallfile_of_a_real_run() -> None:
    printed = gzip.decompress((SMALLFILE / "expected" / "stats-real-1s.stats-rsptimes.csv.gz").read_bytes()).decode()
    found = whole(run(*case_logs(SMALLFILE, "*_vm_*"), "--exact", "--percentiles", "50,90,95,99"))
    numbers = [float(cell) for cell in theirs_of(printed, "vm:all-thrd")]
    for column, place in (("min", 1), ("max", 2), ("mean", 3), ("p50", 5), ("p90", 6), ("p95", 7), ("p99", 8)):
        assert float(found[f"latency_us_{column}"]) == pytest.approx(numbers[place] * 1e6, rel=0.02, abs=0.6)
    in_buckets = whole(run(*case_logs(SMALLFILE, "*_vm_*"), "--percentiles", "50,90,95,99"))
    for column in ("p50", "p90", "p95", "p99"):
        width = float(in_buckets[f"latency_us_{column}_width"])
        assert float(in_buckets[f"latency_us_{column}"]) == pytest.approx(
            float(found[f"latency_us_{column}"]), abs=width
        )


def test_averaged_logs_have_no_percentiles() -> None:
    """Case 01's latency logs are means over a second: rows, a mean, extremes, but no percentile of I/Os."""
    ran = run(*case_logs(NULL4, "null4_lat.*"))
    found = whole(ran)
    assert (found["quantity"], found["latency_us_p99"], found["notes"]) == (
        "lat_avg",
        "",
        "means or maxima: no percentiles",
    )
    assert found["count"] == "96" and float(found["latency_us_max"]) > 0
    assert "hold means, or maxima with log_max_value, and do not record which" in ran.err


def test_logs_of_different_things_are_never_added() -> None:
    ran = run(*case_logs(NULL4, "null4_lat.*"), *case_logs(NULL4, "null4_clat.*"), *case_logs(NULL4, "*hist*"))
    kinds = {tuple(line.split(",")[2:4]) for line in ran.lines[1:]}
    assert kinds == {("fio-latency", "lat_avg"), ("fio-latency", "clat_avg"), ("fio-histogram", "clat")}


def test_the_tail_of_jobs_that_a_client_ran_is_the_same(tmp_path: Path) -> None:
    """A client's JSON: `client_stats`, and with it a sum of all jobs, which is not to be counted again."""
    document = json.loads(gzip.decompress((NULL4 / "in" / "fio-json-plus.json.gz").read_bytes()))
    jobs = [{**job, "hostname": "h1"} for job in document["jobs"]]
    own = tmp_path / "own.json"
    own.write_text(json.dumps({"jobs": jobs}, indent=1))
    client = tmp_path / "client.json"
    sums = {**jobs[0], "jobname": "All clients"}
    client.write_text("<h1> Starting 4 processes\n" + json.dumps({"client_stats": [*jobs, sums]}, indent=1))
    logs = case_logs(NULL4, "*_clat_hist.*")
    assert run(*logs, "--fio-json", client).out == run(*logs, "--fio-json", own).out != run(*logs).out


@pytest.mark.parametrize(
    ("weighting", "shares"),
    [("in-flight", [(0.5 + 1 / 12) + 1 / 12, 1 / 3]), ("in-flight-to-row-end", [(150 - 100) / 150, 100 / 150])],
)
def test_ios_of_a_row_end_at_its_stamp_or_evenly_over_it(tmp_path: Path, weighting: str, shares: list[float]) -> None:
    """I/Os of 150 ms in a row from 100 to 200 ms, in intervals of 100 ms."""
    bucket = bucket_of(150_000_000)
    path = log(tmp_path / "a_clat_hist.1.log", [row(100, 0, {}), row(200, 0, {bucket: 1000})])
    words = ("--interval", "100ms", "--log-hist-msec", "100", "--weighting", weighting)
    found = counts(intervals(run(path, *words)))
    assert found == [pytest.approx(1000 * share, rel=0.01) for share in shares]
