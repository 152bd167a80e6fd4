"""Commands to answers: what a slave does when it is told something.

Rule: always listening. A `clock_probe` is answered, and steering (continue, cooldown, stop, halt) obeyed, the moment it
is read, whatever else goes on. Everything else is obeyed in the order of its coming, one after the other, and what
may take long (creating files, looking at devices) in a worker thread. Whatever happens - the end of input, a signal,
rubbish, a bug - ends in `end()`: halt, remove what was made, say why, and let the process go, even if the kernel
holds one of its threads.
"""

import asyncio
import contextlib
import glob
import os
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import IntEnum
from typing import Any, Final, TypeVar

from ..protocol.errors import ProtocolError
from ..protocol.messages import (
    MOST_IN_A_LIST,
    ClockProbe,
    ClockReading,
    Command,
    Continue,
    Cooldown,
    CreateWorkloads,
    DeleteWorkloads,
    Die,
    DyingWords,
    EditWorkloads,
    End,
    Ending,
    Go,
    Halt,
    ListLuns,
    Lun,
    Luns,
    Ok,
    Prepare,
    Ready,
    Refusal,
    Refused,
    Remark,
    Stop,
    word,
)
from ..protocol.states import State, may_command
from .cores import place
from .engine._engine import Engine, backends, now_ns
from .files import Cancelled, CannotMake, Files, Wanted, wanted
from .host import hello
from .kernel import cpu_list, first_line
from .link import Link
from .luns import discover
from .step import Step
from .workloads import Workloads, fields_of

CLOSE_S: Final = 2.0  # how long the engine's threads, or a file being written, may take to end
LAST_WORDS_S: Final = 1.0  # how long the far end may take to read them
MOST_THREADS: Final = 256

Value = TypeVar("Value")


class Exit(IntEnum):
    """What the process returns, for whoever looks; the controller does not wait for it."""

    TOLD = 0  # by `die`, or by the end of its input
    FAILED = 1  # a bug of ours
    UNFIT = 2  # its input or output is no pipe
    GARBLED = 3  # the controller did not speak the protocol
    SIGNAL = 128  # + the signal's number


class ThreadDied(Exception):
    """A workload thread could not go on, so an edit will never be taken by all."""


