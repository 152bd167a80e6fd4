"""Edits, pauses and marks of a running test: what they do to the load, to the rows and to the measurement."""

import asyncio
import random
from dataclasses import replace
from pathlib import Path

import pytest

from ivypy.master.exit_codes import ExitCode
from ivypy.master.live.json_lines import plain
from ivypy.master.live.reports import Subinterval
from ivypy.master.run.edits.edit_types import EditRefused
from ivypy.master.run.session.run import Run
from ivypy.master.run.step.step import PAUSED
from ivypy.master.verdicts import Reason, Verdict
from ivypy.protocol import messages as m
from tests.support.simulated.plants import queue
from tests.support.simulated.runs import ONE_STEP, SimulatedRun, hosts, stage
from tests.support.simulated.slave import Faults, SimulatedSlave, steady

ME = "anna@pts/3 (pid 42)"


def after(seconds: float, *words: str, force: bool = False) -> object:
    """A visit that edits once."""

    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(seconds)
        staged.notes["changed"] = await run.api.edit(words, force, ME)

    return visit


def edited(tmp_path: Path, seconds: float, *words: str, text: str = ONE_STEP) -> SimulatedRun:
    return stage(tmp_path, after(seconds, *words), text)  # type: ignore[arg-type]


def test_an_edit_acts_in_its_subinterval_and_the_measurement_begins_after_it(tmp_path: Path) -> None:
    staged = edited(tmp_path, 22.0, "host={a,b}", "workload=scan", "iops=500", "fraction_read=100%")
    assert staged.code is ExitCode.OK
    assert staged.iops("a") == [500.0] * 4 and staged.iops("c") == [1000.0, 1000.0, 500.0, 500.0]
    assert staged.eyes.phases() == ["warmup", "run", "run", "run", "transient", *["run"] * 6, "tail"]
    (window,) = staged.rows("step0000.one/windows.csv")
    assert (window["first_subinterval"], window["last_subinterval"]) == ("5", "10")
    rows = staged.rows("step0000.one/all/all.csv")
    due = [float(row["due"]) / 5 for row in rows]
    assert due[3] == pytest.approx(6600) and due[5] == pytest.approx(10 * 500 + 2 * 1000)
    settings = [row["iops_setting"] for row in rows]
    assert settings[:5] == ["6600"] * 4 + ["7000"] and set(settings[5:]) == {"7000"}

    (event,) = [row for row in staged.rows("events.csv") if row["kind"] == "edit"]
    assert event["text"] == (
        "host={a,b} workload=scan iops=500 fraction_read=100%: fraction_read 0.75 -> 1 (4 instances),"
        f" iops 100 -> 500 (6 instances), iops 1000 -> 500 (4 instances); by {ME}"
    )
    assert (event["step"], event["subinterval"], event["host"]) == ("0", "4", "")

    changed = staged.notes["changed"]
    assert [(t.host, t.subinterval, t.failed) for t in changed.took] == [(h, 4, "") for h in "abc"]  # type: ignore[attr-defined]
    assert len({took.utc[:19] for took in changed.took}) == 1  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize(("late", "host"), [({20: 8.0}, "b"), ({20: 8.0}, "{a,b}"), ({39: 8.0}, "b"), ({3: 8.0}, "b")])
def test_an_edit_of_a_host_whose_results_come_late_is_in_no_valid_measurement(
    tmp_path: Path, late: dict[int, float], host: str
) -> None:
    """Before control has to decide without it, in that time, and where its result comes when all is measured."""
    text = ONE_STEP.replace("subinterval: 5s, warmup: 5s, measure: 30s", "subinterval: 1s, warmup: 1s, measure: 40s")
    slaves = {
        name: SimulatedSlave(name, plant=steady(50_000.0), delay_s=0.005 if name == "b" else 1e-4) for name in "abc"
    }
    slaves["b"].faults.late = dict(late)
    visit = after(40.5 if 39 in late else 22.0, f"host={host}", "iops=200")
    staged = stage(tmp_path, visit, text, slaves)  # type: ignore[arg-type]
    (summary,) = staged.rows("summary.all.csv")
    asked = {"b": 5200, "{a,b}": 3800}[host]
    if summary["verdict"] == "valid":
        assert float(summary["overall_iops"]) == pytest.approx(asked, rel=1e-3) and summary["iops_setting"] == str(
            asked
        )
        assert "edited[note]" in summary["reasons"]
    else:
        assert "edit_not_applied[invalid]" in summary["reasons"]


