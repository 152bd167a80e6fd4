"""Whole runs on simulated hosts, one of which is late: the figures and verdicts are those of a run without a hiccup."""

import random
from pathlib import Path

import pytest

from ivypy.master.exit_codes import ExitCode
from ivypy.master.output.histogram_db import TotalMoment
from ivypy.master.output.histogram_db_reader import HistogramReader
from ivypy.protocol.counters import Moment
from ivypy.protocol.payload import CpuTaken
from tests.support.simulated.plants import noisy, queue
from tests.support.simulated.runs import SimulatedHosts, SimulatedRun, controlled
from tests.support.simulated.runs import run as run_of
from tests.support.simulated.slave import Faults, SimulatedSlave, steady

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
@pytest.mark.parametrize("name", CONTROLS)
def test_control_ends_where_it_ends_without_a_hiccup(tmp_path: Path, name: str) -> None:
    load = "max" if name in ("pid", "find", "curve") else "500"

    def ended(folder: str, faults: dict[str, Faults]) -> SimulatedRun:
        plant = noisy(queue(2000.0, 500_000), 0.005, seed=9)
        return controlled(tmp_path / folder, CONTROLS[name], plant, iops=load, hosts="a, b", faults=faults)

    undisturbed = ended("undisturbed", {})
    assert undisturbed.code is ExitCode.OK
    for kind in ("late", "stall", "frozen"):
        chance = random.Random(f"{name} {kind}")
        faults = hiccup(kind, chance.randrange(20), chance.uniform(0.5, 4.5))
        disturbed = ended(kind, {"b": faults})
        assert disturbed.code is ExitCode.OK
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


def test_late_results_of_several_hosts_are_in_the_sums_of_each_subinterval(tmp_path: Path) -> None:
    """They come at the same time, and are stored together."""
    faults = {host: hiccup("late", 5, 8.0) for host in "bcd"}
    complete(controlled(tmp_path, THIRTY, steady(), iops="500", hosts="a, b, c, d", faults=faults))


STALLED = CpuTaken(stalled_ns=3 * 10**9, longest_stall_ns=3 * 10**9)
THIRTY = f"{SECONDS}measure: 30s"


def complete(run: SimulatedRun, subintervals: int = 30) -> None:
    """Nothing is missing, and nothing of before or after is in."""
    assert run.code is ExitCode.OK, run.rows("summary.all.csv")[0]["reasons"]
    (row,) = run.rows("summary.all.csv")
    assert (row["verdict"], row["hosts_in"]) == ("valid", row["hosts_of"])
    assert int(row["last_subinterval"]) - int(row["first_subinterval"]) + 1 >= subintervals
    measured_s = int(row["last_subinterval"]) - int(row["first_subinterval"]) + 1
    assert int(row["overall_service_count"]) == pytest.approx(500 * int(row["hosts_of"]) * measured_s, rel=1e-3)


@pytest.mark.parametrize("hosts", ["a", "a, b"])
def test_a_result_that_covers_several_subintervals_is_not_set_aside_alone(tmp_path: Path, hosts: str) -> None:
    """A frozen slave is a disturbance; what it covers is in the measurement already."""
    faults = hiccup("frozen", 8, 3.0)
    faults.taken = {12: STALLED}
    complete(controlled(tmp_path, THIRTY, steady(), iops="500", hosts=hosts, faults={"a": faults}))


def test_a_measurement_is_summed_again_where_its_first_subintervals_have_no_result(tmp_path: Path) -> None:
    """Both hosts were frozen; a later result forces the sum from the store."""
    both = {name: hiccup("frozen", 0, 3.0) for name in "ab"}
    for faults in both.values():
        faults.taken = {4: STALLED}
    both["b"].late[12] = 8.0
    complete(controlled(tmp_path, THIRTY, steady(), iops="500", hosts="a, b", faults=both))


def test_a_late_host_that_is_left_alone_is_waited_for(tmp_path: Path) -> None:
    """The other one dies a second before its results come."""
    faults = {"a": Faults(die_at=13), "b": hiccup("late", 5, 9.0)}
    run = controlled(tmp_path, THIRTY, steady(), iops="500", hosts="a, b", faults=faults)
    assert run.code is ExitCode.PARTIAL
    (row,) = run.rows("summary.host.csv")[1:]
    assert row["host"] == "b" and int(row["overall_service_count"]) == pytest.approx(30 * 500, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("drift_ppm", "subintervals"), [(0.0, 20), (490.0, 206)])
