"""Response times of a run: every figure of `ivypy percentiles` is that of the run's own row, blank for blank."""

import csv
from pathlib import Path

import pytest

from ivypy.master.exit_codes import ExitCode
from tests.support.log_table import Row, table
from tests.support.logs import run
from tests.support.simulated.runs import SimulatedHosts, SimulatedRun
from tests.support.simulated.runs import run as run_plan
from tests.support.simulated.slave import SimulatedSlave, steady

STEPS = ("paced", "mixed", "beyond", "apart", "max")
PLAN = """\
name: sim
hosts: [a, b]
engine: { backend: "null" }
luns: { create: { path: /x/0, size: 1GiB } }
workloads: { w: { maxtags: 8, iops: 100 } }
rollups: [ host ]
defaults: { subinterval: 5s, warmup: 5s, measure: 15s }
steps:
  - go: paced
  - edit: { rollup: host=a, set: { iops: max } }
  - go: mixed
  - edit: { rollup: all=all, set: { iops: 5000 } }  # of the 1000 that a host can do
  - go: beyond
  - edit: { rollup: host=b, set: { iops: 100 } }
  - go: apart
  - edit: { rollup: all=all, set: { iops: max } }
  - go: max
"""
FIGURES = {"mean": "mean", "stdev": "sd", "min": "min", "max": "max", "p50": "p50", "p99": "p99"}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> SimulatedRun:
    """Hosts that are paced, at max, and asked for more than they can do."""
    lab = SimulatedHosts(**{name: SimulatedSlave(name, plant=steady(1000.0)) for name in "ab"})
    return run_plan(tmp_path_factory.mktemp("run"), PLAN, lab)


Figures = list[float | None]


def figures_of_run(row: Row, quantity: str) -> Figures:
    return [number(row[f"overall_{quantity}_us_{name}"]) for name in FIGURES.values()]


def figures(row: Row) -> Figures:
    return [number(row[f"latency_us_{name}"]) for name in FIGURES]


def number(cell: str) -> float | None:
    return float(cell) if cell else None


BLANK: Figures = [None] * len(FIGURES)


@pytest.mark.slow
@pytest.mark.parametrize("quantity", ["service", "response"])
@pytest.mark.parametrize(
    ("rollup", "instance", "by", "value"),
    [
        ("all", "all", "job", "{step}"),
        ("all", "all", "job+direction", "{step}+read"),
        ("host", "a", "host+job", "a+{step}"),
        ("host", "b", "host+job", "b+{step}"),
    ],
)
def test_each_figure_is_that_of_the_runs_row(
    measured: SimulatedRun, quantity: str, rollup: str, instance: str, by: str, value: str
) -> None:
    found = table(run(measured.folder, "--latency", quantity, "--by", by, "--percentiles", "50,99"))
    for number, name in enumerate(STEPS):
        folder = f"step{number:04d}.{name}"
        own = [row for row in found if row["rollup_instance"] == value.format(step=folder) and row["count"] != "0"]
        rows = [row for row in measured.rows(f"{folder}/{rollup}/{instance}.csv") if row["phase"] == "run"]
        rows += [
            row for row in measured.rows(f"summary.{rollup}.csv")
            if (row["name"], row["rollup_instance"]) == (name, instance)
        ]  # fmt: skip
        assert len(rows) == 4, "three subintervals, and the step"
        expected = [figures_of_run(row, quantity) for row in rows]
        if not own:
            assert expected == [BLANK] * 4, "no I/O has a response time"
        elif by.endswith("direction"):
            blank = [figure == BLANK for figure in expected]
            assert [figures(row) == BLANK for row in own] == blank, name
        else:
            for row, wanted in zip(own, expected, strict=True):
                assert figures(row) == pytest.approx(wanted, abs=1e-4), name


def test_what_is_blank_in_the_runs_rows(measured: SimulatedRun) -> None:
    """The cases that the test above is about do come about: (subintervals, the step) of all."""
    blank = {}
    for number, name in enumerate(STEPS):
        rows = [row for row in measured.rows(f"step{number:04d}.{name}/all/all.csv") if row["phase"] == "run"]
        (summary,) = (row for row in measured.rows("summary.all.csv") if row["name"] == name)
        blank[name] = [not row["overall_response_us_mean"] for row in (rows[0], summary)]
    assert blank == {
        "paced": [False, False],
        "mixed": [True, True],
        "beyond": [False, True],
        "apart": [False, True],
        "max": [True, True],
    }


