"""`on_loss: redistribute`: the total stays what it was when a host is lost, in the step and in those after it."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.exit_codes import ExitCode
from ivypy.master.rollup.instances import Rollups
from ivypy.master.run.session.run import Run
from ivypy.master.run.setup.resolve_settings import shared_anew
from ivypy.protocol.parameters import ENDLESS, MAX, Iops, Parameters, Until, VolumeKind
from tests.support.rollup import instance
from tests.support.simulated.runs import SimulatedRun, stage
from tests.support.simulated.slave import Faults, SimulatedSlave, steady

PLAN = """\
name: sim
hosts: [a, b, c]
engine: {{ backend: "null" }}
luns: {{ create: {{ path: "/x/{{}}", size: 1GiB, count: 2 }} }}
workloads:
  oltp: {{ maxtags: 4, iops: 100 }}
  scan: {{ iosequencer: sequential, maxtags: 4, iops: {scan} }}
rollups: [ host, workload ]
{on_loss}
lease: {lease}
defaults: {{ subinterval: 1s, warmup: 2s, measure: {measure} }}
steps: [ {steps} ]
"""
REDISTRIBUTED = "on_loss: redistribute"
TOTAL = 600.0  # of oltp: three hosts, two LUNs


async def nobody(run: Run, staged: SimulatedRun) -> None:
    """Nobody does anything meanwhile."""


def staged(
    root: Path,
    on_loss: str = REDISTRIBUTED,
    scan: str = "max",
    steps: str = "go: one, go: two",
    lease: str = "10s",
    measure: str = "20s",
    visit: Any = nobody,
    **faults: Faults,
) -> SimulatedRun:
    slaves = {name: SimulatedSlave(name, plant=steady(5000.0), faults=faults.get(name)) for name in "abc"}
    return stage(
        root, visit, PLAN.format(on_loss=on_loss, scan=scan, steps=steps, lease=lease, measure=measure), slaves
    )


def iops(outcome: SimulatedRun, step: str) -> list[float]:
    """Of oltp, subinterval by subinterval."""
    (folder,) = outcome.folder.glob(f"step*.{step}")
    rows = outcome.rows(f"{folder.name}/workload/oltp.csv")
    return [float(row["overall_iops"]) for row in rows if row["phase"] != "cooldown"]


@pytest.mark.slow
def test_the_others_drive_what_a_lost_host_was_to_drive(tmp_path: Path) -> None:
    outcome = staged(tmp_path, b=Faults(die_at=8))
    series = iops(outcome, "one")
    assert outcome.code is ExitCode.PARTIAL
    assert series[:8] == [TOTAL] * 8 and series[8] == pytest.approx(TOTAL * 2 / 3)
    assert series[-20:] == pytest.approx([TOTAL] * 20), "all of the measurement, which begins after it"
    (event,) = [row for row in outcome.rows("events.csv") if row["kind"] == "redistributed" and row["host"]]
    assert (event["host"], event["text"]) == ("b", "the others drive its 200 IOPS")
    (row, later) = outcome.rows("summary.all.csv")
    assert "edited[note] (the others drive the load of b, by on_loss, in subinterval" in row["reasons"]
    assert iops(outcome, "two") == pytest.approx([TOTAL] * len(iops(outcome, "two"))), "and of the next step"
    assert later["verdict"] == "partial" and "edited" not in later["reasons"]
    assert outcome.events("redistributed")[-1] == "step two: the others drive what absent hosts were to drive"


@pytest.mark.slow
def test_a_workload_at_max_is_left_as_it_is(tmp_path: Path) -> None:
    outcome = staged(tmp_path, b=Faults(die_at=8))
    for name in "ac":
        assert sorted(map(str, outcome.iops(name))) == ["150.0", "150.0", "max", "max"]


@pytest.mark.slow
def test_unless_the_plan_says_so_the_load_of_a_lost_host_is_missing(tmp_path: Path) -> None:
    outcome = staged(tmp_path, on_loss="", b=Faults(die_at=8))
    assert iops(outcome, "one")[9:] == pytest.approx([TOTAL * 2 / 3] * len(iops(outcome, "one")[9:]))
    assert not outcome.events("redistributed")


@pytest.mark.slow
def test_a_host_that_may_still_drive_keeps_its_load_until_its_lease_ends(tmp_path: Path) -> None:
    """Else the storage would have it twice. It goes silent, and is lost before its lease has ended."""
    outcome = staged(tmp_path, b=Faults(silent_from=8))
    events = [row for row in outcome.rows("events.csv") if (row["host"], row["step"]) == ("b", "0")]
    rows = {row["kind"]: int(row["subinterval"]) for row in events}
    assert rows["redistributed"] >= rows["lost"] + 4
    assert iops(outcome, "one")[-20:] == pytest.approx([TOTAL] * 20)


@pytest.mark.slow
def test_each_of_several_lost_hosts_is_shared_once(tmp_path: Path) -> None:
    outcome = staged(tmp_path, b=Faults(die_at=6), c=Faults(die_at=12))
    assert iops(outcome, "one")[-20:] == pytest.approx([TOTAL] * 20)
    assert sorted(map(str, outcome.iops("a"))) == ["300.0", "300.0", "max", "max"]


@pytest.mark.slow
def test_while_the_run_is_paused_it_waits(tmp_path: Path) -> None:
    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(6.0)
        await run.api.pause("anna")
        await asyncio.sleep(8.0)
        await run.api.unpause("anna")

    outcome = staged(tmp_path, scan="0", visit=visit, b=Faults(die_at=9))
    assert iops(outcome, "one")[-20:] == pytest.approx([TOTAL] * 20)
    events = [(row["kind"], row["host"]) for row in outcome.rows("events.csv") if row["step"] == "0"]
    assert events.index(("redistributed", "b")) > events.index(("unpause", "")) > events.index(("lost", "b"))


@pytest.mark.slow
@pytest.mark.parametrize("go", ["profile: { ramp: [1200, 1200] }", "staircase: { start: 1200, step: 0.1%, end: 1200 }"])
def test_what_control_sets_is_shared_by_control_alone(tmp_path: Path, go: str) -> None:
    outcome = staged(tmp_path, scan="100", steps=f"go: {{ name: one, {go} }}", b=Faults(die_at=8))
    rows = outcome.rows("step0000.one/all/all.csv")
    assert {round(float(row["overall_iops"])) for row in rows[12:] if row["phase"] != "cooldown"} == {1200}


@pytest.mark.slow
def test_what_was_asked_for_counts_the_load_of_a_lost_host_once(tmp_path: Path) -> None:
    outcome = staged(tmp_path, b=Faults(die_at=8))
    rows = [row for row in outcome.rows("summary.workload.csv") if row["workload"] == "oltp"]
    assert [float(row["iops_setting"]) for row in rows] == [TOTAL, TOTAL]


@pytest.mark.slow
def test_a_host_that_cannot_be_prepared_for_a_later_step_is_shared_in_it(tmp_path: Path) -> None:
    steps = "go: one, edit: { rollup: workload=oltp, set: { iops: 200 } }, go: two"
    outcome = staged(tmp_path, steps=steps, b=Faults(refuse={"edit_workloads": "there is no room"}))
    assert iops(outcome, "two")[-20:] == pytest.approx([2 * TOTAL] * 20)


@pytest.mark.slow
def test_a_load_that_was_on_its_way_to_a_host_that_is_lost_is_shared_too(tmp_path: Path) -> None:
    """c is silent already when it is to drive its part of b's load."""
    outcome = staged(tmp_path, b=Faults(silent_from=8), c=Faults(silent_from=16))
    assert iops(outcome, "one")[-20:] == pytest.approx([TOTAL] * 20)


