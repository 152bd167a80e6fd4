"""What changes mean, as statements about tables of comparisons."""

from collections.abc import Callable
from dataclasses import replace
from math import expm1, log1p

import numpy as np
import pytest

from ivypy.master.compare.outcomes import Basis, Compared, Outcome, RunFigure, exit_code, judge, outliers, untested
from ivypy.master.compare.render_data import row_data
from ivypy.master.exit_codes import ExitCode
from ivypy.master.results.finished_run import Key
from ivypy.master.rollup.metrics import METRICS
from ivypy.master.stats.comparison import LogRatio, between_runs

LATENCY, RATE = "overall_service_us_p99", "overall_iops"
LIMIT = 0.03


def compared(change: float | None, error: float = 0.001, metric: str = LATENCY) -> Compared:
    """Of a change and its standard error, as fractions; None: not compared."""
    found = None if change is None else LogRatio(log1p(change), error, 8.0)
    return Compared(Key("max", "all", "all"), METRICS[metric], 100.0, 100.0 * (1 + (change or 0.0)), found)


@pytest.mark.parametrize(
    ("metric", "change", "error", "outcome"),
    [
        (LATENCY, +0.10, 0.001, Outcome.WORSE),
        (LATENCY, -0.10, 0.001, Outcome.BETTER),
        (RATE, +0.10, 0.001, Outcome.BETTER),
        (RATE, -0.10, 0.001, Outcome.WORSE),
        (LATENCY, +0.001, 0.001, Outcome.EQUIVALENT),
        (LATENCY, +0.01, 0.001, Outcome.EQUIVALENT),  # a difference, and one that is too small to matter
        (LATENCY, +0.029, 0.005, Outcome.WORSE),  # that it is a difference is sure, that it does not matter is not
        (LATENCY, +0.01, 0.02, Outcome.UNCLEAR),
        (LATENCY, 0.0, 0.0, Outcome.EQUIVALENT),
    ],
)
def test_outcome_follows_from_the_direction_and_the_error(
    metric: str, change: float, error: float, outcome: Outcome
) -> None:
    (judged,) = judge([compared(change, error, metric)], LIMIT)
    assert judged.outcome is outcome


def test_a_difference_that_one_comparison_shows_is_not_shown_among_many() -> None:
    row = compared(0.006, 0.002)  # p is about 0.02
    alone, *_ = judge([row], 0.0)
    among, *others = judge([row, *[compared(0.0, 0.002)] * 9], 0.0)
    assert (alone.outcome, among.outcome) == (Outcome.WORSE, Outcome.UNCLEAR)
    assert alone.interval == among.interval  # which is of one comparison
    assert {one.outcome for one in others} == {Outcome.UNCLEAR}


def test_a_row_that_is_not_compared_does_not_count_among_the_comparisons() -> None:
    with_others = judge([compared(0.006, 0.002), *[compared(None)] * 9], 0.0)
    assert [one.outcome for one in with_others] == [Outcome.WORSE, *[Outcome.NOT_COMPARED] * 9]


@pytest.mark.parametrize(("metric", "worse"), [(LATENCY, +1), (RATE, -1)])
@pytest.mark.parametrize(
    ("changes", "basis", "code"),
    [
        ([(0.0, 0.001), (-0.1, 0.001)], Basis.RUNS, ExitCode.OK),
        ([(0.0, 0.001), (+0.1, 0.001)], Basis.RUNS, ExitCode.SLO_MISSED),
        ([(0.0, 0.001), (+0.02, 0.02)], Basis.RUNS, ExitCode.NOT_REACHED),
        ([(0.0, 0.001), (None, 0.0)], Basis.RUNS, ExitCode.NOT_REACHED),
        ([(None, 0.0), (+0.1, 0.001)], Basis.RUNS, ExitCode.SLO_MISSED),
        ([(+0.031, 0.001)], Basis.RUNS, ExitCode.NOT_REACHED),  # worse, and perhaps by less than the limit
        ([], Basis.RUNS, ExitCode.NOT_REACHED),
        ([(0.0, 0.001)], Basis.WITHIN, ExitCode.NOT_REACHED),
        ([(+0.5, 0.001)], Basis.WITHIN, ExitCode.NOT_REACHED),
        ([(None, 0.0)], Basis.NONE, ExitCode.NOT_REACHED),
    ],
)
def test_exit_code_is_of_what_is_shown(
    changes: list[tuple[float | None, float]], basis: Basis, code: ExitCode, metric: str, worse: int
) -> None:
    """`changes` for the worse; a rate is worse where it is lower."""
    rows = [compared(None if change is None else worse * change, error, metric) for change, error in changes]
    assert exit_code(judge(rows, LIMIT), basis) is code


