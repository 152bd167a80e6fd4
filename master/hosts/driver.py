"""One host, as the run sees it: commands go out, answers and events come in.

Rule: no expected fault leaves a driver as an exception of a task. A cut pipe, a protocol error, beats that are not
answered: each becomes `lost`, a reason as text; callers that wait for an answer get HostLost, and the inbox gets a
Lost. So does a bug of ours that a host's message brings out: then its log has the traceback. The pipe of a lost host is
closed at once: the end of its input halts a slave that is still there. Here is what all drivers share; pipe_driver.py
holds a host's pipe itself, the RemoteDriver of drivers/controller_side.py has a driver process hold it.
"""

import asyncio
import traceback
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from ...protocol.messages import (
    Command,
    Continue,
    DyingWords,
    Go,
    Hello,
    HostMessage,
    Prepare,
    Refused,
    Result,
    Stopped,
    wire_name,
)
from ...protocol.payload import Notice, Refusal
from ...protocol.states import State, may_command
from ...protocol.text import printable
from ..errors import OutputError
from .clock_offset import OffsetEstimator
from .controller_lag import Deadline
from .heartbeat import Pulse
from .pipe import PipeLost

DRIVING: Final = (State.RUNNING, State.ENDING)

Answer = TypeVar("Answer")


class HostLost(Exception):
    """The host takes no more commands; its text is the reason."""


class CommandRefused(Exception):
    """The host did not do what it was commanded; state and run are as before."""

    def __init__(self, refusals: tuple[Refusal, ...]) -> None:
        super().__init__("; ".join(f"{r.what}: {r.reason}" for r in refusals))
        self.refusals = refusals


@dataclass(frozen=True, slots=True)
class Lost:
    """An event: the host is gone, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Delivered:
    """An event: a result, and when it was read."""

    result: Result
    arrived_ns: int  # controller's clock


@dataclass(frozen=True, slots=True)
class LateAnswer:
    """An event: an answer that nobody waited for any more. It may have been `ready`."""

    answer: HostMessage


Event = Delivered | Stopped | DyingWords | Notice | LateAnswer | Lost

Inbox = asyncio.Queue["tuple[Driver, Event]"]


@dataclass(slots=True)
class PendingRequest:
    """A command whose answer is not complete."""

    command: Command
    sent_ns: int
    answer: asyncio.Future[list[HostMessage]]
    answers: list[HostMessage] = field(default_factory=list)  # those received so far
    luns: int = 0  # that they list


class Driver(ABC):
    """One host's state, its pending requests, its clock offset, and whether it is lost."""

    def __init__(
        self, name: str, inbox: Inbox, now_ns: Callable[[], int], log: Callable[[str], None] = lambda text: None
    ) -> None:
        self.name = name
        self.state = State.CONNECTING
        self.hello: Hello | None = None
        self.lost: str | None = None
        self.may_drive_until_ns: int | None = None  # given up while it drove, and not seen to end: until its lease ends
        self.clock = OffsetEstimator()
        self.pulse = Pulse(now_ns())
        self.now_ns = now_ns
        self.log = log
        self.pending: dict[int, PendingRequest] = {}
        self.ready_s = 0.0  # from the last `go` to its answer; 0 before the first
        self.newest_stamp_ns = 0  # the newest stamp of the host's clock that was read
        self._inbox = inbox
        self._last_id = 0
        self._greeted = asyncio.Event()
        self._gone = asyncio.Event()
        self._closing: asyncio.Task[None] | None = None

    @property
    def round_trip_s(self) -> float:
        """From a request to its answer, recently; 0 where none was answered yet."""
        return self.pulse.round_trip_ns / 1e9

    @abstractmethod
    async def drive(self) -> None:
        """Read what the host sends until it is lost. Cancel to give the host up."""

    @abstractmethod
    async def probe(self) -> None:
        """Whatever the state: heartbeat, lease renewal and clock offset in one, when nothing else serves as such."""

    @abstractmethod
    async def send(self, command: Command) -> None:
        """Raises PipeLost."""

    @abstractmethod
    async def disconnect(self) -> None:
        """Close the way to the host."""

    async def wait_hello(self) -> None:
        """Wait for `hello`, or for the host to be lost."""
        await self._greeted.wait()

    async def gone(self) -> None:
        """Wait for the host to be lost."""
        await self._gone.wait()

    async def request(self, kind: type[Command], **fields: Any) -> list[HostMessage]:
        """Send a command and wait for its whole answer: one message, or for lists of LUNs several.

        Raises HostLost, or CommandRefused with the host's reasons.
        """
        if self.lost is not None:
            raise HostLost(self.lost)
        if kind is Continue:
            fields["newest_stamp_ns"] = self.newest_stamp_ns
        command = kind(id=self.new_id(), **fields)
        if not may_command(self.state, command):
            raise CommandRefused((Refusal(wire_name(kind), f"the host is {self.state}"),))
        pending = PendingRequest(command, self.now_ns(), asyncio.get_running_loop().create_future())
        self.pending[command.id] = pending
        if isinstance(command, Prepare):
            self.pulse.set_lease(command.lease_ns)
            self.pulse.idle_patience_ns = command.patience_ns
        if isinstance(command, Continue):
            self.pulse.beat(command.id, self.now_ns())
        if isinstance(command, Go):
            self.pulse.between_steps = False
        try:
            await self.send(command)
            answer = await pending.answer
        except PipeLost as error:
            self.lose(str(error))
            raise HostLost(str(error)) from None
        finally:
            # A caller that gave up leaves its request pending: the answer may still come, and is then not out of turn.
            if pending.answer.done() and not pending.answer.cancelled():
                self.pending.pop(command.id, None)
        if isinstance(answer[-1], Refused):
            raise CommandRefused(answer[-1].refusals)
        return answer

    def has_pending(self, kind: type[Command]) -> bool:
        """Whether a command of that type is unanswered, even where nobody waits any more."""
        return any(isinstance(request.command, kind) for request in self.pending.values())

    def lose(self, reason: str, ended: bool = False) -> None:
        """Give the host up; the first reason stands. `ended`: its process is known to be gone."""
        if self.lost is not None:
            return
        self.lost = reason = printable(reason)
        if not ended and (self.state in DRIVING or self.has_pending(Go)):
            self.may_drive_until_ns = self.pulse.received_ns + self.pulse.lease_ns
        self.log(f"lost: {reason}")
        self._greeted.set()
        self._gone.set()
        for request in self.pending.values():
            if not request.answer.done():
                request.answer.set_exception(HostLost(reason))
                request.answer.exception()  # retrieved here, so that nobody's absence is a warning
        self.pending.clear()
        self.report(Lost(reason))
        self._close_pipe()

    def lose_for_bug(self, error: Exception) -> None:
        """Give the host up for an exception that one of its messages caused; its log gets the traceback."""
        for text in "".join(traceback.format_exception(error)).splitlines():
            self.log(f"   {text}")
        self.lose(f"protocol error: {type(error).__name__}: {error}")

    async def close(self) -> None:
        """Close the pipe: the far process sees the end of its input, halts and exits."""
        await self._close_pipe()

    def _close_pipe(self) -> "asyncio.Task[None]":
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self.disconnect())
        return self._closing

    # For those who implement it.

    def new_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def greet(self, hello: Hello) -> None:
        """The host has sent its hello."""
        self.hello = hello
        self._greeted.set()

    def report(self, event: Event) -> None:
        """Into the inbox."""
        self._inbox.put_nowait((self, event))

    def settle(self, number: int, answers: list[HostMessage]) -> None:
        """A request is answered; where nobody waits any more, its answer is an event."""
        request = self.pending[number]
        if isinstance(request.command, Go):
            self.ready_s = (self.now_ns() - request.sent_ns) / 1e9
        if request.answer.done():
            del self.pending[number]
            self.report(LateAnswer(answers[-1]))
        else:
            request.answer.set_result(answers)


