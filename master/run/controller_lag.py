"""The controller's own lateness: how long its event loop got round to nothing, and the CPU time that it used.

Rule: a clock ticks in the loop; what a tick is late, nobody was read, told or probed. Whoever is about to call a host
late asks here first when the controller was back, and waits from then on.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

TICK_NS: Final = 100_000_000
NOTICED_NS: Final = 50_000_000  # less is what a busy machine takes


class ControllerLag:
    """Remembers when the clock ticks next, and what was seen since the last `take`."""

    def __init__(self, now_ns: Callable[[], int], cpu_ns: Callable[[], int] = time.process_time_ns) -> None:
        """`cpu_ns`: the CPU time of all of the controller's threads until now."""
        self._now_ns = now_ns
        self._cpu_ns = cpu_ns
        self._used_ns = cpu_ns()
        self._due_ns: int | None = None  # None: it does not tick
        self._stood_ns = 0
        self._back_ns = 0
        self._late_ns = 0
        self._next: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Tick from now on, in the loop that runs."""
        self._due_ns = self._now_ns()
        self._tick()

    def end(self) -> None:
        if self._next is not None:
            self._next.cancel()
        self._due_ns = self._next = None

    def stood_ns(self) -> int:
        """For how long the controller got round to nothing since the last `take`, all such times together."""
        self._look()
        return self._stood_ns

    def patient_until_ns(self, most_ns: int) -> int:
        """Until when nobody may be called late: after it stood still, for so long again, and no longer than `most_ns`.

        What was said meanwhile lies in the pipes, and has yet to be read.
        """
        self._look()
        return self._back_ns + min(self._late_ns, most_ns)

    def take(self) -> tuple[int, int]:
        """(time that it got round to nothing, CPU time that it used) since it was last asked, in nanoseconds."""
        stood_ns, used_ns = self.stood_ns(), self._cpu_ns()
        since_ns = used_ns - self._used_ns
        self._stood_ns, self._used_ns = 0, used_ns
        return stood_ns, since_ns

    def _tick(self) -> None:
        self._look()
        self._due_ns = self._now_ns() + TICK_NS
        self._next = asyncio.get_running_loop().call_later(TICK_NS / 1e9, self._tick)

    def _look(self) -> None:
        """A tick that is overdue is counted when somebody looks, not only when it comes."""
        if self._due_ns is None:
            return
        now_ns = self._now_ns()
        late_ns = now_ns - self._due_ns
        if late_ns >= NOTICED_NS:
            self._back_ns, self._late_ns = now_ns, late_ns
            self._stood_ns += late_ns
            self._due_ns = now_ns
