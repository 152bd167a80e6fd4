"""Sends each report of a run to all who follow it, and keeps what a new follower needs.

Rule: a follower only receives, and a slow or closed one costs only itself. The same holds for the run's own watcher: if
its console is gone, it gets no more reports, and the run continues.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from .reports import Nobody, Report, RunEnds, StepBegins, StepEnds, Subinterval, Watcher

MOST_ENDED: Final = 100  # steps that a new follower gets; a run may have thousands

Follower = Callable[[Report], None]


class Broadcast:
    """A watcher that passes reports on; `first` is the run's own, `lost` is called when that one fails."""

    def __init__(self, first: Watcher, lost: Callable[[OSError], None]) -> None:
        self._first = first
        self._lost = lost
        self._followers: list[Follower] = []
        self.step: StepBegins | None = None
        self.running = False  # a step is
        self.last: Subinterval | None = None
        self.ended: deque[StepEnds] = deque(maxlen=MOST_ENDED)

    def show(self, report: Report) -> None:
        match report:
            case StepBegins():
                self.step, self.running = report, True
            case Subinterval():
                self.last = report
            case StepEnds():
                self.ended.append(report)
                self.running = False
            case RunEnds():
                self.running = False
        for follower in list(self._followers):
            follower(report)
        self.show_first(report)

    def show_first(self, report: Report) -> None:
        """To the run's own watcher alone."""
        try:
            self._first.show(report)
        except OSError as error:
            self._first = Nobody()
            if not isinstance(report, RunEnds):  # after which nothing is written down
                self._lost(error)

    def close(self) -> None:
        self._first.close()

    def follow(self, follower: Follower) -> Callable[[], None]:
        """Tell what ended, which step runs and its last subinterval, then everything as it comes; returns the end."""
        for report in self.ended:
            follower(report)
        if self.step is not None and self.running:
            follower(self.step)
            if self.subinterval > 0 and self.last is not None:
                follower(self.last)
        self._followers.append(follower)
        return lambda: self._followers.remove(follower)

    @property
    def subinterval(self) -> int:
        """The one that is running, of the step that is."""
        here = self.step is not None and self.last is not None and self.last.step == self.step.name
        return self.last.number + 1 if here and self.last is not None else 0
