"""Which hosts take part in a step: those that deliver, those that are late, and those that the step lost.

Rule: a host that misses a barrier still takes part. It is awaited no longer, and is back with its first result that is
in time. A host that has no part in the load any more (it was not ready at the start, or ended by itself) is set aside:
it is commanded, so that it stops with the others, but nothing of it is merged. One that received `go` and is lost
counts as lost in the step.
"""

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from ....protocol.messages import Result, Stopped, StopReason
from ...hosts.driver import Driver
from ...rollup.validity import ScopedFinding
from ...verdicts import Finding, Reason, Severity
from .step_context import StepContext

LONG_STALL_NS: Final = 10**9  # the controller, for so long that leases were not renewed
ENDED_EARLY: Final = "it ended the step by itself"  # its `stopped` says why


@dataclass(slots=True)
class _Lateness:
    """Subintervals without a host, since no result of it came in time."""

    since: int
    why: str
    until: int | None = None  # the last of them; None: it is not back
    joined: int = 0  # of how many the results came in the end

    def finding(self, host: str) -> ScopedFinding:
        finding = Finding(Reason.HOST_LATE, f"{host}: {self.why}", Severity.PARTIAL)
        return ScopedFinding(finding, host, since=self.since, until=self.until)


@dataclass(frozen=True, slots=True)
class _Loss:
    """A host that took part and left the step, even if it comes back."""

    since: int  # the first subinterval that is without it
    why: str
    provisional: bool = False  # `stopped` or the loss of the host will state the reason


class StepHosts:
    """State: who takes part, who of these is late, and who is lost."""

    def __init__(self, drivers: Iterable[Driver], context: StepContext) -> None:
        """`drivers`: all that are to go."""
        self._progress = context.progress
        self._lag = context.fleet.lag
        self._report = context.recorder.event
        self.part = tuple(drivers)
        self.live: set[Driver] = set()  # barrier 1 waits for their results
        self.late: set[Driver] = set()  # missed a barrier, and are not back
        self.aside: set[Driver] = set()  # commanded, not merged
        self.awaited: set[Driver] = set()  # of the live: those whose result is not in yet
        self.newest: dict[Driver, Result] = {}  # the last result of each, merged or not
        self.names = frozenset(driver.name for driver in self.part)
        self._losses: dict[Driver, _Loss] = {}
        self._late: list[tuple[Driver, _Lateness]] = []
        self._words: dict[Driver, str] = {}  # of the first workload thread that died

    def in_order(self, drivers: Container[Driver]) -> list[Driver]:
        """These drivers in the plan's order, as a set has none: what follows is the same in every run."""
        return [driver for driver in self.part if driver in drivers]

    @property
    def taking_part(self) -> frozenset[str]:
        """The names of those that take part, late or not."""
        return frozenset(driver.name for driver in self.live | self.late)

    @property
    def commanded(self) -> set[Driver]:
        return self.live | self.late | self.aside

    def begin(self, drivers: Iterable[Driver]) -> None:
        """These are ready, and begin."""
        self.live.update(drivers)

    def await_live(self, but: Container[Driver]) -> None:
        """Barrier 1 waits for those that deliver, `but` for these."""
        self.awaited = {driver for driver in self.live if driver not in but}

    def await_late(self) -> None:
        """Nobody else is left to wait for."""
        self.awaited = set(self.late)

    def await_too(self, driver: Driver) -> None:
        """It may be back in this subinterval."""
        self.awaited.add(driver)

    def is_in(self, driver: Driver) -> None:
        """Its result is here: it is awaited no longer."""
        self.awaited.discard(driver)

    def note_result(self, driver: Driver, result: Result) -> None:
        """It sent a result, merged or not."""
        self.newest[driver] = result

    def ended(self, names: Container[str]) -> None:
        """Their last results are merged, where they had to be the last."""
        self.live = {driver for driver in self.live if driver.name not in names}

    def leave(self, driver: Driver) -> None:
        """Remove a host from the step."""
        for those in (self.live, self.late, self.aside, self.awaited):
            those.discard(driver)

    def set_aside(self, driver: Driver) -> None:
        """Continue to send a host commands, but merge no more of its results."""
        self.leave(driver)
        self.aside.add(driver)

    def not_ready(self, driver: Driver, why: str) -> None:
        """It did not begin with the others: the step is without it."""
        self._late.append((driver, _Lateness(0, why)))
        self._report(driver.name, "late", why)
        self.set_aside(driver)

    def is_late(self, driver: Driver, k: int) -> None:
        """It missed barrier 1 of subinterval `k`."""
        why = f"no result of subinterval {k} in time"
        self._late.append((driver, _Lateness(k, why)))
        self._report(driver.name, "late", why)
        self.leave(driver)
        self.late.add(driver)

    def is_back(self, driver: Driver, k: int) -> None:
        """Its result of subinterval `k` is in time."""
        (lateness,) = (one for late, one in self._late if late is driver and one.until is None)
        lateness.until = k - 1
        words = f"{k - lateness.since} were decided without it, {lateness.joined} of these came late and are in"
        self._report(driver.name, "back", f"in time again since subinterval {k}; {words}")
        self.late.discard(driver)
        self.live.add(driver)

    def came_late(self, driver: Driver) -> None:
        """A late result of it was stored."""
        lateness = next(one for late, one in reversed(self._late) if late is driver)
        lateness.joined += 1

    def ended_early(self, driver: Driver, subinterval: int) -> None:
        """It sent a last result that was not asked for: cut somewhere, and so no subinterval of the others."""
        self._losses.setdefault(driver, _Loss(subinterval, ENDED_EARLY, provisional=True))
        self._report(driver.name, "ended", f"{ENDED_EARLY} in subinterval {subinterval}")
        self.set_aside(driver)

    def died(self, driver: Driver, words: str) -> None:
        """A workload thread of the host died, with these words."""
        self._words.setdefault(driver, words)

    def has_stopped(self, driver: Driver, stopped: Stopped, since: int, is_in: bool) -> None:
        """It sent `stopped`; subintervals from `since` on are without it. `is_in`: the one that is awaited is not."""
        if stopped.reason is not StopReason.COMMANDED:
            self.lose(driver, self._why_stopped(driver, stopped.reason), since, "ended")
        elif not is_in:
            self.leave(driver)

    def lose(self, driver: Driver, why: str, since: int, kind: str = "lost") -> None:
        """The host is lost, and subintervals from `since` on are without it. It counts if it was sent `go`, even if
        nobody waits for it any more."""
        if driver in self.part:
            before = self._losses.get(driver)
            if before is None or before.provisional:
                self._losses[driver] = _Loss(before.since if before else since, why)
        self._report(driver.name, kind, why)
        self.leave(driver)

    def findings(self) -> Iterator[ScopedFinding]:
        """A finding for each time that a host was late, and for each host that the step lost."""
        for driver, lateness in self._late:
            yield lateness.finding(driver.name)
        for driver in self.in_order(self._losses):
            loss = self._losses[driver]
            yield ScopedFinding(Finding(Reason.HOST_LOST, f"{driver.name}: {loss.why}"), driver.name, since=loss.since)

    def _why_stopped(self, driver: Driver, reason: StopReason) -> str:
        """A step that a host ended by itself, for whichever reason."""
        if reason is not StopReason.LEASE:
            return ": ".join(filter(None, ("a workload thread died", self._words.get(driver))))
        stalled_ns = max(self._progress.longest_stall_ns, self._lag.stalled_ns())
        still = f" while the controller was stalled for {stalled_ns / 1e9:.1f} s" if stalled_ns >= LONG_STALL_NS else ""
        return f"its lease ran out{still}"
