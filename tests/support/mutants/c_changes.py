"""Changes of a file of C, by its words.

Comments, strings and the preprocessor's lines are left alone, and so are declarations and what is unlikely: a change
that no compiler takes is no mutant, and is found out by trying.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.support.mutants.mutant import Change, Mutant, named

EXCHANGED: Final[dict[str, tuple[str, ...]]] = {
    "<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",),
    "&&": ("||",), "||": ("&&",), "+": ("-",), "-": ("+",), "+=": ("-=",), "-=": ("+=",), "++": ("--",), "--": ("++",),
    "<<": (">>",), ">>": ("<<",), "true": ("false",), "false": ("true",),
}  # fmt: skip
LEFT_ALONE: Final = re.compile(
    r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:\\\n|[^\n])*", re.M | re.S
)
WORD: Final = re.compile(
    r"->|<<=|>>=|[-+*/%&|^<>=!]=|\+\+|--|<<|>>|&&|\|\||[-+<>]|(?<![\w.])\d+(?=[uUlL]*\b)(?!\.)|\b[A-Za-z_]\w*"
)
FUNCTION: Final = re.compile(r"^(?!typedef)[A-Za-z_][\w \t*()]*?\b(?!__)(\w+)\([^;{}]*\)\s*\{", re.M)
STATEMENT: Final = re.compile(
    r"^[ \t]+((?!return\b|goto\b)\w[\w.>\[\]-]*(?:(?:\(|\s*[-+|&^]?=\s)[^;{}]*|\+\+|--);)", re.M
)


@dataclass(frozen=True)
class Span:
    """Characters of the file, and what to put there."""

    start: int
    end: int
    new: str


class CFile:
    """A file's text and its mutants."""

    def __init__(self, text: str) -> None:
        self.whole = text
        self._bare = LEFT_ALONE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
        self._functions = [(found.start(), found[1]) for found in FUNCTION.finditer(self._bare)]
        self.mutants: list[Mutant[Span]] = named(self._changes())

    def text(self, mutant: Mutant[Span]) -> str:
        """The file with one change."""
        place = mutant.change.place
        return self.whole[: place.start] + place.new + self.whole[place.end :]

    def _changes(self) -> Iterator[Change[Span]]:
        for found in WORD.finditer(self._bare):
            for new in self._instead(found[0]):
                yield self._change(Span(found.start(), found.end(), new))
        for found in STATEMENT.finditer(self._bare):
            yield self._change(Span(found.start(1), found.end(1), ";"))

    @staticmethod
    def _instead(word: str) -> tuple[str, ...]:
        if word.isdigit():
            return (str(int(word) + 1), *([str(int(word) - 1)] if int(word) else []))
        return EXCHANGED.get(word, ())

    def _change(self, place: Span) -> Change[Span]:
        scope = [name for start, name in self._functions if start <= place.start]
        begin = self.whole.rfind("\n", 0, place.start) + 1
        end = self.whole.index("\n", place.end)
        before = self.whole[begin:end].strip()
        after = (self.whole[begin : place.start] + place.new + self.whole[place.end : end]).strip()
        return Change(self.whole.count("\n", 0, place.start) + 1, scope[-1] if scope else "", before, after, place)
