"""Student's t and half-widths against scipy, and against processes whose truth is known."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from ivypy.master.rollup.arrays import Buckets
from ivypy.master.stats.block_bootstrap import stated_half_width
from ivypy.master.stats.confidence import (
    FEWEST_STATED,
    autocorrelation_time,
    autocorrelation_times,
    effective_samples,
    half_width,
    ratio_half_width,
    t_density,
    t_quantile,
    t_tail,
)
from ivypy.master.stats.percentiles import percentile
from ivypy.protocol.histogram import lower_edges


@example(9415831.87890625, 0.95)
@given(
    st.floats(0.5, 1e7),
    st.sampled_from([0.55, 0.6, 0.75, 0.9, 0.95, 0.975, 0.99, 0.995, 0.9995, 0.99999]),
)
def test_t_quantile_is_scipys(df: float, probability: float) -> None:
    assert t_quantile(probability, df) == pytest.approx(stats.t.ppf(probability, df), rel=1e-9)


@pytest.mark.parametrize("df", [1, 2, 3, 4, 5, 9, 19, 29, 100, 511])
def test_t_quantile_of_whole_degrees(df: int) -> None:
    assert t_quantile(0.975, df) == pytest.approx(stats.t.ppf(0.975, df), rel=1e-10)
    assert t_quantile(0.025, df) == -t_quantile(0.975, df)
    assert t_quantile(0.375, df) == -t_quantile(0.625, df)
    assert t_quantile(0.5, df) == 0.0


@given(st.floats(1e-3, 50), st.floats(0.5, 1e5))
def test_tail_and_density_are_scipys(t: float, df: float) -> None:
    assert t_tail(t, df) == pytest.approx(stats.t.sf(t, df), rel=1e-8, abs=1e-300)
    assert t_density(t, df) == pytest.approx(stats.t.pdf(t, df), rel=1e-8, abs=1e-300)


@pytest.mark.parametrize(("probability", "df"), [(0.0, 5), (1.0, 5), (0.9, 0.0), (0.9, -1.0), (float("nan"), 5)])
def test_invalid_quantiles_are_refused(probability: float, df: float) -> None:
    with pytest.raises(ValueError, match="no t quantile"):
        t_quantile(probability, df)


def ar1(random: np.random.Generator, n: int, columns: int, correlation: float) -> np.ndarray:
    """Unit variance, mean 0, lag-1 correlation as given; columns are independent."""
    noise = random.standard_normal((n, columns))
    values = np.empty((n, columns))
    values[0] = noise[0]
    for i in range(1, n):
        values[i] = correlation * values[i - 1] + np.sqrt(1 - correlation**2) * noise[i]
    return values


def test_the_autocorrelation_time_of_ar1_is_known() -> None:
    random = np.random.default_rng(1)
    for correlation in (0.0, 0.5, 0.8):
        found = autocorrelation_times(ar1(random, 4000, 40, correlation)).mean()
        true = (1 + correlation) / (1 - correlation)
        assert 0.95 * true < found < 1.15 * true, "rather too much than too little"


def test_alternating_samples_are_not_worth_more_than_their_number() -> None:
    assert effective_samples(np.array([[1.0], [-1.0]] * 10)) == [20.0]


def test_a_constant_has_no_half_width() -> None:
    assert half_width(np.full((10, 2), 7.0)).tolist() == [0.0, 0.0]


def test_independent_samples_have_students_half_width() -> None:
    samples = np.array([10.0, 11, 9, 12, 8, 11, 9.5, 10.5, 9.7, 10.3])[:, None]
    assert autocorrelation_times(samples) == [1.0]
    low, high = stats.t.interval(0.95, 9, loc=0, scale=stats.sem(samples[:, 0]))
    assert half_width(samples) == pytest.approx([(high - low) / 2], rel=1e-9)


@pytest.mark.parametrize("n", [0, 1, 4])
def test_too_few_samples_state_nothing(n: int) -> None:
    assert np.isnan(half_width(np.arange(3.0 * n).reshape(n, 3))).all()
    assert np.isnan(ratio_half_width(np.ones((n, 3)), np.ones((n, 3)))).all()


def test_two_levels_count_as_few_effective_samples() -> None:
    """Fifty of one value, then fifty of another, are not a hundred samples."""
    samples = np.repeat([1.0, 2.0], 50)[:, None]
    assert effective_samples(samples) < 6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "correlation", "least", "stated"),
    [
        # the fewest that are stated, a step of 24, the default step of 60
        (FEWEST_STATED, 0.0, 0.95, 0.98), (FEWEST_STATED, 0.3, 0.93, 0.95), (FEWEST_STATED, 0.5, 0.92, 0.85),
        (FEWEST_STATED, 0.8, 0.81, 0.4),
        (24, 0.0, 0.95, 0.99), (24, 0.3, 0.93, 0.98), (24, 0.5, 0.93, 0.92), (24, 0.8, 0.83, 0.5),
        (60, 0.0, 0.95, 1.0), (60, 0.3, 0.94, 1.0), (60, 0.5, 0.94, 0.99), (60, 0.8, 0.93, 0.9),
    ],
)  # fmt: skip
def test_half_widths_cover_the_truth(n: int, correlation: float, least: float, stated: float) -> None:
    """Of those that are stated; of strongly correlated samples fewer are."""
    samples = ar1(np.random.default_rng(7), n, 4000, correlation)
    widths = half_width(samples, fewest=FEWEST_STATED)
    known = ~np.isnan(widths)
    assert known.mean() >= stated
    assert (np.abs(samples.mean(axis=0)) <= widths)[known].mean() >= least


def test_what_is_stated_of_fewer_samples_would_be_too_small() -> None:
    """Which is why nothing is: of 12, nine in ten intervals hold the truth, and three in four."""
    for correlation, most in ((0.5, 0.91), (0.8, 0.76)):
        samples = ar1(np.random.default_rng(7), 12, 4000, correlation)
        widths = half_width(samples)
        known = ~np.isnan(widths)
        assert (np.abs(samples.mean(axis=0)) <= widths)[known].mean() < most
    assert np.isnan(half_width(np.arange(19.0)[:, None], fewest=FEWEST_STATED)).all()


def test_the_ratios_half_width_covers_the_ratio() -> None:
    """Counts vary by 30 % and long I/Os come in the busy subintervals; the truth is E[sum] / E[count]."""
    random = np.random.default_rng(3)
    counts = random.uniform(700, 1300, (30, 1500))
    sums = counts * (100 + 0.02 * (counts - 1000)) + random.normal(0, 2000, counts.shape)
    truth = (1000 * 100 + 0.02 * 300**2 / 3) / 1000
    covered = np.abs(sums.sum(axis=0) / counts.sum(axis=0) - truth) <= ratio_half_width(sums, counts)
    assert 0.93 <= covered.mean() <= 0.98


def test_a_ratio_of_nothing_has_none() -> None:
    assert np.isnan(ratio_half_width(np.zeros((9, 1)), np.zeros((9, 1)))).all()


def exponential(random: np.random.Generator, scales: np.ndarray) -> Buckets:
    """Histograms of subintervals with 500 I/Os each."""
    edges = np.array(lower_edges())
    places = [
        edges[:-1].searchsorted(random.exponential(1e6 * scale, 500).astype(int), "right") - 1 for scale in scales
    ]
    low, high = min(place.min() for place in places), max(place.max() for place in places) + 1
    return Buckets(int(low), np.stack([np.bincount(place - low, minlength=high - low) for place in places]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "correlation", "least"),
    [
        (24, 0.8, 0.80),
        (60, 0.0, 0.93),
        (60, 0.8, 0.84),
        *(pytest.param(*case, marks=pytest.mark.long) for case in [(24, 0.0, 0.93), (24, 0.5, 0.90), (60, 0.5, 0.92)]),
    ],
)
def test_half_widths_of_percentiles_cover_the_truth(n: int, correlation: float, least: float) -> None:
    """Exponential latencies whose scale wanders by 10 %: the mixture's p99 is known from a long simulation."""
    random = np.random.default_rng(1)
    truth = np.quantile(random.exponential(1e6 * np.exp(0.1 * random.standard_normal(400_000))), 0.99)
    wander = np.exp(0.1 * ar1(random, n, 150, correlation))
    hits = []
    for scales in wander.T:
        found = exponential(random, scales)
        counts = found.counts.astype(np.float64)
        printed = percentile(counts.sum(axis=0), found.low, 0, 2.0**45, 0.99)
        width = stated_half_width(counts, found.low, 0, 2.0**45, 0.99)
        if not np.isnan(width):
            hits.append(abs(printed - truth) <= width)
    assert len(hits) > 130 and np.mean(hits) >= least


