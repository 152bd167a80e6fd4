"""Views that show the end of a run in a way of their own."""

from collections.abc import Callable
from dataclasses import replace

from .line_view import TextLines
from .reports import Report, RunEnds, Watcher


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
    """Shows a run, and at its end a result instead of the table of its steps."""

    def __init__(self, inner: Watcher, write: Callable[[str], None], result: Callable[[RunEnds], list[str]]) -> None:
        self._inner = inner
        self._write = write
        self._result = result

    def show(self, report: Report) -> None:
        if not isinstance(report, RunEnds) or not report.steps:
            self._inner.show(report)
            return
        self._inner.close()
        for line in ["", *self._result(report)]:
            self._write(line)

    def close(self) -> None:
        self._inner.close()
