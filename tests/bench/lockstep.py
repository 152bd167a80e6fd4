"""Many measurements of one instance each, in step with each other: what `Measure` does, a column a run.

Rule: the statistics are control's own, which take many columns at once; only who stops when is written down again here,
and a test holds it equal to `Measure`, run by run. So 2,000 runs cost as much as a hundred, one by one.
"""

from dataclasses import dataclass
from math import ceil

import numpy as np

from ivypy.master.control.columns import Columns
from ivypy.master.control.correlation import FLOATS
from ivypy.master.control.estimate import estimates
from ivypy.master.control.measure import FEWEST_EFFECTIVE, FEWEST_SUBINTERVALS, LOOKING, TREND, Goal
from ivypy.master.control.trend import trend_probabilities

_DROPS = 10  # as in measure.py


@dataclass(frozen=True, slots=True)
class Stopped:
    """One run: its window, as places in its series, and what it came to."""

    first: int
    last: int
    value: float
    half_width: float


def measured_together(goal: Goal, values: FLOATS, length_s: float) -> list[Stopped | None]:
    """The measurement of each column of `values` (n, runs); None where it does not end within them."""
    found: list[Stopped | None] = [None] * values.shape[1]
    running = np.arange(values.shape[1])
    fewest = max(FEWEST_SUBINTERVALS, ceil(FEWEST_EFFECTIVE), ceil(goal.min_s / length_s))
    for n in range(fewest, len(values) + 1):
        if not len(running):
            break
        seen = values[:n, running]
        starts = _starts(seen)
        done = np.zeros(len(running), bool)
        for start in np.unique(starts[starts >= 0]):
            chosen = np.flatnonzero(starts == start)
            got = estimates(_columns(seen[start:, chosen]), goal.confidence)
            widths = got.half_widths * LOOKING
            passed = (widths <= goal.accuracy * got.values) & (got.effective >= FEWEST_EFFECTIVE)
            passed &= bool((n - start) * length_s >= goal.min_s * (1 - 1e-3))
            for place in np.flatnonzero(passed):
                column = chosen[place]
                stopped = Stopped(int(start), n - 1, float(got.values[place]), float(widths[place]))
                found[running[column]] = stopped
                done[column] = True
        running = running[~done]
    return found


def _columns(values: FLOATS) -> Columns:
    return Columns(values, np.ones_like(values))


def _starts(seen: FLOATS) -> FLOATS:
    """Where each column's window begins; -1 where every window has a trend."""
    n = len(seen)
    starts = np.arange(0, n - FEWEST_SUBINTERVALS + 1, ceil(n / _DROPS))
    places = np.full(seen.shape[1], -1)
    open_ = np.arange(seen.shape[1])
    for place, start in enumerate(starts):
        _, series = _columns(seen[start:, open_]).influences()
        still = trend_probabilities(series, TREND) >= TREND
        places[open_[still]] = place
        open_ = open_[~still]
        if not len(open_):
            break
    following = np.where(places > 0, np.minimum(places + 1, len(starts) - 1), places)
    return np.where(places >= 0, starts[following], -1)
