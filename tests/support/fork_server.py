"""ivypy's command in a process of its own, as users start it, but for the imports, which are most of a short run's CPU.

The fork server, one for each pytest, has imported them. It forks, and the child is the command: with words,
environment, folder, pipes and a session of its own. All children of a server have one seed of hashes. Some tests start
commands as users do (real_runs.by_a_user), since here no import can fail or come late.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

COMMAND = str(Path(sys.executable).with_name("ivypy"))
# What a run and a page import, from where they need it.
IMPORTED = ("cli.commands", "run.run", "plan.load", "live.line_view", "live.instances_table", "web.serve")
REST_S = 60.0  # for what a command that was killed had started, and which still has its pipes
_REQUEST = 1 << 20  # bytes: words and environment
_ONE_AT_A_TIME = threading.RLock()  # a test may ask from several threads


class Command:
    """`ivypy` with these words; the part of `subprocess.Popen` that tests need, with its meaning."""

    def __init__(self, *words: str, stdout: int | None = None, stderr: int | None = None, **environment: str) -> None:
        """`stdout` and `stderr`: open files; without them pipes, which are read here."""
        self.args = [COMMAND, *words]
        self.returncode: Any = None  # as of a Popen: negative for the signal that ended it; None until it was asked
        self.stdout, out = _opened(stdout)
        self.stderr, err = _opened(stderr)
        request = {"argv": self.args, "environment": {**os.environ, **environment}, "folder": os.getcwd()}
        with open(os.devnull) as nothing:
            self.pid = _asked(request, [nothing.fileno(), out, err])
        for given, its in ((stdout, out), (stderr, err)):
            if given is None:
                os.close(its)
        self._ended = os.pidfd_open(self.pid)
        weakref.finalize(self, os.close, self._ended)  # not before: another thread may be waiting for it

    def __enter__(self) -> "Command":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.communicate(REST_S)

    def poll(self) -> Any:
        with _ONE_AT_A_TIME:
            if self.returncode is None and select.select([self._ended], [], [], 0)[0]:
                self.returncode = _asked({"ended": self.pid})
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None and not select.select([self._ended], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return int(self.poll() or 0)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What it prints from now on, as far as a test has not closed the pipes, which are closed then."""
        out, err = _Rest(self.stdout), _Rest(self.stderr)
        self.wait(timeout)
        for one in (out, err):  # what it started may have the pipes, and print on
            one.join(timeout)
            if one.is_alive():
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
        self.stdout.close()
        self.stderr.close()
        return out.text, err.text

    def send_signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            if self.returncode is None:
                signal.pidfd_send_signal(self._ended, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _opened(file: int | None) -> tuple[TextIO, int]:
    """What is read here, and where the command writes."""
    if file is not None:
        return io.StringIO(), file
    ours, its = os.pipe()
    return open(ours), its


class _Rest(threading.Thread):
    """Reads a pipe to its end, and is not waited for as pytest ends."""

    def __init__(self, pipe: TextIO) -> None:
        super().__init__(daemon=True)
        self._pipe, self.text = pipe, ""
        self.start()

    def run(self) -> None:
        if not self._pipe.closed:
            self.text = self._pipe.read()


class _Server:
    """The process that forks, as the tests see it."""

    def __init__(self) -> None:
        self._asked = 0
        self._link, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _REQUEST)
        with its:
            words = [sys.executable, "-c", f"from tests.support import fork_server; fork_server.serve({its.fileno()})"]
            # In a session of its own: Ctrl-C on the tests' terminal is pytest's.
            self._process = subprocess.Popen(
                words, cwd=Path(__file__).parents[2], pass_fds=[its.fileno()], start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            )  # fmt: skip

    def asked(self, request: object, files: Sequence[int]) -> int:
        """Its answer. A test may have been interrupted while it waited for an earlier one, which is passed over."""
        self._asked += 1
        socket.send_fds(self._link, [json.dumps([self._asked, request]).encode()], files)
        number = 0
        while number != self._asked:
            said = self._link.recv(64)
            assert said, "the fork server has ended"
            number, answer = map(int, said.split())
        return answer

    def end(self) -> None:
        self._link.close()
        self._process.wait(60)


def _asked(request: object, files: Sequence[int] = ()) -> int:
    with _ONE_AT_A_TIME:
        return _server().asked(request, files)


@functools.cache
def _server() -> _Server:
    server = _Server()
    atexit.register(server.end)
    return server


def end() -> None:
    """Before what this session of tests leaves behind is looked for."""
    if _server.cache_info().currsize:
        _server().end()
        _server.cache_clear()


def _forks(link: socket.socket) -> bool:
    """Fork the commands that are asked for, until nobody is left who asks. Whether this is one of them."""
    while True:
        text, files, _, _ = socket.recv_fds(link, _REQUEST, 3)
        if not text:
            return False
        number, request = json.loads(text)
        if "ended" in request:
            _, status = os.waitpid(request["ended"], 0)
            answer = os.waitstatus_to_exitcode(status)
        elif answer := os.fork():
            for file in files:
                os.close(file)
        else:
            link.close()
            _become(files, **request)
            return True
        link.send(b"%d %d" % (number, answer))


def _become(files: list[int], argv: list[str], environment: dict[str, str], folder: str) -> None:
    os.setsid()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv = argv
    sys.path.remove("")  # which is the folder
    sys.stdout.reconfigure(line_buffering=os.isatty(1))  # type: ignore[union-attr]
    Path("/proc/self/comm").write_text(" ".join(["ivypy", *argv[1:]])[:15])  # for who finds it left behind


def serve(file: int) -> None:
    """The server's program, and that of its children."""
    for name in IMPORTED:
        importlib.import_module(f"ivypy.master.{name}")
    gc.freeze()  # what is imported stays: no child copies it only to look for garbage
    if _forks(socket.socket(fileno=file)):
        from ivypy.master.cli.main import main  # which sets the environment

        main()
