"""What connectors said, compared: matched by step, rollup instance and metric; the runs decide, or nothing does."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ivypy.master.cli.compare import compare as command
from ivypy.master.exit_codes import ExitCode
from tests.support.compared_runs import runs, sides

HEADER = "step,name,rollup_type,rollup_instance,metric,unit,value,min,max,subintervals,missing,elements\n"
Sides = tuple[list[Path], list[Path]]
BUSY, TIME = "array.mp_busy_percent", "array.pg_service_us"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Sides:
    return sides(tmp_path_factory.mktemp("runs"), runs(3), runs(3))


def write(folder: Path, *rows: str) -> None:
    """connectors.csv, by its cells from the metric on."""
    (folder / "connectors.csv").write_text(HEADER + "".join(f"0,max,all,all,{row}\n" for row in rows))


def said(before: Sequence[Path], after: Sequence[Path], *words: str) -> tuple[int, str]:
    args = [*map(str, before), "--vs", *map(str, after), "--connectors", *words]
    done = CliRunner().invoke(command, args, standalone_mode=False, catch_exceptions=False)
    return done.return_value, done.output


def compared(before: Sequence[Path], after: Sequence[Path]) -> dict[str, dict[str, Any]]:
    _, text = said(before, after, "--json")
    return {row["metric"]: row for row in json.loads(text)["connectors"]}


@pytest.fixture
def written(folders: Sides) -> Sides:
    """Three runs a side: busy figures half as much again, times the same."""
    for at, side in enumerate(folders):
        for run, folder in enumerate(side):
            busy, time = 40 * (1 + at / 2) + run / 10, 180 + run / 10
            write(folder, f"{BUSY},%,{busy},30,50,8,0,2", f"{TIME},us,{time},170,190,7,1,2")
    return folders


def test_three_runs_a_side_decide(written: Sides) -> None:
    found = compared(*written)
    assert (found[BUSY]["outcome"], found[TIME]["outcome"]) == ("different", "equivalent")
    assert found[BUSY]["change"] == pytest.approx(0.5, abs=0.01)
    low, high = found[BUSY]["interval"]
    assert low < found[BUSY]["change"] < high and found[BUSY]["p"] < 0.01
    assert (found[BUSY]["a"], found[BUSY]["unit"], found[BUSY]["notes"]) == (pytest.approx(40.1), "%", [])
    assert found[TIME]["notes"] == [f"{run}: 1 of 8 subintervals have no value" for run in
                                    ("A1", "A2", "A3", "B1", "B2", "B3")]  # fmt: skip


def test_they_decide_no_exit_code(written: Sides) -> None:
    code, text = said(*written)
    assert code == ExitCode.OK and "What connectors said" in text
    assert [line for line in text.splitlines() if "different" in line and "+49.9%" in line]


@pytest.mark.parametrize("count", [1, 2])
def test_fewer_runs_are_shown_and_not_judged(written: Sides, count: int) -> None:
    found = compared(written[0][:count], written[1][:count])
    assert {row["outcome"] for row in found.values()} == {"not judged"}
    assert found[BUSY]["change"] == pytest.approx(0.5, abs=0.01) and found[BUSY]["interval"] is None
    assert "three runs or more a side are needed" in found[BUSY]["notes"]


CASES = [
    ("zeros", [f"{BUSY},%,0,0,0,8,0,2"], "a value is not above 0"),
    ("a blank", [f"{BUSY},%,,,,0,8,2"], "B3: no subinterval has a value"),
    ("one that is not there", [f"{TIME},us,180,170,190,8,0,2"], "B3: not there"),
]


@pytest.mark.parametrize(("rows", "note"), [one[1:] for one in CASES], ids=[one[0] for one in CASES])
def test_what_cannot_be_judged_says_why(written: Sides, rows: list[str], note: str) -> None:
    write(written[1][2], *rows)
    found = compared(*written)[BUSY]
    assert found["outcome"] == "not judged" and note in found["notes"] and found["b"] is not None


def test_markdown_and_the_page_have_them_too(written: Sides, tmp_path: Path) -> None:
    page = tmp_path / "compared.html"
    _, text = said(*written, "--md", "--html", str(page))
    assert f"| `max` | `{BUSY} (%)` | 40.1 | 60.1 | +49.9% |" in text
    assert f"<td>{BUSY} (%)</td>" in page.read_text()


def test_without_the_option_there_are_none(written: Sides) -> None:
    before, after = ([*map(str, side)] for side in written)
    done = CliRunner().invoke(command, [*before, "--vs", *after, "--json"], standalone_mode=False)
    assert json.loads(done.output)["connectors"] == []


def test_other_steps_and_instances_are_left_out(written: Sides) -> None:
    for folder in (*written[0], *written[1]):
        with (folder / "connectors.csv").open("a") as file:
            file.write(f"0,max,host,h1,{BUSY},%,1,1,1,8,0,1\n1,other,all,all,{BUSY},%,1,1,1,8,0,1\n")
    _, text = said(*written, "--json")
    assert {(row["step"], row["rollup_type"]) for row in json.loads(text)["connectors"]} == {("max", "all")}
    _, text = said(*written, "--json", "--by", "host")
    by_host = [row["metric"] for row in json.loads(text)["connectors"] if row["rollup_instance"] == "h1"]
    assert by_host == [BUSY]
