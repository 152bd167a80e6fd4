"""Which element saturates first, over the levels of a staircase or of a curve of loads.

Rule: an element is saturated at a level
- where its busy figure is 90 % or more, or
- where it stops growing: it grew with the load until the level before (by at least half as much), and now grows by less
  than a tenth of what the load does. That is what a single busy core of sixteen looks like. Below 10 % it is noise.

Where the load itself stops growing, every figure stops with it: that says nothing about any element, and such a level
decides only by the first rule. Pure; growth is relative to the level before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Final, NamedTuple

BUSY_PERCENT: Final = 90.0
FEWEST_LEVELS: Final = 2
_NOISE_PERCENT: Final = 10.0
_GROWS: Final = 0.05  # a load or a service time that grows
_FOLLOWS: Final = 0.5  # of the load's growth: the element's figure grew with it
_STOPS: Final = 0.1


class Element(NamedTuple):
    """One busy figure of one element."""

    metric: str  # array.mp_busy_percent
    name: str


class Rule(StrEnum):
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
    rule: Rule


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
        found = [
            Saturated(level, element, busy, rule)
            for element, busy in level.busy.items()
            if (rule := _rule(levels[max(place - 2, 0) : place + 1], element)) is not None
        ]
        if found:
            return Saturation(tuple(levels), tuple(sorted(found, key=lambda one: -one.busy_percent)))
    return Saturation(tuple(levels))


def _rule(last: Sequence[Level], element: Element) -> Rule | None:
    """By up to three levels, of which the last is looked at."""
    busy = [level.busy.get(element) for level in last]
    newest = busy[-1]
    if newest is None or newest < _NOISE_PERCENT:
        return None
    if newest >= BUSY_PERCENT:
        return Rule.BUSY
    if len(last) < 3:
        return None
    load = [_growth(one.iops, other.iops) for one, other in pairwise(last)]
    own = [_growth(one, other) for one, other in pairwise(busy)]
    if None in load or None in own:
        return None
    (load_before, load_now), (own_before, own_now) = load, own
    assert load_before is not None and load_now is not None and own_before is not None and own_now is not None
    followed = load_before >= _GROWS and own_before >= _FOLLOWS * load_before
    return Rule.STOPPED if followed and load_now >= _GROWS and own_now < _STOPS * load_now else None


def _growth(before: float | None, after: float | None) -> float | None:
    return after / before - 1 if before and after is not None else None


def _none(levels: Sequence[Level]) -> str:
    """What there is to say where nothing saturates."""
    level = next(one for one in reversed(levels) if one.busy)
    element = max(level.busy, key=level.busy.__getitem__)
    said = (
        "No element saturates that reports a busy figure: the highest at the highest load is "
        f"{element.metric} of {element.name} with {level.busy[element]:.3g} %."
    )
    load, service = (
        _growth(*values) for values in ([one.iops for one in levels[-2:]], [one.service_us for one in levels[-2:]])
    )
    if load is not None and load < _GROWS and service is not None and service >= _GROWS:
        said += " The load stopped growing and service times still grew: what limits it is none of these."
    return said
