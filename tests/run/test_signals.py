"""What a press does, whenever it comes: before there is a loop, while the loop is stuck, and again and again."""

import signal
import subprocess
import sys

import pytest

from ivypy.master.run.session.signals import Interrupts

pytestmark = pytest.mark.slow

BOUND_S = 60  # far more than it takes; the programs themselves would go on for longer
PROGRAM = """
import asyncio, os, signal, sys, time
import click
from ivypy.master.run.session import signals

def press():
    os.kill(os.getpid(), signal.Signals({number}))

{what}

try:
    signals.run_until_pressed(main)
except click.Abort as error:
    sys.stdout.write(str(error))
    sys.exit(77)
"""
BEFORE_THE_LOOP = """
run = asyncio.run

def pressed_before(coroutine):
    press()
    return run(coroutine)

asyncio.run = pressed_before

async def main(presses):
    await asyncio.sleep(600)
"""
WHILE_THE_LOOP_IS_STUCK = """
async def main(presses):
    for count in (1, 2, 3):
        press()
        while presses.count < count:  # signals that wait are one
            time.sleep(0.001)
    time.sleep(600)
"""


@pytest.mark.parametrize(
    ("what", "number", "code", "by"),
    [
        (BEFORE_THE_LOOP, signal.SIGINT, 77, "Ctrl-C"),
        (BEFORE_THE_LOOP, signal.SIGTERM, 77, "SIGTERM"),
        (BEFORE_THE_LOOP, signal.SIGHUP, 77, "SIGHUP"),
        (WHILE_THE_LOOP_IS_STUCK, signal.SIGINT, 130, ""),
        (WHILE_THE_LOOP_IS_STUCK, signal.SIGTERM, 130, ""),
    ],
)
def test_a_press_counts_whatever_the_loop_does(what: str, number: signal.Signals, code: int, by: str) -> None:
    program = PROGRAM.format(number=int(number), what=what)
    ended = subprocess.run(
        [sys.executable, "-c", program], timeout=BOUND_S, check=False, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stdout) == (code, by)


def test_what_pressed_first_is_known() -> None:
    presses = Interrupts()
    assert presses.by == ""
    presses.press("SIGTERM")
    presses.press("Ctrl-C")
    assert presses.by == "SIGTERM"


@pytest.mark.parametrize(
    ("events", "done"),
    [
        ("p", ["give up"]),
        ("pp", ["give up", "give up"]),
        ("hp", ["halt"]),
        ("hpp", ["halt", "give up"]),
        ("ph", ["give up", "halt"]),
        ("php", ["give up", "halt", "give up"]),
    ],
)
def test_the_first_press_halts_and_the_second_gives_up(events: str, done: list[str]) -> None:
    """p: a press; h: from now on there is something to halt."""
    seen: list[str] = []
    presses = Interrupts(lambda: seen.append("give up"))
    for event in events:
        if event == "p":
            presses.press()
        else:
            presses.halts(lambda: seen.append("halt"))
    assert seen == done
