"""Which watcher `--ui` means. They are imported when one is wanted, so that `--help` is quick."""

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, TextIO, cast

if TYPE_CHECKING:
    from .reports import Watcher


class Ui(StrEnum):
    AUTO = "auto"  # a progress bar where standard output is a terminal, else lines
    LINES = "lines"
    JSON = "json"
    NONE = "none"


def watcher(ui: Ui) -> "Watcher":
    from .json_lines import JsonLines
    from .line_view import TextLines
    from .reports import Nobody
    from .stdio import Direct
    from .view_thread import ThreadedView

    out = Direct()

    def write(line: str) -> None:
        out.write(f"{line}\n")

    match ui:
        case Ui.NONE:
            return Nobody()
        case Ui.JSON:
            return ThreadedView(JsonLines(write))
        case Ui.AUTO if sys.stdout.isatty():
            from .terminal_view import Terminal

            return ThreadedView(Terminal(cast(TextIO, out)))
    return ThreadedView(TextLines(write))
