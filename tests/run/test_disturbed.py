"""Whole simulated runs on hosts that disturb the generator: what the folder holds, and what is said meanwhile."""

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from ivypy.master.exit_codes import ExitCode
from ivypy.master.live.reports import Subinterval
from ivypy.master.run.session.run import Run
from ivypy.protocol.payload import CpuTaken
from tests.support.simulated.plants import queue
from tests.support.simulated.runs import ONE_STEP, TWO_STEPS, SimulatedRun, controlled, run, slaves, stage
from tests.support.simulated.slave import Faults, steady

RATE_AT_MAX = 10_000
WAITED = CpuTaken(others=30, others_user=30, others_beside=60, wait=24.9)
LONGER = ONE_STEP.replace("measure: 30s", "measure: 60s")  # 12 subintervals, of which 3 may be set aside
TABLE = "step0000.one/all/all.csv"
B = Faults(taken={3: WAITED, 6: WAITED})


def sums(rows: list[dict[str, str]], column: str) -> int:
    return sum(int(row[column]) for row in rows)


def test_the_folder_has_the_disturbed_rows_and_a_measurement_without_them(tmp_path: Path) -> None:
    staged = run(tmp_path, LONGER, b=B)
    assert staged.code is ExitCode.OK
    rows = staged.rows(TABLE)
    assert Counter(row["phase"] for row in rows) == {"warmup": 1, "run": 12, "disturbed": 2, "tail": 1}
    (summary,), (window,) = staged.rows("summary.all.csv"), staged.rows("step0000.one/windows.csv")
    assert "set_aside[note] (2 of 14 subintervals: run-queue delay)" in summary["reasons"].split("; ")
    assert (window["first_subinterval"], window["last_subinterval"], window["set_aside"]) == ("1", "14", "2")
    assert float(summary["length_s"]) == pytest.approx(60, rel=1e-3)
    measured = [row for row in rows if row["in_measurement"] == "1"]
    assert measured == [row for row in rows if row["phase"] == "run"]
    for column in ("due", "overall_service_count"):
        assert sums(measured, column) == int(summary[column])
    histogram = staged.rows("step0000.one/all/all.histogram.csv")
    counted = [row for row in histogram if (row["category"], row["time"]) == ("overall", "service")]
    assert sums(counted, "count") == int(summary["overall_service_count"])
    assert "cpu_contention" not in summary["reasons"]


def test_a_share_of_what_others_left_at_max_is_run_and_is_partial(tmp_path: Path) -> None:
    """All of the time on all hosts: nothing else than that speaks against the rate."""
    starved = Faults(taken={k: replace(WAITED, wait=40) for k in range(9)})
    staged = run(
        tmp_path, TWO_STEPS.replace("measure: 30s", "measure: 30s, disturbed: keep"), a=starved, b=starved, c=starved
    )
    most, half = staged.rows("summary.all.csv")
    assert (most["verdict"], half["verdict"], staged.code) == ("invalid", "partial", ExitCode.INVALID)
    assert "cpu_contention[invalid] (a: " in most["reasons"]
    assert "baseline_step[partial] (step max is invalid for all=all: a: " in half["reasons"]
    assert float(half["overall_iops"]) == pytest.approx(float(most["overall_iops"]) / 2, rel=1e-3)


def test_a_disturbed_subinterval_moves_the_end_that_is_shown(tmp_path: Path) -> None:
    staged = run(tmp_path, LONGER, b=B)
    shown = [one for one in staged.eyes.seen if isinstance(one, Subinterval)]
    remaining = {one.number: round(one.step_remaining_s) for one in shown}
    assert [remaining[number] for number in range(8)] == [65, 60, 55, 55, 50, 45, 45, 40]
    assert [one.run_remaining_s for one in shown] == [one.step_remaining_s for one in shown]
    assert remaining[max(remaining)] == 0
    assert "measured 2 of 12 subintervals; 1 more does not count (run-queue delay)" in shown[3].messages


def test_keep_counts_them_and_says_what_the_host_did(tmp_path: Path) -> None:
    staged = run(tmp_path, LONGER.replace("measure: 60s", "measure: 60s, disturbed: keep"), b=B)
    assert [row["phase"] for row in staged.rows(TABLE)] == ["warmup", *["run"] * 12, "tail"]
    (summary,) = staged.rows("summary.all.csv")
    assert "set_aside" not in summary["reasons"]


