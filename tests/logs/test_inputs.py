"""Input that is unusual and no fault: pipes, the same file twice, logs without an end; and runs beside one another."""

import gzip
import io
import lzma
import os
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from ivypy.master.control.observation import Phase
from ivypy.master.exit_codes import ExitCode
from ivypy.master.logs.readers.bucket_layouts import FIO_3
from ivypy.master.logs.render.hdr import whole_counts
from ivypy.master.logs.result.series import Histograms
from ivypy.master.output.histogram_db import HistogramWriter
from ivypy.master.rollup.instances import Rollups, WorkloadInstance
from ivypy.master.rollup.merge import Merger
from ivypy.master.rollup.merge_layout import MergeLayout
from ivypy.protocol.counters import SERVICES, Kind
from tests.support.log_simulator import Io, paced, write_histogram_log, write_latency_log
from tests.support.log_table import counts, intervals, table, whole
from tests.support.logs import log, row, run
from tests.support.rollup_results import HostData, result

GOOD = [row(1000 * n, 0, {500: 10}) for n in range(1, 5)]
LENGTH_NS = 10**9


def written(path: Path, content: bytes) -> Thread:
    thread = Thread(target=path.write_bytes, args=(content,))
    thread.start()
    return thread


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_fifo_is_a_log_by_its_name(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "a_clat_hist.1.log.alpha"
    os.mkfifo(path)
    writer = written(path, pack("".join(GOOD).encode()))
    ran = run(path, "--by", "all,host")
    writer.join()
    assert (ran.code, whole(ran)["count"], whole(ran, "alpha")["count"]) == (ExitCode.OK, "40", "40")


def test_standard_input(tmp_path: Path) -> None:
    code = "from ivypy.master.cli.percentiles import percentiles; percentiles()"
    ran = subprocess.run(
        [sys.executable, "-c", code, "-", "--by", "file"], input="".join(GOOD).encode(), capture_output=True, check=True
    )
    assert ran.stdout.splitlines()[-1].startswith(b"file,-,fio-histogram,clat,whole")


def test_a_pipe_works_for_the_old_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("".join(GOOD).encode())))
    path = log(tmp_path / "a_clat_hist.1.log", GOOD)
    assert run("--compat", "histo-log-pctiles", "-").out == run("--compat", "histo-log-pctiles", path).out


def test_a_file_that_is_named_twice_is_read_once(tmp_path: Path) -> None:
    path = log(tmp_path / "a_clat_hist.1.log", GOOD)
    link = tmp_path / "b_clat_hist.1.log"
    link.symlink_to(path)
    for again in (path, link, tmp_path / "." / ".." / tmp_path.name / path.name):
        ran = run(path, again)
        assert whole(ran)["count"] == "40" and f"{again}: is the same file as {path}; read once" in ran.err


@pytest.mark.parametrize("ends", [("", ".gz"), (".xz", ""), (".gz", ".xz")], ids=" ".join)
def test_a_log_and_its_packed_copy_are_read_once(tmp_path: Path, ends: tuple[str, str]) -> None:
    packers: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}
    first, second = (tmp_path / f"a_clat_hist.1.log{end}" for end in ends)
    for path, end in zip((first, second), ends, strict=True):
        path.write_bytes(packers[end]("".join(GOOD).encode()))
    ran = run(first, second)
    assert whole(ran)["count"] == "40" and f"{second}: is by its name a copy of {first}; read once" in ran.err
    assert whole(run(tmp_path))["count"] == "40"


NOTES = [
    ("".join(GOOD)[:-1], "the last line has no newline: its last number may be cut off"),
    ("\n".join(GOOD), "3 blank lines are left out"),
    ("\n" + "".join(GOOD), "a blank line is left out"),
    (GOOD[0], "holds one row only"),
]


@pytest.mark.parametrize(("text", "says"), NOTES, ids=[says for _, says in NOTES])
def test_what_is_no_fault_is_noted(tmp_path: Path, text: str, says: str) -> None:
    path = log(tmp_path / "a_clat_hist.1.log", [text])
    ran = run(path)
    assert ran.code is ExitCode.OK and f"{path}: {says}" in ran.err
    assert not any(says in run(log(tmp_path / "b_clat_hist.1.log", GOOD)).err for _, says in NOTES)


