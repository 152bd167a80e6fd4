"""What a load before an edit has left behind is no part of what is measured after it."""

import asyncio
import random
from pathlib import Path

import numpy as np
import pytest

from ivypy.master.exit_codes import ExitCode
from ivypy.master.live.change_lines import changed_lines
from ivypy.master.live.socket_messages import Changed
from ivypy.master.live.step_lines import local_now
from ivypy.master.run.session.run import Run
from ivypy.protocol.parameters import Parameters
from tests.support.simulated.runs import SimulatedRun, stage
from tests.support.simulated.slave import Faults, SimulatedSlave, steady

pytestmark = pytest.mark.slow

ME = "anna"
CAPACITY = 400.0  # IOPS of each workload instance
PLAN = """\
name: sim
hosts: [a, b]
engine: { backend: "null" }
luns:
  create: { path: "/x/{}", size: 1GiB, count: 2 }
workloads: { oltp: { maxtags: 4, iops: 100 } }
rollups: [ host, workload, lun ]
live: { maxtags: 16 }
defaults: { subinterval: 1s, warmup: 2s, measure: 10s }
steps: [ go: one ]
"""


def hosts(capacity: float = CAPACITY, **faults: Faults) -> dict[str, SimulatedSlave]:
    return {name: SimulatedSlave(name, plant=steady(capacity), faults=faults.get(name)) for name in "ab"}


def edited(
    root: Path, *edits: tuple[float, str], slaves: dict[str, SimulatedSlave] | None = None, plan: str = PLAN
) -> SimulatedRun:
    """(seconds since the one before, words)"""

    async def visit(run: Run, staged: SimulatedRun) -> None:
        for after_s, words in edits:
            await asyncio.sleep(after_s)
            await run.api.edit(words.split(), False, ME)

    return stage(root, visit, plan, slaves or hosts())


def by_tags(offered: float, parameters: Parameters) -> tuple[float, int]:
    """100 IOPS for each tag."""
    return steady(100.0 * parameters.maxtags)(offered, parameters)


def test_a_new_rate_discards_the_backlog_and_says_so(tmp_path: Path) -> None:
    """Six seconds at 900 of 400 leave 3,000 of each of four instances; nobody asks for them any more."""
    answers: list[Changed] = []

    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(4.0)
        answers.append(await run.api.edit(["all=all", "iops=900"], False, ME))
        await asyncio.sleep(6.0)
        answers.append(await run.api.pause(ME))
        await asyncio.sleep(3.0)
        answers.append(await run.api.unpause(ME))
        answers.append(await run.api.edit(["all=all", "iops=100"], False, ME))

    staged = stage(tmp_path, visit, PLAN, hosts())
    (row,) = staged.rows("summary.all.csv")
    assert float(row["overall_iops"]) == pytest.approx(400.0) and row["verdict"] == "valid"
    discarded = [answer.discarded for answer in answers]
    assert discarded[0] == 0 and discarded[1] == pytest.approx(12_000, abs=2_000) and discarded[2:] == [0, 0]
    assert f"{discarded[1]:,} overdue I/Os were discarded" in changed_lines(answers[1], local_now())
    (paused,) = [event["text"] for event in staged.rows("events.csv") if event["kind"] == "pause"]
    assert f"; {discarded[1]:,} overdue I/Os were discarded; by anna" in paused
    rows = staged.rows("step0000.one/all/all.csv")
    assert sum(int(row["dropped"]) for row in rows) == discarded[1]
    assert {row["phase"] for row in rows if int(row["dropped"])} == {"transient"}


def test_the_measurement_begins_when_the_earlier_backlog_is_done(tmp_path: Path) -> None:
    """Six seconds at 900 of 400 leave 3,000 of each instance; with more tags they are done at 300 a second."""
    slaves = {name: SimulatedSlave(name, plant=by_tags) for name in "ab"}
    staged = edited(tmp_path, (4.0, "all=all iops=900"), (6.0, "all=all maxtags=12"), slaves=slaves)
    (row,) = staged.rows("summary.all.csv")
    assert float(row["overall_iops"]) == pytest.approx(3600.0) and row["verdict"] == "valid"
    phases = staged.eyes.phases()
    assert phases.count("transient") == pytest.approx(12, abs=2) and phases[-12:] == [
        "transient",
        *["run"] * 10,
        "tail",
    ]
    messages = [text for text in staged.eyes.messages() if "of the earlier load are still outstanding" in text]
    assert len(messages) == pytest.approx(10, abs=2)


@pytest.mark.parametrize("edit", ["host=b maxtags=12", "all=all maxtags=12"])
@pytest.mark.parametrize("measure_s", [5, 10, 30])
def test_a_backlog_that_is_seen_first_in_a_late_result_is_waited_for(tmp_path: Path, edit: str, measure_s: int) -> None:
    """Twelve seconds at 900 of 400 leave 6,000 of each instance of one host, done at 300 a second. What it does comes
    in the middle of that: the measurement of the others has begun, or is over."""
    slaves = {
        "a": SimulatedSlave("a", plant=by_tags),
        "b": SimulatedSlave("b", plant=by_tags, delay_s=0.005, faults=Faults(late={16: 8.0})),
    }
    plan = PLAN.replace("warmup: 2s, measure: 10s", f"warmup: 17s, measure: {measure_s}s")
    staged = edited(tmp_path, (4.7, "host=b iops=900"), (12.0, edit), slaves=slaves, plan=plan)
    (row,) = staged.rows("summary.all.csv")
    late = [int(one["subinterval"]) for one in staged.rows("step0000.one/all/all.csv") if one["hosts_in"] == "1"]
    assert late[0] == 16 and 23 <= late[-1] <= 27
    if int(row["last_subinterval"]) < late[-1]:  # control had decided; the sums have what came late
        assert row["verdict"] == "invalid" and "earlier_backlog[invalid]" in row["reasons"]
    else:
        assert row["verdict"] == "valid" and float(row["overall_iops"]) == pytest.approx(2000.0), row["reasons"]
        assert int(row["first_subinterval"]) == pytest.approx(37, abs=2)
    assert (measure_s == 5) is (row["verdict"] == "invalid")


