"""Sends each report of a run to all who follow it, and keeps what a new follower needs.

Rule: a follower only receives, and a slow or closed one costs only itself. The same holds for the run's own watcher: if
its console is gone, it gets no more reports, and the run continues.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from ..summary.measured import StepEnds
from .reports import Instances, MeasuredSoFar, Nobody, Report, RunBegins, RunEnds, StepBegins, Subinterval, Watcher

MOST_ENDED: Final = 100  # steps that a new follower gets; a run may have thousands

Follower = Callable[[Report], None]
InstancesOf = Callable[[str], Instances]  # of a rollup type, in the subinterval that closed last


class Broadcast:
    """A watcher that passes reports on; `first` is the run's own, `lost` is called when that one fails."""

    def __init__(self, first: Watcher, lost: Callable[[OSError], None], rollup_types: Sequence[str]) -> None:
        self.rollup_types = rollup_types  # whose instances can be followed
        self._first = first
        self._lost = lost
        self._followers: list[tuple[Follower, str]] = []
        self._instances_of: InstancesOf | None = None  # None: no subinterval has closed
        self._begins: RunBegins | None = None
        self.step: StepBegins | None = None
        self.running = False  # a step is
        self.last: Subinterval | None = None
        self.so_far: MeasuredSoFar | None = None  # of that step
        self.ended: deque[StepEnds] = deque(maxlen=MOST_ENDED)

    def show(self, report: Report) -> None:
        match report:
            case RunBegins():
                self._begins = report
            case StepBegins():
                self.step, self.running, self.so_far = report, True, None
            case Subinterval():
                self.last = report
            case MeasuredSoFar():
                self.so_far = report
            case StepEnds():
                self.ended.append(report)
                self.running = False
            case RunEnds():
                self.running = False
        for follower, _ in list(self._followers):
            follower(report)
        self.show_first(report)

    def show_subinterval(self, report: Subinterval, instances_of: InstancesOf) -> None:
        """A subinterval has closed. Instances are worked out for those who follow them alone."""
        self._instances_of = instances_of
        self.show(report)
        for by in dict.fromkeys(by for _, by in self._followers if by):
            instances = instances_of(by)
            for follower, wanted in list(self._followers):
                if wanted == by:
                    follower(instances)

    def instances(self, by: str) -> Instances | None:
        """Those of a rollup type in the subinterval that closed last; None before the first."""
        return self._instances_of(by) if by and self._instances_of is not None else None

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

    def follow(self, follower: Follower, by: str = "") -> Callable[[], None]:
        """Report what ended, which step runs and its last subinterval, then everything as it comes; returns the end.

        `by`: a rollup type, whose instances are wanted after each subinterval.
        """
        if self._begins is not None:
            follower(self._begins)
        for report in self.ended:
            follower(report)
        if self.step is not None and self.running:
            follower(self.step)
            if self.subinterval > 0 and self.last is not None:
                follower(self.last)
                if (instances := self.instances(by)) is not None:
                    follower(instances)
        one = follower, by
        self._followers.append(one)
        return lambda: self._followers.remove(one)

    @property
    def subinterval(self) -> int:
        """The one that is running, of the step that is."""
        here = self.step is not None and self.last is not None and self.last.step == self.step.name
        return self.last.number + 1 if here and self.last is not None else 0
