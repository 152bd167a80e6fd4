"""Estimates and trends: each against scipy where scipy has it, else against what is known exactly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import signal, stats

from ivypy.master.stats.confidence import autocorrelation_time, autocorrelations
from ivypy.master.stats.estimate import Correction, estimate, influences
from ivypy.master.stats.metric_sample import MetricSample
from ivypy.master.stats.percentiles import EDGES_NS, percentile
from ivypy.master.stats.trend import line, mann_kendall, trend_probabilities
from ivypy.protocol.histogram import BUCKETS

FLOATS = NDArray[np.float64]


def noise(seed: int, n: int, rho: float = 0.0) -> FLOATS:
    """AR(1) noise of variance 1."""
    shocks = np.random.default_rng(seed).standard_normal(n)
    shocks[1:] *= np.sqrt(1 - rho**2)
    return np.asarray(signal.lfilter([1.0], [1.0, -rho], shocks), dtype=np.float64)


def rates(values: FLOATS) -> list[MetricSample]:
    return [MetricSample(amount=float(value) * 5.0, per=5.0) for value in values]


def histogram(latencies_ns: FLOATS) -> NDArray[np.uint64]:
    buckets = np.minimum(np.searchsorted(EDGES_NS, latencies_ns.astype(np.int64), side="right"), BUCKETS) - 1
    return np.bincount(buckets, minlength=BUCKETS).astype(np.uint64)


finite = st.floats(-1e6, 1e6, allow_nan=False).map(lambda x: round(x, 3))
series = st.lists(finite, min_size=3, max_size=40).map(lambda values: np.array(values))


@given(series.filter(lambda values: np.ptp(values) > 0))  # scipy has no error for a constant
def test_slope_equals_scipy(values: FLOATS) -> None:
    times = np.cumsum(np.linspace(1.0, 2.0, len(values)))
    ours, theirs = line(times, values), stats.linregress(times, values)
    assert ours.slope == pytest.approx(theirs.slope, rel=1e-8, abs=1e-6)
    assert ours.error == pytest.approx(theirs.stderr, rel=1e-3, abs=2e-2)


@given(series)
def test_mann_kendall_equals_kendalls_tau(values: FLOATS) -> None:
    """S is tau-b's numerator; scipy gives it by way of tau-b, whose denominator is known."""
    ((rises,), _) = mann_kendall(values[:, None])
    n = len(values)
    _, ties = np.unique(values, return_counts=True)
    pairs, tied = n * (n - 1) / 2, float((ties * (ties - 1) / 2).sum())
    tau = stats.kendalltau(np.arange(n), values, variant="b").statistic
    expected = 0.0 if tied == pairs else tau * np.sqrt(pairs * (pairs - tied))
    assert rises == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("ties", [False, True])
def test_mann_kendall_probability_equals_scipys_normal_approximation(ties: bool) -> None:
    values = noise(1, 50)
    if ties:
        values = np.round(values)
    ((rises,), (variance,)) = mann_kendall(values[:, None])
    expected = stats.kendalltau(np.arange(50), values, method="asymptotic").pvalue
    assert 2 * stats.norm.sf(abs(rises) / np.sqrt(variance)) == pytest.approx(expected, rel=1e-9)


def test_autocorrelation_equals_scipys() -> None:
    values = noise(2, 200, 0.6)
    residuals = values - values.mean()
    expected = signal.correlate(residuals, residuals)[199:] / (residuals @ residuals)
    assert autocorrelations(residuals[:, None])[:, 0] == pytest.approx(expected[:101], abs=1e-12)


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.5, 0.8, 0.9])
def test_autocorrelation_time_of_ar1_is_known(rho: float) -> None:
    """(1 + rho) / (1 - rho); over ten long series, never far from it."""
    times = [autocorrelation_time(noise(seed, 5000, rho)) for seed in range(10)]
    assert np.mean(times) == pytest.approx((1 + rho) / (1 - rho), rel=0.15)


def test_alternating_and_constant_series_count_as_independent() -> None:
    assert autocorrelation_time(np.array([1.0, -1.0] * 20)) == 1.0
    assert autocorrelation_time(np.full(20, 7.0)) == 1.0


