"""A running test's status, followed through its control socket.

Rule: the run is asked at the beginning and after events, at most once a second; else the status follows from the
reports that it sends to every follower.
"""

import asyncio
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from ...protocol.errors import ProtocolError
from ...protocol.lines import LineReader, decode, encode_line
from ..errors import IvypyError
from ..live.reports import EventLine, Report, RunEnds, RunStatus, StepBegins, Subinterval
from ..live.socket_client import socket_of
from ..live.socket_messages import ANSWERS, LONGEST_ANSWER, Answer, FollowRequest, StatusRequest
from ..summary.measured import StepEnds

CHUNK: Final = 1 << 16
GAP_S: Final = 1.0  # between two requests


class RunFollower:
    """Holds the newest status; None until the run has answered."""

    def __init__(self, folder: Path) -> None:
        self.status: RunStatus | None = None
        self._folder = folder
        self._asked = False  # and not answered

    async def follow(self) -> None:
        """Until the run ends, or cannot be followed any more; its errors are its end."""
        with suppress(OSError, IvypyError, ProtocolError):
            path = await asyncio.to_thread(socket_of, str(self._folder))
            reader, writer = await asyncio.open_unix_connection(str(path))
            try:
                await self._read(reader, writer)
            finally:
                writer.transport.abort()
        if self.status is not None:
            self.status = replace(self.status, running=False)

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(encode_line(StatusRequest()) + encode_line(FollowRequest()))
        lines = LineReader(LONGEST_ANSWER)
        while data := await reader.read(CHUNK):
            for line in lines.feed(data):
                self._see(decode(line, ANSWERS), writer)

    def _see(self, seen: Answer | Report, writer: asyncio.StreamWriter) -> None:
        if isinstance(seen, RunStatus):
            self._asked = False
            self.status = replace(seen, ended=())
        elif self.status is not None:
            self.status = after(self.status, seen)
            if isinstance(seen, EventLine) and not self._asked:  # it may be a pause, or a host that is lost
                self._asked = True
                asyncio.get_running_loop().call_later(GAP_S, _ask, writer)


def _ask(writer: asyncio.StreamWriter) -> None:
    if not writer.transport.is_closing():
        writer.write(encode_line(StatusRequest()))


def after(status: RunStatus, report: Answer | Report) -> RunStatus:
    """What the status is once a report has come. Steps that ended are left to the run document."""
    match report:
        case StepBegins():
            return replace(status, step=report, running=True, paused=False)
        case Subinterval():
            return replace(status, last=report, paused=report.paused)
        case StepEnds() | RunEnds():
            return replace(status, running=False, paused=False)
    return status
