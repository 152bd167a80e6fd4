"""Whole runs on simulated hosts: what the folder says must be what the hosts did."""

import asyncio
import csv
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ivypy import __version__
from ivypy.master.errors import HostsError, RefusedError
from ivypy.master.exit_codes import ExitCode
from ivypy.master.live.line_view import TextLines
from ivypy.master.live.reports import RunEnds
from ivypy.master.results.measured_rows import read_measured
from ivypy.master.results.render_measured import markdown_of, measured_lines
from ivypy.master.results.run_entries import entry_of
from ivypy.master.run.session.run import Run
from ivypy.master.run.setup.consent import Target, token
from ivypy.master.summary.headline import WIDE
from ivypy.master.verdicts import Verdict
from ivypy.protocol import messages as m
from ivypy.protocol.lines import encode_line
from ivypy.protocol.parameters import MAX, Parameters
from ivypy.protocol.payload import Identity, Lun, Notice, NoticeKind
from tests.support.real_runs import presence
from tests.support.simulated.runs import TWO_STEPS, SimulatedHosts, SimulatedRun, hosts, run, slaves, stage
from tests.support.simulated.slave import Faults, SimulatedSlave, known, lun_of, steady


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


def test_dying_words_and_files_that_may_be_left_are_reported(tmp_path: Path) -> None:
    lab = SimulatedHosts(**slaves(b=Faults(mute={"die"})))
    lab.slaves["a"].last_words = "whatever a clean one says"
    lab.slaves["c"].last_words, lab.slaves["c"].clean = "goodbye; files that it created may be left", False
    outcome = run(tmp_path, lab=lab)
    assert outcome.code is ExitCode.OK
    told = [(row["host"], row["kind"], row["text"]) for row in outcome.rows("events.csv")]
    left = "it sent no dying words: /x/{} (2 files) may be left there, until its lease ends"
    assert ("b", "files_left", left) in told
    assert ("c", "last_words", "goodbye; files that it created may be left") in told
    assert not [row for row in told if row[0] == "a" and row[1] in ("files_left", "last_words")]


def test_a_notice_is_an_event_of_its_own_kind_whenever_it_comes(tmp_path: Path) -> None:
    created = Notice(NoticeKind.FILES_CREATED, "created 2 files")
    pages = Notice(NoticeKind.BUFFER_PAGES, "pages of 4 KiB")
    lab = hosts()
    lab["b"].creating = (created,)

    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(12.0)
        lab["c"].pipe.say(encode_line(pages))

    staged = stage(tmp_path, visit, slaves=lab)
    events = [(row["host"], row["subinterval"], row["kind"], row["text"]) for row in staged.rows("events.csv")]
    assert ("b", "", "files_created", "created 2 files") in events
    assert ("c", "2", "buffer_pages", "pages of 4 KiB") in events
    assert {"created 2 files", "pages of 4 KiB"} <= set(staged.eyes.event_lines())


def test_every_subinterval_has_its_row(tmp_path: Path) -> None:
    outcome = run(tmp_path)
    rows = outcome.rows("step0001.half/all/all.csv")
    assert [row["phase"] for row in rows] == ["warmup", *["run"] * 6, "tail", "cooldown"]
    assert {presence(row) for row in rows} == {"3/3"}
    for i, row in enumerate(rows):
        parts = [outcome.rows(f"step0001.half/host/{host}.csv")[i] for host in "abc"]
        assert float(row["overall_service_count"]) == sum(float(part["overall_service_count"]) for part in parts)
    windows = outcome.rows("step0001.half/windows.csv")
    assert [(w["first_subinterval"], w["last_subinterval"]) for w in windows] == [("1", "6")]


@pytest.mark.parametrize("by_s", [0.2, -0.2])
def test_a_clock_that_was_stepped_makes_its_rows_partial(tmp_path: Path, by_s: float) -> None:
    """A virtual machine that was suspended: its boundaries lie elsewhere than the others' from then on."""
    outcome = run(tmp_path, b=Faults(clock_step={3: by_s}))
    assert outcome.code is ExitCode.PARTIAL
    verdicts = {
        (row["name"], row["host"]): (row["verdict"], row["reasons"]) for row in outcome.rows("summary.host.csv")
    }
    assert verdicts["max", "a"][0] == verdicts["max", "c"][0] == "valid"
    assert verdicts["max", "b"][0] == "partial" and "clock_stepped" in verdicts["max", "b"][1]
    half = verdicts["half", "b"]
    own, _, handed_on = half[1].partition("baseline_step[partial] ")
    assert "clock_stepped" not in own, "the next step's start is placed by what is known by now"
    assert half[0] == "partial" and handed_on.startswith("(step max is partial for all=all: clock_stepped")
    (event,) = [row for row in outcome.rows("events.csv") if row["kind"] == "clock_stepped"]
    assert event["host"] == "b" and "its clock was stepped by" in event["text"]
    stepped = [float(row["step_us"]) for row in outcome.rows("step0000.max/clock.csv") if row["host"] == "b"]
    assert [value != 0 for value in stepped][:2] == [False] * 2 and stepped[3] == pytest.approx(by_s * 1e6, rel=0.01)


