"""Sizes in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.protocol.quantities import UNITS, exact_size

SCALES = {name: scale for name, scale in UNITS} | {"bytes": 1}


@given(st.integers(0, 1 << 60) | st.integers(0, 10_000).map(lambda size: size * 300_000_000))
def test_an_exact_size_is_exact(size: int) -> None:
    number, unit = exact_size(size).split()
    assert float(number.replace(",", "")) * SCALES[unit] == pytest.approx(size, rel=1e-15)


@pytest.mark.parametrize(
    ("size", "words"),
    [(65_536, "64 KiB"), (1000, "1,000 bytes"), (3_000_000_000, "3,000,000,000 bytes"), (5 << 29, "2.5 GiB")],
)
def test_a_size_is_in_binary_units_where_few_digits_are_enough(size: int, words: str) -> None:
    assert exact_size(size) == words
