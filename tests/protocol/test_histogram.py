"""The bucket layout: it covers everything once, and its error is what it states."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.protocol.histogram import BUCKETS, LIMIT_NS, bucket_of, lower_edge, lower_edges


def test_buckets_lie_end_to_end_from_zero_to_the_limit() -> None:
    edges = lower_edges()
    assert edges[0] == 0 and edges[-1] == LIMIT_NS == 2**45 and len(edges) == BUCKETS + 1 == 2561
    assert all(a < b for a, b in itertools.pairwise(edges))


def test_every_edge_belongs_to_the_bucket_above_it() -> None:
    for bucket in range(BUCKETS):
        assert bucket_of(lower_edge(bucket)) == bucket
        assert bucket_of(lower_edge(bucket + 1) - 1) == bucket


@given(st.integers(0, LIMIT_NS - 1))
def test_the_middle_of_a_bucket_is_within_a_128th_of_every_value_in_it(ns: int) -> None:
    low, high = lower_edge(bucket_of(ns)), lower_edge(bucket_of(ns) + 1)
    assert low <= ns < high
    assert abs((low + high - 1) / 2 - ns) <= ns / 128


@pytest.mark.parametrize("ns, bucket", [(0, 0), (127, 127), (128, 128), (129, 128), (130, 129), (1_000_000, 954)])
def test_known_buckets(ns: int, bucket: int) -> None:
    """Same numbers as fio's plat_val_to_idx for values that fio holds."""
    assert bucket_of(ns) == bucket


@pytest.mark.parametrize("ns", [LIMIT_NS, LIMIT_NS + 1, 2**64])
def test_what_is_longer_is_counted_last(ns: int) -> None:
    assert bucket_of(ns) == BUCKETS - 1
