"""The table of a comparison: what is not known has no figure."""

import pytest

from ivypy.master.compare.outcomes import Compared, RunFigure, untested
from ivypy.master.compare.render_text import cells, figures_text, row_lines
from ivypy.master.results.finished_run import Key
from ivypy.master.rollup.metrics import METRICS


@pytest.mark.parametrize(("left_out", "change"), [("invalid: reap_delay", "-"), ("", "+50.0%")])
def test_of_the_few_runs_that_remain_no_change_is_shown(left_out: str, change: str) -> None:
    """One good run a side of six, and 50 % between them, would be read as a result; of two whole runs it is shown."""
    runs = (RunFigure("A1", 2.0), RunFigure("A2", 9.0, left_out), RunFigure("B1", 3.0))
    row = Compared(Key("max", "all", "all"), METRICS["overall_service_us_p99"], 2.0, 3.0, None, "too few runs", runs)
    assert cells(untested(row))[3] == change


@pytest.mark.parametrize(
    ("metric", "sides"),
    [
        ("overall_iops", "2.00 k -> 3.00 k IOPS, "),
        ("read_mib_per_s", "2.00 k -> 3.00 k MiB/s, "),
        ("overall_service_us_p99", "2.00 ms -> 3.00 ms, "),
    ],
)
def test_figures_in_a_line_have_their_unit(metric: str, sides: str) -> None:
    row = Compared(Key("max", "all", "all"), METRICS[metric], 2000.0, 3000.0)
    assert figures_text(untested(row)).startswith(sides)


INVALID, OTHER = "invalid: reap_delay", "blank"


@pytest.mark.parametrize(
    ("runs", "a", "b"),
    [
        ([("A1", 2.0, INVALID), ("B1", 3.0, "")], "[2.00 us]", "3.00 us"),
        ([("A1", 2.0, ""), ("B1", 2.0, INVALID), ("B2", 8.0, INVALID)], "2.00 us", "[4.00 us]"),
        ([("A1", 2.0, ""), ("A2", 8.0, INVALID), ("B1", 2.0, OTHER)], "2.00 us", "-"),
        ([("A1", 345000.0, INVALID), ("B1", 123000.0, INVALID)], "[345 ms]", "[123 ms]"),
        ([("A1", None, INVALID), ("B1", 0.0, INVALID)], "-", "-"),
    ],
)
def test_a_side_whose_runs_are_all_invalid_has_its_figure_in_brackets(
    runs: list[tuple[str, float | None, str]], a: str, b: str
) -> None:
    figures = tuple(RunFigure(*run) for run in runs)
    before, after = (
        next((one.value for one in figures if one.run[0] == side and not one.left_out), None) for side in "AB"
    )
    metric = METRICS["overall_service_us_p99"]
    row = untested(Compared(Key("max", "all", "all"), metric, before, after, None, "", figures))
    assert cells(row)[1:4] == (a, b, "-")
    (line,) = row_lines(cells(row))
    (usual,) = row_lines(("x", "-", "-", "-", "-", "not compared"))
    assert line.index("not compared") == usual.index("not compared")
