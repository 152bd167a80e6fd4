"""The type `command`: any command that prints a table, as JSON or CSV, each time that it is called.

Rule: a row is an element, and a column is a metric or an attribute of it. A cell that is empty, `-` or `n/a` is no
value; any other text where a number belongs is an error, since it means that the output is not what the plan says.
"""

import csv
import io
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal

from ....protocol.connector import OPTIONAL, Cannot, ElementMetric, ReadingKind, Readings
from ....protocol.payload import Fact
from ...text.foreign_json import json_of
from ...text.suggestions import did_you_mean, listed
from .found_facts import FoundFacts, finite
from .options import MetricOptions, declared, instance_of, read_options, timeout_seconds
from .run_command import run_command

NO_VALUE: Final = frozenset({"", "-", "--", "n/a", "na", "nan", "none", "null"})
REMEDY: Final = 'name the column that differs in `instance`, as in "{node}:{port}"'
KEY: Final = "key"  # as `instance`: the rows are an object, and this is the column of their names in it

Row = Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class ColumnOptions(MetricOptions):
    column: str


@dataclass(frozen=True, kw_only=True)
class CommandOptions:
    command: tuple[str, ...]
    format: Literal["json", "csv"]
    element: str
    instance: str  # a column, or "{a}:{b}"
    metrics: tuple[ColumnOptions, ...]
    attributes: dict[str, str] = field(default_factory=dict, metadata=OPTIONAL)  # column: attribute of the element
    rows: str = field(default="", metadata=OPTIONAL)  # of JSON: where the rows are, "data.ports"
    delimiter: str = field(default=",", metadata=OPTIONAL)  # of CSV
    timeout: str = field(default="2s", metadata=OPTIONAL)


class CommandOutput:
    """A connector."""

    def __init__(self, **options: Any) -> None:
        self._options = read_options(CommandOptions, options)
        self._timeout_s = timeout_seconds(self._options.timeout)
        self._sent: tuple[ColumnOptions, ...] = ()  # those that config declared
        if not self._options.command:
            raise ValueError("options.command is empty; write for example [python3, /opt/ports.py]")
        if len(self._options.delimiter) != 1:
            raise ValueError(f"options.delimiter: {self._options.delimiter!r} is not one character")

    def config(self, luns: Sequence[str]) -> tuple[list[ElementMetric], list[Fact]]:
        _, rows = self._rows()
        element = self._options.element
        self._sent = tuple(one for one in self._options.metrics if self._has(rows, one))
        metrics = [one.element_metric(element, ReadingKind.GAUGE) for one in self._sent]
        facts: dict[Fact, None] = {}
        for _, row, instance in self._named(rows):
            for column, attribute in self._options.attributes.items():
                if (text := _text(row, column)) != "":
                    facts[Fact(element, instance, attribute, text)] = None
        return declared(metrics), list(facts)

    def gather(self) -> Readings:
        (start_ns, end_ns), rows = self._rows()
        collected = FoundFacts(REMEDY)
        for place, row, instance in self._named(rows):
            for options in self._sent:
                if (value := _number(row, options.column, place)) is not None:
                    collected.add(Fact(self._options.element, instance, options.attribute, value), place)
        return Readings(0, collected.facts(), start_ns, end_ns)

    def _rows(self) -> tuple[tuple[int, int], list[Row]]:
        """When the command ran, and its rows. Raises Cannot."""
        start_ns = time.monotonic_ns()
        output = run_command(self._options.command, self._timeout_s)
        end_ns = time.monotonic_ns()
        text = output.decode("utf-8-sig", "replace")
        name = self._options.command[0]
        rows = (
            json_rows(text, self._options.rows, self._options.instance == KEY, name)
            if self._options.format == "json"
            else csv_rows(text, self._options.delimiter, name)
        )
        return (start_ns, end_ns), rows

    def _named(self, rows: Sequence[Row]) -> Iterator[tuple[str, Row, str]]:
        """Where each row stands, the row, and its instance. Raises Cannot."""
        for i, row in enumerate(rows):
            instance = instance_of(self._options.instance, partial(_text, row))
            if instance == "":
                raise Cannot(f"row {i + 1}: column {self._options.instance!r} is empty, so the row has no name")
            yield f"row {i + 1}", row, instance

    def _has(self, rows: Sequence[Row], options: ColumnOptions) -> bool:
        """Whether there is such a column. Raises Cannot where there has to be."""
        if not rows or any(_cell(row, options.column) is not None for row in rows):
            return True
        if options.optional:
            return options.kind != "auto"
        raise Cannot(f"{_no_column(rows[0], options.column)}; if it may be missing, write `optional: true`")


