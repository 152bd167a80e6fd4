"""How much of a percentile may be due to the generator's lateness, from two histograms that do not pair their I/Os.

Rule: it holds whichever I/Os were late. An I/O of at least y that was late by no more than y - x would have taken more
than x without being late. So if (I/Os of at least y) less (I/Os late by more than y - x) are enough for a percentile,
for any y, then without lateness it would have been more than x. The largest such x is the least that the percentile may
have been, within a bucket.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..stats.percentiles import FEWEST_BEYOND, MIDDLES_NS, ranks
from .arrays import Buckets, Floats, Ints

_PLACES: Final = 48  # values of y that are tried; with fewer than there are, what is found is only more careful
_HALVINGS: Final = 7  # of the share that is found: to a hundredth


def excess(of: Buckets, lateness: Buckets, fraction: float, least: float) -> Floats:
    """The share of each row's percentile that may be due to lateness, (R,): 0 where it is certainly at most `least`,
    else up to 1; nan where the percentile is blank.
    """
    rows, width = of.counts.shape
    found = np.full(rows, np.nan)
    if not width:
        return found
    tail = _Tail(of, lateness, fraction)
    shown = np.flatnonzero(tail.needed > FEWEST_BEYOND)
    found[shown] = 0.0
    unsure = shown[~tail.surely_above(shown, np.full(len(shown), 1 - least))]
    low, high = np.full(len(unsure), least), np.ones(len(unsure))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        sure = tail.surely_above(unsure, 1 - middle)
        low, high = np.where(sure, low, middle), np.where(sure, middle, high)
    found[unsure] = high
    return found


class _Tail:
    """The upper ends of two sets of histograms, and where a percentile of the first lies."""

    def __init__(self, of: Buckets, lateness: Buckets, fraction: float) -> None:
        self._of, self._late = _at_least(of), _at_least(lateness)
        self._low, self._late_low = of.low, lateness.low
        total = self._of[:, 0]
        # I/Os at the percentile and beyond; FEWEST_BEYOND of them are beyond.
        self.needed = total - ranks(total, fraction) + 1
        self._place = (self._of >= self.needed[:, None]).sum(axis=1) - 1  # of the bucket that holds it

    def surely_above(self, rows: NDArray[np.intp], part: Floats) -> NDArray[np.bool_]:
        """Whether the percentile of these rows was more than `part` of itself without lateness, whoever was late."""
        place = self._place[rows]
        x = part * MIDDLES_NS[np.minimum(place + self._low, len(MIDDLES_NS) - 1)]
        first = np.minimum(np.maximum(MIDDLES_NS.searchsorted(x, "right") - self._low, 0), place)
        steps = np.linspace(0.0, 1.0, _PLACES)
        places = np.rint(first[:, None] + steps * (place - first)[:, None]).astype(np.int64)
        spare = MIDDLES_NS[np.minimum(places + self._low, len(MIDDLES_NS) - 1)] - x[:, None]
        late = np.clip(MIDDLES_NS.searchsorted(spare, "right") - self._late_low, 0, self._late.shape[1] - 1)
        left = self._of[rows[:, None], places] - self._late[rows[:, None], late]
        found: NDArray[np.bool_] = ((left >= self.needed[rows][:, None]) & (spare >= 0)).any(axis=1)
        return found


def _at_least(buckets: Buckets) -> Ints:
    """How many I/Os are in each bucket and beyond, (R, width + 1)."""
    rows, width = buckets.counts.shape
    found = np.zeros((rows, width + 1), np.int64)
    found[:, :width] = buckets.counts[:, ::-1].cumsum(axis=1, dtype=np.int64)[:, ::-1]
    return found
