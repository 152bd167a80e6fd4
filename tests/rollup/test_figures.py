"""Figures against raw samples: percentiles, moments, rates; and where they are blank."""

import statistics
from math import nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivypy.master.rollup.arrays import FLUSHES, Merged
from ivypy.master.rollup.figures import CATEGORIES, FLUSH, PERCENTILES, RELEASES, TRANSFERS, Figures
from ivypy.master.rollup.metrics import METRICS, column
from ivypy.master.stats.percentiles import FEWEST_BEYOND
from ivypy.protocol.counters import KINDS, LATENESS, RESPONSES, SERVICES, Count, Kind
from ivypy.protocol.histogram import bucket_of, lower_edge
from tests.support.rollup import instance, merged, merger_of, rollups_by
from tests.support.rollup_results import HostData

ROLLUPS = rollups_by([instance(0, "h1"), instance(0, "h2")], "host")


def figures_of(h1: dict[int, list[int]], h2: dict[int, list[int]] | None = None, response: bool = True) -> Figures:
    """Of two hosts with one instance each: series -> latencies; rows all, h1, h2."""
    data = {
        host: HostData(1, 1, {(0, series): ns for series, ns in one.items()})
        for host, one in (("h1", h1), ("h2", h2))
        if one is not None
    }
    found: Merged = merged(merger_of(ROLLUPS), data).merged
    return Figures(found, np.full(3, response))


def value(figures: Figures, name: str, row: int = 0) -> float:
    return float(column(figures, name)[row])


# Percentiles.

LATENCY = st.one_of(st.integers(0, 200), st.integers(10**3, 10**6), st.integers(10**7, 10**10))


