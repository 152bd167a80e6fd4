"""Prints what the published tools print, for scripts that read it: `--compat`.

Rule: number for number where theirs is right, and, on purpose, where theirs is merely odd (how:
docs/internals/percentiles.md). Where a tool crashes or loses data, ours does the sane thing. Nothing here is used for
ivypy's own numbers.
"""

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path

from ..readers.detect_format import Hints
from .options import CompatOptions

__all__ = ["CompatOptions", "Tool", "printer_of"]


class Tool(StrEnum):
    PCTILES = "histo-log-pctiles"
    HIST = "fiologparser_hist"
    LOGPARSER = "fiologparser"


Printer = Callable[[Sequence[Path], Hints, CompatOptions], Iterator[str]]


def printer_of(tool: Tool) -> Printer:
    """Return the function that prints like a tool: lines without their newlines."""
    from . import fiologparser, fiologparser_hist, pctiles  # nothing else needs them: the command starts sooner

    match tool:
        case Tool.PCTILES:
            return pctiles.lines
        case Tool.HIST:
            return fiologparser_hist.lines
        case Tool.LOGPARSER:
            return fiologparser.lines
