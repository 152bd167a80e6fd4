"""Which watcher `--ui` means."""

import sys
from enum import StrEnum

from .json_lines import JsonLines
from .report import Nobody, Watcher
from .text import TextLines


class Ui(StrEnum):
    AUTO = "auto"  # a progress bar where standard output is a terminal, else lines
    LINES = "lines"
    JSON = "json"
    NONE = "none"


def watcher(ui: Ui) -> Watcher:
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
