"""Standard output and error, which may go away: a reader leaves, a terminal is closed, a disk is full.

Rule: what cannot be written there is known by its own error, is told once where it can be, and never changes how a
command ends.
"""

import errno
import io
import os
import sys
from contextlib import suppress
from typing import Any, TextIO


class ConsoleLost(OSError):
    """Standard output cannot be written: nothing else of ours has failed.

    It has no `errno`, by which click would end the command for us.
    """

    def __init__(self, why: OSError) -> None:
        super().__init__(why.strerror)
        self.read_enough = why.errno == errno.EPIPE  # its reader left: `ivypy columns | head`


class _Output(io.FileIO):
    """A file descriptor whose error is a ConsoleLost."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise ConsoleLost(error) from None


def guard() -> None:
    """Have standard output raise ConsoleLost where it cannot be written; one that is not there takes everything."""
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()
    known = sys.stdout
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_Output(known.fileno(), "w", closefd=False)),
        encoding=known.encoding,
        errors=known.errors,
        line_buffering=bool(known.line_buffering),
    )


def complain(words: str) -> None:
    """A line on standard error, if there is somebody to read it."""
    with suppress(OSError):
        print(words, file=sys.stderr, flush=True)


def settle() -> None:
    """Drop what could not be written: the interpreter would try again as it ends, and end with another code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _nowhere() -> TextIO:
    """It takes the place of the descriptor that was closed, too, which no file of ours must get."""
    return open(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8", closefd=False)