@pytest.mark.slow
def test_a_pause_stays_one_where_a_result_that_comes_late_shows_its_begin(tmp_path: Path) -> None:
    """It acts in subinterval 24 of one host, in 25 of the other, whose results come in the middle of the pause."""
    text = ONE_STEP.replace("subinterval: 5s, warmup: 5s", "subinterval: 1s, warmup: 1s").replace("b, c]", "b]")
    slaves = {"a": SimulatedSlave("a"), "b": SimulatedSlave("b", delay_s=0.005, faults=Faults(late={20: 8.0}))}

    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(2.0)
        (go,) = [one for one in slaves["a"].received if isinstance(one, m.Go)]
        await asyncio.sleep(go.start_ns / 1e9 + 24.999 - asyncio.get_running_loop().time())
        await run.api.pause(ME)
        await asyncio.sleep(10.0)
        await run.api.unpause(ME)

    staged = stage(tmp_path, visit, text, slaves)
    said = {one.number: one.messages for one in staged.eyes.seen if isinstance(one, Subinterval)}
    assert [number for number, messages in said.items() if PAUSED in messages] == [*range(25, 35)]
    without = [int(row["subinterval"]) for row in staged.rows("step0000.one/all/all.csv") if row["hosts_in"] == "1"]
    assert without[0] == 20 and 25 in without and without[-1] < 33


VALUES = [
    (["total_iops=1200"], [100.0] * 4),  # six LUNs, two workloads on each
    (["total_iops=*2"], [1100.0] * 4),  # of 6,600, shared equally as every total
    (["total_iops=+600"], [600.0] * 4),
    (["iops=+100"], [1100.0, 1100.0, 200.0, 200.0]),
    (["iops=-50"], [950.0, 950.0, 50.0, 50.0]),
    (["iops=*50%"], [500.0, 500.0, 50.0, 50.0]),
    (["iops=+10%"], [1100.0, 1100.0, 110.0, 110.0]),
    (["iops=-25%"], [750.0, 750.0, 75.0, 75.0]),
    (["iops=2k"], [2000.0] * 4),
    (["iops=max"], ["max"] * 4),
    (["iops=0"], [0.0] * 4),
]


def test_absolute_and_relative_values(tmp_path: Path) -> None:
    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(6.0)
        for words, iops in VALUES:
            await run.api.edit(["workload=oltp", "iops=1000"], False, ME)
            await run.api.edit(["workload=scan", "iops=100"], False, ME)
            await run.api.edit(["all=all", *words], False, ME)
            assert staged.iops("b") == iops, words

    stage(tmp_path, visit)


