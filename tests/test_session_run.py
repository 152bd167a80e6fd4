"""Whole runs on simulated hosts: what the folder says must be what the hosts did."""

import asyncio
import csv
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from ivypy.master.errors import HostsError, RefusedError
from ivypy.master.hosts.spec import HostSpec
from ivypy.master.live.report import Nobody, Report, RunEnds, StepEnds
from ivypy.master.plan.load import read
from ivypy.master.session.interrupt import Presses
from ivypy.master.session.run import Options, Run
from ivypy.master.verdicts import ExitCode, Verdict
from ivypy.protocol import messages as m
from ivypy.protocol.lines import line
from tests.simulated.loop import simulate
from tests.simulated.slave import Faults, MemoryPipe, SimulatedSlave, lun_of, steady

pytestmark = pytest.mark.slow

PLAN = """\
name: sim
hosts: [a, b, c]
backend: "null"
luns:
  create: { path: "/x/{}", size: 1GiB, count: 2 }
attributes:
  - { match: { path: /x/0 }, set: { port: 1A } }
  - { match: { path: /x/1 }, set: { port: 2A } }
workloads:
  oltp: { iosequencer: random_steady, blocksize: 8KiB, fraction_read: 75%, maxtags: 4, iops: max }
rollups: [ host, { by: [port], quantity: 2 } ]
defaults: { subinterval: 5s, warmup: 5s, measure: 30s }
steps:
  - go: { name: max }
  - edit: { rollup: all=all, set: { total_iops: 50% of step max } }
  - go: { name: half, cooldown: 5s }
"""


class Watching(Nobody):
    def __init__(self) -> None:
        self.seen: list[Report] = []

    def show(self, report: Report) -> None:
        self.seen.append(report)

    def steps(self) -> dict[str, StepEnds]:
        return {report.name: report for report in self.seen if isinstance(report, StepEnds)}


class Lab:
    """Simulated hosts, opened by name."""

    def __init__(self, **slaves: SimulatedSlave) -> None:
        self.slaves = slaves
        self.serving: list[asyncio.Task[None]] = []

    async def open(self, spec: HostSpec, log: Callable[[str], None]) -> MemoryPipe:
        slave = self.slaves[spec.name]
        self.serving.append(asyncio.get_running_loop().create_task(slave.serve()))
        return slave.pipe


def slaves(**faults: Faults) -> Mapping[str, SimulatedSlave]:
    return {
        name: SimulatedSlave(
            name,
            plant=steady(1000.0 * (i + 1)),
            clock_offset_s=100.0 * i,
            faults=faults.get(name),
        )
        for i, name in enumerate("abc")
    }


class Outcome:
    def __init__(self, code: ExitCode, folder: Path, watching: Watching, lab: Lab) -> None:
        self.code, self.folder, self.watching, self.lab = code, folder, watching, lab

    def rows(self, name: str) -> list[dict[str, str]]:
        with open(self.folder / name, newline="") as file:
            return list(csv.DictReader(file))


def run(
    tmp_path: Path, text: str = PLAN, lab: Lab | None = None, press_after: float | None = None, **faults: Faults
) -> Outcome:
    lab = lab or Lab(**slaves(**faults))
    watching = Watching()

    async def main() -> ExitCode:
        presses = Presses()
        going = Run(read(text, "sim.yaml", {}), Options(tmp_path, None, ("ivypy",)), watching, presses, lab.open)
        if press_after is not None:
            asyncio.get_running_loop().call_later(press_after, presses.press)
        return await going.run()

    code = simulate(main())
    (folder,) = tmp_path.iterdir()
    return Outcome(code, folder, watching, lab)


