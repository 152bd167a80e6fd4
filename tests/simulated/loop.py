"""An event loop whose idle time is skipped: where it would sleep, its clock jumps.

Rule: only time is simulated. Tasks, queues and timeouts are asyncio's own. Work handed to a thread is waited for in
real time while the simulated clock stands still, so that disk work never looks slow.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

DEADLOCK_S = 20.0  # real seconds without anything ready: nothing will ever be


class _Skipping(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.threads_busy = 0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if ready:
            return ready
        if self.threads_busy:
            return super().select(0.05)
        if timeout is None:
            ready = super().select(DEADLOCK_S)
            if not ready:
                raise RuntimeError("deadlock: every task waits, and nothing is scheduled")
            return ready
        self.now += max(0.0, timeout)
        return ready


class SimulatedLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._skipping = _Skipping()
        super().__init__(self._skipping)
        self.set_default_executor(ThreadPoolExecutor(2))

    def time(self) -> float:
        return self._skipping.now

    def work(self, seconds: float) -> None:
        """As if the present task had needed the processor for so long."""
        self._skipping.now += seconds

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]
        self._skipping.threads_busy += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(lambda _: setattr(self._skipping, "threads_busy", self._skipping.threads_busy - 1))
        return future


def simulate(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` to its end on simulated time."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(main)
