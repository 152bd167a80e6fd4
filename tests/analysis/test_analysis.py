"""Results as tables: SQL, Parquet and frames have the figures of the CSV files, and nothing else can be reached."""

import csv
import json
import re
import shutil
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

import ivypy
from ivypy.master.analysis.tables import TABLES, Type, columns_of, parts_of, read_columns, type_of
from ivypy.master.cli.analysis import export, query
from ivypy.master.errors import IvypyError, PlanError
from ivypy.master.exit_codes import ExitCode
from ivypy.master.rollup.metrics import METRICS
from ivypy.master.run.session.run import Run
from ivypy.protocol.parameters import PARAMETERS
from tests.support.simulated.array import OF_PLAN, SimulatedArray
from tests.support.simulated.runs import ONE_STEP, SimulatedRun, hosts, stage

pytestmark = pytest.mark.slow
_FACTS = ("hosts", "luns", "workloads")
ROOT = Path(__file__).parents[2]
TWO = ONE_STEP.replace("steps: [ go: one ]", "by_address: 4\nsteps: [ go: one, go: { name: two, measure: 20s } ]")


async def nobody(run: Run, staged: SimulatedRun) -> None:
    """Nobody does anything while it runs."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in a folder with a name that SQL, globs and CSV have to quote."""
    root = tmp_path_factory.mktemp("runs")
    slaves = hosts()
    made = stage(root, nobody, TWO + OF_PLAN, slaves, SimulatedArray(slaves, 10_000.0).launch).folder
    return made.rename(root / 'o\'dd [name], "two"')


def asked(*words: str) -> tuple[int, str]:
    """Exit code, and the output or the error."""
    done = CliRunner().invoke(query, words, standalone_mode=False)
    if isinstance(done.exception, IvypyError | click.ClickException):
        return ExitCode.PLAN, str(done.exception)
    assert done.exception is None, done.exception
    return done.return_value, done.stdout


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return [*csv.DictReader(file)]


def test_sql_sees_the_figures_of_the_csv(folder: Path) -> None:
    code, text = asked(str(folder), "--json", "SELECT name, rollup_instance, overall_iops FROM summary ORDER BY step")
    assert code == ExitCode.OK
    expected = [
        (row["name"], row["rollup_instance"], float(row["overall_iops"])) for row in rows(folder / "summary.csv")
    ]
    assert sorted(map(tuple, (one.values() for one in json.loads(text)))) == sorted(expected)


@pytest.mark.parametrize("table", [*TABLES])
def test_each_table_has_all_its_rows_typed_and_the_names_of_run_and_step(folder: Path, table: str) -> None:
    code, text = asked(str(folder), "--json", f"SELECT * FROM {table}")
    assert code == ExitCode.OK
    found = json.loads(text)
    parts = parts_of(table, [folder])
    assert len(found) == sum(len(rows(part.path)) for part in parts) > 0
    assert {row["run"] for row in found} == {folder.name}
    columns = read_columns(table, parts)
    assert [*found[0]] == columns_of(table, parts) == [*columns]
    for name, values in columns.items():
        shown = [f"{one.replace(tzinfo=None).isoformat()}Z" if isinstance(one, datetime) else one for one in values]
        assert sorted(map(repr, shown)) == sorted(repr(row[name]) for row in found), name


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT overal_iops FROM summary", '"overall_iops"'),
        ("SELECT * FROM summry", "there is no table 'summry'; did you mean 'summary'?\ntables: summary, measurements"),
        ("COPY summary TO '/tmp/written.csv'", "disabled by configuration"),
        ("SELECT * FROM read_csv('/etc/passwd')", "disabled by configuration"),
        ("SELECT * FROM read_text('/etc/passwd')", "disabled by configuration"),
        ("INSTALL httpfs", "disabled by configuration"),
        ("SET enable_external_access = true", "locked"),
        ("ATTACH '/tmp/other.db'", "disabled by configuration"),
        ("SELEC", "syntax error"),
    ],
)
def test_a_query_reaches_nothing_but_the_tables(folder: Path, sql: str, says: str) -> None:
    code, text = asked(str(folder), sql)
    assert code == ExitCode.PLAN and says in text