BAD = [
    ([], ["the edit has no setting; add one, for example iops=5000 or fraction_read=50%",
          "the edit has no clause; name instances, for example all=all or 'host={h1,h2}'"]),
    (["iops=5"], ["the edit has no clause; name instances, for example all=all or 'host={h1,h2}'"]),
    (["host=a"], ["the edit has no setting; add one, for example iops=5000 or fraction_read=50%"]),
    (["host=d", "iops=5"], ["rollup host has no instance 'd'; there are 'a', 'b' and 'c'"]),
    (["workload=oltq", "iops=5"], ["rollup workload has no instance 'oltq'; did you mean 'oltp'?"]),
    (["hots=a", "iops=5"],
     ["'hots' is neither a setting that can change now nor a rollup type of the plan; did you mean 'host'?"]),
    (["all=all", "iosp=5"],
     ["'iosp' is neither a setting that can change now nor a rollup type of the plan; did you mean 'iops'?"]),
    (["all=all", "rwmixread=5"],
     ["'rwmixread' is neither a setting that can change now nor a rollup type of the plan;"
      " did you mean 'fraction_read'?"]),
    (["all=all", "zzz=5", "iops=1"],
     ["'zzz' is neither a setting that can change now nor a rollup type of the plan;"
      " settings are blocksize, fraction_read, iops, maxtags, range and total_iops,"
      " rollup types all, host and workload"]),
    (["all=all", "weight=2"],
     ["'weight' is neither a setting that can change now nor a rollup type of the plan;"
      " settings are blocksize, fraction_read, iops, maxtags, range and total_iops,"
      " rollup types all, host and workload"]),
    (["all=all", "seed=9"],
     ["seed cannot change while a step runs (blocksize, fraction_read, iops, maxtags, range and total_iops can);"
      " give it in the plan, before a step"]),
    (["serial=X7", "iops=9"],
     ["'serial' is neither a setting that can change now nor a rollup type of the plan;"
      " add it to the plan: rollups: [ serial ]"]),
    (["all=all", "iodepth=9"],
     ["'iodepth' is neither a setting that can change now nor a rollup type of the plan; did you mean 'maxtags'?"]),
    (["all=all", "maxtags=9000"], ["maxtags: '9000' is too much; the most is 8192"]),
    (["all=all", "maxtags=1.5"], ["maxtags: '1.5' is not a whole number"]),
    (
        ["all=all", "blocksize=8KB"],
        ["blocksize: '8KB' can mean two sizes; write 8KiB (8192 bytes) or 8kB (8000 bytes)"],
    ),
    (["all=all", "range=*2"], ["range: '*2' is no place in a LUN; write both, for example 0%..50%"]),
    (["all=all", "range=50%"],
     ["range: is '50%'; it needs two places in the LUN, like 0%..50% or 1GiB..2GiB"]),
    (["all=all", "iops"], ["'iops' has no value; write for example iops=..."]),
    (["all=all", "iops=5", "iops=6"], ["iops is given twice; remove one"]),
    (["all=all", "iops=5", "total_iops=6"], ["iops and total_iops set the same thing; remove one"]),
    (["all=all", "iops=fast"], ["iops: 'fast' is not an IOPS setting; write a number, max, or 50% of step NAME"]),
    (["all=all", "iops=2G"], ["iops: '2G' is not an IOPS setting; write a number, max, or 50% of step NAME"]),
    (["all=all", "iops=+ten%"], ["iops: 'ten%' is not a fraction; write for example 70% or 0.7"]),
    (["all=all", "iops=*fast"], ["iops: '*fast' is not a factor; write for example *1.2"]),
    (["all=all", "iops=+max"], ["iops: '+max' is not a number to add; write for example +100"]),
    (["all=all", "iops=50% of step two"], ["no step 'two' has been run"]),
    (["all=all", "iops=2e9"], ["iops: '2e9' is too much; the most is 1000000000"]),
    (["all=all", "fraction_read=150%"], ["fraction_read: '150%' is too much; the most is 100%"]),
    (["host=a", "workload=oltp", "iops=-5000"],
     ["a+/x/0+oltp, a+/x/1+oltp, b+/x/0+oltp, b+/x/1+oltp, c+/x/0+oltp and 1 more: iops is -4000; the least is 0",
      "a+/x/0+scan and a+/x/1+scan: iops is -4900; the least is 0"]),
    (["workload=oltp", "fraction_read=+50%"],
     ["a+/x/0+oltp, a+/x/1+oltp, b+/x/0+oltp, b+/x/1+oltp, c+/x/0+oltp and 1 more:"
      " fraction_read is 1.25; the most is 1"]),
    (["workload=scan", "fraction_read=0%"],
     ["a+/x/0+scan, a+/x/1+scan, b+/x/0+scan, b+/x/1+scan, c+/x/0+scan and 1 more: no step of"
      " the plan writes to this LUN, so it is outside the consent;"
      " a step with a lower fraction_read in the plan would include it"]),
    (["host=d", "seed=9", "iops=1"],
     ["rollup host has no instance 'd'; there are 'a', 'b' and 'c'",
      "seed cannot change while a step runs (blocksize, fraction_read, iops, maxtags, range and total_iops can);"
      " give it in the plan, before a step"]),
]  # fmt: skip


def test_a_refused_edit_has_a_reason_and_changes_nothing(tmp_path: Path) -> None:
    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(12.0)
        for words, reasons in BAD:
            with pytest.raises(EditRefused) as refused:
                await run.api.edit(words, False, ME)
            assert list(refused.value.reasons) == reasons, words

    staged = stage(tmp_path, visit)
    assert all(not staged.edits(host) for host in "abc")
    assert staged.events("edit") == [] and "transient" not in staged.eyes.phases()
    assert staged.step.verdict is Verdict.VALID


GIB = 1 << 30
LIVE_PLAN = (
    ONE_STEP.replace("iops: 1000 }", "iops: 1000, range: 0%..50% }") + "live: { maxtags: 16, blocksize: 256KiB }\n"
)