def test_a_percentile_of_few_has_no_half_width() -> None:
    assert np.isnan(stated_half_width(np.ones((30, 20)), 100, 0, 1e9, 0.99))


def time_by_hand(values: list[float]) -> float:
    """Sokal's window of five times the sum, and Kendall's correction, by the sums of their definitions."""
    n, mean = len(values), sum(values) / len(values)
    centred = [value - mean for value in values]
    variance = sum(one * one for one in centred)
    lags = [sum(centred[i] * centred[i + k] for i in range(n - k)) / variance for k in range(n // 2 + 1)]
    first = min(max((n * lags[1] + 1) / (n - 4), 0.0), 1 - 2 / n)
    of_ar1 = (1 + first) / (1 - first)
    summed = 1.0
    for lag, correlation in enumerate(lags[1:], 1):
        summed += 2 * (correlation + of_ar1 / n)
        if lag >= 5 * summed:
            break
    return max(summed, of_ar1, 1.0)


@pytest.mark.parametrize("n", [8, 9, 30, 200])
@pytest.mark.parametrize("rho", [-0.5, 0.0, 0.6, 0.95])
def test_the_autocorrelation_time_is_the_sum_within_sokals_window(n: int, rho: float) -> None:
    random = np.random.default_rng(n)
    columns = np.zeros((n, 5))
    for k in range(1, n):
        columns[k] = rho * columns[k - 1] + random.standard_normal(5)
    found = autocorrelation_times(columns)
    assert found.tolist() == pytest.approx([time_by_hand(column) for column in columns.T.tolist()], rel=1e-9)
    assert autocorrelation_time(columns[:, 3]) == pytest.approx(found[3])
    assert effective_samples(columns).tolist() == pytest.approx((n / found).tolist())


def test_of_fewer_than_eight_samples_no_correlation_is_known() -> None:
    assert autocorrelation_times(np.arange(7.0)[:, None]).tolist() == [1.0]
    assert autocorrelation_times(np.arange(8.0)[:, None])[0] > 2.0
    assert np.isnan(half_width(np.arange(7.0)[:, None])).all()
    assert not np.isnan(half_width(np.array([0.0, 1.0, -1.0, 2.0, -2.0, 1.0, 0.0, -1.0])[:, None])).any()
    assert autocorrelation_times(np.full((20, 1), 7.0)).tolist() == [1.0]
