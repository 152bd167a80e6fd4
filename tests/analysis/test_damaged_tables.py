"""Files that are damaged, cut off, or have unusual names: SQL and frames have the same rows, or name the place."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ivypy
from ivypy.master.analysis.database import export
from ivypy.master.analysis.tables import TABLES
from ivypy.master.cli.analysis import query
from ivypy.master.errors import PlanError
from ivypy.master.run.session.run import Run
from tests.support.made_once import Store
from tests.support.simulated.array import OF_PLAN, SimulatedArray
from tests.support.simulated.runs import ONE_STEP, SimulatedRun, hosts, stage

pytestmark = pytest.mark.slow
LOOPS = """steps:
  - go: { name: how, loop: { iosequencer: [random_steady, random_independent] } }
  - go: { name: where, loop: { range: [0%..50%, 50%..100%], spread: [auto, 1] } }
  - go: { name: seeds, loop: { seed: [9007199254740993], drop_after: [1s, never] } }
"""
NAMES = """attributes:
  - { match: { path: "*" }, set: { step: x, count: "007", core: "1,5", thread: 'a "b', port: ü } }
"""
LOOPED = ONE_STEP[: ONE_STEP.index("steps:")] + LOOPS


async def nobody(run: Run, staged: SimulatedRun) -> None:
    """Nobody does anything while it runs."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plan = ONE_STEP.replace(
        "rollups: [ host,", NAMES + "by_address: 2\nrollups: [ host, count, { by: [core, thread] },"
    )
    slaves = hosts()
    launch = SimulatedArray(slaves, 10_000.0).launch
    return stage(tmp_path_factory.mktemp("run"), nobody, plan + OF_PLAN, slaves, launch).folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / whole.name)


