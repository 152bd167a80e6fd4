"""Whole runs under control on simulated hosts: when they end, what they load, what their folder and exit code say."""

import asyncio
import json
from pathlib import Path

import pytest

from ivypy.master.exit_codes import ExitCode
from ivypy.master.run.session.run import Run
from ivypy.protocol.parameters import Parameters
from tests.support.simulated.plants import noisy, over_time, queue
from tests.support.simulated.runs import SimulatedRun, controlled, stage
from tests.support.simulated.slave import Faults, SimulatedSlave, steady

IOPS, P99 = "overall_iops", "overall_response_us_p99"


def table(outcome: SimulatedRun, name: str, step: int = 0) -> list[dict[str, str]]:
    (folder,) = outcome.folder.glob(f"step{step:04}.*")
    return outcome.rows(f"{folder.name}/{name}")


def window(outcome: SimulatedRun) -> tuple[int, int]:
    (row,) = table(outcome, "windows.csv")
    return int(row["first_subinterval"]), int(row["last_subinterval"])


def test_a_time_that_is_rounded_up_is_reported_while_it_runs(tmp_path: Path) -> None:
    outcome = controlled(tmp_path, "measure: 12s", steady())
    events = [(row["kind"], row["step"], row["text"]) for row in outcome.rows("events.csv")]
    assert ("note", "0", "measure 12s becomes 15s: whole subintervals of 5s") in events


# Measure.


def test_a_measurement_ends_when_it_is_accurate(tmp_path: Path) -> None:
    plant = noisy(steady(1000.0), 0.02, seed=1)
    go = f"measure: {{ metric: {IOPS}, accuracy: 2%, min: 30s, timeout: 30m }}"
    outcome = controlled(tmp_path, go, plant)
    assert outcome.code is ExitCode.OK
    rows = table(outcome, "measure.csv")
    assert [row["passed"] for row in rows] == [*["false"] * (len(rows) - 1), "true"]
    assert window(outcome) == (int(rows[-1]["first_subinterval"]), int(rows[-1]["last_subinterval"]))
    assert 20 <= len(table(outcome, "all/all.csv")) < 100
    (summary,) = outcome.rows("summary.all.csv")
    assert summary["verdict"] == "valid"
    assert float(rows[-1]["value"]) == pytest.approx(float(summary["overall_iops"]), rel=1e-6)


def test_a_measurement_that_is_not_accurate_in_time_is_invalid(tmp_path: Path) -> None:
    plant = noisy(steady(1000.0), 0.3, seed=2)
    go = f"measure: {{ metric: {IOPS}, accuracy: 1%, timeout: 150s }}"
    outcome = controlled(tmp_path, go, plant)
    assert outcome.code is ExitCode.NOT_REACHED
    (summary,) = outcome.rows("summary.all.csv")
    assert (
        summary["verdict"] == "invalid"
        and "accuracy_not_reached[invalid] (overall_iops of all +/- " in summary["reasons"]
    )
    assert float(summary["overall_iops"]) > 0


def test_every_instance_of_the_rollup_must_be_known(tmp_path: Path) -> None:
    go = "measure: { metric: overall_service_us_mean, rollup: host, accuracy: 2%, min: 30s, timeout: 30m }"
    outcome = controlled(tmp_path, go, noisy(steady(1000.0), 0.02, seed=3), hosts="a, b")
    assert outcome.code is ExitCode.OK
    last = table(outcome, "measure.csv")[-1]
    assert (last["instances"], last["passing_instances"]) == ("2", "2") and last["worst_instance"] in ("a", "b")


def test_a_response_time_that_can_never_be_is_not_waited_for(tmp_path: Path) -> None:
    """Where the plan alone does not show it: an edit of one host."""
    edit = "  - edit: { rollup: host=a, set: { iops: max } }\n"
    for i, go in enumerate((f"measure: {{ metric: {P99} }}", f"slo: {{ metric: {P99}, at_most: 5ms }}")):
        outcome = controlled(tmp_path / str(i), go, steady(), edit, iops="100")
        assert outcome.code is ExitCode.INVALID
        (summary,) = outcome.rows("summary.all.csv")
        assert "no_response[invalid] (overall_response_us_p99 of all=all would always be blank" in summary["reasons"]
    assert not list(outcome.folder.glob("step*/all/all.csv"))