def test_a_run_leaves_a_folder_that_adds_up(tmp_path: Path) -> None:
    outcome = run(tmp_path)
    assert outcome.code is ExitCode.OK
    summary = outcome.rows("summary.all.csv")
    assert [(row["name"], row["verdict"]) for row in summary] == [("max", "valid"), ("half", "valid")]
    assert float(summary[0]["overall_iops"]) == pytest.approx(2 * 6000)
    assert float(summary[1]["overall_iops"]) == pytest.approx(6000)
    assert summary[0]["iops_setting"] == "max" and summary[1]["iops_setting"] == "6000"
    assert summary[0]["overall_response_us_mean"] == "" and float(summary[1]["overall_response_us_mean"]) == 501.0
    assert float(summary[1]["read_iops"]) == pytest.approx(4500)
    by_host = outcome.rows("summary.host.csv")
    assert [float(row["overall_iops"]) for row in by_host[:3]] == pytest.approx([2000, 4000, 6000])
    # Half of the whole is shared equally over six LUNs, whoever did what before.
    assert [float(row["overall_iops"]) for row in by_host[3:]] == pytest.approx([2000, 2000, 2000])
    assert {row["port"] for row in outcome.rows("summary.port.csv")} == {"1A", "2A"}


def test_every_subinterval_has_its_row(tmp_path: Path) -> None:
    outcome = run(tmp_path)
    rows = outcome.rows("step0001.half/all/all.csv")
    assert [row["phase"] for row in rows] == ["warmup", *["run"] * 6, "tail", "cooldown"]
    assert {row["hosts"] for row in rows} == {"3/3"}
    for i, row in enumerate(rows):
        parts = [outcome.rows(f"step0001.half/host/{host}.csv")[i] for host in "abc"]
        assert float(row["overall_service_count"]) == sum(float(part["overall_service_count"]) for part in parts)
    windows = outcome.rows("step0001.half/windows.csv")
    assert [(w["first_subinterval"], w["last_subinterval"]) for w in windows] == [("1", "6")]


def test_the_run_says_what_it_ran_with(tmp_path: Path) -> None:
    outcome = run(tmp_path)
    said = json.loads((outcome.folder / "run.json").read_text())
    assert said["exit_code"] == 0 and said["end_utc"] and set(said["hosts"]) == {"a", "b", "c"}
    assert [(step["name"], step["verdict"]) for step in said["steps"]] == [("max", "valid"), ("half", "valid")]
    assert (outcome.folder / "plan.yaml").read_text() == PLAN
    assert len(outcome.rows("luns.csv")) == 6 and len(outcome.rows("workloads.csv")) == 6
    log = (outcome.folder / "log" / "a.log").read_text()
    assert '-> {"type":"go"' in log and "<4" not in log.split("hello")[0] and "kB>" in log


def test_a_lost_host_makes_the_rest_partial(tmp_path: Path) -> None:
    outcome = run(tmp_path, b=Faults(die_at=4))
    steps = outcome.watching.steps()
    assert outcome.code is ExitCode.PARTIAL, steps
    assert steps["max"].verdict is Verdict.PARTIAL
    assert "host_lost (b: it closed the connection)" in [str(finding) for finding in steps["max"].findings]
    rows = outcome.rows("step0000.max/all/all.csv")
    assert [row["hosts"] for row in rows[3:5]] == ["3/3", "2/3"]
    assert "host_lost (b did not take part)" in [str(finding) for finding in steps["half"].findings]


def test_what_a_lost_host_owed_makes_up_for_nothing(tmp_path: Path) -> None:
    """b does all but nothing, and goes with all that it owes; of what then falls due for a 7 % is not done."""
    text = PLAN.replace("[a, b, c]", "[a, b]").replace("iops: max", "iops: 1000").partition("  - edit")[0]
    lab = Lab(
        a=SimulatedSlave("a", plant=steady(932.0)),
        b=SimulatedSlave("b", plant=steady(10.0), faults=Faults(die_at=3)),
    )
    (row,) = run(tmp_path, text, lab).rows("summary.all.csv")
    assert (row["first_subinterval"], row["hosts"]) == ("3", "1/2")
    assert "target_not_reached (what is owed grew by 4,080 of 60,000 due)" in row["reasons"]
    assert row["overall_response_us_p99"] == ""


