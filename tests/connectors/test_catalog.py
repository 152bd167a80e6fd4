"""What a connector declares is checked once; what it sends becomes arrays, and what is not used is named."""

import numpy as np
import pytest

from ivypy.master.connectors.catalog import Catalog
from ivypy.master.connectors.errors import ConnectorFault
from ivypy.protocol.connector import ElementMetric, ReadingKind, Unit
from ivypy.protocol.payload import Fact

GAUGE, COUNTER = ReadingKind.GAUGE, ReadingKind.COUNTER
BUSY = ElementMetric("port", "busy_percent", Unit.PERCENT)
IOS = ElementMetric("port", "ios_per_s", Unit.PER_S, COUNTER)


def catalog(*metrics: ElementMetric) -> Catalog:
    return Catalog(metrics)


@pytest.mark.parametrize(
    "metrics, fault",
    [
        ([ElementMetric("Port", "busy_percent", Unit.PERCENT)], "'Port' cannot be an element's name"),
        ([ElementMetric("port", "busy percent", Unit.NONE)], "'busy percent' cannot be an attribute's name"),
        ([BUSY, BUSY], "its name port_busy_percent is that of port busy_percent"),
        (
            [ElementMetric("a", "b_c", Unit.NONE), ElementMetric("a_b", "c", Unit.NONE)],
            "its name a_b_c is that of a b_c",
        ),
        ([ElementMetric("port", "busy_percent", Unit.MS)], "its unit is ms, and its name says %"),
        ([ElementMetric("ldev", "read_us", Unit.MS)], "its unit is ms, and its name says us"),
        ([ElementMetric("p", "x", Unit.NONE, per="y")], "per is for counters, and it is a gauge"),
        ([ElementMetric("p", "x", Unit.NONE, COUNTER, per="y")], "per is 'y', which is no other counter of p"),
        ([ElementMetric("p", "x", Unit.NONE, COUNTER, per="x")], "per is 'x', which is no other counter of p"),
        ([ElementMetric("p", "x", Unit.NONE, bits=32)], "bits is for counters, and it is a gauge"),
        ([ElementMetric("p", "x", Unit.NONE, scale=0.0)], "scale is 0; it must be a number other than 0"),
    ],
)
def test_a_metric_that_cannot_be_is_named_with_what_is_wrong(metrics: list[ElementMetric], fault: str) -> None:
    with pytest.raises(ConnectorFault) as found:
        catalog(*metrics)
    assert fault in str(found.value)


def test_three_faults_are_named_and_the_others_counted() -> None:
    with pytest.raises(ConnectorFault, match="and 2 more"):
        catalog(*(ElementMetric("P", f"x{i}", Unit.NONE) for i in range(5)))


def test_readings_are_a_row_for_each_instance_and_a_column_for_each_metric() -> None:
    mine = catalog(BUSY, IOS)
    facts = [
        Fact("port", "1A", "busy_percent", 40),
        Fact("port", "2A", "ios_per_s", 7),
        Fact("port", "1A", "ios_per_s", 5),
    ]
    values = mine.values(facts).table("port")
    assert mine.tables["port"].instances == ["1A", "2A"]
    np.testing.assert_array_equal(values, [[40, 5], [np.nan, 7]])


def test_an_instance_keeps_its_row_when_others_come_and_go() -> None:
    mine = catalog(BUSY)
    mine.values([Fact("port", "1A", "busy_percent", 1), Fact("port", "2A", "busy_percent", 2)])
    values = mine.values([Fact("port", "3A", "busy_percent", 3), Fact("port", "2A", "busy_percent", 2)]).table("port")
    np.testing.assert_array_equal(values, [[np.nan], [2], [3]])


def test_what_is_not_used_is_named() -> None:
    facts = [
        Fact("port", "1A", "busy_percent", 1),
        Fact("port", "1A", "busy_percent", 1),  # the same again says nothing new
        Fact("port", "1A", "busy_percent", 2),
        Fact("port", "1A", "speed", 8),
        Fact("fan", "1", "rpm", 900),
        Fact("port", "2A", "busy_percent", "high"),
    ]
    values = catalog(BUSY).values(facts)
    np.testing.assert_array_equal(values.table("port"), [[1]])
    assert values.ignored.count == 4
    assert str(values.ignored) == (
        "port speed, fan rpm was not declared; port 2A busy_percent is text; port 1A busy_percent has two values"
    )


def test_too_many_instances_are_a_fault_and_not_memory() -> None:
    with pytest.raises(ConnectorFault, match="more than 20,000 elements"):
        catalog(BUSY).values([Fact("port", str(i), "busy_percent", 1) for i in range(20_001)])
