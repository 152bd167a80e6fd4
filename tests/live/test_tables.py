"""The console's columns at each width, the table of rollup instances, and the table at the end."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ivypy.master.control.observation import Phase
from ivypy.master.live.instances_table import SPARKS, Order, instances_lines, sparkline, worst_first
from ivypy.master.live.line_view import TextLines
from ivypy.master.live.reports import (
    EventLine,
    InstanceRow,
    Instances,
    MeasuredSoFar,
    Report,
    RunBegins,
    RunEnds,
    RunStatus,
    StepBegins,
    Subinterval,
    WorstInstance,
)
from ivypy.master.live.subinterval_lines import (
    LAYOUTS,
    last_lines,
    so_far_lines,
    subinterval_lines,
)
from ivypy.master.summary.headline import (
    DIRECTIONS,
    HALF_WIDTH,
    IOPS,
    MEASUREMENT_METRICS,
    SUBINTERVAL_METRICS,
    of_direction,
)
from ivypy.master.summary.measured import MeasurementRow, StepEnds
from ivypy.master.summary.steps_table import steps_table
from ivypy.master.text.wrapping import shortened, wrapped
from ivypy.master.verdicts import Finding, Reason, Verdict

FIGURES = st.none() | st.floats(0.1, 9e9)
DIRECTED = [of_direction(one, direction) for one in SUBINTERVAL_METRICS for direction in DIRECTIONS]
NAMES = {*SUBINTERVAL_METRICS, *MEASUREMENT_METRICS, *DIRECTED}
HEADLINES = st.fixed_dictionaries({}, optional=dict.fromkeys(sorted(NAMES), st.floats(0.1, 9e9)))
ROWS = st.builds(InstanceRow, st.text("abc", min_size=1, max_size=40), HEADLINES)


def closed(figures: dict[str, float], hosts_in: int = 3, errors: int = 0) -> Subinterval:
    utc = "2026-01-01T00:00:05.000Z"
    of_host = {"errors": errors, "cpu_busy_percent": 99.6, "busiest_core_percent": 100.0}
    directions = {"read_iops": 7.0, "write_iops": 3.0}
    return Subinterval(
        utc, "one", Phase.TRANSIENT, 999_999, 12e6, {**figures, **directions, **of_host}, hosts_in, 3,
        ("what control says",), 5.0, 9.0,
    )  # fmt: skip


ALL_VERDICTS = Verdict.PARTIAL, Verdict.VALID, Verdict.VALID, Verdict.VALID


def so_far(figures: dict[str, float]) -> MeasuredSoFar:
    return MeasuredSoFar("one", MeasurementRow("one", *ALL_VERDICTS, (), "", figures))


def test_below_the_last_subinterval_is_what_was_measured_so_far_and_the_worst_instance() -> None:
    now = {IOPS: 1100.0, "overall_service_us_p99": 900.0, "read_service_us_p99": 800.0}
    measured = {IOPS: 1000.0, "overall_service_us_p99": 1200.0, HALF_WIDTH: 5.0}
    worst = WorstInstance("host=lab03", "overall_service_us_p99", 12_300.0, 1200.0, 8)
    lines = last_lines(replace(closed(now), worst=worst), so_far(measured), 80)
    assert [" ".join(line.split()) for line in lines[2:]] == [
        "00:00:05 transient 999999 1.10 k - | - 900 us - | -",
        "read 7 - | - 800 us - | -",
        "write 3 - | - - - | -",
        "so far 1.00 k - | - 1.20 ms - | -",
        "what control says",
        "worst: host=lab03, service p99 12.3 ms (median of 8: 1.20 ms)",
    ]


@pytest.mark.parametrize(
    ("name", "verdicts", "said"),
    [
        ("one", (Verdict.PARTIAL,) * 4, []),
        ("one:total_iops=500", (Verdict.VALID,) * 4, ["so far is of total_iops=500"]),
        (
            "one",
            (Verdict.INVALID, Verdict.VALID, Verdict.INVALID, Verdict.PARTIAL),
            ["so far: do not use its service times"],
        ),
        ("one", (Verdict.INVALID,) * 4, ["so far: do not use its IOPS, service times, response times"]),
    ],
)
def test_what_was_measured_so_far_says_of_which_level_it_is_and_what_not_to_use(
    name: str, verdicts: tuple[Verdict, Verdict, Verdict, Verdict], said: list[str]
) -> None:
    measured = MeasuredSoFar("one", MeasurementRow(name, *verdicts, (), "", {IOPS: 1.0}))
    assert [line.strip() for line in so_far_lines(measured, 80)[1:]] == said


@pytest.mark.parametrize("width", LAYOUTS)
@given(figures=HEADLINES, measured=HEADLINES)
def test_every_line_fits_and_figures_stay_below_their_titles(
    width: int, figures: dict[str, float], measured: dict[str, float]
) -> None:
    lines = last_lines(closed(figures), so_far(measured), width)
    assert max(map(len, lines)) <= width
    bars = [[place for place, letter in enumerate(line) if letter == "|"] for line in lines[:6]]
    assert all(one == bars[1][: len(one)] for one in bars)


@pytest.mark.parametrize("width", LAYOUTS)
def test_errors_and_missing_hosts_are_seen_at_every_width(width: int) -> None:
    text = "\n".join(subinterval_lines(closed({}, hosts_in=2, errors=7), width))
    assert "2 of 3 hosts" in text or "2/3" in text
    assert "7 errors" in text or text.splitlines()[0].endswith(" 7")


@given(st.lists(ROWS, max_size=8), st.sampled_from([Order.P99, Order.MAX, Order.IOPS]))
def test_the_worst_is_first_and_who_did_nothing_before_it(rows: list[InstanceRow], order: Order) -> None:
    rows = [row if row.figures.get(IOPS) else replace(row, figures={}) for row in rows]
    ranked = worst_first(rows, order)
    idle = [row for row in rows if not row.figures]
    assert [row for row in ranked[: len(idle)] if row.figures and order.figure(row) is not None] == []
    known = [figure for figure in map(order.figure, ranked) if figure is not None]
    assert known == sorted(known, reverse=order is not Order.IOPS)


@given(st.lists(ROWS, max_size=8))
def test_an_order_by_the_maximum_is_that_of_the_column(rows: list[InstanceRow]) -> None:
    column = [row.figures.get("overall_service_us_max") for row in worst_first(rows, Order.MAX)]
    found = [figure for figure in column if figure is not None]
    assert found == sorted(found, reverse=True)


def test_who_has_too_few_samples_for_a_percentile_is_sorted_by_its_maximum() -> None:
    few = [InstanceRow(f"h{n}", {IOPS: 200.0, "overall_service_us_max": 100.0 * n}) for n in (1, 3, 2)]
    idle = InstanceRow("idle", {IOPS: 0.0})
    assert [one.name for one in worst_first([*few, idle], Order.P99)] == ["idle", "h3", "h2", "h1"]


@given(st.lists(ROWS, min_size=1, max_size=8), st.integers(60, 200), st.sampled_from(Order), st.integers(1, 10))
def test_the_table_fits_its_screen(rows: list[InstanceRow], width: int, order: Order, most: int) -> None:
    history = {row.name: [order.figure(row)] * 300 for row in rows}
    lines = instances_lines(Instances("path", "one", 3, tuple(rows)), width, order, history, most)
    assert len(lines) == 1 + min(most, len(rows)) and max(map(len, lines)) <= width


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
BAD = Verdict.INVALID
MEASURED = st.builds(
    MeasurementRow, st.text("ab=", min_size=1, max_size=60), VERDICTS, VERDICTS, VERDICTS, VERDICTS, st.just(()),
    st.just(""), HEADLINES,
)  # fmt: skip


@given(st.lists(MEASURED, min_size=1, max_size=4), st.integers(60, 200))
@example([MeasurementRow("a", BAD, BAD, BAD, BAD, (), "", {IOPS: 1e6, HALF_WIDTH: 1e10})], 80)
def test_the_final_table_fits(measured: list[MeasurementRow], width: int) -> None:
    ends = StepEnds(3, "s", Verdict.VALID, (), tuple(measured))
    lines = steps_table((ends,), width)
    assert len(lines) == 2 + len(measured) and max(map(len, lines)) <= width


WORDS = st.lists(st.text("abc.,[]%", min_size=1, max_size=24), max_size=20).map(" ".join)
FINDINGS = st.lists(
    st.builds(
        lambda reason, words: Finding(reason, words, reason.severities[0] if len(reason.severities) > 1 else None),
        st.sampled_from(Reason), WORDS,
    ), max_size=4,
).map(tuple)  # fmt: skip
EXPLAINED = st.builds(
    lambda one, found, cause: replace(one, name="half", findings=found, cause=cause), MEASURED, FINDINGS, WORDS
)
ENDED = st.builds(
    lambda name, measured: StepEnds(3, name, Verdict.PARTIAL, (), tuple(measured)),
    WORDS,
    st.lists(EXPLAINED, min_size=1, max_size=2),
)
CLOSED = st.builds(
    lambda figures, said, paused: replace(
        closed(figures, errors=9, hosts_in=2), messages=(said,), news=(said,), paused=paused
    ),
    HEADLINES, WORDS, st.booleans(),
)  # fmt: skip
STEPS = st.builds(
    StepBegins, st.integers(0, 9999), WORDS, st.integers(1, 9999), st.floats(0, 1e6), st.floats(0, 1e6),
    st.floats(0.05, 3600),
)  # fmt: skip
INSTANCES = st.builds(lambda rows: Instances("path", "one", 3, tuple(rows)), st.lists(ROWS, min_size=1, max_size=4))
STATUSES = st.builds(
    lambda plan, step, last, ended, lost, instances: RunStatus(
        "runs/a", plan, 7, step, True, last.paused, replace(last, step=step.name), (ended,), {"h": lost}, instances,
        MeasuredSoFar(step.name, ended.measured[-1]),
    ),
    WORDS, STEPS, CLOSED, ENDED, WORDS, st.one_of(st.none(), INSTANCES),
)  # fmt: skip
REPORTS = st.one_of(
    st.builds(RunBegins, WORDS, WORDS, st.integers(1, 1000)),
    STEPS,
    CLOSED,
    INSTANCES,
    ENDED,
    st.builds(EventLine, st.just("2026-01-01T00:00:05.000Z"), st.sampled_from(["", "lab01"]), WORDS),
    st.builds(lambda ended, words: RunEnds("runs/a", (ended,), 0, words), ENDED, WORDS),
    STATUSES,
)


@given(REPORTS, st.integers(60, 200), st.booleans())
def test_no_line_is_longer_than_the_terminal(report: Report, columns: int, in_detail: bool) -> None:
    lines = TextLines(lambda line: None, lambda: columns, in_detail=in_detail).lines(report)
    assert max(map(len, lines)) <= columns


@given(st.one_of(STEPS, ENDED, STATUSES))
def test_a_log_has_sentences_whole(report: Report) -> None:
    """`ivypy status | grep`: as many lines as there are things to say."""
    on_a_terminal = TextLines(lambda line: None, lambda: 120).lines(report)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("COLUMNS", "120")  # which tables of a log follow
        in_a_log = TextLines(lambda line: None, lambda: None).lines(report)
    assert len(in_a_log) <= len(on_a_terminal)
    assert " ".join(" ".join(in_a_log).split()) == " ".join(" ".join(on_a_terminal).split())


@pytest.mark.parametrize("figure", ["1.3 %", "46.4 k", "20.5 ms", "64.0 MiB", "3 s"])
@given(width=st.integers(20, 60), before=WORDS)
def test_a_figure_is_not_parted_from_its_unit(figure: str, width: int, before: str) -> None:
    pieces = wrapped(f"{before} {figure} of them".lstrip(), width)
    assert any(figure in piece for piece in pieces)


@given(st.integers(60, 200), WORDS)
def test_a_command_to_copy_is_never_cut(width: int, words: str) -> None:
    line = f"  ivypy quick {words}"
    assert wrapped(line, width) == [line]


@given(st.integers(0, 8), st.lists(st.text("abc", min_size=1, max_size=12), min_size=1, max_size=30))
def test_a_long_line_is_cut_between_words(indent: int, words: list[str]) -> None:
    line = " " * indent + " ".join(words)
    pieces = wrapped(line, 40)
    assert " ".join(" ".join(pieces).split()) == " ".join(words) and max(map(len, pieces)) <= 40
    assert all(piece.startswith(" " * indent) for piece in pieces)