def broken(tail: bytes) -> bytes:
    return "".join(GOOD).encode() + tail


CUT = gzip.compress("".join(row(1000 * n, 0, {500: 10, 3 + n: n}) for n in range(1, 400)).encode())
TORN = [
    (broken(b"\0" * 5000), "line 5: holds NUL bytes: the file was not written to its end", 40),
    (broken(b"\0" * (4 << 20)), "line 5: holds NUL bytes", 40),
    (broken(GOOD[0].encode()[:700]), "line 5: is cut off after", 40),
    (CUT[: len(CUT) * 3 // 4], "cannot be unpacked", 1000),
]


@pytest.mark.parametrize(("content", "says", "least"), TORN, ids=["nul", "nul-long", "cut", "cut-gzip"])
def test_keep_going_keeps_what_came_before_the_damage(tmp_path: Path, content: bytes, says: str, least: int) -> None:
    path = tmp_path / "a_clat_hist.1.log"
    path.write_bytes(content)
    assert says in run(path).err and run(path).code is ExitCode.PLAN
    kept = run(path, "--keep-going")
    assert kept.code is ExitCode.PARTIAL and says in kept.err
    assert float(whole(kept)["count"]) >= least


def test_an_interval_finer_than_the_rows_warns(tmp_path: Path) -> None:
    path = write_histogram_log(tmp_path / "a_clat_hist.1.log", paced(500, 5, 300_000), 500)
    assert "are finer than the rows of 1 logs (up to 500ms)" in run(path, "--interval", "100ms").err
    assert "finer" not in run(path, "--interval", "500ms").err


def test_everything_that_saturation_touches_is_marked(tmp_path: Path) -> None:
    path = log(tmp_path / "a_clat_hist.1.log", [row(1000, 0, {900: 90, 1855: 10}), row(2000, 0, {900: 90})])
    first, second = intervals(run(path, "--percentiles", "50,99"))
    assert (first["latency_us_max"], first["latency_us_p99"]) == (">=17045651.456",) * 2
    assert first["latency_us_mean"].startswith(">=17") and first["latency_us_stdev"].startswith(">=")
    assert "saturated p99 mean stdev max" in first["notes"] and first["latency_us_p50"][0].isdigit()
    assert "saturated" not in second["notes"]
    assert run(path, "--format", "table").out.count(">= 17.0 s") == 8, "p95, p99, p99.9, max; twice"


def test_counts_have_six_decimals_at_most(tmp_path: Path) -> None:
    rows = [row(1370 * n, 0, {500: 1000}) for n in range(1, 8)]
    found = intervals(run(log(tmp_path / "a_clat_hist.1.log", rows), "--interval", "1s"))
    assert any("." in one["count"] for one in found)
    assert all(len(one["count"].partition(".")[2]) <= 6 for one in found)
    assert sum(counts(found)) == pytest.approx(7000, abs=1e-4)


def test_whole_counts_for_hdrhistogram_are_exact() -> None:
    """Rounded one by one, 144,000 I/Os became 144,054."""
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 40, (120, 30)).astype(float)
    cells = 0.37 * rows
    cells[1:] += 0.63 * rows[:-1]
    cells[0] += 0.63 * rows[-1]
    found = whole_counts(Histograms(FIO_3, 0, np.arange(120), cells))
    assert (found == found.round()).all() and (found >= 0).all()
    assert found.sum(axis=0).tolist() == rows.sum(axis=0).tolist()
    assert np.rint(cells).sum() != rows.sum()


# Runs


def a_run(folder: Path, utc_s: int, latencies: list[int], phases: list[Phase]) -> Path:
    """A host, a LUN, a step of subintervals of a second; one latency, ns, 100 times, in each."""
    folder.mkdir(parents=True)
    rollups, order = Rollups.build([WorkloadInstance(0, "h1", "/dev/x", "w")], []), {"h1": [0]}
    writer, merger = HistogramWriter(folder / "histograms.sqlite"), Merger(rollups, order)
    writer.step(0, "only", MergeLayout.build(rollups, order))
    for subinterval, (latency, phase) in enumerate(zip(latencies, phases, strict=True)):
        merger.open(subinterval)
        samples = {(0, SERVICES[Kind.RANDOM_READ]): [latency] * 100}
        merger.add("h1", result(HostData(1, 1, samples), subinterval, LENGTH_NS))
        writer.subinterval(0, phase, utc_s * 10**9 + subinterval * LENGTH_NS, merger.close())
    writer.close()
    return folder


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """Two runs, an hour apart; the second is half as fast."""
    yield (
        a_run(tmp_path / "A", 1_700_000_000, [1_000_000] * 4, [Phase.RUN] * 4),
        a_run(tmp_path / "B", 1_700_003_600, [2_000_000] * 6, [Phase.RUN] * 6),
    )


def test_two_runs_are_kept_apart(runs: tuple[Path, Path]) -> None:
    """Each from its own begin, and none is laid out over the hour between them."""
    ran = run(*runs, "--latency", "service", "--percentiles", "50")
    assert {one["rollup_type"] for one in table(ran)} == {"run"}
    for name, seconds, us, utc in (("A", 4, 1000, "22:13:20"), ("B", 6, 2000, "23:13:20")):
        found = intervals(ran, name)
        assert [float(one["start_s"]) for one in found] == list(range(seconds))
        assert counts(found) == [100] * seconds and {one["logs"] for one in found} == {"1/1"}
        assert all(float(one["latency_us_p50"]) == pytest.approx(us) for one in found)
        assert found[0]["start_utc"] == f"2023-11-14T{utc}.000Z"
        assert whole(ran, name)["count"] == str(100 * seconds)
    assert "2 runs, each in a series of its own" in ran.err


def test_runs_are_added_only_if_asked(runs: tuple[Path, Path]) -> None:
    ran = run(*runs, "--latency", "service", "--by", "all", "--interval", "1h")
    assert whole(ran)["count"] == "1000"
    assert {one["rollup_instance"] for one in table(run(*runs, "--by", "run+host"))} == {"A+h1", "B+h1"}
    assert {one["rollup_instance"] for one in table(run(runs[0]))} == {"all"}


def test_runs_of_one_name_are_distinguished_by_their_paths(tmp_path: Path) -> None:
    paths = [a_run(tmp_path / day / "run", 1_700_000_000, [10**6], [Phase.RUN]) for day in ("mon", "tue")]
    assert {one["rollup_instance"] for one in table(run(*paths))} == {str(path) for path in paths}


def test_what_no_measurement_counts_is_left_out_unless_asked(tmp_path: Path) -> None:
    phases = [
        Phase.WARMUP,
        Phase.RUN,
        Phase.TRANSIENT,
        Phase.TRANSIENT,
        Phase.RUN,
        Phase.RUN,
        Phase.TAIL,
        Phase.COOLDOWN,
    ]
    latencies = [50_000_000, 10**6, 8_000_000, 9_000_000, 10**6, 10**6, 8_000_000, 9_000_000]
    path = a_run(tmp_path / "A", 1_700_000_000, latencies, phases)
    ran = run(path, "--latency", "service")
    assert counts(intervals(ran)) == [100, 0, 0, 100, 100] and float(whole(ran)["latency_us_max"]) == 1000
    assert "left out by phase: 1 warmup, 2 transient, 1 tail, 1 cooldown; --phases all has them" in ran.err
    everything = run(path, "--latency", "service", "--phases", "all")
    assert counts(intervals(everything)) == [100] * 8 and "left out" not in everything.err


def test_a_gap_that_was_left_out_is_covered_by_no_log(tmp_path: Path) -> None:
    """Rates are of the time that counts; an interval that is cut by the gap is partial."""
    phases = [Phase.RUN, Phase.TRANSIENT, Phase.RUN, Phase.RUN]
    path = a_run(tmp_path / "A", 1_700_000_000, [10**6] * 4, phases)
    for length, covered, iops, notes in (
        ("1s", ["1", "0", "1", "1"], ["100", "", "100", "100"], ["", "", "", ""]),
        ("2s", ["1", "2"], ["100", "100"], ["partial 50%", ""]),
    ):
        ran = run(path, "--latency", "service", "--interval", length, "--percentiles", "50")
        found = intervals(ran)
        assert [one["covered_s"] for one in found] == covered and [one["iops"] for one in found] == iops
        assert [one["logs"] for one in found] == [f"{int(seconds != '0')}/1" for seconds in covered]
        assert [one["notes"] for one in found] == notes
        assert (whole(ran)["covered_s"], whole(ran)["iops"], whole(ran)["logs"]) == ("3", "100", "1/1")


def test_a_run_that_never_left_its_warmup_is_named(tmp_path: Path) -> None:
    path = a_run(tmp_path / "A", 1_700_000_000, [10**6], [Phase.WARMUP])
    assert "holds no I/Os: the run ended before its first subinterval under load" in run(path).err
    assert run(path, "--phases", "all").code is ExitCode.OK


def test_empty_slat_logs_of_a_synchronous_engine_are_left_out_with_a_note(tmp_path: Path) -> None:
    """fio makes them for every job, and an engine that completes I/Os at once has no submission latency."""
    log(tmp_path / "a_clat.1.log", ["5, 1000, 0, 4096, 0\n"] * 20)
    for job in (1, 2):
        log(tmp_path / f"a_slat.{job}.log", [])
    ran = run(tmp_path)
    assert ran.code is ExitCode.OK and whole(ran)["count"] == "20"
    assert "empty slat logs, as synchronous engines leave them, left out: 2, from " in ran.err
    ran = run(tmp_path / "a_slat.1.log")
    assert (
        ran.code is ExitCode.PLAN and "a_slat.1.log: is empty; " in ran.err and "slat only of asynchronous" in ran.err
    )


@pytest.mark.parametrize(
    ("name", "remedy"), [("a_clat_hist.1.log", "log_hist_msec"), ("a_clat.1.log", "did its job end, with I/Os?")]
)
def test_empty_log_is_refused_with_the_hint_for_its_kind(tmp_path: Path, name: str, remedy: str) -> None:
    ran = run(log(tmp_path / name, []))
    assert ran.code is ExitCode.PLAN and "is empty" in ran.err and remedy in ran.err
    assert ("log_hist_msec" in ran.err) == ("hist" in name)


def test_compressed_chunks_of_fio_are_named_with_what_inflates_them(tmp_path: Path) -> None:
    """log_store_compressed writes zlib streams."""
    path = tmp_path / "a_clat.1.log.fz"
    path.write_bytes(zlib.compress(b"5, 1000, 0, 4096, 0\n" * 20))
    assert f"unpack it with fio --inflate-log={path} > FILE.log" in run(path).err


def test_column_of_maxima_that_is_not_read_is_named(tmp_path: Path) -> None:
    """fio's log_window_value=both: time, mean, maximum, direction, size."""
    ran = run(log(tmp_path / "a_clat.1.log", [f"{500 * n}, 349, 9418, 0, 0\n" for n in range(1, 7)]))
    assert whole(ran)["latency_us_max"] == "0.349"
    assert "log_window_value=both: only the means are read, so latency_us_max is the largest mean" in ran.err


def test_log_that_holds_itself_twice_is_named(tmp_path: Path) -> None:
    """Concatenated by mistake: it looks like a log that jobs share, but no two jobs have the same I/Os."""
    ios = [Io(3 * n, 1000 * (100 + n * n % 97)) for n in range(1, 1500)]
    for write, name in ((write_histogram_log, "a_clat_hist.1.log"), (write_latency_log, "a_clat.1.log")):
        path = write(tmp_path / name, ios, *([500] if "hist" in name else []))
        assert "twice" not in run(path).err
        path.write_text(path.read_text() * 2)
        assert f"{path}: 1 of its jobs begins as an earlier one does: is the log in it twice?" in run(path).err
