"""One thread that does all disk work of a run, fed from the event loop.

Rule: jobs run in the order in which they were given, and nobody who drives load waits for them: a slow disk delays the
controller's files, never the load. A full disk is waited for (full_disk.py). No job waits longer than PATIENCE_S, which
also bounds the memory; then the run ends with an error, not with incomplete files. The next call raises the first
error, and no job runs after it.
"""

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from typing import Any, Final, TypeVar

from ..errors import OutputError
from .full_disk import FullDisk, patient

T = TypeVar("T")

PATIENCE_S: Final = 60.0  # for the disk
SEEN_AGAIN_S: Final = 1.0  # a job that is overdue is given this much longer: the controller may have been stalled
LAST_S: Final = 5.0  # for what says how the run ended, where another job has failed


class Writer:
    """Holds the thread, since when each job waits, and the first error."""

    def __init__(self, where: str, report: Callable[[str], None] = lambda text: None) -> None:
        """`where`: what is written to, for people. `report` gets what happens to the disk, in the loop."""
        self._where = where
        self._told = report
        self._loop: asyncio.AbstractEventLoop | None = None  # which `told` is called in
        self._disk = FullDisk(self._tell)
        self._thread = OneThread("ivypy-writer")
        self._since: deque[float] = deque()  # of each job that was put and is not done, the loop's time when it was
        self._overdue: tuple[float, float] | None = None  # the oldest job's, and when it was first seen to be so old
        self._error: Exception | None = None

    def put(self, job: Callable[[], object]) -> None:
        """Have `job` done, without waiting for it. Raises the error of an earlier job, or that none is done."""
        loop = self._loop = asyncio.get_running_loop()
        self._check(loop.time())
        self._since.append(loop.time())
        loop.run_in_executor(self._thread, self._run, job).add_done_callback(self._done)

    def post(self, job: Callable[[], object]) -> None:
        """Have a small job done, from where an error cannot be raised: it is, at the next `put` or `do`."""
        self._thread.submit(self._run, job)

    async def do(self, job: Callable[[], T]) -> T:
        """Have `job` done after all that was put, and return what it returns. Raises its error, or an earlier one."""
        if self._error:
            raise self._error
        return await self._within(PATIENCE_S, asyncio.get_running_loop().run_in_executor(self._thread, self._run, job))

    async def attempt(self, job: Callable[[], T]) -> T:
        """Have `job` done in its turn, which may fail: it waits for no full disk, and its error, which is raised, ends
        nothing."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._attempt, job)

    async def last(self, job: Callable[[], T]) -> T:
        """Have `job` done although another one failed: what says how it ended. Raises its own error."""
        return await self._within(LAST_S, asyncio.get_running_loop().run_in_executor(self._thread, job))

    def close(self) -> None:
        """End the thread behind all that was given; nobody waits for it."""
        self._thread.shutdown(wait=False)

    @property
    def waiting(self) -> int:
        """Jobs that have not begun."""
        return self._thread.waiting

    @property
    def behind_s(self) -> float:
        """For how long the oldest job that was put, and is not done, has waited."""
        return asyncio.get_running_loop().time() - self._since[0] if self._since else 0.0

    async def _within(self, seconds: float, future: "asyncio.Future[T]") -> T:
        future.add_done_callback(_looked_at)
        done, _ = await asyncio.wait([future], timeout=seconds)
        if not done:
            self._error = self._error or self._stalled(seconds)
            raise self._error
        return future.result()

    def _check(self, now_s: float) -> None:
        if self._error:
            raise self._error
        if not self._since or now_s - self._since[0] <= PATIENCE_S:
            self._overdue = None
        elif self._overdue is None or self._overdue[0] != self._since[0]:
            self._overdue = self._since[0], now_s
        elif now_s - self._overdue[1] >= SEEN_AGAIN_S:
            self._error = self._stalled(now_s - self._since[0])
            raise self._error

    def _stalled(self, seconds: float) -> OutputError:
        return OutputError(
            f"{self._where}: not written: its disk has not taken in {seconds:.0f} s what was to be written;"
            " repair it, or give another folder with -o"
        )

    def _run(self, job: Callable[[], T]) -> T:
        """In the thread."""
        if self._error:
            raise self._error
        try:
            with patient(self._disk):
                return job()
        except Exception as error:
            self._error = error
            raise

    def _attempt(self, job: Callable[[], T]) -> T:
        """In the thread."""
        if self._error:
            raise self._error
        return job()

    def _tell(self, text: str) -> None:
        """In the thread."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._told, text)

    def _done(self, future: "asyncio.Future[object]") -> None:
        self._since.popleft()
        _looked_at(future)


def _looked_at(future: "asyncio.Future[Any]") -> None:
    """Its error is kept in _error: asyncio need not complain that nobody looked."""
    if not future.cancelled():
        future.exception()


class OneThread(Executor):
    """One thread that the process does not wait for as it ends: a disk that hangs would keep it for ever."""

    def __init__(self, name: str) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, name=name, daemon=True).start()

    @property
    def waiting(self) -> int:
        return self._jobs.qsize()

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()

        def job() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(fn(*args, **kwargs))
                except BaseException as error:
                    future.set_exception(error)

        self._jobs.put(job)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
