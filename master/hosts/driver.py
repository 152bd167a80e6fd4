"""One host, as the session sees it: commands go out, answers and events come in.

Rule: no expected fault leaves this module as an exception of a task. A cut pipe, a protocol error, three unanswered
probes: each becomes `lost`, a reason in words; whoever waits for an answer gets HostLost, and the inbox gets a
Lost. The driver does not know what it drives, nor how the pipe was made.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from ...protocol.errors import ProtocolError
from ...protocol.lines import LineReader, line, message, shortened
from ...protocol.messages import (
    ClockProbe,
    ClockReading,
    Command,
    DyingWords,
    Hello,
    Message,
    Refusal,
    Refused,
    Remark,
    Result,
    Saying,
    Stopped,
    word,
)
from ...protocol.states import State, after, check_answer, may_command
from .clock import OffsetEstimator
from .pipe import Pipe, PipeLost

PROBE_EVERY_S: Final = 1.0
PROBES_LOST: Final = 3  # unanswered probes at once that make a host lost
READ_BYTES: Final = 1 << 16

Answer = TypeVar("Answer")


class HostLost(Exception):
    """The host cannot be asked any more; its text is the reason."""


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
class Overdue:
    """An event: an answer that nobody waited for any more. It may have been `ready`."""

    answer: Saying


Event = Result | Stopped | DyingWords | Remark | Overdue | Lost


@dataclass(slots=True)
class _Question:
    command: Command
    answer: asyncio.Future[list[Saying]]
    said: list[Saying] = field(default_factory=list)


class Driver:
    """Remembers one host's conversation: its state, open questions, clock offset, and whether it is lost."""

    def __init__(
        self,
        name: str,
        pipe: Pipe,
        inbox: "asyncio.Queue[tuple[Driver, Event]]",
        now_ns: Callable[[], int],
        log: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.name = name
        self.state = State.CONNECTING
        self.hello: Hello | None = None
        self.lost: str | None = None
        self.clock = OffsetEstimator()
        self._pipe = pipe
        self._inbox = inbox
        self._now_ns = now_ns
        self._log = log
        self._questions: dict[int, _Question] = {}
        self._probes: dict[int, int] = {}  # id -> sent, controller's clock
        self._last_id = 0
        self._greeted = asyncio.Event()

    async def drive(self) -> None:
        """Read what the host says until it is lost. Cancel to give the host up."""
        reader = LineReader()
        try:
            while self.lost is None:
                data = await self._pipe.read(READ_BYTES)
                arrived_ns = self._now_ns()
                if self.lost is not None:
                    return  # given up while it was silent: nothing that it says now counts
                if not data:
                    reader.close()
                    self.lose("it closed the connection" if self.state is not State.GONE else "it ended as told")
                for found in reader.feed(data):
                    self._log(f"<- {shortened(found)}")
                    self._hear(message(found), arrived_ns)
        except PipeLost as error:
            self.lose(str(error))
        except ProtocolError as error:
            self.lose(f"protocol error: {error}")

    async def probe(self) -> None:
        """Every second, whatever the state: heartbeat, lease renewal and clock offset in one."""
        await self.greeted()
        while self.lost is None and self.state is not State.GONE:
            if len(self._probes) >= PROBES_LOST:
                self.lose(f"it did not answer for {PROBES_LOST * PROBE_EVERY_S:g} s ({PROBES_LOST} probes)")
                return
            command = ClockProbe(self._new_id())
            self._probes[command.id] = self._now_ns()
            try:
                async with asyncio.timeout(PROBE_EVERY_S):
                    await self._pipe.write(line(command))
            except PipeLost as error:
                self.lose(str(error))
            except TimeoutError:
                pass  # the pipe is full; the probe counts as unanswered
            await asyncio.sleep(PROBE_EVERY_S)

    async def greeted(self) -> None:
        """Wait for `hello`, or for the host to be lost."""
        await self._greeted.wait()

    async def ask(self, kind: type[Command], **fields: Any) -> list[Saying]:
        """Send a command and wait for all that it is answered with (for all but list_luns that is one saying).

        Raises HostLost, or CommandRefused with the host's reasons.
        """
        if self.lost is not None:
            raise HostLost(self.lost)
        command = kind(id=self._new_id(), **fields)
        if not may_command(self.state, command):
            raise CommandRefused((Refusal(word(kind), f"the host is {self.state}"),))
        question = _Question(command, asyncio.get_running_loop().create_future())
        self._questions[command.id] = question
        data = line(command)
        self._log(f"-> {shortened(data)}")
        try:
            await self._pipe.write(data)
            answer = await question.answer
        except PipeLost as error:
            self.lose(str(error))
            raise HostLost(str(error)) from None
        finally:
            # Whoever gave up waiting leaves the question: its answer may still come, and is then not out of turn.
            if question.answer.done() and not question.answer.cancelled():
                self._questions.pop(command.id, None)
        if isinstance(answer[-1], Refused):
            raise CommandRefused(answer[-1].refusals)
        return answer

    def unanswered(self, kind: type[Command]) -> bool:
        """Whether such a command is still to be answered, even where nobody waits any more."""
        return any(isinstance(question.command, kind) for question in self._questions.values())

    def lose(self, reason: str) -> None:
        """Give the host up; the first reason stands."""
        if self.lost is not None:
            return
        self.lost = reason
        self._log(f"lost: {reason}")
        self._greeted.set()
        for question in self._questions.values():
            if not question.answer.done():
                question.answer.set_exception(HostLost(reason))
                question.answer.exception()  # retrieved here, so that nobody's absence is a warning
        self._questions.clear()
        self._inbox.put_nowait((self, Lost(reason)))

    async def close(self) -> None:
        """Close the pipe: the far process sees the end of its input, halts and exits."""
        await self._pipe.close()

    def _new_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _hear(self, heard: Message, arrived_ns: int) -> None:
        if isinstance(heard, Command):
            raise ProtocolError(f"the host sent a command, {word(type(heard))!r}")
        self.state = after(self.state, heard)
        match heard:
            case Hello():
                self.hello = heard
                self._greeted.set()
            case ClockReading():
                sent_ns = self._probes.pop(heard.re, None)
                if sent_ns is None:
                    raise ProtocolError(f"'clock_reading' answers {heard.re}, which was not asked")
                self.clock.add(sent_ns, heard.received_ns, heard.sent_ns, arrived_ns)
            case Result() | Stopped() | Remark():
                self._inbox.put_nowait((self, heard))
            case DyingWords(re=0):
                self._inbox.put_nowait((self, heard))
            case _:
                self._answer(heard)

    def _answer(self, saying: Any) -> None:
        question = self._questions.get(saying.re)
        if question is None:
            raise ProtocolError(f"{word(type(saying))!r} answers {saying.re}, which was not asked")
        question.said.append(saying)
        if check_answer(type(question.command), saying):
            if question.answer.done():
                del self._questions[saying.re]
                self._inbox.put_nowait((self, Overdue(saying)))
            else:
                question.answer.set_result(question.said)


async def barrier(
    hosts: Iterable[Driver], ask: Callable[[Driver], Awaitable[Answer]], deadline: float
) -> tuple[dict[Driver, Answer], dict[Driver, str]]:
    """Ask all hosts at once and wait for all, no longer than `deadline` (of the loop's clock).

    Returns the answers, and for each host that gave none the reason. Raises nothing that a host can cause.
    """
    answers: dict[Driver, Answer] = {}
    failed: dict[Driver, str] = {}
    waited_from = asyncio.get_running_loop().time()

    async def one(host: Driver) -> None:
        try:
            async with asyncio.timeout_at(deadline):
                answers[host] = await ask(host)
        except (HostLost, CommandRefused) as error:
            failed[host] = str(error)
        except TimeoutError:
            failed[host] = f"no answer within {deadline - waited_from:.1f} s"

    async with asyncio.TaskGroup() as group:
        for host in hosts:
            group.create_task(one(host))
    return answers, failed
