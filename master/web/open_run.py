"""A run that clients look at: its answers, read once for all of them, and its newest state while it runs.

Rule: what reads files does so in a thread, one at a time for each run. An answer is made again only when the run has
gone on. The state goes out as it is then; nobody's reading of it is waited for.
"""

import asyncio
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from ...protocol.errors import ProtocolError
from ...protocol.lines import LineReader, decode, encode_line
from ..errors import IvypyError, PlanError
from ..live.json_lines import plain
from ..live.reports import EventLine, Report, RunEnds, RunStatus, StepBegins, Subinterval
from ..live.socket_client import socket_of
from ..live.socket_messages import ANSWERS, LONGEST_ANSWER, Answer, FollowRequest, StatusRequest
from ..pages.run_data import Progress, RunData
from ..results.checked_files import RUN_JSON
from ..results.run_entries import RunState, entry_of
from ..summary.measured import StepEnds
from .answers import WebAnswer, encoded
from .newest import Newest

POLL_S: Final = 0.25
SETTLED_S: Final = 0.2  # since a subinterval got its row: then all files have it
STATE_S: Final = 1.0  # between two looks at whether the run is there, while its socket is not followed
YOUNG_S: Final = 10.0  # since run.json was written: until then a run without a socket may be about to make one
OVER: Final = (RunState.ENDED, RunState.CUT_OFF)
MOST_KEPT: Final = 64 << 20  # bytes of a run's answers

Question = tuple[str | int, ...]  # what is asked for: the name of an answer, and its parameters
Compute = Callable[[RunData], Mapping[str, Any] | bytes]
T = TypeVar("T")
CHUNK: Final = 1 << 16
GAP_S: Final = 1.0  # between two requests


@dataclass(frozen=True, slots=True)
class _Kept:
    """An answer, and how far the run had come."""

    progress: Progress
    answer: WebAnswer


class OpenRun:
    """Holds one run's data, answers and state."""

    def __init__(self, run: str, folder: Path, opened: Callable[[Path], RunData], executor: Executor) -> None:
        """`run`: its id."""
        self.id = run
        self.newest = Newest()
        self.readers = 0  # clients that follow it
        self._folder = folder
        self._executor = executor
        self._lock = asyncio.Lock()  # for the next four
        self._data = opened(folder)
        self._progress: tuple[Progress | None, float] = (None, 0.0)  # and since when, on the monotonic clock
        self._kept: OrderedDict[Question, _Kept] = OrderedDict()
        self._size = 0  # of what is kept, in bytes
        self._state = RunState.RUNNING
        self._version = time.time_ns() // 1000  # with what is added it also grows when the server is started again
        self._watching: asyncio.Task[None] | None = None

    async def answer(self, question: Question, compute: Compute) -> WebAnswer:
        """Raises KeyError and PlanError of the data, and OSError."""
        return await self._locked(lambda: self._answer(question, compute))

    def __enter__(self) -> Newest:
        """Follow it: its newest state, until the block is left."""
        self.readers += 1
        if self._watching is None or self._watching.done():
            if self.newest.is_gone:
                self.newest = Newest()
            self._watching = asyncio.create_task(self._watch())
        return self.newest

    def __exit__(self, *_: object) -> None:
        self.readers -= 1
        if not self.readers and self._watching is not None:
            self._watching.cancel()
            self._watching = None

    async def _locked(self, read: Callable[[], T]) -> T:
        """Raises PlanError also for what the files of a run never hold, so that they are damaged."""
        async with self._lock:
            try:
                return await asyncio.get_running_loop().run_in_executor(self._executor, read)
            except ValueError as error:
                raise PlanError(f"{self._folder}: damaged: {error}") from error

    def _answer(self, question: Question, compute: Compute) -> WebAnswer:
        progress = self._progress_now()
        kept = self._kept.get(question)
        if kept is not None and kept.progress == progress:
            self._kept.move_to_end(question)
            return kept.answer
        self._drop(question)
        answer = encoded(compute(self._data))
        if time.monotonic() - self._progress[1] >= SETTLED_S:
            self._kept[question] = _Kept(progress, answer)
            self._size += answer.size
            while self._size > MOST_KEPT:
                self._drop(next(iter(self._kept)))
        return answer

    def _drop(self, question: Question) -> None:
        kept = self._kept.pop(question, None)
        self._size -= kept.answer.size if kept is not None else 0

    def _progress_now(self) -> Progress:
        progress = self._data.progress()
        if progress != self._progress[0]:
            self._progress = progress, time.monotonic()
        return progress

    async def _watch(self) -> None:
        """Put the state into `newest` whenever it changes, until the run has ended or its folder is gone."""
        follower = RunFollower(self._folder)
        following: asyncio.Task[None] | None = None
        looked = time.monotonic() - STATE_S
        before: Progress | None = None
        try:
            while True:
                if (following is None or following.done()) and time.monotonic() - looked >= STATE_S:
                    looked = time.monotonic()
                    await asyncio.get_running_loop().run_in_executor(self._executor, self._look)
                    if self._state is RunState.RUNNING:
                        following = asyncio.create_task(follower.follow())
                over = self._state in OVER
                progress = await self._locked(self._progress_now)
                self.newest.put(self._text(progress, progress if over else before or progress, follower.status), over)
                if over:
                    return
                before = progress
                await asyncio.sleep(POLL_S)
        except PlanError:
            self.newest.stop()
        finally:
            if following is not None:
                following.cancel()

    def _text(self, progress: Progress, before: Progress, status: RunStatus | None) -> str:
        """The message. `before`: a round ago: all files have what had its row then."""
        over = self._state in OVER
        message = {
            "doc": self._version + progress.document,
            "step": progress.step,
            "closed": before.closed if before.step == progress.step else 0,
            "status": None if over or status is None else plain(status),
            "ended": over,
        }
        return json.dumps(message, separators=(",", ":"), allow_nan=False)

    def _look(self) -> None:
        """At the state of a run whose socket is not followed. One that has just begun may have none yet."""
        try:
            state = entry_of(self._folder, datetime.now(UTC)).state
            age_s = time.time() - (self._folder / RUN_JSON).stat().st_mtime
        except (OSError, PlanError):
            return  # it is gone, as the data will find
        if state is not self._state and not (state is RunState.CUT_OFF and age_s < YOUNG_S):
            self._state = state
            self._version += 1


class RunFollower:
    """A running test's status, followed through its control socket; None until the run has answered.

    The run is asked at the beginning and after events, at most once a second; else the status follows from the reports
    that it sends to every follower.
    """

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
    """The status once a report has come. Steps that ended are left to the run document."""
    match report:
        case StepBegins():
            return replace(status, step=report, running=True, paused=False)
        case Subinterval():
            return replace(status, last=report, paused=report.paused)
        case StepEnds() | RunEnds():
            return replace(status, running=False, paused=False)
    return status
