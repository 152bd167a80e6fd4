"""One probe of a search: a load, held until it is clear whether the metric meets its target there.

Rule: a probe passes or fails only where the target lies outside the metric's interval, at a confidence stricter than
the search's own, so that a bracket of two such answers can be believed. What stays in between is unclear, and says so.
A load that is not kept up with fails whatever the metric: what is owed would grow without end.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf

import numpy as np

from ..rollup.overload import DEFAULT_TOLERANCE, account, kept_up
from .estimate import Estimate, estimates
from .focus import Focus
from .observation import Interval
from .sample_matrix import columns_of

_EARLY = 20.0  # times the tolerance: what two subintervals show
_DOUBT = 1.0  # widths grow by this over the effective samples: in a short series even the correlation is uncertain


class Answer(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Question:
    """What every probe of a search asks."""

    focus: Focus
    target: float  # in the metric's unit; passes at or below it
    confidence: float = 0.99  # of each answer
    fewest: int = 10  # subintervals before an answer
    most: int = 48
    tolerance: float = DEFAULT_TOLERANCE  # by how much what is owed may grow, of what fell due


@dataclass(frozen=True, slots=True)
class Probe:
    """An answered probe."""

    iops: float  # total, as set
    achieved: float
    answer: Answer
    value: float | None  # of the instance that is furthest from passing
    half_width: float | None
    instance: str
    kept_up: bool
    first: int  # subintervals, both included
    last: int
    above: bool = False  # its value is above the target, however surely


def probed(question: Question, iops: float, seen: Sequence[Interval]) -> Probe | None:
    """The probe's answer, or None to go on; `seen` are its subintervals so far."""
    behind = _falls_behind(question, seen)
    if len(seen) < question.fewest and not behind:
        return None
    worst, instance = _worst(question, seen)
    answer = Answer.FAIL if behind else _answer(question, worst)
    if answer is None:
        if len(seen) < question.most:
            return None
        answer = Answer.UNCLEAR
    loads = [load for one in seen for load in one.loads[question.focus.rollup].values()]
    achieved = sum(load.completed for load in loads) / sum(one.length_s for one in seen)
    value = worst.value if worst else None
    width = worst.half_width if worst and worst.half_width < inf else None
    above = behind or (value is not None and value > question.target)
    return Probe(iops, achieved, answer, value, width, instance, not behind, seen[0].number, seen[-1].number, above)


def _falls_behind(question: Question, seen: Sequence[Interval]) -> bool:
    """What is owed grows; far beyond the tolerance two subintervals show it, else it takes as many as an answer."""
    if len(seen) < 2:
        return False
    tolerance = question.tolerance * (1 if len(seen) >= question.fewest else _EARLY)
    return bool(kept_up(account(one.outstanding for one in seen), tolerance))


def _worst(question: Question, seen: Sequence[Interval]) -> tuple[Estimate | None, str]:
    """The estimate of the instance that is furthest from passing, widened for how little it rests on; and its name."""
    rows = [one.samples[question.focus] for one in seen]
    got = estimates(columns_of(rows, question.focus.fraction), question.confidence)
    got = replace(got, half_widths=got.half_widths * (1 + _DOUBT / got.effective))
    upper = got.values + got.half_widths
    blank = np.flatnonzero(np.isnan(upper))
    place = int(blank[0]) if len(blank) else int(np.argmax(upper))  # a blank metric answers nothing
    return got[place], list(rows[-1])[place]


def _answer(question: Question, worst: Estimate | None) -> Answer | None:
    if worst is None:
        return None
    if worst.value + worst.half_width <= question.target:
        return Answer.PASS
    if worst.value - worst.half_width > question.target:
        return Answer.FAIL
    return None
