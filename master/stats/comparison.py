"""The change of a figure between two sides: Welch's t on logarithms, and Holm's correction for many comparisons.

Rule: a change is the logarithm of a ratio, so +25 % and -20 % are the same distance, and a figure's own size does not
matter. Runs are the unit of replication: `between_runs` decides, `within_runs` knows only the noise inside of two runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import copysign, exp, expm1, fsum, hypot, inf, isfinite, log, sqrt
from statistics import fmean

from .confidence import CONFIDENCE, t_quantile, t_tail
from .estimate import Estimate, estimate, freedom
from .metric_sample import MetricSample, interpolated_value

_FREEDOMS_FOR_ONE = 5  # of one run's series: found by simulation, for autocorrelations of 0 to 0.8 under white noise

_MOST_LOG = 700.0  # its exponential is still a float


@dataclass(frozen=True, slots=True)
class LogRatio:
    """ln(B / A), its standard error, and the degrees of freedom of that error."""

    log_ratio: float
    error: float
    freedom: float

    @property
    def relative(self) -> float:
        """B / A - 1."""
        return expm1(self.log_ratio)

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """The confidence interval of B / A - 1."""
        width = t_quantile(0.5 + confidence / 2, self.freedom) * self.error
        return expm1(self.log_ratio - width), expm1(min(self.log_ratio + width, _MOST_LOG))

    def p_above(self, log_ratio: float) -> float:
        """How likely data like these are if the true log ratio is at most this: a small p shows that it is above."""
        distance = self.log_ratio - log_ratio
        t = distance / self.error if self.error > 0 else copysign(inf, distance) if distance else 0.0
        if t == 0:
            return 0.5
        tail = t_tail(abs(t), self.freedom) if isfinite(t) else 0.0
        return tail if t > 0 else 1 - tail

    def p_below(self, log_ratio: float) -> float:
        """The same of at least this: a small p shows that it is below."""
        return LogRatio(-self.log_ratio, self.error, self.freedom).p_above(-log_ratio)

    def p_different(self) -> float:
        """Two-sided, that there is no change."""
        return min(2 * min(self.p_above(0.0), self.p_below(0.0)), 1.0)

    def p_within(self, low: float, high: float) -> float:
        """That the log ratio is not between these (two one-sided tests, doubled as all p here are two-sided)."""
        if not self.error and low <= self.log_ratio <= high:
            return 0.0  # also on a bound: 0 is within 0 and 0
        return min(2 * max(self.p_above(low), self.p_below(high)), 1.0)


def between_runs(a: Sequence[float], b: Sequence[float]) -> LogRatio:
    """By the spread of the runs of each side, whose figures are above 0. Raises ValueError for fewer than two a side.

    Welch's test on logarithms, with the degrees of freedom of Welch and Satterthwaite.
    """
    if min(len(a), len(b)) < 2:
        raise ValueError("the spread of a side needs two runs or more")
    first, other = ([log(value) for value in side] for side in (a, b))
    squares = variance(first) / len(first), variance(other) / len(other)
    total = sum(squares)
    if total == 0:
        return LogRatio(fmean(other) - fmean(first), 0.0, float(len(first) + len(other) - 2))
    shares = zip(squares, (first, other), strict=True)
    satterthwaite = 1 / sum((square / total) ** 2 / (len(side) - 1) for square, side in shares)
    return LogRatio(fmean(other) - fmean(first), sqrt(total), satterthwaite)


def variance(values: Sequence[float]) -> float:
    """Of two values or more; exactly 0 where they are the same. `statistics.variance` takes 15 times as long."""
    distances = [value - values[0] for value in values]
    mean = fmean(distances)
    return fsum((one - mean) ** 2 for one in distances) / (len(values) - 1)


def range_of_next(values: Sequence[float]) -> tuple[float, float]:
    """Where the figure of one more run lies with 95 %, by these of two runs or more, all above 0.

    The prediction interval of a normal distribution of the logarithms.
    """
    logs = [log(value) for value in values]
    width = t_quantile(0.5 + CONFIDENCE / 2, len(logs) - 1) * sqrt(variance(logs) * (1 + 1 / len(logs)))
    return exp(fmean(logs) - width), exp(min(fmean(logs) + width, _MOST_LOG))


def comparable_estimate(samples: Sequence[MetricSample], fraction: float | None = None) -> Estimate | None:
    """The `estimate` of one run's window, a percentile interpolated within its bucket. None where the metric is blank,
    or not above 0, or where nothing is known of its error."""
    estimated, value = estimate(samples, fraction), interpolated_value(samples, fraction)
    if estimated is None or value is None or value <= 0 or not isfinite(estimated.half_width):
        return None
    return replace(estimated, value=value)


def within_runs(a: Estimate, b: Estimate, confidence: float = CONFIDENCE) -> LogRatio:
    """By the half-widths, of this confidence, of one run's figure each; both above 0 and with a finite half-width.

    The error of a logarithm is the relative error of the figure, for errors that are small. The degrees of freedom are
    a fifth of those of the side that has fewer: the correlation is estimated too, from the same few samples.
    """
    freedoms = [freedom(one.effective, one.subintervals) for one in (a, b)]
    errors = [one.relative / t_quantile(0.5 + confidence / 2, own) for one, own in zip((a, b), freedoms, strict=True)]
    return LogRatio(log(b.value / a.value), hypot(*errors), min(freedoms) / _FREEDOMS_FOR_ONE)


def holm(p_values: Sequence[float]) -> list[float]:
    """Each p corrected for their number: the chance that any of them is below a level by mistake is at most that level.

    Holm (1979): the k-th smallest of m is multiplied by m - k + 1, and none is below a smaller one's.
    """
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for k, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min((len(p_values) - k) * p_values[place], 1.0))
        corrected[place] = highest
    return corrected
