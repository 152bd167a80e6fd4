"""What changes mean, as statements about tables of comparisons."""

from collections.abc import Callable
from math import log1p

import numpy as np
import pytest

from ivypy.master.compare.outcomes import Basis, Compared, Outcome, exit_code, judge
from ivypy.master.exit_codes import ExitCode
from ivypy.master.results.finished_run import Key
from ivypy.master.rollup.metrics import METRICS
from ivypy.master.stats.comparison import Change, between_runs

LATENCY, RATE = "overall_service_us_p99", "overall_iops"
LIMIT = 0.03


def compared(change: float | None, error: float = 0.001, metric: str = LATENCY) -> Compared:
    """Of a change and its standard error, as fractions; None: not compared."""
    found = None if change is None else Change(log1p(change), error, 8.0)
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
def test_exit_code_is_of_what_is_shown(changes: list[tuple[float | None, float]], basis: Basis, code: ExitCode) -> None:
    assert exit_code(judge([compared(*change) for change in changes], LIMIT), basis) is code


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
    pairs, equivalent, passed = 1000, 0, 0
    for _ in range(pairs):
        rows = []
        for factor in (1 + LIMIT + 0.0001, 1.0, 1.0):
            a, b = (100 * np.exp(spread * NOISES[noise](random, runs)) for _ in "AB")
            change = between_runs(a.tolist(), (factor * b).tolist())
            rows.append(Compared(Key("max", "all", "all"), METRICS[LATENCY], 100.0, 100.0 * factor, change))
        judged = judge(rows, LIMIT)
        equivalent += judged[0].outcome is Outcome.EQUIVALENT
        passed += exit_code(judged, Basis.RUNS) is ExitCode.OK
    assert equivalent / pairs <= 0.035 and passed / pairs <= 0.035, "2.5 %, and twice what chance does to it"
