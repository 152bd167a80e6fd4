"""A run folder of 0.1.0 still opens: its columns had other names."""

import csv
import json
from pathlib import Path

import pytest

from ivypy.master.exit_codes import ExitCode
from ivypy.master.logs.readers.metric_series import series_of
from ivypy.master.output.column import names
from ivypy.master.output.columns import FILES
from ivypy.master.text.suggestions import OLD_NAMES
from tests.support.log_table import table
from tests.support.logs import run, run_steady

OLD = Path(__file__).parent / "old_run"  # configs/first.yaml, maxtags: 2, six subintervals of 500 ms a step


def test_percentiles_of_an_old_run() -> None:
    ran = run("--by", "job", OLD)
    assert {row["rollup_instance"] for row in table(ran)} == {"step0000.max", "step0001.half", "step0002.half_mixed"}
    assert sum(float(row["count"]) for row in table(ran) if row["quantity"] == "service") > 70_000


def test_steady_of_an_old_run() -> None:
    done = run_steady(OLD, "--window", "2s", "--limit", "50%")
    assert done.return_value == ExitCode.OK and done.output.count("steady after") == 3


@pytest.mark.parametrize("name", ["unfinished", "outstanding"])
def test_a_renamed_column_of_an_old_run_has_either_name(name: str) -> None:
    done = run_steady(OLD, "--metric", name, "--window", "1s", "--limit", "5000", "--json")
    assert all(block["attained"] for block in map(json.loads, done.output.splitlines()))


def test_every_column_of_an_old_run_is_known() -> None:
    """By its present name; `hosts.csv` and the like have not changed."""
    for kind in ("threads", "interlock", "clock", "cpu"):
        (found,) = (header(path) for path in [OLD / "step0001.half" / f"{kind}.csv"])
        known = names(*(group for group in FILES[f"step*/{kind}.csv"] if not isinstance(group, str)))
        had = [name for name in found if not name.startswith("core_")]
        assert had == known[: len(had)]  # others came after them
    assert {"outstanding", "oldest_outstanding_ms", "eagain"} <= {*header(OLD / "summary.all.csv")}


def header(path: Path) -> list[str]:
    with open(path, newline="") as file:
        return [OLD_NAMES.get(name, name) for name in next(csv.reader(file))]


def test_old_and_present_names_are_apart() -> None:
    present = {
        name for groups in FILES.values() for group in groups if not isinstance(group, str) for name in names(group)
    }
    assert not present & {*OLD_NAMES}
    assert series_of(OLD, lambda asked: "overall_iops", "all", 1.0)[0].name == f"{OLD}/step0000.max all=all"
