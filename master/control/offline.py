"""Criteria applied to finished data: when would a test have stopped, and why?

Rule: the same arithmetic as in a running test, on a series of values with their times: a column of a run folder, a log
of fio, the samples in its JSON. Blank values, edits and changes of hosts end a window, as in a running test.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..stats.confidence import CONFIDENCE
from ..stats.metric_sample import MetricSample
from ..stats.percentiles import Floats
from .choices import Rule
from .criteria import Criterion, Score, score
from .measure import WindowPart, check_window, rule_t

_ONE = ""  # the series' name, in the place of a rollup instance's


@dataclass(frozen=True, slots=True)
class ScoredWindow:
    """A window of finished data and its score."""

    first: int  # index of the window's first value
    last: int  # and of its last: where it attained, a test would have stopped at its end
    second: float  # the end of that value, in the series' own time
    score: Score


@dataclass(frozen=True, slots=True)
class ValueSeries:
    """Consecutive values with their times; None is blank."""

    starts_s: Sequence[float]
    lengths_s: Sequence[float]
    values: Sequence[float | None]


def windows(
    criterion: Criterion,
    series: ValueSeries,
    ramp_s: float = 0.0,
    breaks: Sequence[int] = (),
    confidence: float = CONFIDENCE,
) -> Iterator[ScoredWindow]:
    """Every window, in the order in which a running test would have scored them.

    Not used are values that start before `ramp_s`, blank ones, and windows across an index in `breaks`: the first
    value after an edit or a change of hosts. `confidence` is for the rule t.
    """
    starts = np.asarray(series.starts_s, dtype=np.float64)
    lengths = np.asarray(series.lengths_s, dtype=np.float64)
    values = np.array([np.nan if value is None else value for value in series.values], dtype=np.float64)
    first = int(np.searchsorted(starts, ramp_s))
    for last in range(first, len(values)):
        if last in breaks:
            first = last
        if np.isnan(values[last]):
            first = last + 1
            continue
        part = slice(first, last + 1)
        if criterion.rule is Rule.T:
            scored = _by_t(criterion, starts[part], lengths[part], values[part], confidence)
        else:
            scored = _by_window(criterion, starts[part], lengths[part], values[part])
        if scored:
            place, got = scored
            yield ScoredWindow(first + place, last, float(starts[last] + lengths[last]), got)


def first_attained(found: Iterable[ScoredWindow]) -> ScoredWindow | None:
    """The first of these windows that meets the criterion; None if none does."""
    return next((window for window in found if window.score.attained), None)


def best_window(found: Iterable[ScoredWindow]) -> ScoredWindow | None:
    """The one that comes nearest to the criterion; None where there is no complete one."""
    return min(found, key=lambda window: abs(window.score.value), default=None)


def _by_window(criterion: Criterion, starts: Floats, lengths: Floats, values: Floats) -> tuple[int, Score] | None:
    """(where the last window begins, its score), if there are values enough."""
    if len(values) < criterion.lookback:
        return None
    got = score(criterion, starts + lengths / 2, lengths, values)
    return len(values) - criterion.window, got


def _by_t(
    criterion: Criterion, starts: Floats, lengths: Floats, values: Floats, confidence: float
) -> tuple[int, Score] | None:
    """The same by the rule t, whose window is as long as possible."""
    spec = rule_t(criterion, confidence)
    rows = zip(starts, lengths, values, strict=True)
    parts = tuple(
        WindowPart(place, start + length, length, {_ONE: MetricSample(value * length, length)})
        for place, (start, length, value) in enumerate(rows)
    )
    check = check_window(spec, parts)
    if check is None or check.estimate is None:
        return None
    got = check.estimate
    return check.first, Score(100 * got.relative, check.passed, got.value, got.half_width, 0.0)
