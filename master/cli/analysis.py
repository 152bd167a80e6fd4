"""The commands `ivypy query` and `ivypy export`: the tables of runs as SQL and as Parquet files.

Rule: this module only parses words; heavy modules are imported when a command runs, so that --help is quick.
"""

import csv
import json
import os
import sys
from datetime import datetime
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import PlanError
from ..exit_codes import ExitCode
from .table_options import TableForm, form_of, table_options

if TYPE_CHECKING:
    from ..analysis.database import QueryResult

MOST_ROWS = 1000  # in a table for people


@click.command()
@click.argument("words", nargs=-1, metavar="[RUN...] 'SELECT ...'")
@table_options
def query(words: tuple[str, ...], **forms: Any) -> ExitCode:
    """Ask the results of runs in SQL.

    RUN is a run's folder or a folder of runs, by default ./runs. The tables are summary, measurements, subintervals,
    histograms, events, windows, cpu, threads, connectors, elements, hosts, luns and workloads, with the columns of
    docs/columns.md; each row names its run, and its step where it has one. Times are in UTC. Where the output is no
    terminal it is CSV. Needs DuckDB: pip install
    duckdb.
    """
    form = form_of(forms)
    if not words:
        raise PlanError("no query; for example: ivypy query 'SELECT run, name, overall_iops FROM summary'")
    *runs, sql = words
    if os.path.exists(sql):  # false, too, for a query that is longer than any path
        raise PlanError(f"{sql}: the last word is the query: ivypy query {sql} 'SELECT * FROM summary'")
    from ..analysis.database import query as ask

    answer = ask(_folders(runs), sql)
    if form is TableForm.JSON:
        rows = [dict(zip(answer.columns, map(_in_json, row), strict=True)) for row in answer.rows]
        click.echo(json.dumps(rows, indent=1, default=str, allow_nan=False))
    elif form is TableForm.MARKDOWN:
        from ..text.row_texts import markdown_table

        rows_of_text = ([_text(one) for one in row] for row in answer.rows)
        click.echo(markdown_table(answer.columns, rows_of_text), nl=False)
    elif form is TableForm.CSV or not sys.stdout.isatty():
        _print_csv(answer)
    else:
        _print_table(answer)
    return ExitCode.OK


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN...]")
@click.option("--parquet", "folder", required=True, type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Write a Parquet file for each table into this folder.")  # fmt: skip
def export(runs: tuple[str, ...], folder: Path) -> ExitCode:
    """Write the results of runs as Parquet files.

    RUN is a run's folder or a folder of runs, by default ./runs. The files are the tables of `ivypy query`: each row
    names its run. Needs DuckDB: pip install duckdb.
    """
    from ..analysis.database import export as write
    from ..text.scaled import scaled_size

    for path in write(_folders(runs), folder):
        click.echo(f"{path}  {scaled_size(path.stat().st_size)}")
    return ExitCode.OK


def _folders(words: "tuple[str, ...] | list[str]") -> list[Path]:
    from ..results.find_runs import runs_of
    from .results import ROOT

    left_out: list[str] = []
    folders = [folder for word in (words or [str(ROOT)]) for folder in runs_of(word, left_out)]
    for line in left_out:
        click.echo(line, err=True)
    return folders


def _plain(value: Any) -> Any:
    return f"{value.isoformat()}Z" if isinstance(value, datetime) and value.tzinfo is None else value


def _in_json(value: Any) -> Any:
    """A number as one, but for `inf` and `nan`, which JSON does not have: they are texts there."""
    if isinstance(value, Decimal):
        return float(value)
    return str(value) if isinstance(value, float) and not isfinite(value) else _plain(value)


def _print_csv(answer: "QueryResult") -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(answer.columns)
    writer.writerows([["" if one is None else _plain(one) for one in row] for row in answer.rows])


def _print_table(answer: "QueryResult") -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, name in enumerate(answer.columns):
        is_number = any(isinstance(row[place], int | float) for row in answer.rows)
        table.add_column(Text(name), justify="right" if is_number else "left", overflow="fold")
    for row in answer.rows[:MOST_ROWS]:
        table.add_row(*(Text(_text(one)) for one in row))
    Console(highlight=False).print(table)
    if len(answer.rows) > MOST_ROWS:
        click.echo(f"{len(answer.rows):,} rows, of which the first {MOST_ROWS:,}; --csv prints all", err=True)


def _text(value: Any) -> str:
    return "" if value is None else _cell(value)


def _cell(value: Any) -> str:
    return f"{value:.7g}" if isinstance(value, float) else str(_plain(value))
