"""All hosts of a run: connect them at once, ask them at once, close them at once.

Rule: the faults of all hosts are collected and raised together. Each host has a driver task and a prober task, which
end when the fleet is closed.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from ...protocol.messages import (
    MOST_IN_A_LIST,
    PROTOCOL_VERSION,
    Command,
    Die,
    DyingWords,
    Hello,
    HostMessage,
    Luns,
    Role,
)
from ...protocol.payload import Lun, Notice
from ..drivers.process import DriverProcess
from ..errors import HostFault, HostsError
from ..hosts import open_files
from ..hosts.bundle import Bundle
from ..hosts.driver import CommandRefused, Driver, Event, HostLost, barrier
from ..hosts.errors import HostUnusable
from ..hosts.host_spec import HostSpec
from ..hosts.launch import open_pipe
from ..hosts.login_throttle import LoginThrottle
from ..hosts.pipe import Pipe
from ..hosts.pipe_driver import PipeDriver
from .controller_lag import ControllerLag
from .reconnect import Reconnection

HELLO_S: Final = 30.0  # from an open pipe to hello
GOODBYE_S: Final = 6.5  # for `die`: more than a slave gives itself to clean up; the controller waits no longer
ANSWER_S: Final = 30.0

Opener = Callable[[HostSpec, Callable[[str], None]], Awaitable[Pipe]]  # a host and its log -> a pipe to its slave
Log = Callable[[str], Callable[[str], None]]  # a host's name -> its log
Parted = Callable[[str, DyingWords | None], None]  # gets a host's name and its last words; None: it sent none


def opener(bundle: Bundle, throttle: LoginThrottle) -> Opener:
    """Opens hosts with one bundle, and as many logins at once to each address as `throttle` lets through."""

    async def opening(host: HostSpec, log: Callable[[str], None]) -> Pipe:
        return await open_pipe(host, bundle, throttle, log)

    return opening


class HaltCause(Enum):
    """Why the run's I/O is halted."""

    USER = "user"  # a signal, or `ivypy stop`
    IO_ERROR = "I/O error"  # with `on_io_error: stop`


class Fleet:
    """The hosts' drivers, and the one inbox into which all of them put what happens. Empty until it is `connected`."""

    def __init__(self, now_ns: Callable[[], int], may_miss: int = 0) -> None:
        """`may_miss`: so many hosts may be missing when the run begins."""
        self.drivers: dict[str, Driver] = {}
        self.missed: dict[str, HostFault] = {}  # the run goes on without them from its beginning
        self._may_miss = may_miss
        self.inbox: asyncio.Queue[tuple[Driver, Event]] = asyncio.Queue()
        self.now_ns = now_ns
        self.lag = ControllerLag(now_ns)  # the controller's own
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
        """Go on without the hosts of these faults. Raises HostsError where more are missed by now than may be."""
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

    def hellos(self) -> Mapping[str, Hello]:
        return {name: driver.hello for name, driver in self.drivers.items() if driver.hello is not None}

    @asynccontextmanager
    async def notices_to(self, report: Callable[[str, str], None]) -> AsyncIterator[None]:
        """While the block runs, `report` gets the host and the text of each notice when it comes: how much of the files
        is created, for instance. Everything else waits in the inbox, in its order, for the step that follows.
        """
        waiting: list[tuple[Driver, Event]] = []

        def take(driver: Driver, event: Event) -> None:
            if isinstance(event, Notice):
                report(driver.name, event.text)
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

    async def ask_all(
        self, asks: Mapping[Driver, Callable[[Driver], Awaitable[Any]]], within_s: float = ANSWER_S
    ) -> dict[Driver, Any]:
        """Each host its own question, all at once; those that give no answer are missed, if that many may be.

        Raises HostsError.
        """
        self.miss(
            [HostFault(name, driver.lost, "") for name, driver in self.drivers.items() if driver.lost is not None]
        )
        deadline = asyncio.get_running_loop().time() + within_s
        answers, failed = await barrier(asks, lambda driver: asks[driver](driver), deadline)
        if failed:
            self.miss([HostFault(driver.name, reason, "") for driver, reason in failed.items()])
        return answers


async def ask_in_parts(
    driver: Driver, kind: type[Command], name: str, items: Sequence[Any], **fields: Any
) -> list[HostMessage]:
    """A command whose list `name` may be longer than one message holds. Returns the last answer."""
    answer: list[HostMessage] = []
    for start in range(0, len(items), MOST_IN_A_LIST):
        answer = await driver.request(kind, **{name: tuple(items[start : start + MOST_IN_A_LIST])}, **fields)
    return answer


async def luns_of(
    driver: Driver, kind: type[Command], name: str = "", items: Sequence[Any] = (), **fields: Any
) -> list[Lun]:
    """A host's LUNs; where `name` is given, its `items` go out in as many messages as they take."""
    found: list[Lun] = []
    for start in range(0, max(len(items), 1), MOST_IN_A_LIST):
        part = {name: tuple(items[start : start + MOST_IN_A_LIST])} if name else {}
        answer = await driver.request(kind, **part, **fields)
        found += [lun for saying in answer if isinstance(saying, Luns) for lun in saying.luns]
    return found