def test_the_whole_of_all_steps_is_blank_where_a_step_is(measured: SimulatedRun) -> None:
    by_quantity = {row["quantity"]: row for row in table(run(measured.folder)) if row["interval"] == "whole"}
    assert by_quantity["service"]["latency_us_p99"]
    assert {row for name, row in by_quantity["response"].items() if name.startswith("latency_us_")} == {""}
    assert "as in the run's own rows" in run(measured.folder).err


def test_an_interval_that_touches_a_blank_row_is_blank(measured: SimulatedRun) -> None:
    ran = run(measured.folder, "--latency", "response", "--interval", "30s", "--align", "clock")
    own = [row for row in table(ran) if row["interval"] != "whole" and row["count"] != "0"]
    assert any(row["latency_us_p50"] == "" for row in own)


def test_blank_intervals_are_counted_apart_from_kept_promises(measured: SimulatedRun) -> None:
    ran = run(measured.folder, "--latency", "response", "--by", "job", "--sla", "p50<=1s")
    assert "step0001.mixed (response): checked in no interval" in ran.err
    assert "3 intervals are blank in the run's own rows and not checked" in ran.err


@pytest.mark.parametrize(
    ("sla", "code", "says"),
    [
        (
            "p50<=1s",
            ExitCode.INVALID,
            "; 3 intervals are invalid by the verdict of their step and not checked",
        ),
        ("p50<=1us", ExitCode.SLO_MISSED, "step0000.paced (service): BREACHED in 3 of 3 intervals"),
    ],
)
def test_a_threshold_is_neither_met_nor_breached_by_discredited_figures(
    measured: SimulatedRun, sla: str, code: ExitCode, says: str
) -> None:
    """The step `beyond` did not sustain its load."""
    ran = run(measured.folder, "--latency", "service", "--by", "job", "--sla", sla)
    assert (ran.code, says in ran.err) == (code, True), ran.err
    assert "beyond (service): BREACHED" not in ran.err


def test_figures_that_their_verdict_speaks_against_are_marked(measured: SimulatedRun) -> None:
    """The step `beyond` did not sustain its load; `paced` did."""
    rows = [row for row in table(run(measured.folder, "--latency", "service", "--by", "job")) if row["count"] != "0"]
    marked = {row["rollup_instance"] for row in rows if "invalid" in row["notes"].split("; ")}
    assert "step0002.beyond" in marked and "step0000.paced" not in marked
    unmarked = [row for row in rows if row["rollup_instance"] in marked and "invalid" not in row["notes"]]
    assert not unmarked
    shown = run(measured.folder, "--latency", "service", "--by", "job", "--format", "table").out
    beyond, paced = (
        shown.partition(f"job=step{name}")[2].partition("\n\n")[0].splitlines()[-1]
        for name in ("0002.beyond", "0000.paced")
    )
    assert beyond.count("[") == 7 and beyond.endswith("invalid") and "[" not in paced


def test_steps_that_are_merged_are_counted(measured: SimulatedRun) -> None:
    every = run(measured.folder, "--latency", "service")
    (whole,) = (row for row in table(every) if row["interval"] == "whole")
    assert whole["notes"] == "5 steps; invalid"
    assert "whole merges 5 steps, whose loads may differ; --by job has a row for each step" in every.err
    apart = run(measured.folder, "--latency", "service", "--by", "job")
    assert "merges" not in apart.err and not [row for row in table(apart) if " steps" in row["notes"]]


def test_a_note_says_where_a_verdict_is_explained(measured: SimulatedRun) -> None:
    err = run(measured.folder, "--latency", "service", "--by", "job").err
    note = f"service times of step0002.beyond, step0003.apart; `ivypy show {measured.folder}` says why\n"
    assert f"invalid by their verdict: {note}" in err


@pytest.mark.parametrize("ending", ["html", "hgrm", "hlog"])
def test_response_times_that_are_blank_in_part_are_not_drawn(
    measured: SimulatedRun, tmp_path: Path, ending: str
) -> None:
    option = "--plot" if ending == "html" else "--hgrm"
    path = tmp_path / f"x.{ending}"
    ran = run(measured.folder, "--latency", "response", option, path)
    assert ran.code is ExitCode.PLAN and not path.exists()
    assert "blank in part" in ran.err


def test_a_run_without_csv_files_has_what_its_histograms_say(measured: SimulatedRun, tmp_path: Path) -> None:
    (tmp_path / "histograms.sqlite").write_bytes((measured.folder / "histograms.sqlite").read_bytes())
    rows = list(csv.DictReader(run(tmp_path, "--latency", "response", "--by", "job").out.splitlines()))
    wholes = {row["rollup_instance"]: row["latency_us_p50"] != "" for row in rows if row["interval"] == "whole"}
    assert wholes == {"step0000.paced": True, "step0001.mixed": False, "step0002.beyond": True, "step0003.apart": True}