@settings(max_examples=50)
@given(st.lists(LATENCY, max_size=3000), st.lists(LATENCY, min_size=20, max_size=300))
def test_a_percentile_is_in_the_bucket_of_the_sample_of_that_rank(one: list[int], other: list[int]) -> None:
    figures = figures_of({SERVICES[0]: one}, {SERVICES[0]: other})
    for row, samples in enumerate((one + other, one, other)):
        ordered = sorted(samples)
        for name, share in PERCENTILES.items():
            found = value(figures, f"overall_service_us_{name}", row) * 1e3
            rank = -(-len(ordered) * round(share * 10_000) // 10_000)
            if len(ordered) - rank < FEWEST_BEYOND:
                assert np.isnan(found)
                continue
            exact = ordered[rank - 1]
            assert exact == np.quantile(ordered, share, method="inverted_cdf")
            bucket = bucket_of(exact)
            assert (
                max(lower_edge(bucket), ordered[0]) - 1e-6
                <= found
                <= min(lower_edge(bucket + 1) - 1, ordered[-1]) + 1e-6
            )
            assert abs(found - exact) <= exact / 128 + 1e-6


def test_small_latencies_are_exact() -> None:
    assert value(figures_of({SERVICES[0]: [100] * 30}), "overall_service_us_p50") == 0.1


def test_percentiles_beyond_the_buckets_are_clamped_to_the_maximum() -> None:
    figures = figures_of({SERVICES[0]: [2**47] * 30})
    assert value(figures, "overall_service_us_max") == 2**47 / 1e3
    assert value(figures, "overall_service_us_p50") == 2**47 / 1e3


# Moments.


@settings(max_examples=50)
@given(st.lists(LATENCY, min_size=2, max_size=50))
def test_mean_and_deviation_are_exact(ns: list[int]) -> None:
    figures = figures_of({SERVICES[0]: ns})
    assert value(figures, "overall_service_us_mean") == pytest.approx(statistics.fmean(ns) / 1e3, rel=1e-12)
    assert value(figures, "overall_service_us_sd") == pytest.approx(statistics.stdev(ns) / 1e3, rel=1e-9)


def test_a_small_deviation_of_long_times_is_not_lost() -> None:
    """Floats would cancel: the variance is 1e-18 of the mean's square."""
    figures = figures_of({SERVICES[0]: [10**12, 10**12 + 1000] * 10})
    assert value(figures, "overall_service_us_sd") == pytest.approx(statistics.stdev([0, 1] * 10), rel=1e-9)


def test_one_sample_has_no_deviation() -> None:
    figures = figures_of({SERVICES[0]: [1000]})
    assert np.isnan(value(figures, "overall_service_us_sd"))
    assert value(figures, "overall_service_us_mean") == 1


# Categories.


def test_a_flush_has_no_response_time_whatever_else_is_as_many() -> None:
    figures = figures_of({SERVICES[FLUSHES]: [1000], LATENESS: [7]})
    assert figures.service(FLUSH).count[0] == 1 and not figures.has_response(FLUSH).any()
    with pytest.raises(IndexError):
        figures.response(FLUSH)


@settings(max_examples=50)
@given(st.lists(st.lists(LATENCY, max_size=40), min_size=KINDS, max_size=KINDS), st.lists(LATENCY, max_size=40))
def test_a_category_is_the_sum_of_its_kinds(kinds: list[list[int]], flushes: list[int]) -> None:
    figures = figures_of({**dict(zip(SERVICES, kinds, strict=False)), SERVICES[FLUSHES]: flushes})
    assert value(figures, "flush_service_count") == len(flushes)
    assert value(figures, "flush_iops") == pytest.approx(len(flushes) / 5)
    for category, members in CATEGORIES.items():
        if category == FLUSH:
            continue
        samples = [ns for kind in members for ns in kinds[kind]]
        assert value(figures, f"{category}_service_count") == len(samples)
        assert value(figures, f"{category}_iops") == pytest.approx(len(samples) / 5)
        transferred = [ns for kind in members for ns in kinds[kind] if kind in TRANSFERS or category in RELEASES]
        assert value(figures, f"{category}_mib_per_s") == pytest.approx(len(transferred) * 4096 / 5 / 2**20)
        if samples:
            assert value(figures, f"{category}_service_us_min") == min(samples) / 1e3
            assert value(figures, f"{category}_service_us_max") == max(samples) / 1e3
            assert value(figures, f"{category}_service_us_mean") == pytest.approx(sum(samples) / len(samples) / 1e3)
            if category in RELEASES:
                continue
            assert value(figures, f"{category}_blocksize_kib_mean") == pytest.approx(
                4 if transferred else nan, nan_ok=True
            )
            mean_s = sum(samples) / len(samples) / 1e9
            assert value(figures, f"{category}_queue_depth_mean") == pytest.approx(len(samples) / 5 * mean_s)


def test_a_category_without_io_counts_nothing_and_has_no_times() -> None:
    figures = figures_of({SERVICES[Kind.RANDOM_READ]: [1000] * 50})
    blank = [name for name in METRICS if name.startswith("write_") and np.isnan(value(figures, name))]
    zero = [name for name in METRICS if name.startswith("write_") and value(figures, name) == 0]
    assert zero == ["write_iops", "write_mib_per_s", "write_service_count", "write_response_count"]
    assert len(blank) + len(zero) == sum(name.startswith("write_") for name in METRICS)


# Response times.

PACED = {SERVICES[0]: [1000] * 30, RESPONSES[0]: [3000] * 30}


def test_response_times_of_paced_io_are_shown() -> None:
    figures = figures_of(PACED)
    assert value(figures, "overall_response_us_mean") == 3
    assert value(figures, "overall_response_us_p50") == pytest.approx(3, rel=1 / 128)
    assert value(figures, "read_response_count") == 30


@pytest.mark.parametrize(
    ("figures", "why"),
    [
        (figures_of(PACED, response=False), "a row that may not show them"),
        (figures_of({SERVICES[0]: [1000] * 30}), "not recorded"),
        (figures_of({SERVICES[0]: [1000] * 31, RESPONSES[0]: [3000] * 30}), "for some: an edit to or from max"),
        (figures_of(PACED, {SERVICES[0]: [1000]}), "one of two hosts was not paced"),
    ],
)
def test_response_times_are_blank(figures: Figures, why: str) -> None:
    assert all(np.isnan(value(figures, name)) for name in METRICS if name.startswith("overall_response")), why


def test_rows_are_blanked_each_by_itself() -> None:
    figures = figures_of(PACED, {SERVICES[0]: [1000]})
    assert column(figures, "overall_response_us_max")[1] == 3
    assert np.isnan(column(figures, "overall_response_us_max")[2])


def test_a_row_without_hosts_is_blank_altogether() -> None:
    figures = figures_of(PACED)
    assert all(np.isnan(value(figures, name, row=2)) for name in METRICS)
    assert value(figures, "overall_iops") == value(figures, "overall_iops", row=1) == 6


def test_lateness_is_of_all_paced_io() -> None:
    figures = figures_of({LATENESS: [500] * 40})
    assert value(figures, "generator_lateness_count") == 40
    assert value(figures, "generator_lateness_us_mean") == 0.5
    assert np.isnan(value(figures_of({}), "generator_lateness_us_mean"))


# Counters.


def test_counters_are_columns() -> None:
    counts = {(0, column): 10 + column for column in Count}
    merger = merger_of(ROLLUPS)
    found = merged(merger, {"h1": HostData(1, 1, {}, counts), "h2": HostData(1, 1, {}, counts)}).merged
    figures = Figures(found, np.ones(3, bool))
    assert value(figures, "due") == 22
    assert value(figures, "outstanding") == 2 * (18 + 19)
    assert value(figures, "errors") == 30
    assert value(figures, "oldest_in_flight_ms") == 20e-6  # the oldest of both, not their sum
    assert value(figures, "oldest_outstanding_ms") == 21e-6


def test_every_metric_has_a_name_a_meaning_and_a_value_per_row() -> None:
    figures = figures_of(PACED)
    for name, metric in METRICS.items():
        assert metric.name == name and metric.meaning and metric.unit
        assert column(figures, name).shape == (3,), name


def test_figures_shown_of_other_rows_are_those_computed_already() -> None:
    every = figures_of(PACED)
    none = every.shown(np.zeros(3, bool))
    for category in CATEGORIES:
        assert none.service(category) is every.service(category)
        assert category == FLUSH or none.response(category) is every.response(category)
    assert np.isnan(value(none, "overall_response_us_mean")) and value(every, "overall_response_us_mean") > 0
    assert value(none, "overall_service_us_mean") == value(every, "overall_service_us_mean")


def test_an_unknown_metric_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        column(figures_of(PACED), "overall_latency")