@pytest.mark.slow
def test_a_host_that_goes_silent_in_a_pause_is_shared_with_the_rate_from_before(tmp_path: Path) -> None:
    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(6.0)
        await run.api.pause("anna")
        await asyncio.sleep(8.0)
        await run.api.unpause("anna")

    outcome = staged(tmp_path, scan="0", visit=visit, b=Faults(silent_from=11))
    assert iops(outcome, "one")[-20:] == pytest.approx([TOTAL] * 20)


EDITS = [
    ([(20.0, "workload=oltp total_iops=1200")], 1200.0),
    ([(20.0, "workload=oltp total_iops=+10%")], 1.1 * TOTAL),
    ([(20.0, "workload=oltp iops=*0.5")], 0.5 * TOTAL),
    ([(10.0, "workload=oltp iops=*0.5")], 0.5 * TOTAL),  # between the loss and the end of the lease
    ([(10.0, "workload=oltp total_iops=900")], 900.0),
]


@pytest.mark.slow
@pytest.mark.parametrize(("edits", "total"), EDITS)
def test_an_edit_is_of_the_whole_load_whether_or_not_a_host_is_lost(
    tmp_path: Path, edits: list[tuple[float, str]], total: float
) -> None:
    async def visit(run: Run, staged: SimulatedRun) -> None:
        for at_s, words in edits:
            await asyncio.sleep(at_s)
            await run.api.edit(words.split(), False, "anna")

    outcome = staged(tmp_path, scan="0", visit=visit, b=Faults(silent_from=6))
    assert iops(outcome, "one")[-15:] == pytest.approx([total] * 15)


