"""Which watcher `--ui` means. They are imported when one is wanted, so that `--help` is quick."""

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, TextIO, cast

if TYPE_CHECKING:
    from .report import Watcher


class Ui(StrEnum):
    AUTO = "auto"  # a progress bar where standard output is a terminal, else lines
    LINES = "lines"
    JSON = "json"
    NONE = "none"


def watcher(ui: Ui) -> "Watcher":
    from ..console import Direct
    from .display import Display
    from .json_lines import JsonLines
    from .report import Nobody
    from .text import TextLines

    out = Direct()

    def write(line: str) -> None:
        out.write(f"{line}\n")

    match ui:
        case Ui.NONE:
            return Nobody()
        case Ui.JSON:
            return Display(JsonLines(write))
        case Ui.AUTO if sys.stdout.isatty():
            from .terminal import Terminal

            return Display(Terminal(cast(TextIO, out)))
    return Display(TextLines(write))
