"""CSV text, and files that only ever grow by whole lines."""

import contextlib
import csv
import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.errors import OutputError
from ivypy.master.output.csv_text import append, cells, lines, number_cells, replace_file, unguarded, utc

TEXT = st.text(st.characters(exclude_characters="\0\r\n"))


@given(st.lists(st.lists(TEXT, min_size=1, max_size=4), max_size=5))
def test_lines_are_read_back_by_the_csv_module(rows: list[list[str]]) -> None:
    assert [[*map(unguarded, row)] for row in csv.reader(io.StringIO(lines(rows), newline=""))] == rows


@given(st.lists(TEXT, min_size=1, max_size=4))
def test_cells_are_a_part_of_a_row(values: list[str]) -> None:
    row = f"before,{cells(values)},after\n"
    (read,) = csv.reader(io.StringIO(row, newline=""))
    assert [*map(unguarded, read)] == ["before", *values, "after"]


@pytest.mark.parametrize("broken", ["a\nb", "a\r\nb", "\n", 'say "x"\n, y', "a\0b"])
def test_a_row_is_one_line(broken: str) -> None:
    text = lines([[broken, 1]])
    assert text.count("\n") == 1 and text.endswith("\n") and "\r" not in text
    (row,) = csv.reader(io.StringIO(text))
    assert row == [broken.replace("\n", "\\n").replace("\r", "\\r").replace("\0", "\\0"), "1"]


def test_numbers_have_the_digits_of_their_format() -> None:
    columns = [
        ("%.0f", np.array([3.0, 12345678901234.0])),
        ("%.9g", np.array([123456.5, np.nan])),
        ("%.7g", np.array([1234567.4, 0.00012345678])),
    ]
    assert number_cells(columns) == ["3,123456.5,1234567", "12345678901234,,0.0001234568"]


def test_columns_that_are_blank_or_zero_everywhere() -> None:
    nothing, zero, some = np.full(2, np.nan), np.zeros(2), np.array([0.0, 1.5])
    assert number_cells([("%.7g", nothing), ("%.0f", zero), ("%.7g", some)]) == [",0,0", ",0,1.5"]
    assert number_cells([("%.7g", nothing), ("%.0f", zero)]) == [",0", ",0"]
    assert number_cells([("%.7g", np.array([np.nan, 0.0]))]) == ["", "0"]


@given(st.lists(st.integers(0, 2**53), min_size=1, max_size=5))
def test_counts_are_exact(counts: list[int]) -> None:
    assert number_cells([("%.0f", np.array(counts, float))]) == [str(count) for count in counts]


def test_a_number_that_is_not_known_is_blank_in_every_table() -> None:
    assert lines([[1.5, None, float("inf"), float("nan"), "inf"]]) == "1.5,,,,inf\n"


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
        ("+1+cmd|' /C calc'!A0", "'+1+cmd|' /C calc'!A0"),
        ("-2+3", "'-2+3"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("'=1", "''=1"),  # so that its quote stays
        ("-2.5e3", "-2.5e3"),
        ("-inf", "-inf"),
        ("a=b", "a=b"),
        ("'a'", "'a'"),
    ],
)
def test_no_text_is_a_formula_in_a_table_program(text: str, cell: str) -> None:
    assert next(csv.reader([lines([[text, 1]])])) == [cell, "1"] and unguarded(cell) == text


@given(st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0")))
def test_a_text_is_read_as_it_was_written(text: str) -> None:
    (row,) = csv.reader(io.StringIO(lines([["x", text]]), newline=""))
    assert unguarded(row[1]) == text and (row[1][:1] not in ("=", "+", "-", "@", "\t") or float(row[1]) is not None)


@given(st.integers(0, 2 * 10**9))
def test_times_below_a_second_are_exact_to_half_a_nanosecond(half_ns: int) -> None:
    (text,) = number_cells([("%.9g", np.array([half_ns / 2000]))])
    assert abs(float(text) * 2000 - half_ns) < 1.01  # 9 digits: at most half a nanosecond away


def test_utc_has_microseconds() -> None:
    assert utc(0) == "1970-01-01T00:00:00.000000Z"
    assert utc(1_763_723_405_250_000_999) == "2025-11-21T11:10:05.250000Z"


def test_append_adds_to_the_file(tmp_path: Path) -> None:
    for text in ("a,b\n", "1,2\n3,4\n"):
        append(tmp_path / "x.csv", text)
    assert (tmp_path / "x.csv").read_text() == "a,b\n1,2\n3,4\n"


def test_a_full_disk_is_an_error_with_the_path() -> None:
    with pytest.raises(OutputError, match=r"^/dev/full: not written: No space left on device$"):
        append(Path("/dev/full"), "1,2\n")


def test_a_missing_folder_is_an_error_with_the_path(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"gone/x.csv: not written: No such file or directory"):
        append(tmp_path / "gone" / "x.csv", "1,2\n")


HALF_WRITTEN = """
import resource, signal, sys
from pathlib import Path
from ivypy.master.errors import OutputError
from ivypy.master.output.csv_text import append
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
path = Path(sys.argv[1])
append(path, "1,2\\n")
try:
    append(path, "3,4\\n" * 2000)
except OutputError as error:
    print(error)
append(path, "5,6\\n")
"""


def test_what_could_not_be_written_completely_is_taken_back(tmp_path: Path) -> None:
    """The kernel takes 4092 of the 8000 bytes, then no more: no half line, no half append stays."""
    path = tmp_path / "x.csv"
    done = subprocess.run([sys.executable, "-c", HALF_WRITTEN, path], capture_output=True, text=True, check=True)
    assert done.stdout == f"{path}: not written: File too large\n"
    assert path.read_text() == "1,2\n5,6\n"


def append_to(folder: Path) -> None:
    append(folder / "x.csv", "1,2\n")


def replace_in(folder: Path) -> None:
    replace_file(folder, "x.csv", "1,2\n")


@pytest.mark.parametrize(("write", "link"), [(append_to, "x.csv"), (replace_in, "x.csv"), (replace_in, ".x.csv.new")])
def test_nothing_is_written_through_a_link_that_somebody_put_there(
    tmp_path: Path, write: Callable[[Path], None], link: str
) -> None:
    (victim := tmp_path / "victim").write_text("precious")
    (folder := tmp_path / "run").mkdir()
    (folder / link).symlink_to(victim)
    with contextlib.suppress(OutputError):
        write(folder)
    assert victim.read_text() == "precious"
    replace_in(folder)
    assert (folder / "x.csv").read_text() == "1,2\n" and not (folder / "x.csv").is_symlink()