def json_rows(text: str, place: str, keyed: bool, name: str) -> list[Row]:
    """The rows of a JSON text: a list of objects, or, `keyed`, an object of them. Raises Cannot."""
    try:
        data = json_of(text)
    except ValueError as error:
        raise Cannot(f"the output of {name} is not JSON ({error}); it begins {text[:60]!r}") from None
    for part in filter(None, place.split(".")):
        if not isinstance(data, dict) or part not in data:
            has = f"it has {listed(sorted(data))}" if isinstance(data, dict) else "it is no object"
            raise Cannot(f"the output of {name} has no {part!r} where `rows` is {place!r}; {has}")
        data = data[part]
    if keyed and isinstance(data, dict) and all(isinstance(one, dict) for one in data.values()):
        return [{KEY: key, **row} for key, row in data.items()]
    if not keyed and isinstance(data, list) and all(isinstance(one, dict) for one in data):
        return data
    what = f"is no {'object' if keyed else 'list'} of objects"
    if isinstance(data, dict):
        what += f"; `rows` says where it is, for example {next(iter(data), 'data')!r}"
    raise Cannot(f"the output of {name} {what}")


def csv_rows(text: str, delimiter: str, name: str) -> list[Row]:
    """The rows below the names of the columns. Raises Cannot."""
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True)
    try:
        lines = [[cell.strip() for cell in line] for line in reader if line]
    except csv.Error as error:
        raise Cannot(f"the output of {name} is not CSV (line {reader.line_num}: {error})") from None
    if not lines:
        raise Cannot(f"{name} printed nothing; the first line of CSV has the names of the columns")
    columns = lines[0]
    if len(set(columns)) < len(columns):
        twice = next(one for one in columns if columns.count(one) > 1)
        raise Cannot(f"the output of {name} has two columns {twice!r}")
    for i, line in enumerate(lines[1:], 1):
        if len(line) != len(columns):
            raise Cannot(f"row {i} of the output of {name} has {len(line)} cells, and there are {len(columns)} columns")
    return [dict(zip(columns, line, strict=True)) for line in lines[1:]]


def _cell(row: Row, column: str) -> object:
    """The value in a column, also deeper in JSON ("perf.latency"); None: nothing."""
    if column in row:
        return row[column]
    value: object = row
    for part in column.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value


def _text(row: Row, column: str) -> str:
    """Raises Cannot where there is no such column."""
    cell = _cell(row, column)
    if cell is None and column not in row:
        raise Cannot(_no_column(row, column))
    if isinstance(cell, (list, dict)):
        raise Cannot(f"column {column!r} is a {type(cell).__name__}, not a text or a number")
    return "" if cell is None else str(cell)


def _number(row: Row, column: str, place: str) -> float | None:
    """None: no value. Raises Cannot where it is something else than a number."""
    cell = _cell(row, column)
    if isinstance(cell, str):
        if cell.strip().lower() in NO_VALUE:
            return None
        try:
            return finite(int(cell) if cell.isdecimal() else float(cell.replace("_", "?")))
        except ValueError:
            pass
    elif isinstance(cell, (int, float)) and not isinstance(cell, bool):
        return finite(cell)
    elif cell is None:
        return None
    raise Cannot(f"{place}: {repr(cell)[:60]} in column {column!r} is no number")


def _no_column(row: Row, column: str) -> str:
    return f"there is no column {column!r}{did_you_mean(column, row)}; there are {listed(sorted(row))}"
