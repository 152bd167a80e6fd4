"""The tables of runs in DuckDB: SQL over them, and Parquet files.

Rule: a query sees the tables and nothing else. Files are read into memory first; then the database may open no file and
load no extension, whatever the SQL says, and there is no network at any time.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..errors import OutputError, PlanError
from ..rollup.metrics import of_nothing
from ..text.libraries import to_install
from ..text.suggestions import suggestion
from .tables import TABLES, Part, Type, Value, columns_of, header_of, left_out, parts_of, read_columns, type_of

if TYPE_CHECKING:
    import duckdb

_OFFLINE = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The result of a query."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def query(folders: Sequence[Path], sql: str) -> QueryResult:
    """Run SQL over the tables of these runs. Raises PlanError, with DuckDB's own words where the SQL is wrong."""
    duck = _duckdb()
    with duck.connect(":memory:", config=_OFFLINE) as base:
        for table in TABLES:
            if re.search(rf"\b{table}\b", sql, re.IGNORECASE):
                _fill(base, table, folders)
        base.execute("SET enable_external_access = false")
        base.execute("SET lock_configuration = true")
        try:
            found = base.execute(sql)
            columns = tuple(one[0] for one in found.description or ())
            return QueryResult(columns, found.fetchall())
        except duck.Error as error:
            raise PlanError(f"the query: {_in_words(error)}\ntables: {', '.join(TABLES)}") from None


def _in_words(error: Exception) -> str:
    """DuckDB's own words, but for a table that is not there: it knows only those that the query names."""
    missing = re.search(r"Table with name (\S+) does not exist", str(error))
    return f"there is no table {missing[1]!r}{suggestion(missing[1], TABLES)}" if missing else str(error)


def export(folders: Sequence[Path], into: Path) -> list[Path]:
    """Write each table that has rows as a Parquet file into a folder, which is made if it is missing.

    Raises PlanError, OutputError; never writes over a file.
    """
    duck = _duckdb()
    try:
        into.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{into}: not made: {error.strerror}") from None
    written = []
    with duck.connect(":memory:", config=_OFFLINE) as base:
        for table in TABLES:
            path = into / f"{table}.parquet"
            if path.exists():
                raise PlanError(f"{path}: is there already; name another folder")
            if _fill(base, table, folders):
                try:
                    base.execute(f"COPY {table} TO {_quoted(str(path))} (FORMAT parquet, COMPRESSION zstd)")
                except duck.Error as error:
                    raise OutputError(f"{path}: not written: {error}") from None
                written.append(path)
    return written


def _fill(base: "duckdb.DuckDBPyConnection", table: str, folders: Sequence[Path]) -> bool:
    """Make a table; False where no run has any of its files."""
    parts = parts_of(table, folders)
    wanted = columns_of(table, parts)
    columns = ", ".join(f"{_named(name)} {type_of(name, table)}" for name in wanted)
    base.execute(f"CREATE TABLE {table} ({columns})")
    by_header: dict[tuple[str, ...], list[Part]] = {}
    for part in parts:
        if part.counted is not None or not _ends_whole(part.path):
            _insert_rows(base, table, part)
            continue
        by_header.setdefault((*part.added, "", *header_of(part.path)), []).append(part)
    for alike in by_header.values():
        _insert(base, table, alike)
    return bool(parts)


def _ends_whole(path: Path) -> bool:
    """Whether its last line is whole; DuckDB would take half a cell for one."""
    try:
        with path.open("rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - 1, 0))
            return file.read() in (b"", b"\n")
    except OSError:
        return False  # which the other reader reports


def _insert(base: "duckdb.DuckDBPyConnection", table: str, parts: Sequence[Part]) -> None:
    """Rows of files that have the same columns. Files that are damaged, or end in half a row, are read as `ivypy.load`
    reads them, so that both have the same rows and the same faults. Raises PlanError."""
    duck = _duckdb()
    try:
        _copy(base, table, parts)
    except duck.Error:
        for part in parts:
            try:
                _copy(base, table, [part])
            except duck.Error:
                _insert_rows(base, table, part)


def _insert_rows(base: "duckdb.DuckDBPyConnection", table: str, part: Part) -> None:
    columns = read_columns(table, [part])
    rows = [[_without_zone(one) for one in row] for row in zip(*columns.values(), strict=True)]
    if rows:
        names = ", ".join(map(_named, columns))
        base.executemany(f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(columns))})", rows)


def _without_zone(value: Value) -> Value:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def _copy(base: "duckdb.DuckDBPyConnection", table: str, parts: Sequence[Part]) -> None:
    """Rows of files that have the same columns, read by DuckDB: all or, where it raises, none."""
    header = header_of(parts[0].path)
    types = ", ".join(f"{_quoted(name)}: {_quoted(_type_in_file(name, table))}" for name in header)
    if not header:
        return
    added, kept = [*parts[0].added], [name for name in header if name not in parts[0].added]
    base.execute("CREATE OR REPLACE TEMP TABLE added_to_rows (of_file VARCHAR, place BIGINT)")
    for name in added:
        base.execute(f"ALTER TABLE added_to_rows ADD COLUMN {_named(name)} {type_of(name, table)}")
    for place, part in enumerate(parts):
        values = [str(part.path), place, *(part.added[name] for name in added)]
        base.execute(f"INSERT INTO added_to_rows VALUES ({', '.join('?' * len(values))})", values)
    files = ", ".join(_quoted(_literal_path(part.path)) for part in parts)
    cells = ", ".join(f"{_cell(name, table)}" for name in kept)
    extra = "".join(f", added_to_rows.{_named(name)}" for name in added)
    lacking = [name for name in left_out(table) if name not in header]
    nothing = of_nothing("0")
    extra += "".join(f", {_when_measured(nothing[name])}" for name in lacking)
    names = ", ".join(_named(name) for name in [*kept, *added, *lacking])
    base.execute(
        f"INSERT INTO {table} ({names}) SELECT {cells}{extra} FROM read_csv([{files}], header = true, delim = ',',"
        f" quote = '\"', escape = '\"', nullstr = '', columns = {{{types}}}, filename = 'of_file', new_line = '\\n',"
        f" auto_detect = false) AS file JOIN added_to_rows USING (of_file)"
    )


def _when_measured(cell: str) -> str:
    return f"CASE WHEN file.overall_iops IS NOT NULL THEN {cell} END" if cell else "NULL"


def _type_in_file(name: str, table: str) -> Type:
    kind = type_of(name, table)
    return Type.TEXT if kind is Type.TIME else kind  # which ends in Z


_UTC: Final = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"  # others are for read_columns to judge


def _cell(name: str, table: str) -> str:
    cell = f"file.{_named(name)}"
    if type_of(name, table) is Type.TIME:
        time = f"CAST(rtrim({cell}, 'Z') AS TIMESTAMP)"  # which takes 026 for a year
        return f"CASE WHEN NOT regexp_full_match({cell}, '{_UTC}') THEN error('no time') ELSE {time} END"
    if type_of(name, table) is Type.TEXT:  # as csv_text.unguarded
        return f"CASE WHEN regexp_matches({cell}, '^''+[=+@\t-]') THEN substr({cell}, 2) ELSE {cell} END"
    return cell


def _literal_path(path: Path) -> str:
    """A path of which no character is a wildcard."""
    return re.sub(r"([*?\[\]])", r"[\1]", str(path))


def _named(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise PlanError(f"this needs DuckDB, which is not installed: {to_install('duckdb')}") from None
    return duckdb
