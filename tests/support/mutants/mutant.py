"""One small change of a module."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Generic, TypeVar

WIDTH: Final = 60  # of a text that is shown whole
AROUND: Final = 24  # characters beside a difference

Place = TypeVar("Place")


@dataclass(frozen=True)
class Change(Generic[Place]):
    """A change, and where it is made."""

    line: int
    scope: str  # the qualified name of the function that it is in; "" outside of functions
    before: str
    after: str
    place: Place


@dataclass(frozen=True)
class Mutant(Generic[Place]):
    """A change with a name that stays while other lines of the module change."""

    id: str
    change: Change[Place]

    def __str__(self) -> str:
        one = self.change
        before, after = _cut(one.before, one.after)
        return f"{self.id}  line {one.line}, {one.scope or 'module'}: {before}  ->  {after}"


def _cut(before: str, after: str) -> tuple[str, str]:
    """Both texts without most of what they have in common, where they are long."""
    if len(before) <= WIDTH:
        return before, after
    same = _same(before, after)
    end = _same(before[same:][::-1], after[same:][::-1])
    start = max(same - AROUND, 0)
    cut = [text[start : len(text) - max(end - AROUND, 0)] for text in (before, after)]
    left, right = "..." if start else "", "..." if end > AROUND else ""
    return f"{left}{cut[0]}{right}", f"{left}{cut[1]}{right}"


def _same(one: str, other: str) -> int:
    """How many characters they have in common at the beginning."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def named(changes: Iterable[Change[Place]]) -> list[Mutant[Place]]:
    """Mutants by what is changed and where, and the number of the change among equal ones."""
    seen: Counter[tuple[str, str, str]] = Counter()
    mutants = []
    for one in changes:
        key = one.scope, one.before, one.after
        mutants.append(Mutant(sha256("\0".join([*key, str(seen[key])]).encode()).hexdigest()[:8], one))
        seen[key] += 1
    return mutants
