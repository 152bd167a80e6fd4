"""The tables that a run's files make: which files each is read from, what is added to their rows, and the types.

Rule: a type follows from the column's name, never from what stands in it, so that a table has the same types for every
run. What is not known to be a number or a time is text: a serial keeps its zeros.
"""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from itertools import chain
from math import isnan
from pathlib import Path
from typing import Any, Final

from ...protocol.parameters import PARAMETERS, Notation
from ..connectors.connector_spec import ELEMENTS
from ..errors import PlanError
from ..output.column import Column
from ..output.columns import BY_ADDRESS, CPU, FILES, HALF_WIDTHS, HISTOGRAM, INTERLOCK, METRIC_COLUMNS, THREADS
from ..output.file_names import stem, step_folder
from ..results.checked_files import Counted, Snapshot, counted_in, numbered_rows, read_table, snapshot
from ..rollup.metrics import of_nothing
from ..text.suggestions import suggestion

Value = int | float | str | datetime | None


class Type(StrEnum):
    INTEGER = "BIGINT"  # the values are DuckDB's names
    NUMBER = "DOUBLE"
    TIME = "TIMESTAMP"  # UTC
    TEXT = "VARCHAR"


_INTEGERS: Final = frozenset((
    "step", "subinterval", "in_measurement", "first_subinterval", "last_subinterval", "hosts_in", "hosts_of",
    "workload_instances", "set_aside", "number", "cores", "cpus", "numa_nodes", "memory", "size", "block", "count",
    "busiest_core", "section", "reads", "changes", "thread", "core",
    "swapped", "not_swapped", "overruns", "threads", "submit_calls", "reaps",
    "sleeps", "submitted", "completed", "subintervals", "missing", "elements", "participating",
))  # fmt: skip
_TIMES: Final = frozenset(("utc", "start_utc", "end_utc", "step_start_utc"))


def _numbers() -> Iterator[str]:
    """Columns that have a unit, in files that have nothing but numbers and what they belong to."""
    of_files: tuple[tuple[Column, ...], ...] = (
        METRIC_COLUMNS,
        HALF_WIDTHS,
        CPU,
        INTERLOCK,
        THREADS,
        HISTOGRAM,
        BY_ADDRESS,
    )
    yield from (one.name for one in chain(*of_files) if one.unit)
    for group in FILES["step*/clock.csv"]:
        yield from (one.name for one in group if isinstance(one, Column) and one.unit)
    yield "length_s"


_NUMBERS: Final = frozenset(_numbers())


_FILE_OF: Final = {
    "summary": "summary.csv", "measurements": "summary.<rollup type>.csv",
    "subintervals": "step*/<rollup type>/<instance>.csv", "histograms": "step*/<rollup type>/<instance>.histogram.csv",
    "by_address": "step*/by_address.csv", "events": "events.csv",
    "windows": "step*/windows.csv", "cpu": "step*/cpu.csv", "threads": "step*/threads.csv",
    "connectors": "connectors.csv", "elements": "step*/connectors/<connector>.<element type>.csv",
    "hosts": "hosts.csv", "luns": "luns.csv", "workloads": "workloads.csv",
}  # fmt: skip
_WHOLE: Final = (Notation.BYTES, Notation.SIZES, Notation.COUNT, Notation.PART)
_WORDS: Final = (
    Notation.CHOICE, Notation.MIX, Notation.RANGE, Notation.COUNT_OR_AUTO, Notation.FLAG, Notation.VOLUME,
    Notation.ZONES,
)  # fmt: skip


@cache
def _columns_known(table: str) -> frozenset[str]:
    """Those of its files that have names of ivypy's. The others are a user's: attributes may be called anything."""
    return frozenset((*_own_columns(table), *_ADDED.get(table, ())))


def _own_columns(table: str) -> list[str]:
    return [one.name for group in FILES[_FILE_OF[table]] if not isinstance(group, str) for one in group]


@cache
def type_of(column: str, table: str) -> Type:
    """The type of a column of a table."""
    if column not in _columns_known(table):
        return _type_of_users(column, table)
    if column in _INTEGERS or (table == "windows" and column == "hosts"):
        return Type.INTEGER
    if column in _TIMES:
        return Type.TIME
    if column in _NUMBERS or (table == "summary" and column not in _TEXTS_OF_SUMMARY):
        return Type.NUMBER
    if table == "connectors" and column in ("value", "min", "max"):
        return Type.NUMBER
    return Type.TEXT


def _type_of_users(column: str, table: str) -> Type:
    """Of a column whose name follows from the plan or the hosts: a looped parameter, a core, an attribute, a metric."""
    if table == "elements" or (table == "cpu" and column.startswith("core_")):
        return Type.NUMBER
    if table == "summary" and column in PARAMETERS:
        unit = PARAMETERS[column].unit
        return Type.INTEGER if unit in _WHOLE else Type.TEXT if unit in _WORDS else Type.NUMBER
    return Type.TEXT


