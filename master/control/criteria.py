"""Steady-state criteria: how a window of values is scored, and compared with a limit.

Rule: fio's definitions, corrected. A deviation is the largest distance from the window's mean; a slope is
least squares per second of real time; a relative limit is a percentage of the mean. A limit is met at equality. The
arithmetic knows nothing of subinterval numbers or rollups: a running test and finished data use the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import copysign, inf, isfinite, sqrt

import numpy as np

from ..rollup.metrics import METRICS, Quantity, metric_of
from ..stats.confidence import autocorrelation_time, t_quantile
from ..stats.percentiles import Floats
from ..stats.trend import line
from ..text.metric_amounts import LIMIT_DIGITS, amount_in_words, rounded
from .choices import FIO, SNIA_ROUNDS, USUAL_METRIC, Rule
from .focus import Focus

SNIA_EXCURSION_PERCENT = 20.0  # largest less smallest round, of the mean
SNIA_SLOPE_PERCENT = 10.0  # rise of the line from the first to the last round, of the mean
FEWEST_FOR_DRIFT = 5  # subintervals from which a drift can be distinguished from noise at all
DRIFT_WINDOWS = 3  # windows over which a drift of one limit a window can be distinguished from noise of a quarter of it
DRIFT_PROBABILITY = 0.999  # it is checked in every subinterval


@dataclass(frozen=True, slots=True)
class Criterion:
    """One test of steadiness. `limit` is in the metric's unit or in percent of the mean; a slope's, per second.

    For `t` it is the accuracy in percent; snia's limits are SNIA's.
    """

    rule: Rule
    focus: Focus
    window: int  # subintervals, at least 2; for snia a multiple of 5
    limit: float
    relative: bool
    no_drift: bool  # the trend of the last three windows must stay in the limit for one more, too

    @property
    def name(self) -> str:
        """Its name in a plan; for a metric that none of fio's six criteria uses, the name of its rule."""
        own_metric = METRICS.get(self.focus.metric)
        same = (
            name for name, (rule, metric) in FIO.items()
            if rule is self.rule and own_metric and METRICS[metric].series == own_metric.series
        )  # fmt: skip
        return next(same, str(self.rule))

    @property
    def lookback(self) -> int:
        """Subintervals that a score needs."""
        return max(DRIFT_WINDOWS * self.window, FEWEST_FOR_DRIFT) if self.no_drift else self.window

    def faults(self) -> Iterator[tuple[str, str]]:
        """Faults in the numbers: the field, and a sentence."""
        if self.window < 2:
            yield "window", f"window is {_subintervals(self.window)}; it must be at least two"
        if self.rule is Rule.SNIA and self.window % SNIA_ROUNDS:
            size = _subintervals(self.window)
            yield "window", f"window is {size}; snia has five rounds, so it must be a multiple of five"
        if self.limit < 0 or (self.rule is Rule.T and self.limit == 0):
            least = "above" if self.rule is Rule.T else "at least"
            yield "limit", f"limit is {self.in_words(self.limit)}; it must be {least} 0"

    def __str__(self) -> str:
        if self.rule is Rule.SNIA:
            most = f"{SNIA_EXCURSION_PERCENT:g}%, its slope {SNIA_SLOPE_PERCENT:g}%"
            return f"snia of {self.focus.metric}: excursion at most {most} of the mean"
        return f"{self.rule} of {self.focus.metric} within {self.in_words(self.limit, LIMIT_DIGITS)}"

    def in_words(self, value: float, digits: int = 6) -> str:
        """A score, or the limit, with its unit; a score has the digits that show its side of the limit."""
        if not isfinite(value):
            return "no known value"
        limit = copysign(self.limit, value)
        if self.relative:
            size = f"{rounded(value, limit, digits)}%"
        else:
            size = amount_in_words(self.focus.unit, value, digits, limit)
        return f"{size}/s" if self.rule is Rule.SLOPE else size


def _subintervals(count: int) -> str:
    return f"{count} subinterval{'' if count == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class Score:
    """The score of one window. `value` is compared with the criterion's limit, in the limit's unit."""

    value: float
    attained: bool
    mean: float
    deviation: float  # largest distance from the mean, in the metric's unit
    slope: float  # per second, in the metric's unit
    drift: float | None = None  # upper bound of the move over one more window, in the metric's unit


def rule_and_metric(name: str, latency: str) -> tuple[Rule, str]:
    """Rule and metric of one of CRITERIA; `latency` is one of LATENCIES, of the service time as in fio."""
    if name not in FIO:
        return Rule(name), USUAL_METRIC
    rule, metric = FIO[name]
    usual = METRICS[metric]
    if usual.quantity is Quantity.SERVICE:
        metric = metric_of(usual.category, usual.quantity, latency).name
    return rule, metric


