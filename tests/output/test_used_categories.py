"""Files have columns of the categories that saw I/O, in all rows, whenever the first I/O came."""

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.output.csv_text import append, cells, lines
from ivypy.master.output.rows import metric_cells
from ivypy.master.output.used_categories import ALWAYS, metrics_of, widen
from ivypy.master.pages.growing_table import GrowingTable
from ivypy.master.rollup.figures import CATEGORIES
from ivypy.master.rollup.metrics import METRICS, Metric, of_nothing
from ivypy.protocol.counters import FLUSH, SERVICES
from tests.rollup.test_figures import figures_of
from tests.support.small_run import write_run

BEHIND = ["half_width"]
USED = st.frozensets(st.sampled_from([*CATEGORIES]), max_size=3).map(lambda some: ALWAYS | some)
BLANK = None  # a row without figures: its host is lost


def cell(metric: Metric, place: int, used: frozenset[str] | None) -> str:
    """What row number `place` says, if it saw I/O of these categories."""
    if used is BLANK:
        return ""
    return str(place) if metric.category in used else of_nothing("0").get(metric.name, "7")


@given(used=st.lists(USED | st.just(BLANK), min_size=1, max_size=6))
def test_a_row_says_the_same_whenever_it_was_written(
    used: list[frozenset[str] | None], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("widened") / "all.csv"
    had = ALWAYS
    growing = GrowingTable(path, ["name", *METRICS])
    for place, one in enumerate(used):
        has = had | (one or ALWAYS)
        header = lines([["name", *(metric.name for metric in metrics_of(has)), *BEHIND]])
        if place:
            widen(path, had, has, len(BEHIND))
        row = cells([f'a, "{place}"', *(cell(metric, place, one) for metric in metrics_of(has)), "9"]) + "\n"
        append(path, row if place else header + row)
        assert path.read_text().startswith(header)
        growing.refresh()
        had = has
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for place, (found, one) in enumerate(zip(rows, used, strict=True)):
        assert (found["name"], found["half_width"]) == (f'a, "{place}"', "9")
        for metric in METRICS.values():
            expected = cell(metric, place, one)
            assert {**of_nothing(found["overall_iops"]), **found}[metric.name] == expected, metric.name
    assert growing.columns == {name: [row.get(name, "") for row in rows] for name in growing.columns}


@given(st.sets(st.sampled_from([SERVICES[0], SERVICES[0] + 3, FLUSH])), USED)
def test_a_row_has_a_cell_for_each_column(series: set[int], used: frozenset[str]) -> None:
    """Also where several categories have the same figures, and those of flushes are fewer."""
    figures = figures_of({one: [1000] for one in series})
    assert {len(text.split(",")) for text in metric_cells(figures, used)} == {len(metrics_of(used))}


def test_nothing_did_sequential_io_and_so_it_has_no_columns(tmp_path: Path) -> None:
    folder = write_run(tmp_path)
    headers = {path.name: path.read_text().splitlines()[0].split(",") for path in folder.rglob("*.csv")}
    for name in ("summary.all.csv", "all.csv"):
        assert {"read_iops", "write_iops", "random_write_iops"} <= {*headers[name]}
        assert not [one for one in headers[name] if one.startswith("sequential_")]