THREE = PLAN.replace(
    """\
  - edit: { rollup: all=all, set: { total_iops: 50% of step max } }
  - go: { name: half, cooldown: 5s }
""",
    """\
  - edit: { rollup: all=all, set: { blocksize: 64KiB } }
  - go: { name: larger }
  - edit: { rollup: all=all, set: { blocksize: 4KiB } }
  - go: { name: smaller }
""",
)
GONE = {"delete_workloads": "/x/0: there is nothing to drive: check the path"}


def test_a_host_that_does_not_do_what_a_later_step_needs_is_lost_and_the_others_go_on(tmp_path: Path) -> None:
    outcome = run(tmp_path, THREE, b=Faults(refuse=GONE))
    assert outcome.code is ExitCode.PARTIAL
    summary = outcome.rows("summary.all.csv")
    assert [(row["name"], row["verdict"], row["hosts"]) for row in summary] == [
        ("max", "valid", "3/3"), ("larger", "partial", "2/3"), ("smaller", "partial", "2/3"),
    ]  # fmt: skip
    assert all("host_lost (b did not take part)" in row["reasons"] for row in summary[1:])
    (lost,) = [row for row in outcome.rows("events.csv") if row["kind"] == "lost"]
    assert (lost["host"], lost["step"], lost["text"]) == (
        "b", "1", "delete_workloads: /x/0: there is nothing to drive: check the path",
    )  # fmt: skip
    ends = outcome.watching.seen[-1]
    assert isinstance(ends, RunEnds) and [step.name for step in ends.steps] == ["max", "larger", "smaller"]


def test_where_no_host_is_left_the_run_ends_with_what_there_is(tmp_path: Path) -> None:
    gone = Faults(refuse=GONE)
    outcome = run(tmp_path, THREE, a=gone, b=gone, c=gone)
    assert outcome.code is ExitCode.PARTIAL
    assert [row["name"] for row in outcome.rows("summary.all.csv")] == ["max"]
    events = [(row["kind"], row["host"]) for row in outcome.rows("events.csv")]
    assert [events[0], *sorted(events[1:-1]), events[-1]] == [
        ("creating", ""), *(("lost", host) for host in "abc"), ("stopped", ""),
    ]  # fmt: skip
    ends = outcome.watching.seen[-1]
    assert isinstance(ends, RunEnds) and [step.name for step in ends.steps] == ["max"]
    assert (ends.folder, ends.exit_code) == (str(outcome.folder), ExitCode.PARTIAL)


def test_what_fits_no_lun_in_a_later_step_is_told_before_anything_is_created(tmp_path: Path) -> None:
    text = THREE.replace("blocksize: 64KiB", "blocksize: 1KiB").replace("75%", "100%")
    lab = Lab(**slaves())
    lab.slaves["b"].luns = (replace(lun_of("/x/0"), block=4096),)
    with pytest.raises(HostsError) as error:
        run(tmp_path, text.replace("luns:\n", "luns:\n  files: /x/0\n"), lab)
    assert str(error.value) == (
        "b: b+/x/0+oltp: in step larger, blocksize is 1,024, and /x/0 takes multiples of 4,096 bytes:"
        " choose one of these"
    )
    assert not any(isinstance(c, m.CreateWorkloads) for slave in lab.slaves.values() for c in slave.heard)


DISKS = """\
name: disks
hosts: [a, b, c]
backend: "null"
luns: { paths: [/dev/sdb, "/dev/sdc"] }
workloads: { scan: { fraction_read: 100% } }
defaults: { subinterval: 5s, warmup: 5s, measure: 10s }
steps: [ go: one ]
"""


