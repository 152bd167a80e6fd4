"""Windows of connectors' sums: ratios of sums, in memory that does not grow with the window."""

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ivypy.master.connectors.element_figures import FamilyFigures, FamilyLayout
from ivypy.master.output.connector_sums import NEWEST, ConnectorSums, SubintervalValue, values_since
from ivypy.protocol.connector import ElementMetric, ReadingKind, Unit
from tests.support.rollup import instance, rollups_by

COUNTER = ReadingKind.COUNTER
ROLLUPS = rollups_by([instance(0, f"h{number}") for number in range(500)], "host")  # after `all`, a row for each
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
    return FamilyLayout(("array", "port"), METRICS, rows, tuple(range(1, rows + 1)), np.arange(rows), np.arange(rows))


def figures(of: FamilyLayout, amounts: object, pers: object) -> FamilyFigures:
    shape = len(of.rows), len(METRICS)
    sums = [np.broadcast_to(np.asarray(one, float), shape).copy() for one in (amounts, pers)]
    return FamilyFigures(of, np.zeros(shape[0], int), np.ones(shape[0], bool), *sums, *sums)


def test_a_window_is_a_ratio_of_sums_also_where_the_divisor_stood_still(sums: ConnectorSums) -> None:
    one = layout(1)
    sums.add(0, 0, [figures(one, [0, 60], [1, 0])], ROLLUPS)
    sums.add(0, 1, [figures(one, [10, 40], [1, 10])], ROLLUPS)
    sums.add(0, 2, [figures(one, [99, 99], [1, 99])], ROLLUPS)
    ios, service = sums.window(0, 0, 2, {2})
    assert (ios.value, ios.least, ios.most, ios.subintervals) == (5, 0, 10, 2)
    assert (service.value, service.least, service.most, service.subintervals) == (10, 4, 4, 1)


def test_a_window_over_new_elements(sums: ConnectorSums) -> None:
    sums.add(0, 0, [figures(layout(1), 10, 1)], ROLLUPS)
    sums.add(0, 1, [figures(layout(2), 20, 1)], ROLLUPS)
    found = {(one.instance, one.metric): one for one in sums.window(0, 0, 1, ())}
    assert len(found) == 4
    old, new = found["h0", "array.port_ios_per_s"], found["h1", "array.port_ios_per_s"]
    assert (old.value, old.least, old.most, old.subintervals, old.elements) == (15, 10, 20, 2, 1)
    assert (new.value, new.least, new.most, new.subintervals, new.elements) == (20, 20, 20, 1, 1)


def test_a_long_window_takes_no_more_memory(sums: ConnectorSums) -> None:
    many, random = layout(500), np.random.default_rng(1)
    for k in range(200):  # 16 kB each
        sums.add(0, k, [figures(many, random.random((500, 2)), 1)], ROLLUPS)
    sums.window(0, 0, 9, ())
    tracemalloc.start()
    try:
        assert len(sums.window(0, 0, 199, ())) == 1000
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_values_of_a_rollup_instance_by_subinterval(sums: ConnectorSums, tmp_path: Path) -> None:
    path = tmp_path / "connectors.sqlite"
    sums.add(0, 0, [figures(layout(1), [10, 60], [1, 0])], ROLLUPS)
    sums.add(0, 1, [figures(layout(2), [[10, 40], [30, 90]], [2, 10])], ROLLUPS)
    sums.add(1, 7, [figures(layout(2), 99, 1)], ROLLUPS)

    def found(first: int, instance: str, kind: str = "host") -> list[tuple[int, str, float]]:
        values, _ = values_since(path, 0, first, (kind, instance), lambda connector, metric: connector == "array")
        return [(one.subinterval, one.metric, one.value) for one in values]

    ios, service = "array.port_ios_per_s", "array.port_service_ms"
    assert found(0, "h0") == [(0, ios, 10.0), (1, ios, 5.0), (1, service, 4.0)]
    assert found(1, "h1") == found(NEWEST, "h1") == [(1, ios, 15.0), (1, service, 9.0)]
    assert found(NEWEST, "h2") == found(2, "h0") == found(0, "h0", "port") == []
    only = values_since(path, 1, NEWEST, ("host", "h0"), lambda connector, metric: metric == ios)
    assert only == ([SubintervalValue(7, "array", "port", "ios_per_s", ios, "1/s", 99.0)], 8)
    assert values_since(path, 0, 0, ("host", "nobody"), lambda *_: True) == ([], 2), "what is read is not read again"


@pytest.mark.parametrize("content", [None, b"", b"SQLite format 3\0 and rubbish"], ids=["none", "empty", "damaged"])
def test_a_file_that_cannot_be_read_has_no_values(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "connectors.sqlite"
    if content is not None:
        path.write_bytes(content)
    assert values_since(path, 0, 3, ("all", "all"), lambda *_: True) == ([], 3)
