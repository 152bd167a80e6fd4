"""Which element saturates first, over the levels of a staircase or of a curve of loads.

Rule: an element is saturated at a level
- where its busy figure is 90 % or more, or
- where it stops growing: until the level before it grew with the load, by at least half as much; there it grows by less
  than a tenth of what the load does; and at no later level is it more than a tenth higher. That is what a single busy
  core of sixteen looks like. Below 10 % it is noise.

Where the load itself stops growing, every figure stops with it: that says nothing about any element, and such a level
decides only by the first rule. Pure; all growth is relative.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

BUSY_PERCENT: Final = 90.0
FEWEST_LEVELS: Final = 2
_NOISE_PERCENT: Final = 10.0
_GROWS: Final = 0.05  # a load or a service time that grows
_FOLLOWS: Final = 0.5  # of the load's growth: the element's figure grew with it
_STOPS: Final = 0.1
_STAYS: Final = 0.1


class Element(NamedTuple):
    """One busy figure of one element."""

    metric: str  # array.mp_busy_percent
    name: str


class Sign(StrEnum):
    """Why an element counts as saturated; the value says it."""

    BUSY = "90 % or more"
    STOPPED = "it stopped growing while the load still grew"


@dataclass(frozen=True, slots=True)
class Level:
    """One load. `busy`: in percent, of each element that has a value there."""

    name: str
    iops: float
    service_us: float | None
    busy: Mapping[Element, float]


@dataclass(frozen=True, slots=True)
class Saturated:
    """An element at the level where it saturates."""

    level: Level
    element: Element
    busy_percent: float
    rule: Sign


@dataclass(frozen=True, slots=True)
class Saturation:
    """`first` are those that saturate at the lowest level at which any does, the busiest first."""

    levels: tuple[Level, ...]
    first: tuple[Saturated, ...] = ()

    def sentence(self) -> str:
        """For people."""
        if len(self.levels) < FEWEST_LEVELS:
            return "Which element saturates first needs several loads: a staircase, or steps of a curve."
        if not any(level.busy for level in self.levels):
            return "No element has a busy figure at these loads."
        if not self.first:
            return _none(self.levels)
        first, *others = self.first
        more = f" So do {len(others)} more there." if others else ""
        figure = f"{first.element.metric} of {first.element.name} is {first.busy_percent:.3g} %"
        return f"First to saturate: {figure} at {first.level.name}: {first.rule}.{more}"


def first_saturated(levels: Sequence[Level]) -> Saturation:
    """`levels` in the order of their loads, the lowest first."""
    for place, level in enumerate(levels):
        saturated = [
            Saturated(level, element, busy, rule)
            for element, busy in level.busy.items()
            if (rule := _rule(levels, place, element, busy)) is not None
        ]
        if saturated:
            return Saturation(tuple(levels), tuple(sorted(saturated, key=lambda one: -one.busy_percent)))
    return Saturation(tuple(levels))


def _rule(levels: Sequence[Level], place: int, element: Element, busy: float) -> Sign | None:
    """Why an element is saturated at a level, where its figure is `busy`."""
    if busy >= BUSY_PERCENT:
        return Sign.BUSY
    earlier = [one for one in levels[:place] if element in one.busy]
    if busy < _NOISE_PERCENT or len(earlier) < 2 or earlier[-1] is not levels[place - 1]:
        return None
    first, before, level = earlier[0], earlier[-1], levels[place]
    load, own = _growth(first.iops, before.iops), _growth(first.busy[element], before.busy[element])
    follows = load >= _GROWS and own >= _FOLLOWS * load
    load, own = _growth(before.iops, level.iops), _growth(before.busy[element], busy)
    stops = load >= _GROWS and own < _STOPS * load
    stays = all(one.busy.get(element, 0.0) <= busy * (1 + _STAYS) for one in levels[place + 1 :])
    return Sign.STOPPED if follows and stops and stays else None


def _growth(before: float, after: float) -> float:
    """0 where there was nothing before."""
    return after / before - 1 if before else 0.0


def _none(levels: Sequence[Level]) -> str:
    """The sentence where nothing saturates."""
    level = next(one for one in reversed(levels) if one.busy)
    element = max(level.busy, key=level.busy.__getitem__)
    sentence = (
        "No element saturates that reports a busy figure: the highest at the highest load is "
        f"{element.metric} of {element.name} with {level.busy[element]:.3g} %."
    )
    before, last = levels[-2:]
    service = _growth(before.service_us or 0.0, last.service_us or 0.0)
    if _growth(before.iops, last.iops) < _GROWS <= service:
        sentence += " The load stopped growing and service times still grew: what limits it is none of these."
    return sentence
