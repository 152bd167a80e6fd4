"""The facts of one answer: each once, and no number that is none.

Rule: a source that gives two values for one element is read with too few labels or columns, and to take one of the
values would be a guess. A value that is not a finite number is no value: the fact is left out, and the controller
reports it as missing.
"""

import math

from ....protocol.connector import Cannot
from ....protocol.lines import LONGEST_LIST
from ....protocol.payload import Fact, Facts


class FoundFacts:
    """Collects facts. `remedy`: what to do where two of them are of the same element and attribute."""

    def __init__(self, remedy: str) -> None:
        self._remedy = remedy
        self._facts: dict[tuple[str, str, str], Fact] = {}
        self._sources: list[str] = []  # of each: where it stood

    def add(self, fact: Fact, source: str) -> None:
        """Raises Cannot where it is there already, or if there are too many."""
        key = fact[:3]
        if key in self._facts:
            first = self._sources[list(self._facts).index(key)]
            what = f"{fact.attribute} of {fact.element} {fact.instance!r}"
            raise Cannot(f"{first} and {source} are both {what}; {self._remedy}")
        if len(self._facts) == LONGEST_LIST:
            raise Cannot(f"there are more than {LONGEST_LIST:,} readings; choose fewer elements or metrics")
        self._facts[key] = fact
        self._sources.append(source)

    def facts(self) -> Facts:
        return Facts(self._facts.values())


def finite(value: float) -> float | None:
    """None: it is no value."""
    try:
        return value if math.isfinite(value) else None
    except OverflowError:  # an integer that is no float
        return None
