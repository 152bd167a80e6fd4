"""A run's CSV whose last line has no line break, as after a crash of the machine: the line is no row."""

from pathlib import Path
from typing import Any

import pytest

from ivypy.master.analysis.database import query
from ivypy.master.logs.readers.metric_series import series_of
from ivypy.master.output.csv_text import whole_lines
from ivypy.master.results.checked_files import read_rows, read_table
from tests.support import small_run

WHOLE = "a,b\n1,123.456\n"


@pytest.mark.parametrize("torn", range(len("2,12")))
def test_a_torn_row_is_none(tmp_path: Path, torn: int) -> None:
    path = tmp_path / "x.csv"
    path.write_text(WHOLE + "2,12"[: torn + 1])
    assert read_table(path) == [{"a": "1", "b": "123.456"}]
    assert read_rows(path) == [["a", "b"], ["1", "123.456"]]
    path.write_text("a,b"[: torn + 1])
    assert read_table(path) == [] and read_rows(path) == []


def test_whole_lines_are_all_but_a_torn_last_one() -> None:
    assert [*whole_lines(["a\n", "b\r\n", "c"])] == ["a\n", "b\r\n"] and [*whole_lines([])] == []


def test_every_reader_of_a_run_leaves_it_out(tmp_path: Path) -> None:
    folder = small_run.write_run(tmp_path)
    (path,) = folder.glob("step0000.*/all/all.csv")
    whole = path.read_text()
    text = (
        "SELECT * FROM subintervals WHERE rollup_type = 'all'"
        if "rollup_type" in whole
        else "SELECT * FROM subintervals"
    )

    def read() -> tuple[list[tuple[Any, ...]], list[float | None]]:
        (series,) = series_of(folder, lambda _: "overall_iops", "all", 1.0)[:1]
        return query([folder], text).rows, [*series.series.values]

    before = read()
    path.write_text(whole + whole.splitlines()[-1])  # every cell, the last of them perhaps cut
    assert read() == before
