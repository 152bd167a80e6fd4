"""A step's measurements: which subintervals each is of, and their sum.

Rule: a measurement is summed while the step runs, from the subintervals that were announced as `run`. Where control
chose another window afterwards, it is summed again from histograms.sqlite when the step has ended: the same sum either
way, and while the step runs nothing here waits for the disk.
"""

from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace

from ..control.decision import Measured
from ..control.observation import Phase
from ..control.observe import observe_measurement
from ..output.record_types import WindowRecord
from ..rollup.merge import MergedSubinterval
from ..rollup.parameters_in_force import Settings
from ..rollup.window import Measurement, Window
from .step_reports import ALL_ROW
from .step_types import ClosedSubinterval


@dataclass(frozen=True, slots=True, eq=False)
class ClosedMeasurement:
    """A measurement that closed."""

    measured: Measured
    measurement: Measurement | None  # None: it has no subinterval
    settings: Settings | None  # in force at its end; None where it has no subinterval
    start_utc_ns: int | None
    end_utc_ns: int | None


class StepMeasurements:
    """Holds one step's open window, the settings that its measurements may end with, and those that closed."""

    def __init__(self, length_ns: int, record: Callable[[WindowRecord], None]) -> None:
        """`record` gets a row of windows.csv for each measurement that is summed."""
        self._length_ns = length_ns
        self._record = record
        self._settings: list[tuple[int, Settings]] = []  # each with its first subinterval
        self._window: Window | None = None  # None: no subinterval announced as `run` since the last warmup
        self._window_first = 0
        self._first_utc_ns = 0  # the start of subinterval 0
        self._newest = -1  # the last subinterval that closed
        self._end_utc_ns = 0  # of that one, which a halt may have cut short
        self._unsummed: list[tuple[int, Measured, str]] = []  # place in `taken`, and why it was closed
        self.taken: list[ClosedMeasurement] = []

    def add(self, closed: ClosedSubinterval, start_utc_ns: int, end_utc_ns: int) -> None:
        """One more subinterval, with the measurements that control closed with it."""
        self._newest = closed.number
        self._first_utc_ns, self._end_utc_ns = start_utc_ns - closed.number * self._length_ns, end_utc_ns
        if not self._settings or self._settings[-1][1] is not closed.settings:
            self._settings.append((closed.number, closed.settings))
        for measured in closed.decision.measured:
            if measured.last < closed.number:
                self.close(measured, closed.decision.say)
        self._add_to_window(closed.interval, closed.phase)
        for measured in closed.decision.measured:
            if measured.last >= closed.number:
                self.close(measured, closed.decision.say)
        self._forget(closed.may_end)

    def close(self, measured: Measured, say: str = "") -> None:
        """Close a measurement; `say`: what control said of its end."""
        if measured.last < measured.first:
            self.taken.append(ClosedMeasurement(measured, None, None, None, None))
            return
        settings = self._settings[self._place(measured.last)][1]
        taken = ClosedMeasurement(measured, None, settings, *self._utc_of(measured.first, measured.last))
        window, whole = self._window, (measured.first, measured.last - measured.first + 1)
        if window is not None and (self._window_first, window.subintervals) == whole:
            taken = self._summed(taken, window, say)
        else:
            self._unsummed.append((len(self.taken), measured, say))  # once the step has ended: the disk may be slow
        self.taken.append(taken)

    async def sum_up(self, stored: Callable[[int, int], Awaitable[Window]]) -> None:
        """Sum every measurement that has no sum yet; `stored` reads subintervals back, both ends included."""
        for place, measured, say in self._unsummed:
            self.taken[place] = self._summed(self.taken[place], await stored(measured.first, measured.last), say)
        self._unsummed.clear()

    def _summed(self, taken: ClosedMeasurement, window: Window, say: str) -> ClosedMeasurement:
        """The measurement with its sum, and its row of windows.csv."""
        measurement = window.measurement()
        measured = taken.measured
        measured = measured.checked(observe_measurement(measurement, [check.focus for check in measured.checks]))
        why = "; ".join(str(finding) for finding in measured.findings) or say or "as planned"
        assert taken.start_utc_ns is not None and taken.end_utc_ns is not None
        span = (measured.first, measured.last, taken.start_utc_ns, taken.end_utc_ns)
        self._record(WindowRecord("measurement", *span, len(measurement.hosts), why))
        return replace(taken, measured=measured, measurement=measurement)

    def _add_to_window(self, interval: MergedSubinterval, phase: Phase) -> None:
        if phase is not Phase.RUN:
            self._window = None if phase is Phase.WARMUP else self._window
        elif self._window is not None and self._window.fits(interval):
            self._window.add(interval)
        else:
            self._window = Window(interval.layout)
            self._window_first = interval.subinterval
            self._window.add(interval)

    def _place(self, number: int) -> int:
        """Where the settings stand that were in force at the end of a subinterval; the oldest for what was before."""
        return max(bisect_right(self._settings, number, key=lambda entry: entry[0]) - 1, 0)

    def _forget(self, may_end: Iterable[int]) -> None:
        """Keep the settings that a measurement to come may need; an edit in every subinterval makes many."""
        needed = sorted({len(self._settings) - 1, *map(self._place, may_end)})
        if len(needed) < len(self._settings):
            self._settings = [self._settings[place] for place in needed]

    def _utc_of(self, first: int, last: int) -> tuple[int, int]:
        """When the subintervals `first` to `last` began and ended."""
        start = self._first_utc_ns + first * self._length_ns
        newest = last == self._newest
        return start, self._end_utc_ns if newest else self._first_utc_ns + (last + 1) * self._length_ns


def real_length_ns(closed: MergedSubinterval) -> int:
    """As `length_s` of `all` says it: less than was planned where a halt cut the subinterval short."""
    return round(float(closed.merged.presence.length_s[ALL_ROW]) * 1e9)
