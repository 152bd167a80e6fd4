"""The probes of a search, read back from its run's folder and shown below the table of steps."""

from pathlib import Path

import pytest

from ivypy.master.errors import PlanError
from ivypy.master.output.file_names import step_folder
from ivypy.master.results.measured_rows import MeasuredSteps
from ivypy.master.results.render_measured import searched_lines
from ivypy.master.results.search_steps import read_probes
from ivypy.master.summary.measured import MeasurementRow, StepEnds
from ivypy.master.verdicts import Finding, Reason, Verdict

HEADER = (
    "probe,total_iops,achieved_iops,metric,target,value,half_width,confidence_percent,sustained,answer,"
    "highest_pass_iops,repeated\n"
)
PROBES = (
    "1,23100,23050,overall_response_us_p99,20000,18000,5200,99,true,unclear,,true\n"
    "2,11500,11490,overall_response_us_p99,20000,4550,310,99,true,pass,11500,false\n"
)
DISTURBED = Finding(Reason.SET_ASIDE, "probe 1 at 23100 IOPS, 3 of 10 subintervals: run-queue delay, repeated")


def step(*findings: Finding) -> StepEnds:
    verdict = Verdict.INVALID
    row = MeasurementRow("p99", verdict, verdict, verdict, verdict, findings, "", {})
    return StepEnds(0, "p99", verdict, findings, (row,))


def written(root: Path, text: str) -> Path:
    path = root / step_folder(0, "p99") / "find.csv"
    path.parent.mkdir()
    path.write_text(text)
    return root


def test_the_probes_of_a_search_stand_below_the_table(tmp_path: Path) -> None:
    folder = written(tmp_path, HEADER + PROBES)
    assert searched_lines(
        MeasuredSteps("all", (step(DISTURBED, Finding(Reason.SEARCH_UNBOUNDED, "too short")),)), folder
    ) == [
        "",
        "probes of step 0 p99, response p99 at most 20 ms: at least 11.5 k IOPS meet it; 23.1 k is unclear",
        "probe   asked    IOPS   response p99 +- 99 % answer",
        "    1  23.1 k  23.1 k        18.0 ms 5.20 ms [unclear]",
        "    2  11.5 k  11.5 k        4.55 ms  310 us meets it",
        "1 of 2 probes does not count: other programs had the CPU",
    ]


def test_in_a_narrow_terminal_they_have_fewer_columns(tmp_path: Path) -> None:
    lines = searched_lines(MeasuredSteps("all", (step(),)), written(tmp_path, HEADER + PROBES), 40)
    assert lines[2:5] == [
        "probe   asked       p99 answer",
        "    1  23.1 k   18.0 ms [unclear]",
        "    2  11.5 k   4.55 ms meets it",
    ]


def test_a_result_that_the_steps_line_has_is_not_repeated(tmp_path: Path) -> None:
    folder = written(tmp_path, HEADER + PROBES)
    lines = searched_lines(MeasuredSteps("all", (step(Finding(Reason.SEARCH_FOUND, "up to 12 k IOPS")),)), folder)
    assert lines[1] == "probes of step 0 p99, response p99 at most 20 ms"


@pytest.mark.parametrize("by", ["all", "host"])
def test_other_steps_and_rollup_types_have_none(tmp_path: Path, by: str) -> None:
    folder = tmp_path if by == "all" else written(tmp_path, HEADER + PROBES)
    assert searched_lines(MeasuredSteps(by, (step(),)), folder) == []


@pytest.mark.parametrize(
    "text",
    [
        "probe\n1\n",
        HEADER + PROBES.replace("unclear", "perhaps"),
        HEADER + PROBES.replace("11500", "much"),
        HEADER + PROBES.replace("4550", "slow"),
    ],
)
def test_a_damaged_file_is_named_and_the_table_is_shown(tmp_path: Path, text: str) -> None:
    folder = written(tmp_path, text)
    with pytest.raises(PlanError, match=r"find\.csv: not read"):
        read_probes(folder, 0, "p99")
    assert "find.csv: not read" in searched_lines(MeasuredSteps("all", (step(),)), folder)[1]
