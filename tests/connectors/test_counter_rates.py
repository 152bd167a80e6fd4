"""Counters become rates by the time between two readings; gauges are what they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.connectors.catalog import Catalog, Values
from ivypy.master.connectors.counter_rates import Rates, rates
from ivypy.protocol.connector import Combine, ElementMetric, ReadingKind, Unit
from ivypy.protocol.payload import Fact

COUNTER = ReadingKind.COUNTER
NAN = float("nan")


READS = ElementMetric("disk", "reads_per_s", Unit.PER_S, COUNTER)
BUSY = ElementMetric("disk", "busy_percent", Unit.PERCENT, COUNTER, scale=0.1)  # of milliseconds
READ_MS = ElementMetric("disk", "read_ms", Unit.MS, COUNTER, per="reads_per_s")
WRAPPING = ElementMetric("disk", "reads_per_s", Unit.PER_S, COUNTER, bits=32)
DEPTH = ElementMetric("disk", "depth", Unit.IOS, combine=Combine.SUM)


def catalog(*metrics: ElementMetric) -> Catalog:
    return Catalog(metrics)


def gather(mine: Catalog, *rows: list[float]) -> Values:
    """A row for each disk; nan is not sent."""
    metrics = mine.tables["disk"].metrics
    return mine.values([
        Fact("disk", f"sd{place}", metric.attribute, reading)
        for place, row in enumerate(rows)
        for metric, reading in zip(metrics, row, strict=True)
        if reading == reading
    ])  # fmt: skip


def between(mine: Catalog, before: list[list[float]], now: list[list[float]], seconds: float) -> Rates:
    earlier = gather(mine, *before)
    return rates(earlier, gather(mine, *now), seconds)


def value(metrics: list[ElementMetric], before: list[float] | None, now: list[float], seconds: float) -> list[float]:
    mine = catalog(*metrics)
    gather(mine, [0.0] * len(metrics))  # the disk is known
    earlier = None if before is None else gather(mine, before)
    found: list[float] = rates(earlier, gather(mine, now), seconds).tables["disk"].values[0].tolist()
    return found


@pytest.mark.parametrize(
    "metrics, before, now, seconds, expected",
    [
        ([READS], [100.0], [300.0], 2.0, [100.0]),
        ([BUSY], [1000.0], [1900.0], 1.0, [90.0]),
        ([READS, READ_MS], [100.0, 5000.0], [300.0, 5800.0], 1.0, [200.0, 4.0]),
        ([READS, READ_MS], [100.0, 5000.0], [100.0, 5000.0], 1.0, [0.0, NAN]),  # no read: no mean time of one
        ([DEPTH], None, [7.0], 0.0, [7.0]),  # a gauge needs no earlier reading
        ([READS], None, [7.0], 1.0, [NAN]),
        ([READS], [NAN], [7.0], 1.0, [NAN]),  # the disk came meanwhile
        ([READS], [7.0], [NAN], 1.0, [NAN]),  # the disk went meanwhile
        ([READS], [7.0], [9.0], 0.0, [NAN]),  # nothing was counted anew
        ([READS], [300.0], [100.0], 1.0, [NAN]),  # reset
        ([WRAPPING], [2.0**32 - 50], [150.0], 1.0, [200.0]),
        ([WRAPPING], [2.0**31], [150.0], 1.0, [NAN]),  # too far for a wrap: reset
    ],
)
def test_a_metric_is_the_increase_over_time_or_over_another_counters(
    metrics: list[ElementMetric], before: list[float] | None, now: list[float], seconds: float, expected: list[float]
) -> None:
    assert value(metrics, before, now, seconds) == pytest.approx(expected, nan_ok=True)


def test_resets_and_wraps_are_counted() -> None:
    found = between(catalog(WRAPPING), [[2.0**32 - 1], [500.0], [1.0]], [[1.0], [2.0], [3.0]], 1.0)
    assert (len(found.resets), len(found.wraps)) == (1, 1)


def test_an_instance_that_is_new_has_no_rate_yet() -> None:
    found = between(catalog(READS, DEPTH), [[10.0, 1.0]], [[30.0, 1.0], [5.0, 2.0]], 2.0).tables["disk"].values
    assert found.ravel().tolist() == pytest.approx([10.0, 1.0, NAN, 2.0], nan_ok=True)


def test_each_element_type_has_the_time_between_its_own_stamps() -> None:
    port = ElementMetric("port", "ios_per_s", Unit.PER_S, COUNTER)
    mine = catalog(READS, port)
    first, second = (
        mine.values([Fact("disk", "sda", "reads_per_s", n), Fact("port", "1A", "ios_per_s", n)]) for n in (0, 100)
    )
    found = rates(first, second, {"disk": 1.0, "port": 4.0}).tables
    assert (found["disk"].values[0, 0], found["port"].values[0, 0]) == (100.0, 25.0)


@given(
    st.lists(st.tuples(st.integers(0, 10**9), st.floats(0.01, 10.0)), min_size=1, max_size=20),
    st.integers(0, 2**32 - 1),
)
def test_rates_over_any_gathers_add_up_to_the_increase_through_wraps(
    rises: list[tuple[int, float]], start: int
) -> None:
    """Whenever a connector reads, and however often the counter wraps: amounts and seconds are conserved."""
    counter, amount, per = start, 0.0, 0.0
    for rise, seconds in rises:
        before, counter = counter % 2**32, counter + rise
        found = between(catalog(WRAPPING), [[float(before)]], [[float(counter % 2**32)]], seconds).tables["disk"]
        amount, per = amount + found.amounts[0, 0], per + found.pers[0, 0]
    assert amount == sum(rise for rise, _ in rises)
    assert per == pytest.approx(sum(seconds for _, seconds in rises))
