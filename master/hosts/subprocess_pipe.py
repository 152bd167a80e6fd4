"""Pipes to subprocesses of this machine: the launchers `local` and `command`.

Rule: the child has a process session of its own, so that the terminal's Ctrl-C reaches only the controller, and so
that whatever it started can be killed with it.
"""

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from ..errors import HostFault
from .errors import HostUnusable
from .pipe import PipeLost
from .stderr import Stderr

GRACE_S: Final = 2.0  # for the far process to exit once its input has ended
DYING_S: Final = 1.0  # for a killed one to be gone,
MOST_DYING: Final = 10  # and as often again, unless the kernel holds it: it may wait for a core
BUFFER: Final = 1 << 18  # bytes read ahead, at most twice this


class ProcessPipe:
    """A child's standard streams. Made by `start`."""

    def __init__(self, process: Process, transport: asyncio.SubprocessTransport, log: Callable[[str], None]) -> None:
        assert process.stdin and process.stdout and process.stderr
        self._process = process
        self._transport = transport
        self._input, self._output = process.stdin, process.stdout
        self._reading = asyncio.Lock()
        self._stderr = Stderr(log)
        self._errors = asyncio.create_task(self._stderr.follow(process.stderr.read))

    async def read(self, n: int) -> bytes:
        async with self._reading:
            data = await self._output.read(n)
        return data or await self._end()

    async def write(self, data: bytes) -> None:
        try:
            self._input.write(data)
            await self._input.drain()
        except (OSError, RuntimeError) as error:  # RuntimeError: after close
            raise PipeLost(f"it stopped reading ({error or type(error).__name__})") from None

    async def close(self) -> None:
        self._input.close()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(GRACE_S):
                    await self._drain()
                    await self._process.wait()
        finally:
            await self._reap()

    async def _reap(self) -> None:
        """Leave no process behind, nor what the kernel keeps of one; a close that is cancelled does so, too, however
        often: what asyncio waits for the process with must not outlive the loop."""
        reaping = asyncio.create_task(self._kill_and_wait())
        cancelled = False
        while not reaping.done():
            try:
                await asyncio.wait([reaping])
            except asyncio.CancelledError:
                cancelled = True
        reaping.result()
        if cancelled:
            raise asyncio.CancelledError

    async def _kill_and_wait(self) -> None:
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._errors.cancel()
        for _ in range(MOST_DYING):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DYING_S):
                    await self._process.wait()
            if self._process.returncode is not None or is_held(self._process.pid):
                break
        self._transport.close()
        await asyncio.gather(self._errors, return_exceptions=True)

    async def _drain(self) -> None:
        """Read what nobody wants any more: a child that cannot write cannot exit."""
        async with self._reading:
            while await self._output.read(BUFFER):
                pass

    async def _end(self) -> bytes:
        """How the child ended: b"" if it did so in peace."""
        try:
            async with asyncio.timeout(GRACE_S):
                status = await self._process.wait()
                await asyncio.wait([self._errors])
        except TimeoutError:
            if self._process.returncode is None:
                raise PipeLost("it closed its output but is still running", None, self._stderr.words) from None
            status = self._process.returncode
        if status == 0:
            return b""
        raise ended(status, self._stderr.words)


def is_held(pid: int) -> bool:
    """Whether the kernel holds one of its threads, as on a device that hangs: not even a kill ends it then."""
    for path in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):  # that thread has ended meanwhile
            if path.read_text().rpartition(") ")[2].startswith("D"):
                return True
    return False


NO_THREAD: Final = "can't start new thread"  # Python's words
_KILLED: Final = (-signal.SIGKILL, 128 + signal.SIGKILL)  # the second by a shell, or a container's runtime


def ended(status: int, words: tuple[str, ...]) -> PipeLost:
    """The fault of a process that ended with `status` (negative: by that signal)."""
    how = f"it was killed by {signal_name(-status)}" if status < 0 else f"it exited with status {status}"
    if status in _KILLED:
        how += ", as the kernel does when memory runs out"
    if any(NO_THREAD in word for word in words):
        how += ": a limit of threads was reached: pids.max of its cgroup, or `ulimit -u`"
    return PipeLost(f"{how} ({words[-1]})" if words else how, status, words)


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


async def start(host: str, words: Sequence[str], log: Callable[[str], None]) -> ProcessPipe:
    """Run a command line of this machine. Raises HostUnusable if it cannot be started."""
    loop = asyncio.get_running_loop()
    try:
        transport, protocol = await loop.subprocess_exec(
            lambda: SubprocessStreamProtocol(limit=BUFFER, loop=loop),
            *words,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,
        )
    except OSError as error:
        what = f'"{words[0]}" cannot be started on this machine ({error.strerror})'
        raise HostUnusable(HostFault(host, what, "correct command: or python:")) from None
    return ProcessPipe(Process(transport, protocol, loop), transport, log)
