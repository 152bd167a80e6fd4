"""A console that nobody reads: a pager that waits, a terminal held by Ctrl-S, a stopped `tee`. The run is the same."""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.fork_server import COMMAND, Command
from tests.support.real_runs import (
    ENDED,
    check_interrupted,
    folder_of,
    ivypy,
    paced_plan,
    rows,
    wait_until_measuring,
)
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow

BOUND_S = 100.0  # for the process to end; a busy machine is slow


@dataclass
class Console:
    """A run whose standard output, and error, nobody reads until `read` is called."""

    process: Command
    read: Callable[[], bytes]  # what is there at once


def a_pipe() -> tuple[int, Callable[[], bytes]]:
    """One that is full: the first byte would wait."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writing, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writing, bytes(4096))
    os.set_blocking(writing, True)
    os.set_blocking(reading, False)
    return writing, lambda: taken(reading)


def a_terminal() -> tuple[int, Callable[[], bytes]]:
    """One whose flow is stopped, as by Ctrl-S."""
    master, slave = os.openpty()
    os.set_blocking(master, False)
    termios.tcflow(slave, termios.TCOOFF)
    slave_too = os.dup(slave)

    def read() -> bytes:
        with contextlib.suppress(termios.error):
            termios.tcflow(slave_too, termios.TCOON)
        return taken(master)

    return slave, read


def taken(fd: int) -> bytes:
    try:
        return os.read(fd, 1 << 16)
    except (BlockingIOError, OSError):  # EIO: the other end of a terminal is closed
        return b""


@contextlib.contextmanager
def unread(
    tmp_path: Path, ui: str, opened: Callable[[], tuple[int, Callable[[], bytes]]], measure: str, errors: bool = False
) -> Iterator[Console]:
    """`errors`: standard error is the same console."""
    fd, read = opened()
    words = ["run", "-o", str(tmp_path / "runs"), "--ui", ui, str(paced_plan(tmp_path, measure))]
    with open(os.devnull, "w") as nothing:
        process = Command(*words, stdout=fd, stderr=fd if errors else nothing.fileno(), TERM="xterm")
    os.close(fd)
    try:
        yield Console(process, read)
    finally:
        process.kill()
        process.wait()


def exit_code(folder: Path) -> int | None:
    """What run.json says of how the run ended."""
    code = json.loads((folder / "run.json").read_text())["exit_code"]
    assert code is None or isinstance(code, int)
    return code


CONSOLES = pytest.mark.parametrize(
    ("ui", "opened"),
    [
        pytest.param("lines", a_pipe, id="lines"),
        pytest.param("json", a_pipe, id="json", marks=pytest.mark.long),  # one thread writes for all: console_thread
        pytest.param("auto", a_terminal, id="bar", marks=pytest.mark.long),
    ],
)


@pytest.mark.realtime
@CONSOLES
def test_an_unread_console_delays_no_subinterval_and_shows_the_end_when_read(
    tmp_path: Path, ui: str, opened: Callable[[], tuple[int, Callable[[], bytes]]]
) -> None:
    with unread(tmp_path, ui, opened, "3s") as console:
        folder = wait_until_measuring(tmp_path / "runs")
        wait_until(lambda: exit_code(folder) is not None, "run.json has an exit code", BOUND_S)
        assert console.process.poll() is None, "it waits for a reader, for a while"
        shown = b""
        while console.process.poll() is None:
            shown += console.read()
            time.sleep(0.01)
        shown += console.read()
    assert console.process.returncode == exit_code(folder) and console.process.returncode in ENDED
    assert str(folder).encode() in shown.strip().splitlines()[-1], shown[-500:]
    assert len([row for row in rows(folder, "step0000.one/all/all.csv") if row["phase"] == "run"]) == 6
    assert not {row["kind"] for row in rows(folder, "events.csv")} & {"late", "lost", "slow_controller"}


@pytest.mark.parametrize(
    ("ui", "opened", "number"),
    [
        pytest.param("lines", a_pipe, signal.SIGINT, id="lines, Ctrl-C", marks=pytest.mark.long),
        pytest.param("auto", a_terminal, signal.SIGTERM, id="bar, SIGTERM"),
    ],
)
def test_one_interrupt_ends_a_run_whose_console_is_never_read(
    tmp_path: Path, ui: str, opened: Callable[[], tuple[int, Callable[[], bytes]]], number: signal.Signals
) -> None:
    """Standard error is not read either."""
    with unread(tmp_path, ui, opened, "10m", errors=True) as console:
        folder = wait_until_measuring(tmp_path / "runs")
        console.process.send_signal(number)
        check_interrupted(folder, console.process.wait(BOUND_S))


def test_three_interrupts_end_a_process_whose_console_is_never_read(tmp_path: Path) -> None:
    with unread(tmp_path, "lines", a_pipe, "10m", errors=True) as console:
        wait_until_measuring(tmp_path / "runs")
        for _ in range(3):
            console.process.send_signal(signal.SIGINT)
            time.sleep(0.05)  # signals that wait are one
        assert console.process.wait(BOUND_S) == 130


def test_an_interrupt_after_the_run_keeps_its_exit_code(tmp_path: Path) -> None:
    """The run is over, and waits for a reader only."""
    with unread(tmp_path, "lines", a_pipe, "1s") as console:
        folder = wait_until_measuring(tmp_path / "runs")
        wait_until(lambda: exit_code(folder) is not None, "run.json has an exit code", BOUND_S)
        console.process.send_signal(signal.SIGTERM)
        assert console.process.wait(BOUND_S) == exit_code(folder)


def test_signals_while_a_run_ends_do_not_change_its_exit_code(tmp_path: Path) -> None:
    """Ctrl-C, and the terminal hangs up again and again until the process is gone."""
    with unread(tmp_path, "none", a_pipe, "10m") as console:
        folder = wait_until_measuring(tmp_path / "runs")
        console.process.send_signal(signal.SIGINT)
        while console.process.poll() is None:
            console.process.send_signal(signal.SIGHUP)
            time.sleep(0.001)
        check_interrupted(folder, console.process.returncode)


def test_the_socket_answers_while_the_console_is_not_read(tmp_path: Path) -> None:
    with unread(tmp_path, "json", a_pipe, "10m", errors=True) as console:
        folder = wait_until_measuring(tmp_path / "runs")
        for words in (["status", str(folder)], ["stop", str(folder)]):
            done = ivypy(*words)
            assert done.returncode == 0, done.stderr
        check_interrupted(folder, console.process.wait(BOUND_S))


@pytest.mark.parametrize("ui", ["lines", pytest.param("json", marks=pytest.mark.long)])
def test_a_character_outside_of_the_consoles_encoding_is_escaped(tmp_path: Path, ui: str) -> None:
    plan = paced_plan(tmp_path, "1s")
    plan.write_text(plan.read_text().replace("go: one", "go: { name: été }"))
    words = [COMMAND, "run", "-o", str(tmp_path / "runs"), "--no-report", "--ui", ui, str(plan)]
    around = {**os.environ, "PYTHONIOENCODING": "ascii"}  # which Python reads when it starts
    done = subprocess.run(words, capture_output=True, timeout=BOUND_S, check=False, env=around)
    assert done.returncode in ENDED and done.stderr == b""
    said = b"\\u00e9t\\u00e9" if ui == "json" else b"\\xe9t\\xe9"
    assert said in done.stdout and exit_code(folder_of(tmp_path / "runs")) == done.returncode
