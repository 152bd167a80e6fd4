"""One host, as the session sees it: commands go out, answers and events come in.

Rule: no expected fault leaves this module as an exception of a task. A cut pipe, a protocol error, beats that are not
answered (heartbeat.py): each becomes `lost`, a reason in words; whoever waits for an answer gets HostLost, and the
inbox gets a Lost. The pipe of a lost host is closed at once: the end of its input is what halts a slave that is still
there. So does a bug of ours that something which the host said brings out: then its log has the traceback. The driver
does not know what it drives, nor how the pipe was made.
"""

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from ...protocol.errors import ProtocolError
from ...protocol.lines import LineReader, line, message, shortened
from ...protocol.messages import (
    ClockProbe,
    ClockReading,
    Command,
    Continue,
    CreateFiles,
    DyingWords,
    Go,
    Hello,
    ListLuns,
    LookAtLuns,
    Luns,
    Message,
    Ok,
    Prepare,
    Refused,
    Result,
    Saying,
    Stopped,
    word,
)
from ...protocol.payload import Notice, Refusal
from ...protocol.states import State, after, check_answer, may_command
from ...protocol.text import printable
from ..errors import OutputError
from .clock_offset import OffsetEstimator
from .heartbeat import STUCK_NS, Progress, Pulse
from .message_checks import MOST_LISTED, MOST_LUNS, Chatter, Results
from .pipe import Pipe, PipeLost

SENDING_S: Final = 1.0  # for a probe into a pipe that is full
READ_BYTES: Final = 1 << 16
CUT_STATUS: Final = 255  # of an `ssh` that lost its connection: the far process may live on
DRIVING: Final = (State.RUNNING, State.ENDING)
LONG: Final = (ListLuns, LookAtLuns, CreateFiles)  # commands that are waited for as long as the host gets on

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
class Delivered:
    """An event: a result, and when it was read."""

    result: Result
    arrived_ns: int  # controller's clock


@dataclass(frozen=True, slots=True)
class Overdue:
    """An event: an answer that nobody waited for any more. It may have been `ready`."""

    answer: Saying


