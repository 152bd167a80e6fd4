"""A run folder as the data of a page: every figure is the one of the run's own files, whichever way it is read."""

import csv
import json
import shutil
import sqlite3
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.exit_codes import ExitCode
from ivypy.master.pages import histogram_columns
from ivypy.master.pages.document import _ending
from ivypy.master.pages.histogram_columns import MOST_COLUMNS, Cells, Column, Times, encoded, group_of
from ivypy.master.pages.run_data import RunData
from ivypy.master.results.result_document import result_of
from ivypy.master.rollup.metrics import of_nothing
from ivypy.master.run.session.run import Run
from ivypy.master.stats.percentiles import percentile
from ivypy.master.summary.headline import IN_CHARTS
from tests.support.compared_runs import Made
from tests.support.late_results import without_result
from tests.support.simulated.runs import ONE_STEP, SimulatedRun, stage

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999, "p99_99": 0.9999}
CLIMB = ONE_STEP.replace(
    "go: one",
    "go: { name: climb, measure: 10s, slo: { metric: overall_iops, at_most: 300000 },"
    " staircase: { start: 100000, step: 125% } }, edit: { rollup: all=all, set: { iops: max } }, go: most",
)


async def marked(run: Run, staged: SimulatedRun) -> None:
    run.api.mark("fan <pulled>", "me")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A staircase that saturates, and a step at max: three hosts, two rollup types."""
    return stage(tmp_path_factory.mktemp("run"), marked, CLIMB).folder


def rows(folder: Path, step: int, name: str) -> list[dict[str, str]]:
    (path,) = folder.glob(f"step{step:04d}.*/{name}.csv")
    with path.open(newline="") as file:
        return [*csv.DictReader(file)]


def figure(text: str) -> float | None:
    return float(text) if text else None


@pytest.mark.parametrize(("step", "by", "instance"), [(0, "all", "all"), (0, "host", "b"), (1, "workload", "scan")])
def test_the_series_are_the_rows_of_the_csv(folder: Path, step: int, by: str, instance: str) -> None:
    said = RunData(folder).series(step, by, instance, 2)
    expected = rows(folder, step, f"{by}/{instance}")[2:]
    assert said["subinterval"] == [int(row["subinterval"]) for row in expected]
    assert said["phase"] == [row["phase"] for row in expected]
    assert said["in_measurement"] == [int(row["in_measurement"]) for row in expected] and 1 in said["in_measurement"]
    full = [{**of_nothing(row["overall_iops"]), **row} for row in expected]
    for name in IN_CHARTS:
        assert said["metrics"][name] == [figure(row[name]) for row in full], name


def decoded(answer: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """The header, and the counts of each set."""
    (length,) = struct.unpack_from("<I", answer)
    header = json.loads(answer[4 : 4 + length])
    data = answer[4 + length :]
    assert (4 + length) % 8 == 0
    counts = {}
    for one in header["sets"]:
        shape = len(header["first"]), one["high"] - one["low"]
        counts[one["name"]] = np.frombuffer(data, "<u4", shape[0] * shape[1], one["offset"]).reshape(shape)
    return header, counts


@pytest.mark.parametrize(("by", "instance"), [("all", "all"), ("host", "c"), ("workload", "oltp")])
@pytest.mark.parametrize("time", ["service", "response"])
@pytest.mark.parametrize("step", [0, 1])
def test_percentiles_of_the_histograms_are_those_of_the_csv(
    folder: Path, step: int, time: str, by: str, instance: str
) -> None:
    header, counts = decoded(RunData(folder).histograms(step, by, instance))
    sets = {one["name"]: one for one in header["sets"]}
    for place, row in enumerate(rows(folder, step, f"{by}/{instance}")):
        for direction in ("read", "write"):
            name = f"{direction}.{time}"
            blank = row[f"{direction}_{time}_us_mean"] == ""
            if name not in sets or not sets[name]["count"][place]:
                assert blank, name
                continue
            one = sets[name]
            assert bool(one["valid"][place]) is not blank, name
            if blank:
                continue
            assert one["max_us"][place] == pytest.approx(float(row[f"{direction}_{time}_us_max"]), rel=1e-8)
            ends = one["min_us"][place] * 1000, one["max_us"][place] * 1000
            for percent, fraction in PERCENTILES.items():
                found = percentile(counts[name][place], one["low"], *ends, fraction) / 1000
                text = row[f"{direction}_{time}_us_{percent}"]
                assert (np.isnan(found) and not text) or found == pytest.approx(float(text), rel=1e-8), percent


def test_the_stored_total_is_the_sum_of_all_hosts(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / folder.name
    shutil.copytree(folder, copy)
    with sqlite3.connect(copy / "histograms.sqlite") as base:
        base.execute("DROP TABLE total")  # as in a run of an older ivypy
    base.close()
    assert RunData(copy).histograms(0) == RunData(folder).histograms(0)


@pytest.mark.parametrize(("by", "instance"), [("all", "all"), ("host", "b")])
def test_what_grows_is_read_as_if_it_had_been_there(folder: Path, tmp_path: Path, by: str, instance: str) -> None:
    copy = tmp_path / folder.name
    shutil.copytree(folder, copy)
    (path,) = copy.glob(f"step0000.*/{by}/{instance}.csv")
    text = path.read_bytes()
    data = RunData(copy)
    seen: list[int] = []
    for end in [*range(0, len(text), len(text) // 7), len(text)]:  # in the midst of lines, too
        path.write_bytes(text[:end])
        first = len(seen)
        said = data.series(0, by, instance, first)
        seen += said["subinterval"]
        header, _ = decoded(data.histograms(0, by, instance, first))
        assert header["first"] == said["subinterval"]
    whole = RunData(folder)
    assert seen == whole.series(0, by, instance)["subinterval"]
    assert data.histograms(0, by, instance) == whole.histograms(0, by, instance)


@pytest.mark.parametrize(("by", "instance"), [("all", "all"), ("host", "b")])
@pytest.mark.parametrize("when", ["while it runs", "at its end"])
def test_a_result_that_comes_late_is_shown_to_whoever_looked_before(
    folder: Path, tmp_path: Path, by: str, instance: str, when: str
) -> None:
    copy = tmp_path / folder.name
    shutil.copytree(folder, copy)
    (path,) = copy.glob(f"step0000.*/{by}/{instance}.csv")
    record, text = (copy / "run.json").read_text(), path.read_text()
    if when == "while it runs":
        path.write_text("".join(text.splitlines(keepends=True)[:5]))
    else:
        going = json.loads(record)
        going["steps"][0] |= {"verdict": "", "end_utc": None}
        (copy / "run.json").write_text(json.dumps(going))
    join = without_result(copy, 0, 2, "b")
    data, whole = RunData(copy), RunData(folder).histograms(0, by, instance)
    before, _ = decoded(data.histograms(0, by, instance))
    join()
    path.write_text(text)
    (copy / "run.json").write_text(record)
    header, _ = decoded(whole)
    assert before["sets"][0]["count"][2] < header["sets"][0]["count"][2]
    assert data.histograms(0, by, instance) == whole


def test_the_document_has_the_figures_of_the_results(folder: Path) -> None:
    said = RunData(folder).document()
    json.dumps(said, allow_nan=False)
    result = result_of(folder, ("all",))
    assert [one["name"] for one in said["steps"]] == [one.name for one in result.steps] == ["climb", "most"]
    for step, expected in zip(said["steps"], result.steps, strict=True):
        assert [one["name"] for one in step["measurements"]] == [one.name for one in expected.measurements]
        assert [one["metrics"] for one in step["measurements"]] == [one.metrics for one in expected.measurements]
        assert [one["reason"] for one in step["reasons"]] == [one.reason for one in expected.reasons]
        assert step["verdict"] == expected.verdict and step["thresholds"] == expected.thresholds
        assert step["closed"] == len(rows(folder, step["number"], "all/all"))
    assert said["steps"][0]["measurements"][0]["level"] == "total_iops=100000"
    assert said["rollups"] == {"all": ["all"], "host": ["a", "b", "c"], "workload": ["oltp", "scan"]}
    assert [one["text"] for one in said["events"] if one["kind"] == "mark"] == ["fan <pulled>; by me"]
    assert said["run"]["state"] == "ended" and said["outcome"]


def test_instances_have_their_measured_figures(folder: Path) -> None:
    said = RunData(folder).instances(1, "host")
    with (folder / "summary.host.csv").open(newline="") as file:
        expected = {row["rollup_instance"]: row for row in csv.DictReader(file) if row["step"] == "1"}
    assert said["measured"] and [one["instance"] for one in said["instances"]] == [*expected]
    for one in said["instances"]:
        row = expected[one["instance"]]
        assert one["metrics"]["overall_iops"] == float(row["overall_iops"])
        assert one["verdict"] == row["verdict"]
        assert len(one["spark_iops"]) == len(said["subintervals"]) > 1


def test_every_other_answer_is_of_the_steps_files(folder: Path) -> None:
    data = RunData(folder)
    cpu = data.cpu(1)
    assert [*cpu["hosts"]] == ["a", "b", "c"]
    assert len(cpu["start"]) == len(cpu["hosts"]["a"]["cpu_busy_percent"]) == len(rows(folder, 1, "all/all"))
    assert "staircase" in data.control(0) and not data.control(1).keys() & {"cpu", "index", "threads"}
    counts = data.distribution(1)["sets"]["overall.service"]["count"]
    assert sum(counts) == float(rows_of_summary(folder, 1)["overall_service_count"])


def rows_of_summary(folder: Path, step: int) -> dict[str, str]:
    with (folder / "summary.all.csv").open(newline="") as file:
        return next(row for row in csv.DictReader(file) if row["step"] == str(step))


@pytest.mark.parametrize(
    "ask",
    [
        lambda data: data.series(9),
        lambda data: data.series(0, "host", "../../etc"),
        lambda data: data.histograms(0, "nowhere"),
        lambda data: data.instances(0, "port"),
        lambda data: data.cpu(-1),
        lambda data: data.control(2),
    ],
)
def test_what_is_not_there_is_a_key_error(folder: Path, ask: Any) -> None:
    with pytest.raises(KeyError):
        ask(RunData(folder))


def test_progress_tells_what_changed(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / folder.name
    shutil.copytree(folder, copy)
    data = RunData(copy)
    before = data.progress()
    assert (before.step, before.closed, before.ended) == (1, len(rows(folder, 1, "all/all")), True)
    assert data.progress() == before
    with (copy / "events.csv").open("a") as file:
        file.write("2026-01-01T00:00:00.000000Z,,,,mark,more\n")
    assert data.progress().document > before.document
    assert data.document()["events"][-1]["text"] == "more"


def test_a_run_that_has_only_begun_has_no_data_yet(tmp_path: Path) -> None:
    path = Made(steps=(), exit_code=None).write(tmp_path)
    data = RunData(path)
    assert data.progress().step is None
    assert data.document()["steps"] == [] and data.document()["run"]["state"] == "cut off"


@st.composite
def columns(draw: st.DrawFn) -> list[Column]:
    """Histograms of up to a few columns' worth of subintervals, some without any I/O."""
    made: list[Column] = []
    for _ in range(draw(st.integers(1, 20))):
        column = {}
        for name in draw(st.sets(st.sampled_from([*histogram_columns.SETS]))):
            counts = np.array(draw(st.lists(st.integers(0, 9), min_size=1, max_size=5)), np.uint64)
            low = draw(st.integers(0, 40))
            column[name] = Cells(low, counts, int(counts.sum()), 7, low, low + len(counts))
        made.append(column)
    return made


