"""Rejects what a host cannot rightly send, checked without its step's layout: results that match no `go`, too many
events.

Rule: pure; nanoseconds of the controller's clock are handed in. Whatever is implausible is a ProtocolError, and so
costs that host before anything is made of it.
"""

from dataclasses import dataclass
from typing import Final

from ...protocol.counters import most_bytes
from ...protocol.errors import ProtocolError
from ...protocol.messages import MOST_READINGS, Go, Result

MOVED: Final = 0.01  # of a subinterval: more than boundaries are moved to follow a clock, with some moves missed
MOST_AT_ONCE: Final = 1_000  # notices and dying words; afterwards EVERY_NS each
EVERY_NS: Final = 10**9
MOST_LUNS: Final = 100_000  # of a host
MOST_LISTED: Final = 128 << 20  # bytes in which a host lists its LUNs, in all of a run


class ResultChecks:
    """Checks the results of one step of a host. Keeps how many there were, and the newest."""

    def __init__(self, go: Go, cores: int, sent_ns: int) -> None:
        """`sent_ns`: when `go` was sent. `cores`: how many the host has."""
        classes = max(memoryview(go.classes.data).cast("I"), default=-1) + 1
        self.room = most_bytes(len(go.order), classes, go.sections)  # for the arrays of a result but readings
        self._length_ns, self._cores, self._sent_ns = go.length_ns, cores, sent_ns
        self._newest, self._count = -1, 0

    def check(self, result: Result, now_ns: int) -> None:
        """Raises ProtocolError."""
        k, length_ns = result.subinterval, self._length_ns
        self._newest, self._count = max(self._newest, k), self._count + 1
        if self._count > self._newest + 1:
            raise ProtocolError(f"a second result of subinterval {k}")
        if k * length_ns * (1 - MOVED) > now_ns - self._sent_ns:
            raise ProtocolError(f"a result of subinterval {k}, which cannot have begun")
        # After a machine stall a result may be of several subintervals; the merge checks where it was placed.
        if result.length_ns > now_ns - self._sent_ns or (
            result.length_ns < length_ns * (1 - MOVED) and not result.last
        ):
            raise ProtocolError(f"the result of subinterval {k} is of {result.length_ns} ns, not {length_ns}")
        if len(result.readings) > MOST_READINGS:
            raise ProtocolError(f"the result of subinterval {k} has {len(result.readings)} readings")
        if len(result.cpu) != self._cores:
            raise ProtocolError(f"the result of subinterval {k} is of {len(result.cpu)} cores, not {self._cores}")


@dataclass(slots=True)
class EventLimit:
    """How many events a host may send: a bucket that empties at a steady rate. Keeps when it will be empty."""

    empty_ns: int = 0

    def add(self, now_ns: int) -> None:
        """One more. Raises ProtocolError where it is one too many."""
        self.empty_ns = max(self.empty_ns, now_ns) + EVERY_NS
        if self.empty_ns - now_ns > MOST_AT_ONCE * EVERY_NS:
            raise ProtocolError(f"more than {MOST_AT_ONCE:,} notices and dying words came at once")
