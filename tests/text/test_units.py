"""Quantities: what people write, what it means, and what is refused with which remedy."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.text.places import Position, Span
from ivypy.master.text.plan_parameters import OfStep
from ivypy.master.text.units import (
    format_bytes,
    format_duration,
    format_fraction,
    format_iops,
    format_span,
    parse_bool,
    parse_bytes,
    parse_capacity,
    parse_count,
    parse_duration,
    parse_fraction,
    parse_iops,
    parse_position,
)

VALUES: list[tuple[Callable[[str], object], str, object]] = [
    (parse_bytes, "4k", 4096),
    (parse_bytes, "64K", 65536),
    (parse_bytes, "1M", 1 << 20),
    (parse_bytes, "1.5g", 3 << 29),
    (parse_capacity, "1.92TB", 1_920_000_000_000),
    (parse_capacity, "10GiB", 10 << 30),
    (parse_bytes, "4096", 4096),
    (parse_bytes, "0", 0),
    (parse_bytes, "512B", 512),
    (parse_bytes, "8KiB", 8192),
    (parse_bytes, " 8 KiB ", 8192),
    (parse_bytes, "8kB", 8000),
    (parse_bytes, "1.5GiB", 1610612736),
    (parse_bytes, "100GB", 100_000_000_000),
    (parse_bytes, "2TiB", 2 << 40),
    (parse_bytes, "1PB", 10**15),
    (parse_bytes, "1e3", 1000),
    (parse_duration, "0", 0.0),
    (parse_duration, "0.0", 0.0),
    (parse_duration, "5s", 5.0),
    (parse_duration, "250ms", 0.25),
    (parse_duration, "0.1s", 0.1),
    (parse_duration, "100us", 0.0001),
    (parse_duration, "7ns", 7e-9),
    (parse_duration, "1m30s", 90.0),
    (parse_duration, "1m 30s", 90.0),
    (parse_duration, "15min", 900.0),
    (parse_duration, "2h", 7200.0),
    (parse_duration, "1d12h", 129600.0),
    (parse_fraction, "70%", 0.7),
    (parse_fraction, "0.25%", 0.0025),
    (parse_fraction, "0.7", 0.7),
    (parse_fraction, "1", 1.0),
    (parse_fraction, "100 %", 1.0),
    (parse_count, "32", 32),
    (parse_count, "1e3", 1000),
    (parse_count, "-3", -3),
    (parse_iops, "max", "max"),
    (parse_iops, "0", 0.0),
    (parse_iops, "5000", 5000.0),
    (parse_iops, "1e3", 1000.0),
    (parse_iops, "5k", 5000.0),
    (parse_iops, "5K", 5000.0),
    (parse_iops, "1.5M", 1_500_000.0),
    (parse_iops, "50% of step max", OfStep(0.5, "max")),
    (parse_iops, "120 % of step  l+maxtags=2", OfStep(1.2, "l+maxtags=2")),
    (parse_bool, "true", True),
    (parse_bool, "false", False),
    (parse_position, "50%", Position(fraction=0.5)),
    (parse_position, "1GiB", Position(bytes=1 << 30)),
    (parse_position, "0", Position(bytes=0)),
    (parse_position, "50%+1GiB", Position(0.5, 1 << 30)),
    (parse_position, "50% + 1GiB", Position(0.5, 1 << 30)),
]


@pytest.mark.parametrize("parse, text, value", VALUES)
def test_units_are_read_as_documented(parse: Callable[[str], object], text: str, value: object) -> None:
    assert parse(text) == value
    assert type(parse(text)) is type(value)


REFUSED: list[tuple[Callable[[str], object], str, str]] = [
    (parse_capacity, "8k", "'8k' can mean two sizes; write 8KiB (8192 bytes) or 8kB (8000 bytes)"),
    (parse_capacity, "1.5G", "'1.5G' can mean two sizes; write 1.5GiB (1610612736 bytes) or 1.5GB (1500000000 bytes)"),
    (parse_bytes, "8KB", "'8KB' can mean two sizes; write 8KiB (8192 bytes) or 8kB (8000 bytes)"),
    (parse_bytes, "1gb", "'1gb' can mean two sizes; write 1GiB (1073741824 bytes) or 1GB (1000000000 bytes)"),
    (parse_bytes, "8kib", "'8kib' is not a size; write 8KiB"),
    (parse_bytes, "8 blocks", "'8 blocks' is not a size; write for example 8KiB, 1.5GiB or 4096 (bytes)"),
    (parse_bytes, "70%", "'70%' is not a size; write for example 8KiB, 1.5GiB or 4096 (bytes)"),
    (parse_bytes, "0x1000", "'0x1000' is not a size; write for example 8KiB, 1.5GiB or 4096 (bytes)"),
    (parse_bytes, "1.3B", "'1.3B' is not a whole number of bytes"),
    (parse_bytes, "1e99", "'1e99' is beyond all sizes that ivypy can handle"),
    (parse_duration, "30", "'30' has no unit; write 30s for seconds"),
    (parse_duration, "1:30", "'1:30' is not a duration; write 1m30s"),
    (parse_duration, "01:00:05", "'01:00:05' is not a duration; write 1h5s"),
    (parse_duration, "0:00", "'0:00' is not a duration; write 0s"),
    (parse_duration, "30s1m", "'30s1m' is not a duration; write for example 5s, 250ms, 1m30s or 2h"),
    (parse_duration, "1m1min", "'1m1min' is not a duration; write for example 5s, 250ms, 1m30s or 2h"),
    (parse_duration, "-5s", "'-5s' is not a duration; write for example 5s, 250ms, 1m30s or 2h"),
    (parse_duration, "30 sec", "'30 sec' is not a duration; write 30s"),
    (parse_duration, "1h30", "'1h30' is not a duration; write 1h30m"),
    (parse_duration, "1m30", "'1m30' is not a duration; write 1m30s"),
    (parse_duration, "2 Minutes", "'2 Minutes' is not a duration; write 2m"),
    (parse_duration, "1 hour and 5 mins", "'1 hour and 5 mins' is not a duration; write 1h5m"),
    (parse_duration, "5 sec 1 hour", "'5 sec 1 hour' is not a duration; write for example 5s, 250ms, 1m30s or 2h"),
    (parse_duration, "soon", "'soon' is not a duration; write for example 5s, 250ms, 1m30s or 2h"),
    (parse_fraction, "70", "'70' is more than 1; write 70% if percent is meant"),
    (parse_fraction, "7 of 10", "'7 of 10' is not a fraction; write for example 70% or 0.7"),
    (parse_count, "010", "'010' has a leading zero; write 10"),
    (parse_count, "1.5", "'1.5' is not a whole number"),
    (parse_count, "64k", "'64k' is not a whole number"),
    (parse_count, "1,000", "'1,000' is not a whole number; write 1000"),
    (parse_count, "1_000", "'1_000' is not a whole number; write 1000"),
    (parse_count, "nan", "'nan' is not a whole number"),
    (parse_iops, "50%", "'50%' needs a step; write 50% of step NAME"),
    (parse_iops, "50% of max", "'50% of max' is not an IOPS setting; write a number, max, or 50% of step NAME"),
    (parse_iops, "inf", "'inf' is not an IOPS setting; write a number, max, or 50% of step NAME"),
    (parse_iops, "5 kHz", "'5 kHz' is not an IOPS setting; write a number, max, or 50% of step NAME"),
    (parse_iops, "Max", "'Max' is not an IOPS setting; write a number, max, or 50% of step NAME"),
    (parse_bool, "yes", "'yes' is neither true nor false; write true"),
    (parse_bool, "off", "'off' is neither true nor false; write false"),
    (parse_bool, "TRUE", "'TRUE' is neither true nor false; write true"),
    (parse_bool, "perhaps", "'perhaps' is neither true nor false; write true or false"),
    (parse_position, "120%", "'120%' is not in the LUN; a place in it is from 0% to 100%"),
    (parse_position, "-1", "'-1' is not in the LUN; a place in it is at least 0"),
]


@pytest.mark.parametrize("parse, text, fault", REFUSED)
def test_refused_text_names_the_remedy(parse: Callable[[str], object], text: str, fault: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse(text)
    assert str(caught.value) == fault


@pytest.mark.parametrize(
    "seconds, text",
    [(0.0, "0s"), (0.25, "250ms"), (0.0001, "100us"), (5.0, "5s"), (90.0, "1m30s"), (3600.0, "1h"), (3605.5, "1h5.5s")],
)
def test_durations_are_printed_in_short_form(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    "size, text", [(0, "0"), (512, "512"), (4096, "4KiB"), (1536, "1536"), (1 << 40, "1TiB"), (10**9, "1000000000")]
)
def test_sizes_are_reported_in_the_largest_unit_that_is_exact(size: int, text: str) -> None:
    assert format_bytes(size) == text


@given(st.integers(0, 1 << 70))
def test_sizes_return(size: int) -> None:
    assert parse_bytes(format_bytes(size)) == size


@given(st.floats(0, 1e7, allow_nan=False).filter(lambda x: x == 0 or x > 1e-12))
def test_durations_return(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@given(st.floats(0, 1).filter(lambda x: x == 0 or x > 1e-12))
def test_fractions_return(fraction: float) -> None:
    assert parse_fraction(format_fraction(fraction)) == fraction


STEP_NAMES = st.text(st.characters(categories=["L", "N"], include_characters=" +=%._-"), min_size=1).filter(
    lambda name: name == name.strip()
)


@given(st.one_of(st.just("max"), st.floats(0, 1e9).filter(lambda x: x == 0 or x > 1e-12)))
def test_iops_return(iops: float | str) -> None:
    assert parse_iops(format_iops(iops)) == iops  # type: ignore[arg-type]


@given(st.floats(0.001, 1), STEP_NAMES)
def test_references_to_a_step_return(fraction: float, step: str) -> None:
    assert parse_iops(format_iops(OfStep(fraction, step))) == OfStep(fraction, step)


POSITIONS = st.one_of(
    st.floats(0, 1).filter(lambda x: x == 0 or x > 1e-12).map(lambda f: Position(fraction=f)),
    st.integers(0, 1 << 60).map(lambda b: Position(bytes=b)),
    st.builds(Position, st.integers(0, 100).map(lambda percent: percent / 100), st.integers(0, 1 << 60)),
)


@given(st.tuples(POSITIONS, POSITIONS))
def test_ranges_return(span: Span) -> None:
    start, end = format_span(span).split("..")
    assert (parse_position(start), parse_position(end)) == span


@given(st.text())
def test_any_text_is_read_or_refused_and_never_breaks(text: str) -> None:
    for parse in (parse_bytes, parse_duration, parse_fraction, parse_count, parse_iops, parse_bool, parse_position):
        try:
            parse(text)
        except ValueError as refused:
            assert str(refused)
