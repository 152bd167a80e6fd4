"""ivypy's command, or its slave, in a process of its own, as users and bootstraps start it, but for the imports,
which are most of a short run's CPU.

A fork server, one for each pytest and program, has imported them, and packed the slave. It forks, and the child is the
program: with words, environment, folder, pipes and a session of its own. All children of a server have one seed of
hashes. Some tests start commands as users do (real_runs.by_a_user), and slaves as bootstraps do, since here no import
can fail or come late.
"""

import atexit
import contextlib
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
# By program: what it imports, from where it needs it; and what is its main function's, and imported by the child.
IMPORTED = {
    "ivypy": (
        "ivypy.master.cli.commands", "ivypy.master.run.session.run", "ivypy.master.plan.load",
        "ivypy.master.live.line_view",
        "ivypy.master.live.instances_table", "ivypy.master.web.serve",
        "ivypy.master.live.view_decorators", "numpy.ma", "importlib.readers", "ivypy.master.hosts.ssh_pipe",
    ),
    "split_run": ("tests.support.split_run", "ivypy.master.live.line_view", "numpy.ma"),
    "slave": ("ivypy.slave.__main__",),
}  # fmt: skip
# The command's sets the environment.
MAIN = {"ivypy": "ivypy.master.cli.main", "split_run": "tests.support.split_run", "slave": "ivypy.slave.__main__"}
REST_S = 60.0  # for what a command that was killed had started, and which still has its pipes
_REQUEST = 1 << 20  # bytes: words and environment
_ONE_AT_A_TIME = threading.RLock()  # a test may ask from several threads


class Forked:
    """A program of IMPORTED with these words; the part of `subprocess.Popen` that tests need, with its meaning."""

    def __init__(self, program: str, args: list[str], files: Sequence[int], **environment: str) -> None:
        """`files`: its input, its output, and its errors."""
        self.args = args
        self.returncode: Any = None  # as of a Popen: negative for the signal that ended it; None until it was asked
        self._program = program
        request = {"argv": self.args, "environment": {**os.environ, **environment}, "folder": os.getcwd()}
        self.pid = _asked(program, request, files)
        self._ended = os.pidfd_open(self.pid)
        weakref.finalize(self, os.close, self._ended)  # not before: another thread may be waiting for it

    def poll(self) -> Any:
        with _ONE_AT_A_TIME:
            if self.returncode is None and select.select([self._ended], [], [], 0)[0]:
                self.returncode = _asked(self._program, {"ended": self.pid})
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None and not select.select([self._ended], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return int(self.poll() or 0)

    def send_signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            if self.returncode is None:
                signal.pidfd_send_signal(self._ended, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


class Command(Forked):
    """`ivypy`, or another program of IMPORTED, with these words."""

    def __init__(
        self,
        *words: str,
        program: str = "ivypy",
        stdout: int | None = None,
        stderr: int | None = None,
        **environment: str,
    ) -> None:
        """`stdout` and `stderr`: open files; without them pipes, which are read here."""
        self.stdout, out = _opened(stdout)
        self.stderr, err = _opened(stderr)
        with open(os.devnull) as nothing:
            super().__init__(program, [COMMAND, *words], [nothing.fileno(), out, err], **environment)
        for given, its in ((stdout, out), (stderr, err)):
            if given is None:
                os.close(its)

    def __enter__(self) -> "Command":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.communicate(REST_S)

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
    """The process that forks a program, as the tests see it."""

    def __init__(self, program: str) -> None:
        self._asked = 0
        self._link, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _REQUEST)
        with its:
            serve = f"from tests.support import fork_server; fork_server.serve({program!r}, {its.fileno()})"
            words = [sys.executable, "-c", serve]
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


def _asked(program: str, request: object, files: Sequence[int] = ()) -> int:
    with _ONE_AT_A_TIME:
        if program not in _servers:
            _servers[program] = _Server(program)
        return _servers[program].asked(request, files)


_servers: dict[str, _Server] = {}


@atexit.register
def end() -> None:
    """Before what this session of tests leaves behind is looked for."""
    while _servers:
        _servers.popitem()[1].end()


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


def serve(program: str, file: int) -> None:
    """The server's own program, and that of its children."""
    for name in IMPORTED[program]:
        importlib.import_module(name)
    if program != "slave":
        importlib.import_module("ivypy.master.hosts.bundle").slave_bundles()  # kept: a fifth of a short run's CPU
    gc.freeze()  # what is imported stays: no child copies it only to look for garbage
    if _forks(socket.socket(fileno=file)):
        importlib.import_module(MAIN[program]).main()
