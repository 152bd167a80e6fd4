"""Which watcher the options of a command mean. They are imported when one is wanted, so that `--help` is quick."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TextIO, cast

if TYPE_CHECKING:
    from .reports import RunEnds, Watcher


class Ui(StrEnum):
    AUTO = "auto"  # refreshed in place where standard output is a terminal, else lines
    LINES = "lines"
    JSON = "json"
    NONE = "none"  # only how the run ended, and where its folder is


EVERY_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class View:
    """How a run is shown, and how much of it."""

    ui: Ui = Ui.AUTO
    every_s: float = EVERY_S  # from one subinterval that has a line to the next
    in_detail: bool = False  # every subinterval, reads and writes apart, all messages and reasons: as lines


@contextmanager
def followed(view: View, by: str) -> "Iterator[tuple[Watcher, Callable[[], bool]]]":
    """A watcher of the instances of a rollup type ("": of the run), and whether its reader has left by a key."""
    if not (by and view.ui is Ui.AUTO and sys.stdout.isatty()):
        yield watcher(view), lambda: False
        return
    from .instances_screen import InstancesScreen, keys_sort
    from .stdio import Direct
    from .view_decorators import ThreadedView

    screen = InstancesScreen(by, cast(TextIO, Direct()))
    with keys_sort(screen) as has_left:
        yield ThreadedView(screen), has_left


def close_view(watching: "Watcher") -> None:
    """A console that is gone, or not read, does not change how the command ends."""
    from . import stdio

    try:
        watching.close()
    except stdio.NotRead as error:
        stdio.complain(str(error))
    except OSError:
        pass


def watcher(view: View, result: "Callable[[RunEnds], Sequence[str]] | None" = None) -> "Watcher":
    """`result`: lines for people in the place of the table of steps."""
    from .json_lines import JsonLines
    from .line_view import TextLines
    from .stdio import Direct
    from .view_decorators import OnlyTheEnd, ThreadedView, WithResult

    out = Direct()

    def write(line: str) -> None:
        out.write(f"{line}\n")

    inner: Watcher = TextLines(write, every_s=view.every_s, in_detail=view.in_detail)
    match view.ui:
        case Ui.NONE:
            inner = OnlyTheEnd(TextLines(write))
        case Ui.JSON:
            return ThreadedView(JsonLines(write))
        case Ui.AUTO if sys.stdout.isatty() and not view.in_detail:
            from .terminal_view import Terminal

            inner = Terminal(cast(TextIO, out))
    return ThreadedView(inner if result is None else WithResult(inner, write, result, view.in_detail))
