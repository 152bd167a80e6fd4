"""What connectors said over each measurement: as text, Markdown, CSV and JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict, astuple
from itertools import groupby
from pathlib import Path
from typing import Final

from ..output.csv_text import lines as csv_lines
from .connector_rows import COLUMNS, ConnectorRow
from .render_measured import escaped

_TITLES: Final = ("metric", "value", "min", "max", "n", "elements")


def connector_lines(rows: Sequence[ConnectorRow]) -> list[str]:
    """A table for each measurement."""
    width = max((len(_name(one)) for one in rows), default=0)
    found = []
    for measurement, some in groupby(rows, lambda one: one.measurement):
        found += ["", measurement, _line(_TITLES, width)]
        found += [_line(_cells(one), width) for one in some]
    return found[1:]


def connector_markdown(rows: Sequence[ConnectorRow]) -> str:
    """One table."""
    lines = ["| step | " + " | ".join(_TITLES) + " |", "| --- | --- |" + " ---: |" * (len(_TITLES) - 1)]
    lines += [f"| {' | '.join(escaped(text) for text in (one.measurement, *_cells(one)))} |" for one in rows]
    return "\n".join([*lines, ""])


def connector_csv(rows: Sequence[ConnectorRow]) -> str:
    """As connectors.csv has it."""
    return csv_lines([COLUMNS, *([None if cell is None else f"{cell:.7g}" if isinstance(cell, float) else cell
                                  for cell in astuple(one)] for one in rows)])  # fmt: skip


def connector_json(folder: Path, rows: Sequence[ConnectorRow]) -> str:
    """One object; docs/columns.md has the units."""
    return json.dumps({"format": 1, "run": folder.name, "rows": [asdict(one) for one in rows]}, indent=1)


def _name(one: ConnectorRow) -> str:
    return f"{one.metric} ({one.unit})" if one.unit else one.metric


def _cells(one: ConnectorRow) -> tuple[str, ...]:
    figures = ("-" if value is None else f"{value:.4g}" for value in (one.value, one.min, one.max))
    count = f"{one.subintervals}/{one.subintervals + one.missing}" if one.missing else str(one.subintervals)
    return _name(one), *figures, count, str(one.elements)


def _line(cells: Sequence[str], width: int) -> str:
    name, *others = cells
    return f"  {name:{width}}" + "".join(f" {text:>9}" for text in others)
