"""The percentile, against sorted values and against itself with other types of counts."""

from math import isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.stats.percentiles import (
    EDGES_NS,
    FEWEST_BEYOND,
    MIDDLES_NS,
    fewest_ios,
    interpolated,
    percentile,
    percentile_buckets,
    percentiles,
    ranks,
)
from ivypy.protocol.histogram import BUCKETS, bucket_of, lower_edge, lower_edges

LATENCY = st.one_of(st.integers(0, 200), st.integers(10**3, 10**6), st.integers(10**7, 2**47))
FRACTION = st.one_of(
    st.sampled_from([0.5, 0.9, 0.95, 0.99, 0.999, 0.9999]), st.integers(1, 9999).map(lambda n: n / 1e4)
)


def histogram(values: list[int]) -> np.ndarray:
    return np.bincount([bucket_of(value) for value in values], minlength=BUCKETS).astype(np.uint64)


@given(st.lists(LATENCY, min_size=1, max_size=500), FRACTION)
def test_a_percentile_lies_in_the_bucket_of_the_io_of_its_rank(values: list[int], fraction: float) -> None:
    found = percentile(histogram(values), 0, min(values), max(values), fraction)
    rank = int(ranks(np.array([len(values)]), fraction)[0])
    if len(values) - rank < FEWEST_BEYOND:
        assert np.isnan(found)
        return
    exact = sorted(values)[rank - 1]
    assert exact == np.quantile(values, round(fraction, 4), method="inverted_cdf") or rank == 1
    assert min(values) <= found <= max(values)
    bucket = bucket_of(exact)
    assert lower_edge(bucket) <= found < lower_edge(bucket + 1) or found == max(values) > lower_edge(BUCKETS - 1)


