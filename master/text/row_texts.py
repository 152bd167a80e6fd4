"""Rows as CSV and as a table of Markdown."""

import csv
import re
from collections.abc import Iterable, Sequence
from io import StringIO
from typing import Any, Final

_SPECIAL: Final = re.compile(r"([\\`*_<>\[\]|~])")


def csv_of(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Lines, with the columns' names first."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return out.getvalue()


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lines that show the texts as they are."""
    lines = [columns, ["---"] * len(columns), *([markdown_text(cell) for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def markdown_text(text: str) -> str:
    """Within a cell."""
    return _SPECIAL.sub(r"\\\1", text).replace("\n", " ")
