"""Hosts that are missing at the beginning, and hosts that are lost and come back, in whole runs on simulated hosts."""

import asyncio
import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import pytest

from ivypy.master.errors import HostsError
from ivypy.master.exit_codes import ExitCode
from ivypy.master.plan.load import read
from ivypy.master.plan.read.yaml_positions import PlanFaults
from ivypy.protocol import messages as m
from tests.support.simulated.runs import TWO_STEPS, SimulatedHosts, SimulatedRun, run, slaves
from tests.support.simulated.slave import Faults, SimulatedSlave

pytestmark = pytest.mark.slow

THREE = (
    TWO_STEPS.split("rollups:")[0]
    + """\
rollups: [ host, port ]
defaults: { subinterval: 1s, warmup: 1s, measure: 3s }
steps: [ go: one, go: two, go: three ]
"""
)


def lost_and_back(tmp_path: Path, *again: SimulatedSlave | None, text: str = THREE, **faults: Faults) -> SimulatedRun:
    """Host b dies in the first step; `again` are its next slaves."""
    lab = SimulatedHosts(**slaves(b=Faults(die_at=1), **faults))
    lab.again["b"] = list(again)
    return run(tmp_path, text, lab)


def who(outcome: SimulatedRun) -> Mapping[str, str]:
    return {row["name"]: f"{row['hosts_in']}/{row['hosts_of']}" for row in outcome.rows("summary.all.csv")}


def events(outcome: SimulatedRun, kind: str) -> list[tuple[str, str]]:
    return [(row["host"], row["text"]) for row in outcome.rows("events.csv") if row["kind"] == kind]


def test_a_host_that_was_lost_takes_part_in_the_next_step(tmp_path: Path) -> None:
    back = SimulatedSlave("b", clock_offset_s=7000.0)
    outcome = lost_and_back(tmp_path, back)
    assert who(outcome) == {"one": "2/3", "two": "3/3", "three": "3/3"}
    assert events(outcome, "rejoined") == [("b", "it is connected again, and takes part from the next step on")]
    verdicts = {row["name"]: row["verdict"] for row in outcome.rows("summary.all.csv")}
    assert verdicts == {"one": "partial", "two": "valid", "three": "valid"}
    heard = [type(one) for one in back.received if not isinstance(one, m.ClockProbe)]
    assert heard[:4] == [m.Prepare, m.CreateFiles, m.CreateWorkloads, m.Go]
    (files,) = [one for one in back.received if isinstance(one, m.CreateFiles)]
    assert files.made == ("/x/0", "/x/1"), "which this run made: they are the new slave's to remove"
    before = [one for one in outcome.lab.slaves["b"].received if isinstance(one, m.CreateWorkloads)]
    after = [one for one in back.received if isinstance(one, m.CreateWorkloads)]
    assert after[0].workloads == before[0].workloads


def test_targets_are_those_of_all_hosts(tmp_path: Path) -> None:
    """Of three hosts with two LUNs each; while one is gone, and after."""
    back = SimulatedSlave("b")
    outcome = lost_and_back(tmp_path, None, None, None, back, text=THREE.replace("iops: max", "iops: 150"))
    assert who(outcome) == {"one": "2/3", "two": "2/3", "three": "3/3"}
    assert {row["iops_setting"] for row in outcome.rows("summary.all.csv")} == {"900"}
    assert [float(row["overall_iops"]) for row in outcome.rows("summary.all.csv")] == pytest.approx(
        [600, 600, 900], rel=0.01
    )


def test_what_control_steers_is_asked_of_the_hosts_that_are_there(tmp_path: Path) -> None:
    """The plan's own load, `max`, is no part of a level that a lost host has no part in."""
    level = "go: { name: two, staircase: { start: 300, end: 600, step: 300 } }"
    outcome = lost_and_back(tmp_path, text=THREE.replace("go: two, go: three", level))
    _, *levels = outcome.rows("summary.all.csv")
    assert [(row["iops_setting"], row["hosts_in"]) for row in levels] == [("300", "2"), ("600", "2")]


def test_a_host_that_comes_back_does_io_as_it_did(tmp_path: Path) -> None:
    """What `backend: auto` was there; the other hosts chose otherwise, which is said."""
    lab = SimulatedHosts(**slaves(b=Faults(die_at=1, backend="io_uring"), a=Faults(backend="libaio")))
    lab.again["b"] = [back := SimulatedSlave("b")]
    outcome = run(tmp_path, THREE.replace('backend: "null"', "backend: auto"), lab)
    assert who(outcome)["three"] == "3/3"
    asked = [
        one.engine.backend for slave in (lab.slaves["b"], back) for one in slave.received if isinstance(one, m.Prepare)
    ]
    assert asked == ["auto", "io_uring"]
    assert events(outcome, "host_difference") == [("", "hosts differ: backend: libaio on a, io_uring on b, auto on c")]
    (folder,) = tmp_path.iterdir()
    said = json.loads((folder / "run.json").read_text())
    assert said["backends"] == {"a": "libaio", "b": "io_uring", "c": "auto"}


