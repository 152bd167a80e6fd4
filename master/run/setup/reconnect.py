"""Connects lost hosts again in the background; they take part from the next step on.

Rule: a login costs the running step nothing, so it is retried with growing pauses. What may cost something (creating
files, opening LUNs) waits until the steps are over. The host gets a new slave, which checks the consent by itself.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

from ...errors import HostFault
from ...hosts.driver import Driver
from ...hosts.errors import HostUnusable
from ...hosts.host_spec import HostSpec

CHECK_EVERY_S: Final = 1.0  # for hosts that were lost
FIRST_PAUSE_S: Final = 1.0  # from an attempt that failed to the next; twice as long each time
LONGEST_PAUSE_S: Final = 30.0
WAIT_S: Final = 3.0  # between two steps, for a host whose first attempt is under way

Open = Callable[[HostSpec], Awaitable[Driver]]  # raises HostUnusable
Begin = Callable[[Driver], None]  # its tasks
Greet = Callable[[Iterable[Driver]], Awaitable[list[HostFault]]]


class Reconnection:
    """State: for which hosts it tries, and which of them are connected again but take no part yet."""

    def __init__(
        self, specs: Iterable[HostSpec], drivers: Mapping[str, Driver], open_one: Open, begin: Begin, greet: Greet
    ) -> None:
        """`drivers`: those that take part, by name, now and later."""
        self._specs = {spec.name: spec for spec in specs}
        self._drivers = drivers
        self._hellos = {name: driver.hello for name, driver in drivers.items()}
        self._open, self._begin, self._greet = open_one, begin, greet
        self._attempts: dict[str, asyncio.Task[None]] = {}
        self._tried: dict[str, asyncio.Event] = {}  # the first attempt is over
        self._there: dict[str, Driver] = {}

    async def watch(self) -> None:
        """Try for every host that is lost, until cancelled."""
        try:
            while True:
                self._start_attempts()
                await asyncio.sleep(CHECK_EVERY_S)
        finally:
            attempts = list(self._attempts.values())
            for attempt in attempts:
                attempt.cancel()
            await asyncio.gather(*attempts, return_exceptions=True)

    async def connected_again(self) -> list[Driver]:
        """The lost hosts that are connected again; where a first attempt is under way, after a short while."""
        self._start_attempts()
        first = [asyncio.ensure_future(tried.wait()) for tried in self._tried.values() if not tried.is_set()]
        if first:
            await asyncio.wait(first, timeout=WAIT_S)
            for waiting in first:
                waiting.cancel()
        return self.waiting()

    def waiting(self) -> list[Driver]:
        """The lost hosts that are connected again, and do not take part yet."""
        return [one for name, one in self._there.items() if one.lost is None and self._drivers[name] is not one]

    def _start_attempts(self) -> None:
        for name, attempt in list(self._attempts.items()):
            if attempt.done():
                attempt.result()  # raises where we have a bug
                del self._attempts[name], self._tried[name]
        for name, driver in self._drivers.items():
            if driver.lost is not None and name not in self._attempts:
                self._tried[name] = asyncio.Event()
                self._attempts[name] = asyncio.get_running_loop().create_task(self._insist(name))

    async def _insist(self, name: str) -> None:
        """Until the host is connected again, and for as long as it stays."""
        pause_s = FIRST_PAUSE_S
        await self._drivers[name].close()  # the old slave is to be gone
        while True:
            try:
                if await self._stay(name):
                    return
            except HostUnusable:
                pass  # its log says why
            self._tried[name].set()
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def _stay(self, name: str) -> bool:
        """Connect; then wait until the host is lost again. Whether it took part meanwhile. Raises HostUnusable."""
        driver = await self._open(self._specs[name])
        try:
            self._begin(driver)
            if await self._greet([driver]) or not self._same(driver):
                return False
            self._there[name] = driver
            self._tried[name].set()
            await driver.gone()
            return self._drivers[name] is driver
        finally:
            if self._there.get(name) is driver:
                del self._there[name]
            if self._drivers[name] is not driver:
                await driver.close()

    def _same(self, driver: Driver) -> bool:
        """Whether it is the machine that it was: what is measured is added to what was measured before."""
        was, now = self._hellos[driver.name], driver.hello
        return was is not None and now is not None and (was.hostname, was.cores) == (now.hostname, now.cores)
