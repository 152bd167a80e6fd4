"""When a host is probed, when it has been silent for too long, and when it no longer advances.

Rule: pure; times are handed in. A beat is what a living slave answers at once: a probe, or a `continue` of the step
that it drives. A probe is sent where no beat was for a quarter of the lease, so a busy conversation needs none. A
host is lost once half its lease passed since a beat that it did not answer, without a word from it; at least three
beats, so that a stall of the controller is not taken for the host's silence. Between steps no I/O is at stake, and a
busy host may answer late: then it has as long as the plan gives it to prepare.

A slave answers probes whatever its worker thread does, so each reading carries how much that thread has done. Each read
of a device has a time limit, and files are synced every 64 MiB: a host whose count does not grow for STUCK_NS while a
command that may take long is unanswered will not answer it.
"""

from collections import deque
from statistics import median_high
from typing import Final

S: Final = 10**9
USUAL_LEASE_NS: Final = 10 * S  # until `prepare` sets it
SHORTEST_LEASE_NS: Final = 1 * S  # that plans may set
LONGEST_NS: Final = 5 * S  # between two beats: the clocks drift apart meanwhile
FIRST_NS: Final = 10 * S  # so long a host is probed every second, to know its clock
AGAIN_NS: Final = 1 * S  # from an unanswered beat to the next
BEATS_LOST: Final = 3
SHORTEST_PATIENCE_NS: Final = BEATS_LOST * AGAIN_NS
TRIPS_KEPT: Final = 15
STUCK_NS: Final = 120 * S
USUAL_PREPARE_S: Final = 60.0
USUAL_START_S: Final = 10.0


class Pulse:
    """Holds the beats of one host: which are unanswered, and how long the last ones took."""

    def __init__(self, now_ns: int) -> None:
        self._begun_ns = now_ns
        self._beat_ns = now_ns - FIRST_NS  # when the last one was sent
        self._unanswered: dict[int, int] = {}  # id -> sent
        self._silent: list[int] = []  # when beats were sent since the last message
        self.received_ns = now_ns  # when its last message arrived
        self._stale = True  # the stamp in the last beat was old: it may not have renewed the lease
        self._trips_ns: deque[int] = deque(maxlen=TRIPS_KEPT)
        self.lease_ns = USUAL_LEASE_NS
        self.idle_patience_ns = round(USUAL_PREPARE_S * S)
        self.between_steps = False  # the host drives nothing

    def set_lease(self, lease_ns: int) -> None:
        """The host stops when it receives nothing for so long."""
        self.lease_ns = max(lease_ns, SHORTEST_LEASE_NS)

    @property
    def patience_ns(self) -> int:
        """How long an unanswered beat is waited for."""
        patience_ns = max(self.lease_ns // 2, SHORTEST_PATIENCE_NS)
        return max(patience_ns, self.idle_patience_ns) if self.between_steps else patience_ns

    @property
    def round_trip_ns(self) -> int:
        """How long a beat and its answer take, as of late: the median. 0: none was answered yet."""
        return median_high(self._trips_ns) if self._trips_ns else 0

    def beat(self, number: int, now_ns: int) -> None:
        """One was sent."""
        self._stale = not self._trips_ns or now_ns - self.received_ns > self.lease_ns // 2
        self._unanswered[number] = self._beat_ns = now_ns
        self._silent.append(now_ns)

    def received(self, now_ns: int) -> None:
        """A message of the host arrived."""
        self.received_ns = now_ns
        self._silent.clear()

    def answered(self, number: int, now_ns: int) -> int | None:
        """A beat's answer came; when the beat was sent. None: it was none, or is answered."""
        sent_ns = self._unanswered.pop(number, None)
        if sent_ns is not None:
            self._trips_ns.append(now_ns - sent_ns)
        return sent_ns

    def due_ns(self, now_ns: int) -> int:
        """When the next probe is to be sent."""
        often = AGAIN_NS if self._silent or now_ns - self._begun_ns < FIRST_NS else LONGEST_NS
        if self._stale and not self._silent:
            return self._beat_ns
        return self._beat_ns + min(self.lease_ns // 4, often)

    def lost_ns(self) -> int | None:
        """When the host is lost unless a message arrives until then; None while too few beats are unanswered."""
        return self._silent[0] + self.patience_ns if len(self._silent) >= BEATS_LOST else None


class CommandProgress:
    """State: since when the host's worker thread has done nothing more."""

    def __init__(self) -> None:
        self._done = 0
        self._since_ns: int | None = None  # None: no command that may take long is unanswered
        self.limit_ns = STUCK_NS

    def started(self, now_ns: int) -> None:
        """A command that may take long was sent."""
        self._since_ns = now_ns

    def reported(self, done: int, now_ns: int) -> None:
        """The host reports how much it has done."""
        if done > self._done:
            self._done = done
            self._since_ns = now_ns if self._since_ns is not None else None

    def finished(self) -> None:
        """All commands that may take long are answered."""
        self._since_ns = None

    def stuck_ns(self) -> int | None:
        """When the host is stuck unless it advances until then; None while no such command is unanswered."""
        return None if self._since_ns is None else self._since_ns + self.limit_ns
