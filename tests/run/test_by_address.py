"""Runs that count by address, on simulated hosts: by_address.csv is of the measurement, whatever comes late."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from ivypy.master.exit_codes import ExitCode
from tests.support.simulated.runs import SimulatedHosts, SimulatedRun, run
from tests.support.simulated.slave import Faults, SimulatedSlave, steady

pytestmark = pytest.mark.slow

NO_FAULTS: Mapping[str, Faults] = {}
PLAN = """\
name: sim
hosts: [a, b]
engine: {{ backend: "null" }}
luns: {{ create: {{ path: "/x/{{}}", size: 1GiB, count: 2 }} }}
workloads: {{ mix: {{ iosequencer: random_steady, fraction_read: 75%, maxtags: 4, iops: 1000 }} }}
rollups: [ host, {{ by: [lun], csv: false }} ]
by_address: {sections}
lease: 60s
defaults: {{ subinterval: 1s, warmup: 2s, measure: 8s }}
steps: [ go: one ]
"""


def staged(root: Path, sections: int = 7, faults: Mapping[str, Faults] = NO_FAULTS) -> SimulatedRun:
    slaves = {name: SimulatedSlave(name, plant=steady(5000.0), faults=faults.get(name)) for name in "ab"}
    return run(root, PLAN.format(sections=sections), SimulatedHosts(**slaves))


@pytest.mark.parametrize("faults", [{}, {"b": Faults(late={4: 6.0})}])
def test_the_sections_of_a_row_add_up_to_its_summary(tmp_path: Path, faults: dict[str, Faults]) -> None:
    outcome = staged(tmp_path, faults=faults)
    assert outcome.code is ExitCode.OK
    rows = outcome.rows("step0000.one/by_address.csv")
    places = [(row["rollup_type"], row["rollup_instance"], row["section"]) for row in rows]
    instances = [("all", "all"), ("host", "a"), ("host", "b")]  # of `lun` there are no files
    assert places == [(*instance, str(n)) for instance in instances for n in range(1, 8)]
    assert [float(row["from_percent"]) for row in rows[:7]] == pytest.approx([100 * n / 7 for n in range(7)], abs=1e-3)
    for kind, name in instances:
        (summary,) = [row for row in outcome.rows(f"summary.{kind}.csv") if row.get(kind, "all") == name]
        own = [row for row in rows if (row["rollup_type"], row["rollup_instance"]) == (kind, name)]
        assert sum(int(row["reads"]) for row in own) == pytest.approx(8 * float(summary["read_iops"]), abs=1)
        assert sum(int(row["changes"]) for row in own) == pytest.approx(8 * float(summary["write_iops"]), abs=1)
        assert {row["read_service_us_mean"] for row in own} == {row["read_service_us_max"] for row in own} == {"500"}


def test_it_is_of_the_measurement_that_the_step_stands_for(tmp_path: Path) -> None:
    """Not of the level behind it, which the hosts do not reach."""
    go = "go: { name: one, measure: 8s, staircase: { start: 8000, step: 100%, end: 40000 } }"
    plan = PLAN.format(sections=3).replace("go: one", go)
    slaves = {name: SimulatedSlave(name, plant=steady(5000.0)) for name in "ab"}
    outcome = run(tmp_path, plan, SimulatedHosts(**slaves))
    levels = [(row["verdict"], float(row["overall_iops"])) for row in outcome.rows("summary.all.csv")]
    assert levels == [("valid", 8000.0), ("valid", 16000.0), ("invalid", 20000.0)]
    own = [row for row in outcome.rows("step0000.one/by_address.csv") if row["rollup_type"] == "all"]
    assert sum(int(row["reads"]) + int(row["changes"]) for row in own) == 8 * 16000


def test_a_run_that_does_not_count_by_address_has_no_such_file(tmp_path: Path) -> None:
    outcome = staged(tmp_path, sections=0)
    assert outcome.code is ExitCode.OK and not list(outcome.folder.rglob("by_address*"))
    with closing(sqlite3.connect(outcome.folder / "histograms.sqlite")) as base:
        assert not any("sections" in rest for (rest,) in base.execute("SELECT rest FROM result"))


def test_a_section_without_ios_has_no_times(tmp_path: Path) -> None:
    plan = PLAN.format(sections=2).replace("75%", "100%")
    outcome = run(tmp_path, plan, SimulatedHosts(a=SimulatedSlave("a"), b=SimulatedSlave("b")))
    for row in outcome.rows("step0000.one/by_address.csv"):
        assert (row["changes"], row["change_service_us_mean"], row["change_service_us_max"]) == ("0", "", "")
        assert int(row["reads"]) > 0
