"""The offset of a host's monotonic clock from the controller's, with its error bound.

Rule: pure arithmetic on probe stamps handed in. A probe that left at a, was received at b and answered at c (host),
and came back at d says: offset = ((b - a) + (c - d)) / 2, true to within half its round trip without the time that
the host held it, h = ((d - a) - (c - b)) / 2, whatever the path's asymmetry. Between probes the offset moves with the
difference of the two crystals' rates. The rate is taken from two good probes far apart, and is itself only known to
(h1 + h2) / (t2 - t1); until it stands out of that, it is taken as 0.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

CRYSTALS: Final = 100e-6  # two crystals of +-50 ppm
KEPT: Final = 600  # probes: ten minutes of them


@dataclass(frozen=True, slots=True)
class Sample:
    at_ns: int  # controller's clock, the middle of the round trip
    offset_ns: float  # host's clock minus the controller's
    half_trip_ns: float


@dataclass(frozen=True, slots=True)
class Offset:
    """Where a host's clock stands at a given instant of the controller's."""

    offset_ns: int  # host minus controller
    bound_ns: int  # the true offset is no further away than this
    rate_ppm: float  # how fast the host's clock gains on the controller's


class OffsetEstimator:
    """Remembers the probes of one host."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=KEPT)

    def __bool__(self) -> bool:
        return bool(self._samples)

    def add(self, sent_ns: int, received_ns: int, replied_ns: int, arrived_ns: int) -> None:
        """One probe: sent and arrived on the controller's clock, received and replied on the host's."""
        half_trip = max(((arrived_ns - sent_ns) - (replied_ns - received_ns)) / 2, 0.0)
        offset = ((received_ns - sent_ns) + (replied_ns - arrived_ns)) / 2
        self._samples.append(Sample((sent_ns + arrived_ns) // 2, offset, half_trip))

    def rate(self) -> tuple[float, float]:
        """(rate, its error), both as fractions, from the best probe of the older and of the newer half."""
        samples = list(self._samples)
        middle = len(samples) // 2
        if middle == 0:
            return 0.0, CRYSTALS
        old = min(samples[:middle], key=lambda s: s.half_trip_ns)
        new = min(samples[middle:], key=lambda s: s.half_trip_ns)
        error = (old.half_trip_ns + new.half_trip_ns) / max(new.at_ns - old.at_ns, 1)
        rate = (new.offset_ns - old.offset_ns) / max(new.at_ns - old.at_ns, 1)
        if abs(rate) <= error or error >= CRYSTALS:
            return 0.0, min(abs(rate) + error, CRYSTALS)  # nothing but the probes' own noise
        return rate, error

    def at(self, controller_ns: int) -> Offset:
        """The offset at an instant. Raises ValueError if no probe was answered yet."""
        rate, error = self.rate()

        def bound(sample: Sample) -> float:
            return sample.half_trip_ns + error * abs(controller_ns - sample.at_ns)

        best = min(self._samples, key=bound)
        offset = best.offset_ns + rate * (controller_ns - best.at_ns)
        return Offset(round(offset), round(bound(best)), rate * 1e6)

    def to_local(self, controller_ns: int) -> int:
        """An instant of the controller's clock on the host's."""
        return controller_ns + self.at(controller_ns).offset_ns

    def to_controller(self, local_ns: int) -> int:
        """An instant of the host's clock on the controller's."""
        near = self._samples[-1]
        guess = local_ns - round(near.offset_ns)
        return local_ns - self.at(guess).offset_ns
