"""What connectors said over each measurement, as `ivypy show --connectors` and a ticket have it."""

import csv
import io
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from ivypy.master.cli.results import show
from ivypy.master.errors import PlanError
from ivypy.master.report.ticket import ticket_of
from ivypy.master.results.connector_rows import COLUMNS, is_busy, is_time, read_connector_rows, required_rows
from tests.support.made_once import Store
from tests.support.shown_runs import gathered
from tests.support.small_run import write_run


@pytest.fixture
def folder(store: Store) -> Path:
    return store.run(gathered)


@pytest.fixture
def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "connectors.csv").open(newline="") as file:
        return [*csv.DictReader(file)]


def said(folder: Path, *words: str) -> str:
    found = CliRunner().invoke(
        show, [str(folder), "--connectors", *words], catch_exceptions=False, standalone_mode=False
    )
    return found.output


def test_csv_has_the_rows_of_the_file(folder: Path, rows: list[dict[str, str]]) -> None:
    found = [*csv.DictReader(io.StringIO(said(folder, "--csv", "--by", "pg", "--step", "hold")))]
    assert found == [row for row in rows if row["rollup_type"] == "pg" and row["name"] == "hold"] and len(found) == 10


def test_json_has_them_as_numbers(folder: Path, rows: list[dict[str, str]]) -> None:
    found = json.loads(said(folder, "--json"))
    expected = [row for row in rows if row["rollup_type"] == "all"]
    assert (found["run"], [*found["rows"][0]]) == (folder.name, [*COLUMNS])
    assert [(one["name"], one["metric"], one["value"], one["missing"]) for one in found["rows"]] == [
        (row["name"], row["metric"], float(row["value"]), int(row["missing"])) for row in expected
    ]


def test_text_says_of_how_many_subintervals_it_is(folder: Path) -> None:
    lines = said(folder, "--step", "0").splitlines()
    assert lines[2] == "0 hold"
    (mp,) = [line for line in lines if "array.mp_busy_percent (%)" in line]
    assert mp.split()[-2:] == ["17/20", "2"], "three gathers were declined; two processors"
    assert not [line for line in lines if "climb" in line]


def test_markdown_is_a_table_with_names_as_they_are(folder: Path) -> None:
    head, rule, first, *_ = said(folder, "--md", "--by", "non_participating").splitlines()
    assert head.startswith("| step | metric | value |") and re.fullmatch(r"(\| -+:? )+\|", rule)
    assert first.startswith(r"| 0 hold non\_participating | array.pg\_busy\_percent (%) | 0 |")


@pytest.mark.parametrize(
    ("by", "steps", "says"),
    [("pgs", (), "no rollup type 'pgs'.*'pg'"), ("all", ("hold", "hild"), "no step 'hild'.*hold")],
)
def test_what_there_is_not_is_said(folder: Path, by: str, steps: tuple[str, ...], says: str) -> None:
    with pytest.raises(PlanError, match=says):
        required_rows(folder, by, steps)


def test_a_run_without_connectors_has_none(tmp_path: Path) -> None:
    folder = write_run(tmp_path)
    assert read_connector_rows(folder) == []
    with pytest.raises(PlanError, match="no connector took part in the run"):
        required_rows(folder, "all", ())
    assert "connectors" not in ticket_of(folder)


def test_a_damaged_file_is_named(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text((folder / "run.json").read_text())
    (tmp_path / "connectors.csv").write_text((folder / "connectors.csv").read_text().replace(",%,", ",%,x"))
    with pytest.raises(PlanError, match=r"connectors\.csv: not read"):
        read_connector_rows(tmp_path)


def test_a_ticket_has_the_busiest_elements_of_each_measurement(folder: Path) -> None:
    text = ticket_of(folder).replace("\\", "")
    lines = [line for line in text.splitlines() if "array." in line]
    assert [line.split(":")[0] for line in lines[:2]] == ["- 0 hold", "- 1 climb"] and len(lines) > 4
    assert re.match(
        r"- 0 hold: array\.mp_busy_percent of 0: [34]\S* %, array\.pg_busy_percent of 1-[12]: .*,"
        r" array\.pg_service_us: 185\S* us$",
        lines[0],
    )


def test_names_say_what_is_busy_and_what_is_a_time() -> None:
    assert [is_busy(one) for one in ("busy_percent", "cpu_util_percent", "write_pending_percent", "busy_ms")] == [
        True, True, False, False,
    ]  # fmt: skip
    assert [is_time(one) for one in ("service_us", "read_ms", "busy_percent", "hot_s")] == [True, True, False, False]