def test_a_device_that_a_path_names_and_a_host_has_not_is_that_hosts_fault(tmp_path: Path) -> None:
    have = {"a": ("/dev/sdb", "/dev/sdc"), "b": ("/dev/sdb",), "c": ()}
    lab = Lab(**{h: SimulatedSlave(h, luns=tuple(lun_of(p, kind="block") for p in have[h])) for h in "abc"})
    with pytest.raises(HostsError) as error:
        run(tmp_path, DISKS, lab)
    assert sorted(str(error.value).splitlines()) == [
        "b: /dev/sdc: there is nothing to drive",
        "c: /dev/sdb: there is nothing to drive; /dev/sdc: there is nothing to drive",
    ]


def test_a_device_may_be_named_by_any_path_that_leads_to_it(tmp_path: Path) -> None:
    disk = replace(lun_of("/dev/dm-3", kind="block"), named=("/dev/disk/by-id/x",))
    other = lun_of("/dev/sdb", kind="block")
    lab = Lab(**{h: SimulatedSlave(h, luns=(disk, other, lun_of("/dev/sdc", kind="block"))) for h in "abc"})
    outcome = run(tmp_path, DISKS.replace('"/dev/sdc"', "/dev/disk/by-id/x"), lab)
    assert outcome.code is ExitCode.OK
    assert {row["path"] for row in outcome.rows("luns.csv")} == {"/dev/dm-3", "/dev/sdb"}


def test_a_host_that_does_not_do_what_the_first_step_needs_is_a_reason_not_to_begin(tmp_path: Path) -> None:
    with pytest.raises(HostsError, match=r"b: create_workloads: no"):
        run(tmp_path, b=Faults(refuse={"create_workloads": "no"}))


@pytest.mark.parametrize(
    "during, code, cut",
    [
        (0, ExitCode.INVALID, "interrupted (every host was late or lost)"),
        (3, ExitCode.PARTIAL, "shortened (every host was late or lost, 2 of 5 subintervals)"),
    ],
)
def test_a_pause_of_the_whole_network_costs_one_step(tmp_path: Path, during: int, code: ExitCode, cut: str) -> None:
    """The next step needs new instances, which only hosts that have stopped can make."""
    text = (
        PLAN.split("defaults:")[0]
        + """\
defaults: { subinterval: 1s, warmup: 1s, measure: 5s }
steps:
  - go: { name: s, loop: { seed: [1, 2, 3] } }
"""
    )
    lab = Lab(**slaves(**{name: Faults(stall={during: 1.2}) for name in "abc"}))
    outcome = run(tmp_path, text, lab)
    assert outcome.code is code
    steps = list(outcome.watching.steps().values())
    assert [step.verdict for step in steps[1:]] == [Verdict.VALID] * 2, steps
    first = [str(finding) for finding in steps[0].findings]
    assert [f"host_late ({name}: no result of subinterval {during} by barrier 1)" for name in "abc"] == first[-4:-1]
    assert first[-1] == cut
    assert all(row["hosts"] == "3/3" for row in outcome.rows("step0001.s+seed=2/all/all.csv"))
    assert all(sum(isinstance(heard, m.Go) for heard in slave.heard) == 3 for slave in lab.slaves.values())


def test_a_target_that_is_not_reached_is_invalid_and_has_no_response(tmp_path: Path) -> None:
    text = PLAN.replace("50% of step max", "100000")
    outcome = run(tmp_path, text)
    assert outcome.code is ExitCode.INVALID
    half = outcome.rows("summary.all.csv")[1]
    assert half["verdict"] == "invalid" and "target_not_reached" in half["reasons"]
    assert half["overall_response_us_mean"] == "" and half["overall_service_us_mean"] != ""


def test_a_step_that_refers_to_an_invalid_one_is_not_run(tmp_path: Path) -> None:
    text = PLAN.replace("quantity: 2", "quantity: 3").replace("all=all", "'port={1A,2A}'")
    outcome = run(tmp_path, text)
    assert outcome.code is ExitCode.INVALID
    half = outcome.watching.steps()["half"]
    assert half.verdict is Verdict.INVALID and "step_limit" in str(half.findings[0])
    assert len(outcome.rows("summary.all.csv")) == 2


