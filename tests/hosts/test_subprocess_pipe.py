"""Pipes to subprocesses: bytes both ways, every way to end, nothing left behind."""

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import asyncssh
import psutil
import pytest

from ivypy.master.hosts import subprocess_pipe
from ivypy.master.hosts.errors import HostUnusable
from ivypy.master.hosts.host_logs import HostLogs
from ivypy.master.hosts.host_spec import HostSpec, Launcher
from ivypy.master.hosts.launch import open_pipe
from ivypy.master.hosts.login_throttle import LoginThrottle
from ivypy.master.hosts.pipe import Pipe, PipeLost
from ivypy.master.hosts.subprocess_pipe import ended
from tests.support.simulated.loop import simulate
from tests.support.stand_in_slave import ask, line, local, opened, stand_in
from tests.support.waits import PATIENCE_S, is_running, none_runs, wait_until_ended

pytestmark = pytest.mark.slow


async def test_a_close_that_is_cancelled_twice_leaves_no_process_and_nothing_that_waits_for_it(tmp_path: Path) -> None:
    """Ctrl-C twice: a process that is reaped once the loop is closed makes asyncio complain of it."""
    async with opened(local(tmp_path / "cache")) as pipe:
        pid = int((await ask(pipe, "facts")).split()[0])
        process = psutil.Process(pid)
        process.suspend()  # its input's end does not end it
        closing = asyncio.create_task(pipe.close())
        await asyncio.sleep(0)
        for _ in range(3):
            closing.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert not psutil.pid_exists(pid)


async def test_a_local_slave_sends_hello_and_answers(tmp_path: Path) -> None:
    async with opened(local(tmp_path / "cache")) as pipe:
        assert await ask(pipe, "say good morning") == "good morning"


async def test_it_runs_the_controllers_own_python_isolated_in_a_session_of_its_own(tmp_path: Path) -> None:
    async with opened(local(tmp_path / "cache")) as pipe:
        pid, session, _, _, isolated = (await ask(pipe, "facts")).split()
        assert pid == session != str(os.getsid(0))
        assert isolated == "1"
        assert psutil.Process(int(pid)).cmdline()[0] == sys.executable


async def test_a_command_line_that_gives_a_pipe_is_as_good(tmp_path: Path) -> None:
    spec = local(tmp_path / "cache", launcher=Launcher.COMMAND, command=("env", "A=1"), python=(sys.executable,))
    async with opened(spec) as pipe:
        assert await ask(pipe, "say good morning") == "good morning"


async def test_megabytes_go_both_ways_at_once(tmp_path: Path) -> None:
    size = 8 << 20
    async with opened(local(tmp_path / "cache")) as pipe:
        await pipe.write(b"give %d\ntake %d\n" % (size, size))

        async def receive() -> int:
            got = 0
            while got < size:
                got += len(await pipe.read(min(1 << 16, size - got)))
            return got

        async with asyncio.TaskGroup() as group:
            received = group.create_task(receive())
            group.create_task(pipe.write(bytes(size)))
        assert received.result() == size
        assert await line(pipe) == "taken"


async def test_stderr_goes_to_the_log_line_by_line(tmp_path: Path) -> None:
    log: list[str] = []
    async with opened(local(tmp_path / "cache"), log=log.append) as pipe:
        await ask(pipe, "cry out loud")
        await pipe.write(b"exit 0\n")
        assert await pipe.read(1) == b""
    assert log[-1] == "!! out loud"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("exit 3", "it exited with status 3 (why)"),
        ("kill 9", "it was killed by SIGKILL, as the kernel does when memory runs out (why)"),
        ("exit 137", "it exited with status 137, as the kernel does when memory runs out (why)"),
        ("kill 11", "it was killed by SIGSEGV (why)"),
    ],
)
async def test_an_unexpected_end_reports_how_and_why(tmp_path: Path, command: str, reason: str) -> None:
    async with opened(local(tmp_path / "cache")) as pipe:
        await ask(pipe, "cry why")
        await pipe.write(command.encode() + b"\n")
        with pytest.raises(PipeLost) as lost:
            await pipe.read(1)
        assert str(lost.value) == reason
        assert lost.value.words == ("why",)


def test_a_limit_of_threads_is_named() -> None:
    said = str(ended(1, ("Traceback", "RuntimeError: can't start new thread")))
    assert said == (
        "it exited with status 1: a limit of threads was reached: pids.max of its cgroup, or `ulimit -u` "
        "(RuntimeError: can't start new thread)"
    )


async def test_exit_code_0_is_the_end_of_the_stream_at_every_read(tmp_path: Path) -> None:
    async with opened(local(tmp_path / "cache")) as pipe:
        await pipe.write(b"exit 0\n")
        assert await pipe.read(1) == b""
        assert await pipe.read(1) == b""