@given(columns(), st.integers(0, 25), st.sampled_from([4, 7, 1200]))
def test_no_io_is_lost_where_columns_are_joined(made: list[Column], first: int, most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(histogram_columns, "MOST_COLUMNS", most)
        times = Times([*map(float, range(len(made)))], [1.0] * len(made), [0] * len(made),
                      {name: [True] * len(made) for name in histogram_columns.SETS})  # fmt: skip
        header, counts = decoded(encoded(made, times, min(first, len(made))))
        group = header["group"]
        assert group == group_of(len(made)) and -(-len(made) // group) <= most
    begin = min(first, len(made)) // group * group
    assert header["first"] == [*range(begin, len(made), group)]
    for name, array in counts.items():
        for place, at in enumerate(header["first"]):
            ios = sum(int(one[name].counts.sum()) for one in made[at : at + group] if name in one)
            assert array[place].sum() == ios


def test_few_columns_are_subintervals() -> None:
    assert [group_of(n) for n in (0, 1, MOST_COLUMNS, MOST_COLUMNS + 1, 5 * MOST_COLUMNS)] == [1, 1, 1, 2, 8]


@pytest.mark.parametrize(("rows", "empty"), [([], True), ([{"name": "one"}], False)])
def test_an_interrupted_run_of_another_version_is_not_said_to_be_empty(rows: list[dict[str, str]], empty: bool) -> None:
    """Its summary has figures, though what was shown of them is not known."""
    entry: Any = SimpleNamespace(interrupted_by="Ctrl-C")
    assert ("nothing was measured" in _ending(ExitCode.INTERRUPTED, rows, {}, entry)) is empty
