"""How far the metric of each rollup instance is beyond the target in a probe, and how surely.

Rule: of a percentile the share of I/Os slower than the target is used, which has a value however few I/Os there are.
The error is that of a ratio of sums over subintervals, whose correlation counts: I/Os of one subinterval are slow
together.
"""

from collections.abc import Mapping, Sequence
from math import inf, log, sqrt

import numpy as np

from ..stats.confidence import autocorrelation_times
from ..stats.crossing import TargetReading
from ..stats.estimate import freedom
from ..stats.metric_sample import MetricSample, ios
from ..stats.percentiles import MIDDLES_NS, NS_PER_US, exact
from ..stats.sample_matrix import matrix_of
from .focus import Focus

_DOUBT = 1.0  # errors grow by this over the effective samples: in a short series even the correlation is uncertain
_LEAST_EFFECTIVE = 1.5  # subintervals: correlation cannot make fewer of them, for nothing could be said of it then
_FEW_BURSTS = 5.0  # of slow I/Os: the logarithm of fewer is far from normally distributed
_LEAST_BURST = 4.0  # I/Os that are slow together, where too few are to show it
_CEILING_Z = 2.576  # normal quantile of 0.995, the upper side of a clear answer
_FAR = -20.0  # excess of a value below a 21st of the target: how far below means nothing


def readings(
    focus: Focus, target: float, iops: float, samples: Sequence[Mapping[str, MetricSample]]
) -> dict[str, TargetReading | None]:
    """By instance, for the load `iops`; None where the metric is blank or the subintervals are too few.

    `samples`: of the focus, one mapping by instance for each subinterval.
    """
    rows = samples
    if focus.fraction is not None:
        rows = [{name: beyond(sample, target) for name, sample in row.items()} for row in samples]
    values, series = matrix_of(rows, None).influences()
    n = len(series)
    times = np.minimum(autocorrelation_times(series), n / _LEAST_EFFECTIVE)
    each: dict[str, TargetReading | None] = {}
    for place, name in enumerate(rows[-1]):
        value, effective = float(values[place]), n / float(times[place])
        if np.isnan(value) or effective < _LEAST_EFFECTIVE * (1 - 1e-9):
            each[name] = None
            continue
        variance = float(series[:, place] @ series[:, place]) / (n - float(times[place])) / effective
        error, freedoms = sqrt(variance) * (1 + _DOUBT / effective), freedom(effective, n)
        if focus.fraction is None:
            each[name] = _of_value(iops, value, error, target, freedoms, n)
        else:
            count = sum(row[name].per for row in rows)
            allowed = float(1 - exact(focus.fraction))
            each[name] = _of_share(iops, value, error, count, allowed, freedoms, n)
    return each


def beyond(sample: MetricSample, target_us: float) -> MetricSample:
    """The I/Os slower than the target, of all: those whose bucket's middle is, as it is for the percentile that is
    printed."""
    if sample.counts is None:
        return MetricSample(0.0, 0.0)
    above = MIDDLES_NS[sample.low : sample.low + len(sample.counts)] > target_us * NS_PER_US
    return MetricSample(float(sample.counts @ above), float(ios(sample)))


def _of_value(iops: float, value: float, error: float, target: float, freedoms: float, n: int) -> TargetReading:
    if value * (1 - _FAR) <= target:
        relative = error / value if value > 0 else 0.0
        return TargetReading(iops, _FAR, max((1 - _FAR) * relative, 1.0), freedoms, n)
    return TargetReading(iops, 1 - target / value, target * error / value**2, freedoms, n)


def _of_share(
    iops: float, share: float, error: float, count: float, allowed: float, freedoms: float, n: int
) -> TargetReading:
    """Half an I/O is added (Agresti, Categorical Data Analysis, 3.1.1), and its error is never below a binomial one."""
    slow = share * count + 0.5
    relative = max(error * count / slow, 1 / sqrt(slow))
    low = min(relative, 1.0) ** 2 / 2  # by which the logarithm of a noisy share is too low, in the mean
    ceiling = log(_most(share * count, error * count) / (count * allowed)) if count else inf
    fewer = (count + 1) * allowed
    return TargetReading(iops, log(slow / fewer) + low, relative, freedoms, n, slow, fewer, ceiling)


def _most(slow: float, error: float) -> float:
    """The most slow I/Os that there surely are on average where so few were seen: bursts are Poisson's, whose exact
    limit is a quantile of the gamma distribution (Garwood 1936), here by Wilson and Hilferty. Infinite where there are
    many.
    """
    burst = max(_LEAST_BURST, error**2 / slow if slow else 0.0)
    if slow >= _FEW_BURSTS * burst:
        return inf
    half = slow / burst + 1
    return float(burst * half * (1 - 1 / (9 * half) + _CEILING_Z / (3 * sqrt(half))) ** 3)
