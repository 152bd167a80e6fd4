"""Commands that need the engine: instances, edits, steps, the lease.

Rule: steering (continue, cooldown, stop, halt) and the lease act the moment they are read; other commands are executed
one after the other, by whoever awaits `execute`. All that the engine reports comes through `poll`, and nowhere else.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from ...protocol.lines import encode_line
from ...protocol.messages import (
    Command,
    Continue,
    Cooldown,
    CreateWorkloads,
    DeleteWorkloads,
    DyingWords,
    EditWorkloads,
    ElementsFound,
    Ending,
    FindElements,
    Go,
    Halt,
    Ok,
    Ready,
    Refused,
    ReinspectLuns,
    Stop,
    wire_name,
)
from ...protocol.payload import Notice, NoticeKind, Refusal, WorkloadToCreate
from ...protocol.states import State
from ..devices.storage_exports import LunKey
from ..engine._engine import Engine, now_ns
from ..host.huge_pages import describe_buffers
from ..host_connector.boundary_reader import BoundaryReader
from ..workloads.backend_choice import AUTO, against_backend, any_only_io_uring, choose, kernel_threads_on
from ..workloads.workloads import Workloads
from .slave_link import ControllerLink
from .step_loop import StepLoop

Work = Callable[[Callable[[], Any]], Awaitable[Any]]  # runs a job that may block in the worker thread


class ThreadDied(Exception):
    """A workload thread could not go on, so not all threads will ever apply an edit."""


class EngineCommands:
    """Keeps the engine, its instances, the running step, and until when its lease runs."""

    def __init__(
        self,
        engine: Engine,
        workloads: Workloads,
        link: ControllerLink,
        cores: tuple[int, ...],
        lease_ns: int,
        work: Work,
        readings: BoundaryReader,
        auto: bool = False,
        polled: bool = False,
    ) -> None:
        self.engine = engine
        self._polled = polled
        self.died: list[str] = []  # sentences about threads that could not go on
        self._workloads = workloads
        self._link = link
        self._cores = cores
        self._work = work
        self._readings = readings
        self._finding: asyncio.Future[None] | None = None  # kept: the loop alone does not hold it
        self._step: StepLoop | None = None
        self._collector = ThreadPoolExecutor(1, "collect")
        self._ending: asyncio.Future[None] | None = None  # while what the last step wrote is noted
        self._started = False  # the engine has begun a step, and has not ended it
        self._edited: asyncio.Future[tuple[int, int, int]] | None = None
        self._gathered: tuple[WorkloadToCreate, ...] = ()  # of messages whose last one is still to come
        self._undecided = auto  # which backend: that is decided with the first workloads
        self._auto = ""  # what was decided
        self._large_notified = 0  # bytes of large I/O buffers
        self.lease_ns = lease_ns
        self._lease_until_ns = 0
        self.renew_lease(now_ns())

    def against_tags(self, tags: int) -> list[Refusal]:
        """Whether the system has room for so many I/Os in flight, with the backend as far as it is decided."""
        return self._workloads.against_tags(tags)

    @property
    def progress(self) -> int:
        """Grows while workload threads prepare."""
        return self.engine.progress()

    @property
    def written(self) -> Mapping[LunKey, str]:
        """Files that steps wrote, with their last change then; "" of those that are open."""
        return self._workloads.written

    def settle(self) -> list[str]:
        """Note that ivypy wrote the files that are open for writing. The engine must have closed them.

        Returns those that it wrote, and that could not be noted.
        """
        self._workloads.settle()
        return sorted(self._workloads.unnoted)

    async def execute(self, command: Command) -> None:
        """Execute a command, and answer it."""
        if self.died:
            self._refuse(command, "; ".join(self.died) + ": restart this host's slave")
            return
        if self.steer(command):  # it came while `go` was being executed
            return
        if isinstance(command, CreateWorkloads):
            await self._create(command)
        elif isinstance(command, DeleteWorkloads):
            self._done(command, await self._work(lambda: self._workloads.delete(command.numbers)))
        elif isinstance(command, EditWorkloads):
            await self._edit(command)
        elif isinstance(command, ReinspectLuns):
            await self._reinspect(command)
        elif isinstance(command, FindElements):
            self._finding = asyncio.ensure_future(self._find(command))
        elif isinstance(command, Go):
            await self._go(command)
        else:
            self._refuse(command, "a slave does not know this command")

    def steer(self, command: Command) -> bool:
        """Execute and answer what steers the running step at once; False if it does not steer, or no step runs."""
        step = self._step
        if step is None:
            return False
        if isinstance(command, Continue):
            self.renew_lease(command.newest_stamp_ns)
            step.place_boundary(command)
            self._done(command)
        elif isinstance(command, Cooldown):
            self.engine.cooldown(command.subinterval)
            self._done(command)
        elif isinstance(command, Stop):
            self.engine.stop(command.last)
            self._link.send(Ending(command.id))
        elif isinstance(command, Halt):
            step.halt()
            self._link.send(Ending(command.id))
        else:
            return False
        return True

    def poll(self) -> None:
        """Send everything that the engine reports."""
        for thread, words in self.engine.dying_words():
            self._thread_died(thread, words)
        if self._edited is not None and not self._edited.done() and (taken := self.engine.edited()) is not None:
            self._edited.set_result(taken)
        if self._step is not None:
            self._step.poll()

    def renew_lease(self, newest_stamp_ns: int) -> None:
        """The controller was alive after `newest_stamp_ns`: the lease runs from then, however late this was read.

        But a lease that ran out while a step ran is not renewed: that step is over.
        """
        now = now_ns()
        until_ns = min(newest_stamp_ns, now) + self.lease_ns
        if until_ns > self._lease_until_ns and not (self._started and now >= self._lease_until_ns):
            self._lease_until_ns = until_ns
            self.engine.set_lease(until_ns)

    def close(self) -> None:
        """Stop expecting results of the engine."""
        if self._step is not None:
            self._step.close()

    async def _find(self, command: FindElements) -> None:
        """Beside other commands, for whom it might hang. Whatever is wrong with it costs the readings alone."""
        loop, apart = asyncio.get_running_loop(), ThreadPoolExecutor(1, "find")
        answer: ElementsFound | Refused
        line: bytes | None = None
        try:
            answer = await loop.run_in_executor(apart, lambda: self._readings.find(command.id, command.luns))
            line = encode_line(answer)  # here, where it may be too long
        except Exception as error:
            answer = Refused(command.id, (Refusal(wire_name(FindElements), f"{type(error).__name__}: {error}"),))
        finally:
            apart.shutdown(wait=False)
        if self._link.state is State.GONE:  # it was told to die meanwhile
            return
        self._link.send(answer, line)
        if isinstance(answer, ElementsFound):
            self._readings.use(answer)

    async def _create(self, command: CreateWorkloads) -> None:
        workloads = (*self._gathered, *command.workloads)
        self._gathered = workloads if command.more else ()
        if command.more:
            self._done(command)
            return
        backend = AUTO if self._undecided else self._workloads.backend
        refusals = against_backend(workloads, backend, self._polled)
        if not refusals and any_only_io_uring(workloads):  # libaio could not create them
            await self._decide(workloads)
        if not refusals:
            refusals = await self._work(lambda: self._workloads.create(workloads))
        if not refusals and workloads:
            await self._decide(workloads)
        if not refusals and workloads:
            refusals = await self._work(lambda: self._workloads.prepare(workloads))
        if not refusals and workloads:
            if text := self._workloads.describe_spread(workloads):
                self._link.send(Notice(NoticeKind.SPREAD_CHOSEN, text))
            if text := self._workloads.describe_blocking(workloads):
                self._link.send(Notice(NoticeKind.BLOCKING_SUBMITS, text))
            self._notify_buffer_pages()
        if not refusals and self._workloads.abilities.hands_over:
            luns = [workload.lun for workload in workloads if workload.parameters.direct]
            if text := await self._work(lambda: kernel_threads_on(luns)):
                self._link.send(Notice(NoticeKind.KERNEL_THREADS, text))
        self._done(command, refusals)

    async def _decide(self, workloads: Sequence[WorkloadToCreate]) -> None:
        """Decide once what backend `auto` is."""
        if not self._undecided:
            return
        self._undecided = False
        choice = await self._work(lambda: choose(workloads))
        self._workloads.use(choice.backend)
        self._auto = choice.backend
        if choice.reason:
            text = f"backend auto is {choice.backend}: {choice.reason}"
            self._link.send(Notice(NoticeKind.BACKEND_CHOSEN, text))

    def _notify_buffer_pages(self) -> None:
        """Notify once there are large buffers, and again when there are more."""
        large = self._workloads.large_buffers
        if large > self._large_notified:
            self._large_notified = large
            self._link.send(Notice(NoticeKind.BUFFER_PAGES, describe_buffers(large)))

    async def _reinspect(self, command: ReinspectLuns) -> None:
        if reason := self._workloads.check_order(command.order):
            self._refuse(command, reason)
            return
        order = array("I", command.order.data)
        refusals, notices = await self._work(lambda: self._workloads.reinspect(order))
        for notice in notices:
            self._link.send(notice)
        self._done(command, refusals)

    async def _edit(self, command: EditWorkloads) -> None:
        refusals = self._workloads.check_edit(command)
        if not refusals and self._step is not None:
            refusals = await self._work(lambda: self._workloads.start_edited(command))
        if refusals or not command.settings:
            self._done(command, refusals)
            return
        self._edited = asyncio.get_running_loop().create_future()
        try:
            self.engine.edit(command.edit, self._workloads.settings_of(command))
            _, effective_ns, discarded = await self._edited
        except ThreadDied as error:
            self._refuse(command, f"not every thread applied it: {error}")
            return
        except OSError as error:
            self._refuse(command, f"the engine rejects it: {error.strerror}")
            return
        finally:
            self._edited = None
        self._workloads.note_edited(command)
        self._link.send(Ok(command.id, effective_ns, discarded))

    async def _go(self, command: Go) -> None:
        if reason := self._workloads.check_go(command) or self._against_start(command):
            self._refuse(command, reason)
            return
        if refusals := await self._work(lambda: self._workloads.start(array("I", command.order.data))):
            self._done(command, refusals)
            return
        order, cached = self._workloads.order_of(command), self._workloads.cached_io(command)
        roster = order.numbers(), order.classes(array("I", command.classes.data)), order.rows()
        self._started = True
        try:
            await self._work(
                lambda: self.engine.go(command.start_ns, command.length_ns, *roster, sections=command.sections)
            )
        except OSError as error:
            self._step_over()
            self._refuse(command, f"the engine cannot start: {error.strerror}")
            return
        self._link.send(Ready(command.id))
        foreign = self._workloads.foreign_io(command)
        threads = partial(self._workloads.driving_threads, array("I", command.order.data))
        self._step = StepLoop(
            self.engine, self._link, self._cores, command, order, threads, foreign, cached, self._readings,
            self._collector, self._step_over,
        )  # fmt: skip
        self.poll()

    def _step_over(self) -> None:
        self._step, self._started = None, False
        # Before any later command's work: the worker thread takes one after the other.
        self._ending = asyncio.ensure_future(self._work(self._workloads.note_ended))

    def _against_start(self, command: Go) -> str | None:
        now = now_ns()
        if command.length_ns <= 0:
            return f"a subinterval of {command.length_ns} ns has no length: choose a longer one"
        if now >= self._lease_until_ns:
            return "its lease has run out, since no clock_probe arrived in time: probe it first"
        if command.start_ns <= now:
            return f"its start is {(now - command.start_ns) / 1e6:.1f} ms in the past: name a later one"
        return None

    def _thread_died(self, thread: int, words: str) -> None:
        text = f"workload thread {thread} could not go on: {words}"
        self.died.append(text)
        if self._edited is not None and not self._edited.done():
            self._edited.set_exception(ThreadDied(text))
        if self._link.state in (
            State.RUNNING,
            State.ENDING,
        ):  # in other states these would be the process's dying words
            self._link.send(DyingWords(0, thread, words))

    def _done(self, command: Command, refusals: list[Refusal] | None = None) -> None:
        backend = self._auto if isinstance(command, CreateWorkloads) else ""
        answer = Refused(command.id, tuple(refusals)) if refusals else Ok(command.id, now_ns(), backend=backend)
        self._link.send(answer)

    def _refuse(self, command: Command, reason: str) -> None:
        self._link.send(Refused(command.id, (Refusal(wire_name(type(command)), reason),)))
