"""What connectors said, as data of a page: the values of the run's own files, gaps where a gather failed."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from ivypy.master.connectors.element_figures import FamilyFigures, FamilyLayout
from ivypy.master.errors import PlanError
from ivypy.master.output.connector_sums import ConnectorSums
from ivypy.master.pages import elements
from ivypy.master.pages.element_table import ElementFile
from ivypy.master.pages.elements import MOST_LINES, shown_places
from ivypy.master.pages.growing_table import AddedRows
from ivypy.master.pages.run_data import RunData
from ivypy.protocol.connector import ElementMetric, ReadingKind, Unit
from tests.support.made_once import Store
from tests.support.rollup import instance, rollups_by
from tests.support.shown_runs import DECLINED, gathered

HEADER = "subinterval,end_utc,connector_host,element,participating,busy_percent,service_us\n"


@pytest.fixture
def folder(store: Store) -> Path:
    return store.run(gathered)


def rows(folder: Path, name: str) -> list[dict[str, str]]:
    (path,) = folder.glob(name)
    with path.open(newline="") as file:
        return [*csv.DictReader(file)]


def test_lines_are_the_rows_of_the_elements_and_gaps_where_a_gather_failed(folder: Path) -> None:
    said = RunData(folder).element_lines(0, "array.pg_service_us")
    assert (said["elements"], [one["element"] for one in said["lines"]][-1]) == (3, "1-3"), "the fastest is the last"
    for line in said["lines"]:
        expected = {
            int(row["subinterval"]): float(row["service_us"])
            for row in rows(folder, "step0000.*/connectors/array.pg.csv")
            if row["element"] == line["element"]
        }
        found = dict(zip(line["at"], line["values"], strict=True))
        assert {at: one for at, one in found.items() if one is not None} == expected
        assert [at for at, one in found.items() if one is None] == [one - 1 for one in DECLINED]


def test_gathers_without_values_are_listed(folder: Path) -> None:
    said = RunData(folder).elements(0)
    assert said["gathers"] == [{"connector": "array", "host": "", "states": {"gathered": 21, "declined": 3}}]
    assert [(one["subinterval"], one["state"], one["why"]) for one in said["missing"]] == [
        (one - 1, "declined", "its management port is busy") for one in DECLINED
    ]
    assert said["missing_total"] == len(DECLINED)


def test_metrics_have_their_units_and_the_busiest_come_first(folder: Path) -> None:
    said = RunData(folder).elements(1)
    json.dumps(said, allow_nan=False)
    units = {metric["name"]: metric["unit"] for family in said["families"] for metric in family["metrics"]}
    assert units == {
        "array.cache_write_pending_percent": "%", "array.mp_busy_percent": "%", "array.pg_busy_percent": "%",
        "array.pg_ios_per_s": "1/s", "array.pg_service_us": "us",
    }  # fmt: skip
    assert (said["busiest"][0]["metric"], said["busiest"][0]["element"]) == ("array.mp_busy_percent", "0")
    means = [one["mean"] for one in said["busiest"]]
    assert means == sorted(means, reverse=True) and len(means) == 5


def test_correlations_are_numpys_over_the_subintervals_under_load(folder: Path) -> None:
    said = RunData(folder).elements(1)
    (found,) = [
        one for one in said["correlations"] if (one["metric"], one["element"]) == ("array.mp_busy_percent", "0")
    ]
    service = [
        float(row["overall_service_us_mean"]) if row["phase"] != "cooldown" else np.nan
        for row in rows(folder, "step0001.*/all/all.csv")
    ]
    of_mp = rows(folder, "step0001.*/connectors/array.mp.csv")
    busy = {int(row["subinterval"]): float(row["busy_percent"]) for row in of_mp if row["element"] == "0"}
    pairs = [(busy[at], one) for at, one in enumerate(service) if at in busy and np.isfinite(one)]
    assert found["n"] == len(pairs)
    assert found["r"] == pytest.approx(np.corrcoef(np.array(pairs).T)[0, 1], abs=1e-6)
    never = [one for one in said["correlations"] if one["metric"] == "array.cache_write_pending_percent"]
    assert [one["r"] for one in never] == [None], "it has no variance"
    assert {one["element"] for one in said["correlations"] if not one["participating"]} == {"1-3"}


def test_the_first_element_that_saturates_in_a_staircase(folder: Path) -> None:
    said = RunData(folder).elements(1)["saturation"]
    assert len(said["levels"]) > 4
    assert (said["first"][0]["metric"], said["first"][0]["element"]) == ("array.mp_busy_percent", "0")
    level = next(one for one in said["levels"] if one["name"] == said["first"][0]["level"])
    assert level["iops"] == pytest.approx(4827, rel=0.01), "of 5000 that processor 0 can do"


def test_times_are_those_of_the_chosen_rollup_instance(folder: Path) -> None:
    (time,) = RunData(folder).elements(0, "pg", "1-2")["times"]
    expected = rows(folder, "step0000.*/pg/1-2.array.pg.csv")
    found = dict(zip(time["at"], time["values"], strict=True))
    assert time["metric"] == "array.pg_service_us"
    of_file = {int(row["subinterval"]): row["service_us"] for row in expected}
    assert found == {at: float(text) if (text := of_file[at]) else None for at in found}
    assert None in found.values() and len(found) >= 20


READ_MS = ElementMetric("disk", "read_ms", Unit.MS, ReadingKind.COUNTER)
HOSTS = rollups_by([instance(0, "h1"), instance(0, "h2")], "host")


def add_of_hosts(sums: ConnectorSums, subinterval: int, h1_ms: float | None, h2_ms: float) -> None:
    """Read times of all hosts and of each; None: no read."""
    of_rows = FamilyLayout(("host", "disk"), (READ_MS,), 2, (1, 2), np.array([0, 1]), np.array([0, 1]))
    amounts, pers = np.array([[h1_ms or 0.0], [h2_ms]]), np.array([[float(h1_ms is not None)], [1.0]])
    figures = FamilyFigures(of_rows, np.zeros(2, int), np.ones(2, bool), amounts, pers, amounts, amounts)
    sums.add(0, subinterval, [figures], HOSTS)


def test_what_hosts_read_of_themselves_is_read_as_it_grows(tmp_path: Path) -> None:
    """They have no file for each rollup instance."""
    sums, said = ConnectorSums(tmp_path / "connectors.sqlite"), elements.StepElements(tmp_path / "step0000.one", 0)
    assert said.times("h1", "host", ()) == [] and not [*said.newest("host", "h1", ())]
    for subinterval, h1_ms in enumerate([0.5, None, 0.25]):
        add_of_hosts(sums, subinterval, h1_ms, 7.0)
    (line,) = said.times("h1", "host", ())
    assert line == {"metric": "host.disk_read_ms", "at": [0, 1, 2], "values": [500.0, None, 250.0]}
    add_of_hosts(sums, 4, 0.125, 7.0)
    (line,) = said.times("h1", "host", ())
    assert (line["at"][-2:], line["values"][-2:]) == ([3, 4], [None, 125.0])
    (newest,) = said.newest("host", "h1", ())
    assert newest == elements.NewestFigure(4, "host", "disk", "read_ms", "ms", 0.125)
    sums.close()


def test_files_of_hosts_by_rollup_instance_of_an_older_run_are_shown(tmp_path: Path) -> None:
    step = tmp_path / "step0000.one"
    for folder in ("host", "connectors"):
        (step / folder).mkdir(parents=True)
    (step / "connectors" / "host.disk.csv").write_text(
        "subinterval,end_utc,connector_host,element,participating,read_ms\n0,x,h1,h1:sda,1,0.5\n"
    )
    (step / "host" / "h1.host.disk.csv").write_text(
        "subinterval,end_utc,elements,missing,read_ms,read_ms_min,read_ms_max\n0,x,1,0,0.5,0.5,0.5\n"
    )
    said = elements.StepElements(step, 0)
    assert said.times("h1", "host", ()) == [{"metric": "host.disk_read_ms", "at": [0], "values": [500.0]}]
    assert [(one.attribute, one.value) for one in said.newest("host", "h1", ())] == [("read_ms", 0.5)]


def test_unknown_metrics_and_instances_are_key_errors(folder: Path) -> None:
    with pytest.raises(KeyError):
        RunData(folder).element_lines(0, "array.pg_nothing")
    with pytest.raises(KeyError):
        RunData(folder).elements(0, "pg", "none")


def test_what_grows_is_read_as_if_it_had_been_there(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / folder.name
    shutil.copytree(folder, copy)
    paths = [*copy.glob("step0000.*/connectors/*.csv"), *copy.glob("step0000.*/gathers.csv")]
    paths += copy.glob("step0000.*/all/all.array.pg.csv")
    texts = {path: path.read_bytes() for path in paths}
    data = RunData(copy)
    for part in range(8):
        for path, text in texts.items():
            path.write_bytes(text[: len(text) * part // 7])  # in the midst of lines, too
        data.elements(0)
    whole = RunData(folder)
    assert data.elements(0) == whole.elements(0)
    assert data.element_lines(0, "array.pg_ios_per_s") == whole.element_lines(0, "array.pg_ios_per_s")


def test_what_is_no_control_table_is_not_shown_as_one(folder: Path) -> None:
    assert "gathers" not in RunData(folder).control(0)


def test_elements_that_appear_later_have_gaps_before(tmp_path: Path) -> None:
    path = tmp_path / "array.mp.csv"
    first = [f"{k},t,,e{n},1,{10 * n + k},\n" for k in range(100) for n in range(12) if k >= n]
    path.write_text(HEADER + "".join(first))
    table = ElementFile(path)
    table.refresh()
    values = table.values("busy_percent")
    assert (table.connector, table.element, values.shape) == ("array", "mp", (100, 12))
    for k, n in ((0, 0), (0, 1), (50, 11), (99, 11)):
        expected = 10 * n + k if k >= n else np.nan
        assert values[k, n] == pytest.approx(expected, nan_ok=True)
    assert np.isnan(table.values("service_us")).all()


def test_more_values_than_there_is_room_for_are_left_out_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ivypy.master.pages.element_table.MOST_VALUES", 2000)
    path = tmp_path / "array.mp.csv"
    path.write_text(HEADER + "".join(f"{k},t,,e,1,5,6\n" for k in range(5000)))
    table = ElementFile(path)
    table.refresh()
    assert table.left_out_from is not None and 64 <= table.left_out_from < 1000
    assert table.values("busy_percent").shape == (table.left_out_from, 1)


def test_a_line_of_many_points_keeps_its_peaks_and_its_gaps() -> None:
    values = np.sin(np.arange(100_000) / 7000.0)
    values[[31_234, 77_777]] = 9.0, -9.0
    values[50_000:50_010] = np.nan
    places = shown_places(values)
    assert len(places) <= elements.MOST_POINTS and places == sorted(set(places))
    assert {31_234, 77_777, 50_000} <= set(places)
    assert shown_places(values[:1200]) == [*range(1200)]


def test_no_more_lines_than_can_be_told_apart(tmp_path: Path) -> None:
    folder = tmp_path / "step0000.one" / "connectors"
    folder.mkdir(parents=True)
    text = "".join(f"{k},t,,e{n},1,{n},\n" for k in range(3) for n in range(50))
    (folder / "array.mp.csv").write_text(HEADER + text)
    said = elements.StepElements(folder.parent, 0).lines("array.mp_busy_percent")
    assert said["elements"] == 50
    assert [one["element"] for one in said["lines"]] == [f"e{49 - n}" for n in range(MOST_LINES)]


def test_a_measurement_has_the_means_of_elements_with_enough_values_and_none_of_test_hosts(tmp_path: Path) -> None:
    folder = tmp_path / "step0000.one" / "connectors"
    folder.mkdir(parents=True)
    text = "".join(f"{k},t,,e{n},1,{10 * n + k},\n" for k in range(8) for n in range(3) if k >= 4 * n)
    for connector in ("array", "host"):
        (folder / f"{connector}.cpu.csv").write_text(HEADER + text)
    found = elements.StepElements(folder.parent, 0).busy(range(8))
    assert found == {("array.cpu_busy_percent", "e0"): 3.5, ("array.cpu_busy_percent", "e1"): 15.5}


def test_rows_are_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ivypy.master.pages.growing_table._AT_ONCE", 40)
    path = tmp_path / "some.csv"
    path.write_text("a,b\n" + "".join(f'{n},"x, {n}"\n' for n in range(100)) + "100,wh")
    added = AddedRows(path)
    found = []
    while rows := added.read():
        found += rows
    assert found == [[str(n), f"x, {n}"] for n in range(100)] and added.header == ["a", "b"]


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "step").mkdir()
    (tmp_path / "step" / "gathers.csv").mkdir()
    with pytest.raises(PlanError, match=r"gathers\.csv: not read"):
        elements.StepElements(tmp_path / "step", 0).gathers()
