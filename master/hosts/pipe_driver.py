"""The driver of a host whose pipe is held by this process.

Rule: every line is checked before anything is made of it; whatever is wrong with it is a ProtocolError, and costs this
host alone. The driver does not know how the pipe was made.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from ...protocol.errors import ProtocolError
from ...protocol.lines import LineReader, decode_line, encode_line, shortened
from ...protocol.messages import (
    HOST_MESSAGES,
    MOST_ELEMENTS,
    MOST_READINGS,
    ClockProbe,
    ClockReading,
    Command,
    CreateFiles,
    CreateWorkloads,
    DeleteWorkloads,
    DyingWords,
    ElementsFound,
    Go,
    Hello,
    InspectLuns,
    ListLuns,
    Luns,
    Message,
    Ok,
    Prepare,
    ReinspectLuns,
    Result,
    Stopped,
    wire_name,
)
from ...protocol.payload import Notice
from ...protocol.states import State, check_answer, state_after
from .driver import Delivered, Driver, Inbox
from .heartbeat import STUCK_NS, CommandProgress
from .message_checks import MOST_LISTED, MOST_LUNS, EventLimit, ResultChecks
from .pipe import Pipe, PipeLost

MOST_CELLS: Final = 32 * MOST_ELEMENTS  # of the readings of a host: no element has as many metrics
SENDING_S: Final = 1.0  # for a probe into a pipe that is full
READ_BYTES: Final = 1 << 16
CUT_STATUS: Final = 255  # of an `ssh` that lost its connection: the far process may live on
PREPARING: Final = (Prepare, CreateWorkloads, DeleteWorkloads, ReinspectLuns)  # the plan has their limit
LONG: Final = (ListLuns, InspectLuns, CreateFiles, *PREPARING)  # that are waited for as long as the host gets on


class PipeDriver(Driver):
    """Holds what has been read of one host's pipe."""

    def __init__(
        self,
        name: str,
        pipe: Pipe,
        inbox: Inbox,
        now_ns: Callable[[], int],
        log: Callable[[str], None] = lambda text: None,
    ) -> None:
        super().__init__(name, inbox, now_ns, log)
        self._pipe = pipe
        self._progress = CommandProgress()
        self._event_limit = EventLimit()
        self._listed = 0  # bytes
        self._cells = 0  # of its readings in a result
        self._results: ResultChecks | None = None  # of the newest step that the host was commanded to begin

    async def drive(self) -> None:
        """Read what the host sends until it is lost. Cancel to give the host up."""
        reader = LineReader()
        try:
            while self.lost is None:
                data = await self._pipe.read(READ_BYTES)
                arrived_ns = self.now_ns()
                if self.lost is not None:
                    return  # given up while it was silent: nothing that it sends now counts
                if not data:
                    reader.close()
                    how = "it closed the connection" if self.state is not State.GONE else "it ended on command"
                    self.lose(how, ended=True)
                for found in reader.feed(data):
                    self.log(f"<- {shortened(found)}")
                    self._read_line(found, arrived_ns)
                    if self.lost is not None:
                        return
        except PipeLost as error:
            self.lose(str(error), ended=error.status not in (None, CUT_STATUS))
        except ProtocolError as error:
            self.lose(f"protocol error: {error}")

    async def probe(self) -> None:
        """Whatever the state: heartbeat, lease renewal and clock offset in one, when nothing else serves as such."""
        await self.wait_hello()
        while self.lost is None and self.state is not State.GONE:
            now_ns = self.now_ns()
            lost_ns = self.pulse.lost_ns()
            if lost_ns is not None and now_ns >= lost_ns:
                self.lose(f"it did not answer for {self.pulse.patience_ns / 1e9:g} s")
                return
            if self._is_stuck(now_ns):
                return
            if now_ns >= self.pulse.due_ns(now_ns):
                await self._send_probe()
                lost_ns = self.pulse.lost_ns()
            wakes_ns = self.pulse.due_ns(now_ns)
            wakes_ns = wakes_ns if lost_ns is None else min(wakes_ns, lost_ns)
            await asyncio.sleep(max(wakes_ns - self.now_ns(), 0) / 1e9)

    def _is_stuck(self, now_ns: int) -> bool:
        """Whether what may take long is not got on with; the host is lost then."""
        at_work = [wire_name(type(one.command)) for one in self.pending.values() if isinstance(one.command, LONG)]
        if not at_work:
            self._progress.finished()
        stuck_ns = self._progress.stuck_ns()
        if stuck_ns is None or now_ns < stuck_ns:
            return False
        self.lose(
            f"it answers probes, but made no progress with {at_work[0]!r} for {self._progress.limit_ns / 1e9:g} s"
        )
        return True

    async def _send_probe(self) -> None:
        command = ClockProbe(self.new_id(), self.newest_stamp_ns)
        self.pulse.beat(command.id, self.now_ns())
        try:
            async with asyncio.timeout(SENDING_S):
                await self._pipe.write(encode_line(command))
        except PipeLost as error:
            self.lose(str(error))
        except TimeoutError:
            pass  # the pipe is full; the probe counts as unanswered

    async def send(self, command: Command) -> None:
        """Raises PipeLost."""
        if isinstance(command, LONG):
            self._progress.limit_ns = self.pulse.idle_patience_ns if isinstance(command, PREPARING) else STUCK_NS
            self._progress.started(self.now_ns())
        if isinstance(command, Go):
            cores = len(self.hello.cores) if self.hello else 0
            self._results = ResultChecks(command, cores, self.now_ns())
        data = encode_line(command)
        self.log(f"-> {shortened(data)}")
        await self._pipe.write(data)

    def _room(self) -> int:
        """Bytes of arrays that the next message may have."""
        return self._results.room + 8 * self._cells * MOST_READINGS if self._results else 0

    async def disconnect(self) -> None:
        await self._pipe.close()

    def _read_line(self, data: bytes, arrived_ns: int) -> None:
        """One line of the host's. Raises ProtocolError."""
        try:
            message = decode_line(data, self._room())
            if isinstance(message, Luns):
                self._listed += len(data)
                if self._listed > MOST_LISTED:
                    raise ProtocolError(f"it lists LUNs in more than {MOST_LISTED >> 20} MiB")
            if isinstance(message, ElementsFound):
                cells = sum(len(message.instances.get(metric.element, ())) for metric in message.metrics)
                self._cells = min(cells, MOST_CELLS)
            self._receive(message, arrived_ns)
        except ProtocolError:
            raise
        except Exception as error:
            self.lose_for_bug(error)

    def _receive(self, message: Message, arrived_ns: int) -> None:
        if not isinstance(message, HOST_MESSAGES):
            raise ProtocolError(f"the host sent a command, {wire_name(type(message))!r}")
        self.state = state_after(self.state, message)
        self.pulse.between_steps = self.state is State.IDLE and not self.has_pending(Go)
        self.pulse.received(arrived_ns)
        match message:
            case Hello():
                self.greet(message)
            case ClockReading():
                sent_ns = self.pulse.answered(message.re, arrived_ns)
                if sent_ns is None:
                    raise ProtocolError(f"'clock_reading' answers {message.re}, which was not sent")
                self.newest_stamp_ns = message.sent_ns
                self._progress.reported(message.done, arrived_ns)
                self.clock.add(sent_ns, message.received_ns, message.sent_ns, arrived_ns)
            case Result():
                if self._results is not None:
                    self._results.check(message, arrived_ns)
                self.newest_stamp_ns = message.collected_ns
                self.report(Delivered(message, arrived_ns))
            case Stopped():
                self.report(message)
            case Notice() | DyingWords(re=0):
                self._event_limit.add(arrived_ns)
                self.report(message)
            case _:
                self._answer(message, arrived_ns)

    def _answer(self, message: Any, arrived_ns: int) -> None:
        sent_ns = self.pulse.answered(message.re, arrived_ns)
        if sent_ns is not None and isinstance(message, Ok):  # of a `continue`: sent the moment that was read
            self.newest_stamp_ns = message.effective_ns
            self.clock.add(sent_ns, message.effective_ns, message.effective_ns, arrived_ns)
        request = self.pending.get(message.re)
        if request is None:
            raise ProtocolError(f"{wire_name(type(message))!r} answers {message.re}, which was not sent")
        request.answers.append(message)
        if isinstance(message, Luns):
            if not message.luns:  # of such there could be any number
                raise ProtocolError("it lists no LUNs in a message of its own")
            request.luns += len(message.luns)
            if request.luns > MOST_LUNS:
                raise ProtocolError(f"it lists more than {MOST_LUNS:,} LUNs")
        if check_answer(type(request.command), message):
            self.settle(message.re, request.answers)
