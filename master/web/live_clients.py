"""Clients that follow a run: by websocket for the page, by server-sent events for scripts.

Rule: a client has at most one message under way; the next one is the newest state then. One that does not read costs a
buffer of fixed size, and is cut off when it does not answer a ping, or has not taken a message for a minute.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from aiohttp import WSMsgType, web

from .access import WEBSOCKET
from .answers import failure
from .newest import GoneError
from .open_run import OpenRun

MOST_CLIENTS: Final = 64
PING_S: Final = 20.0
TAKEN_S: Final = 60.0  # for a message
LONGEST: Final = 4096  # bytes that a client may send at once, who has nothing to say
RETRY_MS: Final = 2000  # after which a client of events connects again


class LiveClients:
    """Counts them, and ends them with the server."""

    def __init__(self) -> None:
        self.alone_since = time.monotonic()  # meaningful while there is none
        self._tasks: set[asyncio.Task[object]] = set()

    @property
    def count(self) -> int:
        return len(self._tasks)

    async def websocket(self, request: web.Request, run: OpenRun) -> web.StreamResponse:
        if self.count >= MOST_CLIENTS:
            return _full()
        socket = web.WebSocketResponse(protocols=(WEBSOCKET,), heartbeat=PING_S, max_msg_size=LONGEST, compress=False)
        await socket.prepare(request)
        with self._counted():
            sending = asyncio.create_task(_send(run, socket))
            try:
                async for message in socket:  # which also answers pings and sees the end
                    if message.type in (WSMsgType.ERROR, WSMsgType.BINARY):
                        break
            finally:
                sending.cancel()
                with suppress(asyncio.CancelledError, OSError, TimeoutError):
                    await sending
                await socket.close()
        return socket

    async def events(self, request: web.Request, run: OpenRun) -> web.StreamResponse:
        if self.count >= MOST_CLIENTS:
            return _full()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        await response.prepare(request)

        async def write(text: str) -> None:
            async with asyncio.timeout(TAKEN_S):
                await response.write(text.encode())

        with self._counted(), run as newest, suppress(OSError, TimeoutError, GoneError):
            await write(f"retry: {RETRY_MS}\n\n")
            number, text = 0, ""
            while not (number and newest.is_last):
                try:
                    async with asyncio.timeout(PING_S):
                        number, text = await newest.after(number)
                except TimeoutError:
                    await write(": ping\n\n")
                else:
                    await write(f"data: {text}\n\n")
        return response

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    @contextmanager
    def _counted(self) -> Iterator[None]:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            yield
        finally:
            self._tasks.discard(task)
            self.alone_since = time.monotonic()


async def _send(run: OpenRun, socket: web.WebSocketResponse) -> None:
    """The newest state, whenever the one before is taken. Raises OSError, TimeoutError where it is not.

    Closes where the run is gone: the page asks for it, and is told so.
    """
    number = 0
    with run as newest, suppress(GoneError):
        while True:
            number, text = await newest.after(number)
            async with asyncio.timeout(TAKEN_S):
                await socket.send_str(text)
    await socket.close()


def _full() -> web.Response:
    return failure(503, f"{MOST_CLIENTS} clients follow runs already.")