Event = Delivered | Stopped | DyingWords | Notice | Overdue | Lost


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
        self.may_drive_until_ns: int | None = None  # given up while it drove, and not seen to end: until its lease ends
        self.clock = OffsetEstimator()
        self._pipe = pipe
        self._inbox = inbox
        self._now_ns = now_ns
        self._log = log
        self._questions: dict[int, _Question] = {}
        self._pulse = Pulse(now_ns())
        self._progress = Progress()
        self._heard_ns = 0  # the newest stamp of the host's clock that was read
        self._last_id = 0
        self._greeted = asyncio.Event()
        self._gone = asyncio.Event()
        self._closing: asyncio.Task[None] | None = None
        self._chatter = Chatter()
        self._listed = 0  # bytes
        self._results: Results | None = None  # of the step that the host was told to go last

    @property
    def round_trip_s(self) -> float:
        """From a question to its answer, as of late; 0 where none was answered yet."""
        return self._pulse.round_trip_ns / 1e9

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
                    how = "it closed the connection" if self.state is not State.GONE else "it ended as told"
                    self.lose(how, ended=True)
                for found in reader.feed(data):
                    self._log(f"<- {shortened(found)}")
                    self._take(found, arrived_ns)
                    if self.lost is not None:
                        return
        except PipeLost as error:
            self.lose(str(error), ended=error.status not in (None, CUT_STATUS))
        except ProtocolError as error:
            self.lose(f"protocol error: {error}")

    async def probe(self) -> None:
        """Whatever the state: heartbeat, lease renewal and clock offset in one, when nothing else serves as such."""
        await self.greeted()
        while self.lost is None and self.state is not State.GONE:
            now_ns = self._now_ns()
            lost_ns = self._pulse.lost_ns()
            if lost_ns is not None and now_ns >= lost_ns:
                self.lose(f"it did not answer for {self._pulse.patience_ns / 1e9:g} s")
                return
            if self._is_stuck(now_ns):
                return
            if now_ns >= self._pulse.due_ns(now_ns):
                await self._send_probe()
                lost_ns = self._pulse.lost_ns()
            wakes_ns = self._pulse.due_ns(now_ns)
            wakes_ns = wakes_ns if lost_ns is None else min(wakes_ns, lost_ns)
            await asyncio.sleep(max(wakes_ns - self._now_ns(), 0) / 1e9)

    def _is_stuck(self, now_ns: int) -> bool:
        """Whether what may take long is not got on with; the host is lost then."""
        at_work = [word(type(one.command)) for one in self._questions.values() if isinstance(one.command, LONG)]
        if not at_work:
            self._progress.answered()
        stuck_ns = self._progress.stuck_ns()
        if stuck_ns is None or now_ns < stuck_ns:
            return False
        self.lose(f"it answers probes, but has got no further with {at_work[0]!r} for {STUCK_NS / 1e9:g} s")
        return True

    async def _send_probe(self) -> None:
        command = ClockProbe(self._new_id(), self._heard_ns)
        self._pulse.beat(command.id, self._now_ns())
        try:
            async with asyncio.timeout(SENDING_S):
                await self._pipe.write(line(command))
        except PipeLost as error:
            self.lose(str(error))
        except TimeoutError:
            pass  # the pipe is full; the probe counts as unanswered

    async def greeted(self) -> None:
        """Wait for `hello`, or for the host to be lost."""
        await self._greeted.wait()

    async def gone(self) -> None:
        """Wait for the host to be lost."""
        await self._gone.wait()

    async def ask(self, kind: type[Command], **fields: Any) -> list[Saying]:
        """Send a command and wait for all that it is answered with (for all but list_luns that is one saying).

        Raises HostLost, or CommandRefused with the host's reasons.
        """
        if self.lost is not None:
            raise HostLost(self.lost)
        if kind is Continue:
            fields["heard_ns"] = self._heard_ns
        command = kind(id=self._new_id(), **fields)
        if not may_command(self.state, command):
            raise CommandRefused((Refusal(word(kind), f"the host is {self.state}"),))
        question = _Question(command, asyncio.get_running_loop().create_future())
        self._questions[command.id] = question
        if isinstance(command, LONG):
            self._progress.asked(self._now_ns())
        if isinstance(command, Prepare):
            self._pulse.agree(command.lease_ns)
        if isinstance(command, Continue):
            self._pulse.beat(command.id, self._now_ns())
        if isinstance(command, Go):
            self._results = Results(command, len(self.hello.cores) if self.hello else 0, self._now_ns())
        try:
            await self._send(command)
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

    def lose(self, reason: str, ended: bool = False) -> None:
        """Give the host up; the first reason stands. `ended`: its process is known to be gone."""
        if self.lost is not None:
            return
        self.lost = reason = printable(reason)
        if not ended and (self.state in DRIVING or self.unanswered(Go)):
            self.may_drive_until_ns = self._pulse.heard_ns + self._pulse.lease_ns
        self._log(f"lost: {reason}")
        self._greeted.set()
        self._gone.set()
        for question in self._questions.values():
            if not question.answer.done():
                question.answer.set_exception(HostLost(reason))
                question.answer.exception()  # retrieved here, so that nobody's absence is a warning
        self._questions.clear()
        self._inbox.put_nowait((self, Lost(reason)))
        self._close_pipe()

    def blame(self, error: Exception) -> None:
        """Give the host up for what came of something that it said; its log says where that was."""
        for text in "".join(traceback.format_exception(error)).splitlines():
            self._log(f"   {text}")
        self.lose(f"protocol error: {type(error).__name__}: {error}")

    async def close(self) -> None:
        """Close the pipe: the far process sees the end of its input, halts and exits."""
        await self._close_pipe()

    def _close_pipe(self) -> "asyncio.Task[None]":
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._pipe.close())
        return self._closing

    async def _send(self, command: Command) -> None:
        data = line(command)
        self._log(f"-> {shortened(data)}")
        await self._pipe.write(data)

    def _new_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _take(self, data: bytes, arrived_ns: int) -> None:
        """One line of the host's. Raises ProtocolError."""
        try:
            heard = message(data, self._results.room if self._results else 0)
            if isinstance(heard, Luns):
                self._listed += len(data)
                if self._listed > MOST_LISTED:
                    raise ProtocolError(f"it lists LUNs in more than {MOST_LISTED >> 20} MiB")
            self._hear(heard, arrived_ns)
        except ProtocolError:
            raise
        except Exception as error:
            self.blame(error)

    def _hear(self, heard: Message, arrived_ns: int) -> None:
        if isinstance(heard, Command):
            raise ProtocolError(f"the host sent a command, {word(type(heard))!r}")
        self.state = after(self.state, heard)
        self._pulse.heard(arrived_ns)
        match heard:
            case Hello():
                self.hello = heard
                self._greeted.set()
            case ClockReading():
                sent_ns = self._pulse.answered(heard.re, arrived_ns)
                if sent_ns is None:
                    raise ProtocolError(f"'clock_reading' answers {heard.re}, which was not asked")
                self._heard_ns = heard.sent_ns
                self._progress.said(heard.done, arrived_ns)
                self.clock.add(sent_ns, heard.received_ns, heard.sent_ns, arrived_ns)
            case Result():
                if self._results is not None:
                    self._results.check(heard, arrived_ns)
                self._heard_ns = heard.collected_ns
                self._inbox.put_nowait((self, Delivered(heard, arrived_ns)))
            case Stopped():
                self._inbox.put_nowait((self, heard))
            case Notice() | DyingWords(re=0):
                self._chatter.add(arrived_ns)
                self._inbox.put_nowait((self, heard))
            case _:
                self._answer(heard, arrived_ns)

    def _answer(self, saying: Any, arrived_ns: int) -> None:
        sent_ns = self._pulse.answered(saying.re, arrived_ns)
        if sent_ns is not None and isinstance(saying, Ok):  # of a `continue`: said the moment it was heard
            self._heard_ns = saying.effective_ns
            self.clock.add(sent_ns, saying.effective_ns, saying.effective_ns, arrived_ns)
        question = self._questions.get(saying.re)
        if question is None:
            raise ProtocolError(f"{word(type(saying))!r} answers {saying.re}, which was not asked")
        question.said.append(saying)
        if sum(len(said.luns) for said in question.said if isinstance(said, Luns)) > MOST_LUNS:
            raise ProtocolError(f"it lists more than {MOST_LUNS:,} LUNs")
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

    Returns the answers, and for each host that gave none the reason. Raises nothing that a host can cause: one whose
    answer `ask` cannot deal with is lost.
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
        except OutputError:
            raise
        except Exception as error:
            host.blame(error)
            failed[host] = host.lost or str(error)

    async with asyncio.TaskGroup() as group:
        for host in hosts:
            group.create_task(one(host))
    return answers, failed
