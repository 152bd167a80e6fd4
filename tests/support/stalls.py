"""When the machine stood still: its host took the cores away, or something else held them.

A test of real time is a statement about a machine that runs. A process of its own sleeps on every core, over and over,
and writes down each sleep that took much too long; a test that failed while that happened is asked again (conftest.py),
and pytest's summary counts and names it. A test that failed on a machine that ran has failed.

Rule: only the machine is asked, never the test: nothing here knows what is tested or how it failed.
"""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAP_S = 0.01
STILL_S = 0.03  # more than a scheduler makes one wait beside other tests, less than tests of 50 ms subintervals bear


class Witness:
    """What the process beside wrote down."""

    def __init__(self, said: Path) -> None:
        self._said = said
        self._since = 0

    def begin(self) -> None:
        """A test begins: what was before is none of its business."""
        self._since = time.monotonic_ns()

    def longest_s(self) -> float:
        """The longest time that a core stood still since then; 0: none did for long."""
        time.sleep(5 * NAP_S)  # what lasts until now is written down when it is over
        rows = [[int(word) for word in line.split()] for line in self._said.read_text().splitlines()]
        return max((until - max(since, self._since) for since, until in rows if until > self._since), default=0) / 1e9

    def stood_still(self) -> bool:
        return self.longest_s() > STILL_S


@contextmanager
def witness() -> Iterator[Witness]:
    with tempfile.NamedTemporaryFile("ab", prefix="ivypy-stalls-") as said:
        words = [sys.executable, __file__]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=said) as process:
            yield Witness(Path(said.name))
            process.communicate()


def _watch(core: int) -> None:
    os.sched_setaffinity(0, {core})  # of this thread
    before = time.monotonic_ns()
    while True:
        time.sleep(NAP_S)
        now = time.monotonic_ns()
        if now - before > (NAP_S + STILL_S) * 1e9:
            os.write(1, f"{before} {now}\n".encode())
        before = now


if __name__ == "__main__":
    for core in os.sched_getaffinity(0):
        threading.Thread(target=_watch, args=(core,), daemon=True).start()
    sys.stdin.read()  # until who wants to know is gone
