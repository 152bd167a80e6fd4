"""What is kept of one step while it runs: rows on disk, the measurement's window, and lines for whoever watches.

Rule: a measurement is summed while the step runs, from the subintervals that were announced as `run`; where control
chose another window afterwards, it is summed again from histograms.sqlite when the step has ended. Either way it is the
same sum, and while the step runs nothing here waits for the disk.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Literal

import numpy as np

from ...protocol.counters import Count
from ...protocol.messages import Result
from ...protocol.parameters import MAX
from ..control.decision import Measured
from ..control.observe import observe_measurement
from ..control.phase import Phase
from ..live.reports import Latency, Steadiness, Subinterval, Watcher
from ..live.reports import Remark as Remarked
from ..output.csv_text import utc
from ..output.records import Event, SubintervalRecord, WindowRecord
from ..plan.model import Step
from ..rollup.figures import Figures
from ..rollup.merge import Interval
from ..rollup.metrics import column
from ..rollup.settings import Settings
from ..rollup.validity import Outside
from ..rollup.window import Measurement, Window
from ..verdicts import Finding, Reason
from .keeper import Closed
from .run_recorder import StepRecorder
from .slo_alerts import Alarms

SLOW_CONTROLLER: Final = 0.5  # of a subinterval at work, or standing still
UNCERTAIN_CLOCK: Final = 0.01  # of a subinterval: error bound of an offset
ALL_ROW: Final = 0  # `all=all` is every run's first row


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """A measurement that closed."""

    measured: Measured
    measurement: Measurement | None  # None: it has no subinterval
    settings: Settings | None  # in force at its end; None where it has no subinterval
    start_utc_ns: int | None
    end_utc_ns: int | None


class Clock:
    """The controller's clock as UTC: anchored once, so that a run's stamps never jump."""

    def __init__(self, utc_ns: int, now_ns: int) -> None:
        self._ahead_ns = utc_ns - now_ns

    def utc_ns(self, controller_ns: int) -> int:
        return controller_ns + self._ahead_ns


class StepKeeper:
    """Remembers one step's window and what was taken of it. Fills `step.Keeper`."""

    def __init__(
        self,
        step: Step,
        recorder: StepRecorder,
        watcher: Watcher,
        clock: Clock,
        now_ns: Callable[[], int],
        run_remaining_s: Callable[[float], float],
    ) -> None:
        self._step = step
        self._recorder = recorder
        self._watcher = watcher
        self._clock = clock
        self._now_ns = now_ns
        self._run_remaining_s = run_remaining_s
        self._alarms = Alarms(step, self.event)
        self._settings: list[tuple[int, Settings]] = []  # from which on; those that a window to come may end in
        self._window: Window | None = None
        self._window_first = 0
        self._first_utc_ns = 0  # the start of subinterval 0
        self._end_utc_ns = 0  # of the newest subinterval, which a halt may have cut short
        self._running = 0
        self.taken: list[Taken] = []
        self._unsummed: list[tuple[int, Measured, str]] = []  # place in `taken`, and what it is of
        self.outside: list[Outside] = []
        self._clocks: set[tuple[Reason, str]] = set()  # what was found of which host's clock

    def closed(self, closed: Closed) -> None:
        start_utc_ns = self._clock.utc_ns(closed.start_ns)
        length_ns = round(self._step.subinterval_s * 1e9)
        self._first_utc_ns = start_utc_ns - closed.number * length_ns
        self._end_utc_ns = start_utc_ns + _real_length_ns(closed.interval)
        self._running = closed.number + 1
        settings = closed.settings
        if not self._settings or self._settings[-1][1] is not settings:
            self._settings.append((closed.number, settings))
        early = [m for m in closed.decision.measured if m.last < closed.number]
        for measured in early:
            self._take(measured, closed.decision.say)
        self._add_to_window(closed.interval, closed.phase)
        figures = Figures(closed.interval.merged, settings.paced)
        record = SubintervalRecord(closed.interval, figures, settings, str(closed.phase), start_utc_ns, closed.timing)
        self._recorder.subinterval(record)
        for measured in closed.decision.measured:
            if measured not in early:
                self._take(measured, closed.decision.say)
        self._recorder.rows(closed.decision.rows)
        if closed.decision.steady is not None:
            self._recorder.document("steady.json", closed.decision.steady)
        for alert in closed.decision.alerts:
            self._alarms.ring(alert)
        self._forget(closed.may_end)
        self._judge_controller(closed, length_ns)
        self._judge_clocks(closed, length_ns)
        self._watcher.show(self._line(closed, settings, figures))

    def cut_short(self, measured: Measured) -> None:
        self._take(measured, "")

    async def ended(self) -> None:
        """The step has ended: nothing of it goes on, and every measurement is summed. Raises OutputError."""
        await self._alarms.close()
        await self.sum_up()

    async def sum_up(self) -> None:
        """Every measurement gets its sum. Raises OutputError."""
        for place, measured, say in self._unsummed:
            summed = await self._recorder.summed(measured.first, measured.last)
            self.taken[place] = self._summed(self.taken[place], summed, say)
        self._unsummed.clear()

    def late(self, host: str, result: Result) -> None:
        self._recorder.late(host, result)

    def event(self, host: str, kind: str, text: str) -> None:
        utc_ns = self._clock.utc_ns(self._now_ns())
        self._recorder.event(Event(utc_ns, kind, text, self._step.number, self._running, host))
        self._watcher.show(Remarked(utc(utc_ns), host, text))

    def _settings_at(self, number: int) -> Settings:
        """What was in force at the end of a subinterval."""
        return self._settings[self._place(number)][1]

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
        length_ns = round(self._step.subinterval_s * 1e9)
        start = self._first_utc_ns + first * length_ns
        newest = last == self._running - 1
        return start, self._end_utc_ns if newest else self._first_utc_ns + (last + 1) * length_ns

    def _add_to_window(self, interval: Interval, phase: Phase) -> None:
        if phase is not Phase.RUN:
            self._window = None if phase is Phase.WARMUP else self._window
        elif self._window is not None and self._window.fits(interval):
            self._window.add(interval)
        else:
            self._window = Window(interval.layout)
            self._window_first = interval.subinterval
            self._window.add(interval)

    def _take(self, measured: Measured, say: str) -> None:
        """Close a measurement, and say which subintervals it is of."""
        if measured.last < measured.first:
            self.taken.append(Taken(measured, None, None, None, None))
            return
        taken = Taken(measured, None, self._settings_at(measured.last), *self._utc_of(measured.first, measured.last))
        window, whole = self._window, (measured.first, measured.last - measured.first + 1)
        if window is not None and (self._window_first, window.subintervals) == whole:
            taken = self._summed(taken, window, say)
        else:
            self._unsummed.append((len(self.taken), measured, say))  # once the step has ended: the disk may be slow
        self.taken.append(taken)

    def _summed(self, taken: Taken, window: Window, say: str) -> Taken:
        """The measurement with its sum, and its row of windows.csv."""
        measurement = window.measurement()
        measured = taken.measured
        measured = measured.checked(observe_measurement(measurement, [check.focus for check in measured.checks]))
        why = "; ".join(str(finding) for finding in measured.findings) or say or "as planned"
        assert taken.start_utc_ns is not None and taken.end_utc_ns is not None
        span = (measured.first, measured.last, taken.start_utc_ns, taken.end_utc_ns)
        self._recorder.window(WindowRecord("measurement", *span, len(measurement.hosts), why))
        return replace(taken, measured=measured, measurement=measurement)

    def _judge_controller(self, closed: Closed, length_ns: int) -> None:
        """The controller's own work, as findings of the step: that it was busy is said once."""
        timing, where = closed.timing, f"in subinterval {closed.number}"
        stood = f"the controller stood still for {timing.stood_ns / 1e9:.2f} s" if timing.stood_ns else ""
        if closed.overdue_ns > 0:
            words = f"{closed.overdue_ns / 1e9:.2f} s too late {where}{'; ' if stood else ''}{stood}"
            finding = Finding(Reason.LATE_DECISION, words)
            self.outside.append(Outside(finding, since=closed.number, until=closed.number + 1))
            self.event("", "late_decision", f"the decision came {words}")
        said = {outside.finding.reason for outside in self.outside if not outside.host}
        worked = {
            "from the last result to the decision": timing.processing_ns,
            "of CPU time": timing.cpu_ns,
            "busy or stopped": timing.stood_ns,
        }
        how, worked_ns = max(worked.items(), key=lambda item: item[1])
        if worked_ns > SLOW_CONTROLLER * length_ns and Reason.SLOW_CONTROLLER not in said:
            words = f"{worked_ns / 1e9:.2f} s {how}, of {length_ns / 1e9:g} s {where}"
            self.outside.append(Outside(Finding(Reason.SLOW_CONTROLLER, words)))
            self.event("", "slow_controller", f"the controller took {words}")

    def _judge_clocks(self, closed: Closed, length_ns: int) -> None:
        """The hosts' clocks, as findings of the step; of each host once."""
        for host, timing in closed.timing.hosts.items():
            if (
                timing.error_bound_ns > UNCERTAIN_CLOCK * length_ns
                and (Reason.CLOCK_UNCERTAIN, host) not in self._clocks
            ):
                self._clocks.add((Reason.CLOCK_UNCERTAIN, host))
                words = f"{host}: +-{timing.error_bound_ns / 1e6:.1f} ms"
                self.outside.append(Outside(Finding(Reason.CLOCK_UNCERTAIN, words), host, since=closed.number))
            if timing.jump_ns and (Reason.CLOCK_STEPPED, host) not in self._clocks:
                self._clocks.add((Reason.CLOCK_STEPPED, host))
                words = f"by {timing.jump_ns / 1e6:+,.3f} ms, noticed in subinterval {closed.number}"
                since = max(closed.number + timing.jumped_since_ns // length_ns, 0)
                self.outside.append(Outside(Finding(Reason.CLOCK_STEPPED, f"{host}: {words}"), host, since=since))
                self.event(host, "clock_stepped", f"its clock was stepped {words}")

    def _line(self, closed: Closed, settings: Settings, figures: Figures) -> Subinterval:
        presence = closed.interval.merged.presence
        step = self._step
        remaining_s = max(step.planned_s - (closed.number + 1) * step.subinterval_s, 0.0)
        return Subinterval(
            utc=utc(self._end_utc_ns),
            step=step.name,
            phase=closed.phase,
            number=closed.number,
            target_iops=_target(settings.iops[ALL_ROW]),
            iops=number(figures, "overall_iops"),
            mib_per_s=number(figures, "overall_mib_per_s"),
            service=latency(figures, "overall_service_us"),
            response=latency(figures, "overall_response_us"),
            errors=int(closed.interval.merged.counts[ALL_ROW, Count.ERRORS]),
            hosts_in=int(presence.hosts_in[ALL_ROW]),
            hosts_of=int(presence.hosts_of[ALL_ROW]),
            busy_percent=number(figures, "cpu_busy_percent"),
            busiest_percent=number(figures, "busiest_core_percent"),
            says=closed.decision.says,
            step_remaining_s=remaining_s,
            run_remaining_s=self._run_remaining_s(remaining_s),
            steady=steadiness(closed.decision.steady),
        )


def _real_length_ns(closed: Interval) -> int:
    """As `length_s` of `all` says it: less than was planned where a halt cut the subinterval short."""
    return round(float(closed.merged.presence.length_s[ALL_ROW]) * 1e9)


def _target(setting: str) -> float | Literal["max", "mixed"]:
    """What is shown of `iops_setting`, which is blank where some are paced and some are not."""
    if setting == MAX:
        return "max"
    return float(setting) if setting else "mixed"


def steadiness(block: Mapping[str, Any] | None) -> Steadiness | None:
    """What watchers are shown of steady.json: all but the values."""
    return None if block is None else Steadiness(**{one.name: block[one.name] for one in fields(Steadiness)})


def number(figures: Figures, metric: str, row: int = ALL_ROW) -> float | None:
    """One row's value of a metric; None where the CSV has a blank."""
    value = float(column(figures, metric)[row])
    return None if np.isnan(value) else value


def latency(figures: Figures, prefix: str) -> Latency:
    """`prefix`: "overall_service_us"."""
    return Latency(*(number(figures, f"{prefix}_{name}") for name in ("p50", "p99", "max")))