def test_the_folder_records_what_the_run_used(tmp_path: Path) -> None:
    outcome = run(tmp_path)
    said = json.loads((outcome.folder / "run.json").read_text())
    assert said["exit_code"] == 0 and said["end_utc"] and set(said["hosts"]) == {"a", "b", "c"}
    assert [(step["name"], step["verdict"]) for step in said["steps"]] == [("max", "valid"), ("half", "valid")]
    assert (outcome.folder / "plan.yaml").read_text().startswith(TWO_STEPS)
    assert len(outcome.rows("luns.csv")) == 6 and len(outcome.rows("workloads.csv")) == 6
    log = (outcome.folder / "log" / "a.log").read_text()
    assert '-> {"type":"go"' in log and "<4" not in log.split("hello")[0] and "kB>" in log


def test_a_lost_host_makes_the_rest_partial(tmp_path: Path) -> None:
    outcome = run(tmp_path, b=Faults(die_at=4))
    steps = outcome.eyes.steps()
    assert outcome.code is ExitCode.PARTIAL, steps
    assert steps["max"].verdict is Verdict.PARTIAL
    assert "host_lost[partial] (b: it closed the connection)" in [str(finding) for finding in steps["max"].findings]
    rows = outcome.rows("step0000.max/all/all.csv")
    assert [presence(row) for row in rows[3:5]] == ["3/3", "2/3"]
    assert "host_lost[partial] (b did not take part)" in [str(finding) for finding in steps["half"].findings]


@pytest.mark.parametrize("caught_after_s", [0.0, 6.0])
def test_a_host_whose_thread_died_while_it_warmed_up_is_a_loss(tmp_path: Path, caught_after_s: float) -> None:
    outcome = run(tmp_path, b=Faults(ends_at=(0, m.StopReason.DIED), catch_s=caught_after_s))
    summary = outcome.rows("summary.all.csv")
    assert outcome.code is ExitCode.PARTIAL
    assert (summary[0]["verdict"], presence(summary[0])) == ("partial", "2/3")
    assert "host_lost[partial] (b: a workload thread died)" in summary[0]["reasons"]


def test_a_share_of_a_partial_step_is_shared_over_its_hosts(tmp_path: Path) -> None:
    outcome = run(tmp_path, b=Faults(die_at=2))
    first, second = outcome.rows("summary.all.csv")
    assert (first["verdict"], second["verdict"]) == ("partial", "partial")
    assert presence(second) == "2/3"
    assert float(second["overall_iops"]) == pytest.approx(float(first["overall_iops"]) / 2)
    assert float(second["iops_setting"]) == pytest.approx(float(first["overall_iops"]) / 2)
    said = "baseline_step[partial] (step max is partial for all=all: host_l"
    assert said in second["reasons"] and "b took no part in it, and so no load" in second["reasons"]
    by_host = {row["host"]: row for row in outcome.rows("summary.host.csv")[3:]}
    assert {row["verdict"] for row in by_host.values()} == {"partial"}
    assert outcome.code is ExitCode.PARTIAL


def test_a_level_that_was_complete_before_a_host_was_lost_is_as_it_was(tmp_path: Path) -> None:
    stairs = "go: { name: up, measure: 20s, staircase: { start: 300, end: 600, step: 300 } }"
    outcome = run(tmp_path, TWO_STEPS.partition("  - go")[0] + f"  - {stairs}\n", b=Faults(die_at=8))
    rows = outcome.rows("summary.all.csv")
    assert [(row["name"], row["verdict"], presence(row)) for row in rows] == [
        ("up:total_iops=300", "valid", "3/3"), ("up:total_iops=600", "partial", "2/3"),
    ]  # fmt: skip
    assert outcome.code is ExitCode.PARTIAL


def test_the_backlog_of_a_lost_host_is_not_counted_as_done(tmp_path: Path) -> None:
    """b does all but nothing, and goes with all that it owes; of what then falls due for a 7 % is not done."""
    text = TWO_STEPS.replace("[a, b, c]", "[a, b]").replace("iops: max", "iops: 1000").partition("  - edit")[0]
    lab = SimulatedHosts(
        a=SimulatedSlave("a", plant=steady(932.0)),
        b=SimulatedSlave("b", plant=steady(10.0), faults=Faults(die_at=3)),
    )
    (row,) = run(tmp_path, text, lab).rows("summary.all.csv")
    assert (row["first_subinterval"], presence(row)) == ("3", "1/2")
    assert (
        "load_not_sustained[invalid] (outstanding I/O of a+/x/1+oltp grew by 2,040 of 30,000 due, and by 1 more)"
        in row["reasons"]
    )
    assert row["overall_response_us_p99"] == ""


