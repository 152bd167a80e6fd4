"""`select`: LUNs by their attributes.

Rule: within a clause every attribute must match (AND); an attribute matches if one of its plain conditions does
(OR), and none of its negated ones; a select of several clauses matches if one clause does. An attribute that a
LUN does not have matches only `none` and `not`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ....protocol.payload import Attribute

Attributes = Mapping[str, Attribute]


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition on one attribute's value."""

    text: str  # as written, for describing it
    test: Callable[[Attribute | None], bool]  # without the `not`; None: the LUN has no such attribute
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Select:
    clauses: tuple[Mapping[str, tuple[Condition, ...]], ...]

    def matches(self, attributes: Attributes) -> bool:
        return any(
            all(_holds(conditions, attributes.get(name)) for name, conditions in clause.items())
            for clause in self.clauses
        )

    def unmet(self, attributes: Attributes) -> tuple[str, ...]:
        """The attributes that keep a LUN from matching, of the clause that it comes nearest to; () if it matches."""
        unmet = (
            tuple(name for name, conditions in clause.items() if not _holds(conditions, attributes.get(name)))
            for clause in self.clauses
        )
        return min(unmet, key=len)

    def allows(self, known: Attributes) -> bool:
        """Whether a LUN of which only `known` is known could match."""
        return any(
            all(_holds(conditions, known[name]) for name, conditions in clause.items() if name in known)
            for clause in self.clauses
        )

    @property
    def attributes_named(self) -> frozenset[str]:
        return frozenset(name for clause in self.clauses for name in clause)

    def __str__(self) -> str:
        return "; or ".join(
            ", ".join(f"{name}: {_shown(conditions)}" for name, conditions in clause.items()) for clause in self.clauses
        )


def _shown(conditions: tuple[Condition, ...]) -> str:
    plain = " or ".join(c.text for c in conditions if not c.negated)
    return " and ".join(filter(None, [plain, *(c.text for c in conditions if c.negated)]))


def _holds(conditions: tuple[Condition, ...], value: Attribute | None) -> bool:
    plain = [c for c in conditions if not c.negated]
    if plain and not any(c.test(value) for c in plain):
        return False
    return not any(c.test(value) for c in conditions if c.negated)
