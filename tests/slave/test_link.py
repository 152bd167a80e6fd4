"""The link over real pipes: every way to be fed, nothing blocks, nothing is lost, back-pressure is seen."""

import asyncio
import contextlib
import fcntl
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import pytest

from ivypy.protocol import messages as m
from ivypy.protocol.errors import ProtocolError
from ivypy.protocol.lines import LineReader, decode_line, encode_line
from ivypy.protocol.payload import Array, ArrayType, Notice, NoticeKind
from ivypy.protocol.states import State
from ivypy.slave.link import slave_link as link_module
from ivypy.slave.link.slave_link import ControllerLink, why_not_a_pipe

ARRAY = Array(ArrayType.U64, os.urandom(1 << 20))
NONE = Array(ArrayType.U32, b"")


def notice(text: str) -> Notice:
    return Notice(NoticeKind.CREATING_FILES, text)


RESULT = m.Result(0, 0, 1, False, 2, (), NONE, ARRAY, NONE, NONE, NONE, (), ())


@dataclass
class Ear:
    """Records every call."""

    commands: list[m.Command] = field(default_factory=list)
    spoken_to: asyncio.Event = field(default_factory=asyncio.Event)
    drained_once: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    error: ProtocolError | None = None

    def on_command(self, command: m.Command, received_ns: int) -> None:
        assert received_ns > 0
        self.commands.append(command)
        self.spoken_to.set()

    def on_drained(self) -> None:
        self.drained_once.set()

    def on_closed(self) -> None:
        self.ended.set()

    def on_protocol_error(self, error: ProtocolError) -> None:
        self.error = error
        self.ended.set()


@dataclass
class Wire:
    link: ControllerLink
    ear: Ear
    to_link: int
    from_link: int

    def tell(self, data: bytes) -> None:
        os.write(self.to_link, data)

    async def take(self, n: int) -> bytes:
        return await asyncio.get_running_loop().run_in_executor(None, os.read, self.from_link, n)

    async def hear(self, count: int) -> list[m.Message]:
        """The next so many messages."""
        reader, found = LineReader(), list[m.Message]()
        while len(found) < count:
            found += [decode_line(data) for data in reader.feed(await self.take(1 << 20))]
        return found


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    to_read, to_link = os.pipe()
    from_link, to_write = os.pipe()
    ticks = iter(range(1, 1000))
    ear = Ear()
    wire = Wire(ControllerLink(to_read, to_write, lambda: next(ticks), ear), ear, to_link, from_link)
    wire.link.open()
    yield wire
    wire.link.close()
    for fd in (to_read, to_link, from_link, to_write):
        with contextlib.suppress(OSError):
            os.close(fd)


COMMANDS: list[m.Command] = [m.ClockProbe(1), m.ListLuns(2, True, ("/a/*",)), m.Die(3)]


@pytest.mark.parametrize("step", [1, 7, 1 << 16])
async def test_commands_arrive_however_they_are_cut(wire: Wire, step: int) -> None:
    data = b"".join(encode_line(command) for command in COMMANDS)
    for i in range(0, len(data), step):
        wire.tell(data[i : i + step])
        await asyncio.sleep(0)
    os.close(wire.to_link)
    await wire.ear.ended.wait()
    assert wire.ear.commands == COMMANDS
    assert wire.ear.error is None


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"GET / HTTP/1.1\n", "a line is not JSON"),
        (b'{"type":"attack","id":1}\n', "unknown message 'attack'"),
        (encode_line(m.Ok(1, 2)), "'ok' is no command"),
        (encode_line(m.ClockProbe(1))[:-5], "the stream ended inside a line"),
        (b'{"type":"die"}\n', "die: missing ['id']"),
    ],
)
async def test_rubbish_is_named_and_ends_reading(wire: Wire, data: bytes, said: str) -> None:
    wire.tell(encode_line(COMMANDS[0]) + data)
    os.close(wire.to_link)
    await wire.ear.ended.wait()
    assert said in str(wire.ear.error)
    assert wire.ear.commands == COMMANDS[:1]


