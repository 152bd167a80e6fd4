"""One probe of a search: a load, held until it is clear whether the metric meets its target there.

Rule: a probe passes or fails only where the target lies outside the metric's confidence interval, at a confidence
stricter than the search's own, so that a bracket of two such answers can be relied on. Anything else is unclear.
A load that is not sustained fails whatever the metric: its outstanding I/Os would grow without end.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf

import numpy as np

from ..rollup.overload import account, why_not_sustained
from ..stats.estimate import Estimate, estimates
from ..stats.sample_matrix import matrix_of
from .focus import Focus
from .observation import Observation, achieved_iops

FEWEST = 10  # subintervals before an answer
_EARLY = 20.0  # times the tolerance: what two subintervals show
_DOUBT = 1.0  # widths grow by this over the effective samples: in a short series even the correlation is uncertain


class ProbeAnswer(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class ProbeQuestion:
    """Whether the metric of every instance is at most the target."""

    focus: Focus
    target: float
    confidence: float
    longest_probe: int  # subintervals after which a probe that is not clear is left


@dataclass(frozen=True, slots=True)
class Probe:
    """An answered probe."""

    iops: float  # total, as set
    achieved: float
    answer: ProbeAnswer
    value: float | None  # of the instance that is furthest from passing
    half_width: float | None
    instance: str
    sustained: bool
    first: int  # subintervals, both included
    last: int
    above: bool = False  # its value is above the target, however surely


def probed(question: ProbeQuestion, tolerance: float, iops: float, seen: Sequence[Observation]) -> Probe | None:
    """The probe's answer, or None to go on; `seen` are its subintervals so far."""
    overloaded = _falls_behind(tolerance, seen)
    if len(seen) < FEWEST and not overloaded:
        return None
    worst, instance = _worst(question, seen)
    answer = ProbeAnswer.FAIL if overloaded else _answer(question, worst)
    if answer is None:
        if len(seen) < question.longest_probe:
            return None
        answer = ProbeAnswer.UNCLEAR
    achieved = achieved_iops(load for one in seen for load in one.loads["all"].values())
    value = worst.value if worst else None
    width = worst.half_width if worst and worst.half_width < inf else None
    above = overloaded or (value is not None and value > question.target)
    return Probe(iops, achieved, answer, value, width, instance, not overloaded, seen[0].began, seen[-1].number, above)


def _falls_behind(tolerance: float, seen: Sequence[Observation]) -> bool:
    """Outstanding I/Os grow: far beyond the tolerance after two subintervals, else after as many as an answer."""
    if len(seen) < 2:
        return False
    within = tolerance * (1 if len(seen) >= FEWEST else _EARLY)
    return bool(why_not_sustained(account(one.outstanding for one in seen), within))


def _worst(question: ProbeQuestion, seen: Sequence[Observation]) -> tuple[Estimate | None, str]:
    """The estimate of the instance that is furthest from passing, widened for how little it rests on; and its name."""
    rows = [one.samples[question.focus] for one in seen]
    got = estimates(matrix_of(rows, question.focus.fraction), question.confidence)
    got = replace(got, half_widths=got.half_widths * (1 + _DOUBT / got.effective))
    upper = got.values + got.half_widths
    blank = np.flatnonzero(np.isnan(upper))
    place = int(blank[0]) if len(blank) else int(np.argmax(upper))  # a blank metric answers nothing
    return got[place], list(rows[-1])[place]


def _answer(question: ProbeQuestion, worst: Estimate | None) -> ProbeAnswer | None:
    if worst is None:
        return None
    if worst.value + worst.half_width <= question.target:
        return ProbeAnswer.PASS
    if worst.value - worst.half_width > question.target:
        return ProbeAnswer.FAIL
    return None