# Thresholds.


def test_a_missed_threshold_has_an_exit_code_of_its_own(tmp_path: Path) -> None:
    go = f"slo: [ {{ metric: {P99}, at_most: 400us }}, {{ metric: {P99}, at_most: 600us }} ]"
    outcome = controlled(tmp_path, go, steady(), iops="500")
    assert outcome.code is ExitCode.SLO_MISSED
    (summary,) = outcome.rows("summary.all.csv")
    assert summary["reasons"].count("slo_missed") == 1
    assert f"slo_missed[failed] ({P99} at most 400 us: 501 us)" in summary["reasons"]
    assert {row["breached"] for row in table(outcome, "slo.csv")} == {"true", "false"}


LATE = Faults(lateness_ns=400_000)


@pytest.mark.parametrize(
    ("capacity", "faults", "verdict", "code"),
    [
        (10_000.0, Faults(), "failed", ExitCode.SLO_MISSED),
        (10_000.0, LATE, "invalid", ExitCode.INVALID),
        (400.0, Faults(), "invalid", ExitCode.INVALID),
    ],
    ids=["measured well", "discredited", "not sustained"],
)
def test_a_threshold_is_missed_only_by_a_figure_that_is_valid(
    tmp_path: Path, capacity: float, faults: Faults, verdict: str, code: ExitCode
) -> None:
    go = f"slo: {{ metric: {P99}, at_most: 400us }}"
    outcome = controlled(tmp_path, go, steady(capacity), iops="500", faults={"a": faults})
    (summary,) = outcome.rows("summary.all.csv")
    assert (summary["verdict"], outcome.code) == (verdict, code)
    assert "slo_missed" in summary["reasons"]


def test_a_search_that_ends_with_a_wide_interval_states_it(tmp_path: Path) -> None:
    """Too few probes: the interval is wider than asked, and how much longer would halve it is said."""
    go = f"find: {{ metric: {P99}, target: 1ms, probes: 5, resolution: 0.1% }}"
    outcome = controlled(tmp_path, go, queue(2000.0, 500_000))
    (summary,) = outcome.rows("summary.all.csv")
    assert summary["verdict"] == "valid" and "search_found[note]" in summary["reasons"]
    assert "more would halve that" in summary["reasons"] and outcome.code is ExitCode.OK


def test_a_hopeless_step_is_aborted_early(tmp_path: Path) -> None:
    go = f"measure: 30m, slo: {{ metric: {P99}, at_most: 400us, abort_early: true }}"
    outcome = controlled(tmp_path, go, noisy(steady(), 0.05, seed=4), iops="500")
    assert outcome.code is ExitCode.SLO_MISSED
    assert len(table(outcome, "all/all.csv")) < 20


def test_a_breached_threshold_runs_its_command(tmp_path: Path) -> None:
    said = tmp_path / "said"
    script = f"'echo $IVYPY_STEP $IVYPY_INSTANCE $IVYPY_SUBINTERVAL $IVYPY_THRESHOLD, $IVYPY_VALUE >> {said}; exit 3'"
    go = f"slo: {{ metric: {P99}, at_most: 400us, on_break: {{ command: [sh, -c, {script}], every: 20s }} }}"
    outcome = controlled(tmp_path / "runs", go, steady(), iops="500")
    told = f"{P99} at most 400 us, 501"
    assert said.read_text() == f"it all 1 {told}\nit all 5 {told}\n"
    events = [(row["kind"], row["text"]) for row in outcome.rows("events.csv")]
    assert events.count(("on_break", "sh ended with 3")) == 2
    shown = [text for kind, text in events if kind == "slo_breached"]
    assert shown == [f"{P99} at most 400 us: 501 us in subinterval {at}" for at in (1, 5)]


