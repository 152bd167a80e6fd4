"""`ivypy show`: a finished run's table is the one with which it ended, by any way in which it is asked for."""

import csv
import io
import json
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from shutil import copytree

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.cli.results import show
from ivypy.master.errors import PlanError
from ivypy.master.exit_codes import ExitCode
from ivypy.master.live.line_view import TextLines
from ivypy.master.live.reports import RunEnds
from ivypy.master.output.file_names import step_folder
from ivypy.master.results import result_document
from ivypy.master.results.checked_files import RUN_JSON
from ivypy.master.results.measured_rows import finding_of, read_measured
from ivypy.master.results.result_document import ResultDocument, result_of, schema
from ivypy.master.rollup.metrics import METRICS, of_nothing
from ivypy.master.run.session.run import Run
from ivypy.master.summary.measured import MeasurementRow, StepEnds
from ivypy.master.verdicts import Finding, Reason
from tests.support.simulated.runs import ONE_STEP, SimulatedRun, stage

pytestmark = pytest.mark.slow

CLIMB = ONE_STEP.replace(
    "go: one",
    "go: { name: climb, measure: 10s, slo: { metric: overall_iops, at_most: 300000 },"
    " staircase: { start: 100000, step: 125% } }, go: again",
)


async def nobody(run: Run, staged: SimulatedRun) -> None:
    """Nobody does anything while it runs."""


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> SimulatedRun:
    """A staircase that misses a threshold and saturates, and another step."""
    return stage(tmp_path_factory.mktemp("run"), nobody, CLIMB)


def shown(*words: str, columns: int = 80) -> tuple[int, str]:
    """Exit code, and the output or the error."""
    done = CliRunner(env={"COLUMNS": str(columns)}).invoke(show, words, standalone_mode=False)
    if isinstance(done.exception, PlanError | click.ClickException):
        return ExitCode.PLAN, str(done.exception)
    assert done.exception is None, done.exception
    return done.return_value, done.stdout


def ends_of(staged: SimulatedRun) -> RunEnds:
    return next(report for report in staged.eyes.seen if isinstance(report, RunEnds))


def rows_of(steps: Sequence[StepEnds]) -> list[MeasurementRow]:
    return [one for step in steps for one in step.measured]


@pytest.mark.parametrize("columns", [60, 80, 120, 160])
def test_the_table_is_the_one_that_the_run_ended_with(staged: SimulatedRun, columns: int) -> None:
    code, text = shown(str(staged.folder), columns=columns)
    said = TextLines(lambda line: None, lambda: columns).lines(ends_of(staged))
    folder, *lines = text.splitlines()
    assert code == ExitCode.OK and folder == str(staged.folder)
    assert lines == said[:-1], "but for the folder, which is first"


def test_what_run_json_keeps_is_what_watchers_saw(staged: SimulatedRun) -> None:
    steps = read_measured(staged.folder, "all", ()).steps
    assert rows_of(steps) == rows_of(ends_of(staged).steps)
    assert [one.verdict for one in rows_of(steps)] == ["valid", "valid", "failed", "invalid", "valid"]


def of_earlier_version(folder: Path, copy: Path, with_rows: bool = False) -> None:
    """A copy of a run whose run.json has no rows, or rows with other names for their figures."""
    for path in folder.glob("*.csv"):
        (copy / path.name).write_bytes(path.read_bytes())
    record = json.loads((folder / RUN_JSON).read_text())
    for step in record["steps"]:
        for row in step["measured"]:
            row |= {"iops": row.pop("figures").get("overall_iops"), "cause": "it was said so", "verdict": "partial"}
        if not with_rows:
            del step["measured"]
    (copy / RUN_JSON).write_text(json.dumps(record))


def test_the_whole_decides_which_measurement_stands(staged: SimulatedRun, tmp_path: Path) -> None:
    """Not the first instance of the rollup type that is asked for, here invalid in all levels but the first."""
    of_earlier_version(staged.folder, tmp_path)
    rows = staged.rows("summary.host.csv")
    for row in rows[1:]:
        row["verdict"] = "invalid" if row["host"] == rows[0]["host"] else row["verdict"]
    with open(tmp_path / "summary.host.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    ours, theirs = (
        [{one.name for one in step.measurements if one.stands} for step in result_of(tmp_path, [by]).steps]
        for by in ("host", "all")
    )
    assert ours == theirs and {one.rollup_type for one in result_of(tmp_path, ["host"]).steps[0].measurements} == {
        "host"
    }


