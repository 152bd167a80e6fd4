"""The controller's own pauses and CPU time: for how long its event loop did not run.

Rule: a timer ticks in the loop. While a tick is overdue, no pipe was read and no lease renewed. Before a host counts as
late, `patient_until_ns` says whether the controller itself was paused, and until when to wait instead.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

TICK_NS: Final = 100_000_000
NOTICED_NS: Final = 50_000_000  # less is what a busy machine takes


class ControllerLag:
    """State: when the clock ticks next, and what was seen since the last `take`."""

    def __init__(self, now_ns: Callable[[], int], cpu_ns: Callable[[], int] = time.process_time_ns) -> None:
        """`cpu_ns`: the CPU time of all of the controller's threads until now."""
        self.now_ns = now_ns  # the controller's clock
        self._cpu_ns = cpu_ns
        self._used_ns = cpu_ns()
        self._due_ns: int | None = None  # None: it does not tick
        self._stalled_ns = 0
        self._back_ns = 0
        self._late_ns = 0
        self._next: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Tick from now on, in the loop that runs."""
        self._due_ns = self.now_ns()
        self._tick()

    def end(self) -> None:
        if self._next is not None:
            self._next.cancel()
        self._due_ns = self._next = None

    def stalled_ns(self) -> int:
        """The sum of all pauses since the last `take`."""
        self._measure()
        return self._stalled_ns

    def patient_until_ns(self, most_ns: int) -> int:
        """Until when no host counts as late: as long again as the pause was, and no longer than `most_ns`.

        Messages that arrived meanwhile are unread in the pipes.
        """
        self._measure()
        return self._back_ns + min(self._late_ns, most_ns)

    def take(self) -> tuple[int, int]:
        """(time in pauses, CPU time) since the last `take`, in nanoseconds."""
        stalled_ns, used_ns = self.stalled_ns(), self._cpu_ns()
        since_ns = used_ns - self._used_ns
        self._stalled_ns, self._used_ns = 0, used_ns
        return stalled_ns, since_ns

    def _tick(self) -> None:
        self._measure()
        self._due_ns = self.now_ns() + TICK_NS
        self._next = asyncio.get_running_loop().call_later(TICK_NS / 1e9, self._tick)

    def _measure(self) -> None:
        """Count an overdue tick now, before it comes."""
        if self._due_ns is None:
            return
        now_ns = self.now_ns()
        late_ns = now_ns - self._due_ns
        if late_ns >= NOTICED_NS:
            self._back_ns, self._late_ns = now_ns, late_ns
            self._stalled_ns += late_ns
            self._due_ns = now_ns