def test_elements_of_several_types_are_one_table(folder: Path) -> None:
    sql = "SELECT element_type, element, count(*), count(service_us), max(participating) FROM elements GROUP BY ALL"
    code, text = asked(str(folder), "--csv", f"{sql} ORDER BY ALL")
    assert code == ExitCode.OK
    subintervals = sum(len(rows(path)) for path in folder.glob("step*/all/all.csv"))
    assert text.splitlines()[1:] == [
        f"cache,0,{subintervals},0,1", f"mp,0,{subintervals},0,1", f"mp,1,{subintervals},0,1",
        *(f"pg,{name},{subintervals},{subintervals},{part}" for name, part in (("1-1", 1), ("1-2", 1), ("1-3", 0))),
    ]  # fmt: skip


def test_where_the_query_is_missing_it_says_so(folder: Path) -> None:
    code, text = asked(str(folder))
    assert code == ExitCode.PLAN and "the last word is the query" in text


def test_parquet_has_the_tables_and_is_never_written_over(folder: Path, tmp_path: Path) -> None:
    import duckdb

    done = CliRunner().invoke(export, [str(folder), "--parquet", str(tmp_path / "it's")], standalone_mode=False)
    assert done.exception is None
    found = {path.stem for path in (tmp_path / "it's").iterdir()}
    assert found == {*TABLES}
    pattern = str(tmp_path / "it's" / "summary.parquet").replace("'", "''")
    with duckdb.connect() as base:
        (count,) = base.execute(f"SELECT count(*), count(DISTINCT name) FROM '{pattern}'").fetchall()
    assert count == (len(rows(folder / "summary.csv")), 2)
    again = CliRunner().invoke(export, [str(folder), "--parquet", str(tmp_path / "it's")], standalone_mode=False)
    assert isinstance(again.exception, PlanError) and "is there already" in str(again.exception)


@pytest.mark.parametrize("frames", ["pandas", "polars", "lists"])
def test_frames_have_the_same_figures(folder: Path, frames: Any) -> None:
    loaded = ivypy.load(folder, frames=frames)
    expected = rows(folder / "summary.csv")
    summary = loaded.summary
    if frames == "lists":
        got = [one["overall_iops"] for one in summary]
        assert loaded.events and isinstance(loaded.events[0]["utc"], datetime)
    else:
        got = [*summary["overall_iops"]]
        assert len(loaded.subintervals("host")) == 3 * len(loaded.subintervals())
        assert str(summary["step"].dtype) == "Int64"
    assert got == [float(row["overall_iops"]) for row in expected]


@pytest.mark.parametrize("fraction", [0.5, 0.9, 0.99, 0.999])
@pytest.mark.parametrize(("category", "time"), [("overall", "service"), ("read", "response")])
@pytest.mark.parametrize("instance", ["all=all", "host=b"])
def test_a_percentile_of_the_stored_histogram_is_that_of_the_csv(
    folder: Path, fraction: float, category: str, time: str, instance: str
) -> None:
    name = {0.5: "p50", 0.9: "p90", 0.99: "p99", 0.999: "p99_9"}[fraction]
    by, _, which = instance.partition("=")
    (row,) = (
        row for row in rows(folder / f"summary.{by}.csv") if row["name"] == "two" and row["rollup_instance"] == which
    )
    text = row[f"{category}_{time}_us_{name}"]
    found = ivypy.load(folder).percentile(fraction, "two", category=category, time=time, instance=instance)
    assert found == (pytest.approx(float(text), rel=1e-8) if text else None)


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda runs: runs.sumary, "did you mean 'summary'"),
        (lambda runs: runs.subintervals("hosts"), "did you mean 'host'"),
        (lambda runs: runs.percentile(0.5, "three"), "there are one, two"),
        (lambda runs: runs.table("event"), "did you mean 'events'"),
        (lambda runs: runs.percentile(99, "two"), "99 is no share of the I/Os, between 0 and 1: write 0.99 for p99"),
        (lambda runs: runs.percentile(99.9, "two"), "write 0.999 for p99.9"),
        (
            lambda runs: runs.picture("latencies"),
            "there are latency, iops, heatmap, distribution, load; did you mean 'latency'",
        ),
        (lambda runs: runs.picture(run="other"), "no run 'other'; there are "),
        (lambda runs: runs.percentile(0, "two"), "0 is no share of the I/Os, between 0 and 1"),
    ],
)
def test_what_is_not_there_is_named_with_the_nearest(folder: Path, ask: Any, says: str) -> None:
    with pytest.raises((KeyError, AttributeError, PlanError, ValueError)) as error:
        ask(ivypy.load(folder))
    assert says in str(error.value)


