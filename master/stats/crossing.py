"""The load at which a metric crosses its target, with its interval: a smooth rising curve through all probes.

Model: the metric is first transformed so that it rises about evenly with the load (`TargetReading`). At load x it is

    y(x) = a + b x + s W(x) + t e + noise

where W is an integrated Wiener process (the prior of a cubic smoothing spline: Wahba, Spline Models for Observational
Data, 1.5), t e is what differs from probe to probe beyond the noise within them, and the noise has each reading's own
standard error. x is the load, or stretched towards the top, where queues bend (`_warped`). That, s and t are averaged
over a grid, by restricted likelihood (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2.7). As the
metric rises with the load, the target is crossed below x with the probability that y(x) is above 0: this probability is
the distribution of the crossing. Student's t has the freedom that the readings give the curve there (Satterthwaite).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import erfc, inf, isfinite, log, sqrt
from typing import Final

import numpy as np

from .percentiles import Floats

_WARPS: Final = (0.0, 0.8, 0.95)
_WARP_WEIGHTS: Final = (0.4, 0.3, 0.3)
_BENDS: Final = (0.25, 0.8, 2.5, 10.0)  # s: by how much it changes the steepness over the range, as a multiple of it
_BEND_WEIGHTS: Final = (0.5, 0.3, 0.15, 0.05)
_SPREADS: Final = (0.0, 1.0, 2.0)  # t, as a multiple of the smallest standard error
_SPREAD_WEIGHTS: Final = (0.8, 0.15, 0.05)
_ROUNDS: Final = 3  # of reweighting; the first does most
_MOST_BEYOND: Final = 3.0  # times what the curve expects: more I/Os that are slow count as so many
_FEWEST_MODERATED: Final = 4
_BORROWED: Final = 8.0
_BENT: Final = 0.08  # of the square of the excess: far from the target a reading says its side, and little of the slope
_PLACES: Final = 300  # loads at which the distribution is computed
_LEAST_ERROR: Final = 1e-3  # of the readings' range: a metric without noise is known as well as a curve can follow it


@dataclass(frozen=True, slots=True)
class TargetReading:
    """One probe's word on one rollup instance: how far its metric is beyond the target; 0 is the target itself.

    `excess` rises with the load. For a percentile it is ln(share of I/Os slower than the target / share allowed), else
    1 - target / metric: in an M/M/1 queue both rise linearly. `error`: its standard error, above 0; `freedom`:
    Student's degrees of freedom of that error.
    """

    load: float  # IOPS
    excess: float
    error: float
    freedom: float
    subintervals: int = 1
    slow: float = 0.0  # I/Os slower than the target; 0: the metric is no percentile
    allowed: float = 0.0  # of so many I/Os as there were
    ceiling: float = inf  # that the excess is surely below, where too few I/Os are slow for an error to say it


@dataclass(frozen=True, slots=True)
class Crossing:
    """The load at which a metric crosses its target: the median, and an interval. An end that the readings do not show
    is 0, or infinite; so is the median."""

    load: float  # IOPS, as all
    low: float
    high: float

    @property
    def width(self) -> float:
        """Of the interval, as a share of the load; infinite where an end is open."""
        return (self.high - self.low) / self.load if self.low > 0 and isfinite(self.high) else inf


@dataclass(frozen=True, slots=True)
class Shape:
    """How smooth the curve is: the squares of s, per relative load cubed, and of t; and how the load is stretched."""

    bend: float
    spread: float
    warp: float


@dataclass(frozen=True, slots=True, eq=False)
class _Curve:
    """The curve with one s and one t, at the places: its mean, standard error and freedom; and its likelihood."""

    mean: Floats
    error: Floats
    freedom: Floats
    likelihood: float  # logarithm
    shape: Shape


def moderated(readings: Sequence[TargetReading]) -> list[TargetReading]:
    """The readings, with errors that borrow from each other: each estimated from few subintervals, they scatter.

    Smyth (2004): the variance of a subinterval, or of a slow I/O, is taken as the mean of its own estimate and of a
    line through the logarithms of all (less the bias of these, -1 / freedom), by their degrees of freedom; the line has
    at most _BORROWED of them.
    """
    if len(readings) < _FEWEST_MODERATED:
        return [*readings]
    are_counts = _are_counts(readings)
    loads, squares, freedoms, counts = np.array(
        [(one.load, one.error**2, one.freedom, one.slow if are_counts else one.subintervals) for one in readings]
    ).T
    if not (squares > 0).all():
        return [*readings]
    logs = np.log(squares * counts) + 1 / freedoms
    middle = np.average(loads, weights=freedoms)
    spread = float((freedoms * (loads - middle) ** 2).sum())
    slope = float((freedoms * (loads - middle) * logs).sum()) / spread if spread > 0 else 0.0
    line = np.average(logs, weights=freedoms) + slope * (loads - middle)
    borrowed = np.minimum(_BORROWED, freedoms.sum() - freedoms)
    variances = (freedoms * squares * counts + borrowed * np.exp(line)) / (freedoms + borrowed)
    return [
        replace(one, error=float(np.sqrt(variance / count)), freedom=float(freedom))
        for one, variance, count, freedom in zip(readings, variances, counts, freedoms + borrowed, strict=True)
    ]


def _are_counts(readings: Sequence[TargetReading]) -> bool:
    return all(one.slow > 0 for one in readings)


def reweighted(readings: Sequence[TargetReading], top: float) -> list[TargetReading]:
    """The readings as a log-linear model of counts has them, so that those which happened to see few slow I/Os do not
    seem to know more than those which saw many; others as they are.

    Iteratively reweighted least squares (McCullagh and Nelder, Generalized Linear Models, 2.5, with the dispersion of
    9.2): where the curve expects m slow I/Os and there were n, the excess is the curve's + n / m - 1, and the square of
    its error the dispersion / m.
    """
    if not _are_counts(readings) or len({one.load for one in readings}) < 2:
        return [*readings]
    loads, excess, slow, allowed, squares = np.array(
        [(one.load, one.excess, one.slow, one.allowed, one.error**2) for one in readings]
    ).T
    fitted = [*readings]
    for _ in range(_ROUNDS):
        mean = max(_curves(fitted, loads, top), key=lambda curve: curve.likelihood).mean
        mean = np.clip(mean, excess.min() - 1, excess.max() + 1)
        expected = allowed * np.exp(mean)
        response = mean + np.minimum(slow / expected - 1, _MOST_BEYOND)
        errors = np.sqrt(squares * slow / expected)
        fitted = [
            replace(one, excess=float(beyond), error=float(error))
            for one, beyond, error in zip(readings, response, errors, strict=True)
        ]
    return fitted


def crossing(readings: Sequence[TargetReading], bottom: float, top: float, confidence: float) -> tuple[Crossing, Shape]:
    """The crossing between the loads `bottom` and `top`, and the most likely shape of the curve.

    Raises ValueError for fewer than two different loads.
    """
    places = np.linspace(bottom, top, _PLACES)
    curves = _curves(readings, places, top)
    logs = np.array([one.likelihood for one in curves])
    shares = np.exp(logs - logs.max())
    above = sum(share * _above_0(one) for share, one in zip(shares / shares.sum(), curves, strict=True))
    return _quantiles(places, np.asarray(above), confidence), curves[int(np.argmax(logs))].shape


def with_one_more(
    readings: Sequence[TargetReading], more: TargetReading, shape: Shape, bottom: float, top: float, confidence: float
) -> Crossing:
    """The crossing that a reading at `more.load` is expected to leave: the curve's mean there, in place of its own
    excess."""
    (mean,) = _curve(readings, np.array([more.load]), top, shape).mean
    places = np.linspace(bottom, top, _PLACES)
    curve = _curve([*readings, replace(more, excess=float(mean))], places, top, shape)
    return _quantiles(places, _above_0(curve), confidence)


def _curves(readings: Sequence[TargetReading], places: Floats, top: float) -> list[_Curve]:
    """Of every shape, with what is likely beforehand in the likelihood."""
    shares, excess = np.array([(one.load / top, one.excess) for one in readings]).T
    if not np.ptp(shares) > 0:
        raise ValueError("a curve needs readings at two loads")
    least = float(_errors(readings).min())
    curves = []
    for warp, warp_weight in zip(_WARPS, _WARP_WEIGHTS, strict=True):
        range_of_loads = float(np.ptp(_warped(shares, warp)))
        steepness = max(float(np.ptp(excess)), least) / range_of_loads
        shapes = [
            Shape((bend * steepness) ** 2 / range_of_loads, (spread * least) ** 2, warp)
            for bend, spread in product(_BENDS, _SPREADS)
        ]
        weights = product(_BEND_WEIGHTS, _SPREAD_WEIGHTS)
        for curve, (bend_weight, spread_weight) in zip(_kriged(readings, places, top, shapes), weights, strict=True):
            weight = warp_weight * bend_weight * spread_weight
            curves.append(replace(curve, likelihood=curve.likelihood + log(weight)))
    return curves


def _warped(shares: Floats, warp: float) -> Floats:
    """Loads, as shares of the top, stretched as much as -log(1 - warp x load): a queue of many servers bends only next
    to the top. 0: as they are."""
    return np.asarray(-np.log1p(-warp * shares) / warp) if warp else shares


def _errors(readings: Sequence[TargetReading]) -> Floats:
    excess = [one.excess for one in readings]
    least = _LEAST_ERROR * max(max(excess) - min(excess), 1e-6)
    return np.hypot(np.maximum([one.error for one in readings], least), _BENT * np.square(excess))


def _curve(readings: Sequence[TargetReading], places: Floats, top: float, shape: Shape) -> _Curve:
    (curve,) = _kriged(readings, places, top, [shape])
    return curve


def _kriged(readings: Sequence[TargetReading], places: Floats, top: float, shapes: Sequence[Shape]) -> list[_Curve]:
    """Universal kriging (Cressie, Statistics for Spatial Data, 3.4): of the line a + b x nothing is known before.

    Of shapes with one warp, all at once: a search draws hundreds of curves, whose arrays are short. The first axis of
    arrays that differ between shapes is theirs.
    """
    warp = shapes[0].warp
    bend, spread = (
        np.array(column)[:, np.newaxis, np.newaxis]
        for column in zip(*((one.bend, one.spread) for one in shapes), strict=True)
    )
    loads = np.array([one.load for one in readings])
    x, wanted = _warped(loads / top, warp), _warped(places / top, warp)
    y, errors = np.array([one.excess for one in readings]), _errors(readings)
    origin = min(float(x.min()), float(wanted.min()))
    line, line_wanted = (np.column_stack((np.ones(len(at)), at - x.mean())) for at in (x, wanted))
    covariance = bend * _wiener(x - origin, x - origin) + np.diag(errors**2) + spread * np.eye(len(x))
    inverse = np.linalg.inv(covariance)
    information = line.T @ inverse @ line
    of_line = np.linalg.inv(information)
    rest = y - (line @ (of_line @ (line.T @ (inverse @ y)[..., np.newaxis])))[..., 0]
    likelihoods = -0.5 * (
        np.linalg.slogdet(covariance)[1]
        + np.linalg.slogdet(information)[1]
        - np.linalg.slogdet(line.T @ line)[1]  # Harville (1974): so that those of several warps compare
        + (rest[:, np.newaxis] @ inverse @ rest[..., np.newaxis])[:, 0, 0]
    )
    across = _wiener(wanted - origin, x - origin)
    simple = across @ (bend * inverse)
    lacking = line_wanted - simple @ line
    of_lacking = lacking @ of_line
    weights = simple + of_lacking @ (line.T @ inverse)
    own = bend[..., 0] * ((wanted - origin) ** 3 / 3 - np.einsum("spn,pn->sp", simple, across))
    # Satterthwaite: the readings' own errors are estimates; the rest of the variance is the curve's.
    squares, of_errors = weights * weights, errors**2
    noise = squares @ of_errors
    freedoms = np.array([one.freedom for one in readings])
    variance = np.maximum(own + np.einsum("spl,spl->sp", of_lacking, lacking), noise * 1e-6)
    freedom = np.maximum(variance, noise) ** 2 / np.maximum((squares * squares) @ (of_errors**2 / freedoms), 1e-300)
    columns = zip(weights @ y, np.sqrt(variance), freedom, likelihoods.tolist(), shapes, strict=True)
    return [_Curve(*column) for column in columns]


def _wiener(one: Floats, other: Floats) -> Floats:
    """The covariance of an integrated Wiener process between the places `one` (n,) and `other` (m,), all at least 0."""
    low, high = np.minimum.outer(one, other), np.maximum.outer(one, other)
    return np.asarray(low**2 * (3 * high - low) / 6)


def _above_0(curve: _Curve) -> Floats:
    """The probability that the curve is above 0 at each place: Student's t through a normal deviate (Wallace 1959)."""
    freedom, ratio = curve.freedom, curve.mean / curve.error
    normal = (8 * freedom + 1) / (8 * freedom + 3) * np.sign(ratio) * np.sqrt(freedom * np.log1p(ratio**2 / freedom))
    return 0.5 * np.array([*map(erfc, (normal / -sqrt(2)).tolist())])


