"""Student's t and half-widths against scipy, and against processes whose truth is known."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from ivypy.master.rollup.statistics import (
    autocorrelation_time,
    effective_samples,
    half_width,
    ratio_half_width,
    t_density,
    t_quantile,
    t_tail,
)


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
    assert t_quantile(0.5, df) == 0.0


@given(st.floats(1e-3, 50), st.floats(0.5, 1e5))
def test_tail_and_density_are_scipys(t: float, df: float) -> None:
    assert t_tail(t, df) == pytest.approx(stats.t.sf(t, df), rel=1e-8, abs=1e-300)
    assert t_density(t, df) == pytest.approx(stats.t.pdf(t, df), rel=1e-8, abs=1e-300)


@pytest.mark.parametrize(("probability", "df"), [(0.0, 5), (1.0, 5), (0.9, 0.0), (0.9, -1.0), (float("nan"), 5)])
def test_no_such_quantile(probability: float, df: float) -> None:
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
        found = autocorrelation_time(ar1(random, 4000, 40, correlation)).mean()
        true = (1 + correlation) / (1 - correlation)
        assert 0.95 * true < found < 1.15 * true, "rather too much than too little"


def test_alternating_samples_are_not_worth_more_than_their_number() -> None:
    assert effective_samples(np.array([[1.0], [-1.0]] * 10)) == [20.0]


def test_a_constant_has_no_half_width() -> None:
    assert half_width(np.full((10, 2), 7.0)).tolist() == [0.0, 0.0]


def test_independent_samples_have_students_half_width() -> None:
    samples = np.array([10.0, 11, 9, 12, 8, 11, 9.5, 10.5, 9.7, 10.3])[:, None]
    assert autocorrelation_time(samples) == [1.0]
    low, high = stats.t.interval(0.95, 9, loc=0, scale=stats.sem(samples[:, 0]))
    assert half_width(samples) == pytest.approx([(high - low) / 2], rel=1e-9)


@pytest.mark.parametrize("n", [0, 1, 4])
def test_too_few_samples_state_nothing(n: int) -> None:
    assert np.isnan(half_width(np.arange(3.0 * n).reshape(n, 3))).all()
    assert np.isnan(ratio_half_width(np.ones((n, 3)), np.ones((n, 3)))).all()


def test_two_levels_are_one_sample() -> None:
    """Fifty of one value, then fifty of another, are not a hundred samples."""
    samples = np.repeat([1.0, 2.0], 50)[:, None]
    assert effective_samples(samples) < 6


@pytest.mark.parametrize(("correlation", "least"), [(0.0, 0.93), (0.5, 0.90), (0.8, 0.84)])
def test_half_widths_cover_the_truth(correlation: float, least: float) -> None:
    samples = ar1(np.random.default_rng(7), 60, 1000, correlation)
    covered = np.abs(samples.mean(axis=0)) <= half_width(samples)
    assert covered.mean() >= least


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