async def test_writing_to_an_ended_process_is_a_lost_pipe(tmp_path: Path) -> None:
    async with opened(local(tmp_path / "cache")) as pipe:
        await pipe.write(b"exit 0\n")
        assert await pipe.read(1) == b""
        with pytest.raises(PipeLost, match="it stopped reading"):
            for _ in range(3):
                await pipe.write(b"say hello\n")


async def test_closed_output_without_exit_is_a_lost_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess_pipe, "GRACE_S", 0.2)
    pipe = await subprocess_pipe.start("here", ["sh", "-c", "exec >&-; exec cat >/dev/null"], lambda text: None)
    with pytest.raises(PipeLost, match="closed its output but is still running"):
        await pipe.read(1)
    await pipe.close()


async def stubborn(tmp_path: Path) -> tuple[Pipe, psutil.Process]:
    """A slave that does not mind the end of its input."""
    pipe = await open_pipe(local(tmp_path / "cache"), [stand_in()], LoginThrottle(), lambda text: None)
    await line(pipe)
    pid = int((await ask(pipe, "facts")).split()[0])
    await ask(pipe, "stay")
    return pipe, psutil.Process(pid)


async def test_closing_kills_what_does_not_exit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess_pipe, "GRACE_S", 0.2)
    pipe, far = await stubborn(tmp_path)
    await pipe.close()
    assert none_runs(far)


async def test_closing_kills_what_the_child_has_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess_pipe, "GRACE_S", 0.2)
    pipe = await subprocess_pipe.start("here", ["sh", "-c", "sleep 1000 & echo $!; wait"], lambda text: None)
    child = psutil.Process(int(await line(pipe)))
    await pipe.close()
    wait_until_ended(child)


@pytest.fixture
def far_from_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is killed is gone later than what exits by itself: as where it waits for a core."""
    for patience in ("GRACE_S", "DYING_S"):
        monkeypatch.setattr(subprocess_pipe, patience, 0.05)
    monkeypatch.setattr(subprocess_pipe, "MOST_DYING", 1000)
    kill = os.killpg

    def kill_later(group: int, number: int) -> None:
        asyncio.get_running_loop().call_later(4 * subprocess_pipe.GRACE_S, kill, group, number)

    monkeypatch.setattr(os, "killpg", kill_later)


@pytest.mark.usefixtures("far_from_dead")
@pytest.mark.parametrize("cancelled", [False, True])
async def test_closing_waits_for_the_end_of_what_it_kills(tmp_path: Path, cancelled: bool) -> None:
    pipe, far = await stubborn(tmp_path)
    closing = asyncio.create_task(pipe.close())
    if cancelled:
        await asyncio.sleep(0)
        closing.cancel()
    await asyncio.wait([closing])
    assert closing.cancelled() == cancelled and not psutil.pid_exists(far.pid)


@pytest.fixture
def freezer() -> Iterator[Path]:
    """A cgroup whose processes do not run, and do not die either, like one that the kernel holds on a hung device."""
    cgroup = Path(f"/sys/fs/cgroup/freezer/ivypy-{os.getpid()}")
    try:
        cgroup.mkdir()
    except OSError:
        pytest.skip("the freezer of cgroup v1 is not to be had here")
    yield cgroup
    thaw(cgroup)
    for pid in (cgroup / "cgroup.procs").read_text().split():
        wait_until_ended(psutil.Process(int(pid)))
    cgroup.rmdir()


def freeze(cgroup: Path, process: psutil.Process) -> None:
    (cgroup / "cgroup.procs").write_text(str(process.pid))
    (cgroup / "freezer.state").write_text("FROZEN")
    while (cgroup / "freezer.state").read_text() != "FROZEN\n":
        pass


def thaw(cgroup: Path) -> None:
    (cgroup / "freezer.state").write_text("THAWED")


async def test_closing_does_not_wait_for_a_process_that_the_kernel_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, freezer: Path
) -> None:
    monkeypatch.setattr(subprocess_pipe, "GRACE_S", 0.2)
    monkeypatch.setattr(subprocess_pipe, "MOST_DYING", 1000)
    pipe, far = await stubborn(tmp_path)
    freeze(freezer, far)
    async with asyncio.timeout(PATIENCE_S):
        await pipe.close()
    assert is_running(far)
    thaw(freezer)
    wait_until_ended(far)
    await pipe.close()


async def test_a_close_that_is_cancelled_kills_at_once(tmp_path: Path) -> None:
    pipe, far = await stubborn(tmp_path)
    closing = asyncio.create_task(pipe.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    wait_until_ended(far)
    await pipe.close()


async def test_closing_does_not_wait_for_a_reader_that_has_gone(tmp_path: Path) -> None:
    """A slave with more to say than the pipe holds cannot exit until someone reads it."""
    async with opened(local(tmp_path / "cache")) as pipe:
        pid = int((await ask(pipe, "facts")).split()[0])
        await pipe.write(b"give 10000000\n")
        reading = asyncio.create_task(pipe.read(1))
        await reading
        far = psutil.Process(pid)
        await pipe.close()
        assert none_runs(far)
        assert await asyncio.wait_for(pipe.read(1), PATIENCE_S) == b""


async def test_closing_twice_is_allowed(tmp_path: Path) -> None:
    async with opened(local(tmp_path / "cache")) as pipe:
        await pipe.close()


@pytest.mark.parametrize("launcher", [Launcher.LOCAL, Launcher.COMMAND])
async def test_a_program_that_is_not_there(launcher: Launcher) -> None:
    spec = HostSpec("h1", launcher, "h1", python=("no-such-python",))
    with pytest.raises(HostUnusable) as caught:
        await open_pipe(spec, [stand_in()], LoginThrottle(), lambda text: None)
    assert str(caught.value) == (
        'h1: "no-such-python" cannot be started on this machine (No such file or directory); '
        "correct command: or python:"
    )


async def test_the_terminals_interrupt_does_not_reach_the_slave(tmp_path: Path) -> None:
    """What the terminal does at Ctrl-C: SIGINT to the whole foreground process group, here one made for it."""
    program = """