def asked(folder: Path, sql: str) -> list[dict[str, object]]:
    """What `ivypy query --json` prints, as strict JSON. Raises PlanError."""
    done = CliRunner().invoke(query, [str(folder), sql, "--json"], standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    found: list[dict[str, object]] = json.loads(done.stdout, parse_constant=not_in_json)
    return found


def not_in_json(word: str) -> None:
    raise AssertionError(f"{word} is not in JSON")


def both(folder: Path, table: str) -> tuple[str, str]:
    """What a query and a load make of a table: how many rows, or what they say is wrong."""

    def words(read: Callable[[], int]) -> str:
        try:
            return f"{read()} rows"
        except PlanError as error:
            return str(error)

    return (
        words(lambda: len(asked(folder, f"SELECT * FROM {table}"))),
        words(lambda: len(ivypy.load(folder, frames="lists").table(table))),
    )


def test_each_number_time_and_text_of_a_users_own_names_is_read(folder: Path) -> None:
    for table in TABLES:
        by_query, by_load = both(folder, table)
        assert by_query == by_load and by_load.endswith(" rows") and by_load != "0 rows"
    luns = ivypy.load(folder, frames="lists").luns
    assert {(one["step"], one["count"], one["core"]) for one in luns} == {("x", "007", "1,5")}
    assert {one["count"] for one in ivypy.load(folder, frames="lists").subintervals("count")} == {"007"}


def looped(folder: Path) -> None:
    """A run of LOOPED, for `store.run`."""
    stage(folder, nobody, LOOPED)


def test_words_that_a_step_loops_over_are_texts_and_whole_numbers_are_exact(tmp_path: Path, store: Store) -> None:
    folder = store.run(looped)
    names = ("iosequencer", "range", "spread", "seed", "drop_after")
    found = asked(folder, f"SELECT {', '.join(names)} FROM summary WHERE rollup_type = 'all' ORDER BY step")
    assert [row["iosequencer"] for row in found][:3] == ["random_steady", "random_independent", None]
    assert [(row["range"], row["spread"]) for row in found][2:4] == [("0%..50%", "auto"), ("0%..50%", "1")]
    assert [(row["seed"], row["drop_after"]) for row in found][-2:] == [(2**53 + 1, 1.0), (2**53 + 1, "inf")]
    for frames in ("pandas", "polars", "lists"):
        summary = ivypy.load(folder, frames=frames).summary
        column = [row["iosequencer"] for row in summary] if frames == "lists" else [*summary["iosequencer"]]
        assert column.count("random_steady") == column.count("random_independent") > 1, frames
    assert export([folder], tmp_path / "parquet")


@pytest.mark.parametrize("frames", ["pandas", "polars"])
def test_a_run_in_its_first_step_has_empty_tables_with_their_columns(folder: Path, frames: str) -> None:
    whole = ivypy.load(folder, frames=frames).summary  # type: ignore[arg-type]
    (folder / "summary.csv").unlink()
    assert asked(folder, "SELECT name, overall_iops FROM summary WHERE step = 0 AND verdict <> 'invalid'") == []
    empty = ivypy.load(folder, frames=frames).summary  # type: ignore[arg-type]
    assert len(empty) == 0 and [*empty.columns] == [*whole.columns]
    assert [empty[name].dtype for name in empty.columns] == [whole[name].dtype for name in whole.columns]


def test_frames_that_are_not_installed_are_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ivypy.master.analysis.loaded_runs.find_spec", lambda name: None)
    with pytest.raises(PlanError, match="pip install pandas"):
        ivypy.load(folder, frames="pandas")
    assert isinstance(ivypy.load(folder).summary, list)


def test_json_has_decimal_numbers_as_numbers(folder: Path) -> None:
    (row,) = asked(folder, "SELECT 1.5 AS half, sum(count) AS ios, 'nan'::DOUBLE AS none FROM histograms")
    assert row["half"] == 1.5 and isinstance(row["ios"], int) and row["none"] == "nan"


@pytest.mark.parametrize("lost", [1, 30, 200])
@pytest.mark.parametrize(("table", "file"), [
    ("summary", "summary.csv"), ("measurements", "summary.all.csv"), ("events", "events.csv"),
    ("subintervals", "step0000.one/all/all.csv"), ("histograms", "step0000.one/all/all.histogram.csv"),
])  # fmt: skip
def test_half_a_row_at_the_end_is_left_out(folder: Path, table: str, file: str, lost: int) -> None:
    path = folder / file
    path.write_bytes(path.read_bytes()[:-lost])
    by_query, by_load = both(folder, table)
    assert by_query == by_load and by_load.endswith(" rows")


@pytest.mark.parametrize(("table", "file", "old", "new", "says"), [
    ("summary", "summary.csv", ",all,all,", ",all,all\n,", ""),
    ("events", "events.csv", "Z,", "Zz,", "events.csv:2: utc: "),
    ("events", "events.csv", "\n2026", "\n026", "events.csv:2: utc: "),
    ("windows", "step0000.one/windows.csv", "measurement,", "measurement,x", "first_subinterval: 'x"),
    ("luns", "luns.csv", "/x/", "/\udcff/", ""),
    ("events", "events.csv", "kind", "", "events.csv:1: not read"),
    ("histograms", "step0000.one/index.csv", "histogram_file", "file_of", "it has no column histogram_file"),
])  # fmt: skip
def test_what_is_damaged_is_named_by_both(folder: Path, table: str, file: str, old: str, new: str, says: str) -> None:
    path = folder / file
    text = path.read_text()
    assert old in text
    path.write_bytes(text.replace(old, new, 1).encode("utf-8", "surrogateescape"))
    by_query, by_load = both(folder, table)
    assert by_query == by_load and (says in by_load if says else by_load.endswith(" rows"))


@given(st.data())
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_bytes_a_file_has_both_read_it_alike(whole: Path, tmp_path: Path, data: st.DataObject) -> None:
    shutil.rmtree(tmp_path, ignore_errors=True)
    folder = shutil.copytree(whole, tmp_path / whole.name)
    table = data.draw(st.sampled_from(["events", "summary", "luns"]))
    path = folder / f"{table}.csv"
    before = path.read_bytes()
    place = data.draw(st.integers(0, len(before)))
    length = data.draw(st.integers(0, 20))
    path.write_bytes(before[:place] + data.draw(st.binary(max_size=4)) + before[place + length :])
    by_query, by_load = both(folder, table)
    assert by_query == by_load
