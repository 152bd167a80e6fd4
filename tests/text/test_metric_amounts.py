"""Amounts of metrics in words: a rounded amount lies on the same side of its limit as the amount itself."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ivypy.master.text.metric_amounts import LIMIT_DIGITS, MetricUnit, amount_in_words, rounded

_SCALE = {"us": 1, "ms": 1e3, "s": 1e6}


@pytest.mark.parametrize(
    ("unit", "amount", "limit", "text"),
    [
        (MetricUnit.US, 5000.0, 5000.0, "5 ms"),
        (MetricUnit.US, 5000.4, None, "5 ms"),
        (MetricUnit.US, 5000.4, 5000.0, "5.0004 ms"),
        (MetricUnit.US, 5000.004, 5000.0, "5.000004 ms"),
        (MetricUnit.US, 4999.6, 5000.0, "4.9996 ms"),
        (MetricUnit.US, 999.9999, 1000.0, "999.9999 us"),
        (MetricUnit.US, 7000.4, 5000.0, "7 ms"),
        (MetricUnit.PER_S, 1000.04, 1000.0, "1000.04"),
        (MetricUnit.PERCENT, 80.001, 80.0, "80.001 %"),
    ],
)
def test_an_amount_has_the_digits_that_show_its_side_of_a_limit(
    unit: MetricUnit, amount: float, limit: float | None, text: str
) -> None:
    assert amount_in_words(unit, amount, 4, limit) == text


@given(
    st.floats(1e-3, 1e9).map(lambda limit: float(f"{limit:.{LIMIT_DIGITS}g}")),
    st.floats(-1e-3, 1e-3),
    st.integers(1, 6),
)
def test_a_rounded_number_is_on_its_side_of_the_limit(limit: float, off: float, digits: int) -> None:
    number = limit * (1 + off)
    assume(number != limit)
    shown = float(rounded(number, limit, digits))
    assert shown != limit
    assert (shown > limit) is (number > limit)


@given(st.floats(1, 1e8).map(lambda limit: float(f"{limit:.6g}")), st.floats(1e-9, 1e-3))
def test_a_time_in_words_is_above_a_limit_that_it_breaches(limit_us: float, off: float) -> None:
    number, unit = amount_in_words(MetricUnit.US, limit_us * (1 + off), 4, limit_us).split()
    assert float(number) * _SCALE[unit] > limit_us
