"""Lines of text for a width: prose is cut between words, a command to copy never."""

import re
import textwrap
from typing import Final

COMMAND: Final = "ivypy "  # begins a line that is to be copied
_BEFORE_UNIT: Final = re.compile(r"(?<=\d) (?=(?:%|[kMGT]|[KMGT]iB|B|us|ms|s)(?:/s)?(?![^\W_]))")
_BOUND: Final = "\u00a0"  # a blank at which no line is cut


def wrapped(line: str, width: int) -> list[str]:
    """A line in pieces that fit, each with the line's indent; all but the first are indented by two more.

    A figure stays with its unit. A word that is longer than the width, mostly a path, has a piece of its own, which
    does not fit.
    """
    words = line.lstrip()
    if len(line) <= width or words.startswith(COMMAND):
        return [line]
    indent = line[: len(line) - len(words)]
    bound = _BEFORE_UNIT.sub(_BOUND, words.rstrip())
    pieces = textwrap.wrap(
        bound, width, initial_indent=indent, subsequent_indent=indent + "  ", break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    return [piece.replace(_BOUND, " ") for piece in pieces]


def shortened(name: str, width: int) -> str:
    """A name without its middle where it is too long: its end distinguishes it from its neighbours."""
    if len(name) <= width:
        return name
    end = (width - 1) // 2
    return f"{name[: width - 1 - end]}~{name[-end:]}"
