"""Views around another view: only the end of a run, a result in the place of its table, a thread of their own."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from ..output.csv_text import utc
from ..summary.measured import StepEnds
from .console_thread import ConsoleWriter
from .line_view import TextLines
from .reports import EventLine, Report, RunEnds, Watcher
from .stdio import NotRead

CLOSE_S: Final = 5.0  # at the end of the run, for the console to be read


class OnlyTheEnd:
    """Writes how the run ended, and its folder."""

    def __init__(self, lines: TextLines) -> None:
        self._lines = lines

    def show(self, report: Report) -> None:
        if isinstance(report, RunEnds):
            self._lines.show(replace(report, steps=()))

    def close(self) -> None:
        pass


class KeepsTheEnd:
    """Keeps where a run's folder is, once it has ended, and whether any step did."""

    def __init__(self, inner: Watcher) -> None:
        self._inner = inner
        self.folder = ""  # "" until then, and of a run that was refused and left none
        self.has_steps = False

    def show(self, report: Report) -> None:
        if isinstance(report, RunEnds):
            self.folder = report.folder
            self.has_steps = bool(report.steps)
        self._inner.show(report)

    def close(self) -> None:
        self._inner.close()


class WithResult:
    """Shows a run, and at its end a result instead of the table of its steps, which has the verdicts, too. `in_detail`:
    how each step ended, besides."""

    def __init__(
        self, inner: Watcher, write: Callable[[str], None], result: Callable[[RunEnds], Sequence[str]], in_detail: bool
    ) -> None:
        self._inner = inner
        self._write = write
        self._result = result
        self._in_detail = in_detail

    def show(self, report: Report) -> None:
        if not isinstance(report, RunEnds) or not report.steps:
            if self._in_detail or not isinstance(report, StepEnds):
                self._inner.show(report)
            return
        self._inner.close()
        for line in ["", *self._result(report)]:
            self._write(line)

    def close(self) -> None:
        self._inner.close()


class ThreadedView:
    """Shows a run on its own console from a thread, so the run never waits for whoever reads it.

    `inner` is called in the thread alone, and may wait as long as it likes. While too many reports wait, a new one
    drops the oldest, and the console shows how many were dropped. The last report of a run is never dropped.
    """

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
