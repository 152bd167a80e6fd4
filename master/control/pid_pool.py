"""What feedback control knows of the metric: a pool of subintervals, of which recent ones weigh more.

Rule: the sums of each subinterval (a percentile's histogram, a mean's total and count) weigh `memory` times as much as
those of the one after it, and the percentile is that of the pool: the percentile of all I/Os, which a measurement has,
too. The mean of the subintervals' own percentiles is lower where slow I/Os come in clusters; held at the target in its
place, it gave 4 % too many IOPS at the p99 of a queue.

The memory fits the gain. Exponential forgetting with factor m, and a move of -k (gain x slope) times the pool's error,
have the characteristic polynomial z**2 - (1 + m - k (1 - m)) z + m. Its roots are equal, which is critical damping, at
sqrt(m) = (1 - k) / (1 + k). It is stable for k < 2 (1 + m) / (1 - m): while k is small, a slope four times as steep as
assumed leaves a damping ratio of 0.5. (Derived here; the method: Astrom and Wittenmark, Computer-Controlled Systems.)
"""

from ..stats.metric_sample import MetricSample, merged, weighted


def memory(share: float) -> float:
    """The memory that fits a loop with this share of the first gain, at which k is 1: none there, and with 1/32 of it
    1 / (1 - m) is 8.5 subintervals."""
    k = min(share, 1.0)
    return ((1 - k) / (1 + k)) ** 2


def pooled(pool: MetricSample | None, kept: float, sample: MetricSample) -> MetricSample:
    """The pool with the newest sample, which alone has its full weight; the rest keeps `kept` of its own."""
    return sample if pool is None else merged(weighted(pool, kept), sample)