async def test_sent_messages_decide_the_state(wire: Wire) -> None:
    with pytest.raises(ProtocolError, match="'ready' was sent in state connecting"):
        wire.link.send(m.Ready(1))
    running(wire.link)
    wire.link.send(m.Stopped(m.StopReason.LEASE, 0, 0, 0, 0, 0, 0))
    assert wire.link.state is State.IDLE


def running(link: ControllerLink) -> None:
    hello = m.Hello(m.Role.SLAVE, 1, "0", "", "h", 1, "3", "6", "g", "x", (0,), "tsc", (), 0)
    for saying in (hello, m.Ready(1)):
        link.send(saying)
    assert link.state is State.RUNNING


async def test_unread_messages_wait_in_order_and_then_drain(wire: Wire) -> None:
    running(wire.link)
    for i in range(4):
        wire.link.send(RESULT)
        wire.link.send(notice(str(i)))
    assert wire.link.results_waiting == 4
    found = await wire.hear(10)
    assert [type(saying).__name__ for saying in found[2:]] == ["Result", "Notice"] * 4
    assert found[2] == RESULT
    await wire.ear.drained_once.wait()
    assert wire.link.results_waiting == 0


async def test_a_stamped_message_is_encoded_when_its_turn_comes(wire: Wire) -> None:
    running(wire.link)
    made: list[bool] = []

    def reading() -> m.HostMessage:
        made.append(True)
        return m.ClockReading(9, 1, 2)

    wire.link.send(RESULT)
    wire.link.send_stamped(reading)
    assert made == []
    assert (await wire.hear(4))[-1] == m.ClockReading(9, 1, 2)
    assert made == [True]


async def test_reading_pauses_while_the_controller_does_not_read(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "MOST_HELD", 200_000)
    running(wire.link)
    wire.link.send(RESULT)
    wire.tell(encode_line(COMMANDS[0]))
    await wire.ear.spoken_to.wait()
    wire.ear.spoken_to.clear()
    wire.tell(encode_line(COMMANDS[1]))
    for _ in range(10):  # turns of the loop, in any of which it could read
        await asyncio.sleep(0)
    assert not wire.ear.spoken_to.is_set()
    await wire.hear(3)
    await wire.ear.spoken_to.wait()
    assert wire.ear.commands == COMMANDS[:2]


async def test_a_far_end_that_is_gone_ends_it(wire: Wire) -> None:
    running(wire.link)
    os.close(wire.from_link)
    wire.link.send(notice("nobody reads"))
    await wire.ear.ended.wait()
    assert wire.ear.error is None


async def test_dying_words_are_written_without_the_loop_for_a_bounded_time(wire: Wire) -> None:
    running(wire.link)
    fcntl.fcntl(wire.from_link, fcntl.F_SETPIPE_SZ, 1 << 16)
    wire.link.send(RESULT)
    wire.link.send(notice("last"))
    wire.link.flush(0.01)  # nobody reads
    assert wire.link.results_waiting == 1
    taking = asyncio.get_running_loop().run_in_executor(None, taken, wire.from_link, b'"last"}\n')
    wire.link.flush(10.0)
    assert (await taking).endswith(encode_line(notice("last")))


def taken(fd: int, until: bytes) -> bytes:
    data = b""
    while not data.endswith(until):
        data += os.read(fd, 1 << 20)
    return data


@pytest.mark.parametrize(
    ("opened", "what"),
    [
        (lambda: os.open("/dev/null", os.O_RDONLY), "a device"),
        (lambda: os.open("/proc/self/status", os.O_RDONLY), "a file"),
        (lambda: os.openpty()[1], "a terminal"),
    ],
)
def test_what_is_no_pipe_is_refused_with_a_sentence(opened: Callable[[], int], what: str) -> None:
    fd = opened()
    try:
        reason = why_not_a_pipe(fd, "standard input")
        assert reason is not None
        assert reason.startswith(f"standard input is {what}, not a pipe")
    finally:
        os.close(fd)


def test_a_pipe_is_accepted() -> None:
    one, other = os.pipe()
    try:
        assert why_not_a_pipe(one, "standard input") is None
    finally:
        os.close(one)
        os.close(other)
