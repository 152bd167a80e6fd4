"""What comes out: CSV, JSON, table, pictures, HdrHistogram's files; promises; the choice of the interval."""

import base64
import gzip
import importlib.util
import json
import re
import struct
import subprocess
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.exit_codes import ExitCode
from ivypy.master.logs.readers.bucket_layouts import FIO_2, FIO_3, Layout
from ivypy.master.logs.render.page_buckets import page_cells
from ivypy.master.logs.render.write_result import fitting_columns
from ivypy.master.logs.result.interval_length import Auto, choose, parse_interval
from ivypy.master.logs.result.series import Histograms
from ivypy.master.logs.result.sla import parse_sla
from ivypy.master.logs.result.table import COLUMNS, columns, documentation, latency_text
from ivypy.protocol.histogram import lower_edges
from tests.support.log_table import intervals, table, whole
from tests.support.logs import NULL4, STALL, Ran, case_logs, log, row, run

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def stall() -> list[str]:
    return case_logs(STALL, "stall*")


def test_csv_and_json_have_the_same_figures(stall: list[str]) -> None:
    found, document = (
        table(run(*stall, "--by", "all,direction")),
        json.loads(run(*stall, "--by", "all,direction", "--format", "json").out),
    )
    objects = [one for series in document["series"] for one in series["rows"]]
    assert len(found) == len(objects) == 3 * 13
    for one, other in zip(found, objects, strict=True):
        assert str(other["interval"]) == one["interval"]
        assert float(one["count"]) == other["count"]
        p99 = other["latency_us"]["p99"]["value"]
        assert (one["latency_us_p99"] == "") == (p99 is None)
        assert p99 is None or float(one["latency_us_p99"]) == pytest.approx(p99, abs=0.0006)
    assert document["settings"]["weighting"] == "uniform"
    assert any("clat) only" in note for note in document["notes"]), "the output says what the logs hold"


def test_columns_are_those_of_the_documentation(stall: list[str]) -> None:
    ran = run(*stall, "--percentiles", "50,99.9")
    head = ran.lines[0].split(",")
    assert head == columns((50.0, 99.9))
    for name in head:
        assert re.sub(r"_p\d+(_\d+)?", "_pN", name) in COLUMNS
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", name) for name in head)
    assert documentation() in (ROOT / "docs" / "percentiles.md").read_text()


def test_empty_intervals_are_rows(stall: list[str]) -> None:
    found = intervals(run(*stall, "--interval", "250ms"))
    assert [float(one["start_s"]) for one in found] == [n / 4 for n in range(len(found))]
    empty = [one for one in found if one["count"] == "0"]
    assert len(empty) == 14 and all(
        not value for one in empty for name, value in one.items() if name.startswith("latency")
    )


def test_table_shows_intervals_and_notes(stall: list[str]) -> None:
    ran = run(*stall, "--format", "table")
    assert ran.lines[0] == "all=all   clat of fio-histogram logs"
    assert re.search(r"3 +4 +1/1 +0 +0 +- +- +-", ran.out)
    assert "note: 2 rows came more than a period late" in ran.out and not ran.err


TEXTS = [(None, "-"), (0.0, "0.00 ns"), (0.0462, "46.2 ns"), (1.0, "1.00 us"), (999.4, "999 us"), (999.6, "1.00 ms"),
         (12_345.0, "12.3 ms"), (4.2e6, "4.20 s"), (123e6, "123 s")]  # fmt: skip


@pytest.mark.parametrize(("us", "text"), TEXTS)
def test_latencies_are_printed_with_readable_units(us: float | None, text: str) -> None:
    assert latency_text(us) == text


def test_a_broken_limit_is_shown_as_broken() -> None:
    assert latency_text(5000.4, limit_us=5000.0) == "5.0004 ms"
    assert latency_text(7000.4, limit_us=5000.0) == "7.00 ms"


