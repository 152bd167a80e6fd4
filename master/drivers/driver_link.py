"""One end of the link between the controller and a driver process: messages over a socket, batched.

Rule: what is sent in one turn of the loop goes out as one pickle after its length, so a thousand small messages cost
one system call. Order is kept. Both ends are processes of one installation: nothing from elsewhere is ever unpickled.
"""

import asyncio
import pickle
import socket
from collections.abc import Callable
from typing import Any, Final

LENGTH_BYTES: Final = 8


class ProcessLink(asyncio.Protocol):
    """`receive` gets each message; `gone` is called once, when the other end has closed."""

    def __init__(self, receive: Callable[[Any], None], gone: Callable[[], None]) -> None:
        self._receive = receive
        self._gone = gone
        self._transport: asyncio.Transport | None = None
        self._batch: list[Any] = []
        self._received = bytearray()

    def send(self, message: Any) -> None:
        """Send at the end of this turn of the loop; dropped when the other end has closed."""
        if not self._batch:
            asyncio.get_running_loop().call_soon(self._flush)
        self._batch.append(message)

    def close(self) -> None:
        """Close, after everything that was sent has gone out."""
        self._flush()
        if self._transport is not None:
            self._transport.close()

    def _flush(self) -> None:
        batch, self._batch = self._batch, []
        if batch and self._transport is not None and not self._transport.is_closing():
            data = pickle.dumps(batch, pickle.HIGHEST_PROTOCOL)
            self._transport.write(len(data).to_bytes(LENGTH_BYTES) + data)

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= LENGTH_BYTES:
            end = LENGTH_BYTES + int.from_bytes(self._received[:LENGTH_BYTES])
            if len(self._received) < end:
                return
            batch = pickle.loads(memoryview(self._received)[LENGTH_BYTES:end])
            del self._received[:end]
            for message in batch:
                self._receive(message)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._gone()


async def open_link(end: socket.socket, receive: Callable[[Any], None], gone: Callable[[], None]) -> ProcessLink:
    """The link over one end of a socket pair."""
    _, link = await asyncio.get_running_loop().create_connection(lambda: ProcessLink(receive, gone), sock=end)
    return link
