"""Pipes through sshd: the launcher `ssh`.

Rule: asyncssh ends here. Whatever it raises becomes HostUnusable while the pipe is made and PipeLost afterwards. Its
silent one too: an exit status of None means that the connection was lost.
"""

import asyncio
import contextlib
import shlex
import signal
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import asyncssh

from ..errors import HostFault
from .errors import HostUnusable
from .host_spec import HostSpec
from .login_throttle import Login, LoginThrottle
from .pipe import PipeLost
from .ssh_login import logged_in
from .stderr import Stderr
from .subprocess_pipe import GRACE_S, ended

READ_BYTES: Final = 1 << 16
LOST: Final = "the ssh connection was lost"

Streams = tuple["asyncssh.SSHWriter[bytes]", "asyncssh.SSHReader[bytes]", "asyncssh.SSHReader[bytes]"]


class SshPipe:
    """A process at the far end of an ssh connection of its own. Made by `start`."""

    def __init__(self, login: Login, streams: Streams, log: Callable[[str], None]) -> None:
        self._login = login
        self._input, self._output, errors = streams
        self._stderr = Stderr(log)
        self._errors = asyncio.create_task(self._follow(errors))

    async def read(self, n: int) -> bytes:
        with _as_lost():
            data = await self._output.read(n)
        return data or await self._end()

    async def write(self, data: bytes) -> None:
        with _as_lost():
            self._input.write(data)
            await self._input.drain()

    async def close(self) -> None:
        try:
            with contextlib.suppress(TimeoutError, PipeLost):
                async with asyncio.timeout(GRACE_S):
                    await self._finish()
        finally:
            self._errors.cancel()
            self._login.connection.abort()
        await asyncio.gather(self._errors, return_exceptions=True)
        await self._login.close()

    async def _finish(self) -> None:
        """End the far process's input and wait for its exit."""
        with _as_lost():
            self._input.write_eof()
            while await self._output.read(READ_BYTES):
                pass  # what nobody wants any more: a process that cannot write cannot exit
            await self._input.channel.wait_closed()

    async def _follow(self, errors: "asyncssh.SSHReader[bytes]") -> None:
        with contextlib.suppress(PipeLost), _as_lost():
            await self._stderr.follow(errors.read)

    async def _end(self) -> bytes:
        """How the far process ended: b"" if it did so in peace."""
        channel = self._input.channel
        assert isinstance(channel, asyncssh.SSHClientChannel)
        try:
            async with asyncio.timeout(GRACE_S):
                await channel.wait_closed()
                await asyncio.wait([self._errors])
        except TimeoutError:
            raise PipeLost("it closed its output but is still running", None, self._stderr.words) from None
        status, by_signal = channel.get_exit_status(), channel.get_exit_signal()
        if status == 0:
            return b""
        if by_signal is not None:
            name = f"SIG{by_signal[0].partition('@')[0]}"  # one that the protocol lacks: BUS@openssh.com
            if name not in signal.Signals.__members__:
                raise PipeLost(f"it was killed by {name}", None, self._stderr.words)
            raise ended(-signal.Signals[name], self._stderr.words)
        if status is None:
            raise PipeLost(LOST, None, self._stderr.words)
        raise ended(status, self._stderr.words)


@contextlib.contextmanager
def _as_lost() -> Iterator[None]:
    try:
        yield
    except (asyncssh.Error, OSError) as error:
        raise PipeLost(f"{LOST} ({error})" if str(error) else LOST) from None


async def start(host: HostSpec, words: Sequence[str], throttle: LoginThrottle, log: Callable[[str], None]) -> SshPipe:
    """Log in and run a command line, each word quoted for the login shell. Raises HostUnusable."""
    async with logged_in(host, throttle, log) as login:
        return SshPipe(login, await _run(login.connection, host, shlex.join(words)), log)


async def _run(connection: asyncssh.SSHClientConnection, host: HostSpec, command: str) -> Streams:
    try:
        async with asyncio.timeout(host.connect_timeout_s):
            return await connection.open_session(command, encoding=None, request_pty=False, x11_forwarding=False)
    except (asyncssh.Error, OSError) as error:
        what = f"the login works, but it starts no process ({str(error) or 'no answer'})"
        remedy = "see its sshd log (MaxSessions, the user's shell)"
        raise HostUnusable(HostFault(host.name, what, remedy)) from None