@asynccontextmanager
async def connected(
    fleet: Fleet,
    specs: Sequence[HostSpec],
    opener: Opener,
    log: Log,
    version: str,
    processes: Mapping[str, DriverProcess] = MappingProxyType({}),
    log_path: Callable[[str], Path] = Path,
    parted: Parted = lambda host, words: None,
) -> AsyncIterator[Reconnection]:
    """Connect the fleet to all hosts but those that may be missed, and close them all at the end; yields what connects
    the lost ones again. Raises PlanError, or HostsError with the faults of all.

    `processes` drive the hosts that they are given for, and write their logs to `log_path`; those of one that has ended
    are driven here. `parted` gets the last words of each host at the end.
    """
    open_files.allow(specs)
    now_ns = fleet.now_ns
    tasks: list[asyncio.Task[None]] = []

    async def open_one(spec: HostSpec) -> Driver:
        process = processes.get(spec.name)
        if process is not None and process.gone is None:
            return await process.open(spec, log_path(spec.name), fleet.inbox, now_ns)
        pipe = await opener(spec, log(spec.name))
        return PipeDriver(spec.name, pipe, fleet.inbox, now_ns, log(spec.name))

    try:
        async with asyncio.TaskGroup() as group:

            def begin(driver: Driver) -> None:
                tasks.extend((group.create_task(driver.drive()), group.create_task(driver.probe())))

            opened, faults = await _open_all(specs, open_one)
            fleet.lag.begin()
            try:
                fleet.miss(faults)
                for driver in opened:
                    fleet.drivers[driver.name] = driver
                    begin(driver)
                fleet.miss(await _greeted(opened, version))
                rejoining = Reconnection(specs, fleet.drivers, open_one, begin, lambda some: _greeted(some, version))
                tasks.append(group.create_task(rejoining.watch()))
                yield rejoining
            finally:
                fleet.lag.end()
                others = [driver for driver in opened if not fleet.takes_part(driver)]
                await asyncio.gather(_close(fleet, parted), *(driver.close() for driver in others))
                for task in tasks:
                    task.cancel()
    except BaseExceptionGroup as several:
        # A TaskGroup wraps what its body raises; the body's error is the run's.
        raise (several.exceptions[0] if len(several.exceptions) == 1 else several) from None


async def _open_all(
    specs: Sequence[HostSpec], open_one: Callable[[HostSpec], Awaitable[Driver]]
) -> tuple[list[Driver], list[HostFault]]:
    async def one(spec: HostSpec) -> Driver | HostFault:
        try:
            return await open_one(spec)
        except HostUnusable as error:
            return error.fault

    opening = [asyncio.create_task(one(spec)) for spec in specs]
    try:
        opened = await asyncio.gather(*opening)
    except asyncio.CancelledError:
        for done in await asyncio.gather(*opening, return_exceptions=True):
            if not isinstance(done, BaseException | HostFault):
                await done.close()
        raise
    drivers = [one for one in opened if not isinstance(one, HostFault)]
    return drivers, [one for one in opened if isinstance(one, HostFault)]


async def _greeted(drivers: Iterable[Driver], version: str) -> list[HostFault]:
    """Wait for every hello, and check that each is a slave of our own version. Returns what is wrong."""
    drivers = list(drivers)

    async def wait_hello(driver: Driver) -> None:
        await driver.wait_hello()
        if driver.lost is not None:
            raise HostLost(driver.lost)

    deadline = asyncio.get_running_loop().time() + HELLO_S
    _, failed = await barrier(drivers, wait_hello, deadline)
    faults = [
        HostFault(driver.name, reason, f"its log says more: log/{driver.name}.log") for driver, reason in failed.items()
    ]
    for name, hello in [(driver.name, driver.hello) for driver in drivers]:
        if hello is None:
            continue  # it is among those that failed
        if hello.role is not Role.SLAVE:
            faults.append(HostFault(name, f"it is a {hello.role}, not a slave", "check the host's `command`"))
        elif (hello.protocol, hello.version) != (PROTOCOL_VERSION, version):
            has, wants = f"ivypy {hello.version}", version
            if hello.version == version:
                has, wants = f"{has} with protocol {hello.protocol}", f"protocol {PROTOCOL_VERSION}"
            faults.append(HostFault(name, f"it runs {has}, the controller {wants}", "remove its cache_dir"))
    return faults


async def _close(fleet: Fleet, parted: Parted) -> None:
    async def goodbye(driver: Driver) -> None:
        words: DyingWords | None = None
        try:
            async with asyncio.timeout(GOODBYE_S):
                answer = await driver.request(Die)
                words = next((said for said in answer if isinstance(said, DyingWords)), None)
        except (HostLost, CommandRefused, TimeoutError):
            pass
        parted(driver.name, words)
        await driver.close()

    await asyncio.gather(*(goodbye(driver) for driver in fleet.drivers.values()))
