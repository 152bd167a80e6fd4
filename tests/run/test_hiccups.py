"""Whole runs on simulated hosts, one of which is late: the figures and verdicts are those of a run without a hiccup."""

import random
from pathlib import Path

import pytest

from ivypy.master.exit_codes import ExitCode
from ivypy.master.output.histogram_db import TotalMoment
from ivypy.master.output.histogram_db_reader import HistogramReader
from ivypy.protocol.counters import Moment
from tests.support.simulated.plants import noisy, queue
from tests.support.simulated.runs import SimulatedRun, controlled
from tests.support.simulated.slave import Faults, steady

SECONDS = "subinterval: 1s, warmup: 1s, "
MEAN = "overall_response_us_mean"
STAIRS = f"{SECONDS}measure: 3s, staircase: {{ start: 200, end: 600, step: 200 }}"
CONTROLS = {
    "measure": f"{SECONDS}measure: {{ metric: overall_iops, rollup: host, accuracy: 2%, min: 30s, timeout: 30m }}",
    "steady": f"{SECONDS}steady: {{ criterion: iops, rollup: host, limit: 5%, window: 10s, timeout: 30m }}",
    "pid": f"{SECONDS}measure: 8s, control: {{ pid: {{ metric: {MEAN}, target: 1ms, rollup: host, auto: true }} }}",
    "find": f"{SECONDS}find: {{ metric: {MEAN}, target: 1ms, resolution: 5% }}",
    "curve": f"{SECONDS}measure: 4s, iops_curve: [10%, 50%]",
}


def hiccup(kind: str, at: int, seconds: float) -> Faults:
    """Of the link: its results come at once; of the host itself: one result covers several subintervals."""
    faults = Faults()
    getattr(faults, kind)[at] = seconds
    return faults


def iops(run: SimulatedRun) -> list[float]:
    """Of each summary row."""
    return [float(row["overall_iops"]) for row in run.rows("summary.all.csv")]


def verdicts(run: SimulatedRun) -> list[str]:
    return [row["verdict"] for row in run.rows("summary.all.csv")]


@pytest.mark.parametrize("kind", ["late", "stall", "frozen"])
@pytest.mark.parametrize(("at", "seconds"), [(0, 2.2), (2, 0.7), (3, 4.0), (4, 4.0), (8, 2.2)])
def test_a_level_has_its_own_load_whatever_comes_late(tmp_path: Path, kind: str, at: int, seconds: float) -> None:
    """In the warmup, in a level, in its last subinterval, and in the one of two loads."""
    run = controlled(tmp_path, STAIRS, steady(), hosts="a, b", faults={"b": hiccup(kind, at, seconds)})
    assert run.code is ExitCode.OK
    assert iops(run) == pytest.approx([200, 400, 600], rel=1e-3) and verdicts(run) == ["valid"] * 3
    assert {row["hosts"] for row in run.rows("step0000.it/windows.csv")} == {"2"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["late", "stall", "frozen"])
@pytest.mark.parametrize("name", CONTROLS)
def test_control_ends_where_it_ends_without_a_hiccup(tmp_path: Path, name: str, kind: str) -> None:
    chance = random.Random(f"{name} {kind}")
    faults = hiccup(kind, chance.randrange(20), chance.uniform(0.5, 4.5))
    plant, load = noisy(queue(2000.0, 500_000), 0.005, seed=9), "max" if name in ("pid", "find", "curve") else "500"
    undisturbed, disturbed = (
        controlled(tmp_path / str(len(hit)), CONTROLS[name], plant, iops=load, hosts="a, b", faults=hit)
        for hit in ({}, {"b": faults})
    )
    assert [undisturbed.code, disturbed.code] == [ExitCode.OK] * 2
    assert iops(disturbed) == pytest.approx(iops(undisturbed), rel=0.03), faults
    assert verdicts(disturbed) == verdicts(undisturbed), faults


def test_results_that_come_after_the_decision_are_in_the_sums(tmp_path: Path) -> None:
    """8 s late, where control waits for 6: rows are without the host, the measurement and the histograms are not."""
    go = f"{SECONDS}measure: 20s"
    run = controlled(tmp_path, go, steady(), iops="500", hosts="a, b", faults={"b": hiccup("late", 5, 8.0)})
    assert run.code is ExitCode.OK
    (row,) = run.rows("summary.all.csv")
    assert (row["verdict"], row["hosts_in"], row["first_subinterval"], row["last_subinterval"]) == (
        "valid",
        "2",
        "1",
        "20",
    )
    assert "host_late[note] (b: no result of subinterval 5 in time)" in row["reasons"]
    assert int(row["overall_service_count"]) == pytest.approx(20 * 1000, abs=4)
    events = [(one["kind"], one["text"]) for one in run.rows("events.csv") if one["host"] == "b"]
    without = [int(one["subinterval"]) for one in run.rows("step0000.it/all/all.csv") if one["hosts_in"] == "1"]
    assert without[0] == 5 and len(without) > 1
    assert events == [
        ("late", "no result of subinterval 5 in time"),
        (
            "back",
            f"in time again since subinterval {without[-1] + 1}; {len(without)} were decided without it, "
            f"{len(without)} of these came late and are in",
        ),
    ]
    assert not (run.folder / "step0000.it" / "late").exists()
    with HistogramReader(run.folder / "histograms.sqlite") as stored:
        assert {host for host, _ in stored.results(0, 5, 5)} == {"a", "b"}
        for number, total in stored.totals(0):
            counted = sum(
                int.from_bytes(one.moments.data[8 * Moment.COUNT :][:8], "little")
                for _, one in stored.results(0, number, number)
            )
            assert total.moments[0, TotalMoment.COUNT] == counted > 0, number