@given(st.lists(st.integers(0, 10**15), min_size=1, max_size=20), st.integers(1, 9999))
def test_ranks_are_exact_at_any_count(counts: list[int], ten_thousandths: int) -> None:
    expected = [-(-n * ten_thousandths // 10_000) for n in counts]
    assert ranks(np.array(counts), ten_thousandths / 10_000).tolist() == expected


def test_a_rank_is_exact_where_a_float_is_not() -> None:
    assert 0.07 * 100 > 7
    assert ranks(np.array([100, 2**62]), 0.07).tolist() == [7, -(-(2**62) * 7 // 100)]


@pytest.mark.parametrize(
    ("fraction", "fewest"), [(0.5, 20), (0.9, 100), (0.95, 200), (0.99, 1000), (0.999, 10_000), (0.9999, 100_000)]
)
@pytest.mark.parametrize("kind", [np.uint32, np.uint64, np.float64])
def test_a_percentile_needs_ten_ios_beyond_it(fraction: float, fewest: int, kind: type) -> None:
    assert fewest_ios(fraction) == fewest
    for n, is_known in ((fewest - 1, False), (fewest, True)):
        found = percentile(np.array([n], kind), 500, 0, 10**9, fraction)
        assert isnan(found) is not is_known
        assert not is_known or found == MIDDLES_NS[500]


@given(st.lists(st.lists(LATENCY, max_size=60), min_size=1, max_size=6), st.lists(FRACTION, min_size=1, max_size=5))
def test_whole_weights_are_counts(rows: list[list[int]], fractions: list[float]) -> None:
    counts = np.array([histogram(row) for row in rows])
    least, most = np.zeros(len(rows)), np.full(len(rows), 2.0**47)
    as_counts, as_weights = (percentiles(kind, 0, least, most, fractions) for kind in (counts, counts.astype(float)))
    assert np.array_equal(as_counts, as_weights, equal_nan=True)


@given(st.lists(LATENCY, min_size=1, max_size=60), FRACTION)
def test_halves_of_weights_have_the_buckets_of_the_whole(values: list[int], fraction: float) -> None:
    halved = histogram(values)[None] / 2
    running = np.cumsum(histogram(values)) / len(values)
    found = int(percentile_buckets(halved, [fraction])[0][0, 0])
    assert running[found] >= fraction - 1e-9
    assert found == 0 or running[found - 1] < fraction


@pytest.mark.parametrize("bucket", [0, 100, 128, 200, 1000])
def test_the_middle_of_a_bucket_is_that_of_the_whole_nanoseconds_in_it(bucket: int) -> None:
    first, last = lower_edge(bucket), lower_edge(bucket + 1) - 1
    assert bucket_of(first) == bucket_of(last) == bucket
    assert MIDDLES_NS[bucket] == (first + last) / 2


def test_a_percentile_may_lie_in_the_last_bucket() -> None:
    assert percentile(np.array([40]), BUCKETS - 1, 0, 2.0**64, 0.5) == MIDDLES_NS[-1]


@pytest.mark.parametrize("kind", [np.uint32, np.float64])
def test_the_percentile_of_nothing_is_the_first_io(kind: type) -> None:
    assert percentile_buckets(np.array([[0, 0, 5]], kind), [0.0])[0].tolist() == [[2]]


@pytest.mark.parametrize(
    ("weights", "fraction", "bucket"),
    [
        ([3.5, 46.5], 0.07, 0),  # though 0.07 * 50 is above 3.5
        ([3.5 - 2**-20, 46.5 + 2**-20], 0.07, 1),
        ([0.0, 0.5], 0.0, 1),
    ],
)
def test_a_rounding_does_not_move_a_weighted_rank_into_the_next_bucket(
    weights: list[float], fraction: float, bucket: int
) -> None:
    assert 0.07 * 50 > 3.5
    assert percentile_buckets(np.array([weights]), [fraction])[0][0, 0] == bucket


@pytest.mark.parametrize(("weights", "is_known"), [([99.5, 0.5], True), ([99.5, 0.49], False)])
def test_a_weighted_percentile_needs_ten_ios_beyond_it_but_for_a_rounding(weights: list[float], is_known: bool) -> None:
    assert (1 - 0.9) * 100 < 10
    assert isnan(percentile(np.array(weights), 500, 0, 10**9, 0.9)) is not is_known


def test_percentiles_of_rows_do_not_mix() -> None:
    """One row's last bucket and the next one's first stand side by side in memory."""
    counts = np.zeros((3, BUCKETS), np.uint64)
    counts[0, BUCKETS - 1], counts[2, 0] = 40, 40
    least, most = np.array([2**45, 2**64 - 1, 0], np.uint64), np.array([2**46, 0, 0], np.uint64)
    found = percentiles(counts, 0, least, most, [0.5])
    assert found[0, 0] == 2**45
    assert np.isnan(found[0, 1])
    assert found[0, 2] == 0


@pytest.mark.parametrize("kind", [np.uint64, np.float64])
def test_of_no_buckets_there_is_no_percentile(kind: type) -> None:
    assert np.isnan(percentiles(np.zeros((2, 0), kind), 0, np.zeros(2), np.zeros(2), [0.5, 0.9])).all()
    assert np.isnan(percentiles(np.zeros((2, 5), kind), 0, np.zeros(2), np.zeros(2), [0.5, 0.9])).all()
    assert percentiles(np.zeros((0, 5), kind), 0, np.zeros(0), np.zeros(0), [0.5]).shape == (1, 0)


@given(
    st.lists(st.integers(0, 50), min_size=3, max_size=30).filter(lambda counts: sum(counts) > 0), st.floats(0.01, 0.99)
)
def test_an_interpolated_percentile_lies_in_its_bucket(counts: list[int], fraction: float) -> None:
    edges = np.array(lower_edges()[200 : 200 + len(counts) + 2], dtype=np.float64)
    cumulative = np.cumsum(np.array([*counts, 0], dtype=np.float64))[None, :]
    got = float(interpolated(cumulative, fraction, edges)[0])
    bucket = int(np.searchsorted(cumulative[0], cumulative[0, -1] * fraction))
    assert edges[bucket] - 1e-9 <= got <= edges[bucket + 1] + 1e-9
    assert (EDGES_NS[200 : 200 + len(edges)] == edges).all()


@pytest.mark.parametrize(
    ("cumulative", "wanted", "at"),
    [
        ([2, 5, 5, 9, 9], 1, 15.0),
        ([2, 5, 5, 9, 9], 2, 20.0),
        ([2, 5, 5, 9, 9], 3.5, 30.0),
        ([2, 5, 5, 9, 9], 5, 40.0),  # not where the next I/O is
        ([2, 5, 5, 9, 9], 7, 70.0),
        ([0, 0.5, 0.5, 0.5, 0.5], 0.1, 24.0),
        ([2, 5, 5, 9, 9], 9, 90.0),
        ([0, 0, 4, 4, 4], 0, 15.0),  # of no I/O: the middle
        ([2, 2, 2, 4, 9], 8, 90.0),  # in the last bucket, of which only the lower edge is known
    ],
)
def test_an_interpolated_percentile_divides_its_bucket_by_proportion(
    cumulative: list[float], wanted: float, at: float
) -> None:
    edges = np.array([10.0, 20.0, 40.0, 50.0, 90.0, 100.0])
    found = interpolated(np.array([cumulative], np.float64), wanted / cumulative[-1], edges)
    assert found.tolist() == pytest.approx([at])
