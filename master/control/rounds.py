"""Rounds: the passes of a step, again and again, until a metric is steady over the last five (SNIA's PTS).

Rule: pure. A round counts where the passes that are looked at all have a figure to use; one that does not count ends
the window, which is of consecutive rounds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import ClassVar

import numpy as np

from ..text.metric_amounts import MetricUnit, amount_in_words, rounded
from ..text.scaled import scaled_count
from ..verdicts import Finding, Reason
from .choices import SNIA_ROUNDS
from .control_state import Keys
from .criteria import SNIA_EXCURSION_PERCENT, SNIA_SLOPE_PERCENT, excursion_and_rise
from .decision import Cell
from .focus import Focus


@dataclass(frozen=True, slots=True)
class RoundsSpec:
    """`rounds` of the step of this name."""

    keys: ClassVar[Keys] = ("rounds",)

    step: str
    focus: Focus  # of `all=all`
    most: int

    @property
    def in_words(self) -> str:
        return (
            f"in rounds, at most {self.most}, until {self.focus.metric} is steady over {SNIA_ROUNDS} of them:"
            f" excursion at most {SNIA_EXCURSION_PERCENT:g}%, slope {SNIA_SLOPE_PERCENT:g}% of the mean"
        )


@dataclass(frozen=True, slots=True)
class PassWindow:
    """The metric of one pass over the last rounds; percentages are of the mean."""

    of_pass: str  # the step's name in the plan
    value: float | None  # of the last round; None: no figure that can be used
    mean: float | None = None  # of the window; None as long as it is not complete
    excursion: float | None = None  # largest less smallest
    rise: float | None = None  # of the line, from the first to the last round

    @property
    def is_steady(self) -> bool:
        """Equality meets a limit."""
        if self.excursion is None or self.rise is None:
            return False
        return self.excursion <= SNIA_EXCURSION_PERCENT and self.rise <= SNIA_SLOPE_PERCENT


@dataclass(frozen=True, slots=True)
class Rounds:
    """The rounds that have been run. `values`: of each, by pass; only of the passes that are looked at."""

    spec: RoundsSpec
    values: tuple[Mapping[str, float | None], ...] = ()

    def after(self, values: Mapping[str, float | None]) -> "Rounds":
        """With one more round."""
        return Rounds(self.spec, (*self.values, values))

    @property
    def windows(self) -> tuple[PassWindow, ...]:
        """Of each pass that is looked at, after the last round."""
        if not self.values:
            return ()
        last = self.values[-SNIA_ROUNDS:]
        counting = [one for one in last if None not in one.values()]
        if len(counting) < SNIA_ROUNDS:
            return tuple(PassWindow(name, value) for name, value in self.values[-1].items())
        return tuple(_window(name, [one[name] for one in counting]) for name in self.values[-1])

    @property
    def is_steady(self) -> bool:
        return bool(self.windows) and all(one.is_steady for one in self.windows)

    @property
    def is_over(self) -> bool:
        return self.is_steady or len(self.values) >= self.spec.most

    @property
    def in_words(self) -> str:
        """How the last rounds stand, by the pass that is furthest from steady."""
        number = len(self.values)
        complete = [one for one in self.windows if one.mean is not None]
        if not complete:
            lacking = [one.of_pass for one in self.windows if one.value is None]
            why = f"{lacking[0]} has no figure of {self.spec.focus.metric} that can be used" if lacking else ""
            return f"round {number} of at most {self.spec.most}" + (f": {why}" if why else "")
        worst = max(complete, key=_distance)
        state = "steady" if self.is_steady else "not steady"
        return f"rounds {number - SNIA_ROUNDS + 1} to {number} {state}: {self._of(worst)}"

    def finding(self) -> Finding | None:
        """For the last round's figures: that they are steady, or that none of the rounds were."""
        if self.is_steady:
            return Finding(Reason.STEADY_ROUNDS, self.in_words)
        if self.is_over:
            return Finding(Reason.ROUNDS_NOT_STEADY, f"in {self.spec.most} rounds, {self.in_words}")
        return None

    def rows(self) -> list[dict[str, Cell]]:
        """Of rounds.csv, after the last round."""
        return [
            {
                "step": self.spec.step,
                "round": len(self.values),
                "pass": window.of_pass,
                "metric": self.spec.focus.metric,
                "value": window.value,
                "mean": window.mean,
                "excursion_percent": _finite(window.excursion),
                "slope_percent": _finite(window.rise),
                "steady": window.is_steady,
            }
            for window in self.windows
        ]

    def _of(self, window: PassWindow) -> str:
        assert window.mean is not None and window.excursion is not None and window.rise is not None
        unit = self.spec.focus.unit
        mean = scaled_count(window.mean) if unit is MetricUnit.PER_S else amount_in_words(unit, window.mean, 4)
        excursion = rounded(window.excursion, SNIA_EXCURSION_PERCENT, 1, "f")
        rise = rounded(window.rise, SNIA_SLOPE_PERCENT, 1, "f")
        figures = f"excursion {excursion}%, slope {rise}% of a mean of {mean}"
        return f"{self.spec.focus.metric} of {window.of_pass}, {figures}"


def _window(name: str, values: list[float | None]) -> PassWindow:
    """Of a pass with a value in each round of a whole window."""
    figures = np.array(values, dtype=np.float64)
    excursion, rise = excursion_and_rise(figures)
    return PassWindow(name, float(figures[-1]), float(figures.mean()), excursion, rise)


def _finite(percent: float | None) -> float | None:
    """Blank in percent of a mean that is 0."""
    return percent if percent is not None and isfinite(percent) else None


def _distance(window: PassWindow) -> float:
    """How far from steady, where 1 is the limit."""
    assert window.excursion is not None and window.rise is not None
    return max(window.excursion / SNIA_EXCURSION_PERCENT, window.rise / SNIA_SLOPE_PERCENT)
