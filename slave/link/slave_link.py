"""The link to the controller: bytes in, commands out; messages in, bytes out.

Rule: never blocked by either direction, and always reading: what the controller does not read waits here, in order. The
producer of large messages (results) checks `results_waiting` and holds back; against a controller that sends commands
but does not read, reading pauses once MOST_HELD bytes wait. The slave's own state is kept here, since it is a function
of what was sent.
"""

from __future__ import annotations

import asyncio
import os
import select
import stat
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from ...protocol.errors import ProtocolError
from ...protocol.lines import LineReader, decode_line, encode_line
from ...protocol.messages import COMMANDS, Command, HostMessage, Result, wire_name
from ...protocol.states import State, state_after

READ_BYTES: Final = 1 << 18
MOST_HELD: Final = 64 << 20  # bytes


class Listener(Protocol):
    """Who executes the commands."""

    def on_command(self, command: Command, received_ns: int) -> None: ...
    def on_drained(self) -> None: ...
    def on_closed(self) -> None: ...
    def on_protocol_error(self, error: ProtocolError) -> None: ...


@dataclass
class _Line:
    rest: memoryview  # what is not written of it
    result: bool = False
    make: Callable[[], bytes] | None = None  # makes `rest` when its turn comes


def why_not_a_pipe(fd: int, name: str) -> str | None:
    """Why a file descriptor cannot be one side of the link; None if it can: asyncio waits for pipes and sockets."""
    mode = os.fstat(fd).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        return None
    what = "a terminal" if os.isatty(fd) else "a device" if stat.S_ISCHR(mode) else "a file"
    return f"{name} is {what}, not a pipe: a slave is started by a controller, with `ivypy run` or `ivypy devices`"


class ControllerLink:
    """Keeps what is half read, what is not yet written, and the state."""

    def __init__(self, inward: int, outward: int, now_ns: Callable[[], int], listener: Listener) -> None:
        """In the loop that runs. Nothing is read before `open`."""
        self.state = State.CONNECTING
        self.results_waiting = 0  # results that are not wholly written
        self._in, self._out = inward, outward
        self._now_ns = now_ns
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._reader = LineReader()
        self._lines: deque[_Line] = deque()
        self._held = 0  # bytes in _lines
        self._writing = self._reading = False
        self._input_closed = self._over = False  # nothing is read any more; nothing is written any more
        os.set_blocking(inward, False)
        os.set_blocking(outward, False)

    def open(self) -> None:
        """Begin to read."""
        self._read_on()

    def send(self, message: HostMessage, line: bytes | None = None) -> None:
        """Write a message as soon as the far end reads it; `line`: as `encode_line` made it elsewhere.

        Raises ProtocolError where our own state does not allow it: a bug, found before it is on the wire.
        """
        self.state = state_after(self.state, message)
        self._enqueue(_Line(memoryview(line or encode_line(message)), isinstance(message, Result)))

    def send_stamped(self, make: Callable[[], HostMessage]) -> None:
        """Make and write a message when its turn comes, so that it can hold the time at which it left.

        It must be one that leaves the state as it is.
        """
        self._enqueue(_Line(memoryview(b""), make=lambda: encode_line(make())))

    def flush(self, timeout_s: float) -> None:
        """Write what waits, blocking, for so long at most. For the dying words."""
        deadline = time.monotonic() + timeout_s
        poll = select.poll()
        poll.register(self._out, select.POLLOUT)
        while self._lines and not self._over and (left := deadline - time.monotonic()) > 0:
            poll.poll(left * 1000)
            self._write()

    def close_input(self) -> None:
        """Read no more."""
        if self._reading:
            self._loop.remove_reader(self._in)
        self._reading, self._input_closed = False, True

    def close(self) -> None:
        """Read and write no more."""
        self.close_input()
        if self._writing:
            self._loop.remove_writer(self._out)
        self._writing, self._over = False, True

    def _enqueue(self, entry: _Line) -> None:
        self._lines.append(entry)
        self._held += len(entry.rest)
        self.results_waiting += entry.result
        if not self._writing:
            self._write()

    def _write(self) -> None:
        """Write as much as the far end takes now, and wait for its readiness while something is left."""
        try:
            while self._lines and not self._over:
                first = self._lines[0]
                if first.make is not None:
                    first.rest, first.make = memoryview(first.make()), None
                    self._held += len(first.rest)
                written = os.write(self._out, first.rest)
                first.rest = first.rest[written:]
                self._held -= written
                if not first.rest:
                    self._lines.popleft()
                    self.results_waiting -= first.result
        except BlockingIOError:
            pass
        except (BrokenPipeError, ConnectionResetError):
            self._lines.clear()
            self._closed()
            return
        self._wait_for_room(bool(self._lines))
        if not self._over and self._held < MOST_HELD // 2:
            self._read_on()

    def _write_on(self) -> None:
        """The far end has read something. Only here is `on_drained` called: never in the middle of a `send`."""
        before = self.results_waiting
        self._write()
        if self.results_waiting < before:
            self._listener.on_drained()

    def _wait_for_room(self, wait: bool) -> None:
        if wait and not self._writing and not self._over:
            self._loop.add_writer(self._out, self._write_on)
        elif not wait and self._writing:
            self._loop.remove_writer(self._out)
        self._writing = wait and not self._over

    def _read_on(self) -> None:
        if not self._reading and not self._input_closed:
            self._loop.add_reader(self._in, self._read)
            self._reading = True

    def _read(self) -> None:
        try:
            data = os.read(self._in, READ_BYTES)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data = b""
        received_ns = self._now_ns()
        try:
            if not data:
                self._reader.close()
                self._closed()
                return
            for found in self._reader.feed(data):
                self._listener.on_command(decode_command(found), received_ns)
                if self._input_closed:
                    return
        except ProtocolError as error:
            self.close_input()
            self._listener.on_protocol_error(error)
            return
        if self._held > MOST_HELD and self._reading:
            self._loop.remove_reader(self._in)
            self._reading = False

    def _closed(self) -> None:
        if not self._over:
            self.close()
            self._loop.call_soon(self._listener.on_closed)  # not in the middle of a `send`


def decode_command(data: bytes) -> Command:
    """The command of a line. Raises ProtocolError where it is another message."""
    command = decode_line(data)
    if not isinstance(command, COMMANDS):
        raise ProtocolError(f"{wire_name(type(command))!r} is no command")
    return command
