"""Plans as programs: a session's steps are a plan's steps, read, checked and recorded in the same way."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import ivypy
from ivypy.master.errors import PlanError, StoppedError
from ivypy.master.hosts.host_spec import HostSpec
from ivypy.master.live.socket_messages import Changed
from ivypy.master.plan.load import read
from ivypy.master.run.session.program_steps import without_steps
from ivypy.master.run.session.run import Run
from tests.support.real_runs import ROOT
from tests.support.simulated.loop import simulate
from tests.support.simulated.runs import SimulatedHosts, hosts
from tests.support.simulated.slave import MemoryPipe

PLAN = """\
name: program
parameters: { size: 1GiB }
hosts: [a, b, c]
engine: { backend: "null" }
luns:
  create: { path: "/x/{}", size: "${size}", count: 2 }
workloads:
  oltp: { fraction_read: 75%, maxtags: 4 }
  scan: { iosequencer: sequential, maxtags: 2 }
rollups: [ host, workload ]
defaults: { subinterval: 5s, warmup: 5s, measure: 10s }
"""


def program(
    root: Path, work: Callable[[ivypy.OpenSession], Awaitable[None]], plan: str | Path = PLAN
) -> ivypy.OpenSession:
    async def main() -> ivypy.OpenSession:
        async with ivypy.Session(plan, root=root, opening=SimulatedHosts(**hosts()).open) as session:
            await work(session)
        return session

    return simulate(main())


def test_a_program_measures_and_decides(tmp_path: Path) -> None:
    async def work(session: ivypy.OpenSession) -> None:
        most = await session.go("max")
        assert most.verdict == "valid" and most["all=all"]["overall_iops"] == pytest.approx(12 * 50_000)
        assert most["all=all"]["overall_response_us_mean"] is None, "max has no response time"
        await session.edit("all=all", total_iops="50% of step max")
        half = await session.go("half", warmup="0s", measure="15s")
        assert half["host=b"]["overall_iops"] == pytest.approx(2 * 2 * 25_000)
        assert half["all=all"]["overall_response_us_mean"] == 501.0
        await session.edit("host=a", iops=100)
        third = await session.go("third", measure=dict(time="10s"))
        assert third["host=a"]["overall_iops"] == pytest.approx(400)
        assert third["host=b"]["overall_iops"] == pytest.approx(100_000)

    session = program(tmp_path, work)
    said = json.loads((session.folder / "run.json").read_text())
    assert [step["name"] for step in said["steps"]] == ["max", "half", "third"] and said["exit_code"] == 0
    assert said["program"][1] == {"edit": {"rollup": "all=all", "set": {"total_iops": "50% of step max"}}}
    assert (session.folder / "summary.all.csv").read_text().count("\n") == 4


def test_settings_that_fit_no_lun_are_refused_before_any_host_receives_them(tmp_path: Path) -> None:
    async def work(session: ivypy.OpenSession) -> None:
        await session.go("one")
        with pytest.raises(PlanError, match="range is 1,024 to 2,048, which holds no whole block"):
            await session.edit("all=all", range="1KiB..2KiB")
        assert (await session.go("two")).verdict == "valid"

    program(tmp_path, work)


def test_go_raises_when_no_host_is_left(tmp_path: Path) -> None:
    async def work(session: ivypy.OpenSession) -> None:
        await session.go("one")
        for slave in session._steps._fleet.drivers.values():
            slave.lose("its cable was pulled")
        with pytest.raises(PlanError, match="no host is left"):
            await session.go("two")

    session = program(tmp_path, work)
    assert json.loads((session.folder / "run.json").read_text())["exit_code"] == 7
    with open(session.folder / "events.csv") as file:
        assert file.read().count("its cable was pulled") == 3


def test_each_level_is_a_result(tmp_path: Path) -> None:
    async def work(session: ivypy.OpenSession) -> None:
        stairs = dict(start=100_000, step="100%")
        climb = await session.go("climb", staircase=stairs)
        names = [f"climb:total_iops={load}" for load in ("100000", "200000", "400000", "800000")]
        assert [one.name for one in climb.measured] == names
        assert [one.verdict for one in climb.measured] == ["valid", "valid", "valid", "invalid"]
        found = [one["all=all"]["overall_iops"] for one in climb.measured]
        assert found == pytest.approx([100_000, 200_000, 400_000, 600_000], rel=1e-3)
        assert climb.verdict == "valid" and climb.figures == climb.measured[2].figures, "the last that was sustained"
        one = await session.go("one")
        assert [each.name for each in one.measured] == ["one"] and one.measured[0].figures == one.figures

    program(tmp_path, work)


def test_a_running_step_is_edited(tmp_path: Path) -> None:
    async def work(session: ivypy.OpenSession) -> None:
        await session.edit("all=all", iops=1000)
        going = asyncio.create_task(session.go("one", measure="30s"))
        await asyncio.sleep(12.0)
        assert session.status.running
        changed = await session.edit("workload=scan", iops="*2")
        assert isinstance(changed, Changed) and changed.what == "iops 1000 -> 2000 (6 instances)"
        with pytest.raises(PlanError, match="another step is running"):
            await session.go("two")
        await session.pause()
        await asyncio.sleep(10.0)
        await session.unpause()
        session.mark("halfway")
        result = await going
        assert result.verdict == "valid" and result["workload=scan"]["overall_iops"] == pytest.approx(12_000, rel=1e-3)
        again = await session.go("again")
        assert again["workload=scan"]["overall_iops"] == pytest.approx(6_000, rel=1e-3), "a live edit is of its step"

    program(tmp_path, work)


def test_after_a_stop_no_step_begins(tmp_path: Path) -> None:
    async def work(session: ivypy.OpenSession) -> None:
        going = asyncio.create_task(session.go("one", measure="60s"))
        await asyncio.sleep(18.0)
        session.stop()
        result = await going
        assert result.verdict == "partial" and "shortened[partial] (2 of 12 subintervals)" in result.reasons
        assert result["all=all"]["overall_iops"] == pytest.approx(12 * 50_000)
        with pytest.raises(PlanError, match="the run was stopped"):
            await session.go("two")

    session = program(tmp_path, work)
    assert json.loads((session.folder / "run.json").read_text())["exit_code"] == 130


def test_a_session_that_is_stopped_while_it_opens_does_not_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By `ivypy stop`, which the run's API answers from the beginning; the program itself goes on."""
    runs: list[Run] = []

    class Noted(Run):
        def __init__(self, *parts: Any) -> None:
            super().__init__(*parts)
            runs.append(self)

    monkeypatch.setattr("ivypy.master.run.session.session.Run", Noted)

    async def main() -> None:
        at_once = SimulatedHosts(**hosts()).open

        async def slowly(spec: HostSpec, log: Callable[[str], None]) -> MemoryPipe:
            await asyncio.sleep(10.0)
            return await at_once(spec, log)

        asyncio.get_running_loop().call_later(5.0, lambda: runs[0].api.stop("me"))
        with pytest.raises(StoppedError, match="the run was stopped while it was opening") as stopped:
            async with ivypy.Session(PLAN, root=tmp_path, opening=slowly):
                pytest.fail("it opened")
        assert stopped.value.exit_code == 130
        await asyncio.sleep(1.0)
        assert asyncio.get_running_loop().time() == pytest.approx(6.0)

    simulate(main())
    (run,) = runs
    assert json.loads((run.folder / "run.json").read_text())["exit_code"] == 130


