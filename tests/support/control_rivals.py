"""Rules that control is compared with: the ancestor's, with its faults corrected, and a controller of fixed gain.

The ancestor's PID: integral action on the plain error, gain doubled on the way and halved
once it swings. Mended: the sign of the initial error, and the start IOPS divided twice (only with many instances).
"""

from dataclasses import dataclass, field
from math import inf, sqrt

import numpy as np

from ivypy.master.control.pid_loop import Range
from ivypy.master.stats.confidence import t_quantile

_BALLPARK_S, _SUBINTERVAL_S = 60.0, 5.0
_MAX_RIPPLE, _MAX_MONOTONE, _BALANCED_BY = 0.01, 5, 12


@dataclass(slots=True)
class IvyPid:
    """ivy's adaptive controller of one instance; `fixed` leaves out what makes it adaptive."""

    target: float
    range: Range
    fixed: bool = False
    iops: float = 0.0
    integral: float = 0.0
    gain: float = 0.0
    passes: int = 0
    reduced: bool = False
    ups: list[float] = field(default_factory=list)  # swings of this cycle
    downs: list[float] = field(default_factory=list)
    rises: int = 0
    falls: int = 0
    monotone: int = 0
    direction: float = 0.0
    inflection: float | None = None

    def __post_init__(self) -> None:
        low, high = self.range.low_target or 0.0, self.range.high_target or 0.0
        share = (self.target - low) / (high - low)
        self.iops = self.range.low_iops + share * (self.range.high_iops - self.range.low_iops)
        self.integral = 0.5 * (low - self.target) * _BALLPARK_S / _SUBINTERVAL_S
        self.gain = self.iops / self.integral

    def next(self, value: float) -> float:
        """The load after a subinterval whose metric was `value`."""
        self.passes += 1
        if self.passes < 3:
            return self.iops
        self.integral += value - self.target
        before, wanted = self.iops, self.gain * self.integral
        self.iops = min(max(wanted, self.range.low_iops), self.range.high_iops)
        if self.iops != wanted:
            self.integral = self.iops / self.gain
        if self.passes >= 4 and not self.fixed:
            self._adapt(before)
        return self.iops

    def _adapt(self, before: float) -> None:
        direction = float(np.sign(self.iops - before))
        self.rises, self.falls = self.rises + (direction > 0), self.falls + (direction < 0)
        steps = self.rises + self.falls
        if not self.reduced and steps > _BALANCED_BY and 3 * min(self.rises, self.falls) < steps:
            self._step(2.0)
        elif self.direction and direction and direction != self.direction:
            self._turn(before, direction)
        else:
            self.monotone += 1
            self.direction = direction
            if not self.reduced and self.monotone > _MAX_MONOTONE:
                self._step(2.0)

    def _turn(self, before: float, direction: float) -> None:
        if self.inflection is not None:
            middle = (before + self.inflection) / 2
            (self.ups if before > self.inflection else self.downs).append(abs(before - self.inflection) / middle)
            swings = min(len(self.ups), len(self.downs)) >= 2
            if swings and min(float(np.mean(self.ups)), float(np.mean(self.downs))) > _MAX_RIPPLE:
                self.reduced = True
                self.iops = middle
                self._step(0.5)
                return
        self.inflection, self.monotone, self.direction = before, 0, direction

    def _step(self, factor: float) -> None:
        self.gain *= factor
        self.integral = self.iops / self.gain
        self.ups, self.downs = [], []
        self.rises = self.falls = self.monotone = 0
        self.direction, self.inflection = 0.0, None


def ivy_measure(values: np.ndarray[tuple[int], np.dtype[np.float64]], accuracy: float, fewest: int) -> tuple[int, int]:
    """ivy's stopping rule, corrected (t with n - 1): (first, last) of the shortest passing suffix, first ends first.

    Half-width = 2 t s / sqrt(n). Returns (0, -1) if no window passes.
    """
    for last in range(fewest - 1, len(values)):
        suffix = values[last::-1]
        n = np.arange(1, last + 2)
        means = np.cumsum(suffix) / n
        squares = np.cumsum((suffix - suffix.mean()) ** 2) - n * (means - suffix.mean()) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            errors = np.sqrt(squares / (n - 1) / n)
        factors = np.array([2 * t_quantile(0.975, size - 1.0) if size >= fewest else inf for size in n])
        passing = np.nonzero(factors[fewest - 1 :] * errors[fewest - 1 :] <= accuracy * means[fewest - 1 :])[0]
        if len(passing):
            return last - (fewest - 1 + int(passing[0])), last
    return 0, -1


def half_width(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """ivy's half-width of a window, corrected."""
    n = len(values)
    return 2 * t_quantile(0.975, n - 1.0) * float(values.std(ddof=1)) / sqrt(n)