@pytest.mark.slow
def test_a_host_whose_lease_goes_on_into_the_next_step_is_shared_in_it(tmp_path: Path) -> None:
    outcome = staged(tmp_path, lease="60s", measure="60s", b=Faults(silent_from=60))
    series = iops(outcome, "two")
    assert series[0] == pytest.approx(TOTAL * 2 / 3) and series[-20:] == pytest.approx([TOTAL] * 20)
    first = next(place for place, one in enumerate(series) if one > TOTAL * 0.99)
    assert first >= 10, "the quiet time before the step is 15 s of a lease of 60 s"


def test_a_workload_that_ends_by_itself_keeps_its_own() -> None:
    """What its volume was is driven in the end by nobody, or by all of them sooner."""
    rollups = Rollups.build([instance(0, "a"), instance(0, "b")], [])
    ending = {(host, 0): Parameters(maxtags=1, iops=100.0, until=Until(VolumeKind.IOS, 1000)) for host in "ab"}
    assert shared_anew(ending, rollups, "b", "a") == {}
    assert len(shared_anew({key: replace(one, until=ENDLESS) for key, one in ending.items()}, rollups, "b", "a")) == 2


HOSTS = "abcd"
RATES = st.one_of(st.just(MAX), st.just(0.0), st.floats(0.1, 1e6))


@given(
    st.lists(st.tuples(st.sampled_from(HOSTS), st.sampled_from("uvw"), RATES), min_size=1, max_size=12),
    st.sets(st.sampled_from(HOSTS)),
)
def test_a_workloads_total_stays_while_any_of_its_rates_are_left(
    drawn: list[tuple[str, str, Iops]], lost: set[str]
) -> None:
    instances = [instance(number, host, workload) for number, (host, workload, _) in enumerate(drawn)]
    parameters = {(host, number): Parameters(maxtags=1, iops=rate) for number, (host, _, rate) in enumerate(drawn)}
    left = set(HOSTS) - lost
    changed = shared_anew(parameters, Rollups.build(instances, []), lost, left)
    after = parameters | changed
    assert all((one.iops == 0.0) is (host in lost) for (host, _), one in changed.items()), "shared once, and no more"
    for workload in "uvw":
        keys = [
            (one.host, one.number)
            for one in instances
            if one.workload == workload and parameters[one.host, one.number].iops != MAX
        ]
        total, kept = (
            sum(float(parameters[key].iops) for key in those) for those in (keys, [k for k in keys if k[0] in left])
        )
        now = sum(float(after[key].iops) for key in keys if key[0] in left)
        assert now == pytest.approx(total if kept else 0.0)
        for key in (key for key in keys if key[0] in left and kept):
            assert float(after[key].iops) * kept == pytest.approx(float(parameters[key].iops) * total)
    assert all(changed[key].iops != MAX and parameters[key].iops not in (MAX, 0.0) for key in changed)
    assert not shared_anew(after, Rollups.build(instances, []), lost, left)
