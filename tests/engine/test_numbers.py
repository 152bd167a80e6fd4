"""The engine's arithmetic against its Python twins, and against sums made by hand."""

import random
from collections import Counter
from enum import IntEnum
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ivypy.master.stats.percentiles import MIDDLES_NS, percentile_buckets
from ivypy.protocol import counters, histogram
from ivypy.protocol.parameters import OF_ENGINE
from ivypy.slave.engine import _engine
from tests.support.engine import CORE, ENGINE, run

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def test_every_bucket_edge_is_the_same_in_c() -> None:
    for bucket in range(histogram.BUCKETS):
        edge = histogram.lower_edge(bucket)
        for ns in (edge - 1, edge, edge + 1):
            if ns >= 0:
                assert _engine.bucket_of(ns) == histogram.bucket_of(ns), ns


@given(st.integers(0, 2**64 - 1))
def test_any_latency_is_in_the_same_bucket_in_c(ns: int) -> None:
    assert _engine.bucket_of(ns) == histogram.bucket_of(ns)


def positions(prefix: str, table: type[IntEnum]) -> dict[str, int]:
    return {f"{prefix}.{column.name.lower()}": int(column) for column in table}


def test_columns_and_parameters_are_those_of_the_protocol() -> None:
    assert _engine.layout() == {
        "buckets": histogram.BUCKETS,
        "series": counters.SERIES,
        "service": counters.SERVICES[0],
        "response": counters.RESPONSES[0],
        "lateness": counters.LATENESS,
        "delayed": counters.DELAYED,
        "undelayed": counters.UNDELAYED,
        "late": counters.LATE,
        "punctual": counters.PUNCTUAL,
        "flush": counters.FLUSH,
        "moments": len(counters.Moment),
        "counts": len(counters.Count),
        "thread_counts": len(counters.ThreadCount),
        "section_counts": len(counters.SectionCount),
        **{f"kind.{kind.name.lower()}": counters.SERVICES[kind] for kind in counters.Kind},
        **positions("moment", counters.Moment),
        **positions("count", counters.Count),
        **positions("thread_count", counters.ThreadCount),
        **positions("section_count", counters.SectionCount),
        **{f"parameter.{name}": place for place, name in enumerate(OF_ENGINE)},
    }


def moments_by_hand(values: list[int]) -> list[int]:
    squares = sum(value * value for value in values)
    low, high = squares & (2**64 - 1), squares >> 64
    return [
        len(values),
        4096 * len(values),
        sum(values),
        low,
        high,
        min(values, default=2**64 - 1),
        max(values, default=0),
    ]


@pytest.mark.parametrize(
    "values",
    [
        [],
        [0],
        [1, 2, 3],
        [127, 128, 129, 2**45 - 1, 2**45, 2**46],
        [10**9] * 40,  # squares beyond 64 bits: 18 I/Os of 1 s
        [random.Random(7).randrange(1, 10**8) for _ in range(5000)],
    ],
)
def test_moments_are_exact_and_merge_exactly(values: list[int]) -> None:
    lines = run("series", stdin=" ".join(map(str, values))).splitlines()
    assert list(map(int, lines[0].split())) == moments_by_hand(values)
    buckets = {int(b): int(n) for b, n in (line.split() for line in lines[2:])}
    assert buckets == Counter(map(histogram.bucket_of, values))


@settings(max_examples=20, deadline=None)  # a process each
@given(st.lists(st.integers(0, 2**44), max_size=50))
def test_moments_of_any_values(values: list[int]) -> None:
    assert list(map(int, run("series", stdin=" ".join(map(str, values))).splitlines()[0].split())) == moments_by_hand(
        values
    )


@settings(max_examples=40, deadline=None)  # a process each
@given(st.lists(st.one_of(st.integers(0, 300), st.integers(10**6, 2**46)), min_size=1, max_size=60), st.integers(1, 9))
@example([10**6], 100)
@example([128, 129], 50)
def test_percentiles_are_those_of_the_controller(values: list[int], times: int) -> None:
    """In whole nanoseconds, and however few the values are."""
    values = values * times
    found = list(map(int, run("series", stdin=" ".join(map(str, values))).splitlines()[1].split()))
    counts = np.bincount([histogram.bucket_of(value) for value in values], minlength=histogram.BUCKETS)
    buckets, _ = percentile_buckets(counts[None], (0.0001, 0.5, 0.99, 0.9999))
    middles = np.floor(MIDDLES_NS[buckets[:, 0]])
    assert found == np.clip(middles, min(values), max(values)).astype(int).tolist()


def test_only_the_binding_knows_python() -> None:
    assert {path.parent.name for path in ENGINE.rglob("*.[ch]") if "Python.h" in path.read_text()} == {"binding"}
    assert not [path for path in CORE if "binding" in path.read_text()]
