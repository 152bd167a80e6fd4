"""The results' disk is slow, or takes nothing for a while: bookkeeping waits, and nothing else does."""

import asyncio
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ivypy.master.errors import OutputError
from ivypy.master.exit_codes import ExitCode
from ivypy.master.output.writer_thread import PATIENCE_S
from ivypy.master.run.record import run_recorder
from ivypy.master.run.session.run import Run
from tests.support import devices
from tests.support.real_runs import ENDED, folder_of, paced_plan, rows, start, wait_until_measuring
from tests.support.simulated.loop import SimulatedLoop
from tests.support.simulated.runs import ONE_STEP, SimulatedRun, hosts, stage

pytestmark = pytest.mark.slow


def frozen(tmp_path: Path, go: str, at_s: float, seconds: float) -> SimulatedRun:
    """A run whose disk takes nothing for so long, from `at_s` after its step's beginning on."""

    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(at_s)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        loop.freeze_disk(seconds)

    return stage(tmp_path, visit, ONE_STEP.replace("go: one", go))


def figures(staged: SimulatedRun) -> tuple[list[str], list[dict[str, str]]]:
    """What the run shows and what it writes, but for instants and its own seeds."""
    phases = staged.eyes.phases()
    return phases, [
        {name: cell for name, cell in row.items() if "utc" not in name and "seed" not in name}
        for row in staged.rows("summary.all.csv")
    ]


STEPS = {
    "fixed": "go: one",
    "measure, which chooses its window afterwards": "go: { name: one, measure: { metric: overall_iops } }",
    "a staircase": "go: { name: one, measure: 10s, staircase: { start: 1000, end: 3000, step: 1000 } }",
}


@pytest.mark.parametrize("go", STEPS.values(), ids=STEPS.keys())
def test_a_step_on_a_frozen_disk_is_the_same_step(tmp_path: Path, go: str) -> None:
    usual = frozen(tmp_path / "usual", go, 0.0, 0.0)
    for seconds in (5.0, PATIENCE_S - 5):
        late = frozen(tmp_path / f"{seconds:g}", go, 12.0, seconds)
        assert figures(late) == figures(usual)
        assert late.code is usual.code and late.seconds <= usual.seconds + PATIENCE_S
        assert not {row["kind"] for row in late.rows("events.csv")} & {"late", "lost", "slow_controller"}


def test_a_disk_that_takes_nothing_for_a_minute_ends_the_run_and_its_load(tmp_path: Path) -> None:
    slaves = hosts()

    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(12.0)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        loop.freeze_disk(300.0)

    with pytest.raises(BaseExceptionGroup) as failed:
        stage(tmp_path, visit, ONE_STEP.replace("measure: 30s", "measure: 10m"), slaves)
    (error,) = failed.value.exceptions
    assert isinstance(error, OutputError) and error.exit_code is ExitCode.INTERNAL
    assert str(error).startswith(f"{folder_of(tmp_path)}: not written: its disk has not taken in ")
    for slave in slaves.values():
        assert slave._step is not None and slave._step.done(), "its pipe was closed, which halts it"


def test_events_that_the_disk_does_not_take_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_recorder, "MOST_EVENTS", 100)

    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(12.0)
        blocked, thawed = threading.Event(), threading.Event()

        def block() -> None:
            blocked.set()
            thawed.wait()

        run.recorder.writer.post(block)
        assert blocked.wait(60.0), "the writer's thread came to it"
        for number in range(300):
            run.api.mark(str(number), "me")
        thawed.set()
        await run.recorder.writer.do(lambda: None)
        run.api.mark("thawed", "me")

    staged = stage(tmp_path, visit)
    marks = [row["text"] for row in staged.rows("events.csv") if row["kind"] == "mark"]
    (lacking,) = staged.events("not_written")
    missing = int(lacking.split()[2])
    assert lacking == f"events.csv lacks {missing} rows: the disk was too slow"
    assert marks == [*(f"{number}; by me" for number in range(300 - missing)), "thawed; by me"] and missing > 150


@pytest.fixture
def disk() -> Iterator[Path]:
    """A filesystem of its own, which can be frozen."""
    with ExitStack() as undo:
        try:
            yield undo.enter_context(devices.disk_in_memory(64 << 20))
        except devices.Missing as missing:
            pytest.skip(str(missing))


@pytest.mark.realtime
@pytest.mark.long  # the law itself is simulated: test_a_step_on_a_frozen_disk_is_the_same_step
def test_a_real_filesystem_frozen_for_5_s_loses_no_subinterval(tmp_path: Path, disk: Path) -> None:
    """As the snapshot of a virtual machine freezes it. Hosts whose results are late would be left out after 0.9 s."""
    plan = paced_plan(tmp_path, "8s", connectors="")
    process = start(plan, disk / "runs")
    folder = wait_until_measuring(disk / "runs")
    subprocess.run(["fsfreeze", "--freeze", str(disk)], check=True)
    time.sleep(5)
    subprocess.run(["fsfreeze", "--unfreeze", str(disk)], check=True)
    said, err = process.communicate(timeout=60)
    assert process.returncode in ENDED, said + err
    measured = [row for row in rows(folder, "step0000.one/all/all.csv") if row["phase"] == "run"]
    assert len(measured) == 16 and "host_late" not in rows(folder, "summary.all.csv")[0]["reasons"]
    assert not {row["kind"] for row in rows(folder, "events.csv")} & {"late", "lost", "slow_controller"}
