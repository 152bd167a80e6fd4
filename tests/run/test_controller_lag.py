"""A controller that is late: it says so, and calls no host late for it."""

import asyncio
import signal
import time
from collections.abc import Container
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ivypy.master.control.decision import Decision
from ivypy.master.exit_codes import ExitCode
from ivypy.master.hosts.controller_lag import NOTICED_NS, TICK_NS, ControllerLag
from ivypy.master.hosts.driver import Driver
from ivypy.master.live.socket_messages import Changed
from ivypy.master.rollup.merge import Merger
from ivypy.master.run.record.step_recorder import StepRecorder
from ivypy.master.run.session.run import Run
from ivypy.master.run.step.io_faults import Find
from ivypy.master.run.step.step import StepCycle
from ivypy.master.run.step.step_commands import StepCommands
from ivypy.master.run.step.step_start import StepStart
from ivypy.master.run.step.step_types import ClosedSubinterval
from ivypy.master.verdicts import Finding, Reason
from ivypy.protocol.messages import Result, StopReason
from tests.support.real_runs import paced_plan, rows, start, wait_until_measuring
from tests.support.simulated.loop import SimulatedLoop, simulate
from tests.support.simulated.runs import ONE_STEP, SimulatedRun, hosts, stage
from tests.support.simulated.slave import Faults, SimulatedSlave, steady

pytestmark = pytest.mark.slow

BLAMES = {"late", "lost", "ended"}  # events of hosts
S = 10**9


def work(seconds: float) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    loop.work(seconds)


async def nobody(run: Run, staged: SimulatedRun) -> None:
    """Nobody does anything while it runs."""


def controllers(staged: SimulatedRun) -> list[Finding]:
    """What is said of the controller in the step's verdict."""
    mine = (Reason.SLOW_CONTROLLER, Reason.LATE_DECISION)
    return [finding for finding in staged.step.findings if finding.reason in mine]


def unblamed(staged: SimulatedRun) -> None:
    """Every host took part to the end, and none is said to have been late."""
    said = [
        (row["subinterval"], row["kind"], row["text"]) for row in staged.rows("events.csv") if row["kind"] in BLAMES
    ]
    assert said == []
    assert not {finding.reason for finding in staged.step.findings} & {Reason.HOST_LATE, Reason.HOST_LOST}


def interlock(staged: SimulatedRun, name: str) -> list[float]:
    """A figure of each subinterval of the measurement, in milliseconds."""
    found = [row for row in staged.rows("step0000.one/interlock.csv") if row["host"] == "a"]
    return [float(row[name]) for row in found[1:7]]


@pytest.mark.parametrize(
    ("each_s", "reasons"),
    [(0.1, []), (1.6, [Reason.SLOW_CONTROLLER]), (2.2, [Reason.SLOW_CONTROLLER])],
    ids=["0.3 s of 5 s", "4.8 s of 5 s", "6.6 s of 5 s"],
)
def test_merging_counts_as_controller_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, each_s: float, reasons: list[Reason]
) -> None:
    add = Merger.add

    def slow(merger: Merger, host: str, result: Result) -> None:
        work(each_s)
        add(merger, host, result)

    monkeypatch.setattr(Merger, "add", slow)
    staged = stage(tmp_path, nobody)
    unblamed(staged)
    assert list(dict.fromkeys(finding.reason for finding in controllers(staged))) == reasons
    assert min(interlock(staged, "processing_ms")) >= each_s * 1e3 - 1
    assert min(interlock(staged, "controller_stall_ms")) >= 3 * (each_s * 1e3 - 101)
    assert (min(interlock(staged, "slack_ms")) < 0) == (each_s == 2.2) == bool(staged.events("late_decision"))


