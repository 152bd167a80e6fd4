"""One probe of a search: a load, held until it is clear on which side of the target the metric is, or for as long as it
tells more than another load would.

Rule: a probe passes or fails only where the target lies outside the metric's interval at ANSWER; anything else is
unclear, and counts for the curve through all probes all the same. A load that is not sustained fails whatever the
metric: its outstanding I/Os would grow without end.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from typing import Final

import numpy as np

from ..rollup.overload import account, why_not_sustained
from ..stats.confidence import t_quantile
from ..stats.crossing import TargetReading
from ..stats.estimate import estimate
from .focus import Focus
from .observation import Observation, achieved_iops
from .target_reading import readings

ANSWER: Final = 0.99  # confidence of a pass and of a fail
FEWEST: Final = 10  # subintervals before an answer
FEWEST_READ: Final = 5  # subintervals that say something, where there is no time for more
_EARLY: Final = 20.0  # times the tolerance: what two subintervals show


class ProbeAnswer(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class ProbeQuestion:
    """Whether the metric of every instance is at most the target."""

    focus: Focus
    target: float
    longest_probe: int  # subintervals after which a probe that is not clear is left


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe, finished or so far."""

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
    readings: Mapping[str, TargetReading] = field(default_factory=dict)  # by instance; none where not sustained


def is_overloaded(tolerance: float, seen: Sequence[Observation]) -> bool:
    """Outstanding I/Os grow: far beyond the tolerance after two subintervals, else after as many as an answer."""
    if len(seen) < 2:
        return False
    within = tolerance * (1 if len(seen) >= FEWEST else _EARLY)
    return bool(why_not_sustained(account(one.outstanding for one in seen), within))


def probe_of(question: ProbeQuestion, tolerance: float, iops: float, seen: Sequence[Observation]) -> Probe:
    """The probe as its subintervals so far show it, at least one; `iops` is its load."""
    focus, target = question.focus, question.target
    overloaded = is_overloaded(tolerance, seen)
    each = readings(focus, target, iops, [one.samples[focus] for one in seen])
    instance = _worst(each)
    answer = ProbeAnswer.FAIL if overloaded else _answer(each[instance] if len(seen) >= FEWEST_READ else None)
    got = estimate([one.samples[focus][instance] for one in seen], focus.fraction, ANSWER)
    value, width = (got.value, got.half_width) if got else (None, inf)
    known = {} if overloaded else {name: one for name, one in each.items() if one is not None}
    worst = each[instance]
    return Probe(
        iops, achieved_iops(load for one in seen for load in one.loads["all"].values()), answer, value,
        width if width < inf else None, instance, not overloaded, seen[0].began, seen[-1].number,
        overloaded or (worst is not None and worst.excess > 0), known,
    )  # fmt: skip


def _worst(each: Mapping[str, TargetReading | None]) -> str:
    """The instance that is furthest from passing; a blank metric answers nothing."""
    names = list(each)
    upper = [inf if one is None else min(one.excess + _margin(one), one.ceiling) for one in each.values()]
    return names[int(np.argmax(upper))]


def _margin(one: TargetReading) -> float:
    return t_quantile((1 + ANSWER) / 2, one.freedom) * one.error


def _answer(worst: TargetReading | None) -> ProbeAnswer:
    if worst is None:
        return ProbeAnswer.UNCLEAR
    if min(worst.excess + _margin(worst), worst.ceiling) <= 0:
        return ProbeAnswer.PASS
    return ProbeAnswer.FAIL if worst.excess - _margin(worst) > 0 else ProbeAnswer.UNCLEAR
