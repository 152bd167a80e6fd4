"""support/fork_server.py: a command that a fork starts is the one that users start, with all that is its own."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.fork_server import COMMAND, Command
from tests.support.real_runs import paced_plan, start, wait_for_line

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("words", [["columns"], ["check", "no.yaml"], ["rnu"]])
def test_it_says_what_the_command_says(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    users = subprocess.run([COMMAND, *words], capture_output=True, text=True, check=False)
    forked = Command(*words)
    assert forked.communicate(60) == (users.stdout, users.stderr) and forked.returncode == users.returncode


def test_environment_and_output_are_its_own(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with path.open("w") as out:
        narrow, other = Command("--help", stdout=out.fileno(), COLUMNS="50"), Command("--help", COLUMNS="100")
        assert narrow.communicate(60) == ("", "")
    wide, _ = other.communicate(60)
    assert max(map(len, path.read_text().splitlines())) <= 50 < max(map(len, wide.splitlines())) <= 100


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_it_has_signals_and_a_session_of_its_own(number: int, code: int, tmp_path: Path) -> None:
    with start(paced_plan(tmp_path, "60s"), tmp_path / "runs") as one:
        wait_for_line(one)
        assert one.poll() is None and os.getsid(one.pid) == one.pid
        assert os.readlink(f"/proc/{one.pid}/fd/0") == os.devnull
        with Command("columns") as other:  # which keeps no end of the first one's pipes
            assert other.communicate(60)[0] and one.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            one.wait(0)
        one.send_signal(number)
        assert one.wait(60) == code == one.returncode