class Slave:
    """Remembers what this host was told: its engine, instances, the step that runs, the lease."""

    def __init__(self, link: Link, new_engine: Callable[[str, list[int]], Engine] = Engine) -> None:
        self._link = link
        self._new_engine = new_engine
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[Command] = asyncio.Queue()
        self._worker = ThreadPoolExecutor(1, "work")
        self._working: asyncio.Future[Any] | None = None
        self._files = Files()
        self._cores: tuple[int, ...] = ()
        self._engine: Engine | None = None
        self._workloads: Workloads | None = None
        self._step: Step | None = None
        self._lease_ns = 0
        self._lease_until_ns = 0
        self._edited: asyncio.Future[tuple[int, int]] | None = None
        self._died: list[str] = []  # the words of threads that could not go on
        self._exit: asyncio.Future[tuple[int, int, str]] = self._loop.create_future()  # code, answered command, words

    async def serve(self) -> int:
        """Say hello, obey until the end, clean up; the code to exit with."""
        self._loop.set_exception_handler(self._failed)
        first = hello()
        self._cores = first.cores
        self._link.say(first)
        self._link.open(self._loop, self)
        obeying = self._loop.create_task(self._obey_all())
        try:
            code, answered, words = await self._exit
        finally:
            obeying.cancel()
        await self._clean_up(answered, words)
        return code

    def end(self, code: int, words: str, answered: int = 0) -> None:
        """Halt, clean up, say `words` and exit with `code`; the first call counts."""
        if self._exit.done():
            return
        self._exit.set_result((code, answered, words))
        self._files.cancel()
        if self._engine is not None:
            self._engine.halt()

    # The link's listener.

    def heard(self, command: Command, received_ns: int) -> None:
        match command:
            case ClockProbe():
                self._renew_lease(received_ns)
                self._link.say_late(lambda: ClockReading(command.id, received_ns, now_ns()))
            case Die() if self._may(command):
                self.end(Exit.TOLD, "goodbye", command.id)
            case Continue() | Cooldown() | Stop() | Halt() if self._step is not None and self._may(command):
                self._steer(command, self._step)
            case _:
                self._queue.put_nowait(command)

    def drained(self) -> None:
        if self._step is not None and not self._exit.done():
            self._poll()

    def closed(self) -> None:
        self.end(Exit.TOLD, "")

    def garbled(self, error: ProtocolError) -> None:
        print(f"ivypy: the controller broke the protocol: {error}", file=sys.stderr)
        self.end(Exit.GARBLED, f"the controller broke the protocol: {error}")

    # Commands, in the order of their coming.

    async def _obey_all(self) -> None:
        try:
            while True:
                command = await self._queue.get()
                if self._may(command):
                    await self._obey(command)
                else:
                    self._refuse(command.id, word(type(command)), f"overtaken: this host is {self._link.state}")
        except Exception as error:
            self._crashed(error)

    async def _obey(self, command: Command) -> None:
        if isinstance(command, ListLuns):
            await self._list_luns(command)
        elif isinstance(command, Prepare):
            self._prepare(command)
        elif self._engine is None or self._workloads is None:
            self._refuse(command.id, word(type(command)), "there is no engine yet: `prepare` comes first")
        elif self._died:
            self._refuse(command.id, word(type(command)), f"{'; '.join(self._died)}: start this host's slave anew")
        else:
            await self._drive(command, self._engine, self._workloads)

    async def _drive(self, command: Command, engine: Engine, workloads: Workloads) -> None:
        match command:
            case CreateWorkloads():
                refusals = await self._work(lambda: workloads.create(command.workloads))
                self._done(command.id, refusals)
            case DeleteWorkloads():
                self._done(command.id, workloads.delete(command.numbers))
            case EditWorkloads():
                await self._edit(command, engine, workloads)
            case Go():
                await self._go(command, engine, workloads)
            case _:
                self._refuse(command.id, word(type(command)), "a slave does not know this command")

    def _prepare(self, command: Prepare) -> None:
        if reason := self._against(command):
            self._refuse(command.id, word(type(command)), reason)
            return
        siblings = cpu_list(first_line("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")) or (0,)
        placement = place(command.threads, self._cores, siblings)
        try:
            self._engine = self._new_engine(command.backend, list(placement.threads))
        except OSError as error:
            self._refuse(command.id, command.backend, f"the engine does not start: {error.strerror}")
            return
        if placement.spared:
            os.sched_setaffinity(0, placement.spared)  # this thread only, now that the engine has its own
        self._workloads = Workloads(self._engine, command.backend, len(placement.threads))
        self._loop.add_reader(self._engine.fileno(), self._engine_spoke, self._engine.fileno())
        self._lease_ns = command.lease_ns
        self._renew_lease(now_ns())
        self._done(command.id)

    def _against(self, command: Prepare) -> str | None:
        """Why this host cannot be prepared so."""
        if self._engine is not None:
            return "it was prepared before: start its slave anew to change backend or threads"
        if command.backend not in (known := backends()):
            return f"backend {command.backend!r} does not work here: choose one of {', '.join(known)}"
        if not 0 <= command.threads <= MOST_THREADS:
            return f"{command.threads} threads are asked for: choose 0 (one per core) to {MOST_THREADS}"
        if command.lease_ns <= 0:
            return f"a lease of {command.lease_ns} ns has run out before it began: choose a longer one"
        return None

    async def _list_luns(self, command: ListLuns) -> None:
        try:
            luns, refusals = await self._work(lambda: self._make_and_discover(command))
        except CannotMake as error:
            luns, refusals = [], list(error.refusals)
        except Cancelled:
            return
        if refusals:
            self._refuse_all(command.id, refusals)
            return
        for i in range(0, len(luns), MOST_IN_A_LIST):
            self._link.say(Luns(command.id, tuple(luns[i : i + MOST_IN_A_LIST])))
        self._link.say(End(command.id))

    def _make_and_discover(self, command: ListLuns) -> tuple[list[Lun], list[Refusal]]:
        """In the worker thread."""
        files: list[Wanted] = []
        refusals: list[Refusal] = []
        for asked in command.create:
            try:
                files += wanted(asked)
            except CannotMake as error:
                refusals += error.refusals
        if refusals:
            raise CannotMake(refusals)
        self._files.make(files, self._tell)
        return discover(command.blocks, [*command.globs, *(glob.escape(file.path) for file in files)])

    async def _edit(self, command: EditWorkloads, engine: Engine, workloads: Workloads) -> None:
        refusals = workloads.check_edit(command)
        if refusals or not command.settings:
            self._done(command.id, refusals)
            return
        self._edited = self._loop.create_future()
        try:
            engine.edit(command.edit, [(s.number, fields_of(s.parameters)) for s in command.settings])
            _, effective_ns = await self._edited
        except ThreadDied as error:
            self._refuse(command.id, f"edit {command.edit}", f"not every thread took it: {error}")
            return
        finally:
            self._edited = None
        workloads.edited(command)
        self._link.say(Ok(command.id, effective_ns))

    async def _go(self, command: Go, engine: Engine, workloads: Workloads) -> None:
        now = now_ns()
        reason = workloads.check_go(command)
        if command.length_ns <= 0:
            reason = f"a subinterval of {command.length_ns} ns has no length"
        elif now >= self._lease_until_ns:
            reason = "its lease has run out: no clock_probe was heard in time"
        elif command.start_ns <= now:
            reason = f"its start is {(now - command.start_ns) / 1e6:.1f} ms in the past: name a later one"
        if reason is not None:
            self._refuse(command.id, word(type(command)), reason)
            return
        order, classes = command.order.data, command.classes.data
        try:
            await self._work(lambda: engine.go(command.start_ns, command.length_ns, order, classes))
        except OSError as error:
            self._refuse(command.id, word(type(command)), f"the engine cannot start: {error.strerror}")
            return
        self._link.say(Ready(command.id))
        self._step = Step(engine, self._link, self._cores, command)
        self._poll()

    def _steer(self, command: Continue | Cooldown | Stop | Halt, step: Step) -> None:
        """Obeyed at once, while a step runs."""
        engine = self._engine
        assert engine is not None
        match command:
            case Continue():
                step.place_boundary(command)
                self._done(command.id)
            case Cooldown():
                engine.cooldown(command.subinterval)
                self._done(command.id)
            case Stop():
                engine.stop(command.last)
                self._link.say(Ending(command.id))
            case Halt():
                step.halt()
                self._link.say(Ending(command.id))

    # What the engine says.

    def _engine_spoke(self, fd: int) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(fd, 8)
        if not self._exit.done():
            self._poll()

    def _poll(self) -> None:
        """Pass on everything that the engine has to say."""
        engine = self._engine
        if engine is None:
            return
        for thread, words in engine.dying_words():
            self._thread_died(thread, words)
        if self._edited is not None and not self._edited.done() and (taken := engine.edited()) is not None:
            self._edited.set_result(taken)
        if self._step is not None:
            self._step.poll()
            if self._step.over:
                self._step = None

    def _thread_died(self, thread: int, words: str) -> None:
        text = f"workload thread {thread} could not go on: {words}"
        self._died.append(text)
        if self._edited is not None and not self._edited.done():
            self._edited.set_exception(ThreadDied(text))
        if self._link.state is State.IDLE:
            self.end(Exit.FAILED, text)
        elif self._link.state in (State.RUNNING, State.ENDING):
            self._link.say(DyingWords(0, thread, words))

    def _renew_lease(self, received_ns: int) -> None:
        """A lease that ran out while a step ran is not renewed: the step is over, whatever was queued in a frozen
        process's input."""
        if self._engine is None or (self._step is not None and now_ns() >= self._lease_until_ns):
            return
        self._lease_until_ns = received_ns + self._lease_ns
        self._engine.set_lease(self._lease_until_ns)

    # Answers.

    def _done(self, id: int, refusals: list[Refusal] | None = None) -> None:
        if refusals:
            self._refuse_all(id, refusals)
        else:
            self._link.say(Ok(id, now_ns()))

    def _refuse(self, id: int, what: str, reason: str) -> None:
        self._link.say(Refused(id, (Refusal(what, reason),)))

    def _refuse_all(self, id: int, refusals: list[Refusal]) -> None:
        self._link.say(Refused(id, tuple(refusals)))

    def _tell(self, text: str) -> None:
        """From the worker thread."""
        self._loop.call_soon_threadsafe(self._remark, text)

    def _remark(self, text: str) -> None:
        if not self._exit.done():
            self._link.say(Remark(text))

    def _may(self, command: Command) -> bool:
        return not self._exit.done() and may_command(self._link.state, command)

    async def _work(self, job: Callable[[], Value]) -> Value:
        """Do a job that may block in the worker thread."""
        working = self._loop.run_in_executor(self._worker, job)
        self._working = working
        try:
            return await working
        finally:
            self._working = None

    # The end.

    def _crashed(self, error: BaseException) -> None:
        traceback.print_exception(error)
        last = traceback.extract_tb(error.__traceback__)[-1:]
        where = f" ({os.path.basename(last[0].filename)}:{last[0].lineno})" if last else ""
        self.end(Exit.FAILED, f"the slave failed: {type(error).__name__}: {error}{where}")

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """What escaped from a callback."""
        error = context.get("exception")
        self._crashed(error if isinstance(error, BaseException) else RuntimeError(str(context.get("message"))))

    async def _clean_up(self, answered: int, words: str) -> None:
        self._link.close_input()
        if self._step is not None:
            self._step.close()
        if self._working is not None:
            with contextlib.suppress(Exception):
                await asyncio.wait([self._working], timeout=CLOSE_S)
        self._files.remove()
        if self._engine is not None:
            self._loop.remove_reader(self._engine.fileno())
            words = "; ".join(filter(None, [words, *(w for w in self._died if w not in words)]))
            if held := self._engine.close(CLOSE_S):
                words += f"; the kernel holds workload thread {', '.join(map(str, held))}"
        if words and self._link.state in (State.IDLE, State.RUNNING, State.ENDING):
            self._link.say(DyingWords(answered, -1, words))
            self._link.flush(LAST_WORDS_S)
        self._link.close()
