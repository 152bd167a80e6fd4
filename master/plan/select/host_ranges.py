"""Host names with ranges: `lab[01-16]`, `lab[1,3-5]`, `r[1-2]n[1-4]`.

Rule: numbers keep the width in which the range's start is written (01-16 gives 01, 02 ... 16); the last bracket turns
fastest.
"""

import re
from itertools import product
from typing import Final

MOST: Final = 10_000  # names that one text may stand for
_PART: Final = re.compile(r"(\d+)(?:-(\d+))?")
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
    found: list[str] = []
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
        found += [str(number).zfill(len(start)) for number in range(int(start), int(end) + 1)]
    return found
