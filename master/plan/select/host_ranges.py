"""Host names with ranges: `lab[01-16]`, `lab[1,3-5]`, `r[1-2]n[1-4]`.

`expand` reads such a text, `compact` writes the fewest that stand for a list of names.

Rule: numbers keep the width in which the range's start is written (01-16 gives 01, 02 ... 16); the last bracket turns
fastest.
"""

import re
from collections.abc import Iterable
from itertools import pairwise, product
from typing import Final

MOST: Final = 10_000  # names that one text may stand for
_PART: Final = re.compile(r"(\d+)(?:-(\d+))?")
_DIGITS: Final = re.compile(r"([0-9]+)")
_EXAMPLE: Final = "write for example lab[01-16] or lab[1,3-5]"


def expand(text: str) -> list[str]:
    """All names that `text` stands for. Raises ValueError with the remedy."""
    pieces = re.split(r"\[([^\[\]]*)\]", text)  # literal, range, literal, range, ..., literal
    if any(bracket in literal for literal in pieces[::2] for bracket in "[]"):
        raise ValueError(f"a [ or ] in {text!r} has no partner; {_EXAMPLE}")
    choices = [_numbers(piece, text) if i % 2 else [piece] for i, piece in enumerate(pieces)]
    count = 1
    for choice in choices:
        count *= len(choice)
    if count > MOST:
        raise ValueError(f"{text!r} stands for {count:,} names; the most is {MOST:,}")
    return ["".join(parts) for parts in product(*choices)]


def _numbers(inside: str, text: str) -> list[str]:
    numbers: list[str] = []
    for part in inside.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"[{inside}] in {text!r} is not a range of numbers; {_EXAMPLE}")
        start, end = match[1], match[2] or match[1]
        if start.startswith("0") and len(start) != len(end) and len(start) > 1:
            raise ValueError(f"{part.strip()!r} in {text!r} begins and ends in different widths; {_EXAMPLE}")
        if int(end) < int(start):
            raise ValueError(f"{part.strip()!r} in {text!r} runs backwards; write {end}-{start}")
        if int(end) - int(start) >= MOST:
            raise ValueError(f"{part.strip()!r} in {text!r} stands for more than {MOST:,} names")
        numbers += [str(number).zfill(len(start)) for number in range(int(start), int(end) + 1)]
    return numbers


def compact(names: Iterable[str]) -> list[str]:
    """Texts that stand for these names, in their order; a name with a bracket in it stays as it is."""
    texts: list[str] = []
    group: list[list[str]] = []  # names in pieces (literal, number, literal, ...) that differ in one number
    for name in names:
        pieces = _DIGITS.split(name)
        if group and not _joins(group, pieces):
            texts.append(_ranged(group))
            group = []
        group.append(pieces)
    return [*texts, _ranged(group)] if group else texts


def _joins(group: list[list[str]], pieces: list[str]) -> bool:
    """Whether a further name differs from all of a group in one number, the same as they do from each other."""
    first = group[0]
    if len(pieces) != len(first) or len(group) == MOST or any(bracket in "".join(pieces) for bracket in "[]"):
        return False
    place = _place(first, pieces)
    return place is not None and (len(group) == 1 or place == _place(first, group[1]))


def _place(one: list[str], other: list[str]) -> int | None:
    """Where two names differ, if that is in one number alone."""
    places = [i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    return places[0] if len(places) == 1 and places[0] % 2 else None


def _ranged(group: list[list[str]]) -> str:
    first = group[0]
    if len(group) == 1:
        return "".join(first)
    place = _place(first, group[1])
    assert place is not None
    runs = [[first[place]]]
    for before, (number,) in pairwise([[pieces[place]] for pieces in group]):
        if _follows(runs[-1][0], before[0], number):
            runs[-1].append(number)
        else:
            runs.append([number])
    inside = ",".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
    return "".join([*first[:place], f"[{inside}]", *first[place + 1 :]])


def _follows(start: str, before: str, number: str) -> bool:
    """Whether a range from `start` that holds `before` goes on with `number`, as `expand` writes it."""
    padded = len(start) > 1 and start.startswith("0")
    return number == str(int(before) + 1).zfill(len(start)) and not (padded and len(number) != len(start))
