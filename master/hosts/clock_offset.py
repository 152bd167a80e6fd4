"""The offset of a host's monotonic clock from the controller's, with an error bound that holds.

Rule: pure arithmetic on probe stamps handed in. A probe that left at a, was received at b and answered at c (host),
and came back at d says: offset = ((b - a) + (c - d)) / 2, true to within half its round trip without the time that
the host held it, h = ((d - a) - (c - b)) / 2, whatever the path's asymmetry. So a probe is an interval, not a point.

Between probes the offset moves with the difference of the two clocks' rates, by no more than FASTEST: a crystal is
off by tens of ppm, and an NTP daemon corrects a clock by up to 500 ppm, and changes that at any time. The offset
therefore lies in the intersection of all intervals so far, each widened by FASTEST times its age. That needs no
constant rate, and is kept as two numbers. A probe whose interval does not meet the intersection proves that the clock
was stepped (a suspended virtual machine, a migration) or slewed faster: all older probes are then discarded.

The estimate within the intersection follows the rate between good probes of the last two minutes, the least round
trip of each QUARTER; until the rate stands out of those probes' own error, it is taken as 0.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

FASTEST: Final = 500e-6  # the largest difference of two clocks' rates that is no step
QUARTER_NS: Final = 15 * 10**9  # of each such stretch the best probe is kept
QUARTERS: Final = 8  # two minutes of them


@dataclass(frozen=True, slots=True)
class OffsetSample:
    at_ns: int  # controller's clock, the middle of the round trip
    offset_ns: float  # host's clock minus the controller's
    half_trip_ns: float


@dataclass(frozen=True, slots=True)
class Offset:
    """Where a host's clock stands at a given instant of the controller's."""

    offset_ns: int  # host minus controller
    bound_ns: int  # the true offset is no further away than this, unless the clock was stepped since the last probe
    rate_ppm: float  # how fast the host's clock gains on the controller's


@dataclass(frozen=True, slots=True)
class Jump:
    """A probe contradicted those before it."""

    noticed_ns: int  # controller's clock
    by_ns: int  # what the offset moved beyond what FASTEST allows; at least so much
    since_ns: int  # controller's clock, the newest probe that agreed: it was not stepped before


class OffsetEstimator:
    """State: where one host's clock can be, and a few good probes. Every call costs constant time."""

    def __init__(self) -> None:
        self.jump: Jump | None = None  # the newest
        self._best: deque[OffsetSample] = deque(maxlen=QUARTERS)  # of each quarter, ascending
        self._at_ns = 0  # the newest probe
        self._low = self._high = 0.0  # the true offset at that instant lies between them
        self._line = (0, 0.0, 0.0)  # instant, offset, rate: where the estimate comes from

    def __bool__(self) -> bool:
        return bool(self._best)

    def add(self, sent_ns: int, received_ns: int, replied_ns: int, arrived_ns: int) -> None:
        """One probe: sent and arrived on the controller's clock, received and replied on the host's."""
        half_trip = max(((arrived_ns - sent_ns) - (replied_ns - received_ns)) / 2, 0.0)
        # The path alone bounds the offset; the time that the host held the probe lets the clocks drift apart.
        half_trip += FASTEST * (replied_ns - received_ns + 2 * half_trip) + 1
        offset = ((received_ns - sent_ns) + (replied_ns - arrived_ns)) / 2
        self._narrow(OffsetSample((sent_ns + arrived_ns) // 2, offset, half_trip), arrived_ns)

    def _narrow(self, probe: OffsetSample, noticed_ns: int) -> None:
        low, high = probe.offset_ns - probe.half_trip_ns, probe.offset_ns + probe.half_trip_ns
        if self._best:
            drift = FASTEST * abs(probe.at_ns - self._at_ns)
            earliest, latest = self._low - drift, self._high + drift
            if low > latest or high < earliest:
                by_ns = round(low - latest if low > latest else high - earliest)
                self.jump = Jump(noticed_ns, by_ns, self._at_ns)
                self._best.clear()
            else:
                low, high = max(low, earliest), min(high, latest)
        self._at_ns, self._low, self._high = probe.at_ns, low, high
        if not self._best or probe.at_ns // QUARTER_NS != self._best[-1].at_ns // QUARTER_NS:
            self._best.append(probe)
        elif probe.half_trip_ns <= self._best[-1].half_trip_ns:
            self._best[-1] = probe
        rate, _ = self.rate()
        near = min(self._best, key=lambda one: one.half_trip_ns + FASTEST / 5 * (probe.at_ns - one.at_ns))
        self._line = near.at_ns, near.offset_ns, rate

    def rate(self) -> tuple[float, float]:
        """(rate, its error), both as fractions: between the best probes of the older and of the newer quarters."""
        known = list(self._best)
        middle = len(known) // 2
        if middle == 0:
            return 0.0, FASTEST
        old = min(known[:middle], key=lambda one: one.half_trip_ns)
        new = min(known[middle:], key=lambda one: one.half_trip_ns)
        apart_ns = max(new.at_ns - old.at_ns, 1)
        error = (old.half_trip_ns + new.half_trip_ns) / apart_ns
        rate = (new.offset_ns - old.offset_ns) / apart_ns
        if abs(rate) <= error or error >= FASTEST / 5:
            return 0.0, min(abs(rate) + error, FASTEST)  # nothing but the probes' own error
        return min(max(rate, -FASTEST), FASTEST), error

    def at(self, controller_ns: int) -> Offset:
        """The offset at an instant. Raises ValueError if no probe was answered yet."""
        if not self._best:
            raise ValueError("no probe was answered yet")
        drift = FASTEST * abs(controller_ns - self._at_ns)
        from_ns, offset, rate = self._line
        earliest, latest = self._low - drift, self._high + drift
        # What was known at the newest probe, and from there on the rate.
        newest = min(max(offset + rate * (self._at_ns - from_ns), self._low), self._high)
        estimate = min(max(newest + rate * (controller_ns - self._at_ns), earliest), latest)
        bound = max(latest - estimate, estimate - earliest)
        return Offset(round(estimate), round(bound) + 1, rate * 1e6)

    def to_local(self, controller_ns: int) -> int:
        """An instant of the controller's clock on the host's."""
        return controller_ns + self.at(controller_ns).offset_ns

    def to_controller(self, local_ns: int) -> int:
        """An instant of the host's clock on the controller's."""
        guess = local_ns - self.at(self._at_ns).offset_ns
        return local_ns - self.at(guess).offset_ns
