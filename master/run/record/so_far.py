"""When what the running step has measured so far is written again, by whom, and what that may cost.

Rule: it costs the run nothing but its share of a core: all CPU time is counted, that of the event loop, too. Long work
has a thread of its own; the writer's thread writes in its turn, and waits for no full disk. Whatever fails is reported,
once, and ends nothing.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, TypeVar

from ...control.decision import Measured
from ...output.writer_thread import OneThread, Writer
from ...rollup.window import Window
from ..step.step_types import SoFar, StepOutcome

T = TypeVar("T")

SHARE: Final = 0.02  # of a core, at most
FIRST_S: Final = 1.0  # after a step's begin
SLOW_S: Final = 1.0  # a job that waits for so long: the disk has enough to do
AFTER_FAILURE_S: Final = 10.0  # what is left of a full disk is for the rows

IsGivenUp = Callable[[], bool]


class SoFarKeeper:
    """Holds the thread, what the last time has cost, and when the next one is due."""

    def __init__(self, writer: Writer, report: Callable[[str], None]) -> None:
        """`report` gets the first failure."""
        self._writer = writer
        self._report: Callable[[str], None] | None = report
        self._thread = OneThread("ivypy-so-far")
        self._due_ns: int | None = None  # None: no step has begun, or it is being done
        self._cost_ns = 0

    def begin(self) -> None:
        """A step begins."""
        self._due_ns = time.monotonic_ns() + round(FIRST_S * 1e9)

    @property
    def is_due(self) -> bool:
        """Whether the last time was long enough ago, for what it cost, and the disk takes what there is."""
        if self._due_ns is None:
            return False
        return time.monotonic_ns() >= self._due_ns and self._writer.behind_s < SLOW_S

    def keep(
        self,
        take: Callable[[], SoFar],
        read: Callable[[Measured, IsGivenUp], Window],
        prepare: Callable[[StepOutcome], Callable[[], object]],
        then: Callable[[], None] = lambda: None,
    ) -> Coroutine[Any, Any, None]:
        """Once more. `take` is called now; while the result is awaited, `read` and `prepare` are in a thread, and what
        that one returns in the writer's; `then` is called once that is written. Cancel it when the step ends. Raises
        nothing."""
        self._due_ns, self._cost_ns = None, 0
        try:
            return self._keep(self._counted(take), read, prepare, then)
        except Exception as error:
            return self._keep(error, read, prepare, then)

    async def _keep(
        self,
        so_far: SoFar | Exception,
        read: Callable[[Measured, IsGivenUp], Window],
        prepare: Callable[[StepOutcome], Callable[[], object]],
        then: Callable[[], None],
    ) -> None:
        wait_ns = 0
        try:
            if isinstance(so_far, Exception):
                raise so_far
            windows = [await self._apart(partial(read, one)) for one in so_far.unsummed]
            outcome = self._counted(partial(so_far.outcome, windows))
            write = await self._apart(lambda _: prepare(outcome))
            await self._writer.attempt(partial(self._counted, write))
            self._counted(then)
        except Exception as error:
            wait_ns = round(AFTER_FAILURE_S * 1e9)
            self._failed(error)
        finally:
            self._due_ns = time.monotonic_ns() + max(wait_ns, round(self._cost_ns / SHARE))

    def close(self) -> None:
        """End the thread; nobody waits for it."""
        self._thread.shutdown(wait=False)

    async def _apart(self, job: Callable[[IsGivenUp], T]) -> T:
        """Call `job` in the thread, and return its result."""
        given_up = threading.Event()
        try:
            counted = partial(self._counted, partial(job, given_up.is_set))
            return await asyncio.get_running_loop().run_in_executor(self._thread, counted)
        finally:
            given_up.set()

    def _counted(self, job: Callable[[], T]) -> T:
        began_ns = time.thread_time_ns()
        try:
            return job()
        finally:
            self._cost_ns += time.thread_time_ns() - began_ns

    def _failed(self, error: Exception) -> None:
        if self._report is not None:
            report, self._report = self._report, None
            report(f"what the step has measured so far is not kept: {str(error) or type(error).__name__}")