def test_saturated_percentiles_are_bounds_everywhere(tmp_path: Path) -> None:
    """An I/O of 20 s is in fio's last bucket: how long it took is unknown."""
    path = log(tmp_path / "a_clat_hist.1.log", [row(1000, 0, {900: 90, 1855: 10})])
    ran = run(path, "--percentiles", "50,99")
    assert whole(ran)["latency_us_p99"] == ">=17045651.456"
    assert "saturated p99" in whole(ran)["notes"]
    assert ">= 17.0 s" in run(path, "--format", "table").out
    document = json.loads(run(path, "--format", "json").out)
    assert document["series"][0]["rows"][0]["latency_us"]["p99"]["at_least"] is True
    assert "worst >= 17.0 s" in run(path, "--sla", "p99<=1s").err
    page, distribution = tmp_path / "x.html", tmp_path / "x.hgrm"
    run(path, "--plot", page, "--hgrm", distribution)
    (note,) = [one for one in archive_in(page)["notes"] if "last bucket" in one]
    assert note.startswith("the last bucket has all I/Os of 17.0 s and more")
    assert "lower bounds" in distribution.read_text()
    broken = run(path, "--sla", "p99<=1h")
    assert broken.code is ExitCode.SLO_MISSED, "a promise must be seen to be kept"


def test_percentiles_with_few_samples_beyond_are_noted(tmp_path: Path) -> None:
    path = log(tmp_path / "a_clat_hist.1.log", [row(1000, 0, {900: 500})])
    assert whole(run(path))["notes"] == "insufficient p99 p99_9"


def test_output_goes_to_the_file_and_the_name_says_the_format(tmp_path: Path, stall: list[str]) -> None:
    for name in ("x.csv", "x.json", "x.txt"):
        ran = run(*stall, "-o", tmp_path / name)
        assert ran.out == "" and (tmp_path / name).stat().st_size > 500
    json.loads((tmp_path / "x.json").read_text())
    assert (tmp_path / "x.csv").read_text().startswith("rollup_type,")


SLAS = [
    ("p50<=1us", ExitCode.OK, "met in all 9 intervals; 3 intervals without I/O are not checked"),
    ("p99<=300ns", ExitCode.SLO_MISSED, "BREACHED in 3 of 9 intervals (33.3% of the time), first at 8 s, last at 11 s, "
     "worst 533 ns at 9 s"),
    ("p50<=1us,p99.5<1ns", ExitCode.SLO_MISSED, "sla p99.5<1ns all=all (clat): BREACHED in 9 of 9 intervals"),
]  # fmt: skip


@pytest.mark.parametrize(("sla", "code", "says"), SLAS, ids=[sla for sla, *_ in SLAS])
def test_sla_sets_the_exit_code(stall: list[str], sla: str, code: ExitCode, says: str) -> None:
    ran = run(*stall, "--sla", sla)
    assert (ran.code, says in ran.err) == (code, True), ran.err


def test_a_figure_equal_to_the_sla_meets_it_unless_strict() -> None:
    (kept, strict) = (*parse_sla("p50<=10ms"), *parse_sla("p50<10ms"))
    assert (kept.limit_us, kept.strict, strict.strict) == (10_000, False, True)