def test_each_threshold_runs_its_own_command(tmp_path: Path) -> None:
    """Also where metric and limit are the same, and the rollup, or only the command, is another."""
    said = tmp_path / "said"

    def threshold(name: str, rollup: str) -> str:
        script = f"'echo {name} $IVYPY_THRESHOLD >> {said}'"
        alert = f"{{ command: [sh, -c, {script}], every: 1h }}"
        return f"{{ metric: {P99}, rollup: {rollup}, at_most: 400us, on_break: {alert} }}"

    go = f"slo: [ {threshold('one', 'all')}, {threshold('two', 'host')}, {threshold('three', 'host')} ]"
    outcome = controlled(tmp_path / "runs", go, steady(), iops="500")
    per_host = f"{P99} per host at most 400 us"
    assert sorted(said.read_text().splitlines()) == [
        f"one {P99} at most 400 us",
        f"three {per_host}",
        f"two {per_host}",
    ]
    rows = table(outcome, "slo.csv")
    assert {(row["rollup"], row["worst_instance"]) for row in rows} == {("all", "all"), ("host", "a")}


# Steady state.


def test_a_steady_state_is_held_and_measured(tmp_path: Path) -> None:
    plant = over_time(lambda k: steady(2000.0 - 100 * min(k, 10)))
    outcome = controlled(tmp_path, "steady: { criterion: iops, limit: 2%, window: 20s, hold: true }", plant)
    assert outcome.code is ExitCode.OK
    rows = table(outcome, "steady.csv")
    attained = [row["stage"] for row in rows].index("attained")
    first = int(rows[attained]["subinterval"])
    assert first == 13 and window(outcome) == (first + 1, first + 4)
    assert float(outcome.rows("summary.all.csv")[0]["overall_iops"]) == pytest.approx(1000)


def test_a_steady_state_leaves_a_block_like_fios(tmp_path: Path) -> None:
    """The window that attained, as `ivypy steady --json` would print it."""
    plant = over_time(lambda k: steady(2000.0 - 100 * min(k, 10)))
    outcome = controlled(tmp_path, "steady: { criterion: iops, limit: 2%, window: 20s }", plant)
    block = json.loads((outcome.folder / "step0000.it" / "steady.json").read_text())
    last = table(outcome, "steady.csv")[-1]
    assert block["ss"] == "overall_iops:2.000000%" and block["instance"] == "all=all"
    assert (block["stage"], block["attained"], block["duration"]) == ("attained", 1, 20)
    assert block["max_deviation"] == pytest.approx(float(last["max_deviation"]))
    assert len(block["data"]["overall_iops"]) == 4
    assert block["data"]["overall_iops_mean"] == pytest.approx(float(last["mean"]))


def test_a_plant_that_is_never_steady_times_out(tmp_path: Path) -> None:
    plant = over_time(lambda k: steady(2000.0 - 20 * k))
    outcome = controlled(tmp_path, "steady: { criterion: iops, limit: 1%, window: 20s, timeout: 2m }", plant)
    assert outcome.code is ExitCode.NOT_REACHED
    assert "steady_not_reached" in outcome.rows("summary.all.csv")[0]["reasons"]


# Feedback control.


@pytest.mark.parametrize(
    "ends",
    ["auto: true", "low_iops: 200, high_iops: 1900, low_target: 550us, high_target: 10ms"],
    ids=["auto", "given"],
)
def test_pid_reaches_its_target_and_measures_there(tmp_path: Path, ends: str) -> None:
    plant = queue(2000.0, 500_000)
    outcome = controlled(tmp_path, f"control: {{ pid: {{ metric: {P99}, target: 1ms, {ends} }} }}", plant)
    assert outcome.code is ExitCode.OK, outcome.rows("summary.all.csv")
    (summary,) = outcome.rows("summary.all.csv")
    assert float(summary["overall_iops"]) == pytest.approx(1000, rel=0.02)
    assert float(summary[P99]) == pytest.approx(1000, rel=0.05)
    rows = table(outcome, "pid.csv")
    assert float(rows[-1]["iops"]) == pytest.approx(1000, rel=0.02) and rows[-1]["gain"]
    first, last = window(outcome)
    assert last - first == 5 and last < 30


