"""Whether a connector's own stamps of a gather can be used for rates, and where its clock is against the controller's.

Rule: pure; the controller's stamps are handed in. Stamps that something speaks against are never used, neither for the
rates up to this gather nor for those from it on; but for a clock that was stepped, which has a new time to go by.
"""

from typing import Final

from ...protocol.connector import Readings
from ..hosts.clock_offset import OffsetEstimator
from .gathered import StampFault

FASTEST: Final = 1 + 1e-3  # the rate of a connector's clock against ours, and some


class ConnectorClock:
    """State: where the clock of one connector is."""

    def __init__(self) -> None:
        self._offset = OffsetEstimator()

    def fault(self, readings: Readings, before: Readings | None, sent_ns: int, arrived_ns: int) -> StampFault:
        """The fault of the stamps of a gather, or that they have none. `before`: the one before it."""
        start_ns, end_ns = readings.start_ns, readings.end_ns
        if start_ns == 0 and end_ns == 0:
            return StampFault.ABSENT
        if end_ns < start_ns:
            return StampFault.BACKWARDS
        if end_ns - start_ns > (arrived_ns - sent_ns) * FASTEST:
            return StampFault.TOO_LONG
        jumped = self._offset.jump
        self._offset.add(sent_ns, start_ns, end_ns, arrived_ns)
        if any(stamp_ns > end_ns for stamp_ns in readings.stamps.values()):
            return StampFault.AHEAD
        if before is not None and _went_back(before, readings):
            return StampFault.BACKWARDS
        return StampFault.JUMPED if self._offset.jump is not jumped else StampFault.NONE

    def span(self, readings: Readings, fault: StampFault, sent_ns: int, arrived_ns: int) -> tuple[int, int]:
        """(start, end) of a gather on the controller's clock: by its stamps, else request and answer."""
        if fault in (StampFault.ABSENT, StampFault.TOO_LONG) or readings.end_ns < readings.start_ns:
            return sent_ns, arrived_ns
        offset_ns = self._offset.at(arrived_ns).offset_ns
        start_ns, end_ns = (
            min(max(at - offset_ns, sent_ns), arrived_ns) for at in (readings.start_ns, readings.end_ns)
        )
        return start_ns, end_ns


def _went_back(before: Readings, now: Readings) -> bool:
    """Stamps of a whole gather grow. An element type's own may stay, where nothing was counted anew."""
    return now.end_ns <= before.end_ns or any(now.stamps.get(name, ns) < ns for name, ns in before.stamps.items())
