"""What the published tools print, for scripts that read it: `--compat`.

Rule: number for number where theirs is right, and, on purpose, where theirs is merely odd (docs/percentiles.md lists
how). Where a tool crashes or loses data, ours does the sane thing. Nothing here is used for ivypy's own numbers.
"""

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final

from ..readers.detect_format import Hints
from . import fiologparser, fiologparser_hist, pctiles
from .options import CompatOptions

__all__ = ["PRINTERS", "CompatOptions", "Tool"]


class Tool(StrEnum):
    PCTILES = "histo-log-pctiles"
    HIST = "fiologparser_hist"
    LOGPARSER = "fiologparser"


Printer = Callable[[Sequence[Path], Hints, CompatOptions], Iterator[str]]

# What prints like a tool: lines without their newlines.
PRINTERS: Final[dict[Tool, Printer]] = {
    Tool.PCTILES: pctiles.lines,
    Tool.HIST: fiologparser_hist.lines,
    Tool.LOGPARSER: fiologparser.lines,
}
