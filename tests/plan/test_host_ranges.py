"""Names with ranges, read and written: what stands for a list of names gives exactly that list again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.plan.select.host_ranges import MOST, compact, expand

NAMES = st.text("a0189.-", max_size=6)
IN_A_ROW = st.builds(
    lambda before, width, start, count, after: [
        f"{before}{number:0{width}}{after}" for number in range(start, start + count)
    ],
    st.sampled_from(["lab", "10.0.0.", "r1n", ""]),
    st.integers(1, 3),
    st.integers(0, 110),
    st.integers(1, 30),
    st.sampled_from(["", ".lab", "-e0"]),
)


def expanded(texts: list[str]) -> list[str]:
    return [name for text in texts for name in expand(text)]


@given(st.lists(NAMES | IN_A_ROW, max_size=12))
def test_expand_gives_what_was_compacted(parts: list[str | list[str]]) -> None:
    names = [name for part in parts for name in ([part] if isinstance(part, str) else part)]
    assert expanded(compact(names)) == names


@given(st.lists(st.integers(0, 99), min_size=1, unique=True))
def test_numbers_of_one_name_make_one_text(numbers: list[int]) -> None:
    assert len(compact(f"lab{number:02}" for number in numbers)) == 1


@pytest.mark.parametrize(
    ("names", "texts"),
    [
        ([], []),
        (["db"], ["db"]),
        ([f"lab{i:02}" for i in range(1, 65)], ["lab[01-64]"]),
        (["lab1", "lab3", "lab4", "db", "lab9"], ["lab[1,3-4]", "db", "lab9"]),
        (["n8", "n9", "n10"], ["n[8-10]"]),
        (["n08", "n09", "n10", "n99", "n100"], ["n[08-10,99-100]"]),
        (["r1n1", "r1n2", "r2n1", "r2n2"], ["r1n[1-2]", "r2n[1-2]"]),
        (["a[1", "a[2"], ["a[1", "a[2"]),  # no host's name
    ],
)
def test_the_text_is_short(names: list[str], texts: list[str]) -> None:
    assert compact(names) == texts


def test_no_text_stands_for_more_names_than_expand_takes() -> None:
    names = [f"n{i}" for i in range(2 * MOST + 1)]
    assert expanded(compact(names)) == names
