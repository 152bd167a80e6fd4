"""Driver processes without processes: their inside, in the controller's own loop, behind pickles as in earnest."""

import asyncio
import pickle
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import MappingProxyType
from typing import Any, Final

from ivypy.master.drivers.controller_side import DriverProcess
from ivypy.master.drivers.process_side import HostShare
from ivypy.master.run.setup.connect import Opener

NEVER: Final[Mapping[int, float]] = MappingProxyType({})


class Cut:
    """A link in memory, one way; it may be cut."""

    def __init__(self) -> None:
        self.receive: Callable[[Any], None] = lambda message: None
        self.is_cut = False

    def send(self, message: Any) -> None:
        asyncio.get_running_loop().call_soon(self._arrive, pickle.dumps(message))

    def _arrive(self, data: bytes) -> None:
        if not self.is_cut:
            self.receive(pickle.loads(data))


class Staged:
    """A driver process in memory."""

    def __init__(self, opener: Opener) -> None:
        self._to, self._back = Cut(), Cut()
        self._tasks: list[asyncio.Task[None]] = []
        loop = asyncio.get_running_loop()

        def spawn(work: Coroutine[Any, Any, None]) -> None:
            self._tasks.append(loop.create_task(work))

        self.process = DriverProcess(self._to.send)
        self._share = HostShare(
            self._back.send, opener, lambda host, path: lambda text: None, lambda: int(loop.time() * 1e9), spawn
        )
        self._to.receive, self._back.receive = self._share.receive, self.process.receive

    def hear_nothing(self) -> None:
        """It answers nothing more; what it said is still on the way."""
        self._to.is_cut = True

    def die(self) -> None:
        """As if killed: its pipes are closed by the kernel, and it says nothing more."""
        self._to.is_cut = self._back.is_cut = True
        for driver in self._share._drivers.values():
            asyncio.get_running_loop().create_task(driver.close())
        self.process.end("it was killed by SIGKILL")

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for outcome in await asyncio.gather(*self._tasks, return_exceptions=True):
            assert outcome is None or isinstance(outcome, asyncio.CancelledError), outcome


def staged(
    opener: Opener, process_of: Mapping[str, int], die: Mapping[int, float], deaf: Mapping[int, float] = NEVER
) -> Callable[..., AbstractAsyncContextManager[Mapping[str, DriverProcess]]]:
    """What takes the place of `driver_processes`. `process_of`: hosts that are driven by a process, and by which.
    `die`: after how many seconds a process does; `deaf`: hears nothing more."""

    @asynccontextmanager
    async def processes(*_: Any) -> AsyncIterator[Mapping[str, DriverProcess]]:
        every = {number: Staged(opener) for number in sorted(set(process_of.values()))}
        for number, after_s in die.items():
            asyncio.get_running_loop().call_later(after_s, every[number].die)
        for number, after_s in deaf.items():
            asyncio.get_running_loop().call_later(after_s, every[number].hear_nothing)
        try:
            yield {host: every[number].process for host, number in process_of.items()}
        finally:
            for one in every.values():
                await one.close()

    return processes
