"""Percentiles of histograms, against exact ones and against fio's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivypy.master.logs.readers.bucket_layouts import FIO_3, IVYPY, Layout
from ivypy.master.logs.result.accuracy_check import nearest_rank
from ivypy.master.logs.result.interval_statistics import ExactMoments, Interpolation, statistics_of
from ivypy.protocol.histogram import bucket_of

WANTED = np.array([0.0, 1.0, 50.0, 90.0, 99.0, 99.9, 100.0])


def cells_of(values: list[int], layout: Layout = FIO_3) -> np.ndarray:
    cells = np.zeros((1, layout.buckets))
    for value in values:
        cells[0, min(bucket_of(value), layout.buckets - 1)] += 1
    return cells


@given(st.lists(st.integers(0, 10**10), min_size=1, max_size=300), st.sampled_from(list(Interpolation)))
@settings(deadline=None)
def test_within_the_bucket_of_the_exact_percentile(values: list[int], how: Interpolation) -> None:
    found = statistics_of(cells_of(values), FIO_3, WANTED, how)
    array = np.array(values)
    assert found.count[0] == len(values)
    for column, percentile in enumerate(WANTED):
        exact = nearest_rank(array, percentile)
        assert abs(found.values[0, column] - exact) <= found.widths[0, column]
        assert found.widths[0, column] <= max(exact / 64, 1)
    assert found.low[0] <= array.min() and found.high[0] > array.max() - 1
    assert np.all(np.diff(found.values[0]) >= 0), "ascending, as the percentiles are"
    assert found.mean[0] == pytest.approx(array.mean(), rel=1 / 127, abs=1)


@given(st.lists(st.integers(1, 10**9), min_size=2, max_size=100), st.floats(0.1, 50))
@settings(deadline=None)
def test_weights_need_not_be_whole(values: list[int], factor: float) -> None:
    """Only the shares matter."""
    one = statistics_of(cells_of(values), FIO_3, WANTED[1:-1], Interpolation.LINEAR)
    other = statistics_of(cells_of(values) * factor, FIO_3, WANTED[1:-1], Interpolation.LINEAR)
    assert other.values == pytest.approx(one.values, rel=1e-6)


def test_linear_inside_the_bucket() -> None:
    """The published tool's own test: 128 buckets of 100: p50 is the middle; the top's upper edge is p100."""
    layout = Layout(1000, 4)
    cells = np.zeros((1, layout.buckets))
    cells[0, :128] = 100
    found = statistics_of(cells, layout, np.array([0.0, 50.0, 100.0]), Interpolation.LINEAR)
    assert found.values[0].tolist() == [0, 64_000, 128_000]


def test_midpoint_is_what_fio_prints() -> None:
    """The smallest bucket whose cumulative count reaches p * n; its middle, or the value itself below 128."""
    found = statistics_of(cells_of([46] * 99 + [1000]), FIO_3, np.array([50.0, 99.0, 99.5]), Interpolation.MIDPOINT)
    assert found.values[0].tolist() == [46, 46, 1004]


def test_nothing_is_no_latency() -> None:
    found = statistics_of(np.zeros((2, FIO_3.buckets)), FIO_3, WANTED, Interpolation.LINEAR)
    assert found.count.tolist() == [0, 0] and np.isnan(found.values).all() and np.isnan(found.mean).all()
    one_of_two = np.concatenate([np.zeros((1, FIO_3.buckets)), cells_of([5, 6])])
    found = statistics_of(one_of_two, FIO_3, WANTED, Interpolation.LINEAR)
    assert np.isnan(found.values[0]).all() and not np.isnan(found.values[1]).any()


def test_fios_last_bucket_is_a_lower_bound() -> None:
    """fio counts everything above 17.18 s there: 20 s and 17.1 s look the same."""
    found = statistics_of(cells_of([1000] * 9 + [20 * 10**9]), FIO_3, np.array([50.0, 95.0]), Interpolation.LINEAR)
    assert found.at_least[0].tolist() == [False, True]
    assert found.values[0, 1] == 17_045_651_456
    ours = statistics_of(
        cells_of([20 * 10**9], IVYPY), Layout(1, 40, open_ended=False), np.array([50.0]), Interpolation.LINEAR
    )
    assert not ours.at_least.any(), "ivypy's own buckets go on to hours"


def test_known_extremes_bound_the_percentiles() -> None:
    """A bucket's width must not make p99.9 greater than the largest I/O that there was."""
    cells = cells_of([1_000_000] * 5)
    moments = ExactMoments(None, None, np.array([1_000_000.0]), np.array([1_000_000.0]))
    found = statistics_of(cells, FIO_3, WANTED, Interpolation.LINEAR, moments)
    assert set(found.values[0]) == {1_000_000.0}
    assert (found.low[0], found.high[0]) == (1_000_000, 1_000_000)


def test_moments_are_exact_where_samples_were() -> None:
    values = np.array([3, 1000, 70_000])
    moments = ExactMoments(
        np.array([values.sum()]), np.array([(values.astype(float) ** 2).sum()]), np.array([3.0]), np.array([7e4])
    )
    found = statistics_of(cells_of(values.tolist()), FIO_3, WANTED, Interpolation.LINEAR, moments)
    assert found.mean[0] == pytest.approx(values.mean())
    assert found.stdev[0] == pytest.approx(values.std(ddof=1))
