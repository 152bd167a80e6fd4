"""A thread that writes to a console, so that nobody else waits for its reader.

Rule: pieces are written in order. While MOST wait, a new piece drops the oldest, and the number of dropped pieces is
written before the next one: a reader who comes back sees the latest. The first error is kept, and nothing is written
after it.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Final

MOST: Final = 1000  # pieces that wait


class ConsoleWriter:
    """Holds the pieces that wait. Its thread begins with the first piece, and does not keep the process alive."""

    def __init__(self, name: str, tell: Callable[[int], None]) -> None:
        """`tell`, in the thread, gets how many pieces were dropped since its last call."""
        self.error: OSError | None = None
        self._name = name
        self._tell = tell
        self._waiting: deque[Callable[[], object]] = deque()
        self._dropped = 0
        self._busy = False
        self._thread: threading.Thread | None = None
        self._changed = threading.Condition()  # of an RLock: a warning may be printed in the midst of `put`

    def put(self, piece: Callable[[], object]) -> None:
        """Have `piece` written; never waits for it."""
        with self._changed:
            if self.error is not None:
                return
            if len(self._waiting) == MOST:
                self._waiting.popleft()
                self._dropped += 1
            self._waiting.append(piece)
            self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._write, name=self._name, daemon=True)
                self._thread.start()

    def flush(self, within_s: float) -> int:
        """Wait until all is written, no longer than that. Returns how many pieces are not, the dropped ones too."""
        with self._changed:
            self._changed.wait_for(lambda: not (self._waiting or self._busy) or self.error is not None, within_s)
            return 0 if self.error is not None else len(self._waiting) + self._busy + self._dropped

    def _write(self) -> None:
        """In the thread."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                piece, self._busy = self._waiting.popleft(), True
                dropped, self._dropped = self._dropped, 0
            error = None
            try:
                if dropped:
                    self._tell(dropped)
                piece()
            except OSError as why:
                error = why
            with self._changed:
                self._busy = False
                if error is not None:
                    self.error = error
                    self._waiting.clear()
                self._changed.notify_all()
