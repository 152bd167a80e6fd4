"""The far process's stderr: every line to the host's log, the last few kept to say why it ended."""

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

LAST_LINES: Final = 5
LONGEST: Final = 2000  # bytes of a line that are kept; stderr is for people
READ_BYTES: Final = 1 << 14


class Stderr:
    """Remembers the line that has not ended yet, and the last ones that have."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._open = b""
        self._last: deque[str] = deque(maxlen=LAST_LINES)

    async def follow(self, read: Callable[[int], Awaitable[bytes]]) -> None:
        """Until the stream ends."""
        while data := await read(READ_BYTES):
            self.feed(data)
        self.feed(b"\n")

    def feed(self, data: bytes) -> None:
        *lines, rest = (self._open + data).split(b"\n")
        self._open = rest[:LONGEST]
        for line in lines:
            text = line[:LONGEST].decode("utf-8", "backslashreplace").rstrip()
            if text:
                self._last.append(text)
                self._log(f"!! {text}")

    @property
    def words(self) -> tuple[str, ...]:
        """The last lines, oldest first."""
        return tuple(self._last)
