"""Changes between two sides: each against scipy where scipy has it, false alarms and power against simulated runs."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from ivypy.master.stats.comparison import LogRatio, between_runs, comparable_estimate, holm, variance, within_runs
from ivypy.master.stats.metric_sample import MetricSample, interpolated_value
from tests.support.autocorrelated import SimulatedStep, Storage

positive = st.floats(0.5, 2.0).map(lambda x: round(x, 6))
sides = st.lists(positive, min_size=2, max_size=8).filter(lambda side: np.ptp(side) > 1e-3)
Figures = Callable[[SimulatedStep], tuple[list[MetricSample], float | None]]
FIGURES: dict[str, Figures] = {
    "iops": lambda step: (step.iops(), None),
    "mean": lambda step: (step.mean(), None),
    "p99": lambda step: (step.histogram(), 0.99),
}


@given(sides, sides)
def test_between_runs_equals_scipys_welch_test_of_the_logarithms(a: list[float], b: list[float]) -> None:
    ours, theirs = between_runs(a, b), stats.ttest_ind(np.log(b), np.log(a), equal_var=False)
    assert ours.freedom == pytest.approx(theirs.df, rel=1e-9)
    assert ours.p_different() == pytest.approx(theirs.pvalue, rel=1e-6, abs=1e-12)
    interval = theirs.confidence_interval(0.95)
    assert ours.interval(0.95) == pytest.approx((np.expm1(interval.low), np.expm1(interval.high)), rel=1e-6, abs=1e-9)
    bound = 0.1
    above = stats.ttest_ind(np.log(b) - bound, np.log(a), equal_var=False, alternative="greater")
    below = stats.ttest_ind(np.log(b) - bound, np.log(a), equal_var=False, alternative="less")
    assert ours.p_above(bound) == pytest.approx(above.pvalue, rel=1e-6, abs=1e-12)
    assert ours.p_below(bound) == pytest.approx(below.pvalue, rel=1e-6, abs=1e-12)


@given(sides, sides, st.floats(0.1, 1e6))
def test_change_is_reversed_with_the_sides_and_does_not_depend_on_the_unit(
    a: list[float], b: list[float], unit: float
) -> None:
    there, back = between_runs(a, b), between_runs(b, a)
    scaled = between_runs([unit * value for value in a], [unit * value for value in b])
    assert back.log_ratio == pytest.approx(-there.log_ratio)
    assert (back.error, back.freedom) == pytest.approx((there.error, there.freedom))
    assert (scaled.log_ratio, scaled.error) == pytest.approx((there.log_ratio, there.error), rel=1e-6, abs=1e-9)


@given(sides, sides, st.floats(0.01, 0.5))
def test_p_values_decide_as_the_interval_does(a: list[float], b: list[float], bound: float) -> None:
    change = between_runs(a, b)
    low, high = (float(np.log1p(end)) for end in change.interval(0.95))
    assume(min(abs(low), abs(high), abs(low - bound), abs(high - bound), abs(low + bound)) > 1e-9)
    assert (change.p_different() < 0.05) == (low > 0 or high < 0)
    assert (2 * change.p_above(bound) < 0.05) == (low > bound)
    assert (change.p_within(-bound, bound) < 0.05) == (-bound < low and high < bound)


@pytest.mark.parametrize(
    ("b", "p", "interval"), [([2.0] * 3, 1.0, (0.0, 0.0)), ([3.0] * 3, 0.0, (0.5, 0.5))], ids=["same", "other"]
)
def test_runs_without_any_spread_differ_or_not(b: list[float], p: float, interval: tuple[float, float]) -> None:
    change = between_runs([2.0] * 3, b)
    assert change.p_different() == p and change.interval() == pytest.approx(interval)


def test_runs_that_have_nothing_in_common_have_an_interval_all_the_same() -> None:
    low, high = between_runs([1e-300, 1.0, 1e300], [1e-300, 1.0, 1e300]).interval()
    assert low == pytest.approx(-1.0) and 1e300 < high < float("inf")


@given(
    st.floats(-20, 20), st.lists(st.floats(-1, 1), min_size=2, max_size=8), st.sampled_from([0.0, 1e-15, 1e-6, 10.0])
)
def test_variance_is_that_of_exact_fractions(value: float, noise: list[float], spread: float) -> None:
    values = [value + spread * one for one in noise]
    assert variance(values) == pytest.approx(statistics.variance(values), rel=1e-12, abs=1e-300)


def test_one_run_has_no_spread() -> None:
    with pytest.raises(ValueError, match="two runs or more"):
        between_runs([1.0], [1.0, 2.0])


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20))
def test_holm_rejects_as_its_definition_does(p_values: list[float]) -> None:
    """Step down from the smallest p, until one is not below alpha / (m - k)."""
    corrected = holm(p_values)
    for alpha in (0.01, 0.05, 0.3):
        rejected = set()
        for k, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
            if (len(p_values) - k) * p_values[place] > alpha:
                break
            rejected.add(place)
        assert {place for place, p in enumerate(corrected) if p <= alpha} == rejected


def change_of(name: str, a: Sequence[SimulatedStep], b: Sequence[SimulatedStep]) -> LogRatio:
    """As a comparison takes it: one run a side by its own noise, several by their spread."""
    samples = [[FIGURES[name](step) for step in side] for side in (a, b)]
    if len(a) == len(b) == 1:
        one, other = (comparable_estimate(*side[0]) for side in samples)
        assert one is not None and other is not None
        return within_runs(one, other)
    values = [[interpolated_value(*step) for step in side] for side in samples]
    before, after = ([value for value in side if value is not None] for side in values)
    return between_runs(before, after)


def detected(pairs: int, runs: int, a: Storage, b: Storage, seed: int = 1) -> float:
    """The share of pairs of sides between which some figure differs, corrected for their number."""
    random = np.random.default_rng(seed)
    found = 0
    for _ in range(pairs):
        first, second = ([storage.run(random) for _ in range(runs)] for storage in (a, b))
        found += min(holm([change_of(name, first, second).p_different() for name in FIGURES])) < 0.05
    return found / pairs


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("rho", [0.0, 0.8])
def test_one_run_a_side_of_the_same_has_few_false_alarms(rho: float) -> None:
    """Runs that differ by nothing but their own noise."""
    storage = Storage(rho=rho, between=0.0)
    assert detected(1000, 1, storage, storage) <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize(("subintervals", "own"), [(20, 0.04), (60, 0.0), (60, 0.04), (60, 0.1), (120, 0.04)])
def test_one_figure_alone_of_one_run_a_side_has_few_false_alarms(subintervals: int, own: float) -> None:
    """A rate that follows a level of autocorrelation 0.8, with noise of each subinterval's own, which hides it."""
    storage, random = Storage(rho=0.8, within=0.03, between=0.0, subintervals=subintervals), np.random.default_rng(1)

    def a_run() -> list[MetricSample]:
        noise = own * random.standard_normal(subintervals)
        return [MetricSample(float(rate), 1.0) for rate in 1000 * np.exp(noise - storage.levels(random))]

    found, pairs = 0, 700
    for _ in range(pairs):
        one, other = (comparable_estimate(a_run()) for _ in "AB")
        found += one is not None and other is not None and within_runs(one, other).p_different() < 0.05
    assert found / pairs <= 0.05


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("runs", [3, 5])
def test_runs_of_the_same_have_few_false_alarms(runs: int) -> None:
    storage = Storage(subintervals=20)
    assert detected(1000, runs, storage, storage) <= 0.05


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("rho", [0.0, 0.8])
def test_a_latency_of_3_percent_more_is_found_with_five_runs(rho: float) -> None:
    """Whose p99 and mean vary by about 1 % from run to run, most of it correlated noise if there is any."""
    before = Storage(rho=rho, within=0.02, between=0.005)
    after = replace(before, median_us=1.03 * before.median_us)
    assert detected(200, 5, before, after) >= 0.9
