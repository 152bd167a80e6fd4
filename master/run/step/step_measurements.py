"""A step's measurements: which subintervals each is of, their sum, and the findings of its checks.

Rule: a measurement is summed while the step runs, from the subintervals that were announced as `run`. Where control
chose another window afterwards, or a result came late, it is summed again from the stored subintervals when the step
has ended: the same sum either way, and while the step runs nothing here waits for the disk.
"""

from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ...control.decision import Measured
from ...control.focus import Focus
from ...control.observation import Phase
from ...control.observe import observe_measurement, slowed_instances
from ...rollup.merge import MergedSubinterval
from ...rollup.parameters_in_force import Settings
from ...rollup.window import Measurement, Window
from ...stats.metric_sample import MetricSample, value_of
from ...verdicts import Finding, Reason
from .boundaries import MOST_STEERED
from .step_types import ALL_ROW, ClosedMeasurement, ClosedSubinterval, EmptyMeasurement, SummedMeasurement

_Key = tuple[int, int, tuple[int, ...]]  # of a measurement: first, last, set aside


@dataclass(frozen=True, slots=True, eq=False)
class _Closed:
    """A measurement that closed, and what its sum needs beside the subintervals."""

    measured: Measured
    progress: str  # control's message at its end
    settings: Settings
    start_ns: int
    end_ns: int


