"""The hosts that take part in a run: send requests to all of them at once, go on without some, interrupt the run.

Rule: the faults of all hosts are collected and raised together.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from enum import Enum
from typing import Any, Final

from ....protocol.messages import Hello
from ....protocol.payload import Notice
from ...errors import HostFault, HostsError
from ...hosts.controller_lag import ControllerLag
from ...hosts.driver import Driver, Event, Inbox, barrier

ANSWER_S: Final = 30.0


class HaltCause(Enum):
    """Why the run's I/O is halted."""

    USER = "user"  # a signal, or `ivypy stop`
    IO_ERROR = "I/O error"  # with `on_io_error: stop`


class Fleet:
    """The hosts' drivers, and the one inbox into which all of them put what happens."""

    def __init__(self, drivers: Iterable[Driver], inbox: Inbox, lag: ControllerLag, may_miss: int = 0) -> None:
        """`inbox`: the drivers' own; `may_miss`: so many hosts may be missing when the run begins."""
        self.drivers = {driver.name: driver for driver in drivers}
        self.missed: dict[str, HostFault] = {}  # the run goes on without them from its beginning
        self._may_miss = may_miss
        self.inbox = inbox
        self.now_ns = lag.now_ns
        self.lag = lag  # the controller's own
        self.interrupted = asyncio.Event()  # by `interrupt`
        self.causes: set[HaltCause] = set()  # of the interrupt

    def interrupt(self, cause: HaltCause) -> None:
        """Halt the step that runs; no other begins."""
        self.causes.add(cause)
        self.interrupted.set()

    @property
    def alive(self) -> list[Driver]:
        return [driver for driver in self.drivers.values() if driver.lost is None]

    @property
    def everybody(self) -> bool:
        """Whether all who take part are there."""
        return len(self.alive) == len(self.drivers)

    def may_drive(self) -> dict[str, int]:
        """The hosts that were given up while they drove: until when, on the controller's clock, that may go on."""
        now_ns = self.now_ns()
        untils = {name: driver.may_drive_until_ns for name, driver in self.drivers.items()}
        return {name: until_ns for name, until_ns in untils.items() if until_ns is not None and until_ns > now_ns}

    async def quiet(self, within_s: float) -> None:
        """Wait until none of these may drive any more, but no longer than that, nor once the run is interrupted."""
        until_ns = max(self.may_drive().values(), default=0)
        left_s = min((until_ns - self.now_ns()) / 1e9 + 0.001, within_s)  # a timer may be early by its resolution
        with suppress(TimeoutError):
            async with asyncio.timeout(max(left_s, 0.0)):
                await self.interrupted.wait()

    def miss(self, faults: Sequence[HostFault]) -> None:
        """Go on without the hosts of these faults. Raises HostsError if more are missing by now than may be."""
        missed = {**{fault.host: fault for fault in faults}, **self.missed}
        if len(missed) > self._may_miss:
            raise HostsError([*self.missed.values(), *faults])
        self.missed = missed
        for fault in faults:
            if (driver := self.drivers.pop(fault.host, None)) is not None:
                driver.lose(fault.what)

    def takes_part(self, driver: Driver) -> bool:
        """Not one that was missed, nor one that is connected again but has not joined yet."""
        return self.drivers.get(driver.name) is driver

    def absence(self, host: str) -> str:
        """Why a host takes no part in a step that begins."""
        driver = self.drivers.get(host)
        return "it is missing" if driver is None else driver.lost or f"it is {driver.state}"

    def hellos(self) -> Mapping[str, Hello]:
        return {name: driver.hello for name, driver in self.drivers.items() if driver.hello is not None}

    @asynccontextmanager
    async def notices_to(self, report: Callable[[str, Notice], None]) -> AsyncIterator[None]:
        """While the block runs, `report` gets the host and each notice of it when it comes: how much of the files
        is created, for instance. Everything else waits in the inbox, in its order, for the step that follows.
        """
        waiting: list[tuple[Driver, Event]] = []

        def take(driver: Driver, event: Event) -> None:
            if isinstance(event, Notice):
                report(driver.name, event)
            else:
                waiting.append((driver, event))

        async def pass_on() -> None:
            while True:
                take(*await self.inbox.get())

        passing_on = asyncio.create_task(pass_on())
        try:
            yield
        finally:
            passing_on.cancel()
            await asyncio.gather(passing_on, return_exceptions=True)
            while not self.inbox.empty():
                take(*self.inbox.get_nowait())
            for one in waiting:
                self.inbox.put_nowait(one)

    async def request_all(
        self, requests: Mapping[Driver, Callable[[Driver], Awaitable[Any]]], within_s: float = ANSWER_S
    ) -> dict[Driver, Any]:
        """Send each host its own request, all at once; go on without those that do not answer, if `may_miss` allows it.

        Raises HostsError.
        """
        self.miss(
            [HostFault(name, driver.lost, "") for name, driver in self.drivers.items() if driver.lost is not None]
        )
        deadline = self.lag.deadline(within_s)
        answers, failed = await barrier(requests, lambda driver: requests[driver](driver), deadline)
        if failed:
            self.miss([HostFault(driver.name, reason, "") for driver, reason in failed.items()])
        return answers
