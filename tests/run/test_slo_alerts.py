"""An alert's command ends with the step, and so does all that it started."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ivypy.master.control.decision import Alert
from ivypy.master.control.focus import Focus
from ivypy.master.run.record.slo_alerts import SloAlerts
from tests.support.control_specs import slo_spec
from tests.support.waits import wait_until_async

THRESHOLD = slo_spec(Focus("overall_response_us_mean"), 0.5)


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_a_command_that_outlives_the_step_is_killed_with_what_it_started(tmp_path: Path) -> None:
    told: list[str] = []
    step: Any = SimpleNamespace(name="s", control=SimpleNamespace(slo=()))
    alarms = SloAlerts(step, lambda host, kind, text: told.append(text))
    child = tmp_path / "child"
    command = ("sh", "-c", f"sleep 1000 & echo $! > {child}.new; mv {child}.new {child}; wait")
    alert = Alert(THRESHOLD, "all=all", 1.0, 3)
    running = asyncio.create_task(alarms._run(command, alert))
    await wait_until_async(child.exists, "the command has started its child")
    pid = int(child.read_text())
    assert runs(pid)
    running.cancel()
    await running
    await wait_until_async(lambda: not runs(pid), "the child has ended")
    assert told == ["sh was killed: it still ran 10 s after the step's end"]


def stall_until(condition: Callable[[], bool]) -> None:
    """Keep the event loop from running, as a machine stall does, for half a second at most."""
    for _ in range(50):
        if condition():
            return
        time.sleep(0.01)


def those_of(mark: str) -> list[str]:
    """The processes whose environment holds `mark`."""
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in environ.read_bytes() and runs(int(environ.parent.name)):
                found.append(environ.parent.name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize("turns", range(1, 7))
async def test_a_command_that_has_only_just_begun_is_killed_with_what_it_started(tmp_path: Path, turns: int) -> None:
    told: list[str] = []
    step: Any = SimpleNamespace(name="s", control=SimpleNamespace(slo=()))
    alarms = SloAlerts(step, lambda host, kind, text: told.append(text))
    child, mark = tmp_path / "child", f"all={tmp_path}"
    command = ("sh", "-c", f"sleep 1000 & : > {child}; wait")
    running = asyncio.create_task(alarms._run(command, Alert(THRESHOLD, mark, 1.0, 3)))
    for _ in range(turns):  # turns of the loop: the command is started in one of the first
        await asyncio.sleep(0)
    stall_until(child.exists)
    running.cancel()
    await running
    await wait_until_async(lambda: not those_of(mark), "the command and its child have ended")
    assert len(told) == 1