T_95 = 2.306  # of Student's t with 8 degrees of freedom: 95 % are nearer to the middle
JUST_BELOW, JUST_ABOVE = T_95 * 0.999, T_95 * 1.001


@pytest.mark.parametrize(("errors", "is_shown"), [(JUST_BELOW, False), (JUST_ABOVE, True)])
@pytest.mark.parametrize(("metric", "worse"), [(LATENCY, +1), (RATE, -1)])
def test_a_regression_is_shown_where_the_95_percent_interval_is_beyond_the_limit(
    metric: str, worse: int, errors: float, is_shown: bool
) -> None:
    error = 0.01
    change = LogRatio(log1p(worse * LIMIT) + worse * errors * error, error, 8.0)
    (judged,) = judge([Compared(Key("max", "all", "all"), METRICS[metric], 100.0, 100.0, change)], LIMIT)
    assert judged.is_regression is is_shown
    assert judged.interval is not None
    assert judged.interval == pytest.approx([expm1(change.log_ratio + side * T_95 * error) for side in (-1, +1)], 1e-3)
    nearest = judged.interval[0] if worse > 0 else -judged.interval[1]
    assert (nearest > LIMIT) is is_shown


@pytest.mark.parametrize(("errors", "is_none"), [(JUST_BELOW, False), (JUST_ABOVE, True)])
@pytest.mark.parametrize(("metric", "worse"), [(LATENCY, +1), (RATE, -1)])
def test_no_regression_is_shown_where_the_95_percent_interval_is_within_the_limit(
    metric: str, worse: int, errors: float, is_none: bool
) -> None:
    error = 0.001
    change = LogRatio(log1p(worse * LIMIT) - worse * errors * error, error, 8.0)
    (judged,) = judge([Compared(Key("max", "all", "all"), METRICS[metric], 100.0, 100.0, change)], LIMIT)
    assert judged.is_no_regression is is_none
    assert (judged.outcome is Outcome.EQUIVALENT) is is_none


@pytest.mark.parametrize("metric", [LATENCY, RATE])
@pytest.mark.parametrize("side", [-1, +1])
def test_equivalent_is_within_both_limits(metric: str, side: int) -> None:
    """What is better by more than the limit is no more equivalent than what is worse by it."""
    (inside,) = judge([compared(side * 0.02, 0.001, metric)], LIMIT)
    (outside,) = judge([compared(side * 0.04, 0.001, metric)], LIMIT)
    assert inside.outcome is Outcome.EQUIVALENT and outside.outcome is not Outcome.EQUIVALENT


@pytest.mark.parametrize(("errors", "is_different"), [(JUST_BELOW, False), (JUST_ABOVE, True)])
def test_a_difference_is_shown_where_the_95_percent_interval_is_without_0(errors: float, is_different: bool) -> None:
    (judged,) = judge([compared(expm1(errors * 0.1), 0.1)], LIMIT)
    assert judged.outcome is (Outcome.WORSE if is_different else Outcome.UNCLEAR)


@pytest.mark.parametrize("metric", [LATENCY, RATE])
def test_with_a_limit_of_0_what_is_the_same_is_no_regression(metric: str) -> None:
    (judged,) = judge([compared(0.0, 0.0, metric)], 0.0)
    assert judged.is_no_regression and not judged.is_regression
    assert judged.outcome is Outcome.EQUIVALENT


def test_a_row_that_is_only_shown_has_its_interval_and_decides_nothing() -> None:
    row = compared(0.1)
    shown, lacking = untested(row), untested(compared(None))
    assert row.change is not None
    assert (shown.outcome, shown.p, shown.interval) == (Outcome.NOT_TESTED, None, row.change.interval(0.95))
    assert (lacking.outcome, lacking.interval) == (Outcome.NOT_COMPARED, None)
    assert not any(row.is_regression or row.is_no_regression for row in (shown, lacking))


