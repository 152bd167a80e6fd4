"""Connects all hosts of a run at once, and closes them all at once.

Rule: the faults of all hosts are collected and raised together. Each host has a driver task and a prober task, which
end when the hosts are closed.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ....protocol.messages import PROTOCOL_VERSION, Die, DyingWords
from ...drivers.controller_side import DriverProcess
from ...errors import HostFault
from ...hosts import open_files
from ...hosts.bundle import Bundle
from ...hosts.controller_lag import ControllerLag
from ...hosts.driver import CommandRefused, Driver, HostLost, Inbox, barrier
from ...hosts.errors import HostUnusable
from ...hosts.host_spec import HostSpec
from ...hosts.launch import open_pipe
from ...hosts.login_throttle import LoginThrottle
from ...hosts.pipe import Pipe
from ...hosts.pipe_driver import PipeDriver
from .fleet import Fleet
from .reconnect import Reconnection

HELLO_S: Final = 30.0  # from an open pipe to hello
GOODBYE_S: Final = 10.0  # for `die`: more than a slave gives itself to clean up; the controller waits no longer

Opener = Callable[[HostSpec, Callable[[str], None]], Awaitable[Pipe]]  # a host and its log -> a pipe to its slave
Log = Callable[[str], Callable[[str], None]]  # a host's name -> its log
Pointer = Callable[[str], str]  # a host's name -> where it says why it ended, as a remedy
Parted = Callable[[str, DyingWords | None], None]  # receives a host's name and its dying words; None: it sent none


def see_log(host: str) -> str:
    """The remedy in a run, whose folder has the log of each host."""
    return f"see log/{host}.log"


def opener(bundles: Sequence[Bundle], throttle: LoginThrottle) -> Opener:
    """An opener that sends `bundles` to the hosts; `throttle` limits the simultaneous logins to each address."""

    async def opening(host: HostSpec, log: Callable[[str], None]) -> Pipe:
        return await open_pipe(host, bundles, throttle, log)

    return opening


@asynccontextmanager
async def connected(
    specs: Sequence[HostSpec],
    opener: Opener,
    log: Log,
    version: str,
    now_ns: Callable[[], int],
    may_miss: int = 0,
    processes: Mapping[str, DriverProcess] = MappingProxyType({}),
    log_path: Callable[[str], Path] = Path,
    parted: Parted = lambda host, words: None,
    pointer: Pointer = see_log,
) -> AsyncIterator[tuple[Fleet, Reconnection]]:
    """Connect all hosts, and close them all at the end. Yields the connected hosts, and what reconnects lost ones.

    Up to `may_miss` hosts may fail to connect. Raises PlanError, or HostsError with the faults of all hosts.
    `now_ns`: the controller's clock. `processes`: the driver process of a host, by the host's name; it writes its
    log to `log_path`. Hosts without one, or whose process has ended, are driven in this process. `parted` receives each
    host's dying words when it is closed. `pointer`: the remedy for a host that ends before it has sent hello.
    """
    open_files.allow(specs)
    inbox: Inbox = asyncio.Queue()
    lag = ControllerLag(now_ns)
    tasks: list[asyncio.Task[None]] = []

    async def open_one(spec: HostSpec) -> Driver:
        process = processes.get(spec.name)
        if process is not None and process.gone is None:
            return await process.open(spec, log_path(spec.name), inbox, now_ns)
        pipe = await opener(spec, log(spec.name))
        return PipeDriver(spec.name, pipe, inbox, now_ns, log(spec.name))

    try:
        async with asyncio.TaskGroup() as group:

            def begin(driver: Driver) -> None:
                tasks.extend((group.create_task(driver.drive()), group.create_task(driver.probe())))

            opened, faults = await _open_all(specs, open_one)
            fleet = Fleet(opened, inbox, lag, may_miss)
            lag.begin()
            try:
                for driver in opened:
                    begin(driver)
                fleet.miss(faults)
                fleet.miss(await _greeted(opened, version, lag, pointer))
                rejoining = Reconnection(
                    specs, fleet.drivers, open_one, begin, lambda some: _greeted(some, version, lag, pointer)
                )
                tasks.append(group.create_task(rejoining.watch()))
                yield fleet, rejoining
            finally:
                lag.end()
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
    async def open_host(spec: HostSpec) -> Driver | HostFault:
        try:
            return await open_one(spec)
        except HostUnusable as error:
            return error.fault

    opening = [asyncio.create_task(open_host(spec)) for spec in specs]
    try:
        opened = await asyncio.gather(*opening)
    except asyncio.CancelledError:
        for done in await asyncio.gather(*opening, return_exceptions=True):
            if not isinstance(done, BaseException | HostFault):
                await done.close()
        raise
    drivers = [one for one in opened if not isinstance(one, HostFault)]
    return drivers, [one for one in opened if isinstance(one, HostFault)]


async def _greeted(drivers: Iterable[Driver], version: str, lag: ControllerLag, pointer: Pointer) -> list[HostFault]:
    """Wait for every hello, and check that each is from a slave of this version. Returns the faults."""
    drivers = list(drivers)

    async def wait_hello(driver: Driver) -> None:
        await driver.wait_hello()
        if driver.lost is not None:
            raise HostLost(driver.lost)

    _, failed = await barrier(drivers, wait_hello, lag.deadline(HELLO_S))
    faults = [HostFault(driver.name, reason, pointer(driver.name)) for driver, reason in failed.items()]
    for name, hello in [(driver.name, driver.hello) for driver in drivers]:
        if hello is None:
            continue  # it is among those that failed
        if (hello.protocol, hello.version) != (PROTOCOL_VERSION, version):
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
