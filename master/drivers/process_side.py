"""A driver process, inside: it holds the drivers of its hosts, and adds up what they deliver.

Rule: drivers, launchers and merging are the controller's own modules; here is only what is forwarded where. A result's
large arrays are added here on arrival and go no further, except for the compressed streams, which are stored. The
controller names the hosts whose sum it requests: a host that it called late is not in it, even if its result is here.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import fields
from pathlib import Path
from typing import Any

from ...protocol.errors import ProtocolError
from ...protocol.messages import Command, Result
from ..hosts.clock_offset import OffsetEstimator
from ..hosts.driver import CommandRefused, Delivered, Driver, Event, HostLost
from ..hosts.errors import HostUnusable
from ..hosts.host_spec import HostSpec
from ..hosts.pipe import Pipe
from ..hosts.pipe_driver import PipeDriver
from ..rollup.decode_result import light, whole
from ..rollup.partial_merge import MergePlaces, PartialMerge, PartialMerger
from .driver_messages import (
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
    SendCommand,
    SignOfLife,
    SummedResults,
    SumResults,
)

Opening = Callable[[HostSpec, Callable[[str], None]], Awaitable[Pipe]]  # a host and its log -> a pipe to its slave


class ResultSums:
    """Keeps one step's results until the controller requests their sum."""

    def __init__(self, places: MergePlaces) -> None:
        self._hosts = frozenset(places.numbers)
        self._adder = PartialMerger(places)
        self._expected = self._hosts  # whose results are added on arrival
        self._next = 0  # the subinterval that is requested next
        self._kept: dict[int, dict[str, Result]] = {}  # by subinterval: results, without their data
        self._adder.open(0)

    def take(self, host: str, result: Result, short: Result) -> None:
        """Take a result; `short` is it without what only merging needs. Raises ProtocolError if it does not fit."""
        if host not in self._hosts:
            return
        unpacked = self._adder.check(host, result)
        if result.subinterval < self._next:
            return  # late: the controller stores it
        kept = self._kept.setdefault(result.subinterval, {})
        if host in kept:
            return  # out of turn, which the controller reports
        kept[host] = short
        if result.subinterval == self._adder.subinterval and host in self._expected:
            self._adder.add(host, result, unpacked)

    def sum(self, subinterval: int, hosts: frozenset[str]) -> PartialMerge:
        """The sum of these hosts' results, all of which have arrived."""
        if self._adder.subinterval != subinterval or not self._adder.hosts <= hosts:
            self._adder.open(subinterval)
        self._add(subinterval, hosts - self._adder.hosts)
        part = self._adder.close()
        self._expected, self._next = hosts, subinterval + 1
        self._kept = {number: kept for number, kept in self._kept.items() if number > subinterval}
        self._adder.open(self._next)
        self._add(self._next, hosts & self._kept.get(self._next, {}).keys())
        return part

    def _add(self, subinterval: int, hosts: frozenset[str]) -> None:
        for host in hosts:
            result = whole(self._kept[subinterval][host])
            self._adder.add(host, result, self._adder.check(host, result))


class HostShare:
    """The drivers of one process. `receive` takes the controller's messages; `send` goes to it."""

    def __init__(
        self,
        send: Callable[[FromProcess], None],
        opening: Opening,
        log: Callable[[str, Path], Callable[[str], None]],
        now_ns: Callable[[], int],
        spawn: Callable[[Coroutine[Any, Any, None]], Any],
    ) -> None:
        """`log`: a host, and the file of its log. `spawn` runs a coroutine in the background."""
        self._send = send
        self._opening = opening
        self._log = log
        self._now_ns = now_ns
        self._spawn = spawn
        self._drivers: dict[int, Driver] = {}
        self._sums: ResultSums | None = None

    def receive(self, message: FromController) -> None:
        match message:
            case OpenHost(number, spec, path):
                self._spawn(self._open(number, spec, self._log(spec.name, path)))
            case SendCommand(number, command) if number in self._drivers:
                self._spawn(self._request(number, self._drivers[number], command))
            case GiveUpHost(number, reason) if number in self._drivers:
                self._drivers[number].lose(reason)
            case CloseHost(number):
                self._spawn(self._close(number))
            case BeginStep(places):
                self._sums = ResultSums(places)
            case SignOfLife():
                self._send(SignOfLife())
            case SumResults(subinterval, hosts):
                assert self._sums is not None
                self._send(SummedResults(self._sums.sum(subinterval, hosts)))

    async def close(self) -> None:
        """Close every pipe, which halts every host."""
        await asyncio.gather(*(driver.close() for driver in self._drivers.values()), return_exceptions=True)

    def _pass_on(self, number: int, driver: Driver, event: Event) -> None:
        misfit = ""
        if isinstance(event, Delivered):
            short = light(event.result)
            try:
                if self._sums is not None:
                    self._sums.take(driver.name, event.result, short)
            except ProtocolError as error:
                misfit = str(error)
            event = Delivered(short, event.arrived_ns)
        message = DriverEvent(number, driver.state, event, misfit, driver.may_drive_until_ns)
        # An answer reaches `_request` in the loop's next turn: no later event may overtake it.
        asyncio.get_running_loop().call_soon(self._send, message)

    async def _open(self, number: int, spec: HostSpec, log: Callable[[str], None]) -> None:
        try:
            pipe = await self._opening(spec, log)
        except HostUnusable as error:
            self._send(HostOpened(number, error.fault))
            return
        inbox = _ForwardingInbox(lambda driver, event: self._pass_on(number, driver, event))
        driver = self._drivers[number] = PipeDriver(spec.name, pipe, inbox, self._now_ns, log)
        driver.clock = _ForwardingEstimator(
            lambda *stamps_ns: self._send(ClockProbed(number, stamps_ns, driver.round_trip_s))
        )
        self._send(HostOpened(number, None))
        self._spawn(driver.drive())
        self._spawn(driver.probe())
        await driver.wait_hello()
        if driver.hello is not None:
            self._send(HostGreeted(number, driver.state, driver.hello))

    async def _request(self, number: int, driver: Driver, command: Command) -> None:
        arguments = {one.name: getattr(command, one.name) for one in fields(command) if one.name != "id"}
        try:
            answer = await driver.request(type(command), **arguments)
        except CommandRefused as refused:
            self._send(CommandFailed(number, driver.state, command.id, refused.refusals))
        except HostLost:
            pass  # its Lost event has reported that
        else:
            self._send(CommandAnswered(number, driver.state, command.id, tuple(answer)))

    async def _close(self, number: int) -> None:
        driver = self._drivers.pop(number, None)
        if driver is not None:
            await driver.close()
        self._send(HostClosed(number))


class _ForwardingInbox(asyncio.Queue[tuple[Driver, Event]]):
    """An inbox that forwards each event and keeps none."""

    def __init__(self, forward: Callable[[Driver, Event], None]) -> None:
        super().__init__()
        self._forward = forward

    def put_nowait(self, event: tuple[Driver, Event]) -> None:
        self._forward(*event)


class _ForwardingEstimator(OffsetEstimator):
    """Forwards each probe: the controller makes the estimate."""

    def __init__(self, forward: Callable[[int, int, int, int], None]) -> None:
        super().__init__()
        self._forward = forward

    def add(self, sent_ns: int, received_ns: int, replied_ns: int, arrived_ns: int) -> None:
        super().add(sent_ns, received_ns, replied_ns, arrived_ns)
        self._forward(sent_ns, received_ns, replied_ns, arrived_ns)
