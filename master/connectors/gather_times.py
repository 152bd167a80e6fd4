"""When to ask a connector for the values of a subinterval.

Rule: pure; nanoseconds of the controller's clock are handed in. A gather that is just in time ends with its
subinterval: it begins earlier by what such gathers have taken lately, the median of the last ones; half of them end
before the boundary then, and half after it, by as little as their times vary.
"""

from collections import deque
from statistics import median_high
from typing import Final

from .connector_spec import GatherAt

KEPT: Final = 15
MOST: Final = 0.9  # of a subinterval: no gather begins earlier before its end


class GatherTimes:
    """State: how long the last gathers took, from the request to the answer."""

    def __init__(self, at: GatherAt) -> None:
        self._at = at
        self._took_ns: deque[int] = deque(maxlen=KEPT)

    def took(self, duration_ns: int) -> None:
        """One more gather was answered."""
        self._took_ns.append(duration_ns)

    def begin_ns(self, end_ns: int, length_ns: int) -> int:
        """When to begin the gather of a subinterval that ends at `end_ns` and lasts `length_ns`."""
        if self._at is GatherAt.END or not self._took_ns:
            return end_ns
        return end_ns - min(median_high(self._took_ns), round(MOST * length_ns))
