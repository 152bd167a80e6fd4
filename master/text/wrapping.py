"""Lines of text for a width: prose is cut between words, a command to copy never."""

import textwrap
from typing import Final

COMMAND: Final = "ivypy "  # begins a line that is to be copied


def wrapped(line: str, width: int, hanging: int = 2) -> list[str]:
    """A line in pieces that fit, each with the line's indent; all but the first are indented by `hanging` more.

    A word that is longer than the width, mostly a path, has a piece of its own, which does not fit.
    """
    words = line.lstrip()
    if len(line) <= width or words.startswith(COMMAND):
        return [line]
    indent = line[: len(line) - len(words)]
    return textwrap.wrap(
        words.rstrip(), width, initial_indent=indent, subsequent_indent=indent + " " * hanging,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def shortened(name: str, width: int) -> str:
    """A name without its middle where it is too long: its end distinguishes it from its neighbours."""
    if len(name) <= width:
        return name
    end = (width - 1) // 2
    return f"{name[: width - 1 - end]}~{name[-end:]}"
