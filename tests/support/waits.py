"""Waiting for what another process or the kernel does: one loop, whose failure names what did not happen.

Rule: a deadline bounds a defect, not a slow machine. So the default is long, and only a test that asserts a time
gives a shorter one. A round is short at first, and a tenth of what was waited later: a long wait costs no core.
"""

import asyncio
import time
from collections.abc import Callable

import psutil

PATIENCE_S = 60.0
ROUND_S = 0.01
LONGEST_ROUND_S = 0.1


class OutOfPatience(AssertionError):
    """What did not happen in PATIENCE_S: no stall of the machine explains that."""


def wait_until(condition: Callable[[], bool], what: str, seconds: float = PATIENCE_S) -> None:
    """Evaluate `condition` until it holds, once per round: what held once is not evaluated again.

    Raises AssertionError if it does not hold within `seconds`.
    """
    began = time.monotonic()
    while not condition():
        waited = time.monotonic() - began
        _see(waited, seconds, what)
        time.sleep(min(max(ROUND_S, waited / 10), LONGEST_ROUND_S))


async def wait_until_async(condition: Callable[[], bool], what: str, seconds: float = PATIENCE_S) -> None:
    """The same, while the event loop runs on."""
    began = time.monotonic()
    while not condition():
        waited = time.monotonic() - began
        _see(waited, seconds, what)
        await asyncio.sleep(min(max(ROUND_S, waited / 10), LONGEST_ROUND_S))


def _see(waited: float, seconds: float, what: str) -> None:
    if waited >= seconds:
        raise (OutOfPatience if seconds >= PATIENCE_S else AssertionError)(f"not within {seconds:g} s: {what}")


def is_running(process: psutil.Process) -> bool:
    """Whether a process runs or is stopped. A zombie does neither, though its parent still lists it as a child."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def none_runs(*processes: psutil.Process) -> bool:
    """Whether all of them have ended."""
    return not any(map(is_running, processes))


def wait_until_ended(*processes: psutil.Process, seconds: float = PATIENCE_S) -> None:
    """Wait for the end of processes that need not be children of this one."""
    wait_until(lambda: none_runs(*processes), f"{processes} ended", seconds)
