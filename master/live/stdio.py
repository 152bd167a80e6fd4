"""Standard output and error that may go away (closed terminal, full disk) or stall (Ctrl-S, a pager).

Rule: a failed write is known by its own error, is reported once where that is possible, and never changes how a command
ends. Nobody waits for standard error or, during a run, for standard output. A character that a console cannot show is
shown by its number.
"""

import atexit
import errno
import io
import os
import select
import sys
from contextlib import suppress
from functools import partial
from typing import Any, Final, TextIO

from .console_thread import ConsoleWriter
from .terminal_width import fitted

ESCAPED: Final = "backslashreplace"
LAST_WORDS_S: Final = 2.0  # for standard error to be read, once the command has ended


class ConsoleLost(OSError):
    """Standard output cannot be written: nothing else of ours has failed.

    It has no `errno`, by which click would end the command for us.
    """

    def __init__(self, why: OSError) -> None:
        super().__init__(why.strerror)
        self.read_enough = why.errno == errno.EPIPE  # its reader left: `ivypy columns | head`


class NotRead(OSError):
    """Standard output was not read to its end; its text says what was not shown."""


class _Output(io.FileIO):
    """A file descriptor whose error is a ConsoleLost."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise ConsoleLost(error) from None


class _Aside(io.RawIOBase):
    """A file descriptor that a thread of its own writes to."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.outlet = ConsoleWriter(
            f"ivypy-fd{fd}", lambda dropped: write_all(fd, b"... %d lines were not shown\n" % dropped)
        )

    def fileno(self) -> int:
        return self._fd

    def isatty(self) -> bool:
        return os.isatty(self._fd)

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self.outlet.put(partial(write_all, self._fd, bytes(data)))
        return len(data)


class Direct(io.TextIOBase):
    """Standard output without a buffer or a lock, for the one thread that shows a run; raises ConsoleLost.

    A thread that blocks in it holds nothing that the process needs to end.
    """

    def __init__(self) -> None:
        self._fd = sys.stdout.fileno()
        self._encoding = sys.stdout.encoding or "ascii"

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def fileno(self) -> int:
        return self._fd

    def isatty(self) -> bool:
        return os.isatty(self._fd)

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        try:
            write_all(self._fd, text.encode(self._encoding, ESCAPED))
        except OSError as error:
            raise ConsoleLost(error) from None
        return len(text)


def write_all(fd: int, data: bytes) -> None:
    """Wait until all of it is taken, also where somebody else made the descriptor one that does not wait."""
    while data:
        try:
            data = data[os.write(fd, data) :]
        except BlockingIOError:
            select.select([], [fd], [])


def guard() -> None:
    """Have standard output raise ConsoleLost where it cannot be written; one that is not there takes everything."""
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()
    out, err = sys.stdout, sys.stderr
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_Output(out.fileno(), "w", closefd=False)),
        encoding=out.encoding,
        errors=ESCAPED,
        line_buffering=bool(out.line_buffering),
    )
    aside = _Aside(err.fileno())
    sys.stderr = io.TextIOWrapper(io.BufferedWriter(aside), encoding=err.encoding, errors=ESCAPED, line_buffering=True)
    atexit.register(aside.outlet.flush, LAST_WORDS_S)


def say(text: str) -> None:
    """Lines on standard output, wrapped where that is a terminal."""
    print(fitted(text, sys.stdout), flush=True)


def complain(words: str) -> None:
    """A line on standard error, if there is somebody to read it."""
    with suppress(OSError):
        print(fitted(words, sys.stderr), file=sys.stderr, flush=True)


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