def test_a_session_that_is_not_open_raises(tmp_path: Path) -> None:
    session = ivypy.Session(PLAN, root=tmp_path)
    for name in ("go", "folder"):
        with pytest.raises(AttributeError, match=f"no '{name}': the session is not open; use `async with"):
            getattr(session, name)
    assert not list(tmp_path.iterdir())


def test_cancelling_a_session_that_opens_is_not_suppressed(tmp_path: Path) -> None:
    async def main() -> None:
        async def never(spec: HostSpec, log: Callable[[str], None]) -> MemoryPipe:
            await asyncio.sleep(3600.0)
            raise AssertionError

        async with asyncio.timeout(5.0), ivypy.Session(PLAN, root=tmp_path, opening=never):
            pytest.fail("it opened")

    with pytest.raises(TimeoutError):
        simulate(main())


BAD: list[tuple[Callable[[ivypy.OpenSession], Awaitable[object]], str]] = [
    (lambda s: s.go("one", warmap="5s"), "did you mean 'warmup'"),
    (lambda s: s.go("one", warmup="5"), "'5' has no unit; write 5s for seconds"),
    (lambda s: s.go("one", loop={"maxtags": [1, 2]}), "a program makes its own loops"),
    (lambda s: s.go("max"), "duplicate step name 'max'"),
    (lambda s: s.edit("hots=a", iops=1), "did you mean 'host'"),
    (lambda s: s.edit("host=d", iops=1), "the plan has no host 'd'"),
    (lambda s: s.edit("workload=x", iops=1), "the plan has no workload 'x'"),
    (lambda s: s.edit("all=all", iops="+5"), "iops: '\\+5' is relative, and needs a running step"),
    (lambda s: s.edit("all=all", iops="50% of step no"), "the plan has no step 'no'"),
    (lambda s: s.edit("all=all", maxtags=8), "maxtags is 8, and the buffers are made for 4"),
    (lambda s: s.edit("workload=scan", fraction_read=0), "no step of the plan writes to this LUN"),
    (lambda s: s.edit("all=all", maxtags="*2"), "'\\*2' is relative"),
]