_TEXTS_OF_SUMMARY: Final = frozenset((
    "run", "name", "rollup_type", "rollup_instance", "verdict", "rate_verdict", "service_verdict", "response_verdict",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Part:
    """A file of a table, and what is added to each of its rows: the run, and of a step's file the step."""

    path: Path
    added: Mapping[str, int | str]
    counted: Counted | None = None  # the subintervals in a measurement, where the file does not have them


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    meaning: str


TABLES: Final = {
    one.name: one
    for one in (
        Table("summary", "a row for each step and rollup instance: its most used figures (summary.csv)"),
        Table("measurements", "the same with every metric, parameters and reasons (summary.<rollup type>.csv)"),
        Table("subintervals", "a row for each subinterval and rollup instance (step*/<rollup type>/<instance>.csv)"),
        Table("histograms", "a row for each used bucket of a measurement (<instance>.histogram.csv)"),
        Table("by_address", "I/Os and service times by section of the LUNs (step*/by_address.csv)"),
        Table("events", "what happened (events.csv)"),
        Table("windows", "which subintervals a measurement has (step*/windows.csv)"),
        Table("cpu", "CPU of each host in each subinterval (step*/cpu.csv)"),
        Table("threads", "workload threads in each subinterval (step*/threads.csv)"),
        Table("connectors", "what connectors said over each measurement, a row for each metric (connectors.csv)"),
        Table("elements", "each element of connectors in each subinterval (step*/connectors/*.csv)"),
        Table("hosts", "the test hosts (hosts.csv)"),
        Table("luns", "the LUNs (luns.csv)"),
        Table("workloads", "workload instances with their parameters (workloads.csv)"),
    )
}
_OF_RUN: Final = ("events", "hosts", "luns", "workloads", "connectors")
_OF_STEP: Final = ("by_address", "windows", "cpu", "threads")
_ADDED: Final = {
    **dict.fromkeys((*_OF_STEP, "subintervals"), ("step", "name")),
    "histograms": ("step", "name", "rollup_type", "rollup_instance"),
    "elements": ("run", "step", "name", "connector", "element_type"),
}
_INDEX: Final = ("rollup_type", "rollup_instance", "file", "histogram_file")
_WITH_EVERY_METRIC: Final = ("measurements", "subintervals")


def parts_of(table: str, folders: Sequence[Path], by: str | None = None) -> list[Part]:
    """The files of a table in these runs' folders; those that are not there are left out.

    `by`: only of this rollup type. Raises PlanError for a run that cannot be read.
    """
    return [part for folder in folders for part in _parts(table, snapshot(folder), by) if part.path.is_file()]


def _parts(table: str, kept: Snapshot, by: str | None) -> Iterator[Part]:
    run = {"run": kept.folder.name}
    if table == "summary":
        yield Part(kept.results / "summary.csv", run)  # it has the name that the folder had when it was written
    elif table == "measurements":
        wanted = f"summary.{stem(by)}.csv" if by else "summary.?*.csv"
        yield from (Part(path, run) for path in sorted(kept.results.glob(wanted)) if path.name != "summary.csv")
    elif table in _OF_RUN:
        place = kept.results if table == "connectors" else kept.folder
        yield Part(place / f"{table}.csv", run)
    else:
        yield from _of_steps(table, kept, by)


def _of_steps(table: str, kept: Snapshot, by: str | None) -> Iterator[Part]:
    folder, record = kept.folder, kept.record
    for step in record["steps"]:
        place = folder / step_folder(step["number"], step["name"])
        added = {"run": folder.name, "step": step["number"], "name": step["name"]}
        if table in _OF_STEP:
            yield Part(place / f"{table}.csv", added)
            continue
        if table == "elements":
            for path in sorted((place / ELEMENTS).glob("*.csv")):
                connector, _, kind = path.name.removesuffix(".csv").rpartition(".")
                yield Part(path, added | {"connector": connector, "element_type": kind})
            continue
        index = place / "index.csv"
        for row in read_table(index):
            if missing := [name for name in _INDEX if name not in row]:
                raise PlanError(f"{index}: not read: it has no column {missing[0]}")
            instance = {"rollup_type": row["rollup_type"], "rollup_instance": row["rollup_instance"]}
            if by is not None and by != row["rollup_type"]:
                continue
            if table == "subintervals" and row["file"]:
                yield Part(place / row["file"], added, counted_in(record, step["number"]))
            elif table == "histograms" and row["histogram_file"]:
                yield Part(place / row["histogram_file"], added | instance)


def header_of(path: Path) -> list[str]:
    """The columns of a file. Raises PlanError."""
    try:
        with path.open(newline="", encoding="utf-8", errors="surrogateescape") as file:
            header = next(csv.reader(file), [])
    except (OSError, csv.Error) as error:
        raise PlanError(f"{path}: not read: {error}") from None
    if not all(name.isascii() and name.isprintable() and name for name in header):
        raise PlanError(f"{path}:1: not read: these are no names of columns")
    return header


def columns_of(table: str, parts: Sequence[Part]) -> list[str]:
    """All columns of a table's files, what is added first; those of several files in the order in which they come.
    Where no run has such a file, those that it would have in any run."""
    columns: dict[str, None] = {} if parts else dict.fromkeys(("run", *_ADDED.get(table, ()), *_own_columns(table)))
    for part in parts:
        columns.update(dict.fromkeys(part.added))
    for part in parts:
        columns.update(dict.fromkeys(header_of(part.path)))
    return [*columns, *(name for name in left_out(table) if name not in columns)]


def left_out(table: str) -> list[str]:
    """The columns that files of a table may leave out, for there was nothing: what they say follows by `of_nothing`."""
    return [*of_nothing("0")] if table in _WITH_EVERY_METRIC else []


def read_columns(table: str, parts: Sequence[Part]) -> dict[str, list[Value]]:
    """A table by its columns, typed: None where a cell is blank or a file has no such column. Raises PlanError, as for
    a cell that is not of its column's type."""
    columns: dict[str, list[Value]] = {name: [] for name in columns_of(table, parts)}
    for part in parts:
        rows = numbered_rows(part.path)
        if part.counted is not None:
            rows = [(line, _marked(part.path, line, row, part.counted)) for line, row in rows]
        if left_out(table):
            rows = [(line, {**of_nothing(row.get("overall_iops", "")), **row}) for line, row in rows]
        for name, values in columns.items():
            if name in part.added:
                values += [part.added[name]] * len(rows)
            else:
                values += _cells(part.path, name, type_of(name, table), rows)
    return columns


def _marked(path: Path, line: int, row: Mapping[str, str], counted: Counted) -> dict[str, str]:
    try:
        return {**row, "in_measurement": str(int(int(row["subinterval"]) in counted))}
    except (KeyError, ValueError):
        raise PlanError(f"{path}:{line}: subinterval: {row.get('subinterval')!r} is no whole number") from None


def _cells(path: Path, name: str, kind: Type, rows: Sequence[tuple[int, Mapping[str, str]]]) -> Iterator[Value]:
    read = _READ[kind]
    for line, row in rows:
        text = row.get(name)
        try:
            yield read(text) if text else None
        except ValueError:
            raise PlanError(f"{path}:{line}: {name}: {_text(text or '')!r} is no {_WORD[kind]}") from None


def _integer(text: str) -> Value:
    value = int(text)
    if not -(2**63) <= value < 2**63:
        raise ValueError("beyond what a column can have")
    return value


def _number(text: str) -> Value:
    value = float(text)
    return None if isnan(value) else value


def _time(text: str) -> Value:
    return datetime.fromisoformat(text).astimezone(UTC)


def _text(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


_READ: Final[Mapping[Type, Callable[[str], Value]]] = {
    Type.INTEGER: _integer, Type.NUMBER: _number, Type.TIME: _time, Type.TEXT: _text,
}  # fmt: skip
_WORD: Final = {Type.INTEGER: "whole number", Type.NUMBER: "number", Type.TIME: "time", Type.TEXT: "text"}


def checked_table(name: str) -> str:
    """The name of a table. Raises PlanError with the nearest."""
    if name not in TABLES:
        raise PlanError(f"there is no table {name!r}; there are {', '.join(TABLES)}{suggestion(name, TABLES)}")
    return name


def as_frame(table: str, columns: Mapping[str, list[Any]], frames: str) -> Any:
    """Columns as a data frame of `pandas` or `polars`, or as `lists`: a list of dicts, a row each."""
    if frames == "pandas":
        import pandas

        made = pandas.DataFrame({
            name: pandas.Series(values, dtype=_PANDAS[type_of(name, table)]) for name, values in columns.items()
        })  # fmt: skip
        return made
    if frames == "polars":
        import polars

        kinds = {
            Type.INTEGER: polars.Int64(), Type.NUMBER: polars.Float64(), Type.TEXT: polars.String(),
            Type.TIME: polars.Datetime("us", "UTC"),
        }  # fmt: skip
        return polars.DataFrame(columns, schema={name: kinds[type_of(name, table)] for name in columns})
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


_PANDAS: Final = {
    Type.INTEGER: "Int64", Type.NUMBER: "float64", Type.TIME: "datetime64[us, UTC]", Type.TEXT: "object",
}  # fmt: skip
