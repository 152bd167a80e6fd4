"""`ivypy attach --by host`: the rollup instances of one type, full screen, refreshed in place.

Rule: it only shows. Keys change what it sorts by; a key that leaves ends the following, never the run.
"""

import os
import select
import signal
import sys
import termios
import threading
import tty
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from ..summary.measured import StepEnds
from ..summary.steps_table import verdict_lines
from ..text.wrapping import wrapped
from .instances_table import Order, instances_lines
from .line_view import TextLines, event_line
from .reports import EventLine, Instances, Report, RunEnds, StepBegins, Subinterval
from .step_lines import left, local_now, step_position
from .subinterval_lines import header_lines, subinterval_lines

KEYS: Final = {"p": Order.P99, "m": Order.MAX, "i": Order.IOPS, "n": Order.NAME}
LEAVE: Final = "q"
HELP: Final = "sort by [p]99, [m]ax, [i]ops (lowest first), [n]ame; [q]uit: the run continues"
HISTORY: Final = 240  # subintervals that a sparkline can show
EVENTS: Final = 3  # of the latest


class InstancesScreen:
    """A watcher. Its table is drawn after each subinterval, and after each key."""

    def __init__(self, by: str, stream: TextIO | None = None) -> None:
        self._by = by
        self._console = Console(file=stream, highlight=False)
        self._live = Live(
            console=self._console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        )
        self._lock = threading.Lock()
        self._order = Order.P99
        self._history: dict[str, deque[tuple[float | None, ...]]] = {}
        self._events: deque[str] = deque(maxlen=EVENTS)
        self._step: StepBegins | None = None
        self._last: Subinterval | None = None
        self._instances: Instances | None = None
        self._ended = False  # there is no screen any more

    def show(self, report: Report) -> None:
        with self._lock:
            match report:
                case StepBegins():
                    self._step = report
                    self._history.clear()
                case Subinterval():
                    self._last = report
                case Instances():
                    self._instances = report
                    self._remember(report)
                case EventLine():
                    self._events.append(event_line(report))
                case StepEnds():
                    self._events.extend(verdict_lines(report)[:1])
                case RunEnds():
                    self._end(report)
                    return
            self._draw()

    def sort_by(self, order: Order) -> None:
        with self._lock:
            self._order = order
            self._draw()

    def close(self) -> None:
        self._ended = True
        self._live.stop()

    def _end(self, report: RunEnds) -> None:
        """Leave the full screen, and show how the run ended, as in a log."""
        self.close()
        for line in TextLines(lambda _: None, lambda: self._console.width).lines(report):
            self._console.print(Text(line), soft_wrap=True)

    def lines(self, width: int, height: int) -> list[str]:
        """The screen's lines."""
        above = []
        if self._step is not None:
            above.append(f"{step_position(self._step)}: {self._step.name}")
        if self._last is not None:
            ends = left(self._last.step_remaining_s, self._last.paused, local_now())
            above[-1:] = [f"{above[-1] if above else self._last.step}; {ends}"]
            above += [*header_lines(width), *subinterval_lines(self._last, width)]
        above = [piece for line in above for piece in wrapped(line, width)]
        below = [piece for line in ("", *self._events, HELP) for piece in wrapped(line, width) or [""]]
        table = [f"waiting for a subinterval of {self._by}"]
        if self._instances is not None:
            room = max(height - len(above) - len(below) - 2, 1)
            place_of = list(Order).index(self._order)
            history = {name: [figures[place_of] for figures in before] for name, before in self._history.items()}
            table = instances_lines(self._instances, width, self._order, history, room)
            if (more := len(self._instances.rows) - room) > 0:
                below.insert(0, f"... and {more:,} more")
        return [*above, "", *table, *below][:height]

    def _remember(self, report: Instances) -> None:
        """Of an instance that is absent from this subinterval, a gap."""
        figures = {one.name: tuple(order.figure(one) for order in Order) for one in report.rows}
        for name in figures:
            self._history.setdefault(name, deque(maxlen=HISTORY))
        for name, before in self._history.items():
            before.append(figures.get(name, (None,) * len(Order)))

    def _draw(self) -> None:
        if self._ended:
            return
        if not self._live.is_started:
            self._live.start()
        width, height = self._console.size
        self._live.update(Text("\n".join(self.lines(width, height)), no_wrap=True, overflow="crop"), refresh=True)


@contextmanager
def keys_sort(screen: InstancesScreen) -> Iterator[Callable[[], bool]]:
    """Read keys from the terminal while the block runs, in a thread; yields whether the leaving key was pressed.

    That key interrupts the main thread as Ctrl-C does. Where standard input is no terminal there are no keys.
    """
    left = threading.Event()
    if not sys.stdin.isatty():
        yield left.is_set
        return
    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    stop_reading, stop_writing = os.pipe()

    def read() -> None:
        while True:
            ready, _, _ = select.select([fd, stop_reading], [], [])
            if stop_reading in ready:
                return
            key = os.read(fd, 1).decode(errors="replace").lower()
            if key in KEYS:
                screen.sort_by(KEYS[key])
            elif key in (LEAVE, ""):  # "": the terminal is gone
                left.set()
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
                return

    reader = threading.Thread(target=read, name="ivypy-keys", daemon=True)
    try:
        tty.setcbreak(fd)
        reader.start()
        yield left.is_set
    finally:
        os.write(stop_writing, b".")
        reader.join(1.0)
        termios.tcsetattr(fd, termios.TCSADRAIN, before)
        os.close(stop_reading)
        os.close(stop_writing)
