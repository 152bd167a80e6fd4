"""Quantiles of Student's t, exact at any confidence and any degrees of freedom, whole or not.

Rule: no tables. The distribution function is the regularised incomplete beta function by its continued fraction
(Numerical Recipes, 6.4, Lentz's method), and the quantile is found on it by Newton's method.
"""

from functools import lru_cache
from math import exp, inf, isfinite, lgamma, log, log1p, pi
from statistics import NormalDist

_TINY = 1e-300
_EPSILON = 1e-16


def _continued_fraction(a: float, b: float, x: float) -> float:
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0) or _TINY)
    h = d
    for m in range(1, 2000):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / (1.0 + numerator * d or _TINY)
            c = 1.0 + numerator / c or _TINY
            h *= c * d
        if abs(c * d - 1.0) < _EPSILON * 4:
            break
    return h


def incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """I_x(a, b), regularised; `rest` is 1 - x, handed in since near 1 a subtraction would lose it."""
    if x <= 0.0 or rest <= 0.0:
        return 0.0 if x <= 0.0 else 1.0
    ln_x = log(x) if x < 0.5 else log1p(-rest)
    ln_rest = log(rest) if rest < 0.5 else log1p(-x)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * ln_x + b * ln_rest)
    if x < (a + 1.0) / (a + b + 2.0):  # where the fraction converges fast; the other half by symmetry
        return front * _continued_fraction(a, b, x) / a
    return 1.0 - front * _continued_fraction(b, a, rest) / b


def t_beyond(t: float, df: float) -> float:
    """P(T > t) for t >= 0: the upper tail of Student's t with `df` degrees of freedom."""
    squared = t * t
    return 0.5 * incomplete_beta(df / 2, 0.5, df / (df + squared), squared / (df + squared))


@lru_cache(maxsize=4096)
def t_quantile(confidence: float, df: float) -> float:
    """Half-width, in standard errors, of the two-sided interval of `confidence` (0.95) for `df` > 0.

    The 95 % interval of n independent values is mean +/- t_quantile(0.95, n - 1) * sd / sqrt(n). Infinite for df <= 0.
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence is {confidence}; it lies between 0 and 1")
    if df <= 0 or not isfinite(df):
        return inf if df <= 0 else NormalDist().inv_cdf(0.5 + confidence / 2)
    tail = (1.0 - confidence) / 2
    ln_peak = lgamma((df + 1) / 2) - lgamma(df / 2) - log(df * pi) / 2
    t = NormalDist().inv_cdf(0.5 + confidence / 2)  # below the root, where the tail is convex: Newton only ascends
    for _ in range(200):
        density = exp(ln_peak - (df + 1) / 2 * log1p(t * t / df))
        step = (t_beyond(t, df) - tail) / density
        t += step
        if step <= 1e-12 * t:
            break
    return t