def test_what_an_earlier_version_said_of_a_measurement_stands_beside_the_summarys_figures(
    staged: SimulatedRun, tmp_path: Path
) -> None:
    """Its verdict is over all rollup instances, and its cause is nowhere else."""
    of_earlier_version(staged.folder, tmp_path, with_rows=True)
    read, kept = (rows_of(read_measured(folder, "all", ()).steps) for folder in (tmp_path, staged.folder))
    for mine, theirs in zip(read, kept, strict=True):
        assert (mine.verdict, mine.cause) == ("partial", "it was said so")
        assert (mine.name, mine.findings, mine.stands) == (theirs.name, theirs.findings, theirs.stands)
        assert mine.figures == pytest.approx(theirs.figures)


def test_the_summaries_alone_give_the_same_figures(staged: SimulatedRun, tmp_path: Path) -> None:
    of_earlier_version(staged.folder, tmp_path)
    read, kept = (rows_of(read_measured(folder, "all", ()).steps) for folder in (tmp_path, staged.folder))
    for mine, theirs in zip(read, kept, strict=True):
        assert (mine.name, mine.verdict) == (theirs.name, theirs.verdict)
        assert {*map(str, mine.findings)} == {*map(str, theirs.findings)}
        assert mine.figures == pytest.approx(theirs.figures)


@pytest.mark.parametrize("by", ["host", "workload"])
def test_every_instance_has_the_figures_of_its_summary(staged: SimulatedRun, by: str) -> None:
    summary = staged.rows(f"summary.{by}.csv")
    rows = rows_of(read_measured(staged.folder, by, ()).steps)
    assert [one.name for one in rows] == [f"{row['name']} {row['rollup_instance']}" for row in summary]
    for one, row in zip(rows, summary, strict=True):
        assert f"{one.figures['overall_iops']:.7g}" == row["overall_iops"]
        assert f"{one.figures['overall_service_us_p99']:.9g}" == row["overall_service_us_p99"]
        assert str(one.response_verdict) == row["response_verdict"]
        assert "; ".join(map(str, one.findings)) == row["reasons"]


def test_json_and_csv_have_the_same_figures(staged: SimulatedRun) -> None:
    data = json.loads(shown(str(staged.folder), "--json")[1])
    rows = list(csv.DictReader(io.StringIO(shown(str(staged.folder), "--csv")[1])))
    measured = [one for step in data["steps"] for one in step["measurements"]]
    assert [row["name"] for row in rows] == [one["name"] for one in measured]
    for row, one in zip(rows, measured, strict=True):
        assert one["metrics"] == {
            name: float(cell) for name in METRICS if (cell := {**of_nothing(row["overall_iops"]), **row}[name])
        }
    assert data["run"]["exit_code"] == ExitCode.SLO_MISSED
    assert rows == staged.rows("summary.all.csv")


def test_result_json_has_every_row_of_every_summary(staged: SimulatedRun) -> None:
    """And is what the schema says, with nothing else."""
    result = ResultDocument.model_validate_json((staged.folder / "result.json").read_bytes(), strict=True)
    found = [one for step in result.steps for one in step.measurements]
    written = [row for path in staged.folder.glob("summary.*.csv") for row in staged.rows(path.name)]
    key = attrgetter("name", "rollup_type", "rollup_instance")
    assert {key(one) for one in found} == {
        tuple(row[c] for c in ("name", "rollup_type", "rollup_instance")) for row in written
    }
    assert len(found) == len(written) > 10
    assert [step.thresholds for step in result.steps] == [["overall_iops at most 300000"], []]
    assert [step.probes for step in result.steps] == [[], []]
    assert found[0].parameters["blocksize"] == "8192(6/12) 65536(6/12)"
    assert {repr(one.parameters["blocksize"]) for one in found if one.rollup_type == "workload"} == {"8192", "65536"}
    assert result.run.exit_code == ExitCode.SLO_MISSED and result.run.state == "ended"
    assert {*schema()["properties"]} == {"format", "run", "left_out", "steps"}