@pytest.mark.parametrize(("rows_s", "noted"), [(0.5, False), (4.5, True)])
def test_work_after_the_decision_counts_as_controller_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_s: float, noted: bool
) -> None:
    write = StepRecorder.record_subinterval

    def slow(recorder: StepRecorder, closed: ClosedSubinterval) -> None:
        work(rows_s)
        write(recorder, closed)

    monkeypatch.setattr(StepRecorder, "record_subinterval", slow)
    staged = stage(tmp_path, nobody)
    unblamed(staged)
    assert [finding.reason for finding in controllers(staged)] == [Reason.SLOW_CONTROLLER] * noted
    assert min(interlock(staged, "controller_stall_ms")) == pytest.approx(rows_s * 1e3, abs=TICK_NS / 1e6)


def test_cpu_time_counts_as_controller_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a thread beside the loop: 2.6 s of each 5 s, on a staged clock."""
    monkeypatch.setattr(
        ControllerLag.__init__, "__defaults__", (lambda: int(asyncio.get_running_loop().time() * 0.52 * S),)
    )
    staged = stage(tmp_path, nobody)
    (finding,) = controllers(staged)
    assert finding.reason is Reason.SLOW_CONTROLLER and "s of CPU time, of 5 s in subinterval" in finding.detail
    assert interlock(staged, "controller_cpu_ms") == pytest.approx([2600] * 6, abs=20)


ONE_SECOND = ONE_STEP.replace("subinterval: 5s, warmup: 5s, measure: 30s", "subinterval: 1s, warmup: 1s, measure: 20s")


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(at_s=10.0, still_s=2.1, again_s=0.1)
@given(at_s=st.floats(2.0, 18.0), still_s=st.floats(0.0, 8.0), again_s=st.floats(0.1, 3.0))
def test_a_controller_stall_makes_no_host_late(
    tmp_path_factory: pytest.TempPathFactory, at_s: float, still_s: float, again_s: float
) -> None:
    """Twice in a step; what came meanwhile is merged, and the measurement is complete."""

    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(at_s)
        work(still_s)
        await asyncio.sleep(again_s)
        work(still_s)

    staged = stage(tmp_path_factory.mktemp("still"), visit, ONE_SECOND)
    unblamed(staged)
    (window,) = staged.rows("step0000.one/windows.csv")
    assert (window["first_subinterval"], window["last_subinterval"], window["hosts"]) == ("1", "20", "3")
    found = {finding.reason for finding in controllers(staged)}
    if still_s >= 2.1:
        assert found == {Reason.SLOW_CONTROLLER}
        assert any("; the controller was stalled for " in text for text in staged.events("late_decision"))
    if still_s <= 0.2:
        assert found == set()


@pytest.mark.parametrize("still_s", [0.5, 1.5])
def test_a_controller_stall_in_barrier_2_makes_no_host_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, still_s: float
) -> None:
    """The answers to `continue` are on their way when it stops, and in the pipes when it is back."""
    follow = StepCommands.follow

    async def standing_still(
        commands: StepCommands, k: int, late: int, start_ns: int, decision: Decision, left_s: float
    ) -> dict[Driver, int]:
        if k in (5, 11):
            asyncio.get_running_loop().call_later(ANSWERS_ON_THEIR_WAY_S, work, still_s)
        return await follow(commands, k, late, start_ns, decision, left_s)

    monkeypatch.setattr(StepCommands, "follow", standing_still)
    staged = stage(tmp_path, nobody, ONE_SECOND, far_hosts())
    unblamed(staged)


@pytest.mark.parametrize("one_way_s", [0.04, 0.1, 0.2])
def test_decisions_after_a_controller_stall_leave_each_host_time_to_answer(tmp_path: Path, one_way_s: float) -> None:
    """They are taken one after the other, when the subintervals they are for have ended."""

    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(5.0)
        work(8.0)

    unblamed(stage(tmp_path, visit, ONE_SECOND, far_hosts(one_way_s)))


ONE_WAY_S = 0.04  # a command to far hosts, or its answer
ANSWERS_ON_THEIR_WAY_S = 0.06  # after a command was sent to far hosts


def far_hosts(one_way_s: float = ONE_WAY_S) -> dict[str, SimulatedSlave]:
    return {name: SimulatedSlave(name, plant=steady(50_000.0), delay_s=one_way_s) for name in "abc"}


@pytest.mark.parametrize("still_s", [1.0, 3.0])
def test_a_controller_that_is_stalled_after_go_calls_no_host_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, still_s: float
) -> None:
    go = StepStart.go

    async def standing_still(start: StepStart, find: Find) -> int:
        asyncio.get_running_loop().call_later(ANSWERS_ON_THEIR_WAY_S, work, still_s)
        return await go(start, find)

    monkeypatch.setattr(StepStart, "go", standing_still)
    unblamed(stage(tmp_path, nobody, ONE_SECOND, far_hosts()))


@pytest.mark.parametrize("still_s", [1.5, 8.0])
def test_a_controller_that_is_stalled_after_an_edit_blames_no_host_for_it(tmp_path: Path, still_s: float) -> None:
    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(5.0)
        asyncio.get_running_loop().call_later(ANSWERS_ON_THEIR_WAY_S, work, still_s)
        staged.notes["edit"] = await run.api.edit(["all=all", "iops=500"], True, "me")

    staged = stage(tmp_path, visit, ONE_SECOND, far_hosts())
    unblamed(staged)
    edit = staged.notes["edit"]
    assert isinstance(edit, Changed) and {one.host: one.failed for one in edit.took} == dict.fromkeys("abc", "")
    assert Reason.EDIT_NOT_APPLIED not in {finding.reason for finding in staged.step.findings}


@pytest.mark.parametrize("still_s", [2.0, 3.5, 13.0])
def test_a_controller_that_is_stalled_after_halt_loses_no_host(tmp_path: Path, still_s: float) -> None:
    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(5.0)
        asyncio.get_running_loop().call_later(ANSWERS_ON_THEIR_WAY_S, work, still_s)
        run.api.stop("me")

    staged = stage(tmp_path, visit, ONE_SECOND, far_hosts())
    assert staged.code is ExitCode.INTERRUPTED
    unblamed(staged)


@pytest.mark.parametrize("still_s", [12.5, 20.0])
def test_a_controller_that_is_stalled_at_the_end_of_a_step_loses_no_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, still_s: float
) -> None:
    """`stopped` is in the pipes when it is back."""
    wait = StepCycle._wait_until_stopped

    async def standing_still(cycle: StepCycle, left: set[Driver]) -> None:
        asyncio.get_running_loop().call_later(0.01, work, still_s)
        await wait(cycle, left)

    monkeypatch.setattr(StepCycle, "_wait_until_stopped", standing_still)
    slaves = far_hosts()
    for slave in slaves.values():
        slave.faults = Faults(catch_s=3.0)
    unblamed(stage(tmp_path, nobody, ONE_SECOND, slaves))


def test_a_host_that_does_not_answer_in_barrier_2_is_named_once(tmp_path: Path) -> None:
    slaves = hosts()
    slaves["b"].faults = Faults(mute={"continue"})
    staged = stage(tmp_path, nobody, ONE_SECOND, slaves)
    assert [(row["host"], row["text"]) for row in staged.rows("events.csv") if row["kind"] == "unanswered"] == [
        ("b", "no acknowledgement of the decision after subinterval 0: no answer within 1.0 s")
    ]


def test_a_lease_that_ran_out_meanwhile_is_the_controllers(tmp_path: Path) -> None:
    slaves = hosts()
    for slave in slaves.values():
        slave.faults = Faults(ends_at=(10, StopReason.LEASE))

    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(5.0)
        work(15.0)

    staged = stage(tmp_path, visit, ONE_SECOND, slaves)
    lost = [str(finding) for finding in staged.step.findings if finding.reason is Reason.HOST_LOST]
    assert lost and all("its lease ran out while the controller was stalled for 1" in one for one in lost)
    assert staged.events("lost") == [], "they may take part in the next step"
    assert len([text for text in staged.events("ended") if "lease" in text]) == 3


def test_a_host_is_late_after_an_earlier_controller_stall(tmp_path: Path) -> None:
    slaves = hosts()
    slaves["b"].faults = Faults(late={12: 8.0})

    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(5.0)
        work(3.0)

    staged = stage(tmp_path, visit, ONE_SECOND, slaves)
    assert staged.events("late")[0] == "no result of subinterval 12 in time"
    assert {row["host"] for row in staged.rows("events.csv") if row["kind"] == "late"} == {"b"}


@given(lates=st.lists(st.floats(0.0, 3.0), min_size=1, max_size=8))
def test_lag_is_the_lateness_of_a_tick(lates: list[float]) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        lag = ControllerLag(lambda: int(loop.time() * S), lambda: 0)
        lag.begin()
        for late_s in lates:
            await asyncio.sleep(0.35)
            work(late_s)
            assert late_s * S - TICK_NS - 1 <= lag.stalled_ns() or late_s * S < TICK_NS + NOTICED_NS
            assert lag.stalled_ns() <= late_s * S + 1
            assert lag.patient_until_ns(S) <= loop.time() * S + S
            await asyncio.sleep(0.2)
            assert lag.take()[0] <= late_s * S + 1 and lag.stalled_ns() == 0
        lag.end()

    simulate(main())


@given(within_s=st.floats(0.1, 3.0), patience_s=st.floats(0.0, 2.0), stalls=st.lists(st.floats(0.0, 2.0), min_size=1))
def test_a_deadline_moves_for_stalls_and_by_its_patience_at_most(
    within_s: float, patience_s: float, stalls: list[float]
) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        lag = ControllerLag(lambda: int(loop.time() * S), lambda: 0)
        lag.begin()
        deadline = lag.deadline(within_s, patience_s)
        planned_ns, left = deadline.at_ns, list(stalls)
        seen_ns: int | None = None  # when it was found to have passed or moved first
        while not deadline.has_passed():
            if lag.now_ns() >= planned_ns:
                seen_ns = seen_ns or lag.now_ns()
            await asyncio.sleep(min(max(deadline.left_s, 0.001), 0.25))
            work(left.pop() if left else 0.0)
        assert deadline.at_ns >= planned_ns
        assert deadline.at_ns <= (seen_ns or lag.now_ns()) + patience_s * S + 1
        if max(stalls) * S < NOTICED_NS:
            assert deadline.at_ns == planned_ns
        lag.end()

    simulate(main())


@pytest.mark.realtime
@pytest.mark.long  # the law itself is simulated: test_a_controller_stall_makes_no_host_late
def test_a_real_controller_stopped_for_3_s_makes_no_host_late(tmp_path: Path) -> None:
    process = start(paced_plan(tmp_path, "8s", connectors=""), tmp_path / "runs", "--ui", "none")
    folder = wait_until_measuring(tmp_path / "runs")
    process.send_signal(signal.SIGSTOP)
    time.sleep(3)
    process.send_signal(signal.SIGCONT)
    _, said = process.communicate(timeout=60)
    (summary,) = rows(folder, "summary.all.csv")
    assert "slow_controller" in summary["reasons"] and "host_late" not in summary["reasons"], said
    assert len([row for row in rows(folder, "step0000.one/all/all.csv") if row["phase"] == "run"]) == 16
    assert not {row["kind"] for row in rows(folder, "events.csv")} & BLAMES


def test_barrier_2_ends_though_the_controller_is_stalled_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host does not answer `continue`; the controller works for 0.3 s of each 0.32 s; the user ends the run."""
    slaves = hosts()
    slaves["b"].faults = Faults(mute={"continue"})
    halted: list[float] = []
    halt_those = StepCommands.halt_those

    async def noted(commands: StepCommands, drivers: Container[Driver]) -> int:
        halted.append(asyncio.get_running_loop().time())
        return await halt_those(commands, drivers)

    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(3.0)
        for n in range(30):
            if n == 3:
                staged.notes["pressed"] = asyncio.get_running_loop().time()
                run.api.stop("me")
            work(0.3)
            await asyncio.sleep(0.02)

    monkeypatch.setattr(StepCommands, "halt_those", noted)
    staged = stage(tmp_path, visit, ONE_SECOND, slaves)
    assert halted[0] - float(str(staged.notes["pressed"])) < 3.0
