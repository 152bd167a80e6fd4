"""How wide a terminal is, and text cut to it. What is no terminal, a pipe or a log, gets its lines whole."""

import os
from typing import Final, TextIO

from ..text.wrapping import wrapped

ASSUMED: Final = 80  # columns of a terminal that does not know


def columns_of(stream: TextIO) -> int | None:
    """The columns of a terminal, or what COLUMNS says of it; None where the stream is no terminal."""
    if not stream.isatty():
        return None
    told = os.environ.get("COLUMNS", "")
    try:
        return int(told) if told.isdecimal() and int(told) else os.get_terminal_size(stream.fileno()).columns or ASSUMED
    except OSError:
        return ASSUMED


def fitted(text: str, stream: TextIO) -> str:
    """Its lines wrapped for the terminal that the stream is."""
    width = columns_of(stream)
    if width is None:
        return text
    return "\n".join(piece for line in text.split("\n") for piece in wrapped(line, width))