def test_several_runs_are_one_table(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "again")
    both = ivypy.load([folder, tmp_path / "again"], frames="lists")
    assert len(both.summary) == 2 * len(rows(folder / "summary.csv")), "summary.csv names the folder as it was made"
    assert {one["run"] for one in both.hosts} == {folder.name, "again"}
    assert repr(both) == f"<2 runs of ivypy: {folder.name}, again>"


def test_a_run_is_shown_as_a_picture_and_one_of_several_by_its_name(folder: Path, tmp_path: Path) -> None:
    runs = ivypy.load(folder)
    picture = runs.picture("iops")
    assert picture._repr_png_().startswith(b"\x89PNG") and repr(picture).startswith("<iops: a PNG of ")
    assert runs.picture("distribution").png != picture.png, "each name has its own"
    picture.save(tmp_path / "iops.png")
    assert (tmp_path / "iops.png").read_bytes() == picture.png
    both = ivypy.load([folder, shutil.copytree(folder, tmp_path / "again")])
    assert both.picture("iops", run="again").png != picture.png, "its title is the run's name"
    with pytest.raises(PlanError, match=re.escape(f"which run? there are {folder.name}, again")):
        both.picture("iops")


def test_two_runs_of_one_name_are_not_mixed(folder: Path, tmp_path: Path) -> None:
    """Their histograms would be added up."""
    twin = shutil.copytree(folder, tmp_path / "after" / folder.name)
    with pytest.raises(PlanError, match=r"both runs are named .*: rename a folder, or load them one by one"):
        ivypy.load([folder, twin])
    assert ivypy.load([folder, folder]).folders == (folder,), "one that is named twice is itself"


def test_a_notebooks_table_escapes_names(folder: Path) -> None:
    text = ivypy.load(folder)._repr_html_()
    assert "two&quot;" in text and '"two"' not in text


@pytest.mark.parametrize("table", [*TABLES])
def test_types_follow_from_names(folder: Path, table: str) -> None:
    """And every number of the files is one here, but for parameters: where instances differ they are texts."""
    for part in parts_of(table, [folder]):
        for row in rows(part.path):
            for name, text in row.items():
                if name in METRICS:
                    assert type_of(name, table) is Type.NUMBER
                if type_of(name, table) is Type.TEXT and text and name not in PARAMETERS and table not in _FACTS:
                    assert not re.fullmatch(r"-?\d+\.\d+", text), (name, text)


def examples(page: str, start: str) -> Sequence[str]:
    """The commands of a page that begin so, with their lines joined."""
    blocks = re.findall(r"```\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)
    return [block for block in blocks if block.startswith(start)]


@pytest.mark.parametrize("command", examples("analysis.md", "ivypy query"))
def test_the_queries_of_the_docs_run(folder: Path, command: str) -> None:
    (sql,) = re.findall(r"'(.*)'", command, re.DOTALL)
    code, text = asked(str(folder), "--csv", sql)
    assert code == ExitCode.OK, text
    assert len(text.splitlines()) > 1, "it finds something"


def test_the_python_of_the_docs_runs(folder: Path) -> None:
    (text,) = re.findall(r"```python\n(import ivypy\n\nruns.*?)```", (ROOT / "docs/analysis.md").read_text(), re.DOTALL)
    exec(text.replace('"runs/oltp-20260301T120000Z"', repr(str(folder))).replace('"half"', '"two"'), {})


@pytest.mark.parametrize(
    ("looped", "type_"),
    [
        ("blocksize", Type.INTEGER), ("think_time", Type.NUMBER), ("range", Type.TEXT), ("until", Type.TEXT),
        ("random_map", Type.TEXT),
    ],
)  # fmt: skip
def test_a_looped_parameter_has_the_type_of_its_notation(looped: str, type_: Type) -> None:
    assert type_of(looped, "summary") is type_
