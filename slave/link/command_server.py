"""The slave's command server: it reads commands and sends their answers.

Rule: it never stops reading. A `clock_probe` is answered, and a steering command executed, the moment it is read. All
other commands are executed one after the other in the order of their arrival; what may take long (creating files,
inspecting devices) runs in a worker thread. Whatever happens - the end of input, a signal, garbage, a bug - ends in
`end()`: halt, remove what was created, send the reason, exit. Nothing that the kernel holds is waited for without a
limit.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from enum import IntEnum
from functools import partial
from typing import Any, Final, TypeVar

from ...protocol.errors import ProtocolError
from ...protocol.messages import (
    MOST_IN_A_LIST,
    ClockProbe,
    ClockReading,
    Command,
    CreateFiles,
    Die,
    DyingWords,
    End,
    InspectLuns,
    ListLuns,
    Luns,
    MeasureClock,
    Ok,
    Prepare,
    Refused,
    wire_name,
)
from ...protocol.payload import Lun, Notice, NoticeKind, Refusal
from ...protocol.states import State, may_command
from ..engine._engine import Engine, now_ns
from ..gate.write_counters import WriteCounters
from ..host.clock_report import measure
from ..host.host_facts import keep_latency
from ..host_connector.boundary_reader import BoundaryReader
from ..host_connector.connector import HostConnector
from ..luns.created_files import Cancelled, CreatedFiles
from ..luns.discovery import inspect_created, inspect_luns, list_luns
from ..luns.existing_files import CannotCreate, all_planned_files
from ..worker_progress import WORK
from ..workloads.workloads import Workloads
from .engine_commands import EngineCommands
from .host_info import make_hello
from .prepare import EngineSetup, against_prepare
from .slave_link import ControllerLink

CLOSE_S: Final = 2.0  # how long the engine's threads, or a file being written, may take to end
STUCK_S: Final = 3.0  # how long each part of cleaning up may take: more than what it does within CLOSE_S
SILENT_LEASES: Final = 3  # without any command; after that nobody will ever end this process
SILENT_S: Final = 30.0  # at least; and before there is a lease
READ_ON_S: Final = (
    1.0  # after a freeze: commands that wait in the input are read before the controller counts as silent
)
LAST_WORDS_S: Final = 1.0  # how long the far end may take to read them
SHORTEST_CLOCK_NS: Final = 10**9
CLEAN_UP_S: Final = CLOSE_S + STUCK_S + STUCK_S + LAST_WORDS_S  # the last command, closing, notes, words
LONGEST_CLOCK_NS: Final = 3600 * 10**9

Value = TypeVar("Value")


class Exit(IntEnum):
    """Exit status of the process, for people; the controller does not wait for it."""

    COMMANDED = 0  # `die`, or the end of its input
    FAILED = 1  # a bug of ours, or a workload thread that died between steps
    NO_PIPE = 2  # its input or output is no pipe
    PROTOCOL_ERROR = 3  # the controller broke the protocol
    SIGNAL = 128  # + the signal's number


class CommandServer:
    """Keeps the queue of commands, the files that were created, and how the process is to end."""

    def __init__(self, inward: int, outward: int, new_engine: Callable[[str, list[int]], Engine] = Engine) -> None:
        """The descriptors are those of the link to the controller."""
        self._link = ControllerLink(inward, outward, now_ns, self)
        self._new_engine = new_engine
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[Command] = asyncio.Queue()
        self._worker = ThreadPoolExecutor(1, "work")
        self._working: asyncio.Future[Any] | None = None
        self._files = CreatedFiles()
        self._write_counters = WriteCounters()
        self._cores: tuple[int, ...] = ()
        self._engine_commands: EngineCommands | None = None  # once prepared
        self._exit: asyncio.Future[tuple[int, DyingWords]] = (
            self._loop.create_future()
        )  # exit status; before what cleaning up adds
        self._received_ns = now_ns()

    async def serve(self) -> int:
        """Send hello, execute commands until the end, clean up; returns the exit status."""
        self._loop.set_exception_handler(self._failed)
        first = make_hello()
        self._cores = first.cores
        self._link.open()  # reads from the next turn of the loop on, so after hello is sent
        self._link.send(first)
        executing = self._loop.create_task(self._execute_all())
        watching = self._loop.create_task(self._watch())
        code, words = await self._exit
        executing.cancel()
        watching.cancel()
        await self._clean_up(words)
        return code

    def end(self, code: int, words: str, answered: int = 0, clean: bool = False) -> None:
        """Halt, clean up, send `words` and exit with `code`; the first call counts."""
        if self._exit.done():
            return
        self._exit.set_result((code, DyingWords(answered, -1, words, clean)))
        self._files.cancel()
        if self._engine_commands is not None:
            self._engine_commands.engine.halt()

    # The link's listener.

    def on_command(self, command: Command, received_ns: int) -> None:
        self._received_ns = received_ns
        if isinstance(command, ClockProbe):
            if self._engine_commands is not None:
                self._engine_commands.renew_lease(command.newest_stamp_ns)
            self._link.send_stamped(lambda: ClockReading(command.id, received_ns, now_ns(), self._progress()))
        elif isinstance(command, Die) and self._is_allowed(command):
            died = self._engine_commands.died if self._engine_commands is not None else []
            self.end(Exit.COMMANDED, "; ".join(died) or "goodbye", command.id, clean=not died)
        elif self._engine_commands is None or not self._is_allowed(command) or not self._engine_commands.steer(command):
            self._queue.put_nowait(command)

    def _progress(self) -> int:
        """Grows while a command that may take long gets on."""
        return WORK.done + (self._engine_commands.progress if self._engine_commands is not None else 0)

    def on_drained(self) -> None:
        if self._engine_commands is not None and not self._exit.done():
            self._engine_commands.poll()

    def on_closed(self) -> None:
        self.end(Exit.COMMANDED, "")

    def on_protocol_error(self, error: ProtocolError) -> None:
        text = f"the controller broke the protocol: {error}"
        self.end(Exit.PROTOCOL_ERROR, text)
        with contextlib.suppress(OSError):  # whoever read it may be gone
            print(f"ivypy: {text}", file=sys.stderr)

    async def _watch(self) -> None:
        """End when no command arrives any more: a controller that is gone with its network closes no pipe."""
        while True:
            lease_s = self._engine_commands.lease_ns / 1e9 if self._engine_commands is not None else 0.0
            patience_s = max(SILENT_LEASES * lease_s, SILENT_S)
            left_s = patience_s - (now_ns() - self._received_ns) / 1e9
            if left_s > 0:
                await asyncio.sleep(left_s)
                continue
            received_ns = self._received_ns
            await asyncio.sleep(READ_ON_S)
            if self._received_ns == received_ns:
                self.end(Exit.COMMANDED, f"no command from the controller for {patience_s:g} s")
                return

    # Commands, in the order of their arrival.

    async def _execute_all(self) -> None:
        try:
            while True:
                command = await self._queue.get()
                if self._is_allowed(command):
                    await self._execute(command)
                else:
                    self._refuse(command, f"it came too late: this host is {self._link.state}")
        except Cancelled:
            pass  # the end has begun
        except Exception as error:
            self._crashed(error)

    async def _execute(self, command: Command) -> None:
        if isinstance(command, ListLuns):
            await self._send_luns(command, lambda: list_luns(command.blocks, command.globs, command.paths))
        elif isinstance(command, InspectLuns):
            await self._send_luns(command, lambda: self._inspect_luns(command))
        elif isinstance(command, CreateFiles):
            refusals = self._engine_commands.against_tags(command.tags) if self._engine_commands is not None else []
            await self._send_luns(command, lambda: ([], refusals) if refusals else self._create_files(command))
        elif isinstance(command, Prepare):
            await self._prepare(command)
        elif isinstance(command, MeasureClock):
            await self._measure_clock(command)
        elif self._engine_commands is None:
            self._refuse(command, "there is no engine yet: `prepare` comes first")
        else:
            await self._engine_commands.execute(command)

    async def _prepare(self, command: Prepare) -> None:
        if self._engine_commands is not None:
            self._refuse(command, "it was prepared before: restart its slave to change backend or threads")
            return
        if reason := against_prepare(command, self._cores):
            self._refuse(command, reason)
            return
        setup = EngineSetup.of(command.engine, self._cores)
        try:
            engine = await self._work(lambda: setup.opened(self._new_engine))
        except OSError as error:
            self._refuse(command, f"the engine does not start: {error.strerror}")
            return
        setup.leave_cores()
        workloads = Workloads(
            engine, setup.backend, setup.nodes, locked=self._files.locked, counters=self._write_counters,
            reserved_pages=setup.options.reserved_huge_pages, known=self._files.written,
        )  # fmt: skip
        self._engine_commands = EngineCommands(
            engine, workloads, self._link, self._cores, command.lease_ns, self._work,
            BoundaryReader(HostConnector(self._cores), now_ns), setup.auto, setup.options.polled,
        )  # fmt: skip
        self._loop.add_reader(engine.fileno(), self._engine_spoke, self._engine_commands)
        latency_us = command.engine.cpu_dma_latency
        if latency_us is not None and (text := keep_latency(latency_us)):
            self._link.send(Notice(NoticeKind.CPU_DMA_LATENCY, text))
        self._link.send(Ok(command.id, now_ns()))

    async def _send_luns(
        self, command: ListLuns | InspectLuns | CreateFiles, job: Callable[[], tuple[list[Lun], list[Refusal]]]
    ) -> None:
        """Answer with what a job in the worker thread finds; it may raise CannotCreate."""
        luns: list[Lun] = []
        try:
            luns, refusals = await self._work(job)
        except CannotCreate as error:
            refusals = list(error.refusals)
        if refusals:
            self._link.send(Refused(command.id, tuple(refusals)))
            return
        for i in range(0, len(luns), MOST_IN_A_LIST):
            self._link.send(Luns(command.id, tuple(luns[i : i + MOST_IN_A_LIST])))
        self._link.send(End(command.id))

    async def _measure_clock(self, command: MeasureClock) -> None:
        if not SHORTEST_CLOCK_NS <= command.duration_ns <= LONGEST_CLOCK_NS:
            self._refuse(command, f"a clock is measured for a second to an hour, not {command.duration_ns / 1e9:g} s")
            return
        try:
            report = await self._work(lambda: measure(command.id, command.duration_ns))
        except OSError as error:
            self._refuse(command, f"the order of its cores cannot be tested: {error.strerror}")
            return
        self._link.send(report)

    def _inspect_luns(self, command: InspectLuns) -> tuple[list[Lun], list[Refusal]]:
        """In the worker thread."""
        self._write_counters.note()
        return inspect_luns(command.paths, all_planned_files(command.create))

    def _create_files(self, command: CreateFiles) -> tuple[list[Lun], list[Refusal]]:
        """In the worker thread: the files, through our holds on them. Raises CannotCreate, or Cancelled."""
        files = all_planned_files(command.files)
        self._files.create(files, self._notify_from_worker, dict(command.used), command.made)
        return inspect_created([(file.path, self._files.held(file.path)) for file in files], self._files.made())

    def _engine_spoke(self, driving: EngineCommands) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(driving.engine.fileno(), 8)
        if self._exit.done():
            return
        between_steps, known = self._link.state is State.IDLE, len(driving.died)
        driving.poll()
        if between_steps and len(driving.died) > known:
            self.end(Exit.FAILED, "; ".join(driving.died))

    def _notify_from_worker(self, notice: Notice) -> None:
        """From the worker thread."""
        self._loop.call_soon_threadsafe(self._notify, notice)

    def _notify(self, notice: Notice) -> None:
        if not self._exit.done():
            self._link.send(notice)

    def _refuse(self, command: Command, reason: str) -> None:
        self._link.send(Refused(command.id, (Refusal(wire_name(type(command)), reason),)))

    def _is_allowed(self, command: Command) -> bool:
        return not self._exit.done() and may_command(self._link.state, command)

    async def _work(self, job: Callable[[], Value]) -> Value:
        """Run a job that may block in the worker thread; it goes on there even if nobody waits any more."""
        self._working = working = self._loop.run_in_executor(self._worker, job)
        return await asyncio.shield(working)

    # The end.

    def _crashed(self, error: BaseException) -> None:
        last = traceback.extract_tb(error.__traceback__)[-1:]
        where = f" ({os.path.basename(last[0].filename)}:{last[0].lineno})" if last else ""
        self.end(Exit.FAILED, f"the slave failed: {type(error).__name__}: {error}{where}")
        with contextlib.suppress(OSError):
            traceback.print_exception(type(error), error, error.__traceback__)

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Handle an error that escaped from a callback."""
        error = context.get("exception")
        self._crashed(error if isinstance(error, BaseException) else RuntimeError(str(context.get("message"))))

    def _in_own_thread(self, job: Callable[[], Value]) -> asyncio.Future[Value]:
        """Run a job that may hang in a thread of its own."""
        return self._loop.run_in_executor(ThreadPoolExecutor(1, "end"), job)

    def _close_engine(self) -> asyncio.Future[list[int]]:
        """Close the engine; returns the workload threads that the kernel still holds."""
        if self._engine_commands is None:
            return self._in_own_thread(list)
        driving = self._engine_commands
        self._loop.remove_reader(driving.engine.fileno())
        driving.close()
        return self._in_own_thread(lambda: driving.engine.close(CLOSE_S))

    async def _settle(self, driving: EngineCommands) -> str:
        """Mark the files that ivypy wrote; what went wrong."""
        written = dict(driving.written)
        jobs = (driving.settle, partial(self._files.settle, written))
        noting = [self._in_own_thread(job) for job in jobs]  # whatever happens to the other
        done, _ = await asyncio.wait(noting, timeout=STUCK_S)
        failed = [job.exception() for job in noting if job in done and job.exception() is not None]
        left = "".join(f"; the notes on files that it wrote failed: {type(e).__name__}: {e}" for e in failed)
        if len(done) < len(noting):
            left += "; files that it wrote are still being noted as its own"
        unnoted = [path for job in noting if job in done and job.exception() is None for path in job.result()]
        if unnoted:
            more = f" and {len(unnoted) - 1:,} more" if len(unnoted) > 1 else ""
            left += f"; it could not be noted that only ivypy wrote {unnoted[0]}{more}: the next run asks again"
        return left

    async def _clean_up(self, words: DyingWords) -> None:
        self._link.close_input()
        if self._working is not None:
            await asyncio.wait([self._working], timeout=CLOSE_S)
        removed, closed = self._in_own_thread(self._files.remove), self._close_engine()
        cleaning: list[asyncio.Future[Any]] = [removed, closed]
        await asyncio.wait(cleaning, timeout=STUCK_S)
        left = ""
        if self._engine_commands is not None and closed.done() and not closed.result():  # nothing writes any more
            left = await self._settle(self._engine_commands)
        if self._working is not None and not self._working.done():
            left += "; its last command is still running"
        elif not closed.done():
            left += "; its LUNs are still being closed"
        elif held := closed.result():
            left += f"; the kernel holds workload thread {', '.join(map(str, held))}"
        if not removed.done():
            left += "; files that it created may be left"
        if (text := words.words + left) and self._link.state in (State.IDLE, State.RUNNING, State.ENDING):
            self._link.send(replace(words, words=text, clean=words.clean and not left))
            self._link.flush(LAST_WORDS_S)
        self._link.close()
