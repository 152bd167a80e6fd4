"""Which watcher `--ui` means. They are imported when one is wanted, so that `--help` is quick."""

import sys
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .report import Watcher


class Ui(StrEnum):
    AUTO = "auto"  # a progress bar where standard output is a terminal, else lines
    LINES = "lines"
    JSON = "json"
    NONE = "none"


def watcher(ui: Ui) -> "Watcher":
    from .json_lines import JsonLines
    from .report import Nobody
    from .text import TextLines

    def write(line: str) -> None:
        print(line, flush=True)

    match ui:
        case Ui.NONE:
            return Nobody()
        case Ui.JSON:
            return JsonLines(write)
        case Ui.AUTO if sys.stdout.isatty():
            from .terminal import Terminal

            return Terminal()
    return TextLines(write)