@pytest.mark.slow
def test_auto_interval_is_the_shortest_that_is_accurate_enough() -> None:
    """Of n samples p95 is known to about z sqrt(p (1-p) n) ranks: four times the samples, half the error."""
    rng = np.random.default_rng(1)
    cells = np.zeros((600, FIO_3.buckets))
    for quantum in range(600):
        values = rng.lognormal(np.log(2e6), 0.7, 100).astype(int)
        np.add.at(cells[quantum], np.searchsorted(FIO_3.edges, values, side="right") - 1, 1)
    histograms = Histograms(FIO_3, 0, np.arange(600), cells)
    lengths = [choose(histograms, 10**9, Auto(error, 95.0)) for error in (0.3, 0.15, 0.1, 0.05)]
    assert [chosen.length_ns // 10**9 for chosen in lengths] == sorted(chosen.length_ns // 10**9 for chosen in lengths)
    assert 5 <= lengths[2].length_ns // 10**9 <= 15
    assert all(chosen.error <= error for chosen, error in zip(lengths, (0.3, 0.15, 0.1, 0.05), strict=True))
    hopeless = choose(histograms, 10**9, Auto(0.0001, 95.0))
    assert "no better than" in hopeless.sentence(Auto(0.0001, 95.0))


def test_auto_prints_what_it_chose() -> None:
    ran = run(*case_logs(NULL4, "*_clat_hist.*"), "--interval", "auto:10%:p95")
    assert "interval 1s: the shortest at which p95 is known to 0.1" in ran.err
    assert parse_interval("auto") == Auto(0.1, 95.0)
    assert parse_interval("1500ms") == 1_500_000_000


@pytest.mark.slow
def test_png_plot_has_the_documented_size(tmp_path: Path, stall: list[str]) -> None:
    path = tmp_path / "x.png"
    assert run(*stall, "--plot", path).code is ExitCode.OK
    head = path.read_bytes()[:24]
    assert head.startswith(b"\x89PNG") and struct.unpack(">II", head[16:24]) == (1200, 1200)


@pytest.mark.parametrize("name", ["x.png", "x.html"])
@pytest.mark.slow
def test_a_picture_takes_the_place_of_an_earlier_one_and_of_no_other_file(
    tmp_path: Path, stall: list[str], name: str
) -> None:
    path = tmp_path / name
    path.write_text("mine")
    assert "name another" in run(*stall, "--plot", path).err and path.read_text() == "mine"
    path.unlink()
    assert [run(*stall, "--plot", path).code for _ in range(2)] == [ExitCode.OK] * 2


@pytest.mark.slow
def test_any_group_can_be_drawn(tmp_path: Path, stall: list[str]) -> None:
    """The distribution, which is text, is that of the group's own row."""
    words = ("--by", "all,direction", "--interpolation", "linear")
    found = table(run(*stall, *words))
    for group in ("direction=read", "all=all"):
        picture, distribution = tmp_path / f"{group}.png", tmp_path / f"{group}.hgrm"
        ran = run(*stall, *words, "--plot", picture, "--hgrm", distribution, "--instance", group)
        assert ran.code is ExitCode.OK and picture.read_bytes().startswith(b"\x89PNG")
        wholes = {f"{one['rollup_type']}={one['rollup_instance']}": one for one in found if one["interval"] == "whole"}
        assert f"Total count    = {float(wholes[group]['count']):12.0f}" in distribution.read_text()


def test_any_group_of_many_can_be_drawn(tmp_path: Path) -> None:
    logs = [log(tmp_path / f"h{n}" / "a_clat_hist.1.log", [row(1000, 0, {900: 90 + n})]) for n in range(50)]
    distribution = tmp_path / "x.hgrm"
    run(*logs, "--by", "host", "--hgrm", distribution, "--instance", "host=h44")
    assert f"Total count    = {90 + 44:12.0f}" in distribution.read_text()


def test_a_group_that_cannot_be_drawn_is_named(tmp_path: Path, stall: list[str]) -> None:
    picture, page = tmp_path / "x.png", tmp_path / "x.html"
    by = ("--by", "direction")
    assert "did you mean 'direction=read'" in run(*stall, *by, "--plot", picture, "--instance", "direction=raed").err
    assert "add it, or choose a group with --instance" in run(*stall, *by, "--plot", picture).err
    assert "which --by does not have: add it" in run(*stall, *by, "--plot", page).err
    assert "give one of them" in run(*stall, *by, "--plot", page, "--instance", "direction=read").err
    assert not picture.exists() and not page.exists()


def archive_in(path: Path) -> dict[str, Any]:
    """The data of a page."""
    (data,) = re.findall(r'id="archive">(.*?)</script>', path.read_text())
    return json.loads(data)  # type: ignore[no-any-return]


def answer(archive: dict[str, Any], name: str, chosen: str = "by=all&instance=all") -> bytes:
    """A recorded answer about the logs."""
    (found,) = [one for address, one in archive["answers"].items() if f"/{name}?{chosen}" in address]
    return gzip.decompress(base64.b64decode(found["gzip"])) if "gzip" in found else json.dumps(found).encode()


def counts(packed: bytes) -> tuple[dict[str, Any], np.ndarray[Any, Any]]:
    """Of `histograms`: the first set, and its I/Os (times, buckets)."""
    (length,) = struct.unpack_from("<I", packed)
    header = json.loads(packed[4 : 4 + length])
    one = header["sets"][0]
    shape = len(header["first"]), one["high"] - one["low"]
    return one, np.frombuffer(packed, "<u4", shape[0] * shape[1], 4 + length + one["offset"]).reshape(shape)


def test_the_page_holds_every_io_of_every_instance(tmp_path: Path, stall: list[str]) -> None:
    path = tmp_path / "x.html"
    ran = run(*stall, "--interval", "500ms", "--by", "all,direction", "--plot", path)
    assert ran.code is ExitCode.OK
    found = table(ran)
    archive = archive_in(path)
    for by, instance in {(one["rollup_type"], one["rollup_instance"]) for one in found}:
        *rows, last = [one for one in found if (one["rollup_type"], one["rollup_instance"]) == (by, instance)]
        one, cells = counts(answer(archive, "histograms", f"by={by}&instance={instance}"))
        assert cells.sum() == sum(one["count"]) == round(float(last["count"])), instance
        assert np.abs(cells.sum(axis=1) - [float(each["count"]) for each in rows]).max() < 1
        series = json.loads(answer(archive, "series", f"by={by}&instance={instance}"))
        for name, column in (("p99", "latency_us_p99"), ("max", "latency_us_max")):
            expected = [float(each[column]) if each[column] else None for each in rows]
            shown = series["metrics"][f"overall_service_us_{name}"]
            assert [one is None for one in shown] == [one is None for one in expected]
            assert [one for one in shown if one] == pytest.approx([one for one in expected if one], abs=0.001)
    _, cells = counts(answer(archive, "histograms"))
    assert cells[6:13].sum() == 0, "the stall"


LAYOUTS = [FIO_3, FIO_2, replace(FIO_3, coarseness=3), replace(FIO_2, coarseness=6)]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@given(st.lists(st.lists(st.floats(0, 1e5), min_size=4, max_size=4), min_size=1, max_size=6), st.floats(0, 0.9))
def test_buckets_of_logs_keep_their_ios_and_their_place(layout: Layout, cells: list[list[float]], at: float) -> None:
    base = int(at * (layout.buckets - 4))
    histograms = Histograms(layout, base, np.arange(len(cells)), np.array(cells))
    low, found = page_cells(histograms)
    assert abs(float(found.sum()) - float(histograms.cells.sum())) <= 0.5 + 1e-6
    fine = np.array(lower_edges(), np.float64)[low : low + found.shape[1] + 1]
    for given_ios, shown in zip(histograms.cells, found, strict=True):
        for edge in set(histograms.edges[1:].tolist()) & set(fine.tolist()):
            expected = given_ios[histograms.edges[:-1] < edge].sum()
            assert abs(shown[fine[:-1] < edge].sum() - expected) < 1.5 + 1e-6 * expected


def test_buckets_that_are_the_pages_stay_as_they_are() -> None:
    cells = np.array([[3.0, 0.0, 7.0], [0.0, 1.0, 0.0]])
    low, found = page_cells(Histograms(FIO_3, 700, np.arange(2), cells))
    assert low == 700 and found.tolist() == cells.tolist()


@pytest.mark.parametrize(
    ("sla", "code"), [("p50<=1ns", ExitCode.SLO_MISSED), ("p50<=10s", ExitCode.PLAN)], ids=["breached", "met"]
)
def test_picture_that_cannot_be_drawn_costs_no_other_output(
    tmp_path: Path, stall: list[str], monkeypatch: pytest.MonkeyPatch, sla: str, code: ExitCode
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "matplotlib" else found(name))
    picture, page, distribution = (tmp_path / name for name in ("x.png", "x.html", "x.hgrm"))
    ran = run(*stall, "--plot", picture, "--plot", page, "--hgrm", distribution, "--sla", sla)
    assert (page.exists(), distribution.exists(), picture.exists()) == (True, True, False)
    assert ran.code is code and f"{picture}: pictures need matplotlib" in ran.err
    assert ("BREACHED" in ran.err) == (code is ExitCode.SLO_MISSED)


def test_hgrm_file_ascends_to_all_ios(tmp_path: Path, stall: list[str]) -> None:
    """value, share, count, 1/(1-share): ascending, from the smallest latency to all I/Os."""
    path = tmp_path / "x.hgrm"
    run(*stall, "--hgrm", path)
    rows = [line.split() for line in path.read_text().splitlines()[2:] if not line.startswith("#")]
    values, shares, counts = ([float(cells[n]) for cells in rows] for n in range(3))
    assert values == sorted(values) and shares == sorted(shares) and counts == sorted(counts)
    assert (shares[0], shares[-1], counts[-1]) == (0, 1, float(whole(run(*stall))["count"]))
    median = next(value for value, share in zip(values, shares, strict=True) if share >= 0.5)
    assert median == pytest.approx(float(whole(run(*stall, "--interpolation", "midpoint"))["latency_us_p50"]), rel=0.02)


def hlog_counts(payload: str) -> dict[int, int]:
    """An HdrHistogram V2 payload, decoded by its specification: {lowest value of a cell: count}."""
    packed = base64.b64decode(payload)
    cookie, length = struct.unpack(">ii", packed[:8])
    assert (cookie, length) == (0x1C849314, len(packed) - 8)
    body = zlib.decompress(packed[8:])
    cookie, length, offset, digits, lowest, highest, ratio = struct.unpack(">iiiiqqd", body[:40])
    assert (cookie, length, offset, digits, lowest, ratio) == (0x1C849313, len(body) - 40, 0, 2, 1, 1.0)
    assert highest > 3600 * 10**9
    found: dict[int, int] = {}
    index, place = 0, 40
    while place < len(body):
        value = shift = 0
        while True:
            byte = body[place]
            place, value, shift = place + 1, value | (byte & 0x7F) << shift, shift + 7
            if not byte & 0x80:
                break
        number = (value >> 1) ^ -(value & 1)
        if number < 0:
            index -= number
            continue
        bucket, sub = (index >> 7) - 1, (index & 127) + 128
        found[(sub << bucket) if bucket >= 0 else index] = number
        index += 1
    return found


def test_hlog_file_has_an_interval_per_row(tmp_path: Path, stall: list[str]) -> None:
    path = tmp_path / "x.hlog"
    run(*stall, "--hgrm", path)
    rows = [line.split(",") for line in path.read_text().splitlines() if line[0].isdigit()]
    found = [one for one in intervals(run(*stall)) if one["count"] != "0"]
    assert [float(cells[0]) for cells in rows] == [float(one["start_s"]) for one in found]
    for cells, one in zip(rows, found, strict=True):
        counts = hlog_counts(cells[3])
        assert sum(counts.values()) == pytest.approx(float(one["count"]), rel=0.01), "whole numbers there"
        assert min(counts) == pytest.approx(float(one["latency_us_min"]) * 1000, abs=3), "half an I/O rounds to none"


def test_help_is_quick_and_lists_every_option() -> None:
    import sys

    code = (
        "import sys; from ivypy.master.cli.percentiles import percentiles\n"
        "assert not {'numpy', 'matplotlib'} & set(sys.modules), 'heavy imports before they are needed'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    ran: Ran = run("--help")
    for option in (
        "--interval",
        "--by",
        "--sla",
        "--compat",
        "--keep-going",
        "--start-times",
        "--fio-json",
        "--csv",
        "--check",
    ):
        assert option in ran.out
    usual, _, of_compat = ran.out.partition("Options to print what older tools print:")
    for option in ("--compat", "--show", "--output-unit", "--divisor", "--decimals", "--directions"):
        assert f"  {option} " in of_compat and f"  {option} " not in usual


@pytest.mark.parametrize(
    ("option", "value"),
    [("--show", "sum"), ("--output-unit", "msec"), ("--divisor", 1), ("--decimals", 0), ("--directions", "rw")],
)
def test_an_option_of_the_old_tools_needs_compat(stall: list[str], option: str, value: object) -> None:
    """It would be ignored; the value may be the default."""
    ran = run(*stall, option, value)
    assert (ran.code, ran.out) == (ExitCode.PLAN, "")
    assert ran.err == f"{option}: it needs --compat, and has no effect without it\n"


HEADS = ["start s", "end s", "logs", "count", "iops", "min", "mean", "p50", "p99", "max", ""]
CELLS = [
    "whole",
    "9",
    "2/2",
    "207,759",
    "34,627",
    "[21.2 us]",
    "[700 us]",
    "[301 us]",
    "[10.3 ms]",
    "[44.1 ms]",
    "invalid",
]


@pytest.mark.parametrize(
    ("width", "left_out"),
    [
        (None, []),
        (99, []),
        (98, ["end s"]),
        (91, ["end s", "count"]),
        (82, ["end s", "count", "min"]),
        (40, ["end s", "count", "min", "logs", "p50", "mean"]),
        (9, ["end s", "count", "min", "logs", "p50", "mean"]),
    ],
)
def test_a_table_leaves_out_what_its_terminal_has_no_room_for(width: int | None, left_out: list[str]) -> None:
    lines, without = fitting_columns([HEADS, CELLS], width)
    assert without == left_out
    assert lines == [
        [cell for cell, head in zip(line, HEADS, strict=True) if head not in left_out] for line in (HEADS, CELLS)
    ]