import asyncio, os, signal, sys
from pathlib import Path
from tests.support.stand_in_slave import ask, local, opened

async def main():
    signal.signal(signal.SIGINT, lambda *_: None)  # ignored, it would be so in the slave too
    async with opened(local(Path(sys.argv[1]))) as pipe:
        os.killpg(0, signal.SIGINT)
        print(await ask(pipe, "say alive"))

asyncio.run(main())
"""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, str(tmp_path / "cache"),
        stdout=asyncio.subprocess.PIPE, start_new_session=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    said, _ = await child.communicate()
    assert (said, child.returncode) == (b"alive\n", 0)


@pytest.mark.parametrize("ends", ["by itself", "by us"])
async def test_attempts_leave_no_file_open(tmp_path: Path, ends: str) -> None:
    """A host that was lost is tried again for as long as the run goes on."""
    logs = HostLogs(lambda: None, lambda host, lines: None)
    counts = []
    for _ in range(6):
        log = logs.of("h", tmp_path / "h.log")
        pipe = await subprocess_pipe.start("h", ["sh", "-c", "exit 3" if ends == "by itself" else "cat"], log)
        log("tried")
        if ends == "by itself":
            with pytest.raises(PipeLost):
                await pipe.read(1)
        await pipe.close()
        logs.flush()
        counts.append(len(os.listdir("/proc/self/fd")))
    assert counts[1:] == [counts[1]] * 5
    logs.close()


def test_a_login_that_is_reset_until_the_time_is_up_was_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last attempt is cut short by connect_timeout, which does not mean that nothing answered."""
    tried: list[object] = []

    async def connect(**given: object) -> None:
        tried.append(given)
        if len(tried) < 3:
            raise ConnectionResetError
        await asyncio.sleep(100.0)

    monkeypatch.setattr(asyncssh, "connect", connect)
    monkeypatch.setattr("ivypy.master.hosts.ssh_login.look_up", lambda *where: asyncio.sleep(0, []))
    monkeypatch.setattr("ivypy.master.hosts.ssh_login.connected", lambda addresses: asyncio.sleep(0, None))
    spec = HostSpec("h1", Launcher.SSH, "127.0.0.1", port=1, connect_timeout_s=10.0)
    with pytest.raises(HostUnusable, match=r"^h1: 127\.0\.0\.1 port 1 closed the connection during the login"):
        simulate(open_pipe(spec, [stand_in()], LoginThrottle(), lambda text: None))
    assert len(tried) == 3


@pytest.mark.parametrize("error", [ValueError("no such letter"), KeyError(7), AssertionError(), RecursionError()])
async def test_an_exception_in_a_library_loses_only_the_host(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    async def connect(**given: object) -> None:
        raise error

    monkeypatch.setattr(asyncssh, "connect", connect)
    said: list[str] = []
    spec = HostSpec("h1", Launcher.SSH, "127.0.0.1", port=1)
    monkeypatch.setattr("ivypy.master.hosts.ssh_login.connected", lambda addresses: asyncio.sleep(0, None))
    with pytest.raises(HostUnusable, match=f"h1: the connection failed: {type(error).__name__}: "):
        await open_pipe(spec, [stand_in()], LoginThrottle(), said.append)
    assert any("Traceback" in text for text in said)