NEAR = {f"A{n}": 100.0 + n for n in range(6)}  # with one above, the deviation is 2 of 103: far is beyond 15 %


@pytest.mark.parametrize(
    ("values", "least", "far"),
    [
        ({**NEAR, "A9": 140.0}, 0.03, ["A9"]),
        ({**NEAR, "A9": 72.0}, 0.03, ["A9"]),
        ({**NEAR, "A9": 140.0}, 0.4, []),
        ({**NEAR, "A5": 140.0}, 0.03, ["A5"]),
        ({**NEAR, "A9": 118.0}, 0.03, []),
        ({**NEAR, "A9": 121.0}, 0.03, ["A9"]),
        ({f"A{n}": 100.0 for n in range(6)} | {"A9": 102.0}, 0.03, []),
        ({f"A{n}": 100.0 for n in range(6)} | {"A9": 104.0}, 0.03, ["A9"]),
        ({"A1": 100.0, "A2": 100.0, "A3": 100.0, "A4": 100.0, "A5": 300.0}, 0.03, []),
    ],
)
def test_a_run_is_far_from_the_others_beyond_five_robust_deviations_and_the_limit(
    values: dict[str, float], least: float, far: list[str]
) -> None:
    """Of fewer than six runs none is."""
    assert outliers(values, least) == far


def test_of_the_few_runs_that_remain_no_change_is_said() -> None:
    """By no output: it would be read."""
    runs = (RunFigure("A1", 100.0), RunFigure("A2", 90.0, "invalid: eagain"), RunFigure("B1", 125.0))
    some = Compared(Key("max", "all", "all"), METRICS[RATE], 100.0, 125.0, runs=runs)
    assert some.relative is None and row_data(judge([some], 0.05)[0])["change"] is None
    assert replace(some, runs=(runs[0], runs[2])).relative == 0.25


@pytest.mark.parametrize(
    ("a", "b", "relative"),
    [(100.0, 125.0, 0.25), (100.0, 0.0, -1.0), (0.0, 100.0, None), (None, 1.0, None), (1.0, None, None)],
)
def test_relative_is_of_side_a(a: float | None, b: float | None, relative: float | None) -> None:
    assert Compared(Key("max", "all", "all"), METRICS[RATE], a, b).relative == relative


@pytest.mark.parametrize(
    ("a", "b", "basis"),
    [(1, 1, Basis.WITHIN), (3, 3, Basis.RUNS), (3, 7, Basis.RUNS), (2, 2, Basis.NONE), (1, 3, Basis.NONE)],
)
def test_basis_is_the_runs_where_each_side_has_three(a: int, b: int, basis: Basis) -> None:
    assert Basis.of(a, b) is basis


Noise = Callable[[np.random.Generator, int], np.ndarray[tuple[int], np.dtype[np.float64]]]
NOISES: dict[str, Noise] = {
    "normal": lambda random, n: random.standard_normal(n),
    "heavy tails": lambda random, n: random.standard_t(3, n),
    "skewed": lambda random, n: random.exponential(1.0, n),
    "two kinds of runs": lambda random, n: 2.0 * (random.random(n) < 0.3) + 0.2 * random.standard_normal(n),
}


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("runs", [3, 5])
@pytest.mark.parametrize("spread", [0.001, 0.005, 0.015])
def test_a_regression_beyond_the_limit_is_hardly_ever_called_none(noise: str, runs: int, spread: float) -> None:
    """One of three figures is worse by just more than the limit; the others are the same."""
    random = np.random.default_rng(1)
    pairs, equivalent, passed = 500, 0, 0
    for _ in range(pairs):
        rows = []
        for factor in (1 + LIMIT + 0.0001, 1.0, 1.0):
            a, b = (100 * np.exp(spread * NOISES[noise](random, runs)) for _ in "AB")
            change = between_runs(a.tolist(), (factor * b).tolist())
            rows.append(Compared(Key("max", "all", "all"), METRICS[LATENCY], 100.0, 100.0 * factor, change))
        judged = judge(rows, LIMIT)
        equivalent += judged[0].outcome is Outcome.EQUIVALENT
        passed += exit_code(judged, Basis.RUNS) is ExitCode.OK
    assert equivalent / pairs <= 0.039 and passed / pairs <= 0.039, "2.5 %, and twice what chance does to it"
