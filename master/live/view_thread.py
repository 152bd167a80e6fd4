"""Shows a run on its own console from a thread, so the run never waits for whoever reads it.

Rule: while too many reports wait, a new one drops the oldest, and the console shows how many were dropped. The
last report of a run is never dropped.
"""

import time
from functools import partial
from typing import Final

from ..output.csv_text import utc
from .console_thread import ConsoleWriter
from .reports import EventLine, Report, Watcher
from .stdio import NotRead

CLOSE_S: Final = 5.0  # at the end of the run, for the console to be read


class ThreadedView:
    """Fills the seam of a watcher: `inner` is called in the thread alone, and may wait as long as it likes."""

    def __init__(self, inner: Watcher) -> None:
        self._inner = inner
        self._outlet = ConsoleWriter("ivypy-console", self._tell)

    def show(self, report: Report) -> None:
        """Raises the error with which an earlier report was not written."""
        if self._outlet.error is not None:
            raise self._outlet.error
        self._outlet.put(partial(self._inner.show, report))

    def close(self) -> None:
        """Wait for a reader, for CLOSE_S. Raises NotRead, or the error with which a report was not written."""
        self._outlet.put(self._inner.close)
        left = self._outlet.flush(CLOSE_S) - 1  # the closing itself is no report
        if self._outlet.error is not None:
            raise self._outlet.error
        if left > 0:
            raise NotRead(f"standard output was not read: the end of the run was not shown ({left:,} reports)")

    def _tell(self, dropped: int) -> None:
        text = f"... {dropped:,} reports were not shown: standard output was not read"
        self._inner.show(EventLine(utc(time.time_ns()), "", text))