def test_interval_of_independent_values_equals_scipys() -> None:
    values = 100 + noise(3, 12)
    got = estimate(rates(values), None, 0.973, Correction.FACTOR_TWO)
    assert got is not None
    low, high = stats.t.interval(0.973, 11, loc=values.mean(), scale=stats.sem(values))
    assert got.value == pytest.approx((low + high) / 2)
    assert got.half_width / 2 == pytest.approx((high - low) / 2)


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8])
def test_interval_covers_the_truth_as_often_as_it_says(rho: float) -> None:
    hits = [
        abs(got.value - 100) <= got.half_width
        for seed in range(400)
        if (got := estimate(rates(100 + noise(seed, 300, rho)))) is not None
    ]
    assert 0.92 <= np.mean(hits) <= 0.99


def test_a_ratio_is_of_sums_not_a_mean_of_ratios() -> None:
    samples = [MetricSample(100.0, 10.0), MetricSample(1.0, 1.0)]
    got = estimate(samples)
    assert got is not None and got.value == pytest.approx(101 / 11)
    found = influences(samples)
    assert found is not None and found[1].sum() == pytest.approx(0.0)


def test_nothing_measured_has_no_estimate() -> None:
    assert estimate([MetricSample(0.0, 0.0)] * 5) is None
    assert estimate([MetricSample(0.0, 0.0, np.zeros(BUCKETS, dtype=np.uint64))] * 5, 0.99) is None


def trend_probability(values: FLOATS) -> float:
    return float(trend_probabilities(values[:, None], 1.0)[0])


@pytest.mark.slow
def test_no_change_is_no_trend_and_noise_rarely_is() -> None:
    assert trend_probability(np.full(30, 3.0)) == 1.0
    for rho, most in ((0.0, 0.02), (0.5, 0.04), (0.8, 0.06)):
        found = [trend_probability(noise(seed, 120, rho)) < 0.01 for seed in range(400)]
        assert np.mean(found) <= most


@pytest.mark.parametrize("n", [25, 60, 300])
def test_a_plain_trend_is_found(n: int) -> None:
    """A rise of four standard deviations over the series."""
    found = [trend_probability(noise(seed, n) + np.linspace(0, 4, n)) < 0.01 for seed in range(50)]
    assert np.mean(found) > 0.85


@pytest.mark.long
def test_bootstrap_of_independent_subintervals_agrees_with_scipys() -> None:
    """scipy draws the same I/Os one by one; subintervals of independent I/Os are no worse or better than that."""
    random = np.random.default_rng(5)
    parts = [random.exponential(1e6, 400) for _ in range(40)]
    counts = np.array([histogram(part) for part in parts], dtype=np.float64)
    samples = [MetricSample(0.0, 0.0, row.astype(np.uint64)) for row in counts]
    got = estimate(samples, 0.9)
    assert got is not None
    everything = np.concatenate(parts)
    theirs = stats.bootstrap(
        (everything,),
        lambda x, axis: np.quantile(x, 0.9, axis=axis),
        n_resamples=300,
        batch=50,
        rng=np.random.default_rng(6),
    )
    assert got.value * 1e3 == pytest.approx(np.quantile(everything, 0.9), rel=1 / 64)
    assert got.half_width * 1e3 == pytest.approx(1.96 * theirs.standard_error, rel=0.6)


@pytest.mark.slow
def test_bootstrapped_percentile_covers_the_truth() -> None:
    """Exponential latencies whose scale wanders (AR(1), 0.5): the mixture's p99 is known from a long simulation."""

    def parts(seed: int, n: int) -> list[NDArray[np.uint64]]:
        random = np.random.default_rng(seed)
        scales = 1e6 * np.exp(0.1 * noise(seed, n, 0.5))
        return [histogram(random.exponential(scale, 500)) for scale in scales]

    truth = percentile(np.array(parts(9999, 1500)).sum(axis=0), 0, 0, 2**63, 0.99) / 1e3
    hits = []
    for seed in range(60):
        got = estimate([MetricSample(0.0, 0.0, row) for row in parts(seed, 60)], 0.99)
        assert got is not None
        hits.append(abs(got.value - truth) <= got.half_width)
    assert np.mean(hits) >= 0.9