SETTINGS = [  # each from the plan's; what an instance of oltp on the host has then
    (["maxtags=2"], {"maxtags": 2}),
    (["maxtags=+4"], {"maxtags": 8}),
    (["maxtags=*1.4"], {"maxtags": 6}),
    (["maxtags=16"], {"maxtags": 16}),
    (["blocksize=512"], {"blocksize": 512}),
    (["blocksize=*2"], {"blocksize": 16384}),
    (["blocksize=+8KiB"], {"blocksize": 16384}),
    (["blocksize=256KiB"], {"blocksize": 262144}),
    (["range=25%..50%"], {"range": (GIB // 4, GIB // 2)}),
    (["range=8KiB..64KiB"], {"range": (8192, 65536)}),
    (["range=0%..100%", "fraction_read=100%"], {"range": (0, 0), "fraction_read": 1.0}),
    (["range=10%..20%", "blocksize=64KiB", "maxtags=1", "iops=7"],
     {"range": (1638 * 65536, 3276 * 65536), "blocksize": 65536, "maxtags": 1, "iops": 7.0}),
]  # fmt: skip


def test_tags_block_size_and_range_change_within_what_the_plan_declares(tmp_path: Path) -> None:
    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(6.0)
        before = staged.slaves["b"].parameters[0]
        back = ["range=0%..50%", "blocksize=8KiB", "maxtags=4", "iops=1000", "fraction_read=75%"]
        for words, changed in SETTINGS:
            await run.api.edit(["workload=oltp", *words], False, ME)
            assert staged.slaves["b"].parameters[0] == replace(before, **changed), words  # type: ignore[arg-type]
            await run.api.edit(["workload=oltp", *back], False, ME)
            assert staged.slaves["b"].parameters[0] == before
        await asyncio.sleep(15.0)
        await run.api.edit(["host={a,b}", "blocksize=16KiB", "range=0%..25%", "maxtags=1"], False, ME)

    staged = stage(tmp_path, visit, LIVE_PLAN)
    assert staged.code is ExitCode.OK and staged.step.verdict is Verdict.VALID
    row = staged.rows("step0000.one/all/all.csv")[-1]
    assert row["blocksize"] == "16384(8/12) 8192(2/12) 65536(2/12)"
    assert row["range"] == f"0-{GIB // 4}(8/12) 0-{GIB // 2}(2/12) all(2/12)"
    assert row["maxtags"] == "1(8/12) 4(2/12) 2(2/12)"
    assert "maxtags 4 -> 1 (4 instances), maxtags 2 -> 1 (4 instances)" in staged.events("edit")[-1]
    # 4 x 1,000 + 4 x 100 a second of 16 KiB, 2 x 1,000 of 8 KiB, 2 x 100 of 64 KiB
    assert float(row["overall_mib_per_s"]) == pytest.approx((4400 * 16 + 2000 * 8 + 200 * 64) / 1024, rel=0.001)


OLTP = "a+/x/0+oltp, a+/x/1+oltp, b+/x/0+oltp, b+/x/1+oltp, c+/x/0+oltp and 1 more"
SCAN = OLTP.replace("oltp", "scan")
AGREED = "but the agreed part is 0 to 536,870,912; `live: { range: ... }` in the plan would allow more"
BEYOND = [  # what was agreed to: oltp writes the first half; up to 16 tags, up to 256 KiB
    (["workload=oltp", "range=0%..100%"], f"{OLTP}: it would write from byte 0 to 1,073,741,824, {AGREED}"),
    (["workload=oltp", "range=0..513MiB"], f"{OLTP}: it would write from byte 0 to 537,919,488, {AGREED}"),
    (["workload=oltp", "range=50%..100%"], f"{OLTP}: it would write from byte 536,870,912 to 1,073,741,824, {AGREED}"),
    (["workload=oltp", "range=0%..60%", "fraction_read=99.9%"],
     f"{OLTP}: it would write from byte 0 to 644,243,456, {AGREED}"),
    (["workload=scan", "fraction_read=0%"],
     f"{SCAN}: no step of the plan writes to this LUN, so it is outside the consent;"
     " a step with a lower fraction_read in the plan would include it"),
    (["workload=oltp", "maxtags=17"],
     f"{OLTP}: maxtags is 17, and the buffers are made for 16; `live: {{ maxtags: 17 }}` in the plan would allow it"),
    (["workload=oltp", "blocksize=512KiB"],
     f"{OLTP}: blocksize is 512KiB, and the buffers hold 256KiB; `live: {{ blocksize: 512KiB }}` in the plan would"
     " allow it"),
    (["host=a", "workload=oltp", "blocksize=1000", "iops=5"], "blocksize is 1,000, and /"),
    (["workload=scan", "range=0..2GiB"], "range ends at 2,147,483,648, and /x/0 at 1,073,741,824"),
    (["workload=scan", "range=1KiB..2KiB"], "holds no whole block of 64 KiB: make it wider"),
]  # fmt: skip


def test_nothing_is_written_or_reached_that_was_not_agreed_to(tmp_path: Path) -> None:
    """Also not in two steps: reading elsewhere is allowed, writing there then is not."""

    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(12.0)
        for words, reason in BEYOND:
            with pytest.raises(EditRefused) as refused:
                await run.api.edit(words, False, ME)
            assert any(reason in said for said in refused.value.reasons), (words, refused.value.reasons)
        assert all(not staged.edits(host) for host in "abc"), "nothing was sent"
        await run.api.edit(["workload=oltp", "range=0%..100%", "fraction_read=100%"], False, ME)
        for word in ("fraction_read=75%", "fraction_read=-1%"):
            with pytest.raises(EditRefused, match="it would write from byte 0 to 1,073,741,824"):
                await run.api.edit(["workload=oltp", word], False, ME)
        await run.api.edit(["workload=oltp", "range=10%..20%", "fraction_read=0%"], False, ME)

    stage(tmp_path, visit, LIVE_PLAN)


def test_a_declared_range_may_be_written(tmp_path: Path) -> None:
    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(12.0)
        await run.api.edit(["workload=oltp", "range=0%..100%"], False, ME)
        with pytest.raises(EditRefused, match="no step of the plan writes to this LUN"):
            await run.api.edit(["workload=scan", "fraction_read=0%"], False, ME)

    stage(tmp_path, visit, LIVE_PLAN.replace("live: {", "live: { range: 50%..100%,"))


def test_an_edit_beyond_the_buffers_allocates_new_ones_between_steps(tmp_path: Path) -> None:
    """Live edits are of their step alone; the next begins with the plan's settings, in buffers of its own size."""
    text = LIVE_PLAN.replace(
        "steps: [ go: one ]",
        "steps:\n  - go: one\n  - edit: { rollup: workload=oltp, set: { blocksize: 128KiB, maxtags: 2 } }\n"
        "  - go: two\n"
        "  - edit: { rollup: workload=oltp, set: { blocksize: 512KiB } }\n  - go: three",
    )

    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(22.0)
        await run.api.edit(["workload=oltp", "blocksize=256KiB", "maxtags=16", "range=10%..20%"], False, ME)

    staged = stage(tmp_path, visit, text)
    rows = [row for row in staged.rows("summary.workload.csv") if row["rollup_instance"] == "oltp"]
    assert [(row["blocksize"], row["maxtags"], row["range"]) for row in rows] == [
        ("262144", "16", "107216896-214695936"), ("131072", "2", f"0-{GIB // 2}"), ("524288", "2", f"0-{GIB // 2}"),
    ]  # fmt: skip
    made = [
        [(one.blocksize_ceiling, one.ceiling) for one in heard.workloads if one.instance.endswith("oltp")]
        for heard in staged.slaves["a"].received
        if isinstance(heard, m.CreateWorkloads)
    ]
    assert made == [[(262144, 16)] * 2, [(524288, 16)] * 2], "the second step is within the buffers of the first"


def test_relative_to_max_is_refused(tmp_path: Path) -> None:
    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(12.0)
        for word in ("iops=+1", "total_iops=*2"):
            with pytest.raises(EditRefused, match="and iops is max for what is selected; give an absolute value"):
                await run.api.edit(["all=all", word], False, ME)

    stage(tmp_path, visit, ONE_STEP.replace("iops: 1000", "iops: max").replace("iops: 100 ", "iops: max "))


def test_an_edit_is_a_share_of_an_earlier_step(tmp_path: Path) -> None:
    text = ONE_STEP.replace("steps: [ go: one ]", "steps:\n  - go: { name: zero, measure: 10s }\n  - go: one")

    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(40.0)
        await run.api.edit(["host", "total_iops=50% of step zero"], False, ME)

    staged = stage(tmp_path, visit, text)
    assert staged.iops("a") == pytest.approx([275.0] * 4), "half of the 2,200 that each host did"


@pytest.mark.slow
def test_200_edits_at_random_instants_lose_none(tmp_path: Path) -> None:
    dice = random.Random(7)
    instants = sorted(dice.uniform(0.0, 60.0) for _ in range(200))

    async def one(run: Run, staged: SimulatedRun, at_s: float) -> None:
        await asyncio.sleep(at_s)
        changed = await run.api.edit([f"host={dice.choice('abc')}", "workload=scan", "iops=+1"], False, ME)
        assert all(not took.failed for took in changed.took)
        staged.notes.setdefault("acted", set()).update(took.subinterval for took in changed.took)  # type: ignore[attr-defined]

    async def visit(run: Run, staged: SimulatedRun) -> None:
        async with asyncio.TaskGroup() as group:
            for at_s in instants:
                group.create_task(one(run, staged, at_s))

    staged = stage(tmp_path, visit)
    told = staged.iops("a") + staged.iops("b") + staged.iops("c")
    scans = [told[i] for i in range(12) if i % 4 > 1]
    assert scans == [300.0] * 6, "each of 200 edits added one to every scan"
    others = [float(str(told[i])) for i in range(12) if i % 4 < 2]
    assert sum(others) == 6 * 1000 + 200 * 2, "and to the two others of its host"
    assert len(staged.events("edit")) == 200
    numbers = [edit.edit for edit in staged.edits("a")]
    assert numbers == sorted(set(numbers)), "each edit has a number of its own, in order"
    acted = staged.notes["acted"]
    shown = {number for number, phase in enumerate(staged.eyes.phases()) if phase == "transient"}
    assert shown == acted, "every subinterval in which one acted is marked, and no other"
    rows = staged.rows("step0000.one/all/all.csv")
    last = max(shown)
    assert float(rows[last + 1]["due"]) / 5 == pytest.approx(6000 + 400 + 6 * 300)


def test_an_edit_in_a_long_subinterval_is_not_held_up(tmp_path: Path) -> None:
    async def visit(run: Run, staged: SimulatedRun) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(75.0)
        began = loop.time()
        changed = await run.api.edit(["all=all", "iops=10"], False, ME)
        staged.notes["took_s"] = loop.time() - began
        assert {took.subinterval for took in changed.took} == {1}

    staged = stage(tmp_path, visit, ONE_STEP.replace("subinterval: 5s, warmup: 5s", "subinterval: 60s, warmup: 60s"))
    assert staged.notes["took_s"] < 0.01  # type: ignore[operator]
    assert staged.eyes.phases() == ["warmup", "transient", "run", "tail"]


@pytest.mark.slow
def test_an_edit_right_at_a_boundary_is_never_missed(tmp_path: Path) -> None:
    """Around the end of subinterval 3, some hosts may have it before their boundary and some after."""
    for i in range(5):
        at_s = 20.3 + (i - 3) * 0.0002
        staged = edited(tmp_path / str(i), at_s, "all=all", "iops=*1.5")
        took = {one.subinterval for one in staged.notes["changed"].took}  # type: ignore[attr-defined]
        shown = {number for number, phase in enumerate(staged.eyes.phases()) if phase == "transient"}
        assert shown and shown <= {3, 4} and took <= {3, 4}
        (window,) = staged.rows("step0000.one/windows.csv")
        assert int(window["first_subinterval"]) == max(shown) + 1


def test_an_edit_is_of_its_step_alone(tmp_path: Path) -> None:
    text = ONE_STEP.replace("steps: [ go: one ]", "steps:\n  - go: one\n  - go: two")
    staged = edited(tmp_path, 22.0, "all=all", "iops=7", text=text)
    assert staged.iops("a") == [1000.0, 1000.0, 100.0, 100.0]
    rows = staged.rows("summary.all.csv")
    assert [row["iops_setting"] for row in rows] == ["84", "6600"]


def test_a_host_that_does_not_take_it_is_named(tmp_path: Path) -> None:
    slaves = hosts()
    slaves["b"].faults = Faults(refuse={"edit_workloads": "the engine rejects it"})
    staged = stage(tmp_path, after(12.0, "all=all", "iops=5"), slaves=slaves)  # type: ignore[arg-type]
    took = {one.host: one.failed for one in staged.notes["changed"].took}  # type: ignore[attr-defined]
    assert took == {"a": "", "b": "edit_workloads: the engine rejects it", "c": ""}
    assert [row["host"] for row in staged.rows("events.csv") if row["kind"] == "edit"] == ["", "b"]
    last = staged.rows("step0000.one/host/b.csv")[-1]
    assert last["iops_setting"] == "2200", "its rows go on saying what it does"


def test_nothing_is_edited_when_nothing_runs(tmp_path: Path) -> None:
    async def visit(run: Run, staged: SimulatedRun) -> None:
        with pytest.raises(EditRefused, match="no step is running yet"):
            await run.api.edit(["all=all", "iops=5"], False, ME)
        await asyncio.sleep(36.0)
        with pytest.raises(EditRefused, match="the step is ending"):
            await run.api.edit(["all=all", "iops=5"], False, ME)
        await asyncio.sleep(6.0)
        with pytest.raises(EditRefused, match="no step is running; an edit changes a running step"):
            await run.api.edit(["all=all", "iops=5"], False, ME)

    staged = stage(tmp_path, visit)
    assert staged.events("edit") == []


def test_settings_in_force_already_change_nothing(tmp_path: Path) -> None:
    staged = edited(tmp_path, 12.0, "workload=scan", "iops=*1")
    assert staged.notes["changed"].what == ""  # type: ignore[attr-defined]
    assert not staged.edits("a") and staged.step.verdict is Verdict.VALID


def test_a_pause_is_without_load_and_its_end_restores_it(tmp_path: Path) -> None:
    from ivypy.master.live.socket_messages import Changed, PauseRequest, Rejection, UnpauseRequest

    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(17.0)
        assert isinstance(await run.api.answer(PauseRequest(), ME), Changed)
        assert run.api.standing().paused
        assert await run.api.answer(PauseRequest(), ME) == Rejection(("the run is paused already",))
        with pytest.raises(EditRefused, match="the run is paused; unpause it first"):
            await run.api.edit(["all=all", "iops=5"], False, ME)
        await asyncio.sleep(40.0)
        assert isinstance(await run.api.answer(UnpauseRequest(), ME), Changed)
        assert await run.api.answer(UnpauseRequest(), ME) == Rejection(("the run is not paused",))

    staged = stage(tmp_path, visit)
    assert staged.code is ExitCode.OK and staged.iops("c") == [1000.0, 1000.0, 100.0, 100.0]
    phases = staged.eyes.phases()
    assert phases == ["warmup", "run", "run", *["transient"] * 9, *["run"] * 6, "tail"]
    rows = staged.rows("step0000.one/all/all.csv")
    assert {row["due"] for row in rows[4:10]} == {"0"}
    assert [kind for kind in ("pause", "unpause") if len(staged.events(kind)) == 1] == ["pause", "unpause"]
    assert staged.step.verdict is Verdict.VALID


def test_a_mark_stands_among_the_events(tmp_path: Path) -> None:
    from ivypy.master.live.socket_messages import Done, MarkRequest, Rejection

    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(12.0)
        assert isinstance(await run.api.answer(MarkRequest("fan\n  pulled"), ME), Done)
        assert isinstance(await run.api.answer(MarkRequest(" \n"), ME), Rejection)

    staged = stage(tmp_path, visit)
    (event,) = [row for row in staged.rows("events.csv") if row["kind"] == "mark"]
    assert (event["text"], event["step"], event["subinterval"]) == (f"fan pulled; by {ME}", "0", "2")


def test_a_stop_interrupts_like_the_first_ctrl_c(tmp_path: Path) -> None:
    from ivypy.master.live.socket_messages import Done, Rejection, StopRequest

    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(12.0)
        assert isinstance(await run.api.answer(StopRequest(), ME), Done)
        assert await run.api.answer(StopRequest(), ME) == Rejection(("the run is being stopped already",))

    staged = stage(tmp_path, visit)
    assert staged.code is ExitCode.INTERRUPTED and staged.seconds < 30
    assert staged.events("stop") == [f"by {ME}"]


STAIRS = ONE_STEP.replace(
    "steps: [ go: one ]",
    "steps:\n  - go: { name: one, measure: 20s, staircase: { start: 1000, end: 3000, step: 1000 } }",
)


def test_settings_that_a_host_did_not_acknowledge_are_sent_again(tmp_path: Path) -> None:
    """One that does not answer may have paused all the same: what ends the pause is sent to it too."""
    slaves = hosts()

    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(12.0)
        slaves["b"].faults.mute.add("edit_workloads")
        changed = await run.api.pause(ME)
        assert {took.host for took in changed.took if took.failed} == {"b"}
        slaves["b"].faults.mute.clear()
        again = await run.api.unpause(ME)
        assert [took.failed for took in again.took] == ["", "", ""]

    staged = stage(tmp_path, visit, slaves=slaves)
    assert [len(staged.edits(host)) for host in "abc"] == [2, 2, 2] and staged.iops("b") == staged.iops("a")


def test_what_control_steers_is_edited_by_force_only(tmp_path: Path) -> None:
    async def visit(run: Run, staged: SimulatedRun) -> None:
        for begun in (2.0, 30.0):  # in the first level, which the step began with, and in the second
            await asyncio.sleep(begun)
            for word in ("iops=5", "total_iops=*2"):
                with pytest.raises(EditRefused) as refused:
                    await run.api.edit(["host=a", word], False, ME)
                assert refused.value.reasons == (
                    "a+/x/0+oltp, a+/x/1+oltp, a+/x/0+scan and a+/x/1+scan: the step's control sets its iops, and"
                    " would set them again; use --force to edit it anyway",
                )
        await run.api.edit(["workload=oltp", "fraction_read=100%"], False, ME)
        await run.api.edit(["host=a", "iops=5"], True, ME)
        assert staged.iops("a") == [5.0] * 4

    staged = stage(tmp_path, visit, STAIRS)
    assert len(staged.events("edit")) == 2
    assert staged.iops("a") == [250.0] * 4, "the next level sets them again"
    assert "transient" in staged.eyes.phases()


def test_a_level_whose_iops_a_user_forced_has_a_note(tmp_path: Path) -> None:
    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(32.0)  # in the second level
        await run.api.edit(["host=a", "iops=5"], True, ME)

    staged = stage(tmp_path, visit, STAIRS)
    reasons = [row["reasons"] for row in staged.rows("summary.all.csv")]
    assert ["edited" in one for one in reasons] == [False, True, False], "control sets the IOPS of the third level"


def test_control_continues_after_a_pause(tmp_path: Path) -> None:
    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(12.0)
        await run.api.pause(ME)
        await asyncio.sleep(60.0)
        assert staged.iops("a") == [0.0] * 4
        await run.api.unpause(ME)
        assert staged.iops("a") == [1000 / 12] * 4

    staged = stage(tmp_path, visit, STAIRS)
    rows = staged.rows("summary.all.csv")
    assert [row["iops_setting"] for row in rows] == ["1000", "2000", "3000"], "no level is left out"
    assert {row["verdict"] for row in rows} == {"valid"}


@pytest.mark.slow
def test_the_status_shows_the_value_of_a_criterion(tmp_path: Path) -> None:
    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(42.0)
        last = run.api.standing().last
        assert last is not None and last.steady is not None
        assert (last.steady.ss, last.steady.stage, last.steady.attained) == ("overall_iops:2.000000%", "holding", 1)
        assert plain(run.api.standing())["last"]["steady"]["criterion"].startswith("0.00")

    go = "{ name: one, steady: { criterion: iops, window: 20s, hold: true } }"
    stage(tmp_path, visit, ONE_STEP.replace("go: one", f"go: {go}"))


P99, MEAN = "overall_response_us_p99", "overall_response_us_mean"
HELD = ONE_STEP.replace(
    "steps: [ go: one ]",
    "steps:\n  - go: { name: one, measure: 60s, control: { pid: { metric: "
    f"{P99}, target: 1ms,"
    " rollup: host, low_iops: 400, high_iops: 1900 } } }",
)


def queues() -> dict[str, SimulatedSlave]:
    return {name: SimulatedSlave(name, plant=queue(500.0, 500_000)) for name in "abc"}  # 2,000 IOPS a host


def test_a_target_is_edited_and_followed(tmp_path: Path) -> None:
    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(72.0)
        changed = await run.api.edit(["host={a,b}", "target=2ms"], False, ME)
        assert changed.what == "target of host=a 1ms -> 2ms, target of host=b 1ms -> 2ms" and not changed.took
        assert (await run.api.edit(["host=b", "target=2ms"], False, ME)).what == ""
        await run.api.edit(["host=b", "target=*75%"], False, ME)

    staged = stage(tmp_path, visit, HELD, queues())
    assert staged.code is ExitCode.OK, staged.step.findings
    said = staged.events("edit")
    assert said == [
        f"host={{a,b}} target=2ms: target of host=a 1ms -> 2ms, target of host=b 1ms -> 2ms; by {ME}",
        f"host=b target=*75%: target of host=b 2ms -> 1500us; by {ME}",
    ]
    rows = staged.rows("summary.host.csv")
    assert [float(row["overall_iops"]) for row in rows] == pytest.approx([1500, 1333, 1000], rel=0.03)
    (window,) = staged.rows("step0000.one/windows.csv")
    assert int(window["first_subinterval"]) > 14, "the measurement is of the new targets alone"


@pytest.mark.slow
def test_a_target_that_is_edited_while_a_host_is_late_holds_from_the_subinterval_that_runs(tmp_path: Path) -> None:
    """Which is not the one that is still to be decided on."""
    slaves = queues()
    slaves["b"].faults = Faults(late={10: 5.5})

    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(16.0)
        await run.api.edit(["host={a,b}", "target=2ms"], False, ME)

    text = HELD.replace("subinterval: 5s, warmup: 5s", "subinterval: 1s, warmup: 1s").replace(P99, MEAN)
    staged = stage(tmp_path, visit, text, slaves)
    (reason,) = [one.detail for one in staged.step.findings if one.reason is Reason.EDITED]
    assert reason.endswith("in subinterval 15"), reason
    assert int(staged.rows("step0000.one/windows.csv")[0]["first_subinterval"]) > 15


REFUSED_TARGETS = [
    (["all=all", "target=3"], "target: '3' has no unit; write 3us for microseconds"),
    (["all=all", "target=-1ms"], "it must be above 0"),
    (["workload=oltp", "target=2ms"], "host=a has one target; the edit names only a part of it"),
    (["target=2ms"], "the edit has no clause"),
    (["host=d", "target=2ms"], "rollup host has no instance 'd'"),
    (["hots=a", "target=2ms"], "'hots' is no rollup type of the plan; did you mean 'host'?"),
    (["all=all", "target=2ms", "iops=5"], "use two"),
    (["all=all", "target=2ms", "target=3ms"], "given 2 times"),
]


def test_a_target_that_cannot_be_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(12.0)
        for words, says in REFUSED_TARGETS:
            with pytest.raises(EditRefused) as refused:
                await run.api.edit(words, False, ME)
            assert says in str(refused.value)
        with pytest.raises(EditRefused, match="would set them again"):
            await run.api.edit(["host=a", "iops=5"], False, ME)

    assert not stage(tmp_path, visit, HELD, queues()).events("edit")


def test_a_target_outside_of_the_range_names_its_instance_once(tmp_path: Path) -> None:
    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(12.0)
        with pytest.raises(EditRefused) as refused:
            await run.api.edit(["host={a,b}", "target=20ms"], False, ME)
        below = "target is 20 ms; it must be below high_target, 10 ms"
        assert str(refused.value) == f"host=a: {below}\nhost=b: {below}"

    stage(tmp_path, visit, HELD.replace("high_iops: 1900", "high_iops: 1900, low_target: 600us, high_target: 10ms"))


def test_without_feedback_control_there_is_no_target(tmp_path: Path) -> None:
    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(12.0)
        with pytest.raises(EditRefused, match="nothing in it has a target"):
            await run.api.edit(["all=all", "target=2ms"], False, ME)

    stage(tmp_path, visit)