def test_each_instance_has_a_controller_of_its_own(tmp_path: Path) -> None:
    pid = f"{{ metric: {P99}, target: 1ms, rollup: host, low_iops: 400, high_iops: 1900 }}"
    outcome = controlled(tmp_path, f"control: {{ pid: {pid} }}", queue(2000.0, 500_000), hosts="a, b")
    assert outcome.code is ExitCode.OK
    assert [float(row["overall_iops"]) for row in outcome.rows("summary.host.csv")] == pytest.approx(
        [1000] * 2, rel=0.02
    )
    assert {row["instance"] for row in table(outcome, "pid.csv")} == {"a", "b"}


def test_a_range_may_refer_to_a_step(tmp_path: Path) -> None:
    pid = f"{{ metric: {P99}, target: 1ms, low_iops: 20% of step max, high_iops: 95% of step max }}"
    outcome = controlled(tmp_path, f"control: {{ pid: {pid} }}", queue(2000.0, 500_000), more="  - go: max\n")
    assert outcome.code is ExitCode.OK
    assert float(outcome.rows("summary.all.csv")[1]["overall_iops"]) == pytest.approx(1000, rel=0.02)


@pytest.mark.slow
def test_feedback_follows_a_plant_that_becomes_slower(tmp_path: Path) -> None:
    # All I/Os of a subinterval take as long, so their p99 is that of the slowest subintervals: a few noises above.
    fast, slower = (noisy(queue(capacity, 500_000), 0.005, seed=8) for capacity in (2000.0, 1300.0))
    plant = over_time(lambda k: fast if k < 30 else slower)
    pid = f"{{ metric: {P99}, target: 1ms, low_iops: 200, high_iops: 1900 }}"
    outcome = controlled(tmp_path, f"measure: 200s, control: {{ pid: {pid} }}", plant)
    loads = {int(row["subinterval"]): float(row["iops"]) for row in table(outcome, "pid.csv")}
    assert loads[29] == pytest.approx(1000, rel=0.03)
    assert loads[60] == pytest.approx(650, rel=0.03)
    first, _ = window(outcome)
    assert first > 30, "a measurement begins behind the last change of gain"


# Several loads.


def test_a_staircase_has_a_row_for_each_level(tmp_path: Path) -> None:
    outcome = controlled(tmp_path, "measure: 10s, staircase: { start: 200, end: 600, step: 200 }", steady())
    assert outcome.code is ExitCode.OK
    rows = outcome.rows("summary.all.csv")
    assert [row["name"] for row in rows] == ["it:total_iops=200", "it:total_iops=400", "it:total_iops=600"]
    assert [float(row["overall_iops"]) for row in rows] == pytest.approx([200, 400, 600])
    assert [row["iops_setting"] for row in rows] == ["200", "400", "600"]
    assert [row["sustained"] for row in table(outcome, "staircase.csv")] == ["true"] * 3
    windows = [(row["first_subinterval"], row["last_subinterval"]) for row in table(outcome, "windows.csv")]
    assert windows == [("1", "2"), ("5", "6"), ("9", "10")]  # a subinterval of two loads, a warmup, two that count


def test_a_rate_that_changes_is_driven_as_the_profile_says(tmp_path: Path) -> None:
    outcome = controlled(tmp_path, "measure: 40s, profile: { ramp: [200, 1000, 200] }", steady())
    assert outcome.code is ExitCode.OK
    (row,) = outcome.rows("summary.all.csv")
    assert float(row["overall_iops"]) == pytest.approx(600, rel=0.01)
    assert (row["iops_setting"], row["iops"]) == ("600", "profile")
    rates = [float(row["total_iops"]) for row in table(outcome, "profile.csv")]
    assert rates == [200, 300, 500, 700, 900, 900, 700, 500, 300]  # a warmup, and eight that count
    due = [float(row["due_iops"]) for row in table(outcome, "profile.csv")]
    assert due == pytest.approx(rates, rel=0.02)


