"""The boundaries of one step on each host's own clock: places them, and checks each result against its place.

Rule: subintervals follow one another without a gap, and each ends where it was placed, or one length after the one
before if the host did not get the place in time. A result that covers several, since the engine had no free buffer,
ends where the last of them ends. One that is placed otherwise is a protocol error: its rates would be of another
length.
"""

from typing import Final

from ....protocol.messages import Result
from ...hosts.driver import Driver

MOST_STEERED: Final = 0.001  # of a subinterval: how far a boundary is moved to follow a host's clock


class Boundaries:
    """Holds one step's; all in nanoseconds of each host's clock."""

    def __init__(self, length_ns: int) -> None:
        self._length_ns = length_ns
        self._most = round(length_ns * MOST_STEERED)
        self._newest: dict[Driver, int] = {}  # that was placed
        self._ends: dict[Driver, dict[int, int]] = {}  # by subinterval: those that no result has confirmed
        self._next: dict[Driver, int] = {}  # where the next result has to begin
        self._last: dict[Driver, int] = {}  # the subinterval of the result before it

    def begin(self, driver: Driver, start_ns: int) -> None:
        """The step starts there; the ends of its first two subintervals follow from it."""
        self._next[driver] = start_ns
        self._last[driver] = -1
        self._newest[driver] = start_ns + 2 * self._length_ns
        self._ends[driver] = {}

    def has(self, driver: Driver) -> bool:
        """Whether the step began on this host."""
        return driver in self._newest

    def place(self, driver: Driver, subinterval: int, wanted_ns: int) -> int:
        """Place the end of the next subinterval: at `wanted_ns`, or as near to it as is allowed; returns the place."""
        even = self._newest[driver] + self._length_ns
        placed = min(max(wanted_ns, even - self._most), even + self._most)
        self._newest[driver] = self._ends[driver][subinterval] = placed
        return placed

    def against(self, driver: Driver, result: Result) -> str:
        """Why this result, the host's next, is not of the subinterval that was placed; "" if it is.

        The step's last may have been cut, by a halt.
        """
        start, end, expected = result.start_ns, result.start_ns + result.length_ns, self._next[driver]
        covered = result.subinterval - self._last[driver]
        if covered < 1:
            return f"it came after that of subinterval {self._last[driver]}"
        nominal, most = expected + covered * self._length_ns, covered * self._most
        ends = self._ends[driver]
        placed = ends.get(result.subinterval, nominal)
        for passed in [one for one in ends if one <= result.subinterval]:
            del ends[passed]
        self._next[driver], self._last[driver] = end, result.subinterval
        if abs(start - expected) > self._most:
            return f"it begins {(start - expected) / 1e6:+.3f} ms from the end of the one before"
        if end > max(placed, nominal) + most or (
            end < min(placed, nominal) - most and not (result.last and end >= start)
        ):
            return f"its length is {result.length_ns / 1e9:.6f} s, not {(placed - expected) / 1e9:.6f} s as placed"
        return ""
