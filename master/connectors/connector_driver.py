"""One connector's process: its pipe, its hello, and one request at a time.

Rule: nothing that a connector does leaves this module as anything but a ConnectorFault of that connector. Whatever it
sends beyond an answer to the pending request and a few notices is a fault that ends it: it cannot flood the controller.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ...protocol.connector import (
    CONNECTOR_MESSAGES,
    CONNECTOR_PROTOCOL,
    ConnectorCommand,
    ConnectorConfig,
    ConnectorHello,
    ConnectorMessage,
    ConnectorNotice,
    Declined,
    Gather,
    ReadConfig,
    Readings,
)
from ...protocol.errors import ProtocolError
from ...protocol.lines import LineReader, decode, encode_line, shortened
from ...protocol.text import printable
from ..hosts.message_checks import MOST_AT_ONCE, EventLimit
from ..hosts.pipe import Pipe, PipeLost
from .errors import ConnectorFault, FaultKind

READ_BYTES: Final = 1 << 16
MOST_LOGGED: Final = 1 << 12  # bytes of a line: 10,000 readings would be a gigabyte an hour


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer, with the controller's clock at its request and its arrival."""

    message: ConnectorConfig | Readings | Declined
    sent_ns: int
    arrived_ns: int


class ConnectorDriver:
    """Holds the pending request of one connector, and why it is gone, once it is."""

    def __init__(
        self, pipe: Pipe, now_ns: Callable[[], int], log: Callable[[str], None], notice: Callable[[str], None]
    ) -> None:
        """`notice` gets what it wants people to know. Nothing is read before `drive`."""
        self._pipe = pipe
        self._now_ns = now_ns
        self._log = log
        self._notice = notice
        self._limit = EventLimit()
        self._last_id = 0
        self._pending: tuple[ConnectorCommand, int, asyncio.Future[Answered]] | None = None  # with when it was sent
        self._hello: asyncio.Future[ConnectorHello] = asyncio.get_running_loop().create_future()
        self.gone: str | None = None
        self.gone_by = FaultKind.OTHER  # once it is gone

    @property
    def is_busy(self) -> bool:
        """Whether a request is unanswered."""
        return self._pending is not None

    @property
    def unanswered_s(self) -> float:
        """For how long a request has been unanswered; 0: none is."""
        return 0.0 if self._pending is None else (self._now_ns() - self._pending[1]) / 1e9

    async def drive(self) -> None:
        """Read until it is gone. Cancel to give it up."""
        reader = LineReader()
        try:
            while self.gone is None:
                data = await self._pipe.read(READ_BYTES)
                arrived_ns = self._now_ns()
                if not data:
                    reader.close()
                    self._lose("it ended", FaultKind.ENDED)
                for line in reader.feed(data):
                    self._log(f"<- {_logged(line)}")
                    self._take(decode(line, CONNECTOR_MESSAGES), arrived_ns)
        except PipeLost as error:
            self._lose(str(error), FaultKind.ENDED)
        except ProtocolError as error:
            self._lose(f"what it sent is no message of a connector: {error}", FaultKind.UNREADABLE)
        except ConnectorFault as error:
            self._lose(str(error), error.kind)

    async def hello(self) -> ConnectorHello:
        """Wait for its first message. Raises ConnectorFault."""
        hello = await asyncio.shield(self._hello)
        if hello.protocol != CONNECTOR_PROTOCOL:
            raise ConnectorFault(
                f"it speaks version {hello.protocol} of the connector protocol, and this ivypy version "
                f"{CONNECTOR_PROTOCOL}"
            )
        return hello

    async def config(self, luns: tuple[str, ...]) -> ConnectorConfig:
        """Read its configuration. Raises ConnectorFault."""
        answered = await self.request(ReadConfig(self._new_id(), luns))
        if isinstance(answered.message, ConnectorConfig):
            return answered.message
        assert isinstance(answered.message, Declined)
        raise ConnectorFault(f"it declined read_config: {printable(answered.message.reason)}")

    def gather(self) -> "asyncio.Future[Answered]":
        """Ask for its readings; the future has them, or a ConnectorFault. Only where it is not busy."""
        answer = asyncio.ensure_future(self.request(Gather(self._new_id())))
        answer.add_done_callback(_looked_at)
        return answer

    async def request(self, command: ConnectorCommand) -> Answered:
        """Raises ConnectorFault. A caller that gives up leaves the request pending."""
        if self.gone is not None:
            raise ConnectorFault(self.gone, kind=self.gone_by)
        assert self._pending is None, "one request at a time"
        answer: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        self._pending = (command, self._now_ns(), answer)
        line = encode_line(command)
        self._log(f"-> {shortened(line)}")
        try:
            await self._pipe.write(line)
        except PipeLost as error:
            self._lose(str(error), FaultKind.ENDED)
        return await asyncio.shield(answer)

    def give_up(self, why: str) -> None:
        """It takes no part any more."""
        self._lose(why)

    async def close(self) -> None:
        """End its input; it has a moment to exit."""
        self._lose("it was closed")
        await self._pipe.close()

    def _new_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _take(self, message: ConnectorMessage, arrived_ns: int) -> None:
        match message:
            case ConnectorHello():
                if self._hello.done():
                    raise ConnectorFault("it sent a second connector_hello", kind=FaultKind.UNASKED)
                self._hello.set_result(message)
            case ConnectorNotice():
                self._limit_notices(arrived_ns)
                self._notice(message.text)
            case _:
                self._answer(message, arrived_ns)

    def _answer(self, message: ConnectorConfig | Readings | Declined, arrived_ns: int) -> None:
        if not self._hello.done():
            raise ConnectorFault("it answered before it sent connector_hello", kind=FaultKind.UNREADABLE)
        if self._pending is None or self._pending[0].id != message.re:
            raise ConnectorFault(f"it answers request {message.re}, which is not pending", kind=FaultKind.UNASKED)
        command, sent_ns, answer = self._pending
        wanted = ConnectorConfig if isinstance(command, ReadConfig) else Readings
        if not isinstance(message, wanted | Declined):
            text = f"it answers a {type(command).__name__} with {type(message).__name__}"
            raise ConnectorFault(text, kind=FaultKind.UNREADABLE)
        self._pending = None
        if not answer.done():
            answer.set_result(Answered(message, sent_ns, arrived_ns))

    def _limit_notices(self, arrived_ns: int) -> None:
        try:
            self._limit.add(arrived_ns)
        except ProtocolError:
            text = f"it sent more than {MOST_AT_ONCE:,} notices at once"
            raise ConnectorFault(text, kind=FaultKind.UNASKED) from None

    def _lose(self, why: str, kind: FaultKind = FaultKind.OTHER) -> None:
        """The first reason stands."""
        if self.gone is not None:
            return
        self.gone, self.gone_by = printable(why), kind
        self._log(f"lost: {self.gone}")
        waiting: list[asyncio.Future[Answered] | asyncio.Future[ConnectorHello]] = [self._hello]
        if self._pending is not None:
            waiting.append(self._pending[2])
        for future in waiting:
            if not future.done():
                future.set_exception(ConnectorFault(self.gone, kind=kind))
                future.exception()  # retrieved here, so that nobody's absence is a warning
        self._pending = None


def _logged(line: bytes) -> str:
    """A line as the log shows it."""
    if len(line) <= MOST_LOGGED:
        return shortened(line)
    return f"{shortened(line[:MOST_LOGGED])}... ({len(line) / 1000:.1f} kB)"


def _looked_at(answer: "asyncio.Future[Answered]") -> None:
    """Whoever gave up waiting need not hear of its fault."""
    if not answer.cancelled():
        answer.exception()
