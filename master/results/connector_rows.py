"""Reads the rows of a run's connectors.csv, what connectors reported over each measurement, and writes them as text,
Markdown, CSV and JSON.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, fields
from itertools import groupby
from pathlib import Path
from typing import Final

from ..errors import PlanError
from ..output.csv_text import lines as csv_lines
from ..rollup.instances import ALL
from ..text.metric_amounts import MetricUnit, unit_by_suffix
from ..text.suggestions import suggestion
from .checked_files import Snapshot, read_table, read_whole, results_of, that_count
from .finished_run import why_no_results
from .render_measured import escaped

FILE: Final = "connectors.csv"
TIMES_IN_US: Final = {MetricUnit.US: 1.0, MetricUnit.MS: 1000.0}
_TITLES: Final = ("metric", "value", "min", "max", "n", "elements")


def is_busy(name: str) -> bool:
    """Whether a metric (full name or attribute) says how busy an element is, which connectors do not declare."""
    return unit_by_suffix(name) is MetricUnit.PERCENT and ("busy" in name or "util" in name)


def is_time(metric: str) -> bool:
    """Whether a metric is the time that something takes."""
    return unit_by_suffix(metric) in TIMES_IN_US


@dataclass(frozen=True, slots=True)
class ConnectorRow:
    """A metric of one rollup instance over one measurement; the names are those of the file's columns."""

    step: int
    name: str  # the step's; where the load is control's, with the load
    rollup_type: str  # also non_participating
    rollup_instance: str
    metric: str
    unit: str
    value: float | None  # None: no subinterval has one
    min: float | None
    max: float | None
    subintervals: int
    missing: int
    elements: int

    @property
    def measurement(self) -> str:
        """The step and rollup instance that it is of."""
        of = "" if self.rollup_type == ALL else f" {self.rollup_instance or self.rollup_type}"
        return f"{self.step} {self.name}{of}"


COLUMNS: Final = tuple(one.name for one in fields(ConnectorRow))


def has_connectors(folder: Path) -> bool:
    """Whether the run has such rows."""
    return (results_of(folder) / FILE).is_file()


def all_connector_rows(folder: Path) -> list[ConnectorRow]:
    """Of a run's folder, of every attempt at a step; none for a run without connectors. Raises PlanError."""
    return read_whole(folder, _rows_in)


def _rows_in(kept: Snapshot) -> list[ConnectorRow]:
    return [_row(kept.folder, cells) for cells in read_table(kept.results / FILE)]


def read_connector_rows(folder: Path, by: str | None = None, wanted: Sequence[str] = ()) -> list[ConnectorRow]:
    """Of a run's folder; `by`: a rollup type, or None for all; `wanted`: names or numbers of steps; where there are
    none, all, of a repeated step the last attempt. None for a run without connectors.

    Raises PlanError where there is no such rollup type or step, or the file is of another version.
    """
    rows, steps = read_whole(folder, lambda kept: (_rows_in(kept), kept.record["steps"]))
    types = list(dict.fromkeys(one.rollup_type for one in rows))
    if rows and by is not None and by not in types:
        raise PlanError(f"{folder}: {FILE} has no rollup type {by!r}{suggestion(by, types)}")
    numbers = {step["number"] for step in that_count({"steps": steps})}
    for word in wanted:
        if not any(word in (step["name"], str(step["number"])) for step in steps):
            raise PlanError(f"{folder}: no step {word!r}{suggestion(word, [step['name'] for step in steps])}")
    if wanted:
        numbers = {step["number"] for step in steps if {step["name"], str(step["number"])} & {*wanted}}
    return [one for one in rows if one.step in numbers and by in (None, one.rollup_type)]


def required_rows(folder: Path, by: str, wanted: Sequence[str]) -> list[ConnectorRow]:
    """The same, of a run that has some. Raises PlanError."""
    if not has_connectors(folder):
        why = why_no_results(folder)
        raise PlanError(f"{folder}: {f'there are no results: {why}' if why else 'no connector took part in the run'}")
    return read_connector_rows(folder, by, wanted)


def _row(folder: Path, cells: dict[str, str]) -> ConnectorRow:
    try:
        figures = {name: float(cells[name]) if cells[name] else None for name in ("value", "min", "max")}
        counts = {name: int(cells[name]) for name in ("step", "subintervals", "missing", "elements")}
        texts = {name: cells[name] for name in ("name", "rollup_type", "rollup_instance", "metric", "unit")}
    except (KeyError, ValueError) as error:
        raise PlanError(f"{folder / FILE}: not read: of another version of ivypy, or damaged: {error}") from None
    return ConnectorRow(**counts, **texts, **figures)  # type: ignore[arg-type]


def connector_lines(rows: Sequence[ConnectorRow]) -> list[str]:
    """A table for each measurement."""
    width = max((len(_name(one)) for one in rows), default=0)
    lines = []
    for measurement, some in groupby(rows, lambda one: one.measurement):
        lines += ["", measurement, _line(_TITLES, width)]
        lines += [_line(_cells(one), width) for one in some]
    return lines[1:]


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


def _cells(row: ConnectorRow) -> tuple[str, ...]:
    figures = ("-" if value is None else f"{value:.4g}" for value in (row.value, row.min, row.max))
    count = f"{row.subintervals}/{row.subintervals + row.missing}" if row.missing else str(row.subintervals)
    return _name(row), *figures, count, str(row.elements)


def _line(cells: Sequence[str], width: int) -> str:
    name, *others = cells
    return f"  {name:{width}}" + "".join(f" {text:>9}" for text in others)
