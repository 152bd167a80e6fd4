"""The table of a comparison: what is not known has no figure."""

import pytest

from ivypy.master.compare.outcomes import Compared, RunFigure, untested
from ivypy.master.compare.render_text import cells
from ivypy.master.results.finished_run import Key
from ivypy.master.rollup.metrics import METRICS


@pytest.mark.parametrize(("left_out", "change"), [("invalid: reap_delay", "-"), ("", "+50.0%")])
def test_of_the_few_runs_that_remain_no_change_is_shown(left_out: str, change: str) -> None:
    """One good run a side of six, and 50 % between them, would be read as a result; of two whole runs it is shown."""
    runs = (RunFigure("A1", 2.0), RunFigure("A2", 9.0, left_out), RunFigure("B1", 3.0))
    row = Compared(Key("max", "all", "all"), METRICS["overall_service_us_p99"], 2.0, 3.0, None, "too few runs", runs)
    assert cells(untested(row))[3] == change
