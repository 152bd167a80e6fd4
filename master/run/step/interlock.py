"""The timing of each subinterval on the controller: when results and acknowledgements arrived, how far apart the hosts'
clocks are, and the findings on the step's rows that follow.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ...hosts.clock_offset import Jump
from ...hosts.driver import Driver
from ...output.record_types import HostTiming, Timing
from ...rollup.merge import MergedSubinterval
from ...rollup.validity import ScopedFinding
from ...verdicts import Finding, Reason
from .step_types import ClosedSubinterval

SLOW_CONTROLLER: Final = 0.5  # of a subinterval at work, or stalled
UNCERTAIN_CLOCK: Final = 0.01  # of a subinterval: error bound of an offset
BEFORE_NS: Final = 10**9  # of the start: a step noticed so late is shown beside the subinterval


@dataclass(frozen=True, slots=True)
class Moments:
    """Instants of one subinterval, in nanoseconds of the controller's clock."""

    start: int  # as planned
    end: int
    all_in: int  # the last thing came that barrier 1 waited for: a result, a loss, or its deadline
    barrier_1: int  # closed: all is merged
    decided: int
    arrived: Mapping[Driver, int]  # each host's result
    acknowledged: Mapping[Driver, int]  # each host's answer to what followed


def timing_of(interval: MergedSubinterval, at: Moments, stalled_ns: int, cpu_ns: int) -> Timing:
    """Durations count from the subinterval's planned end. `stalled_ns`, `cpu_ns`: as of controller_lag.py."""
    hosts = {}
    for driver, arrived_ns in at.arrived.items():
        jump = driver.clock.jump
        stepped = jump if jump and jump.noticed_ns >= at.start - BEFORE_NS else None
        result, offset = interval.results[driver.name], driver.clock.at(arrived_ns)
        began, ended = (driver.clock.to_controller(t) for t in (result.start_ns, result.start_ns + result.length_ns))
        answered = at.acknowledged.get(driver)
        hosts[driver.name] = HostTiming(
            send_up_ns=arrived_ns - ended,
            acknowledgement_ns=None if answered is None else answered - at.decided,
            offset_ns=offset.offset_ns,
            error_bound_ns=offset.bound_ns,
            rate_ppm=offset.rate_ppm,
            start_skew_ns=began - at.start,
            boundary_skew_ns=ended - at.end,
            jump_ns=stepped.by_ns if stepped else 0,
        )
    barrier_2_ns = max(at.acknowledged.values(), default=at.decided)
    return Timing(
        barrier_1_ns=at.barrier_1 - at.end,
        processing_ns=at.decided - at.all_in,
        barrier_2_ns=barrier_2_ns - at.decided,
        left_ns=2 * at.end - at.start - barrier_2_ns,
        hosts=hosts,
        stalled_ns=stalled_ns,
        cpu_ns=cpu_ns,
    )


class InterlockChecks:
    """Holds one step's findings about timing, each once."""

    def __init__(self, length_ns: int, event: Callable[[str, str, str], None]) -> None:
        """`event` gets host, kind and text."""
        self._length_ns = length_ns
        self._event = event
        self._overdue_ns: list[int] = []  # by how much decisions are late, one after the other
        self._reported: set[tuple[Reason, str]] = set()  # with the host, "" for the controller
        self._known: dict[Driver, Jump | None] = {}  # of its clock, when its start was placed
        self.findings: list[ScopedFinding] = []

    def placed(self, driver: Driver) -> None:
        """A host's start is placed by what is known of its clock now."""
        self._known[driver] = driver.clock.jump

    def check(self, closed: ClosedSubinterval, part: Iterable[Driver]) -> None:
        """One more subinterval. `part`: the hosts that take part in it, also those that are late."""
        self._check_decision(closed)
        self._check_controller(closed)
        for host, timing in closed.timing.hosts.items():
            self._check_bound(host, timing, closed.number)
        for driver in part:
            if (jump := driver.clock.jump) is not None and jump is not self._known.get(driver):
                self._stepped(driver.name, jump, closed)

    def _check_decision(self, closed: ClosedSubinterval) -> None:
        """Whether control decided before the next subinterval had ended; an event for the first of several, and the
        last."""
        if closed.overdue_ns <= 0:
            if self._overdue_ns[1:]:
                words = f"{len(self._overdue_ns)} decisions were late, by up to {max(self._overdue_ns) / 1e9:.2f} s"
                self._event("", "late_decision", f"in time again since subinterval {closed.number}; {words}")
            self._overdue_ns.clear()
            return
        stalled_ns = closed.timing.stalled_ns
        words = f"{closed.overdue_ns / 1e9:.2f} s too late in subinterval {closed.number}"
        if stalled_ns:
            words += f"; the controller was stalled for {stalled_ns / 1e9:.2f} s"
        if closed.decision.edits:
            finding = Finding(Reason.LATE_DECISION, words)
            self.findings.append(ScopedFinding(finding, since=closed.number, until=closed.number + 1))
        if not self._overdue_ns:
            self._event("", "late_decision", f"the decision came {words}")
        self._overdue_ns.append(closed.overdue_ns)

    def _check_controller(self, closed: ClosedSubinterval) -> None:
        """Whether the controller had time to spare."""
        timing = closed.timing
        worked = {
            "from the last result to the decision": timing.processing_ns,
            "of CPU time": timing.cpu_ns,
            "busy or stopped": timing.stalled_ns,
        }
        how, worked_ns = max(worked.items(), key=lambda item: item[1])
        if worked_ns > SLOW_CONTROLLER * self._length_ns and self._is_new(Reason.SLOW_CONTROLLER):
            words = f"{worked_ns / 1e9:.2f} s {how}, of {self._length_ns / 1e9:g} s in subinterval {closed.number}"
            self.findings.append(ScopedFinding(Finding(Reason.SLOW_CONTROLLER, words)))
            self._event("", "slow_controller", f"the controller took {words}")

    def _check_bound(self, host: str, timing: HostTiming, number: int) -> None:
        """Whether a host's clock is known well enough."""
        if timing.error_bound_ns > UNCERTAIN_CLOCK * self._length_ns and self._is_new(Reason.CLOCK_UNCERTAIN, host):
            words = f"{host}: +-{timing.error_bound_ns / 1e6:.1f} ms"
            self.findings.append(ScopedFinding(Finding(Reason.CLOCK_UNCERTAIN, words), host, since=number))

    def _stepped(self, host: str, jump: Jump, closed: ClosedSubinterval) -> None:
        """A host's clock was stepped since its start was placed."""
        if self._is_new(Reason.CLOCK_STEPPED, host):
            since, noticed = (
                max(closed.number + (at_ns - closed.start_ns) // self._length_ns, 0)
                for at_ns in (jump.since_ns, jump.noticed_ns)
            )
            words = f"by {jump.by_ns / 1e6:+,.3f} ms, detected in subinterval {noticed}"
            self.findings.append(ScopedFinding(Finding(Reason.CLOCK_STEPPED, f"{host}: {words}"), host, since=since))
            self._event(host, "clock_stepped", f"its clock was stepped {words}")

    def _is_new(self, reason: Reason, host: str = "") -> bool:
        """Whether it is found for the first time."""
        new = (reason, host) not in self._reported
        self._reported.add((reason, host))
        return new