@pytest.mark.parametrize(
    ("go", "taken"), [("measure: 60s, disturbed: keep", {3: WAITED}), ("measure: 15s", {2: WAITED})]
)
def test_a_steps_own_word_counts_and_a_short_measurement_sets_nothing_aside(
    tmp_path: Path, go: str, taken: dict[int, CpuTaken]
) -> None:
    text = LONGER.replace("go: one", f"go: {{ name: one, {go} }}")
    assert "disturbed" not in {row["phase"] for row in run(tmp_path, text, b=Faults(taken=taken)).rows(TABLE)}


def test_what_counted_until_an_edit_is_read_back_without_what_was_set_aside(tmp_path: Path) -> None:
    """The step is stopped in the subinterval of the edit: the measurement is of what was before it."""

    async def visit(staged_run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(32.0)
        await staged_run.api.edit(["all=all", "iops=500"], False, "me")
        await asyncio.sleep(5.0)
        staged_run.api.stop("me")

    staged = stage(tmp_path, visit, LONGER, slaves(b=B))
    rows = staged.rows(TABLE)
    assert [row["phase"] for row in rows[:7]] == ["warmup", "run", "run", "disturbed", "run", "run", "transient"]
    (summary,) = staged.rows("summary.all.csv")
    assert (summary["first_subinterval"], summary["last_subinterval"]) == ("1", "5")
    measured = [row for row in rows if row["phase"] == "run" and int(row["subinterval"]) <= 5]
    assert len(measured) == 4
    assert sums(measured, "overall_service_count") == int(summary["overall_service_count"])
    assert "set_aside[note] (1 of 5 subintervals: run-queue delay)" in summary["reasons"]
    assert "shortened[partial] (4 of 12 subintervals, until an edit" in summary["reasons"]


@pytest.mark.slow
def test_a_search_repeats_a_disturbed_probe_and_names_it(tmp_path: Path) -> None:
    always = {number: WAITED for number in range(4, 30)}
    staged = controlled(
        tmp_path,
        "find: { metric: overall_response_us_p99, target: 4ms, resolution: 10% }",
        queue(2000.0, 1_000_000),
        faults={"a": Faults(taken=always)},
    )
    rows = staged.rows("step0000.it/find.csv")
    repeated = [row for row in rows if row["repeated"] == "true"]
    assert repeated
    (summary,) = staged.rows("summary.all.csv")
    for row in repeated:
        assert f"set_aside[note] (probe {row['probe']} at {float(row['total_iops']):.6g} IOPS, " in summary["reasons"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("iops", "at_least", "taken", "verdict", "code"),
    [
        ("max", 1.1, WAITED, "invalid", ExitCode.INVALID),
        ("max", 9.9, WAITED, "failed", ExitCode.SLO_MISSED),  # a quarter of the time does not explain that
        ("max", 1.1, CpuTaken(), "failed", ExitCode.SLO_MISSED),
        ("500", 1.1, WAITED, "failed", ExitCode.SLO_MISSED),  # it has the rate that was asked for
    ],
    ids=["at max", "at max, far off", "at max, undisturbed", "paced"],
)
@pytest.mark.parametrize("more", ["", ", abort_early: true"], ids=["at its end", "early"])
def test_a_host_that_lacks_cpu_does_not_look_like_slow_storage(
    tmp_path: Path, iops: str, at_least: float, taken: CpuTaken, verdict: str, code: ExitCode, more: str
) -> None:
    """`at_least`: in rates that the load has."""
    limit = at_least * (500 if iops == "500" else RATE_AT_MAX)
    go = f"measure: 60s, disturbed: keep, slo: {{ metric: overall_iops, at_least: {limit:.0f}{more} }}"
    faults = {"a": Faults(taken=dict.fromkeys(range(20), taken))}
    staged = controlled(tmp_path, go, steady(), iops=iops, faults=faults)
    (summary,) = staged.rows("summary.all.csv")
    assert (summary["verdict"], summary["rate_verdict"], staged.code) == (verdict, "valid", code)
    assert ("aborted early" in summary["reasons"]) == bool(more)