def _quantiles(places: Floats, above: Floats, confidence: float) -> Crossing:
    """The metric rises with the load: where the curve is surely below the target it is at all lower loads, where it is
    surely above at all higher ones, however little is known there."""
    tail = (1 - confidence) / 2
    below, beyond = np.flatnonzero(above <= tail), np.flatnonzero(above >= 1 - tail)
    high_at = next((one for one in beyond.tolist() if not len(below) or one > below[0]), None)
    low_at = next((one for one in reversed(below.tolist()) if high_at is None or one < high_at), None)
    low = 0.0 if low_at is None else _between(places, above, low_at, tail)
    high = inf if high_at is None else _between(places, above, high_at - 1, 1 - tail) if high_at else float(places[0])
    within = np.arange(low_at or 0, (len(places) if high_at is None else high_at + 1))
    half = next((one for one in within.tolist() if above[one] >= 0.5), None)
    if half is None:
        return Crossing(inf, low, high)
    if half > within[0]:
        return Crossing(_between(places, above, half - 1, 0.5), low, high)
    return Crossing(0.0 if low_at is None else float(places[half]), low, high)


def _between(places: Floats, above: Floats, before: int, share: float) -> float:
    """The load between this place and the next at which the probability is `share`."""
    if before + 1 >= len(places):
        return float(places[-1])
    rise = above[before + 1] - above[before]
    part = (share - above[before]) / rise if rise else 0.5
    return float(places[before] + min(max(part, 0.0), 1.0) * (places[before + 1] - places[before]))