async def barrier(
    hosts: Iterable[Driver],
    request: Callable[[Driver], Awaitable[Answer]],
    deadline: Deadline,
) -> tuple[dict[Driver, Answer], dict[Driver, str]]:
    """Send a request to all hosts at once and wait for all, no longer than `deadline`.

    Returns the answers, and for each host that gave none the reason, in the order of `hosts`. Raises nothing that a
    host can cause: one whose answer `request` cannot deal with is lost.
    """
    answers: dict[Driver, Answer] = {}
    failed: dict[Driver, str] = {}
    loop = asyncio.get_running_loop()
    waited_from = loop.time()
    tasks: dict[Driver, asyncio.Task[None]] = {}
    late: set[Driver] = set()

    def no_answer() -> str:
        return f"no answer within {loop.time() - waited_from:.1f} s"

    async def call_host(host: Driver) -> None:
        try:
            answers[host] = await request(host)
        except (HostLost, CommandRefused) as error:
            failed[host] = str(error)
        except TimeoutError:
            failed[host] = no_answer()
        except asyncio.CancelledError:
            if host not in late:
                raise
            failed[host] = no_answer()
        except OutputError:
            raise
        except Exception as error:
            host.lose_for_bug(error)
            failed[host] = host.lost or str(error)

    def expire() -> None:
        if not deadline.has_passed():
            timers.append(loop.call_later(deadline.left_s, expire))
            return
        late.update(host for host, task in tasks.items() if not task.done())
        for host in late:
            tasks[host].cancel()

    timers = [loop.call_later(deadline.left_s, expire)]
    try:
        async with asyncio.TaskGroup() as group:
            for host in hosts:
                tasks[host] = group.create_task(call_host(host))
    finally:
        timers[-1].cancel()
    return answers, {host: failed[host] for host in tasks if host in failed}
