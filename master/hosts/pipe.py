"""The seam between the launchers and everything above them: a pair of byte streams to a far process.

Rule: the holder of a Pipe does not know what it runs through. Lines are split above it, by protocol/lines.py alone.
"""

from typing import Protocol

from ...protocol.text import printable


class PipeLost(Exception):
    """The way to the far process was cut, or the process ended in a way it should not have; its text states how.

    `status` is the far process's exit status where there is one, `words` the last lines that it wrote to stderr.
    """

    def __init__(self, reason: str, status: int | None = None, words: tuple[str, ...] = ()) -> None:
        super().__init__(printable(reason))
        self.status = status
        self.words = tuple(map(printable, words))


class Pipe(Protocol):
    """Plain bytes both ways to a far process; its stderr goes to the host's log by itself."""

    async def read(self, n: int) -> bytes:
        """From 1 to `n` bytes as soon as there are any; b"" once the far process has ended with status 0.

        Raises PipeLost when the way was cut, or when the process ended with another status or by a signal.
        """
        ...

    async def write(self, data: bytes) -> None:
        """Returns when the stream has room for more. Raises PipeLost when nobody can read it any more."""
        ...

    async def close(self) -> None:
        """End the far process's input, give it a short while to exit, then cut the way. May be called twice."""
        ...