def test_what_never_comes_is_counted_however_clocks_drift(tmp_path: Path, drift_ppm: float, subintervals: int) -> None:
    """By subintervals: where clocks drift, the lengths of these miss two whole ones by more than a tenth of one."""
    assert not drift_ppm or drift_ppm * 1e-6 * subintervals > 0.1
    text = f"""\
name: sim
hosts: [a, b]
engine: {{ backend: "null" }}
lease: 60s
luns: {{ create: {{ path: /x/0, size: 1GiB }} }}
workloads: {{ w: {{ maxtags: 8, iops: 500 }} }}
rollups: [ host ]
steps: [ go: {{ name: it, subinterval: 1s, warmup: 1s, measure: {subintervals}s }} ]
"""
    b = SimulatedSlave("b", drift_ppm=drift_ppm, faults=hiccup("frozen", subintervals - 2, 15.0))
    run = run_of(tmp_path, text, SimulatedHosts(a=SimulatedSlave("a"), b=b))
    assert run.code is ExitCode.PARTIAL
    assert f"missing in 2 of {subintervals} subintervals" in run.rows("summary.all.csv")[0]["reasons"]


def test_a_late_result_that_reaches_back_before_the_measurement_is_not_in_it(tmp_path: Path) -> None:
    """It covers 1 to 8 and comes after control has decided; the measurement begins with 5."""
    faults = hiccup("frozen", 0, 7.5)
    faults.late[8] = 9.0
    go = "subinterval: 1s, warmup: 5s, measure: 40s"
    run = controlled(tmp_path, go, steady(), iops="500", hosts="a, b", faults={"b": faults}, end="lease: 60s")
    (row,) = run.rows("summary.host.csv")[1:]
    assert "missing in " in row["reasons"] and run.code is ExitCode.PARTIAL
    within = int(row["overall_service_count"]) / 500
    assert int(row["first_subinterval"]) == 5 and within == pytest.approx(40 - 4, abs=0.1)


