"""Which refusals a text holds, by name: so a test says which one it wants, and leaves its wording to the table."""

import re
from collections.abc import Sequence
from string import Formatter

from ivypy.protocol.refusals import RefusalReason


def _pattern(template: str) -> re.Pattern[str]:
    """Of a sentence with anything in its fields, and with its lines cut at any blanks."""
    pieces: list[str] = []
    seen: set[str] = set()
    for literal, name, _, _ in Formatter().parse(re.sub(r"^{\w+}", "", template)):
        pieces.append(re.escape(literal).replace(r"\ ", r"\s+"))
        if name is not None:
            pieces.append(f"(?P={name})" if name in seen else f"(?P<{name}>.+?)")
            seen.add(name)
    return re.compile("".join(pieces), re.DOTALL)


# Those that only say whom another reason concerns are left out.
PATTERNS = {reason: _pattern(reason.value) for reason in RefusalReason if "{reason}" not in reason.value}


def refusals_in(text: str) -> set[RefusalReason]:
    """All that occur in a text, such as what a command printed."""
    return {reason for reason, pattern in PATTERNS.items() if pattern.search(text)}


def found_in(reasons: Sequence[str]) -> list[RefusalReason]:
    """The name of each sentence."""
    return [_only(sentence) for sentence in reasons]


def _only(sentence: str) -> RefusalReason:
    found = refusals_in(sentence)
    assert len(found) == 1, f"{sentence!r} is {sorted(reason.name for reason in found) or 'no refusal'}"
    return found.pop()