def test_bad_input_is_reported_as_of_a_plan_and_changes_nothing(tmp_path: Path) -> None:
    async def work(session: ivypy.OpenSession) -> None:
        await session.go("max")
        for ask, says in BAD:
            with pytest.raises(PlanError, match=says):
                await ask(session)
        last = await session.go("last")
        assert last["all=all"]["overall_iops"] == pytest.approx(12 * 50_000)

    session = program(tmp_path, work)
    assert len(json.loads((session.folder / "run.json").read_text())["steps"]) == 2


def test_steps_of_the_plan_declare_what_the_program_may_do(tmp_path: Path) -> None:
    text = PLAN + "steps:\n  - edit: { rollup: workload=scan, set: { fraction_read: 0%, maxtags: 8 } }\n  - go: most\n"
    path = tmp_path / "p.yaml"
    path.write_text(text)

    async def work(session: ivypy.OpenSession) -> None:
        await session.edit("workload=scan", fraction_read="0%", maxtags=8)
        result = await session.go("most")
        assert result["workload=scan"]["write_iops"] == pytest.approx(300_000)

    program(tmp_path / "runs", work, path)


@pytest.mark.parametrize(
    "steps",
    [
        "steps: [ go: one ]\n", "steps:\n- go: one\n- go: two\n",
        "steps:\n  - go: one   # the first\n\n  # and then\n  - go: two\n", "steps:\n  - go:\n      name: one",
    ],
)  # fmt: skip
@pytest.mark.parametrize("behind", ["", "destroy: false\n"])
def test_a_plans_steps_are_taken_out_line_for_line(steps: str, behind: str) -> None:
    text = PLAN + steps + (("" if steps.endswith("\n") else "\n") + behind)
    left = without_steps(text)
    assert left.startswith(PLAN) and left.count("\n") == text.count("\n")
    assert left[len(PLAN) :].strip().removeprefix("# and then").strip() == behind.strip()
    plan = read(left + "\nsteps: [ go: x ]\n", "p", {})
    assert [step.name for step in plan.steps] == ["x"]


def test_what_is_not_a_plan_is_reported(tmp_path: Path) -> None:
    for plan, says in [
        ("{ name: x,\n steps: [] }", "has a line for each of its sections"),
        ("name: x\nhosts: [", "not YAML"),
        (str(tmp_path / "no.yaml"), "No such file"),
    ]:
        with pytest.raises(PlanError, match=says):
            ivypy.Session(plan)


@pytest.mark.slow
def test_importing_ivypy_is_light() -> None:
    code = "import sys, ivypy; assert not {'numpy', 'asyncssh', 'pydantic'} & set(sys.modules); ivypy.Session"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="has no attribute 'Sesion'"):
        ivypy.Sesion  # noqa: B018


@pytest.mark.slow
def test_the_example_runs(tmp_path: Path) -> None:
    words = [str(ROOT / "docs" / "examples" / "knee.py"), str(tmp_path / "data"), str(tmp_path / "runs"), "1"]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=100, check=False)
    (folder,) = (tmp_path / "runs").iterdir()
    if done.returncode == 1:  # this machine was stalled in the second of the maximum
        assert done.stderr.startswith(f"there is no maximum to go by, see {folder}: "), done.stderr
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "at most" in done.stdout and done.stdout.endswith(f"results are in {folder}\n")
