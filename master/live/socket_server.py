"""A run's control socket: whoever may connect is answered, or follows the run's reports.

Rule: a client costs only itself. What it sends is limited in length and read strictly; what it does not read is kept
to a limit, then it is cut off; the run never waits for one. What a request means is the handler's.
"""

import asyncio
import os
import pwd
import socket
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, Protocol

import psutil

from ...protocol.errors import ProtocolError
from ...protocol.lines import LineReader, decode, encode_line
from ..rollup.instances import ALL
from ..text.suggestions import did_you_mean, suggestion
from .broadcast import Broadcast
from .reports import Report
from .socket_messages import (
    LONGEST_REQUEST,
    REQUESTS,
    VIA,
    Answer,
    Done,
    FollowRequest,
    Rejection,
    Request,
    ViaRequest,
)
from .socket_paths import bound

Encode = Callable[[Answer | Report], bytes]

MOST_CLIENTS: Final = 64
MOST_WAITING: Final = 4 << 20  # bytes that a client may leave unread
MOST_OF_A_FAULT: Final = 500  # characters
FLUSH_S: Final = 1.0  # at the end of the run, for followers to read its last words
_CREDENTIALS: Final = struct.Struct("3i")  # pid, uid, gid


class RequestHandler(Protocol):
    """Whoever answers requests, but for `follow` and `via`."""

    async def answer(self, request: Request, who: str) -> Answer: ...


@asynccontextmanager
async def served(run: str, handler: RequestHandler, hub: Broadcast) -> AsyncIterator[Path]:
    """The socket of the run of that id, until the block is left. Raises OutputError."""
    listening, path = bound(run)
    server = _Server(handler, hub)
    accepting = await asyncio.start_unix_server(server.serve, sock=listening)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)
        accepting.close()
        await server.close()


class _Server:
    """Holds the connections of one run."""

    def __init__(self, handler: RequestHandler, hub: Broadcast) -> None:
        self._handler = handler
        self._hub = hub
        self._clients: dict[asyncio.Task[Any], asyncio.StreamWriter] = {}
        self._newest: tuple[Answer | Report, bytes] | None = None  # the report that was sent last, and its line

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients[task] = writer
        try:
            with suppress(OSError, asyncio.CancelledError):
                if len(self._clients) > MOST_CLIENTS:
                    _send(writer, Rejection((f"{MOST_CLIENTS} clients are connected to the run already",)))
                elif (who := peer(writer.get_extra_info("socket"))) is None:
                    _send(writer, Rejection(("the run belongs to another user",)))
                else:
                    await self._converse(reader, writer, who)
                await writer.drain()
        finally:
            del self._clients[task]
            writer.close()

    async def close(self) -> None:
        """Let followers read the last reports, then part."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_S):  # for all of them, who may also come and go meanwhile
                flushed = (_flushed(writer) for writer in self._clients.values())
                await asyncio.gather(*flushed, return_exceptions=True)
        clients = dict(self._clients)
        for task, writer in clients.items():
            writer.transport.abort()  # what is unread now will not be read
            task.cancel()
        await asyncio.gather(*clients, return_exceptions=True)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, who: str) -> None:
        lines = LineReader(LONGEST_REQUEST)
        author, leave = who, None
        try:
            while data := await reader.read(LONGEST_REQUEST):
                for found in lines.feed(data):
                    request = decode(found, REQUESTS)
                    if isinstance(request, ViaRequest):
                        if not VIA.fullmatch(request.via):  # it could name another author
                            raise ProtocolError("via: not a program's name and an address")
                        author = f"{who} via {request.via}"
                        _send(writer, Done("noted"))
                    elif not isinstance(request, FollowRequest):
                        _send(writer, await self._answer(request, author))
                    elif (fault := unknown_type(request.by, self._hub.rollup_types)) is not None:
                        _send(writer, fault)
                    elif leave is None:
                        _send(writer, Done("following"))
                        leave = self._hub.follow(lambda report: _send(writer, report, self._line), request.by)
                    await writer.drain()
        except ProtocolError as error:
            _send(writer, Rejection((f"invalid request: {error}",)))
        finally:
            if leave is not None:
                leave()

    def _line(self, report: Answer | Report) -> bytes:
        """A report's line: followers get the same ones, each after the other. Raises what encode_line does."""
        if self._newest is None or self._newest[0] is not report:
            self._newest = report, encode_line(report)
        return self._newest[1]

    async def _answer(self, request: Request, who: str) -> Answer:
        """The handler's answer; a bug of ours there costs only this request, and its client gets the error."""
        try:
            return await self._handler.answer(request, who)
        except Exception as error:
            return Rejection((f"internal: {type(error).__name__}: {error}"[:MOST_OF_A_FAULT],))


def unknown_type(by: str, known: Sequence[str]) -> Rejection | None:
    """The answer to who wants the instances of a rollup type that the plan does not have."""
    if not by or by in known:
        return None
    no_such = f"--by {by}: the plan has no such rollup type"
    if near := did_you_mean(by, known):
        return Rejection((f"{no_such}{near}",))
    all_of_them = ", ".join([*(name for name in known if name != ALL), by])
    adds = f"; `rollups: [ {all_of_them} ]` in the plan adds it to the next run"
    return Rejection((f"{no_such}{suggestion(by, known)}{adds}",))


async def _flushed(writer: asyncio.StreamWriter) -> None:
    """Wait until all that was sent is read."""
    writer.transport.set_write_buffer_limits(0)
    await writer.drain()


def _send(writer: asyncio.StreamWriter, message: Answer | Report, encode: Encode = encode_line) -> None:
    """Never raises: a client that cannot be written to is cut off."""
    if writer.transport.is_closing():
        return
    try:
        if writer.transport.get_write_buffer_size() <= MOST_WAITING:
            writer.write(encode(message))
            return
    except (ProtocolError, ValueError):  # longer than a line may be, or a text that is none
        pass
    writer.transport.abort()


def peer(connection: socket.socket) -> str | None:
    """Who is there, as the kernel knows: `anna@pts/3 (pid 1234)`; None for another user than ours or root."""
    pid, uid, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return process(pid, uid) if uid in (0, os.geteuid()) else None


def process(pid: int, uid: int) -> str:
    """A process and its user, for people."""
    terminal = None
    with suppress(psutil.Error):
        terminal = psutil.Process(pid).terminal()
    return f"{user_name(uid)}@{terminal.removeprefix('/dev/') if terminal else 'no terminal'} (pid {pid})"


def user_name(uid: int) -> str:
    """Of a user; the number where there is no name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
