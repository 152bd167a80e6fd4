"""Figures for people: three digits, a unit that scales, and never wider than their column."""

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.text.scaled import WIDEST, duration, scaled_count, scaled_size, scaled_time, time_of_day

FACTORS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "us": 1.0, "ms": 1e3, "s": 1e6}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"), (0, "0"), (5, "5"), (612, "612"), (0.5, "0.50"), (31.25, "31.2"), (999.4, "999"),
        (999.6, "1.00 k"), (1000, "1.00 k"), (42_123, "42.1 k"), (99_960, "100 k"), (999_600, "1.00 M"),
        (3_050_000, "3.05 M"), (1.5e9, "1.50 G"), (-42_123, "-42.1 k"),
    ],
)  # fmt: skip
def test_a_count_has_three_digits_and_a_unit(value: float | None, text: str) -> None:
    assert scaled_count(value) == text


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (None, "-"), (0.5, "0.50 us"), (9.996, "10.0 us"), (32.1, "32.1 us"), (128, "128 us"), (999.6, "1.00 ms"),
        (1350, "1.35 ms"), (16_881, "16.9 ms"), (1_350_000, "1.35 s"), (3_600_000_000, "3600 s"),
    ],
)  # fmt: skip
def test_a_time_has_three_digits_and_a_unit(us: float | None, text: str) -> None:
    assert scaled_time(us) == text


@pytest.mark.parametrize(
    ("size", "text"), [(512, "512 B"), (1023, "1.00 KiB"), (16 << 20, "16.0 MiB"), (1_600_321_314_816, "1.46 TiB")]
)
def test_a_size_is_binary(size: int, text: str) -> None:
    assert scaled_size(size) == text


@given(st.floats(0.01, 9e14))
def test_the_text_is_the_value_to_three_digits_and_fits(value: float) -> None:
    for text in (scaled_count(value), scaled_time(min(value, 9e9))):
        number, _, unit = text.partition(" ")
        assert len(text) <= WIDEST
        meant = min(value, 9e9) if unit in ("us", "ms", "s") else value
        assert float(number) * FACTORS[unit] == pytest.approx(meant, rel=0.0051, abs=0.0051)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (42.4, "42s"), (59.6, "1m00s"), (80, "1m20s"), (3600, "1h00m"), (14_290, "3h58m")]
)
def test_a_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_an_end_on_another_day_names_the_day() -> None:
    now = datetime(2026, 11, 23, 14, 0)
    assert time_of_day(datetime(2026, 11, 23, 14, 32), now) == "14:32"
    assert time_of_day(datetime(2026, 11, 24, 2, 15), now) == "Tue 02:15"