def test_a_half_width_is_of_subintervals_that_all_hosts_are_in(tmp_path: Path) -> None:
    run = controlled(tmp_path, THIRTY, steady(), iops="500", hosts="a, b", faults={"b": hiccup("frozen", 8, 3.0)})
    assert float(run.rows("summary.all.csv")[0]["overall_iops_half_width"]) == pytest.approx(0.0, abs=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("delay_s", [0.005, 0.2, 1.3])
def test_a_host_that_is_farther_away_than_the_others_is_back_after_a_hiccup(tmp_path: Path, delay_s: float) -> None:
    """Each of its results arrives after the others', in a later subinterval even: they do not have to wait for each."""
    far = SimulatedSlave("b", delay_s=delay_s, faults=hiccup("late", 5, 8.0))
    text = """\
name: sim
hosts: [a, b]
engine: { backend: "null" }
luns: { create: { path: /x/0, size: 1GiB } }
workloads: { w: { maxtags: 8, iops: 500 } }
rollups: [ host ]
steps: [ go: { name: it, subinterval: 1s, warmup: 1s, measure: 40s } ]
"""
    run = run_of(tmp_path, text, SimulatedHosts(a=SimulatedSlave("a"), b=far))
    complete(run, 40)
    without = [row for row in run.rows("step0000.it/all/all.csv") if row["hosts_in"] == "1"]
    assert 0 < len(without) < 12
    assert [row["kind"] for row in run.rows("events.csv") if row["host"] == "b"] == ["late", "back"]


def both(tmp_path: Path, go: str, iops: str, far: SimulatedSlave) -> SimulatedRun:
    """A run of two hosts, whose focus is on both together; the second is slower."""
    text = f"""\
name: sim
hosts: [a, b]
engine: {{ backend: "null" }}
luns: {{ create: {{ path: /x/0, size: 1GiB }} }}
workloads: {{ w: {{ maxtags: 8, iops: {iops} }} }}
rollups: [ host ]
steps: [ go: {{ name: it, subinterval: 1s, warmup: 1s, {go} }} ]
"""
    near = SimulatedSlave("a", plant=noisy(queue(2000.0, 500_000), 0.005, seed=9))
    return run_of(tmp_path, text, SimulatedHosts(a=near, b=far))


def far_behind(tmp_path: Path, go: str, iops: str, late: dict[int, float]) -> SimulatedRun:
    """The second host is farther away, and its results come late."""
    plant = noisy(queue(2000.0, 900_000), 0.005, seed=8)
    return both(tmp_path, go, iops, SimulatedSlave("b", plant=plant, delay_s=0.005, faults=Faults(late=dict(late))))


ON_BOTH = {
    "steady": ("steady: { criterion: iops, limit: 5%, window: 10s, hold: true, on_leave: stop, timeout: 30m }", "500"),
    "restart": (
        "steady: { criterion: iops, limit: 5%, window: 10s, hold: true, on_leave: restart, timeout: 30m }",
        "500",
    ),
    "measure": ("measure: { metric: overall_iops, accuracy: 2%, min: 30s, timeout: 30m }", "500"),
    "abort": ("measure: 30s, slo: { metric: overall_iops, at_least: 900, abort_early: true }", "500"),
    "find": (f"find: {{ metric: {MEAN}, target: 1ms, resolution: 5% }}", "max"),
    "pid": (f"measure: 8s, control: {{ pid: {{ metric: {MEAN}, target: 1ms, auto: true }} }}", "max"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ON_BOTH)
def test_control_concludes_nothing_from_a_part_of_the_hosts(tmp_path: Path, name: str) -> None:
    """Late by so much that control has to go on without it; farther away than the other; half of the load."""
    without = far_behind(tmp_path / "in time", *ON_BOTH[name], {})
    assert without.code is ExitCode.OK
    for at in (1, 14):
        late = far_behind(tmp_path / str(at), *ON_BOTH[name], {at: 8.0})
        assert late.events("late") and late.code is ExitCode.OK, late.rows("summary.all.csv")[0]["reasons"]
        assert iops(late) == pytest.approx(iops(without), rel=0.05), at
        assert verdicts(late) == verdicts(without), at


@pytest.mark.parametrize("at", [0, 3])
def test_windows_csv_says_in_the_end_what_the_summary_says(tmp_path: Path, at: int) -> None:
    """Its row was written when the level closed, with half of the load, or less: the others missed their threshold."""
    go = f"{STAIRS}, slo: {{ metric: overall_iops, at_least: 190 }}"
    run = controlled(tmp_path, go, steady(), hosts="a, b", faults={"b": hiccup("late", at, 10.0)}, end="lease: 60s")
    windows, levels = run.rows("step0000.it/windows.csv"), run.rows("summary.all.csv")
    assert len(windows) == 3 and run.code is ExitCode.OK
    for window, level in zip(windows, levels, strict=True):
        assert level["verdict"] == "valid" and "at least" not in window["why"], window["why"]
        for one in ("first_subinterval", "last_subinterval"):
            assert window[one] == level[one]
        assert window["hosts"] == level["hosts_in"] == "2"


ALWAYS = {number: 8.0 for number in range(2000)}
BY_HOST = "measure: { metric: overall_iops, rollup: host, accuracy: 2%, min: 30s, timeout: 30m }"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["measure", "steady", "by host", "find"])
def test_a_host_that_is_always_late_ends_no_step_without_a_row(tmp_path: Path, name: str) -> None:
    """Control goes by the other after a minute; what it concludes is partial, though all results come in the end."""
    run = far_behind(tmp_path, *{**ON_BOTH, "by host": (BY_HOST, "500")}[name], ALWAYS)
    (row,) = run.rows("summary.all.csv")
    assert run.code is ExitCode.PARTIAL, row["reasons"]
    assert "host_not_awaited[partial] (b: control went by the others alone in subintervals 60 to " in row["reasons"]
    assert row["hosts_in"] == "2" and int(row["first_subinterval"]) >= 60
    assert run.events("not_awaited") == ["60 subintervals in a row were without it: control goes by the others"]
    of_each = {one["host"]: "host_not_awaited" in one["reasons"] for one in run.rows("summary.host.csv")}
    assert of_each == {"a": False, "b": True}


@pytest.mark.slow
def test_feedback_of_each_host_finds_no_range_for_one_that_is_always_late(tmp_path: Path) -> None:
    go = f"measure: 8s, control: {{ pid: {{ metric: {MEAN}, target: 1ms, rollup: host, auto: true }} }}"
    run = far_behind(tmp_path, go, "max", ALWAYS)
    (row,) = run.rows("summary.all.csv")
    assert run.code is ExitCode.NOT_REACHED and int(row["last_subinterval"]) < 90
    assert "target_not_held[invalid] (b did no I/O at max that is known)" in row["reasons"]


@pytest.mark.slow
def test_a_host_that_is_in_time_again_after_a_minute_is_measured_with_the_others(tmp_path: Path) -> None:
    """A measurement of the other alone had begun by then."""
    run = far_behind(tmp_path, BY_HOST, "500", {number: 8.0 for number in range(70)})
    (row,) = run.rows("summary.all.csv")
    assert run.code is ExitCode.OK and run.events("not_awaited"), row["reasons"]
    assert int(row["first_subinterval"]) >= 70 and float(row["overall_iops"]) == pytest.approx(1000, rel=0.01)


@pytest.mark.slow
def test_a_fixed_time_waits_for_nobody_and_is_whole(tmp_path: Path) -> None:
    """It concludes nothing; what comes late is in the sums."""
    run = far_behind(tmp_path, "measure: 70s", "500", ALWAYS)
    (row,) = run.rows("summary.all.csv")
    assert (run.code, row["verdict"], run.events("not_awaited")) == (ExitCode.OK, "valid", [])
    assert (row["first_subinterval"], row["last_subinterval"]) == ("1", "70")


def test_errors_that_end_a_run_are_in_the_level_whose_result_came_late(tmp_path: Path) -> None:
    """Of level one, which ends with subinterval 3; the other two have none."""
    faults = hiccup("late", 3, 7.5)
    faults.errors_at = 3
    stairs = f"{SECONDS}measure: 3s, staircase: {{ start: 200, end: 600, step: 200 }}"
    run = controlled(
        tmp_path, stairs, steady(), hosts="a, b", faults={"b": faults}, end="lease: 60s\non_io_error: stop"
    )
    levels = run.rows("summary.all.csv")
    assert run.code is ExitCode.INVALID and len(levels) > 1
    assert "io_errors[invalid] (on_io_error: stop)" in levels[0]["reasons"]


def test_a_level_is_judged_by_subintervals_that_all_hosts_are_in(tmp_path: Path) -> None:
    run = controlled(tmp_path, STAIRS, steady(), hosts="a, b", faults={"b": hiccup("late", 3, 9.0)})
    levels = [float(row["achieved_iops"]) for row in run.rows("step0000.it/staircase.csv")]
    assert levels[0] == pytest.approx(200, rel=1e-3)


@pytest.mark.parametrize("by_s", [0.4, -0.4])
def test_a_clock_that_is_stepped_while_its_host_is_late_is_reported(tmp_path: Path, by_s: float) -> None:
    """A host that was suspended, or moved, has both at once: its boundaries lie elsewhere than the others'."""
    faults = hiccup("late", 5, 8.0)
    faults.clock_step[8] = by_s
    run = controlled(tmp_path, f"{SECONDS}measure: 30s", steady(), hosts="a, b", faults={"b": faults})
    assert run.code is ExitCode.PARTIAL
    reasons = run.rows("summary.all.csv")[0]["reasons"]
    assert "clock_stepped[partial] (b: by " in reasons and "detected in subinterval 8)" in reasons
    (event,) = [row for row in run.rows("events.csv") if row["kind"] == "clock_stepped"]
    assert event["host"] == "b"


@pytest.mark.slow
def test_a_host_that_is_late_again_and_again_is_one_reason(tmp_path: Path) -> None:
    faults = Faults(late={at: 8.0 for at in range(5, 50, 14)})
    run = controlled(tmp_path, f"{SECONDS}measure: 60s", steady(), hosts="a, b", faults={"b": faults})
    (row,) = run.rows("summary.all.csv")
    assert row["reasons"].count("host_late") == 1
    assert "host_late[note] (b: no result of subinterval 5 in time, and 3 times more" in row["reasons"]
    assert [event["kind"] for event in run.rows("events.csv")].count("late") == 4


@pytest.mark.slow
@pytest.mark.parametrize("at", [74, 75, 76])
def test_a_probe_may_begin_with_a_result_that_reaches_back(tmp_path: Path, at: int) -> None:
    """The probe that passes begins with subinterval 76: the first that is used is all of a covering result, or none."""
    plant = noisy(queue(2000.0, 500_000), 0.005, seed=9)
    faults = {"b": hiccup("frozen", at, 2.2)}
    run = controlled(tmp_path, CONTROLS["find"], plant, hosts="a, b", faults=faults)
    assert verdicts(run) == ["valid"], run.rows("summary.all.csv")[0]["reasons"]
    assert iops(run) == pytest.approx([1960], rel=0.05)
