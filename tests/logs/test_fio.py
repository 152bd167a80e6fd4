"""Against exact percentiles: logs of every I/O and histogram logs of the same runs of a real fio."""

import gzip
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from ivypy.master.exit_codes import ExitCode
from tests.support.log_table import counts, intervals, whole
from tests.support.logs import run

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("fio") is None, reason="no fio")]

RUNTIME_S = 4
RUNS = {
    "mixed": ["--rw=randrw", "--rwmixread=70", "--ioengine=psync", "--rate_iops=3000,1500", "--log_hist_msec=250"],
    "deep": ["--rw=randread", "--ioengine=libaio", "--iodepth=16", "--rate_iops=5000", "--log_hist_msec=100"],
    "sparse": ["--rw=randread", "--ioengine=psync", "--rate_iops=7", "--log_hist_msec=100"],
    "epoch": ["--rw=randread", "--ioengine=psync", "--rate_iops=2000", "--log_hist_msec=300", "--log_unix_epoch=1"],
    "coarse": [
        "--rw=randread",
        "--ioengine=psync",
        "--rate_iops=2000",
        "--log_hist_msec=200",
        "--log_hist_coarseness=3",
    ],
}


@dataclass(frozen=True)
class Logs:
    single: Path
    histogram: Path


@pytest.fixture(scope="module", params=RUNS)
def logs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Logs:
    folder = tmp_path_factory.mktemp(request.param)
    subprocess.run(
        ["fio", "--name=job", "--filename=data", "--size=16m", "--bs=4k", "--time_based", f"--runtime={RUNTIME_S}",
         "--write_lat_log=job", "--write_hist_log=job", "--output=out", *RUNS[request.param]],
        cwd=folder, check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    return Logs(folder / "job_clat.1.log", folder / "job_clat_hist.1.log")


@pytest.mark.realtime  # fio writes a row when it comes to it, and stamps it then
def test_within_the_bucket_in_every_row_and_over_the_whole(logs: Logs) -> None:
    """Also: every I/O in the row that its stamp says, every count."""
    ran = run("--check", logs.single, logs.histogram, "--percentiles", "50,90,95,99,99.9")
    assert ran.code is ExitCode.OK, ran.out
    assert "within the bucket's width in every row's own interval: yes" in ran.out
    assert "I/Os in the bucket of their latency in every row: yes (0 in another)" in ran.out
    outside = [int(count) for count in re.findall(r"(\d+) I/Os have a stamp outside their row", ran.out)]
    # A first row that does not begin with the job begins a period before its stamp, give or take the first I/Os.
    # Of the epoch's rows, which hold 600 each, 25 were seen on a busy machine.
    assert outside and sum(outside) <= (60 if "epoch" in str(logs.single) else 2)


def test_counts_are_those_of_the_log_of_every_io(logs: Logs) -> None:
    """Nothing is dropped at edges: the intervals' sum is the rows' sum; what is missing is fio's tail."""
    single, merged = run(logs.single), run(logs.histogram)
    rows = sum(sum(map(int, line.split(",")[3:])) for line in logs.histogram.read_text().splitlines())
    assert float(whole(merged)["count"]) == rows
    assert sum(counts(intervals(merged))) == pytest.approx(rows, rel=1e-9)
    assert float(whole(single)["count"]) == len(logs.single.read_text().splitlines())
    assert rows <= float(whole(single)["count"])


def test_intervals_are_off_by_no_more_than_the_rows_that_they_cut(logs: Logs) -> None:
    """A row does not record when its I/Os completed; so a boundary moves at most the I/Os of the rows across it."""
    exact = {one["start_utc"] or one["start_s"]: float(one["count"]) for one in intervals(run(logs.single, "--exact"))}
    found = intervals(run(logs.histogram, "--log-hist-msec", _period(logs), "--align", "clock"))
    rows = [[int(cell) for cell in line.split(",")] for line in logs.histogram.read_text().splitlines()]
    is_epoch = rows[0][0] > 10**12
    base_ms = (rows[0][0] - int(_period(logs))) // 1000 * 1000 if is_epoch else 0
    previous: dict[int, int] = {}
    across: Counter[int] = Counter()  # boundary, s -> I/Os of the rows that it cuts
    for stamp, direction, _, *cells in rows:
        begin = previous.get(direction, base_ms)
        for second in range((begin - base_ms) // 1000, (stamp - base_ms) // 1000 + 1):
            across[second] += sum(cells)
        previous[direction] = stamp
    for one in found[1:-1]:
        true = exact.get(one["start_utc"] or one["start_s"], 0.0)
        start = int(float(one["start_s"]))
        assert abs(float(one["count"]) - true) <= across[start] + across[start + 1]


def _period(logs: Logs) -> str:
    (period,) = [word.split("=")[1] for word in RUNS[logs.single.parent.name[:-1]] if "hist_msec" in word]
    return period


def test_the_check_notices_logs_of_another_run(logs: Logs, tmp_path: Path) -> None:
    """A latency log that lacks the first I/O puts all others into the wrong rows."""
    other = tmp_path / "job_clat.1.log"
    other.write_text("".join(line.replace(", 1", ", 9") + "\n" for line in logs.single.read_text().splitlines()[:20]))
    ran = run("--check", other, logs.histogram)
    assert ran.code is not ExitCode.OK


DEBIAN = Path("/usr/share/doc/fio/fio-histo-log-pctiles.py.gz")


@pytest.mark.skipif(not DEBIAN.exists(), reason="no fio-histo-log-pctiles.py")
@pytest.mark.parametrize("seconds", [1, 2])
def test_compat_prints_what_the_installed_tool_prints(logs: Logs, tmp_path: Path, seconds: int) -> None:
    tool = tmp_path / "pctiles.py"
    tool.write_bytes(gzip.decompress(DEBIAN.read_bytes()))
    words = [
        sys.executable,
        str(tool),
        "--time-quantum",
        str(seconds),
        "--log-hist-msec",
        _period(logs),
        str(logs.histogram),
    ]
    theirs = subprocess.run(words, capture_output=True, text=True, timeout=60)
    if theirs.returncode or "ERROR" in theirs.stdout:
        pytest.skip("it does not read this log")
    options = "--compat", "histo-log-pctiles", "--interval", f"{seconds}s", "--log-hist-msec", _period(logs)
    assert run(*options, logs.histogram).out == theirs.stdout
