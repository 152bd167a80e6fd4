"""The console's columns at each width, the table of rollup instances, and the table at the end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.control.observation import Phase
from ivypy.master.live.instances_table import SPARKS, Order, instances_lines, shortened, sparkline, worst_first
from ivypy.master.live.line_view import wrapped
from ivypy.master.live.reports import Instances, Latency, MeasurementRow, RunEnds, Slice, StepEnds, Subinterval
from ivypy.master.live.steps_table import steps_table
from ivypy.master.live.subinterval_lines import LAYOUTS, header_lines, subinterval_lines
from ivypy.master.verdicts import Verdict

FIGURES = st.one_of(st.none(), st.floats(0.1, 9e9))
LATENCIES = st.builds(Latency, FIGURES, FIGURES, FIGURES, FIGURES)
SLICES = st.builds(Slice, st.text("abc", min_size=1, max_size=40), FIGURES, FIGURES, LATENCIES, LATENCIES)


def closed(service: Latency, response: Latency, hosts_in: int = 3, errors: int = 0) -> Subinterval:
    parts = (Slice("read", 7.0, 2.0, service, response), Slice("write", 3.0, 1.0, service, response))
    utc = "2026-01-01T00:00:05.000Z"
    return Subinterval(
        utc, "one", Phase.TRANSIENT, 9999, 12e6, 11.5e6, 1234.5, service, response, errors, hosts_in, 3, 99.6, 100.0,
        ("what control says",), 5.0, 9.0, directions=parts,
    )  # fmt: skip


@pytest.mark.parametrize("width", LAYOUTS)
@given(service=LATENCIES, response=LATENCIES)
def test_every_line_fits_and_figures_stay_below_their_titles(width: int, service: Latency, response: Latency) -> None:
    lines = [*header_lines(width), *subinterval_lines(closed(service, response), width)]
    assert max(map(len, lines)) <= width
    bars = [[place for place, letter in enumerate(line) if letter == "|"] for line in lines[:5]]
    assert all(one == bars[1][: len(one)] for one in bars)


@pytest.mark.parametrize("width", LAYOUTS)
def test_errors_and_missing_hosts_are_seen_at_every_width(width: int) -> None:
    nothing = Latency(None, None, None)
    text = "\n".join(subinterval_lines(closed(nothing, nothing, hosts_in=2, errors=7), width))
    assert "2 of 3 hosts" in text or "2/3" in text
    assert "7 errors" in text or text.splitlines()[0].endswith(" 7")


@given(st.lists(SLICES, max_size=8), st.sampled_from([Order.P99, Order.MAX, Order.IOPS]))
def test_the_worst_is_first_and_who_did_nothing_before_it(slices: list[Slice], order: Order) -> None:
    figures = [order.figure(one) for one in worst_first(slices, order)]
    known = [figure for figure in figures if figure is not None]
    assert figures[: len(figures) - len(known)] == [None] * (len(figures) - len(known))
    assert known == sorted(known, reverse=order is not Order.IOPS)


@given(st.lists(SLICES, min_size=1, max_size=8), st.integers(80, 200), st.sampled_from(Order), st.integers(1, 10))
def test_the_table_fits_its_screen(slices: list[Slice], width: int, order: Order, most: int) -> None:
    history = {one.name: [order.figure(one)] * 300 for one in slices}
    lines = instances_lines(Instances("path", "one", 3, tuple(slices)), width, order, history, most)
    assert len(lines) == 1 + min(most, len(slices)) and max(map(len, lines)) <= width


@given(st.lists(st.one_of(st.none(), st.floats(0, 1e12)), max_size=30))
def test_a_sparkline_is_from_zero_to_the_highest(values: list[float | None]) -> None:
    line = sparkline(values)
    assert len(line) == len(values)
    assert all((letter == " ") == (value is None) for letter, value in zip(line, values, strict=True))
    known = [value for value in values if value is not None]
    if known and max(known) > 0:
        assert line[values.index(max(known))] == SPARKS[-1]


@given(st.text(min_size=1, max_size=60), st.integers(12, 60))
def test_a_long_name_keeps_its_end(name: str, width: int) -> None:
    short = shortened(name, width)
    assert len(short) == min(len(name), width) and short[-3:] == name[-3:]


VERDICTS = st.sampled_from(Verdict)
MEASURED = st.builds(
    MeasurementRow, st.text("ab=", min_size=1, max_size=60), VERDICTS, VERDICTS, VERDICTS, VERDICTS, st.just(()),
    st.just(""), FIGURES, st.one_of(st.none(), st.floats(0, 999)), FIGURES, FIGURES, LATENCIES, FIGURES, LATENCIES,
)  # fmt: skip


@given(st.lists(MEASURED, min_size=1, max_size=4), st.sampled_from([80, 100, 120, 160, 200]))
def test_the_final_table_fits(measured: list[MeasurementRow], width: int) -> None:
    ends = StepEnds(3, "s", Verdict.VALID, (), tuple(measured))
    lines = steps_table(RunEnds("/f", (ends,), 0, "words"), width)
    assert len(lines) == 2 + len(measured) and max(map(len, lines)) <= width


@given(st.integers(0, 8), st.lists(st.text("abc", min_size=1, max_size=12), min_size=1, max_size=30))
def test_a_long_line_is_cut_between_words(indent: int, words: list[str]) -> None:
    line = " " * indent + " ".join(words)
    pieces = wrapped(line, 40)
    assert " ".join(" ".join(pieces).split()) == " ".join(words) and max(map(len, pieces)) <= 40
    assert all(piece.startswith(" " * indent) for piece in pieces)
