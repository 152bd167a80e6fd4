"""Slicings of the logs: `--by all,host,host+direction`.

Rule: as in a run of ivypy, a rollup type is one or several attributes, and every I/O is in exactly one instance of
each type; an attribute that a log does not have is `none`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ..readers.source import DIRECTIONS, NONE, Format, Source
from .resample import EVERY

ATTRIBUTES: Final = ("all", "run", "host", "job", "file", "direction")


@dataclass(frozen=True, slots=True, order=True)
class Slice:
    """One slice of one kind of log."""

    type_order: int
    rollup_type: str
    value: str
    format: str
    quantity: str
    averaged: bool = False  # of means, not of single I/Os

    @property
    def quantity_name(self) -> str:
        """As results have it."""
        return f"{self.quantity}_avg" if self.averaged else self.quantity

    def has(self, attribute: str) -> bool:
        """Whether it is sliced by the attribute."""
        return attribute in self.rollup_type.split("+")

    def __str__(self) -> str:
        return f"{self.rollup_type}={self.value}"


@dataclass(frozen=True, slots=True)
class SliceShare:
    """A source's share in an instance: the directions of `mask`."""

    instance: Slice
    mask: int


def parse_by(text: str) -> tuple[tuple[str, ...], ...]:
    """ "all,host,host+direction": the attributes of each rollup type, `all` first. ValueError names what is wrong."""
    types: list[tuple[str, ...]] = []
    for word in text.split(","):
        attributes = tuple(part.strip() for part in word.split("+"))
        for attribute in attributes:
            if attribute not in ATTRIBUTES:
                raise ValueError(f"{attribute!r} is no attribute of a log; there are {', '.join(ATTRIBUTES)}")
        if attributes not in types:
            types.append(attributes)
    return tuple(types)


def shares_of(source: Source, types: Iterable[tuple[str, ...]]) -> list[SliceShare]:
    """The instances that a source adds to; those of the directions that it turns out not to have stay empty."""
    shares: list[SliceShare] = []
    for order, attributes in enumerate(types):
        for mask, direction in _directions(source, attributes):
            value = "+".join(_value(source, attribute, direction) for attribute in attributes)
            shares.append(SliceShare(Slice(order, "+".join(attributes), value, *source.kind), mask))
    return shares


def _directions(source: Source, attributes: tuple[str, ...]) -> list[tuple[int, str]]:
    if "direction" not in attributes:
        return [(EVERY, "")]
    if source.format is Format.SMALLFILE:
        return [(EVERY, NONE)]
    return [(1 << number, direction.value) for number, direction in enumerate(DIRECTIONS)]


def _value(source: Source, attribute: str, direction: str) -> str:
    match attribute:
        case "all":
            return "all"
        case "run":
            return source.run
        case "host":
            return source.host or NONE
        case "job":
            return source.job or NONE
        case "file":
            return source.name
    return direction
