"""How far a printed figure may be from the truth: Student's t, effective samples, half-widths.

Rule: a half-width belongs to the figure that is *printed*. Throughput is a mean over time, so its half-width is that
of a mean; a mean service time is a ratio of two sums, so its half-width is a ratio estimator's. Subintervals are
not independent: their number is divided by the integrated autocorrelation time first. Blank (nan) beats wrong.
"""

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np

from .percentiles import Floats

SOKAL: Final = 5.0  # beyond five times the time, autocorrelations are noise
FEWEST: Final = 8  # of fewer samples the correlation is unknown, and with it the half-width
FEWEST_STATED: Final = 20  # of fewer, a half-width of correlated samples is too small too often to be printed
CONFIDENCE: Final = 0.95


@lru_cache(maxsize=4096)
def t_quantile(probability: float, df: float) -> float:
    """The value that Student's t with `df` (real) degrees of freedom stays below with `probability`.

    Halley's method on the tail, kept within a bracket; relative error below 1e-9 for df from 0.5 to 1e8 and
    probabilities that are not within 1e-7 of 0.5. Raises ValueError for a probability outside (0, 1) and for df <= 0.
    """
    if not 0.0 < probability < 1.0 or not df > 0.0:
        raise ValueError(f"no t quantile for probability {probability} and {df} degrees of freedom")
    if probability == 0.5:
        return 0.0
    if probability < 0.5:
        return -t_quantile(1.0 - probability, df)
    tail = 1.0 - probability
    z = NormalDist().inv_cdf(probability)
    t = z + (z**3 + z) / (4.0 * df)  # the first terms of Fisher's expansion: a start, no more
    low, high = 0.0, math.inf
    for _ in range(200):
        excess = t_tail(t, df) - tail
        low, high = (t, high) if excess > 0.0 else (low, t)
        newton = excess / t_density(t, df)
        following = t + newton / max(0.5, 1.0 - 0.5 * newton * (df + 1.0) * t / (df + t * t))
        if not low <= following <= high:
            following = 0.5 * (low + high) if high < math.inf else 2.0 * t
        if abs(following - t) <= 1e-5 * t:  # a step's error is about its cube
            return following
        t = following
    return t


def t_tail(t: float, df: float) -> float:
    """The probability that Student's t is above `t` > 0: half the incomplete beta function I_x(df/2, 1/2)."""
    whole = df + t * t
    x, rest, a = df / whole, t * t / whole, 0.5 * df  # rest is 1 - x, without its cancellation
    log_x = -math.log1p(t * t / df)  # times a: a rounding error of x itself would be millions of times larger
    front = math.exp(_log_gamma_step(a) + a * log_x + 0.5 * math.log(rest)) / math.sqrt(math.pi)
    if x < (a + 1.0) / (a + 2.5):
        return 0.5 * front * _beta_fraction(x, a, 0.5) / a
    return 0.5 - 0.5 * front * _beta_fraction(rest, 0.5, a) / 0.5


def t_density(t: float, df: float) -> float:
    """The density of Student's t at `t`."""
    log = _log_gamma_step(0.5 * df) - 0.5 * (df + 1.0) * math.log1p(t * t / df)
    return math.exp(log) / math.sqrt(df * math.pi)


def _log_gamma_step(a: float) -> float:
    """log(gamma(a + 1/2) / gamma(a)); by its series where the two logarithms would cancel."""
    if a < 100.0:
        return math.lgamma(a + 0.5) - math.lgamma(a)
    return 0.5 * math.log(a) - 1.0 / (8.0 * a) + 1.0 / (192.0 * a**3) - 1.0 / (640.0 * a**5)


def _beta_fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    tiny = 1e-300
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, 10_000):
        for factor in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / (1.0 + factor * d or tiny)
            c = 1.0 + factor / c or tiny
            value *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return value


def autocorrelation_times(samples: Floats) -> Floats:
    """The integrated autocorrelation time of each column of `samples` (n, R), in samples; at least 1.

    1 + 2 x the sum of the autocorrelations up to five times itself (Sokal's window), and never below what the first
    one alone says of an AR(1) series with Kendall's correction: a short series looks less correlated than it is,
    since its own mean is in every term. Negative correlation is not used; a column that does not vary has time 1.
    """
    n = len(samples)
    time = np.ones(samples.shape[1:])
    centred = samples - samples.mean(axis=0)
    varies = np.flatnonzero(np.ptp(samples, axis=0) > 0.0)
    if n < FEWEST or not len(varies):
        return time
    correlation = autocorrelations(centred[:, varies])
    first = np.clip((n * correlation[1] + 1) / (n - 4), 0.0, 1 - 2 / n)  # Kendall: E r = rho - (1 + 3 rho) / n
    of_ar1 = (1 + first) / (1 - first)
    sums = 1 + 2 * np.cumsum(correlation[1:] + of_ar1 / n, axis=0)  # the mean takes time / n out of each lag
    enough = np.arange(1, len(sums) + 1)[:, None] >= SOKAL * sums
    end = np.where(enough.any(axis=0), enough.argmax(axis=0), len(sums) - 1)
    summed = np.take_along_axis(sums, end[None], axis=0)[0]
    time[varies] = np.maximum(np.maximum(summed, of_ar1), 1.0)
    return time


def autocorrelation_time(values: Floats) -> float:
    """The same of one series."""
    return float(autocorrelation_times(values[:, None])[0])


def autocorrelations(centred: Floats) -> Floats:
    """Autocorrelations of columns (n, R) of mean 0, at lags 0 .. n // 2, in the biased, positive definite form."""
    n = len(centred)
    spectrum = np.fft.rfft(centred, 2 * n, axis=0)  # padded, so that the ends do not meet
    products = np.fft.irfft(np.abs(spectrum) ** 2, axis=0)[: n // 2 + 1]
    found: Floats = products / products[0]
    return found


def effective_samples(samples: Floats) -> Floats:
    """How many independent samples each column of `samples` (n, R) is worth: n over the autocorrelation time."""
    effective: Floats = len(samples) / autocorrelation_times(samples)
    return effective


def half_width(samples: Floats, confidence: float = CONFIDENCE, fewest: int = FEWEST) -> Floats:
    """The half-width of each column's mean; nan for fewer than `fewest` samples, or fewer than two effective ones."""
    n = len(samples)
    if n < fewest:
        return np.full(samples.shape[1:], np.nan)
    effective = effective_samples(samples)
    deviation = samples.std(axis=0, ddof=1)
    found: Floats = _t_factors(effective, confidence) * deviation / np.sqrt(effective)
    return found


def ratio_half_width(
    numerators: Floats, denominators: Floats, confidence: float = CONFIDENCE, fewest: int = FEWEST
) -> Floats:
    """The half-width of each column's ratio of sums, sum(numerators) / sum(denominators), both (n, R).

    The ratio estimator: the half-width of the mean of the residuals (y - ratio x) / mean(x), whose mean is 0.
    nan where the denominators sum to 0.
    """
    total = denominators.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = numerators.sum(axis=0) / total
        residuals = (numerators - ratio * denominators) / (total / len(denominators))
    found = half_width(np.where(total > 0, residuals, 0.0), confidence, fewest)
    return np.where(total > 0, found, np.nan)


def _t_factors(effective: Floats, confidence: float) -> Floats:
    """Student's t for each number of effective samples; nan for fewer than two."""
    probability = 0.5 * (1.0 + confidence)
    return np.array(
        [t_quantile(probability, df) if (df := n - 1.0) >= 1.0 else math.nan for n in effective.ravel()]
    ).reshape(effective.shape)
