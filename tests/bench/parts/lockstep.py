"""Many runs of one instance each, in step with each other: what `Measure` and `Steady` do, a column a run.

Rule: the statistics are control's own where they take many columns at once; who stops when is written down again here,
and tests hold it equal to `Measure` and `Steady`, run by run. So 2,000 runs cost as much as a hundred, one by one.
"""

from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from ivypy.master.control.choices import Rule
from ivypy.master.control.criteria import DRIFT_PROBABILITY, Criterion
from ivypy.master.control.measure import FEWEST_EFFECTIVE, FEWEST_SUBINTERVALS, LOOKING, TREND, MeasureSpec
from ivypy.master.stats.confidence import autocorrelation_times, t_quantile
from ivypy.master.stats.estimate import estimates
from ivypy.master.stats.percentiles import Floats
from ivypy.master.stats.sample_matrix import SampleMatrix
from ivypy.master.stats.trend import trend_probabilities

_DROPS = 10  # as in measure.py


@dataclass(frozen=True, slots=True)
class Stopped:
    """One run: its window, as places in its series, and what it came to."""

    first: int
    last: int
    value: float
    half_width: float


def measured_together(goal: MeasureSpec, values: Floats, length_s: float) -> list[Stopped | None]:
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


def _columns(values: Floats) -> SampleMatrix:
    return SampleMatrix(values, np.ones_like(values))


def _starts(seen: Floats) -> Floats:
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


def steady_together(criterion: Criterion, hold: int, values: Floats, length_s: float) -> list[int | None]:
    """The subinterval in which each column of `values` (n, runs) is done, or None.

    `hold`: subintervals to hold after attaining, 0 for none; a steady state that is left begins anew behind that.
    """
    n, runs = values.shape
    back = criterion.lookback
    plain, full = np.zeros((n, runs), bool), np.zeros((n, runs), bool)
    for last in range(criterion.window - 1, n):
        window = values[last + 1 - criterion.window : last + 1]
        plain[last], allowed = _attains(criterion, window, length_s)
        if not criterion.no_drift:
            full[last] = plain[last]
        elif last + 1 >= back:
            drift = _drift(values[last + 1 - back : last + 1], length_s) * criterion.window * length_s
            full[last] = plain[last] & (drift <= allowed)
    return [_done(plain[:, run], full[:, run], criterion, hold) for run in range(runs)]


def _attains(criterion: Criterion, window: Floats, length_s: float) -> tuple[NDArray[np.bool_], Floats]:
    """(whether each column attains, what it may move by over one window more)."""
    mean = np.clip(window.mean(axis=0), window.min(axis=0), window.max(axis=0))
    unit = np.abs(mean) / 100 if criterion.relative else np.ones_like(mean)
    whole_s = criterion.window * length_s
    if criterion.rule is Rule.DEVIATION:
        return np.abs(window - mean).max(axis=0) / unit <= criterion.limit, criterion.limit * unit
    slope, _ = _lines(window, length_s)
    return np.abs(slope) / unit <= criterion.limit, criterion.limit * unit * whole_s


def _lines(values: Floats, length_s: float) -> tuple[Floats, Floats]:
    """(slope per second, residuals) of each column's least-squares line."""
    times = (np.arange(len(values)) - (len(values) - 1) / 2) * length_s
    slope = times @ values / float(times @ times)
    return slope, values - values.mean(axis=0) - slope * times[:, None]


def _drift(values: Floats, length_s: float) -> Floats:
    n = len(values)
    times = (np.arange(n) - (n - 1) / 2) * length_s
    slope, residuals = _lines(values, length_s)
    error = np.sqrt((residuals**2).sum(axis=0) / (n - 2)) / sqrt(float(times @ times))
    error *= np.sqrt(autocorrelation_times(residuals))
    found: Floats = np.abs(slope) + t_quantile(DRIFT_PROBABILITY, n - 2) * error
    return found


def _done(plain: NDArray[np.bool_], full: NDArray[np.bool_], criterion: Criterion, hold: int) -> int | None:
    """When one run is done: seeking by `full`, holding by `plain`, and by `full` once more at the end."""
    begin, attained = 0, -1
    for now in range(len(full)):
        seen = now + 1 - begin
        if attained < 0:
            if full[now] and seen >= criterion.lookback:
                if not hold:
                    return now
                attained = now
        elif not (full if now - attained >= hold else plain)[now]:
            begin, attained = now + 1, -1
        elif now - attained >= hold:
            return now
    return None
