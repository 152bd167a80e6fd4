"""The lines that hosts wrote to stderr before they ended, for commands that make no run folder with the hosts' logs."""

from collections import defaultdict, deque
from collections.abc import Callable
from typing import Final

MOST_WORDS: Final = 4  # lines
STDERR: Final = "!! "  # before them in a host's log


class LastWords:
    """Keeps the last lines that each host wrote to stderr."""

    def __init__(self) -> None:
        self._of: defaultdict[str, deque[str]] = defaultdict(lambda: deque(maxlen=MOST_WORDS))

    def log(self, host: str) -> Callable[[str], None]:
        """Return the function that takes the lines of a host's log."""

        def take(line: str) -> None:
            if line.startswith(STDERR):
                self._of[host].append(line.removeprefix(STDERR))

        return take

    def quoted(self, host: str) -> str:
        """The lines in one sentence."""
        words = " | ".join(self._of[host])
        return f"its last words: {words}" if words else "it wrote nothing to stderr"