def test_a_backlog_that_never_shrinks_is_reported(tmp_path: Path) -> None:
    """With the new tags just what falls due can be done, so that the earlier backlog stays."""
    slaves = {name: SimulatedSlave(name, plant=by_tags) for name in "ab"}
    edits = (4.0, "all=all iops=900"), (6.0, "host=a maxtags=9"), (0.1, "host=b iops=100")
    staged = edited(tmp_path, *edits, slaves=slaves)
    verdicts = {row["host"]: (row["verdict"], row["reasons"]) for row in staged.rows("summary.host.csv")}
    assert verdicts["a"][0] == "invalid" and verdicts["b"][0] == "valid"
    assert "earlier I/Os are still outstanding and stopped shrinking)" in verdicts["a"][1]
    assert not [text for text in staged.eyes.messages() if text.startswith("0 I/Os of the earlier load")]
    assert staged.code is ExitCode.INVALID


def check_nothing_is_lost(staged: SimulatedRun) -> None:
    """Each row: due = completed + failed + discarded + outstanding, from the step's start; those of hosts add up."""
    sums = {}
    for name in ("all/all", "host/a", "host/b"):
        rows, owed = staged.rows(f"step0000.one/{name}.csv"), 0
        for row in rows:
            done = sum(int(row[one]) for one in ("overall_service_count", "errors", "dropped", "expired"))
            owed += int(row["due"]) - done
            assert owed == int(row["outstanding"]), (name, row["subinterval"])
        sums[name] = np.array([[int(row[one]) for one in ("due", "dropped", "outstanding")] for row in rows])
    assert (sums["all/all"] == sums["host/a"] + sums["host/b"]).all()


@pytest.mark.parametrize("seed", range(12))
def test_a_valid_row_had_its_load_whatever_was_edited(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    where = ["all=all", "host=a", "host=b", "lun=a:/x/0"]

    async def visit(run: Run, staged: SimulatedRun) -> None:
        for _ in range(rng.randint(1, 6)):
            await asyncio.sleep(rng.choice([0.2, 1.0, 3.0, 7.3]))
            if rng.random() < 0.2:
                await run.api.pause(ME)
                await asyncio.sleep(rng.choice([0.5, 4.0]))
                await run.api.unpause(ME)
            else:
                iops = rng.choice([0, 50, 200, 399, 400, 450, 900, 3000])
                await run.api.edit([rng.choice(where), f"iops={iops}"], False, ME)

    staged = stage(tmp_path, visit, PLAN, hosts())
    check_nothing_is_lost(staged)
    for kind in ("all", "host", "workload", "lun"):
        for row in staged.rows(f"summary.{kind}.csv"):
            asked, done = float(row["iops_setting"]), float(row["overall_iops"])
            if row["verdict"] == "valid":
                assert done == pytest.approx(asked, rel=0.004, abs=1), (seed, kind, row["reasons"])


@pytest.mark.parametrize("again", [False, True])
def test_an_edited_load_has_a_note_unless_it_was_edited_back(tmp_path: Path, again: bool) -> None:
    edits = [(5.0, "host=a iops=170"), *([(1.5, "host=a iops=100")] if again else [])]
    staged = edited(tmp_path, *edits)
    reasons = {row["host"]: row["reasons"] for row in staged.rows("summary.host.csv")}
    assert ("edited[note] (host=a iops=170, by anna, in subinterval 4)" in reasons["a"]) == (not again)
    assert "edited" not in reasons["b"] and staged.code is ExitCode.OK


def test_a_host_that_did_not_take_an_edit_has_no_valid_row_beside_others(tmp_path: Path) -> None:
    staged = edited(tmp_path, (5.0, "all=all iops=170"), slaves=hosts(b=Faults(mute={"edit_workloads"})))
    verdicts = {row["host"]: (row["verdict"], row["reasons"]) for row in staged.rows("summary.host.csv")}
    assert verdicts["a"][0] == "valid" and verdicts["b"][0] == "invalid"
    assert "edit_not_applied[invalid] (b: no answer within 1.0 s)" in verdicts["b"][1]
    (row,) = staged.rows("summary.all.csv")
    assert row["verdict"] == "invalid" and staged.code is ExitCode.INVALID


STEERED = PLAN.replace(
    "go: one",
    "go: { name: one, measure: 30s, staircase: { start: 100, end: 800, step: 100 } }",
)


@pytest.mark.parametrize("mute", [False, True])
def test_a_host_that_does_not_answer_edits_delays_no_other(tmp_path: Path, mute: bool) -> None:
    async def visit(run: Run, staged: SimulatedRun) -> None:
        pass

    faulty = Faults(mute={"edit_workloads"} if mute else set())
    staged = stage(tmp_path, visit, STEERED.replace("30s", "2s"), hosts(b=faulty))
    rows = staged.rows("step0000.one/interlock.csv")
    assert all(float(row["slack_ms"]) > -1 and float(row["barrier_1_ms"]) < 100 for row in rows)
    verdicts = [row["verdict"] for row in staged.rows("summary.all.csv")]
    assert verdicts == (["valid"] + ["invalid"] * 7 if mute else ["valid"] * 8)
