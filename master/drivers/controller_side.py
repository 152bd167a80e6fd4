"""A driver process, seen from the controller: its hosts have drivers like any other.

Rule: a process that ends, or stalls for as long as a host may, costs its own hosts and nothing else: each of them is
lost, for that reason. It runs in a session of its own, so signals from a terminal or a user reach the controller alone;
it ends with the link.
"""

import asyncio
import contextlib
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ...protocol.errors import ProtocolError
from ...protocol.messages import Command, HostMessage, Refused, Result
from ..errors import HostFault
from ..hosts import open_files
from ..hosts.driver import Delivered, Driver, Inbox, Lost
from ..hosts.errors import HostUnusable
from ..hosts.host_spec import HostSpec
from ..hosts.subprocess_pipe import ended
from ..rollup.partial_merge import MergePlaces, PartialMerge
from .driver_link import open_link
from .driver_messages import (
    Begin,
    BeginStep,
    ClockProbed,
    CloseHost,
    CommandAnswered,
    CommandFailed,
    DriverEvent,
    FromController,
    FromProcess,
    GiveUpHost,
    HostClosed,
    HostGreeted,
    HostOpened,
    OpenHost,
    ProcessFailed,
    SendCommand,
    SignOfLife,
    SummedResults,
    SumResults,
)
from .split import even_shares

PROGRAM: Final = "ivypy.master.drivers"
ALIVE_S: Final = 1.0  # between two signs of life to a process
UNANSWERED: Final = 3  # at least, before a process counts as stalled: it may have been the controller
STARTING_S: Final = 60.0  # for a process to start and answer: on few cores, several take seconds
ENDING_S: Final = 10.0  # for a process to close its hosts' pipes and exit


class ProcessGone(Exception):
    """The process has ended; its text states how."""


class DriverProcess:
    """A process's drivers, and who waits for what. `send` goes to the process."""

    def __init__(self, send: Callable[[FromController], None]) -> None:
        self.gone: str | None = None
        self._send = send
        self._drivers: dict[int, RemoteDriver] = {}
        self._opening: dict[int, asyncio.Future[HostFault | None]] = {}
        self._closing: dict[int, asyncio.Future[None]] = {}
        self._last = 0  # the newest driver
        self._sum: asyncio.Future[PartialMerge] | None = None
        self._unanswered_s: list[float] = []  # when signs of life were sent since the last message from the process
        self._started = False  # whether it ever sent a message

    async def open(self, spec: HostSpec, log: Path, inbox: Inbox, now_ns: Callable[[], int]) -> "RemoteDriver":
        """A driver of a host that is connected; the process writes its `log`. Raises HostUnusable."""
        if self.gone is not None:
            raise HostUnusable(HostFault(spec.name, self.gone, ""))
        self._last = number = self._last + 1
        opened = self._opening[number] = asyncio.get_running_loop().create_future()
        driver = self._drivers[number] = RemoteDriver(spec.name, number, self, inbox, now_ns)
        self._send(OpenHost(number, spec, log))
        fault = await opened
        if fault is not None:
            del self._drivers[number]
            raise HostUnusable(fault)
        return driver

    def begin_step(self, places: MergePlaces) -> None:
        self._send(BeginStep(places))

    async def sum(self, subinterval: int, hosts: frozenset[str]) -> PartialMerge:
        """The sum of these hosts' results, all of which were reported. Raises ProcessGone."""
        if self.gone is not None:
            raise ProcessGone(self.gone)
        self._sum = asyncio.get_running_loop().create_future()
        self._send(SumResults(subinterval, hosts))
        return await self._sum

    def send_command(self, number: int, command: Command) -> None:
        self._send(SendCommand(number, command))

    def lose(self, number: int, reason: str) -> None:
        self._send(GiveUpHost(number, reason))

    async def close(self, number: int) -> None:
        """Close a driver's pipe."""
        if self.gone is None:
            closed = self._closing.setdefault(number, asyncio.get_running_loop().create_future())
            self._send(CloseHost(number))
            await asyncio.shield(closed)

    def live(self, now_s: float) -> None:
        """Send a sign of life, which is to be answered."""
        self._unanswered_s.append(now_s)
        self._send(SignOfLife())

    def silent_s(self, now_s: float) -> float:
        """How long signs of life have gone unanswered; 0 while too few were sent to know."""
        return now_s - self._unanswered_s[0] if len(self._unanswered_s) >= UNANSWERED else 0.0

    def patience_s(self, silence_s: float) -> float:
        """How long it may leave signs of life unanswered, of a process that ends after a silence of `silence_s`."""
        return max(silence_s / 2, UNANSWERED * ALIVE_S) if self._started else STARTING_S

    def receive(self, message: FromProcess) -> None:
        self._started = True
        self._unanswered_s.clear()
        match message:
            case SignOfLife():
                pass
            case HostOpened(number, fault):
                _give(self._opening.pop(number, None), fault)
            case HostClosed(number):
                self._drivers.pop(number, None)
                _give(self._closing.pop(number, None), None)
            case SummedResults(part):
                _give(self._sum, part)
            case ProcessFailed(why):
                self.end(why)
            case _:
                if (driver := self._drivers.get(message.driver)) is not None:
                    driver.receive(message)

    def end(self, why: str) -> None:
        """The process has ended; the first reason stays."""
        if self.gone is not None:
            return
        self.gone = f"its driver process ended: {why}"
        for number, opening in self._opening.items():
            host = self._drivers[number].name
            _give(opening, HostFault(host, self.gone, "check that the controller has enough memory, and try again"))
        for closing in self._closing.values():
            _give(closing, None)
        for driver in list(self._drivers.values()):
            driver.lose(self.gone)
        if self._sum is not None and not self._sum.done():
            self._sum.set_exception(ProcessGone(self.gone))
            self._sum.exception()  # retrieved here, so that asyncio does not warn if nobody awaits it


