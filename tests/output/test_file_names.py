"""File names made from names that anybody may have chosen."""

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.output.file_names import LONGEST, stem, step_folder


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("h1", "h1"),
        ("410116+1A", "410116+1A"),
        ("h1:/dev/sdb", "h1%3A%2Fdev%2Fsdb"),
        ("a=b_c-d.e", "a=b_c-d.e"),
        ("../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd"),
        ("..", "%2E."),
        (".", "%2E"),
        ("", "%"),
        ("100%", "100%25"),
        ("Gerät 5", "Ger%C3%A4t%205"),
        ("a\nb\0c", "a%0Ab%00c"),
        ('"x,y"', "%22x%2Cy%22"),
        ("\udcff", "%FF"),  # a byte that is no UTF-8, as the operating system hands it over
        ("x.histogram", "x%2Ehistogram"),  # else x.histogram.csv would be two files
    ],
)
def test_names_are_escaped(name: str, file: str) -> None:
    assert stem(name) == file


def test_a_long_name_keeps_its_beginning_and_ends_in_a_hash() -> None:
    one, other = stem("x" * 300 + "1"), stem("x" * 300 + "2")
    assert one != other
    assert len(one) == len(other) == LONGEST
    assert one.startswith("x" * 160) and one[-18:-16] == "%%"


def test_an_escape_is_not_cut_in_two() -> None:
    for padding in range(4):
        beginning, _, digest = stem("x" * padding + "ä" * 100).partition("%%")
        assert len(digest) == 16
        assert beginning[-3:] in ("%C3", "%A4")


@given(st.lists(st.text(max_size=300), unique=True, max_size=20))
def test_different_names_have_different_files(names: list[str]) -> None:
    assert len({stem(name) for name in names}) == len(names)


@given(st.text(max_size=400))
def test_a_stem_is_a_safe_file_name(name: str) -> None:
    file = stem(name)
    assert 0 < len(file) <= LONGEST and file.isascii()
    assert not file.startswith(".") and "/" not in file and "\0" not in file


@given(st.text(min_size=1, max_size=15))  # of 12 bytes each at most
def test_short_names_read_back(name: str) -> None:
    assert unquote(stem(name)) == name


def test_step_folders() -> None:
    assert step_folder(0, "max") == "step0000.max"
    assert step_folder(12, "blocksize=8KiB, fraction_read=70%") == "step0012.blocksize=8KiB%2C%20fraction_read=70%25"