class StepMeasurements:
    """Holds one step's open window, the settings that its measurements may end with, and those that closed."""

    def __init__(self, length_ns: int, summed: Callable[[SummedMeasurement], None]) -> None:
        """`summed` gets each measurement as soon as it has its sum, and once more where it was summed again."""
        self._length_ns = length_ns
        self._summed = summed
        self._settings: list[tuple[int, Settings]] = []  # each with its first subinterval
        self._window: Window | None = None  # None: no subinterval announced as `run` since the last warmup
        self._first_ns = 0  # the start of subinterval 0, on the controller's clock
        self._newest = -1  # the last subinterval that closed
        self._end_ns = 0  # of that one, which a halt may have cut short
        self._closed: list[EmptyMeasurement | _Closed] = []
        self._sums: dict[int, SummedMeasurement] = {}  # by place in `_closed`: those that were summed when they closed
        self._joined: set[int] = set()  # subintervals of which a result came late
        self._read: dict[_Key, Window] = {}  # from the disk, for what was measured so far
        self._read_with = 0  # what `so_far` was told when these were read
        self._connectors: dict[Focus, dict[int, Mapping[str, MetricSample]]] = {}  # by subinterval and instance

    def add(self, closed: ClosedSubinterval) -> None:
        """One more subinterval, with the measurements that control closed with it."""
        self._newest = closed.number
        self._first_ns = closed.start_ns - closed.number * self._length_ns
        self._end_ns = closed.start_ns + real_length_ns(closed.interval, self._length_ns)
        for focus, samples in closed.of_connectors.items():
            self._connectors.setdefault(focus, {})[closed.number] = samples
        if not self._settings or self._settings[-1][1] is not closed.settings:
            self._settings.append((closed.number, closed.settings))
        for measured in closed.decision.measured:
            if measured.last < closed.number:
                self.close(measured, closed.decision.progress)
        self._add_to_window(closed.interval, closed.phase)
        for measured in closed.decision.measured:
            if measured.last >= closed.number:
                self.close(measured, closed.decision.progress)
        self._forget(closed.may_end)

    def close(self, measured: Measured, progress: str = "") -> None:
        """Close a measurement; `progress`: control's message at its end."""
        closed = self._cut(measured, progress)
        if isinstance(closed, _Closed) and (window := self._summed_window(measured)) is not None:
            self._sums[len(self._closed)] = summed = self._sum(closed, window)
            self._summed(summed)
        self._closed.append(closed)  # without a sum: it is summed once the step has ended, for the disk may be slow

    def joined(self, number: int) -> None:
        """A result of subinterval `number` came late, and will be stored: what includes it is summed again."""
        self._joined.add(number)

    async def all_summed(self, stored: Callable[[Measured], Awaitable[Window]]) -> tuple[ClosedMeasurement, ...]:
        """Every measurement, with its sum; `stored` reads its subintervals back."""
        summed_all: list[ClosedMeasurement] = []
        for place, closed in enumerate(self._closed):
            if isinstance(closed, EmptyMeasurement):
                summed_all.append(closed)
                continue
            summed = self._sums.get(place)
            if summed is None or self._has_joined(closed.measured):
                self._sums[place] = self._sum(closed, await stored(closed.measured))
                self._summed(self._sums[place])
            summed_all.append(self._sums[place])
        return tuple(summed_all)

    def so_far(
        self, cut: Measured | None, stored: int
    ) -> tuple[tuple[Measured, ...], Callable[[Sequence[Window]], tuple[ClosedMeasurement, ...]]]:
        """Every measurement that closed, and `cut` as if it closed now: those that are to be read from the disk, and a
        function that returns all of them, given the windows that were read. `stored`: how often late results have been
        stored by now; what was read before is read again."""
        if stored != self._read_with:
            self._read, self._read_with = {}, stored
        read = self._read  # a reading that goes on has its own
        closed = [*self._closed, *([self._cut(cut)] if cut is not None else [])]
        parts = [self._in_memory(place, one) or one for place, one in enumerate(closed)]
        needed = {_key(one.measured): one.measured for one in parts if isinstance(one, _Closed)}
        missing = [key for key in needed if key not in read]

        def summed(windows: Sequence[Window]) -> tuple[ClosedMeasurement, ...]:
            read.update(zip(missing, windows, strict=True))
            for key in read.keys() - needed:
                del read[key]
            return tuple(self._sum(one, read[_key(one.measured)]) if isinstance(one, _Closed) else one for one in parts)

        return tuple(needed[key] for key in missing), summed

    def _in_memory(self, place: int, closed: "EmptyMeasurement | _Closed") -> ClosedMeasurement | None:
        """A measurement that needs no reading."""
        if isinstance(closed, EmptyMeasurement):
            return closed
        if self._has_joined(closed.measured):
            return None
        if place < len(self._closed) and place in self._sums:
            return self._sums[place]
        window = self._summed_window(closed.measured)
        return None if window is None else self._sum(closed, window)

    def _has_joined(self, measured: Measured) -> bool:
        """A late result has joined it, which no sum in memory has."""
        return not self._joined.isdisjoint(range(measured.first, measured.last + 1))

    def _cut(self, measured: Measured, progress: str = "") -> "EmptyMeasurement | _Closed":
        if measured.last < measured.first:
            return EmptyMeasurement(measured)
        settings = self._settings[self._place(measured.last)][1]
        if measured.mean_rate is not None:
            settings = settings.with_changing_rate(measured.mean_rate)
        return _Closed(measured, progress, settings, *self._span_ns(measured.first, measured.last))

    def _summed_window(self, measured: Measured) -> Window | None:
        """The open window, if it is of this measurement."""
        window = self._window
        if window is not None and (window.first, window.subintervals) == (measured.first, measured.subintervals):
            return window
        return None

    def _sum(self, closed: _Closed, window: Window) -> SummedMeasurement:
        """With its sum, and the findings of its checks."""
        measurement = window.measurement()
        focuses = [check.focus for check in closed.measured.checks]
        slowed = slowed_instances(measurement, closed.settings, focuses)
        values = observe_measurement(measurement, focuses) | self._of_connectors(closed.measured, focuses)
        measured = closed.measured.checked(values, slowed, _lacking_hosts(measurement, focuses))
        if gaps := self._gaps(measured):
            measured = replace(measured, findings=(*measured.findings, gaps))
        why = "; ".join(str(finding) for finding in measured.findings) or closed.progress or "as planned"
        return SummedMeasurement(measured, why, closed.settings, closed.start_ns, closed.end_ns, measurement)

    def _of_connectors(self, measured: Measured, focuses: Iterable[Focus]) -> dict[Focus, dict[str, float | None]]:
        """The focus metrics that are connectors', over the measurement; None is blank."""
        values_of: dict[Focus, dict[str, float | None]] = {}
        for focus in {focus for focus in focuses if focus.connector}:
            rows = self._rows(focus, measured)
            names = dict.fromkeys(name for row in rows for name in row)
            values_of[focus] = {name: value_of([row[name] for row in rows if name in row]) for name in names}
        return values_of

    def _rows(self, focus: Focus, measured: Measured) -> list[Mapping[str, MetricSample]]:
        numbers = set(range(measured.first, measured.last + 1)).difference(measured.set_aside)
        return [row for number, row in self._connectors.get(focus, {}).items() if number in numbers]

    def _gaps(self, measured: Measured) -> Finding | None:
        """That a connector that control looked at gave no values for some of the measurement's subintervals."""
        details = []
        for focus in self._connectors:
            rows = self._rows(focus, measured)
            blank = sum(1 for row in rows if any(sample.per <= 0 for sample in row.values()))
            if blank:
                details.append(f"{focus.metric}: {blank} of {len(rows)} subintervals")
        return Finding(Reason.CONNECTOR_GAPS, "; ".join(details)) if details else None

    def _add_to_window(self, interval: MergedSubinterval, phase: Phase) -> None:
        if phase is Phase.DISTURBED:
            self._set_aside(interval)
        elif phase is not Phase.RUN:
            self._window = None if phase is Phase.WARMUP else self._window
        elif self._window is not None and self._window.fits(interval):
            self._window.add(interval)
        else:
            self._window = Window(interval.layout)
            self._window.add(interval)

    def _set_aside(self, interval: MergedSubinterval) -> None:
        if self._window is not None and self._window.fits(interval):
            self._window.set_aside(interval)
        else:
            self._window = None

    def _place(self, number: int) -> int:
        """Where the settings stand that were in force at the end of a subinterval; the oldest for what was before."""
        return max(bisect_right(self._settings, number, key=lambda entry: entry[0]) - 1, 0)

    def _forget(self, may_end: Iterable[int]) -> None:
        """Keep the settings that a measurement to come may need; an edit in every subinterval makes many."""
        needed = sorted({len(self._settings) - 1, *map(self._place, may_end)})
        if len(needed) < len(self._settings):
            self._settings = [self._settings[place] for place in needed]

    def _span_ns(self, first: int, last: int) -> tuple[int, int]:
        """When the subintervals `first` to `last` began and ended."""
        start_ns = self._first_ns + first * self._length_ns
        newest = last == self._newest
        return start_ns, self._end_ns if newest else self._first_ns + (last + 1) * self._length_ns


def _key(measured: Measured) -> _Key:
    return measured.first, measured.last, measured.set_aside


def real_length_ns(closed: MergedSubinterval, planned_ns: int) -> int:
    """As `length_s` of `all` says it: less than was planned where a halt cut the subinterval short.

    It is no longer, though a host's result may cover several.
    """
    if not closed.hosts:
        return planned_ns
    longest_ns = round(planned_ns * (1 + MOST_STEERED))
    return min(round(float(closed.merged.presence.length_s[ALL_ROW]) * 1e9), longest_ns)


def _lacking_hosts(measurement: Measurement, focuses: Iterable[Focus]) -> dict[Focus, dict[str, str]]:
    """Of each focus, the instances that lack hosts, with what they are of."""
    rollups, presence = measurement.layout.rollups, measurement.merged.presence
    return {
        focus: {one.name: of for one in rollups.type(focus.rollup).instances if (of := presence.lacking(one.row))}
        for focus in {*focuses}
    }
