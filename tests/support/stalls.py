"""When the machine stalled: its hypervisor took the cores away, or something else held them.

A test of wall-clock time is a statement about a machine that runs. A process of its own sleeps on every core, over and
over, and writes down each sleep that took much too long. A test with the marker `realtime` that failed while that
happened is skipped, with the length of the stall (stall_skips.py); one that failed on a machine that ran has failed.

Rule: only the machine is observed: nothing here knows what is tested or how it failed.
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
STALL_S = 0.03  # more than a scheduler makes one wait beside other tests, less than tests of 50 ms subintervals bear


class Witness:
    """Reads what the watching process wrote down."""

    def __init__(self, record: Path) -> None:
        self._record = record
        self._since = 0

    def begin(self) -> None:
        """Forget what was before the test that begins now."""
        self._since = time.monotonic_ns()

    def longest_s(self) -> float:
        """The longest stall of a core since then; 0: no core stalled for long."""
        time.sleep(5 * NAP_S)  # what lasts until now is written down when it is over
        rows = [[int(word) for word in line.split()] for line in self._record.read_text().splitlines()]
        return max((until - max(since, self._since) for since, until in rows if until > self._since), default=0) / 1e9


@contextmanager
def witness() -> Iterator[Witness]:
    with tempfile.NamedTemporaryFile("ab", prefix="ivypy-stalls-") as record:
        words = [sys.executable, __file__, record.name]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None and process.stdout.readline() == b"watching\n"
            yield Witness(Path(record.name))
            process.communicate()


def _watch(core: int, record: int) -> None:
    os.sched_setaffinity(0, {core})  # of this thread
    before = time.monotonic_ns()
    while True:
        time.sleep(NAP_S)
        now = time.monotonic_ns()
        if now - before > (NAP_S + STALL_S) * 1e9:
            os.write(record, f"{before} {now}\n".encode())
        before = now


if __name__ == "__main__":
    record = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
    for core in os.sched_getaffinity(0):
        threading.Thread(target=_watch, args=(core, record), daemon=True).start()
    print("watching", flush=True)
    sys.stdin.read()  # until the tests are over