def score(criterion: Criterion, times_s: Floats, lengths_s: Floats, values: Floats) -> Score:
    """Score the last `criterion.window` of the values; earlier ones serve only the drift.

    `times_s` are the middles of the subintervals. There must be at least `criterion.window` values, none blank; with
    fewer than `criterion.lookback` a criterion with `no_drift` is not attained.
    """
    n = criterion.window
    times, lengths, window = times_s[-n:], lengths_s[-n:], values[-n:]
    mean = float(np.clip(window @ lengths / lengths.sum(), window.min(), window.max()))  # rounding could leave them
    deviation = float(np.abs(window - mean).max())
    slope = line(times, window).slope
    if criterion.rule is Rule.SNIA:
        return _snia(lengths, window, mean, deviation, slope)
    size = deviation if criterion.rule is Rule.DEVIATION else slope
    unit = abs(mean) / 100 if criterion.relative else 1.0
    value = size / unit if unit else (0.0 if size == 0 else inf)
    attained = abs(value) <= criterion.limit
    if not criterion.no_drift or not attained:
        return Score(value, attained, mean, deviation, slope)
    length_s = float(lengths.sum())
    back = criterion.lookback
    drift = drift_bound(times_s[-back:], values[-back:]) * length_s if len(values) >= back else inf
    allowed = criterion.limit * unit * (length_s if criterion.rule is Rule.SLOPE else 1.0)
    return Score(value, attained and drift <= allowed, mean, deviation, slope, drift)


def drift_bound(times_s: Floats, values: Floats) -> float:
    """Return the size that the slope of the values per second stays below with 99.9 % probability; inf for too few."""
    if len(values) < FEWEST_FOR_DRIFT:
        return inf
    found = line(times_s, values)
    error = found.error * sqrt(autocorrelation_time(found.residuals))
    return abs(found.slope) + t_quantile(DRIFT_PROBABILITY, len(values) - 2) * error


def _snia(lengths: Floats, values: Floats, mean: float, deviation: float, slope: float) -> Score:
    """SNIA's PTS: over five rounds, excursion at most 20 % of the mean and the line's rise at most 10 %.

    Its value is the excursion in percent of its limit's 20, or the rise's share of 10 where that is larger, so that
    20 is the limit of both.
    """
    rounds = [
        float(v @ w) / float(w.sum())
        for v, w in zip(np.split(values, SNIA_ROUNDS), np.split(lengths, SNIA_ROUNDS), strict=True)
    ]
    if mean == 0:
        return Score(0.0 if deviation == 0 else inf, deviation == 0, mean, deviation, slope)
    excursion, rise = excursion_and_rise(np.array(rounds), mean)
    value = max(excursion, rise * SNIA_EXCURSION_PERCENT / SNIA_SLOPE_PERCENT)
    return Score(value, value <= SNIA_EXCURSION_PERCENT, mean, deviation, slope)


def excursion_and_rise(rounds: Floats, mean: float | None = None) -> tuple[float, float]:
    """Largest less smallest round, and the rise of the line from the first to the last, in percent of the mean.

    `mean`: where rounds are not equally long; inf for both where it is 0 and the rounds are not.
    """
    size = abs(float(rounds.mean()) if mean is None else mean)
    excursion = float(rounds.max() - rounds.min())
    rise = abs(line(np.arange(len(rounds), dtype=np.float64), rounds).slope) * (len(rounds) - 1)
    if size == 0:
        return (0.0, 0.0) if excursion == 0 else (inf, inf)
    return 100 * excursion / size, 100 * rise / size


def fio_block(
    criterion: Criterion, got: Score, duration_s: float, columns: dict[str, list[float]]
) -> dict[str, object]:
    """A JSON block like fio's `steadystate`; `columns` holds the window's values by name, oldest first.

    What is not known yet is null: the rule t knows no half-width of fewer than two effective samples.
    """
    unit = "%" if criterion.relative else ""
    name = {Rule.DEVIATION: "", Rule.SLOPE: "_slope"}.get(criterion.rule, f"_{criterion.rule}")
    return {
        "ss": f"{criterion.focus.metric}{name}:{criterion.limit:f}{unit}",
        "duration": duration_s,
        "attained": int(got.attained),
        "criterion": f"{got.value:f}{unit}" if isfinite(got.value) else None,
        "max_deviation": got.deviation if isfinite(got.deviation) else None,
        "slope": got.slope,
        "data": {
            **{f"{name}_mean": sum(column) / len(column) for name, column in columns.items() if column},
            **columns,
        },
    }
