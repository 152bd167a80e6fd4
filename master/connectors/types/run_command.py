"""Run a command for its output, whole and in time, or the reason why not.

Rule: a command runs in a process group of its own, which is killed at the deadline, or when there is too much output,
whatever the command started. What ends this process early (an exception, a signal) kills it too.
"""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from ....protocol.connector import Cannot
from ....protocol.text import printable

MOST_BYTES: Final = 16 << 20  # of output
KEPT_ERRORS: Final = 1 << 14  # bytes of stderr, the last ones
READ_BYTES: Final = 1 << 16
LONGEST_SHOWN: Final = 300  # characters of a line of stderr
LONGEST_WAIT_S: Final = 0.5  # Python handles a signal that came just before a wait began only after that wait


def run_command(command: Sequence[str], timeout_s: float) -> bytes:
    """Its standard output. Raises Cannot, whose text has the last line of stderr."""
    (output,) = run_commands([command], timeout_s)
    return output


def run_commands(commands: Sequence[Sequence[str]], timeout_s: float) -> list[bytes]:
    """The same of several commands that run side by side."""
    deadline_s = time.monotonic() + timeout_s
    started: list[_Running] = []
    try:
        for command in commands:
            started.append(_Running(command))
        _read_all(started, deadline_s, timeout_s)
        return [running.result(deadline_s, timeout_s) for running in started]
    finally:
        for running in started:
            running.kill()


class _Running:
    """A command that was started. Raises Cannot where it cannot be."""

    def __init__(self, command: Sequence[str]) -> None:
        self._name = command[0]
        self._ended = False  # by itself, with its outputs closed: what it leaves running is meant to run
        self.output = bytearray()
        self.errors = bytearray()
        pipe = subprocess.PIPE
        try:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, bufsize=0, start_new_session=True
            )
        except FileNotFoundError:
            raise Cannot(f"{self._name} is not on this machine; give its path, or run it elsewhere with `on`") from None
        except (OSError, ValueError) as error:
            raise Cannot(f"{self._name} cannot be started: {error}") from None

    def result(self, deadline_s: float, timeout_s: float) -> bytes:
        """Raises Cannot where it failed."""
        try:
            code = self.process.wait(max(deadline_s - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            raise self.too_late(timeout_s) from None
        self._ended = True
        if code != 0:
            how = f"exit code {code}" if code > 0 else f"ended by signal {-code}"
            raise Cannot(f"{self._name}: {how}{self._last_words()}")
        return bytes(self.output)

    def too_late(self, timeout_s: float) -> Cannot:
        state = "did not end" if self.process.poll() is None else "ended, but not what it started,"
        remedy = "; give a longer `timeout`, or a command that takes less"
        return Cannot(f"{self._name} {state} within {timeout_s:g} s, and was killed{self._last_words()}{remedy}")

    def too_much(self) -> Cannot:
        return Cannot(f"{self._name} printed more than {MOST_BYTES >> 20} MiB, and was killed")

    def kill(self) -> None:
        """It and what it started, unless it has ended."""
        if not self._ended:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    def _last_words(self) -> str:
        lines = self.errors.decode("utf-8", "replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f" ({printable(last[:LONGEST_SHOWN])})" if last else ""


def _read_all(started: Sequence[_Running], deadline_s: float, timeout_s: float) -> None:
    """Until all outputs have ended. Raises Cannot."""
    with selectors.DefaultSelector() as selector:
        for running in started:
            for pipe, into in ((running.process.stdout, running.output), (running.process.stderr, running.errors)):
                assert pipe is not None
                selector.register(pipe, selectors.EVENT_READ, (running, into))
        while left := list(selector.get_map().values()):
            ready = selector.select(min(max(deadline_s - time.monotonic(), 0), LONGEST_WAIT_S))
            if not ready and time.monotonic() >= deadline_s:
                raise left[0].data[0].too_late(timeout_s)
            for key, _ in ready:
                running, into = key.data
                data = os.read(key.fd, READ_BYTES)
                if not data:
                    selector.unregister(key.fileobj)
                into += data
                if into is running.errors:
                    del into[:-KEPT_ERRORS]
                elif len(into) > MOST_BYTES:
                    raise running.too_much()
