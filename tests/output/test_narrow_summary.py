"""summary.csv: few columns, all of them numbers but for names and verdicts; the same figures as the wide files."""

from pathlib import Path

import pytest

from ivypy.master.output.columns import NARROW_METRICS
from ivypy.master.run.session.run import Run
from tests.support.simulated.runs import ONE_STEP, SimulatedRun, stage
from tests.support.small_run import table, write_run

NAMES = {"run", "name", "rollup_type", "rollup_instance"}
VERDICTS = {"verdict", "rate_verdict", "service_verdict", "response_verdict"}


def test_every_row_of_every_summary_is_there_with_the_same_figures(tmp_path: Path) -> None:
    folder = write_run(tmp_path)
    wide = {
        (row["step"], row["rollup_type"], row["rollup_instance"]): row
        for path in folder.glob("summary.*.csv")
        for row in table(path)
    }
    narrow = table(folder / "summary.csv")
    assert len(narrow) == len(wide) > 4
    for row in narrow:
        same = wide[row["step"], row["rollup_type"], row["rollup_instance"]]
        for column in {metric.name for metric in NARROW_METRICS} | VERDICTS | {"name"}:
            assert row[column] == same[column]
        assert row["run"] == folder.name and row["iops_setting"] == same["iops_setting"].replace("max", "")


def test_all_but_names_and_verdicts_are_numbers(tmp_path: Path) -> None:
    rows = table(write_run(tmp_path) / "summary.csv")
    assert all(float(row[column]) >= 0 for row in rows for column in row.keys() - NAMES - VERDICTS if row[column])
    assert len(rows[0]) <= 48


LOOPS = """  - go: { name: sizes, loop: { blocksize: [4k, 8KiB], maxtags: [1, 2] } }
  - go: { name: rates, loop: { total_iops: [100, 200] } }
  - go: { name: plain }
  - go: { name: waits, loop: { drop_after: [1s, never] } }
"""


async def nobody(run: Run, staged: SimulatedRun) -> None:
    """Nobody does anything while it runs."""


@pytest.mark.slow
def test_what_steps_loop_over_is_a_column(tmp_path: Path) -> None:
    plan = ONE_STEP[: ONE_STEP.index("steps:")] + f"steps:\n{LOOPS}"
    staged = stage(tmp_path, nobody, plan)
    rows = table(staged.folder / "summary.csv")
    whole = {row["name"]: row for row in rows if row["rollup_type"] == "all"}
    assert [*rows[0]][3:5] == ["blocksize", "maxtags"] and "total_iops" not in rows[0]
    looped = [(row["blocksize"], row["maxtags"]) for row in whole.values()]
    assert looped[:4] == [("4096", "1"), ("4096", "2"), ("8192", "1"), ("8192", "2")]
    assert looped[4:] == [("", "")] * (len(whole) - 4)
    assert [row["drop_after"] for row in whole.values()][-2:] == ["1.0", "inf"], "numbers alone"
    assert [whole[f"rates+total_iops={rate}"]["iops_setting"] for rate in (100, 200)] == ["100", "200"]
