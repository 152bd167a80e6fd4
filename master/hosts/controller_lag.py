"""The controller's own pauses and CPU time: for how long its event loop did not run.

Rule: a timer ticks in the loop. While a tick is overdue, no pipe was read and no lease renewed. So no host counts as
late but by a `Deadline`, which waits for longer if the controller itself was paused.
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

    def deadline(self, within_s: float, patience_s: float | None = None) -> "Deadline":
        """So long from now. Pauses of the controller move it by `patience_s` at most: by default, as long again."""
        within_ns = round(within_s * 1e9)
        return Deadline(self, self.now_ns() + within_ns, within_ns if patience_s is None else round(patience_s * 1e9))

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


class Deadline:
    """State: until when hosts are waited for.

    Where the controller was paused, what they sent is still unread at the deadline: then it moves.
    """

    def __init__(self, lag: ControllerLag, at_ns: int, patience_ns: int) -> None:
        """`at_ns`: on the controller's clock. `patience_ns`: the most by which it moves, from when it passed first,
        however often the controller is paused."""
        self.at_ns = at_ns
        self._lag = lag
        self._patience_ns = patience_ns
        self._latest_ns: int | None = None  # None: it has not passed yet

    @property
    def left_s(self) -> float:
        """Until it passes or moves; negative where it has passed."""
        return (self.at_ns - self._lag.now_ns()) / 1e9

    def bring_forward(self, at_ns: int) -> None:
        """To this instant, where it is later."""
        self.at_ns = min(self.at_ns, at_ns)

    def has_passed(self) -> bool:
        """Whether nobody is waited for any more; moves the deadline where the controller was paused."""
        now_ns = self._lag.now_ns()
        if now_ns < self.at_ns:
            return False
        if self._latest_ns is None:
            self._latest_ns = now_ns + self._patience_ns
        self.at_ns = max(self.at_ns, min(self._lag.patient_until_ns(self._patience_ns), self._latest_ns))
        return now_ns >= self.at_ns