def test_ctrl_c_halts_and_keeps_what_there_is(tmp_path: Path) -> None:
    outcome = run(tmp_path, press_after=23.0)
    assert outcome.code is ExitCode.INTERRUPTED
    assert all(any(isinstance(c, m.Halt) for c in slave.heard) for slave in outcome.lab.slaves.values())
    rows = outcome.rows("step0000.max/all/all.csv")
    assert [row["phase"] for row in rows] == ["warmup", *["run"] * 3, "tail"] and float(rows[-1]["length_s"]) < 5.0
    (summary,) = outcome.rows("summary.all.csv")
    assert summary["verdict"] == "partial"
    assert summary["reasons"] == "too_few_subintervals (3); shortened (3 of 6 subintervals)"
    assert float(summary["length_s"]) == pytest.approx(15, abs=0.01) and summary["end_utc"]
    counted = sum(float(row["overall_service_count"]) for row in rows if row["phase"] == "run")
    assert float(summary["overall_service_count"]) == counted and float(summary["overall_iops"]) > 0
    (window,) = outcome.rows("step0000.max/windows.csv")
    assert (window["first_subinterval"], window["last_subinterval"]) == ("1", "3")
    assert window["why"] == "shortened (3 of 6 subintervals)"
    assert outcome.rows("step0000.max/all/all.histogram.csv")
    ends = outcome.watching.seen[-1]
    assert isinstance(ends, RunEnds) and ends.exit_code == 130


@pytest.mark.parametrize("press_after", [0.05, 0.2])
def test_ctrl_c_before_a_step_has_begun_driving_is_no_hosts_fault(tmp_path: Path, press_after: float) -> None:
    """Hosts were told to go, and are halted before their start: they deliver a result of no length."""
    outcome = run(tmp_path, press_after=press_after)
    assert outcome.code is ExitCode.INTERRUPTED
    (row,) = outcome.rows("summary.all.csv")
    assert (row["verdict"], row["reasons"]) == ("invalid", "interrupted")
    assert [row["kind"] for row in outcome.rows("events.csv")] == ["creating", "halt"]
    assert all(any(isinstance(c, m.Halt) for c in slave.heard) for slave in outcome.lab.slaves.values())


@pytest.mark.parametrize(("on_io_error", "steps", "rows"), [("count", 2, 8), ("stop", 1, 4)])
def test_io_errors_are_counted_or_end_the_run(tmp_path: Path, on_io_error: str, steps: int, rows: int) -> None:
    """Nobody pressed Ctrl-C: a run that errors end is invalid, and its reason is the errors."""
    text = PLAN.replace("all=all, set: { total_iops: 50% of step max", "all=all, set: { total_iops: 300")
    outcome = run(tmp_path, f"{text}on_io_error: {on_io_error}\n", b=Faults(errors_at=2))
    assert outcome.code is ExitCode.INVALID
    summary = outcome.rows("summary.all.csv")
    assert len(summary) == steps and summary[0]["verdict"] == "invalid" and "io_errors" in summary[0]["reasons"]
    assert len(outcome.rows("step0000.max/all/all.csv")) == rows


def test_run_json_says_what_the_command_exits_with(tmp_path: Path) -> None:
    with pytest.raises(HostsError):
        run(tmp_path, lab=Lab(**{**slaves(), "a": SimulatedSlave("a", faults=Faults(hello=b""))}))
    (folder,) = tmp_path.iterdir()
    assert json.loads((folder / "run.json").read_text())["exit_code"] == ExitCode.HOSTS


def test_all_hosts_faults_are_told_together(tmp_path: Path) -> None:
    lab = Lab(
        a=SimulatedSlave("a", faults=Faults(hello=b"")),
        b=SimulatedSlave("b", faults=Faults(hello=b"bash: python3: not found\n")),
        c=SimulatedSlave("c"),
    )
    with pytest.raises(HostsError) as error:
        run(tmp_path, lab=lab)
    assert [fault.host for fault in error.value.faults] == ["a", "b"]


