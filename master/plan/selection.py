"""`select`: which LUNs are meant, by their attributes.

Rule: within a clause every attribute must match (AND), an attribute matches if one of its conditions does (OR);
a select of several clauses matches if one clause does. Text is compared without case. An attribute that a LUN
does not have matches nothing but `not`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...protocol.messages import Attribute

Attributes = Mapping[str, Attribute]


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition on one attribute's value."""

    text: str  # as written, for describing it
    test: Callable[[Attribute | None], bool]  # None: the LUN has no such attribute


@dataclass(frozen=True, slots=True)
class Select:
    clauses: tuple[Mapping[str, tuple[Condition, ...]], ...]

    def matches(self, attributes: Attributes) -> bool:
        return any(
            all(any(c.test(attributes.get(name)) for c in conditions) for name, conditions in clause.items())
            for clause in self.clauses
        )

    @property
    def attributes_named(self) -> frozenset[str]:
        return frozenset(name for clause in self.clauses for name in clause)

    def __str__(self) -> str:
        return " or ".join(
            ", ".join(f"{name}: {' | '.join(c.text for c in conditions)}" for name, conditions in clause.items())
            for clause in self.clauses
        )
