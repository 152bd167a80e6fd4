"""A console that goes away: a reader that has read enough, a terminal that is closed, a disk that is full."""

import fcntl
import json
import os
import pty
import signal
import subprocess
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.fork_server import COMMAND, Command
from tests.support.real_runs import (
    ENDED,
    ROOT,
    check_interrupted,
    folder_of,
    paced_plan,
    rows,
    start,
    wait_until_measuring,
)

pytestmark = pytest.mark.slow


def lost(folder: Path) -> list[str]:
    return [row["text"] for row in rows(folder, "events.csv") if row["kind"] == "console_lost"]


def test_a_reader_who_leaves_does_not_end_the_run(tmp_path: Path) -> None:
    process = start(paced_plan(tmp_path, "1s"), tmp_path / "runs")
    process.stdout.readline()
    process.stdout.close()
    _, err = process.communicate(timeout=60)
    folder = folder_of(tmp_path / "runs")
    assert process.returncode in ENDED and err == ""
    assert json.loads((folder / "run.json").read_text())["exit_code"] == process.returncode
    assert len(rows(folder, "summary.all.csv")) == 1
    assert lost(folder) == ["standard output is gone (Broken pipe); `ivypy attach` shows the run"]


def test_ctrl_c_that_also_ends_the_reader_leaves_a_complete_folder(tmp_path: Path) -> None:
    """`ivypy run | tee log` on a terminal."""
    process = start(paced_plan(tmp_path, "60s"), tmp_path / "runs")
    folder = wait_until_measuring(tmp_path / "runs")
    process.stdout.close()
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert err == ""
    check_interrupted(folder, process.returncode)


def test_a_full_disk_behind_standard_output_does_not_end_the_run(tmp_path: Path) -> None:
    words = ["run", "-o", str(tmp_path / "runs"), str(paced_plan(tmp_path, "1s"))]
    with open("/dev/full", "w") as full:
        process = Command(*words, stdout=full.fileno())
        _, err = process.communicate(60)
    folder = folder_of(tmp_path / "runs")
    assert (process.returncode, err) == (json.loads((folder / "run.json").read_text())["exit_code"], "")
    assert process.returncode in ENDED
    assert lost(folder)[0].startswith("standard output is gone (No space left on device)")


def on_a_terminal(words: list[str]) -> tuple["subprocess.Popen[bytes]", int]:
    """A command whose controlling terminal, and only console, is the pty of which the master is returned."""
    master, slave = pty.openpty()

    def control() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        words, stdin=slave, stdout=slave, stderr=slave, start_new_session=True, preexec_fn=control,
        env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    os.close(slave)
    return process, master


def close(master: int) -> None:
    """The window is closed: SIGHUP, and every write fails."""


def ctrl_c_and_close(master: int) -> None:
    os.write(master, b"\x03")
    time.sleep(0.02)


@pytest.mark.parametrize(
    ("how", "ui"),
    [
        (close, "auto"),
        (ctrl_c_and_close, "lines"),
        pytest.param(close, "lines", marks=pytest.mark.long),
        pytest.param(ctrl_c_and_close, "auto", marks=pytest.mark.long),
    ],
)
def test_closing_the_terminal_interrupts_the_run_like_one_ctrl_c(
    tmp_path: Path, ui: str, how: Callable[[int], None]
) -> None:
    plan = paced_plan(tmp_path, "60s")
    process, master = on_a_terminal([COMMAND, "run", "-o", str(tmp_path / "runs"), "--ui", ui, str(plan)])
    try:
        folder = wait_until_measuring(tmp_path / "runs")
        how(master)
    finally:
        os.close(master)
    check_interrupted(folder, process.wait(60))


def test_repeated_sighup_counts_as_one_interrupt(tmp_path: Path) -> None:
    """The shell sends one as the terminal closes, and the kernel another as the shell ends."""
    process = start(paced_plan(tmp_path, "60s"), tmp_path / "runs")
    folder = wait_until_measuring(tmp_path / "runs")
    for _ in range(4):
        os.kill(process.pid, signal.SIGHUP)
        time.sleep(0.02)
    process.communicate(timeout=60)
    check_interrupted(folder, process.returncode)


def shell(words: str) -> tuple[int, str]:
    """The exit code and standard error of a command with its redirections."""
    done = subprocess.run(f"{COMMAND} {words}", shell=True, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stderr


def test_a_run_under_nohup_is_not_ended_by_hanging_up(tmp_path: Path) -> None:
    words = ["nohup", COMMAND, "run", "-o", str(tmp_path / "runs"), str(paced_plan(tmp_path, "3s"))]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    folder = wait_until_measuring(tmp_path / "runs")
    process.send_signal(signal.SIGHUP)
    assert process.wait(60) in ENDED
    assert len(rows(folder, "summary.all.csv")) == 1


@pytest.mark.parametrize("words", [f"check {ROOT}/configs/first.yaml", "schema", "columns", "--help"])
def test_a_full_standard_output_is_one_line_on_standard_error(words: str) -> None:
    assert shell(f"{words} >/dev/full") == (1, "standard output cannot be written: No space left on device\n")


@pytest.mark.parametrize(("words", "code"), [("columns", 1), ("check /no", 2), ("check", 2)])
def test_without_any_output_only_the_exit_code_tells(words: str, code: int) -> None:
    assert shell(f"{words} >/dev/full 2>&1") == (code, "")
    assert shell(f"{words} >/dev/full 2>&-") == (code, "")


def test_a_closed_pipe_is_no_error_for_a_printed_page() -> None:
    process = subprocess.Popen([COMMAND, "schema"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert (process.stderr.read(), process.wait(60)) == (b"", 0)
    process.stderr.close()


@pytest.mark.parametrize("words", ["columns", "run --ui auto /no.yaml", "percentiles /no", "--help"])
def test_a_closed_standard_output_changes_nothing_else(words: str) -> None:
    assert shell(f"{words} >&-") == shell(words)
