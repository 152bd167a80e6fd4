"""A load as a plan states it for one rollup instance: in IOPS, or as a share of what an earlier step measured there."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..text.plan_parameters import OfStep
from ..text.units import format_iops

Level = float | OfStep  # total IOPS of a rollup instance
Reached = Callable[[str, str, str], float]  # step, rollup type, rollup instance -> IOPS that it measured there


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The facts that a run knows when a step begins."""

    instances: Mapping[str, Sequence[str]]  # rollup type: its instances
    reached: Reached


def number_of(level: Level) -> float:
    """A load in IOPS; not a number where it refers to a step."""
    return math.nan if isinstance(level, OfStep) else level


def iops_of(level: Level, rollup: str, instance: str, known: RunFacts) -> float:
    """A load in IOPS, once the earlier steps have run. Raises what `known.reached` raises."""
    return level.fraction * known.reached(level.step, rollup, instance) if isinstance(level, OfStep) else level


def level_in_words(level: Level) -> str:
    """As a plan writes it."""
    return format_iops(level) if isinstance(level, OfStep) else f"{level:g}"
