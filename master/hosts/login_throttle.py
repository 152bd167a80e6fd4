"""How many logins may be under way to one sshd, and the one connection to each jump host.

sshd refuses at random beyond ten logins that have not yet proved themselves (its default, `MaxStartups 10:30:100`),
and the refused one cannot distinguish that from a broken network; so no more than eight go at a time to one sshd. For
hosts beyond a jump host that sshd is the jump host's: they share one connection to it, and log in through that.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from .errors import HostUnusable

if TYPE_CHECKING:
    import asyncssh

LOGINS_AT_A_TIME: Final = 8

Leave = Callable[[], Awaitable[None]]


async def nothing() -> None:
    """Leave no jump host: for a login that went through none."""


class Login:
    """An open connection, and how to leave the jump host that it goes through."""

    def __init__(self, connection: "asyncssh.SSHClientConnection", leave: Leave) -> None:
        self.connection = connection
        self._leave = leave

    async def close(self) -> None:
        """Cut it. May be called twice."""
        leave, self._leave = self._leave, nothing
        self.connection.abort()
        await self.connection.wait_closed()
        await leave()


class LoginThrottle:
    """Holds the logins under way per sshd, and the connections to jump hosts; one throttle serves a whole run."""

    def __init__(self, at_a_time: int = LOGINS_AT_A_TIME) -> None:
        self._at_a_time = at_a_time
        self._sshds: dict[str, asyncio.Semaphore] = {}
        self._jumps: dict[str, _Jump] = {}

    def to(self, sshd: str) -> asyncio.Semaphore:
        """The semaphore of an address, or of a command that leads there: `async with throttle.to(sshd): log in`."""
        return self._sshds.setdefault(sshd, asyncio.Semaphore(self._at_a_time))

    async def through(
        self, jump: str, open_it: Callable[[], Awaitable[Login]]
    ) -> "tuple[asyncssh.SSHClientConnection, Leave]":
        """The connection to a jump host: opened by who comes first, and again once it was lost; and how to leave it.

        Raises what `open_it` raises, for all who waited for it.
        """
        known = self._jumps.get(jump)
        if known is None or known.over:
            known = self._jumps[jump] = _Jump(asyncio.ensure_future(open_it()))
        return await known.enter(), known.leave


class _Jump:
    """Holds a login to a jump host, perhaps not done yet, and how many go through it."""

    def __init__(self, login: "asyncio.Future[Login]") -> None:
        self._login = login
        self._users = 0

    @property
    def over(self) -> bool:
        """Whether it was closed or lost, or never came about."""
        if not self._login.done():
            return False
        return (
            self._login.cancelled()
            or self._login.exception() is not None
            or self._login.result().connection.is_closed()
        )

    async def enter(self) -> "asyncssh.SSHClientConnection":
        self._users += 1
        try:
            return (await asyncio.shield(self._login)).connection
        except BaseException:
            await self.leave()
            raise

    async def leave(self) -> None:
        """One fewer goes through it; the last one closes it."""
        self._users -= 1
        if self._users:
            return
        self._login.cancel()  # while it is not done
        with suppress(HostUnusable, asyncio.CancelledError):
            await (await self._login).close()