def test_reconnecting_is_tried_repeatedly(tmp_path: Path) -> None:
    outcome = lost_and_back(tmp_path, None, None, None, SimulatedSlave("b"))
    assert who(outcome)["three"] == "3/3" and len(events(outcome, "rejoined")) == 1


def test_a_host_that_rejoined_may_be_lost_and_rejoin_again(tmp_path: Path) -> None:
    outcome = lost_and_back(tmp_path, SimulatedSlave("b", faults=Faults(die_at=1)), SimulatedSlave("b"))
    assert who(outcome) == {"one": "2/3", "two": "2/3", "three": "3/3"}
    assert len(events(outcome, "rejoined")) == 2


def test_a_host_that_rejoined_is_not_prepared_again_while_another_is_lost(tmp_path: Path) -> None:
    back = SimulatedSlave("b")
    outcome = lost_and_back(tmp_path, back, c=Faults(die_at=1))
    assert who(outcome) == {"one": "1/3", "two": "2/3", "three": "2/3"}
    assert sum(isinstance(one, m.Prepare) for one in back.received) == 1
    assert events(outcome, "rejoined") == [("b", "it is connected again, and takes part from the next step on")]


def test_a_step_that_begins_without_a_host_says_so(tmp_path: Path) -> None:
    outcome = lost_and_back(tmp_path)
    assert events(outcome, "absent") == [("b", "the step begins without it: it closed the connection")] * 2
    assert [row["step"] for row in outcome.rows("events.csv") if row["kind"] == "absent"] == ["1", "2"]


class SlowToInspect(SimulatedSlave):
    """A host that takes 9 s to inspect its LUNs, the first time."""

    def _obey(self, command: object) -> None:
        times = sum(isinstance(one, m.ReinspectLuns) for one in self.received)
        if isinstance(command, m.ReinspectLuns) and times == 1:
            asyncio.get_running_loop().call_later(9.0, super()._obey, command)
        else:
            super()._obey(command)


def test_a_host_that_is_connected_while_the_next_step_is_prepared_takes_part_in_it(tmp_path: Path) -> None:
    """Its fourth attempt comes when the others are already being asked for the step."""
    others = {name: SlowToInspect(name) for name in "ac"}
    lab = SimulatedHosts(b=SimulatedSlave("b", faults=Faults(die_at=1)), **others)
    lab.again["b"] = [None, None, None, SimulatedSlave("b")]
    outcome = run(tmp_path, THREE, lab)
    assert who(outcome) == {"one": "2/3", "two": "3/3", "three": "3/3"}


def test_a_host_that_cannot_do_what_it_did_stays_out(tmp_path: Path) -> None:
    outcome = lost_and_back(tmp_path, SimulatedSlave("b", faults=Faults(refuse={"create_files": "no room"})))
    assert who(outcome) == {"one": "2/3", "two": "2/3", "three": "2/3"}
    ((host, why),) = events(outcome, "not_rejoined")
    assert host == "b" and why == "it is connected again, but cannot take part: create_files: no room"


def test_another_machine_under_the_same_name_stays_out(tmp_path: Path) -> None:
    outcome = lost_and_back(tmp_path, SimulatedSlave("x"))
    assert who(outcome)["three"] == "2/3" and events(outcome, "rejoined") == []


def test_a_host_that_sends_rubbish_after_each_reconnect_is_lost_alone(tmp_path: Path) -> None:
    outcome = lost_and_back(tmp_path, *(SimulatedSlave("b", faults=Faults(hello=b"rubbish\n")) for _ in range(9)))
    assert who(outcome)["three"] == "2/3"
    rows = [row for row in outcome.rows("summary.host.csv") if row["host"] in "ac"]
    assert all(row["verdict"] == "valid" for row in rows)


def test_a_run_of_one_host_goes_on_when_it_is_back(tmp_path: Path) -> None:
    lab = SimulatedHosts(b=SimulatedSlave("b", faults=Faults(die_at=2)))
    lab.again["b"] = [SimulatedSlave("b")]
    outcome = run(tmp_path, THREE.replace("[a, b, c]", "[b]"), lab)
    assert who(outcome)["two"] == who(outcome)["three"] == "1/1"


