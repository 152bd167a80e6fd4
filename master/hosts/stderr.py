"""The far process's stderr: every line to the host's log, the last few kept to explain why it ended."""

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

LAST_LINES: Final = 5
LONGEST: Final = 2000  # bytes of a line that are kept; stderr is for people
LONGEST_SAID: Final = 200  # characters of it in a fault: a shell that does not take a command line repeats all of it
MOST_LOGGED: Final = 10 << 20  # bytes of all of it that the host's log gets
READ_BYTES: Final = 1 << 14


class Stderr:
    """Holds the line that has not ended yet, and the last ones that have."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._open = b""
        self._logged = 0
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
                self._last.append(text if len(text) <= LONGEST_SAID else f"{text[:LONGEST_SAID]}...")
                self._log_capped(f"!! {text}")

    def _log_capped(self, text: str) -> None:
        before = self._logged
        self._logged += len(text)
        if self._logged <= MOST_LOGGED:
            self._log(text)
        elif before <= MOST_LOGGED:
            self._log(f"!! (no more of its stderr is kept here than {MOST_LOGGED >> 20} MiB)")

    @property
    def words(self) -> tuple[str, ...]:
        """The last lines, oldest first."""
        return tuple(self._last)
