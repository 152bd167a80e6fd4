"""Explains what is wrong with a line that the C parsers rejected.

Rule: the parsers only report *that* a line is no row; the words for the user are here, and only here.
"""

import re
from collections.abc import Sequence

from .source import DIRECTIONS, Format, Source

_SHOWN = 20  # characters of a cell that are repeated in a message


def line_at(text: memoryview, offset: int) -> str:
    """The line that starts at `offset`, without its newline."""
    return bytes(text[offset:]).split(b"\n", 1)[0].decode("ascii", "replace").strip()


def line_of_row(text: memoryview, row: int) -> int:
    """Which line of `text`, from 0, holds its row `row`: blank lines are no rows."""
    rows = -1
    for number, line in enumerate(bytes(text).split(b"\n")):
        rows += bool(line.strip())
        if rows == row:
            return number
    raise IndexError(row)


def explain(line: str, source: Source, cut: bool) -> str:
    """State what is wrong with a line of `source`. `cut`: it is the last one and has no newline."""
    cells = [cell.strip() for cell in line.split(",")]
    expected = _columns(source)
    if "\0" in line:
        return "holds NUL bytes: the file was not written to its end (a crash, or a full disk)"
    if cut and len(cells) < expected:
        return f"is cut off after {len(cells):,} of {expected:,} columns: the log was not written to its end"
    if source.format is Format.SMALLFILE:
        return f"is {_short(line)!r}: expected operation, start and response time in seconds"
    for number, cell in enumerate(cells, 1):
        if re.fullmatch(r"-\d+", cell):
            return f"column {number} is the negative integer {_short(cell)}"
        if not re.fullmatch(r"\d+|0x[0-9a-fA-F]+", cell):
            return f"column {number} is the non-integer {_short(cell)!r}"
    direction_at = source.direction_at if source.format is Format.FIO_LATENCY else 1
    if len(cells) != expected:
        return _wrong_count(cells, source, expected)
    if int(cells[direction_at], 0) >= len(DIRECTIONS):
        return f"has the invalid I/O direction {cells[direction_at]}: expected 0 (read), 1 (write) or 2 (trim)"
    return f"has a number with too many digits: {_short(max(cells, key=len))}"


def _columns(source: Source) -> int:
    match source.format:
        case Format.FIO_HISTOGRAM:
            return source.lead + source.layout.buckets
        case Format.SMALLFILE:
            return 3
    return source.fields


def _wrong_count(cells: Sequence[str], source: Source, expected: int) -> str:
    if source.format is Format.FIO_HISTOGRAM:
        if len(cells) <= source.lead:
            return f"has too few numbers: {len(cells)} columns, where {expected:,} were expected"
        return (
            f"has {len(cells) - source.lead:,} buckets, where {source.layout.buckets:,} buckets per interval were "
            "expected as in the log's first line"
        )
    return f"has {len(cells)} columns, where {expected} were expected as in the log's first line"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