@pytest.mark.parametrize("die_at", range(1, 8))
def test_hosts_that_are_left_are_asked_for_the_whole_profile(tmp_path: Path, die_at: int) -> None:
    """From its beginning: the measurement starts again with them, and no row of it has another rate than it says."""
    go = "measure: 40s, profile: { ramp: [200, 1000, 200] }"
    outcome = controlled(tmp_path, go, steady(), hosts="a, b, c", faults={"c": Faults(die_at=die_at)})
    (row,) = outcome.rows("summary.all.csv")
    assert (row["iops_setting"], row["iops"], row["hosts_in"], row["hosts_of"]) == ("600", "profile", "2", "3")
    assert float(row["overall_iops"]) == pytest.approx(600, rel=0.02)
    first, last = window(outcome)
    measured = [one for one in table(outcome, "profile.csv") if first <= int(one["subinterval"]) <= last]
    assert [float(one["total_iops"]) for one in measured] == [300, 500, 700, 900, 900, 700, 500, 300]
    for one in measured:
        assert float(one["due_iops"]) == pytest.approx(float(one["total_iops"]), rel=0.03)


def test_a_staircase_without_end_stops_at_saturation(tmp_path: Path) -> None:
    more = "  - go: { name: climb, measure: 10s, staircase: { start: 400, step: 100% } }\n"
    more += "  - edit: { rollup: all=all, set: { total_iops: 50% of step climb } }\n"
    outcome = controlled(tmp_path, "measure: 10s", steady(1000.0), more)
    assert outcome.code is ExitCode.OK
    rows = outcome.rows("summary.all.csv")
    assert [(row["name"], row["verdict"]) for row in rows] == [
        ("climb:total_iops=400", "valid"), ("climb:total_iops=800", "valid"), ("climb:total_iops=1600", "invalid"),
        ("it", "valid"),
    ]  # fmt: skip
    assert float(rows[3]["overall_iops"]) == pytest.approx(400)  # half of the last level that was sustained


@pytest.mark.slow
@pytest.mark.parametrize(
    ("faults", "says"),
    [
        ({"b": Faults(die_at=25)}, "host_lost[partial] (total_iops=2500: b"),
        ({"b": Faults(die_at=27)}, "host_lost[partial] (total_iops=2500: b"),
        ({"a": Faults(clock_step={43: 0.2})}, "clock_stepped[partial] (total_iops=4500: a"),
        ({"a": Faults(clock_step={5: 0.2})}, "clock_stepped[partial] (a"),  # of all levels from then on
    ],
)
def test_a_level_that_its_hosts_were_short_for_is_not_where_the_storage_saturates(
    tmp_path: Path, faults: dict[str, Faults], says: str
) -> None:
    """The storage sustains 4000 IOPS, each host half of that."""
    go = "subinterval: 1s, warmup: 1s, measure: 4s, staircase: { start: 500, step: 500 }"
    outcome = controlled(tmp_path, go, queue(2000.0, 500_000), hosts="a, b", faults=faults)
    assert outcome.code is ExitCode.PARTIAL
    assert outcome.rows("summary.all.csv")[-1]["verdict"] == "invalid"
    (step,) = json.loads((outcome.folder / "run.json").read_text())["steps"]
    assert step["verdict"] == "partial" and any(reason.startswith(says) for reason in step["reasons"])
    assert not any(reason.startswith("load_not_sustained") for reason in step["reasons"])


def test_a_curve_is_fractions_of_the_maximum(tmp_path: Path) -> None:
    outcome = controlled(tmp_path, "iops_curve: [10%, 50%]", steady(1000.0))
    assert outcome.code is ExitCode.OK
    assert [float(row["overall_iops"]) for row in outcome.rows("summary.all.csv")] == pytest.approx([1000, 100, 500])


# Search.


