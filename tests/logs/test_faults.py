"""What bad input gets: file, line, what was expected; and with --keep-going the good part."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ivypy.master.exit_codes import ExitCode
from tests.support.log_table import table, whole
from tests.support.logs import log, row, run

GOOD = [row(1000 * n, 0, {500: 10}) for n in range(1, 5)]


def cut_short(path: Path) -> None:
    path.write_text("".join(GOOD) + GOOD[0][:1000])


def other_columns(path: Path) -> None:
    path.write_text("".join(GOOD) + row(5000, 0, {5: 1}, 1216))


def wrong_cell(text: str) -> Callable[[Path], object]:
    return lambda path: path.write_text("".join(GOOD) + text + ", " + ", ".join(["0"] * 1856) + "\n")


def backwards(path: Path) -> None:
    path.write_text("".join([*GOOD, *GOOD, row(9000, 0, {5: 1}), row(7000, 0, {5: 1})]))


def pointers(path: Path) -> None:
    path.write_text("1000, 94105437213712, 0, 4096, 0\n2000, 94105437213999, 0, 4096, 0\n")


BAD = [
    (cut_short, "line 5: is cut off after", 1 + 4),
    (other_columns, "line 5: has 1,216 buckets, where 1,856 buckets per interval were expected", 5),
    (wrong_cell("12, 0, 4096.5"), "line 5: column 3 is the non-integer '4096.5'", 5),
    (wrong_cell("-12, 0, 4096"), "line 5: column 1 is the negative integer -12", 5),
    (wrong_cell("5000, 3, 4096"), "line 5: has the invalid I/O direction 3", 5),
    (wrong_cell("5000"), "line 5: has 1,854 buckets", 5),
    (backwards, "line 10: the stamp goes back from 9000 to 7000 ms", 10),
    (pointers, "holds heap addresses instead of histograms: fio's log_compression", None),
    (lambda p: p.write_bytes(b""), "is empty", None),
    (lambda p: p.write_text("\n\n"), "holds only blank lines", None),
    (lambda p: p.write_bytes(bytes(range(256)) * 20), "is binary, not text", None),
    (lambda p: p.write_text('{"jobs": []}'), "is JSON, not a log", None),
    (lambda p: p.write_text("[a]\nrw=read\n"), "looks like a job file of fio, not a log", None),
    (lambda p: p.write_text("hello world\n"), "begins with 'hello world'", 1),
    (lambda p: p.write_text("1, 2, 3\n"), "has rows of 3 columns", 1),
    (lambda p: p.write_text("0, 0\n"), "has rows of 2 columns", 1),
    (lambda p: p.write_text("1, 2, 7, 4096, 0\n"), "is a histogram log by its name, but has rows of 5 columns", 1),
    (lambda p: p.write_text(row(1000, 0, {}, 1216)), "has 1216 buckets of us", 1),
    (lambda p: p.write_text(row(1_700_000_000_000, 0, {5: 1})), "counts time from 1970", None),
    (lambda p: p.write_bytes(b"\x1f\x8b" + bytes(range(100))), "cannot be unpacked", None),
    (lambda p: p.mkdir(), "is a folder without logs", None),
    (lambda p: None, "cannot be read: No such file", None),
]


@pytest.mark.parametrize(("spoil", "says", "line"), BAD, ids=[says for _, says, _ in BAD])
def test_faulty_logs_are_reported_with_file_and_line(
    tmp_path: Path, spoil: Callable[[Path], object], says: str, line: int | None
) -> None:
    good = [log(tmp_path / f"g_clat_hist.{n}.log", GOOD) for n in (1, 2)]
    bad = tmp_path / "b_clat_hist.3.log"
    spoil(bad)
    ran = run(*good, bad)
    assert (ran.code, ran.out) == (ExitCode.PLAN, "")
    assert says in ran.err and str(bad) in ran.err
    if line is not None:
        assert f"{bad}: line {line}: " in ran.err
    kept = run(*good, bad, "--keep-going")
    assert kept.code is ExitCode.PARTIAL
    assert "left out: " in kept.err and str(bad) in kept.err
    assert float(whole(kept)["count"]) >= 80, "the good logs are there"
    assert all(int(found["left_out"]) >= 1 for found in table(kept)), "and the output says that not all is"


def test_all_faults_of_all_logs_at_once(tmp_path: Path) -> None:
    paths = [tmp_path / f"b_clat_hist.{n}.log" for n in range(4)]
    for path, spoil in zip(paths, (cut_short, other_columns, backwards, cut_short), strict=True):
        spoil(path)
    assert len(run(*paths).err.splitlines()) == 4


def test_only_bad_logs_are_a_fault_even_so(tmp_path: Path) -> None:
    path = tmp_path / "b_clat_hist.1.log"
    path.write_bytes(b"")
    assert run(path, "--keep-going").code is ExitCode.PLAN


def test_logs_without_ios_are_rows_of_nothing_or_a_fault(tmp_path: Path) -> None:
    """clat_percentiles=0 writes rows of zeros: alone they say nothing; beside others they are an idle log."""
    idle = log(tmp_path / "a_clat_hist.1.log", [row(1000 * n, 0, {}) for n in (1, 2)])
    assert "holds no I/Os" in run(idle).err
    busy = log(tmp_path / "b_clat_hist.1.log", GOOD)
    assert run(idle, busy).code is ExitCode.OK


def test_a_log_that_ends_early_is_used_and_named(tmp_path: Path) -> None:
    """pctiles would cut all others to its length."""
    long = [log(tmp_path / f"a_clat_hist.{n}.log", [row(1000 * k, 0, {5: 1}) for k in range(1, 60)]) for n in (1, 2)]
    short = log(tmp_path / "s_clat_hist.3.log", [row(1000 * k, 0, {5: 1}) for k in range(1, 20)])
    ran = run(*long, short)
    assert f"{short}: ends at 19.000 s, where the others end near 59.000 s" in ran.err
    logs = [found["logs"] for found in table(ran)]
    assert (logs[5], logs[40]) == ("3/3", "2/3")


def test_hosts_whose_clocks_are_an_hour_apart(tmp_path: Path) -> None:
    base = 1_700_000_000_000
    paths = [
        log(tmp_path / f"h{n}" / "a_clat_hist.1.log", [row(base + away + 1000 * k, 0, {5: 1}) for k in range(1, 9)])
        for n, away in enumerate((0, 40, 3_600_000))
    ]
    ran = run(*paths)
    assert ran.code is ExitCode.PLAN
    assert f"{paths[2]}: host h2 begins 3,600 s after the others" in ran.err
    kept = run(*paths, "--keep-going", "--by", "all,host")
    assert whole(kept)["count"] == "16" and not any(f["rollup_instance"] == "h2" for f in table(kept))
    assert run(*paths, "--max-start-spread", "2h").code is ExitCode.OK


def test_a_wild_stamp_does_not_eat_the_memory(tmp_path: Path) -> None:
    path = log(tmp_path / "a_clat_hist.1.log", [*GOOD, row(90_000_000_000, 0, {5: 1})])
    assert "intervals by its stamps" in run(path).err


WRONG_OPTIONS = [
    (["--interval", "10"], "--interval: '10' has no unit"),
    (["--interval", "1us"], "too short"),
    (["--interval", "auto:0%"], "the error is between"),
    (["--interval", "auto:1%:p101"], "is no percentile"),
    (["--percentiles", "50,x"], "--percentiles: 'x' is no percentile"),
    (["--by", "hots"], "--by: 'hots' is no attribute"),
    (["--sla", "p95=20ms"], "is not a threshold"),
    (["--plot", "x.gif"], "must end in .png or .html"),
    (["--exact"], "--exact needs logs of single I/Os"),
    (["--start-times", "/nowhere.csv"], "cannot be read"),
    (["--fio-json", "/nowhere.json"], "cannot be read"),
    (["--check"], "expected as many"),
    (["--by", "host", "--hgrm", "x.hgrm"], "`all` is drawn, which --by does not have"),
]


@pytest.mark.parametrize(("options", "says"), WRONG_OPTIONS, ids=[" ".join(options) for options, _ in WRONG_OPTIONS])
def test_wrong_options_are_reported(tmp_path: Path, options: list[str], says: str) -> None:
    ran = run(log(tmp_path / "a_clat_hist.1.log", GOOD), *options)
    assert ran.code is ExitCode.PLAN and says in ran.err


def test_all_wrong_options_at_once(tmp_path: Path) -> None:
    ran = run(log(tmp_path / "a_clat_hist.1.log", GOOD), "--interval", "10", "--by", "x", "--sla", "y", "--hgrm", "z")
    assert len(ran.err.splitlines()) == 4
