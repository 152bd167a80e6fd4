"""Alerts of a running step: a row of events.csv each, and the command of the plan's `on_break`.

Rule: the run never waits for a command, and no command outlives the step by more than PATIENCE_S. Commands run without
a shell; their input is in the environment. How often one runs, control decides (control/slo.py).
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from typing import Final

from ...control.decision import Alert
from ...plan.model import Step

PATIENCE_S: Final = 10.0  # for commands that still run when the step has ended; then they are killed
MOST_SAID: Final = 200  # characters of a command's complaint that are kept

ReportEvent = Callable[[str, str, str], None]  # host, kind, text


class SloAlerts:
    """Holds a step's commands, and those that run."""

    def __init__(self, step: Step, report: ReportEvent) -> None:
        self._step = step
        self._report = report
        self._running: set[asyncio.Task[None]] = set()

    def raise_alert(self, alert: Alert) -> None:
        """Report that a threshold is breached, and start its command if it has one."""
        self._report("", "slo_breached", f"{alert.threshold}: {alert.seen}")
        if command := alert.threshold.command:
            task = asyncio.get_running_loop().create_task(self._run(command, alert))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def close(self) -> None:
        """Wait for the commands that still run, for a bounded time."""
        if self._running:
            _, late = await asyncio.wait(self._running, timeout=PATIENCE_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _run(self, command: tuple[str, ...], alert: Alert) -> None:
        starts = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                *command, env=os.environ | self._environment(alert),
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        )  # fmt: skip
        try:
            # Shielded: to cancel a start that has forked would kill the command alone and leave what it started.
            process = await asyncio.shield(starts)
            _, complaint = await process.communicate()
        except OSError as error:
            self._report("", "on_break", f"{command[0]} was not run: {error.strerror or error}")
            return
        except asyncio.CancelledError:
            with contextlib.suppress(OSError):  # it could not be started, or has ended just now
                process = await starts
                os.killpg(process.pid, signal.SIGKILL)  # with all that it started
                await process.wait()
            self._report("", "on_break", f"{command[0]} was killed: it still ran {PATIENCE_S:g} s after the step's end")
            return
        words = complaint.decode(errors="replace").strip()[-MOST_SAID:]
        self._report("", "on_break", f"{command[0]} ended with {process.returncode}{': ' + words if words else ''}")

    def _environment(self, alert: Alert) -> dict[str, str]:
        return {
            "IVYPY_THRESHOLD": str(alert.threshold),
            "IVYPY_INSTANCE": alert.instance,
            "IVYPY_VALUE": f"{alert.value:.9g}",
            "IVYPY_STEP": self._step.name,
            "IVYPY_SUBINTERVAL": str(alert.subinterval),
        }