def test_json_has_the_probes_of_a_search(staged: SimulatedRun, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    copytree(staged.folder, folder)
    path = folder / step_folder(1, result_of(folder, ()).steps[1].name) / "find.csv"
    path.write_text(
        "probe,metric,target,total_iops,value,half_width,sustained,answer,repeated\n"
        "1,overall_response_us_p99,20000,11500,4550.5,,true,pass,false\n"
    )
    assert [step.probes for step in result_of(folder, ()).steps] == [[], [{
        "probe": 1, "metric": "overall_response_us_p99", "target": 20000, "total_iops": 11500, "value": 4550.5,
        "sustained": True, "answer": "pass", "repeated": False,
    }]]  # fmt: skip
    path.write_text("probe\n1\n")
    assert [step.probes for step in result_of(folder, ()).steps] == [[], None], "it is damaged"


@pytest.mark.parametrize("room", [0.0, 0.3, 0.6, 0.99, 1.0])
def test_rollup_types_that_do_not_fit_are_named(
    staged: SimulatedRun, monkeypatch: pytest.MonkeyPatch, room: float
) -> None:
    sizes = {path.name.split(".")[1]: path.stat().st_size for path in staged.folder.glob("summary.*.csv")}
    monkeypatch.setattr(result_document, "MOST_BYTES", int(room * sum(sizes.values())))
    result = result_of(staged.folder, ())
    there = {one.rollup_type for step in result.steps for one in step.measurements}
    assert there | {*result.left_out} == {*sizes} and there.isdisjoint(result.left_out) and "all" in there
    assert there == {"all"} or sum(sizes[kind] for kind in there) <= room * sum(sizes.values())
    assert bool(result.left_out) == (room < 1)
    assert result_of(staged.folder, ("host",)).steps[0].measurements, "asked for"


def test_markdown_is_one_table_with_what_speaks_against_it(staged: SimulatedRun) -> None:
    lines = shown(str(staged.folder), "--md")[1].splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 2 + 5 and len({line.count(" | ") for line in table[:1] + table[2:]}) == 1
    assert "[600 k]" in table[5], "discredited"
    assert [line.split()[2] for line in lines if line.startswith("- ")] == [
        "climb:total\\_iops=506250:", "climb:total\\_iops=1.13906e+06:",
    ]  # fmt: skip


def test_a_step_is_named_or_numbered(staged: SimulatedRun) -> None:
    folder = str(staged.folder)
    assert shown(folder, "--step", "again") == shown(folder, "--step", "1")
    rows = csv.DictReader(io.StringIO(shown(folder, "--step", "again", "--csv")[1]))
    assert {row["name"] for row in rows} == {"again"}


def test_of_a_folder_of_runs_it_is_the_newest(staged: SimulatedRun) -> None:
    assert shown(str(staged.folder.parent)) == shown(str(staged.folder))


def test_errors_name_the_way_out(staged: SimulatedRun, tmp_path: Path) -> None:
    folder = str(staged.folder)
    (tmp_path / RUN_JSON).write_text('{"exit_code": 3, "steps": []}')
    for words, said in [
        ((folder, "--step", "agian"), "did you mean 'again'?"),
        ((folder, "--by", "hosts"), "it has no rollup type hosts; it has all,"),
        ((folder, "--json", "--csv"), "choose one"),
        ((f"{folder}/run.json",), f"a file; name the run's folder: {folder}"),
        ((f"{folder}/log",), f"a part of a run; name the run's folder: {folder}"),
        ((str(tmp_path),), "the run ended without results, exit code 3"),
        ((str(tmp_path / "nowhere"),), "nowhere"),
    ]:
        code, text = shown(*words)
        assert code == ExitCode.PLAN and said in text, (words, text)


FINDINGS = st.sampled_from([*Reason]).flatmap(
    lambda reason: st.builds(
        Finding,
        st.just(reason),
        st.text(st.characters(exclude_categories=["Cs"])),
        st.sampled_from(reason.severities) if len(reason.severities) > 1 else st.none(),
    )
)


@given(FINDINGS)
def test_a_reason_is_read_as_it_was_written(finding: Finding) -> None:
    assert str(finding_of(str(finding), Path("r"))) == str(finding)


@pytest.mark.parametrize("text", ["", "unknown[note]", "edited", "edited[worse]", "edited[invalid]", "edited[note] x"])
def test_a_reason_of_another_version_is_refused(text: str) -> None:
    with pytest.raises(PlanError, match="of another version of ivypy"):
        finding_of(text, Path("r"))
