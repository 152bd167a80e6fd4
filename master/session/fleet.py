"""All hosts of a run: connected at once, asked at once, closed at once.

Rule: every fault of every host is found before anything is refused, and they are told together. One driver and one
prober a host, in the run's one TaskGroup; they end when the fleet is left.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from ...protocol.messages import (
    MOST_IN_A_LIST,
    PROTOCOL_VERSION,
    Command,
    Die,
    Hello,
    ListLuns,
    Lun,
    Luns,
    Role,
    Saying,
)
from ..errors import HostFault, HostsError
from ..hosts.driver import CommandRefused, Driver, Event, HostLost, barrier
from ..hosts.errors import HostUnusable
from ..hosts.pipe import Pipe
from ..hosts.spec import HostSpec

HELLO_S: Final = 30.0  # from an open pipe to hello
GOODBYE_S: Final = 3.0  # for `die`; a host whose kernel holds a thread does not answer, and nobody waits for it
ANSWER_S: Final = 30.0

Opener = Callable[[HostSpec, Callable[[str], None]], Awaitable[Pipe]]  # a host and its log -> a pipe to its slave
Log = Callable[[str], Callable[[str], None]]  # a host's name -> its log


class Fleet:
    """The hosts' drivers, and the one inbox into which all of them put what happens."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self.drivers: dict[str, Driver] = {}
        self.inbox: asyncio.Queue[tuple[Driver, Event]] = asyncio.Queue()
        self.now_ns = now_ns
        self.interrupted = asyncio.Event()  # by the user, or by `on_io_error: stop`

    @property
    def alive(self) -> list[Driver]:
        return [driver for driver in self.drivers.values() if driver.lost is None]

    def hellos(self) -> Mapping[str, Hello]:
        return {name: driver.hello for name, driver in self.drivers.items() if driver.hello is not None}

    async def ask_all(
        self, asks: Mapping[Driver, Callable[[Driver], Awaitable[Any]]], within_s: float = ANSWER_S
    ) -> dict[Driver, Any]:
        """Each host its own question, all at once. Raises HostsError with the faults of all that gave no answer."""
        deadline = asyncio.get_running_loop().time() + within_s
        answers, failed = await barrier(asks, lambda driver: asks[driver](driver), deadline)
        if failed:
            raise HostsError([HostFault(driver.name, reason, "") for driver, reason in failed.items()])
        return answers


async def ask_in_parts(
    driver: Driver, kind: type[Command], name: str, items: Sequence[Any], **fields: Any
) -> list[Saying]:
    """A command whose list `name` may be longer than one message holds. Returns the last answer."""
    answer: list[Saying] = []
    for start in range(0, len(items), MOST_IN_A_LIST):
        answer = await driver.ask(kind, **{name: tuple(items[start : start + MOST_IN_A_LIST])}, **fields)
    return answer


async def luns_of(driver: Driver, **listing: Any) -> list[Lun]:
    """Ask a host for its LUNs."""
    answer = await driver.ask(ListLuns, **listing)
    return [lun for saying in answer if isinstance(saying, Luns) for lun in saying.luns]


@asynccontextmanager
async def connected(
    specs: Sequence[HostSpec], opener: Opener, log: Log, now_ns: Callable[[], int], version: str
) -> AsyncIterator[Fleet]:
    """Connect to all hosts, and close them all at the end. Raises HostsError with every host's fault."""
    fleet = Fleet(now_ns)
    tasks: list[asyncio.Task[None]] = []
    try:
        async with asyncio.TaskGroup() as group:
            pipes = await _open_all(specs, opener, log)
            for spec in specs:
                driver = Driver(spec.name, pipes[spec.name], fleet.inbox, now_ns, log(spec.name))
                fleet.drivers[spec.name] = driver
                tasks += [group.create_task(driver.drive()), group.create_task(driver.probe())]
            try:
                await _greet(fleet, version)
                yield fleet
            finally:
                await _close(fleet)
                for task in tasks:
                    task.cancel()
    except BaseExceptionGroup as several:
        # A TaskGroup wraps what its body raises; the body's error is the run's.
        raise (several.exceptions[0] if len(several.exceptions) == 1 else several) from None


async def _open_all(specs: Sequence[HostSpec], opener: Opener, log: Log) -> dict[str, Pipe]:
    async def one(spec: HostSpec) -> Pipe | HostFault:
        try:
            return await opener(spec, log(spec.name))
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
    pipes = {spec.name: pipe for spec, pipe in zip(specs, opened, strict=True) if not isinstance(pipe, HostFault)}
    faults = [fault for fault in opened if isinstance(fault, HostFault)]
    if faults:
        await asyncio.gather(*(pipe.close() for pipe in pipes.values()))
        raise HostsError(faults)
    return pipes


async def _greet(fleet: Fleet, version: str) -> None:
    """Wait for every hello, and check that each is a slave of our own version."""

    async def greeted(driver: Driver) -> None:
        await driver.greeted()
        if driver.lost is not None:
            raise HostLost(driver.lost)

    deadline = asyncio.get_running_loop().time() + HELLO_S
    _, failed = await barrier(fleet.drivers.values(), greeted, deadline)
    faults = [
        HostFault(driver.name, reason, f"its log says more: log/{driver.name}.log") for driver, reason in failed.items()
    ]
    for name, hello in fleet.hellos().items():
        if hello.role is not Role.SLAVE:
            faults.append(HostFault(name, f"it is a {hello.role}, not a slave", "check the host's `command`"))
        elif (hello.protocol, hello.version) != (PROTOCOL_VERSION, version):
            faults.append(
                HostFault(name, f"it runs ivypy {hello.version}, the controller {version}", "remove its cache_dir")
            )
    if faults:
        raise HostsError(faults)


async def _close(fleet: Fleet) -> None:
    async def goodbye(driver: Driver) -> None:
        try:
            async with asyncio.timeout(GOODBYE_S):
                await driver.ask(Die)
        except (HostLost, CommandRefused, TimeoutError):
            pass
        await driver.close()

    await asyncio.gather(*(goodbye(driver) for driver in fleet.drivers.values()))
