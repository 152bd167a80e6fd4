"""One thread that does all disk work of a run, fed from the event loop.

Rule: jobs run one after the other, in the order in which they were given. `put` waits only while QUEUED jobs wait
already, so memory is bounded and a slow disk delays the controller's bookkeeping, never the load. The first error is
raised at the next call, and no job runs after it.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

T = TypeVar("T")

QUEUED: Final = 2  # jobs that may wait beside the one that runs: subintervals


class Writer:
    """Remembers the thread and the first error."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ivypy-writer")
        self._room = asyncio.Semaphore(QUEUED + 1)
        self._error: Exception | None = None

    async def put(self, job: Callable[[], object]) -> None:
        """Have `job` done, without waiting for it. Raises the error of an earlier job."""
        await self._room.acquire()
        if self._error:
            self._room.release()
            raise self._error
        future = asyncio.get_running_loop().run_in_executor(self._thread, self._run, job)
        future.add_done_callback(self._done)

    def post(self, job: Callable[[], object]) -> None:
        """Have a small, rare job done, from where nobody can wait. Its error is raised at the next `put` or `do`."""
        self._thread.submit(self._run, job)

    async def do(self, job: Callable[[], T]) -> T:
        """Have `job` done after all that was put, and return what it returns. Raises its error, or an earlier one."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._run, job)

    async def last(self, job: Callable[[], T]) -> T:
        """Have `job` done although another one failed: what says how it ended. Raises its own error."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, job)

    async def close(self) -> None:
        """Wait for every job; then end the thread. Raises the first error."""
        try:
            await self.do(lambda: None)
        finally:
            self._thread.shutdown(wait=False)

    def _run(self, job: Callable[[], T]) -> T:
        """In the thread."""
        if self._error:
            raise self._error
        try:
            return job()
        except Exception as error:
            self._error = error
            raise

    def _done(self, future: "asyncio.Future[object]") -> None:
        self._room.release()
        if not future.cancelled():
            future.exception()  # kept in _error; asyncio need not complain that nobody looked