MAY_MISS = THREE.replace("engine:", "may_miss: 1\nengine:")


def test_a_run_goes_on_without_as_many_hosts_as_may_be_missed(tmp_path: Path) -> None:
    lab = SimulatedHosts(**{name: slave for name, slave in slaves().items() if name != "c"})
    outcome = run(tmp_path, MAY_MISS, lab)
    assert outcome.code is ExitCode.PARTIAL
    assert events(outcome, "missed") == [("c", "the run continues without it: there is no way to it; go there")]
    for name in ("summary.all.csv", "summary.port.csv"):
        for row in outcome.rows(name):
            assert (
                row["verdict"] == "partial"
                and "host_lost[partial] (c is missing: there is no way to it)" in row["reasons"]
            )
    assert {(row["host"], row["verdict"]) for row in outcome.rows("summary.host.csv")} == {
        ("a", "valid"),
        ("b", "valid"),
    }


@pytest.mark.parametrize(
    "faults",
    [
        Faults(hello=b"rubbish\n"),
        Faults(refuse={"prepare": "not here"}),
        Faults(refuse={"list_luns": "not here"}),
        Faults(refuse={"create_files": "no room"}),
        Faults(refuse={"create_workloads": "no memory"}),
        Faults(mute={"create_workloads"}),
    ],
)
def test_a_host_may_be_missed_until_the_first_step(tmp_path: Path, faults: Faults) -> None:
    outcome = run(tmp_path, MAY_MISS, SimulatedHosts(**slaves(c=faults)))
    assert outcome.code is ExitCode.PARTIAL
    assert {row["verdict"] for row in outcome.rows("summary.all.csv")} == {"partial"}
    mine = [row for row in outcome.rows("summary.host.csv") if row["host"] in "ab"]
    assert len(mine) == 6 and {row["verdict"] for row in mine} == {"valid"}


def test_more_than_may_be_missed_end_the_run_with_all_faults_named(tmp_path: Path) -> None:
    with pytest.raises(HostsError) as error:
        run(tmp_path, MAY_MISS, SimulatedHosts(**slaves(b=Faults(refuse={"prepare": "not here"}))).without("c"))
    assert str(error.value) == "c: there is no way to it; go there\nb: prepare: not here"


def test_not_all_hosts_may_be_missed() -> None:
    with pytest.raises(PlanFaults, match="may_miss: 3 of 3 hosts leaves none; name fewer"):
        read(MAY_MISS.replace("may_miss: 1", "may_miss: 3"), "sim.yaml", {})


@pytest.mark.parametrize("never", ["prepare", "list_luns", "inspect_luns", "create_files", "create_workloads"])
def test_a_host_that_answers_probes_but_no_commands_is_lost_alone_within_minutes(tmp_path: Path, never: str) -> None:
    outcome = run(tmp_path, MAY_MISS, SimulatedHosts(**slaves(c=Faults(mute={never}))))
    assert outcome.code is ExitCode.PARTIAL
    told = json.loads((outcome.folder / "run.json").read_text())
    took = datetime.fromisoformat(told["end_utc"]) - datetime.fromisoformat(told["start_utc"])
    assert took.total_seconds() < 240
    rows = [row for row in outcome.rows("summary.host.csv") if row["host"] in "ab"]
    assert len(rows) == 6 and {row["verdict"] for row in rows} == {"valid"}


@pytest.mark.parametrize("mute", ["prepare", "create_files"])
@pytest.mark.parametrize("press_after_s", [None, 10.0])
def test_a_host_that_comes_back_and_does_not_answer_is_waited_for_a_minute_or_until_a_press(
    tmp_path: Path, mute: str, press_after_s: float | None
) -> None:
    lab = SimulatedHosts(**slaves(b=Faults(die_at=1)))
    lab.again["b"] = [SimulatedSlave("b", faults=Faults(mute={mute}))]
    outcome = run(tmp_path, THREE, lab, press_after=press_after_s)
    told = json.loads((outcome.folder / "run.json").read_text())
    took = datetime.fromisoformat(told["end_utc"]) - datetime.fromisoformat(told["start_utc"])
    if press_after_s is None:
        assert who(outcome) == {"one": "2/3", "two": "2/3", "three": "2/3"}
        assert len(events(outcome, "not_rejoined")) == 1 and took.total_seconds() < 120
    else:
        assert outcome.code is ExitCode.INTERRUPTED and who(outcome) == {"one": "2/3"}
        assert took.total_seconds() < press_after_s + 8
