"""Windows of connectors' sums: ratios of sums, in memory that does not grow with the window."""

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ivypy.master.connectors.element_figures import FamilyFigures, FamilyLayout
from ivypy.master.output.connector_sums import ConnectorSums
from ivypy.protocol.connector import ElementMetric, ReadingKind, Unit

COUNTER = ReadingKind.COUNTER
METRICS = (
    ElementMetric("port", "ios_per_s", Unit.PER_S, COUNTER),
    ElementMetric("port", "service_ms", Unit.MS, COUNTER, per="ios_per_s"),
)


@pytest.fixture
def sums(tmp_path: Path) -> Iterator[ConnectorSums]:
    made = ConnectorSums(tmp_path / "connectors.sqlite")
    yield made
    made.close()


def layout(rows: int) -> FamilyLayout:
    return FamilyLayout(("array", "port"), METRICS, (), rows, tuple(range(rows)), np.arange(rows), np.arange(rows))


def figures(of: FamilyLayout, amounts: object, pers: object) -> FamilyFigures:
    shape = len(of.rows), len(METRICS)
    sums = [np.broadcast_to(np.asarray(one, float), shape).copy() for one in (amounts, pers)]
    return FamilyFigures(of, np.zeros(shape[0], int), np.ones(shape[0], bool), *sums, *sums)


def test_a_window_is_a_ratio_of_sums_also_where_the_divisor_stood_still(sums: ConnectorSums) -> None:
    one = layout(1)
    sums.add(0, 0, [figures(one, [0, 60], [1, 0])])
    sums.add(0, 1, [figures(one, [10, 40], [1, 10])])
    sums.add(0, 2, [figures(one, [99, 99], [1, 99])])
    ios, service = sums.window(0, 0, 2, {2})
    assert (ios.value, ios.least, ios.most, ios.subintervals) == (5, 0, 10, 2)
    assert (service.value, service.least, service.most, service.subintervals) == (10, 4, 4, 1)


def test_a_window_over_new_elements(sums: ConnectorSums) -> None:
    sums.add(0, 0, [figures(layout(1), 10, 1)])
    sums.add(0, 1, [figures(layout(2), 20, 1)])
    found = {(one.row, one.metric): one for one in sums.window(0, 0, 1, ())}
    assert len(found) == 4
    old, new = found[0, "array.port_ios_per_s"], found[1, "array.port_ios_per_s"]
    assert (old.value, old.least, old.most, old.subintervals, old.elements) == (15, 10, 20, 2, 1)
    assert (new.value, new.least, new.most, new.subintervals, new.elements) == (20, 20, 20, 1, 1)


def test_a_long_window_takes_no_more_memory(sums: ConnectorSums) -> None:
    many, random = layout(500), np.random.default_rng(1)
    for k in range(200):  # 16 kB each
        sums.add(0, k, [figures(many, random.random((500, 2)), 1)])
    sums.window(0, 0, 9, ())
    tracemalloc.start()
    try:
        assert len(sums.window(0, 0, 199, ())) == 1000
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