def test_a_search_finds_the_load(tmp_path: Path) -> None:
    """Its p99 without noise is 1 ms at 1,000 IOPS; with noise of 1 % of a subinterval, 1.0233 times as much."""
    plant = noisy(queue(2000.0, 500_000), 0.01, seed=5)
    outcome = controlled(tmp_path, f"find: {{ metric: {P99}, target: 1ms, resolution: 5% }}", plant)
    assert outcome.code is ExitCode.OK, outcome.rows("summary.all.csv")
    last = table(outcome, "find.csv")[-1]
    truth = 2000 * (1 - 0.5 * 1.0233)
    assert float(last["low_iops"]) * 0.99 < truth < float(last["high_iops"]) * 1.01
    assert float(last["expected_iops"]) == pytest.approx(truth, rel=0.03)
    (summary,) = outcome.rows("summary.all.csv")
    load = float(summary["name"].removeprefix("it:total_iops="))
    assert load == pytest.approx(truth, rel=0.05) and "search_found[note]" in summary["reasons"]
    assert float(summary["overall_iops"]) == pytest.approx(load, rel=0.01)
    assert float(summary["iops_setting"]) == pytest.approx(load, rel=0.001)


@pytest.mark.parametrize(
    ("target", "says", "code"),
    [("400us", "already at the lowest", ExitCode.NOT_REACHED), ("1s", "never fails up to", ExitCode.OK)],
)
@pytest.mark.slow
def test_a_target_that_no_load_or_every_load_meets(tmp_path: Path, target: str, says: str, code: ExitCode) -> None:
    plant = noisy(queue(2000.0, 500_000), 0.01, seed=6)
    outcome = controlled(tmp_path, f"find: {{ metric: {P99}, target: {target} }}", plant)
    assert outcome.code is code
    assert says in outcome.rows("summary.all.csv")[0]["reasons"]


# A host that is lost.

LOST = {"c": Faults(die_at=8)}
PER_HOST = [
    f"measure: {{ metric: {IOPS}, rollup: host, accuracy: 2%, min: 30s, timeout: 30m }}",
    "steady: { criterion: iops, rollup: host, limit: 5%, window: 40s, timeout: 30m }",
    f"control: {{ pid: {{ metric: {P99}, target: 1ms, rollup: host, low_iops: 400, high_iops: 1900, timeout: 30m }} }}",
    f"control: {{ pid: {{ metric: {P99}, target: 1ms, rollup: host, auto: true, timeout: 30m }} }}",
    f"measure: 60s, slo: {{ metric: {P99}, at_most: 5ms, rollup: host }}",
]


@pytest.mark.slow
@pytest.mark.parametrize("go", PER_HOST, ids=["measure", "steady", "pid", "auto", "slo"])
def test_nobody_waits_for_a_host_that_is_lost(tmp_path: Path, go: str) -> None:
    """What is asked of each host is asked of those that are left; that one is lost is what is said."""
    plant = noisy(queue(2000.0, 500_000), 0.005, seed=9)
    outcome = controlled(tmp_path, go, plant, iops="500", hosts="a, b, c", faults=LOST)
    assert outcome.code is ExitCode.PARTIAL, outcome.rows("summary.host.csv")
    by_name = {
        row["rollup_instance"]: row for row in [*outcome.rows("summary.host.csv"), *outcome.rows("summary.all.csv")]
    }
    assert by_name["c"]["verdict"] == by_name["all"]["verdict"] == "partial"
    assert "invalid" not in {row["verdict"] for row in by_name.values()}
    assert (
        "host_lost[partial] (c: " in by_name["c"]["reasons"] and "host_lost[partial] (c: " in by_name["all"]["reasons"]
    )
    assert not any("slo_missed" in row["reasons"] or "not_" in row["reasons"] for row in by_name.values())
    assert len(table(outcome, "all/all.csv")) < 60, "minutes, not the timeout"