class RemoteDriver(Driver):
    """The driver of a host whose pipe is held by a driver process."""

    def __init__(self, name: str, number: int, process: DriverProcess, inbox: Inbox, now_ns: Callable[[], int]) -> None:
        super().__init__(name, inbox, now_ns)
        self.process = process
        self._number = number
        self._misfits: dict[int, str] = {}  # by subinterval: why a result cannot be merged; the host is lost for it
        self._round_trip_s = 0.0

    @property
    def round_trip_s(self) -> float:
        return self._round_trip_s

    async def drive(self) -> None:
        """The process does."""

    async def probe(self) -> None:
        """The process does."""

    def lose(self, reason: str, ended: bool = False) -> None:
        if self.lost is None:
            self.process.lose(self._number, reason)
        super().lose(reason, ended)

    async def send(self, command: Command) -> None:
        self.process.send_command(self._number, command)

    async def disconnect(self) -> None:
        await self.process.close(self._number)

    def receive(self, message: FromProcess) -> None:
        """A message about the host."""
        match message:
            case HostGreeted(_, state, hello):
                self.state = state
                self.greet(hello)
            case ClockProbed(_, stamps_ns, round_trip_s):
                self._round_trip_s = round_trip_s
                self.clock.add(*stamps_ns)
                self.pulse.received(stamps_ns[-1])
            case CommandAnswered(_, state, number, answers):
                self.state = state
                self._give_answer(number, list(answers))
            case CommandFailed(_, state, number, refusals):
                self.state = state
                self._give_answer(number, [Refused(number, refusals)])
            case DriverEvent():
                self._take_event(message)

    def _give_answer(self, number: int, answers: list[HostMessage]) -> None:
        self.pulse.answered(number, self.now_ns())
        if number in self.pending:  # else the host was lost meanwhile
            self.settle(number, answers)

    def _take_event(self, message: DriverEvent) -> None:
        self.state = message.state
        match message.event:
            case Lost(reason):
                super().lose(reason)
                self.may_drive_until_ns = message.may_drive_until_ns
            case event:
                if isinstance(event, Delivered) and message.misfit:
                    self._misfits[event.result.subinterval] = message.misfit
                self.report(event)

    def check(self, result: Result) -> None:
        """Raises ProtocolError if the process found that the result cannot be merged."""
        if result.subinterval in self._misfits:
            raise ProtocolError(self._misfits[result.subinterval])


def _give(future: "asyncio.Future[Any] | None", value: Any) -> None:
    if future is not None and not future.done():  # the waiting task may have been cancelled
        future.set_result(value)


@contextlib.asynccontextmanager
async def driver_process(silence_s: float, program: str = PROGRAM) -> AsyncIterator[DriverProcess]:
    """A process that drives hosts while the block runs. Without a message from the controller for `silence_s` it ends,
    and its hosts halt."""
    own_end, child_end = socket.socketpair()
    words = [sys.executable, "-P", "-m", program, str(child_end.fileno())]
    with child_end:
        child = await asyncio.create_subprocess_exec(
            *words, stdin=PIPE, stdout=DEVNULL, stderr=PIPE, pass_fds=[child_end.fileno()], start_new_session=True
        )
    link = await open_link(own_end, lambda message: process.receive(message), lambda: None)
    process = DriverProcess(link.send)
    tasks = [asyncio.create_task(one) for one in (_watch(child, process), _live(child, process, silence_s))]
    link.send(Begin(silence_s))
    try:
        yield process
    finally:
        link.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ENDING_S):
                await child.wait()
        if child.returncode is None:
            child.kill()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(child.wait(), 1.0)  # longer only while the kernel holds it
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _live(child: Process, process: DriverProcess, silence_s: float) -> None:
    """Send signs of life, as long as the controller's loop turns and the process answers them."""
    now_s = asyncio.get_running_loop().time
    while process.silent_s(now_s()) < process.patience_s(silence_s):
        process.live(now_s())
        await asyncio.sleep(ALIVE_S)
    process.end(f"it did not answer for {process.patience_s(silence_s):g} s")
    with contextlib.suppress(ProcessLookupError):
        child.kill()


async def _watch(child: Process, process: DriverProcess) -> None:
    """Record how the process ended, when it does."""
    assert child.stderr is not None
    words: deque[str] = deque(maxlen=1)
    async for line in child.stderr:
        words.append(line.decode("utf-8", "backslashreplace").strip())
    process.end(str(ended(await child.wait(), tuple(words))))


@contextlib.asynccontextmanager
async def driver_processes(
    specs: Sequence[HostSpec], processes: int, silence_s: float, program: str = PROGRAM
) -> AsyncIterator[Mapping[str, DriverProcess]]:
    """So many driver processes while the block runs, by host. Raises PlanError."""
    open_files.allow(specs)  # they inherit the limit
    async with contextlib.AsyncExitStack() as stack:
        process_of: dict[str, DriverProcess] = {}
        for mine in even_shares(specs, processes) if processes else ():
            process = await stack.enter_async_context(driver_process(silence_s, program))
            process_of.update((spec.name, process) for spec in mine)
        yield process_of
