"""A reading that may take long, or for ever: it is made in a thread of its own, and nobody waits for it.

Rule: one at a time, at most every EVERY_S. What was read last stands until it is older than KEPT_S: a device that hangs
has no reading then, rather than an old one, and one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Final, Generic, TypeVar

Value = TypeVar("Value")

EVERY_S: Final = 10.0
KEPT_S: Final = 30.0


class SlowReading(Generic[Value]):
    """State: the last value with the time at which its reading began, and the thread that reads now."""

    def __init__(self, read: Callable[[], Value]) -> None:
        """`read` may raise OSError: then there is no value."""
        self._read = read
        self._last: tuple[Value | None, float] = (None, 0.0)  # assigned as a whole: another thread does it
        self._thread: Thread | None = None
        self._begun_s = 0.0

    def latest(self, now_s: float) -> Value | None:
        """The last value, if there is one; begins a reading where one is due."""
        idle = self._thread is None or not self._thread.is_alive()
        if idle and (self._thread is None or now_s - self._begun_s >= EVERY_S):
            self._begun_s = now_s
            self._thread = Thread(target=self._take, args=(now_s,), name="slow reading", daemon=True)
            self._thread.start()
        value, begun_s = self._last
        return value if now_s - begun_s <= KEPT_S else None

    def _take(self, now_s: float) -> None:
        try:
            self._last = (self._read(), now_s)
        except OSError:
            self._last = (None, now_s)