THREE = TWO_STEPS.replace(
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


TWO = (
    TWO_STEPS.split("rollups:")[0]
    + """\
rollups: [ host ]
lease: LEASE
defaults: { subinterval: 1s, warmup: 1s, measure: 3s }
steps: [ go: one, go: two ]
"""
)


@pytest.mark.parametrize(("lease_s", "verdict"), [(4, "valid"), (10, "valid"), (60, "partial")])
def test_no_step_is_valid_beside_a_host_that_was_given_up_and_may_still_drive(
    tmp_path: Path, lease_s: int, verdict: str
) -> None:
    """It falls silent while it drives: that it has stopped is known when its lease has ended, and not before."""
    outcome = run(tmp_path, TWO.replace("LEASE", f"{lease_s}s"), b=Faults(silent_from=1))
    (lost,) = [row for row in outcome.rows("events.csv") if row["kind"] == "lost"]
    begun = outcome.rows("step0001.two/all/all.csv")[0]["start_utc"]
    after_s = (datetime.fromisoformat(begun) - datetime.fromisoformat(lost["utc"])).total_seconds()
    second = {row["host"]: row for row in outcome.rows("summary.host.csv") if row["name"] == "two"}
    assert [second[host]["verdict"] for host in "ac"] == [verdict] * 2
    if verdict == "valid":
        # Lost after half the lease, 3 s at least, and up to a quarter of it from one beat to the next.
        assert lease_s - max(lease_s / 2, 3) - lease_s / 4 <= after_s < lease_s / 2 + 1.0
    else:
        assert 10.0 < after_s < 16.0, "nobody is waited for so long"
        assert "lost_host_active[partial] (b was given up, and its lease ends" in second["a"]["reasons"]


def test_ios_that_fail_after_the_last_boundary_are_an_event(tmp_path: Path) -> None:
    outcome = run(tmp_path, TWO.replace("LEASE", "10s"), b=Faults(fails_at_end=3))
    events = [
        (row["step"], row["host"], row["text"]) for row in outcome.rows("events.csv") if row["kind"] == "io_errors"
    ]
    text = "3 I/Os that were in flight at the end of the step failed: no row counts them"
    assert events == [("0", "b", text), ("1", "b", text)]


@pytest.mark.parametrize(("at", "measured"), [(0, True), (3, True), (4, False)])
def test_ios_held_by_a_hung_device_are_reported_for_its_lun_and_the_next_step(
    tmp_path: Path, at: int, measured: bool
) -> None:
    """Subintervals 1 to 3 are measured; what hangs in the tail is in none of them."""
    text = TWO.replace("LEASE", "10s").replace("rollups: [ host ]", "rollups: [ lun ]")
    outcome = run(tmp_path, text, b=Faults(hangs=(at, 1), catch_s=9.0))
    events = [row["text"] for row in outcome.rows("events.csv") if row["kind"] == "hung_ios"]
    (said,) = events
    assert said.startswith("4 I/Os have not completed, the oldest for ") and said.endswith(": of b+/x/1+oltp")
    rows = {(row["name"], row["rollup_instance"]): row for row in outcome.rows("summary.lun.csv")}
    assert ("hung_ios" in rows["one", "b:/x/1"]["reasons"]) == measured
    assert rows["one", "b:/x/1"]["verdict"] == ("partial" if measured else "valid")
    assert "orphaned_ios[note] (b: /x/1: of step one, some had not completed" in rows["two", "b:/x/1"]["reasons"]
    assert all("_ios" not in row["reasons"] for (_, lun), row in rows.items() if lun != "b:/x/1")
    assert outcome.code is (ExitCode.PARTIAL if measured else ExitCode.OK)


def test_an_io_error_is_reported_with_the_workload_instance_that_had_it(tmp_path: Path) -> None:
    outcome = run(tmp_path, b=Faults(errors_at=3))
    events = [(row["host"], row["text"]) for row in outcome.rows("events.csv") if row["kind"] == "io_errors"]
    assert events[:2] == [("b", f"b+/x/{n}+oltp: EIO (3 in subinterval 3)") for n in range(2)]


def test_figures_without_a_lost_host_say_of_how_many_they_are(tmp_path: Path) -> None:
    outcome = run(tmp_path, TWO.replace("LEASE", "10s"), b=Faults(die_at=1))
    measured = read_measured(outcome.folder, "all", ["one"])
    table = measured_lines(measured, "runs/a", 80)
    assert table[2].split()[2:6] == ["partial", "(8.00", "k)", "-"] and table[3].strip() == "of 2 of 3 hosts"
    markdown = markdown_of(entry_of(outcome.folder, datetime.now(UTC)), measured, "")
    assert "partial (2 of 3 hosts)" in markdown


def test_a_host_whose_end_was_seen_is_not_waited_for(tmp_path: Path) -> None:
    outcome = run(tmp_path, TWO.replace("LEASE", "60s"), b=Faults(die_at=1))
    assert not [row for row in outcome.rows("events.csv") if row["kind"] == "waiting"]
    assert "lost_host_active" not in outcome.rows("summary.host.csv")[3]["reasons"]


def test_a_host_that_refuses_a_later_steps_commands_is_lost_alone(tmp_path: Path) -> None:
    outcome = run(tmp_path, THREE, b=Faults(refuse=GONE))
    assert outcome.code is ExitCode.PARTIAL
    summary = outcome.rows("summary.all.csv")
    assert [(row["name"], row["verdict"], presence(row)) for row in summary] == [
        ("max", "valid", "3/3"), ("larger", "partial", "2/3"), ("smaller", "partial", "2/3"),
    ]  # fmt: skip
    assert all("host_lost[partial] (b did not take part)" in row["reasons"] for row in summary[1:])
    (lost,) = [row for row in outcome.rows("events.csv") if row["kind"] == "lost"]
    assert (lost["host"], lost["step"], lost["text"]) == (
        "b", "1", "delete_workloads: /x/0: there is nothing to drive: check the path",
    )  # fmt: skip
    ends = outcome.eyes.seen[-1]
    assert isinstance(ends, RunEnds) and [step.name for step in ends.steps] == ["max", "larger", "smaller"]


def test_a_host_whose_luns_came_into_use_between_steps_is_lost_with_the_reason(tmp_path: Path) -> None:
    """What is made anew is judged as it is created, so that nothing is looked at again before the first step."""
    outcome = run(tmp_path, TWO.replace("LEASE", "4s"), b=Faults(refuse={"reinspect_luns": "it is mounted at /data"}))
    assert outcome.code is ExitCode.PARTIAL
    verdicts = {(row["name"], row["host"]): row["verdict"] for row in outcome.rows("summary.host.csv")}
    assert verdicts == {(name, host): "valid" for name in ("one", "two") for host in "abc"} | {("two", "b"): "partial"}
    (lost,) = [row for row in outcome.rows("events.csv") if row["kind"] == "lost"]
    assert (lost["host"], lost["step"], lost["text"]) == ("b", "1", "reinspect_luns: it is mounted at /data")


def test_a_run_without_hosts_left_ends_with_its_results(tmp_path: Path) -> None:
    gone = Faults(refuse=GONE)
    outcome = run(tmp_path, THREE, a=gone, b=gone, c=gone)
    assert outcome.code is ExitCode.PARTIAL
    assert [row["name"] for row in outcome.rows("summary.all.csv")] == ["max"]
    told = [(row["kind"], row["host"]) for row in outcome.rows("events.csv")]
    assert [event for event in told if event[0] == "files_left"] == [("files_left", host) for host in "abc"]
    events = [event for event in told if event[0] != "files_left"]
    assert [events[0], *sorted(events[1:-1]), events[-1]] == [
        ("creating", ""), *(("lost", host) for host in "abc"), ("stopped", ""),
    ]  # fmt: skip
    ends = outcome.eyes.seen[-1]
    assert isinstance(ends, RunEnds) and [step.name for step in ends.steps] == ["max"]
    assert (ends.folder, ends.exit_code) == (str(outcome.folder), ExitCode.PARTIAL)


def test_settings_that_fit_no_lun_in_a_later_step_are_reported_before_files_are_created(tmp_path: Path) -> None:
    text = THREE.replace("blocksize: 64KiB", "blocksize: 1KiB").replace("75%", "100%")
    lab = SimulatedHosts(**slaves())
    lab.slaves["b"].luns = (replace(lun_of("/x/0"), block=4096),)
    with pytest.raises(HostsError) as error:
        run(tmp_path, text.replace("luns:\n", "luns:\n  files: /x/0\n"), lab)
    assert str(error.value) == (
        "b: b+/x/0+oltp: in step larger, blocksize is 1,024, and /x/0 takes multiples of 4,096 bytes:"
        " choose one of these"
    )
    assert not any(isinstance(c, m.CreateWorkloads) for slave in lab.slaves.values() for c in slave.received)


DISKS = """\
name: disks
hosts: [a, b, c]
engine: { backend: "null" }
luns: { paths: [/dev/sdb, "/dev/sdc"] }
workloads: { scan: { fraction_read: 100% } }
defaults: { subinterval: 5s, warmup: 5s, measure: 10s }
steps: [ go: one ]
"""


def test_a_device_that_a_path_names_and_a_host_has_not_is_that_hosts_fault(tmp_path: Path) -> None:
    have = {"a": ("/dev/sdb", "/dev/sdc"), "b": ("/dev/sdb",), "c": ()}
    lab = SimulatedHosts(**{h: SimulatedSlave(h, luns=tuple(lun_of(p, kind="block") for p in have[h])) for h in "abc"})
    with pytest.raises(HostsError) as error:
        run(tmp_path, DISKS, lab)
    assert sorted(str(error.value).splitlines()) == [
        "b: /dev/sdc: there is nothing to drive",
        "c: /dev/sdb: there is nothing to drive; /dev/sdc: there is nothing to drive",
    ]


SHARED = Identity("whichever", 1 << 30, (("wwn", "0x1"),))


def test_a_lun_that_several_hosts_drive_is_reported_in_their_rows(tmp_path: Path) -> None:
    lab = SimulatedHosts(
        **{
            h: SimulatedSlave(
                h, luns=(replace(lun_of("/dev/sdb", kind="block"), identity=SHARED), lun_of("/dev/sdc", kind="block"))
            )
            for h in "abc"
        }
    )
    outcome = run(tmp_path, DISKS + "rollups: [ lun ]\n", lab)
    rows = {row["rollup_instance"]: row["reasons"] for row in outcome.rows("summary.lun.csv")}
    assert "shared_lun[note] (a: /dev/sdb is also b: /dev/sdb and c: /dev/sdb)" in rows["a:/dev/sdb"]
    assert "shared_lun" not in rows["a:/dev/sdc"] and outcome.code is ExitCode.OK
    assert {row["shared"] for row in outcome.rows("luns.csv")} == {"3", ""}


def test_a_device_may_be_named_by_any_path_that_leads_to_it(tmp_path: Path) -> None:
    disk = replace(lun_of("/dev/dm-3", kind="block"), named=("/dev/disk/by-id/x",))
    other = lun_of("/dev/sdb", kind="block")
    lab = SimulatedHosts(**{h: SimulatedSlave(h, luns=(disk, other, lun_of("/dev/sdc", kind="block"))) for h in "abc"})
    outcome = run(tmp_path, DISKS.replace('"/dev/sdc"', "/dev/disk/by-id/x"), lab)
    assert outcome.code is ExitCode.OK
    assert {row["path"] for row in outcome.rows("luns.csv")} == {"/dev/dm-3", "/dev/sdb"}


def test_a_host_that_refuses_the_first_steps_commands_prevents_the_run(tmp_path: Path) -> None:
    with pytest.raises(HostsError, match=r"b: create_workloads: no"):
        run(tmp_path, b=Faults(refuse={"create_workloads": "no"}))


@pytest.mark.slow
@pytest.mark.parametrize(
    "during, code, cut",
    [
        (0, ExitCode.INVALID, "interrupted[invalid] (every host was late or lost)"),
        (3, ExitCode.PARTIAL, "shortened[partial] (every host was late or lost, 2 of 5 subintervals)"),
    ],
)
def test_results_of_all_hosts_that_come_after_half_a_lease_cost_one_step(
    tmp_path: Path, during: int, code: ExitCode, cut: str
) -> None:
    """The next step needs new instances, which only hosts that have stopped can make."""
    text = (
        TWO_STEPS.split("defaults:")[0]
        + """\
defaults: { subinterval: 1s, warmup: 1s, measure: 5s }
steps:
  - go: { name: s, loop: { seed: [1, 2, 3] } }
"""
    )
    lab = SimulatedHosts(**slaves(**{name: Faults(late={during: 9.0}) for name in "abc"}))
    outcome = run(tmp_path, text, lab)
    assert outcome.code is code
    steps = list(outcome.eyes.steps().values())
    assert [step.verdict for step in steps[1:]] == [Verdict.VALID] * 2, steps
    first = [str(finding) for finding in steps[0].findings]
    assert [f"host_late[partial] ({name}: no result of subinterval {during} in time)" for name in "abc"] == first[-4:-1]
    assert first[-1] == cut
    assert all(presence(row) == "3/3" for row in outcome.rows("step0001.s+seed=2/all/all.csv"))
    assert all(sum(isinstance(heard, m.Go) for heard in slave.received) == 3 for slave in lab.slaves.values())


def test_a_target_that_is_not_reached_is_invalid_and_has_no_response(tmp_path: Path) -> None:
    text = TWO_STEPS.replace("50% of step max", "100000")
    outcome = run(tmp_path, text)
    assert outcome.code is ExitCode.INVALID
    half = outcome.rows("summary.all.csv")[1]
    assert half["verdict"] == "invalid" and "load_not_sustained" in half["reasons"]
    assert half["overall_response_us_mean"] == "" and half["overall_service_us_mean"] != ""


def test_a_step_that_refers_to_an_invalid_one_is_not_run(tmp_path: Path) -> None:
    text = TWO_STEPS.replace("quantity: 2", "quantity: 3").replace("all=all", "'port={1A,2A}'")
    outcome = run(tmp_path, text)
    assert outcome.code is ExitCode.INVALID
    half = outcome.eyes.steps()["half"]
    assert half.verdict is Verdict.INVALID and "baseline_step" in str(half.findings[0])
    assert len(outcome.rows("summary.all.csv")) == 2


def test_a_share_of_a_step_needs_only_its_rate(tmp_path: Path) -> None:
    """The first step checks response times, which the generator's lateness makes invalid; its rate is what counts."""
    checked = "go: { name: max, slo: { metric: overall_response_us_mean, at_most: 1s } }"
    text = TWO_STEPS.replace("go: { name: max }", checked).replace("iops: max", "iops: 100")
    late = Faults(lateness_ns=250_000)
    outcome = run(tmp_path, text, a=late, b=late, c=late)
    first, half = outcome.rows("summary.all.csv")
    columns = ("verdict", "rate_verdict", "service_verdict", "response_verdict")
    assert [first[name] for name in columns] == ["invalid", "valid", "valid", "invalid"]
    assert [half[name] for name in columns] == ["valid", "valid", "valid", "invalid"], "it checks no metric"
    assert float(half["overall_iops"]) == pytest.approx(float(first["overall_iops"]) / 2, rel=1e-3)
    assert outcome.code is ExitCode.INVALID
    ends = next(report for report in outcome.eyes.seen if isinstance(report, RunEnds))
    table = [
        line for line in TextLines(lambda line: None, lambda: WIDE).lines(ends) if line.startswith(("0 max", "1 half"))
    ]
    assert all(line.split("|")[2].count("[") == line.split("|")[2].count("us") >= 2 for line in table), table
    assert not any("[" in "".join(line.split("|")[:2]) for line in table), table


def test_ctrl_c_halts_and_keeps_what_there_is(tmp_path: Path) -> None:
    outcome = run(tmp_path, press_after=23.0)
    assert outcome.code is ExitCode.INTERRUPTED
    assert all(any(isinstance(c, m.Halt) for c in slave.received) for slave in outcome.lab.slaves.values())
    rows = outcome.rows("step0000.max/all/all.csv")
    assert [row["phase"] for row in rows] == ["warmup", *["run"] * 3, "tail"] and float(rows[-1]["length_s"]) < 5.0
    (summary,) = outcome.rows("summary.all.csv")
    assert summary["verdict"] == "partial"
    assert summary["reasons"] == "too_few_subintervals[note] (3); shortened[partial] (3 of 6 subintervals)"
    assert float(summary["length_s"]) == pytest.approx(15, abs=0.01) and summary["end_utc"]
    counted = sum(float(row["overall_service_count"]) for row in rows if row["phase"] == "run")
    assert float(summary["overall_service_count"]) == counted and float(summary["overall_iops"]) > 0
    (window,) = outcome.rows("step0000.max/windows.csv")
    assert (window["first_subinterval"], window["last_subinterval"]) == ("1", "3")
    assert window["why"] == "shortened[partial] (3 of 6 subintervals)"
    assert outcome.rows("step0000.max/all/all.histogram.csv")
    ends = outcome.eyes.seen[-1]
    assert isinstance(ends, RunEnds) and ends.exit_code == 130


@pytest.mark.parametrize("press_after", [0.05, 0.2])
def test_ctrl_c_before_a_step_has_begun_driving_is_no_hosts_fault(tmp_path: Path, press_after: float) -> None:
    """Hosts were told to go, and are halted before their start: they deliver a result of no length."""
    outcome = run(tmp_path, press_after=press_after)
    assert outcome.code is ExitCode.INTERRUPTED
    (row,) = outcome.rows("summary.all.csv")
    assert (row["verdict"], row["reasons"]) == ("invalid", "interrupted[invalid]")
    assert [row["kind"] for row in outcome.rows("events.csv")] == ["creating", "halt"]
    assert all(any(isinstance(c, m.Halt) for c in slave.received) for slave in outcome.lab.slaves.values())


@pytest.mark.parametrize(
    ("on_io_error", "steps", "rows", "verdict"), [("count", 2, 8, "partial"), ("stop", 1, 4, "invalid")]
)
def test_io_errors_are_counted_or_end_the_run(
    tmp_path: Path, on_io_error: str, steps: int, rows: int, verdict: str
) -> None:
    """Nobody pressed Ctrl-C: a run that errors end is invalid, and its reason is the errors."""
    text = TWO_STEPS.replace("all=all, set: { total_iops: 50% of step max", "all=all, set: { total_iops: 300")
    outcome = run(tmp_path, f"{text}on_io_error: {on_io_error}\n", b=Faults(errors_at=2))
    assert outcome.code is ExitCode.INVALID
    summary = outcome.rows("summary.all.csv")
    assert len(summary) == steps and summary[0]["verdict"] == verdict and "io_errors" in summary[0]["reasons"]
    assert len(outcome.rows("step0000.max/all/all.csv")) == rows


def test_run_json_says_what_the_command_exits_with(tmp_path: Path) -> None:
    with pytest.raises(HostsError):
        run(tmp_path, lab=SimulatedHosts(**{**slaves(), "a": SimulatedSlave("a", faults=Faults(hello=b""))}))
    (folder,) = tmp_path.iterdir()
    assert json.loads((folder / "run.json").read_text())["exit_code"] == ExitCode.HOSTS


def test_faults_of_all_hosts_are_reported_together(tmp_path: Path) -> None:
    lab = SimulatedHosts(
        a=SimulatedSlave("a", faults=Faults(hello=b"")),
        b=SimulatedSlave("b", faults=Faults(hello=b"bash: python3: not found\n")),
        c=SimulatedSlave("c"),
    )
    with pytest.raises(HostsError) as error:
        run(tmp_path, lab=lab)
    assert [fault.host for fault in error.value.faults] == ["a", "b"]


@pytest.mark.parametrize(
    ("protocol", "version", "says"),
    [
        (1, "0.0.9", f"a: it runs ivypy 0.0.9, the controller {__version__}"),
        (9, __version__, f"a: it runs ivypy {__version__} with protocol 9, the controller protocol"),
    ],
)
def test_a_host_of_another_version_is_refused(tmp_path: Path, protocol: int, version: str, says: str) -> None:
    old = m.Hello(
        m.Role.SLAVE, protocol, version, "", "a", 1, "3.11", "6.1", "2.36", "x86_64", (0,), "tsc", ("null",), 65536,
    )  # fmt: skip
    lab = SimulatedHosts(**{**slaves(), "a": SimulatedSlave("a", faults=Faults(hello=old))})
    with pytest.raises(HostsError, match=says):
        run(tmp_path, lab=lab)


def test_nothing_is_created_before_consent(tmp_path: Path) -> None:
    text = TWO_STEPS.replace('create: { path: "/x/{}", size: 1GiB, count: 2 }', "select: { kind: block }").replace(
        "name: sim\n", "name: sim\ndestroy: true\n"
    )
    disk = Lun("/dev/sda", "block", 1 << 30, 512, {"kind": "block", "serial": "1A"}, (), ())
    lab = SimulatedHosts(**{name: SimulatedSlave(name, luns=(disk,)) for name in "abc"})
    with pytest.raises(RefusedError, match="3 LUNs would be overwritten, and no token was given"):
        run(tmp_path, text, lab)
    assert not any(isinstance(c, m.CreateWorkloads) for slave in lab.slaves.values() for c in slave.received)


def test_a_host_receives_the_identity_of_the_inspected_lun(tmp_path: Path) -> None:
    """Not its path alone, which may be another disk's by then."""
    disk = Lun("/dev/sda", "block", 1 << 30, 512, {"kind": "block", "wwn": "0x5", "serial": "1A"}, (), ())
    lab = SimulatedHosts(a=SimulatedSlave("a", luns=(disk,), plant=steady()))
    text = TWO_STEPS.replace('create: { path: "/x/{}", size: 1GiB, count: 2 }', "select: { kind: block }").replace(
        "name: sim\n", "name: sim\ndestroy: true\n"
    )
    run(tmp_path, text.replace("[a, b, c]", "[a]"), lab, destroy=token([Target("a", known(disk), False)]))
    (created,) = (heard for heard in lab.slaves["a"].received if isinstance(heard, m.CreateWorkloads))
    (given,) = {workload.consent for workload in created.workloads}
    assert given is not None and (given.identity, given.extents) == (known(disk).identity, ((0, 1 << 30),))


@pytest.mark.slow
def test_equal_workloads_of_two_hosts_have_different_random_streams_and_a_seed_repeats_them(tmp_path: Path) -> None:
    def seeds(root: Path, seed: str = "") -> dict[str, set[int]]:
        text = TWO_STEPS.replace("maxtags: 4", f"maxtags: 4{seed}").replace("measure: 30s", "measure: 5s")
        lab = SimulatedHosts(**{name: SimulatedSlave(name, plant=steady()) for name in "abc"})
        run(root, text, lab)
        made = {
            name: [h for h in slave.received if isinstance(h, m.CreateWorkloads)] for name, slave in lab.slaves.items()
        }
        return {name: {w.parameters.seed for heard in one for w in heard.workloads} for name, one in made.items()}

    def folder(root: Path) -> Path:
        (only,) = root.iterdir()
        return only

    first = seeds(tmp_path / "1")
    assert all(len(one) == 1 for one in first.values()) and len(set().union(*first.values())) == 3
    own = json.loads((folder(tmp_path / "1") / "run.json").read_text())["seed"]
    with open(folder(tmp_path / "1") / "workloads.csv", newline="") as file:
        assert {row["seed"] for row in csv.DictReader(file)} == {str(own)}
    *_, last = (folder(tmp_path / "1") / "plan.yaml").read_text().splitlines()
    assert last == f"# The seed of this run; to repeat its addresses, in oltp: seed: {own}"

    other = seeds(tmp_path / "2")
    assert set().union(*other.values()).isdisjoint(set().union(*first.values()))
    assert seeds(tmp_path / "3", f", seed: {own}") == first
    assert "#" not in (folder(tmp_path / "3") / "plan.yaml").read_text()
    assert seeds(tmp_path / "4", ", seed: 1") == {
        "a": {4_273_164_465_059_243_143}, "b": {272_975_434_208_459_564}, "c": {8_073_020_409_672_557}
    }, "as in every version"  # fmt: skip


def test_nothing_is_created_where_the_system_has_no_room_for_the_tags(tmp_path: Path) -> None:
    """How many there will be is said with the wish, and asked before anything is made."""
    lab = SimulatedHosts(**{name: SimulatedSlave(name, plant=steady()) for name in "ab"})
    run(tmp_path, TWO_STEPS.replace("[a, b, c]", "[a, b]"), lab)
    for slave in lab.slaves.values():
        (create,) = (heard for heard in slave.received if isinstance(heard, m.CreateFiles))
        assert create.files and create.tags == 2 * 4


TWO_LOADS = """\
name: sim
hosts: [a]
engine: { backend: "null" }
luns: { create: { path: "/x/{}", size: 1GiB, count: 3 } }
workloads: { fg: { maxtags: 8, iops: 2000 }, bg: { maxtags: 8, iops: max } }
rollups: [ workload, lun ]
defaults: { subinterval: 1s, warmup: 2s, measure: 24s }
steps: [ go: both ]
"""


def test_an_unsustained_instance_is_reported_in_every_row(tmp_path: Path) -> None:
    """The third of three at 80 % of its rate, beside others at max."""
    asked = iter(range(1 << 30))

    def plant(offered: float, parameters: Parameters) -> tuple[float, int]:
        if parameters.iops == MAX:
            return 100_000.0, 50_000
        return (min(offered, 1600.0) if next(asked) % 3 == 2 else min(offered, 5000.0)), 500_000

    outcome = run(tmp_path, TWO_LOADS, SimulatedHosts(a=SimulatedSlave("a", plant=plant)))
    assert outcome.code is ExitCode.INVALID
    said = "load_not_sustained[invalid] (outstanding I/O of a+/x/2+fg grew by 9,600 of 48,000 due)"
    rows = [row for kind in ("all", "workload", "lun") for row in outcome.rows(f"summary.{kind}.csv")]
    assert {row["rollup_instance"]: row["reasons"] for row in rows} == {
        "all": said, "fg": said, "bg": "", "a:/x/0": "", "a:/x/1": "", "a:/x/2": said,
    }  # fmt: skip


def test_hosts_and_luns_that_are_not_alike_are_events_before_the_first_step(tmp_path: Path) -> None:
    def slave(name: str) -> SimulatedSlave:
        governor = "powersave" if name == "c" else "performance"
        hello = m.Hello(
            m.Role.SLAVE, m.PROTOCOL_VERSION, __version__, "", name, 1, "3.11", "6.1", "2.36", "x86_64", (0, 1), "tsc",
            ("null", "libaio"), 65536, facts={"governor": governor},
        )  # fmt: skip
        luns = (lun_of("/dev/sdb", kind="block"), lun_of("/dev/sdc", kind="block", scheduler="bfq"))
        return SimulatedSlave(name, luns=luns, faults=Faults(hello=hello))

    outcome = run(tmp_path, DISKS, SimulatedHosts(**{name: slave(name) for name in "abc"}))
    said = {row["kind"]: row["text"] for row in outcome.rows("events.csv") if row["step"] == ""}
    assert said["host_difference"] == "hosts differ: governor: performance on a and b, powersave on c"
    assert said["lun_difference"] == "LUNs differ: scheduler: not known on 3 LUNs, bfq on 3 LUNs"
    assert [row["governor"] for row in outcome.rows("hosts.csv")] == ["performance", "performance", "powersave"]


@pytest.mark.parametrize(
    ("cache", "fraction_read", "noted"),
    [("write back", "0%", True), ("write back", "100%", False), ("write through", "0%", False)],
)
def test_writes_to_a_volatile_cache_are_noted(tmp_path: Path, cache: str, fraction_read: str, noted: bool) -> None:
    disk = known(Lun("/dev/sda", "block", 1 << 30, 512, {"kind": "block", "write_cache": cache}, (), ()))
    lab = SimulatedHosts(a=SimulatedSlave("a", luns=(disk,)))
    text = DISKS.replace("[a, b, c]", "[a]").replace('/dev/sdb, "/dev/sdc"', "/dev/sda").replace("100%", fraction_read)
    writes = fraction_read != "100%"
    consent = token([Target("a", disk, False)]) if writes else None
    outcome = run(
        tmp_path, text.replace("name: disks\n", f"name: disks\ndestroy: {str(writes).lower()}\n"), lab, destroy=consent
    )
    (row,) = outcome.rows("summary.all.csv")
    assert ("volatile_cache[note] (a: /dev/sda)" in row["reasons"]) is noted
    assert row["verdict"] == "valid"


@pytest.mark.parametrize(
    ("queue", "cause"),
    [
        ({"nr_requests": 32, "hw_queues": 1}, "the device accepts 32 at once"),
        ({"nr_requests": 64, "hw_queues": 4}, "a hardware queue of the device accepts 64 at once"),
        ({}, "a hardware queue of the device was full"),
    ],
)
def test_a_full_queue_is_the_cause_of_a_load_that_is_not_sustained(
    tmp_path: Path, queue: dict[str, int], cause: str
) -> None:
    disk = known(Lun("/dev/sda", "block", 1 << 30, 512, {"kind": "block", **queue}, (), ()))
    slave = SimulatedSlave("a", luns=(disk,), plant=steady(100.0), faults=Faults(queue_limited=5))
    text = DISKS.replace("[a, b, c]", "[a]").replace('/dev/sdb, "/dev/sdc"', "/dev/sda")
    text = text.replace("fraction_read: 100%", "fraction_read: 100%, iops: 500")
    outcome = run(tmp_path, text, SimulatedHosts(a=slave))
    (ends,) = outcome.eyes.steps().values()
    assert ends.measured[0].cause == cause