@pytest.mark.slow
def test_a_probe_is_reported_with_the_load_that_it_had(tmp_path: Path) -> None:
    """Of three hosts one is lost: a total is that of the two that are left."""
    plant = noisy(queue(2000.0, 500_000), 0.005, seed=9)
    go = f"find: {{ metric: {P99}, target: 1ms, resolution: 5% }}"
    outcome = controlled(tmp_path, go, plant, hosts="a, b, c", faults={"c": Faults(die_at=20)})
    rows = table(outcome, "find.csv")
    assert [float(row["achieved_iops"]) for row in rows] == pytest.approx(
        [float(row["total_iops"]) for row in rows], rel=0.02
    )
    assert 1900 < float(rows[-1]["highest_pass_iops"]) < 2000
    (summary,) = outcome.rows("summary.all.csv")
    total = float(summary["name"].partition("=")[2])
    assert float(summary["overall_iops"]) == pytest.approx(total, rel=0.02)
    assert float(summary["iops_setting"]) == pytest.approx(total, rel=1e-3)
    assert sum(row["text"].startswith("control's edit failed") for row in outcome.rows("events.csv")) <= 1


def test_a_level_after_a_loss_is_of_the_load_in_its_name(tmp_path: Path) -> None:
    go = "measure: 20s, staircase: { start: 300, end: 900, step: 300 }"
    outcome = controlled(tmp_path, go, steady(), hosts="a, b, c", faults={"c": Faults(die_at=9)})
    rows = outcome.rows("summary.all.csv")
    assert [(row["verdict"], float(row["overall_iops"]), row["iops_setting"]) for row in rows] == [
        ("valid", 300, "300"), ("partial", 600, "600"), ("partial", 900, "900"),
    ]  # fmt: skip


def test_a_finding_in_a_level_does_not_affect_earlier_levels(tmp_path: Path) -> None:
    go = "measure: 10s, staircase: { start: 200, end: 600, step: 200 }"
    stepped = controlled(tmp_path / "stepped", go, steady(), hosts="a, b", faults={"b": Faults(clock_step={9: 0.2})})
    verdicts = [row["verdict"] for row in stepped.rows("summary.all.csv")]
    assert verdicts == ["valid", "valid", "partial"]
    assert "clock_stepped" in stepped.rows("summary.all.csv")[2]["reasons"]
    failed = controlled(tmp_path / "failed", go, steady(), faults={"a": Faults(errors_at=10)}, end="on_io_error: stop")
    rows = failed.rows("summary.all.csv")
    assert [row["verdict"] for row in rows] == ["valid", "valid", "invalid"] and failed.code is ExitCode.INVALID
    assert "io_errors" in rows[2]["reasons"]


FIND = """\
name: sim
hosts: [a, b]
engine: {{ backend: "null" }}
luns: {{ create: {{ path: /x/0, size: 1GiB }} }}
workloads: {{ w: {{ maxtags: 8, iops: max }} }}
rollups: [ workload ]
steps: [ go: {{ name: it, subinterval: 1s, warmup: 1s, find: {{ metric: {metric}, target: 1ms, resolution: 5% }} }} ]
"""


def by_tags(offered: float, parameters: Parameters) -> tuple[float, int]:
    return queue(250.0 * parameters.maxtags, 500_000)(offered, parameters)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "found", "says"),
    [
        (["workload=w", "maxtags=2"], 490, "edited[note]"),  # a quarter of what it would find
        (["all=all", "total_iops=100"], 1936, ""),
        ([], 1936, ""),  # a pause
    ],
)
def test_a_search_that_is_edited_finds_what_the_load_in_force_bears(
    tmp_path: Path, change: list[str], found: float, says: str
) -> None:
    """After the first probe that passed."""

    async def visit(running: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(66)
        if change:
            await running.api.edit(change, True, "me")
        else:
            await running.api.pause("me")
            await asyncio.sleep(5)
            await running.api.unpause("me")

    slaves = {name: SimulatedSlave(name, plant=noisy(by_tags, 0.005, 9)) for name in "ab"}
    outcome = stage(tmp_path, visit, FIND.format(metric="overall_response_us_mean"), slaves)
    (row,) = outcome.rows("summary.all.csv")
    assert row["verdict"] == "valid" and says in row["reasons"]
    assert float(row["overall_iops"]) == pytest.approx(found, rel=0.05)
    probes = [int(one["probe"]) for one in table(outcome, "find.csv")]
    assert probes == sorted(set(probes))