def test_a_host_of_another_version_is_refused(tmp_path: Path) -> None:
    old = m.Hello(
        m.Role.SLAVE, 1, "0.0.9", "", "a", 1, "3.11", "6.1", "2.36", "x86_64", (0,), "tsc", ("null",), 65536,
    )  # fmt: skip
    lab = Lab(**{**slaves(), "a": SimulatedSlave("a", faults=Faults(hello=line(old)))})
    with pytest.raises(HostsError, match=r"a: it runs ivypy 0\.0\.9, the controller 0\.1\.0"):
        run(tmp_path, lab=lab)


def test_nothing_is_created_before_consent(tmp_path: Path) -> None:
    text = PLAN.replace('create: { path: "/x/{}", size: 1GiB, count: 2 }', "select: { kind: block }").replace(
        "name: sim\n", "name: sim\ndestroy: true\n"
    )
    disk = m.Lun("/dev/sda", "block", 1 << 30, 512, {"kind": "block", "serial": "1A"}, (), ())
    lab = Lab(**{name: SimulatedSlave(name, luns=(disk,)) for name in "abc"})
    with pytest.raises(RefusedError, match="3 LUNs would be overwritten, and no token was given"):
        run(tmp_path, text, lab)
    assert not any(isinstance(c, m.CreateWorkloads) for slave in lab.slaves.values() for c in slave.heard)


def test_a_host_is_told_which_lun_was_looked_at(tmp_path: Path) -> None:
    """Not its path alone, which may be another disk's by then."""
    disk = m.Lun("/dev/sda", "block", 1 << 30, 512, {"kind": "block", "wwn": "0x5", "serial": "1A"}, (), ())
    lab = Lab(a=SimulatedSlave("a", luns=(disk,), plant=steady()))
    text = PLAN.replace('create: { path: "/x/{}", size: 1GiB, count: 2 }', "select: { kind: block }")
    run(tmp_path, text.replace("[a, b, c]", "[a]").replace("fraction_read: 75%", "fraction_read: 100%"), lab)
    (created,) = (heard for heard in lab.slaves["a"].heard if isinstance(heard, m.CreateWorkloads))
    assert {workload.seen for workload in created.workloads} == {m.Identity(1 << 30, "0x5", "1A")}


def test_equal_workloads_of_two_hosts_have_different_random_streams_and_the_same_in_every_run(tmp_path: Path) -> None:
    def seeds(root: Path, text: str = PLAN) -> dict[str, set[int]]:
        lab = Lab(**{name: SimulatedSlave(name, plant=steady()) for name in "abc"})
        run(root, text, lab)
        made = {
            name: [h for h in slave.heard if isinstance(h, m.CreateWorkloads)] for name, slave in lab.slaves.items()
        }
        return {name: {w.parameters.seed for heard in one for w in heard.workloads} for name, one in made.items()}

    first = seeds(tmp_path / "1")
    assert all(len(one) == 1 for one in first.values()) and len(set().union(*first.values())) == 3
    assert seeds(tmp_path / "2") == first
    other = seeds(tmp_path / "3", PLAN.replace("maxtags: 4", "maxtags: 4, seed: 2"))
    assert set().union(*other.values()).isdisjoint(set().union(*first.values()))
    (folder,) = (tmp_path / "3").iterdir()
    with open(folder / "workloads.csv", newline="") as file:
        assert {row["seed"] for row in csv.DictReader(file)} == {"2"}, "the plan's own"


def test_nothing_is_created_where_the_system_has_no_room_for_the_tags(tmp_path: Path) -> None:
    """How many there will be is said with the wish, and asked before anything is made."""
    lab = Lab(**{name: SimulatedSlave(name, plant=steady()) for name in "ab"})
    run(tmp_path, PLAN.replace("[a, b, c]", "[a, b]"), lab)
    for slave in lab.slaves.values():
        look, create = (heard for heard in slave.heard if isinstance(heard, m.ListLuns))
        assert (look.create, look.tags) == ((), 0)
        assert create.create and create.tags == 2 * 4
