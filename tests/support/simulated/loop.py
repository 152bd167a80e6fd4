"""An event loop whose idle time is skipped: where it would sleep, its clock jumps.

Rule: only time is simulated. Tasks, queues and timeouts are asyncio's own. Work handed to a thread is waited for in
real time while the simulated clock stands still, so that disk work never looks slow, unless the disk is frozen.
"""

import asyncio
import selectors
import threading
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
        self.thawed = threading.Event()
        self.thawed.set()

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready  # timeout 0: there is something to run
        if self.threads_busy and self.thawed.is_set():
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

    def freeze_disk(self, seconds: float) -> None:
        """As if the disk took nothing for so long: threads do no work, and the clock goes on."""
        self._skipping.thawed.clear()
        self.call_later(seconds, self._skipping.thawed.set)

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]
        self._skipping.threads_busy += 1

        def job() -> Any:
            self._skipping.thawed.wait()
            return func(*args)

        future = super().run_in_executor(executor, job)
        future.add_done_callback(lambda _: setattr(self._skipping, "threads_busy", self._skipping.threads_busy - 1))
        return future


def simulate(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` to its end on simulated time.

    Not by Runner.run: its handler of Ctrl-C makes the signal module format `main`'s result, with every array of it.
    """
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.get_loop().run_until_complete(main)
