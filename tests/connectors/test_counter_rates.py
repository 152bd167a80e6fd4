"""Counters become rates by the time between two readings; gauges are what they are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.connectors.catalog import ElementTable
from ivypy.master.connectors.counter_rates import ratios
from ivypy.protocol.connector import Combine, ElementMetric, ReadingKind, Unit

COUNTER = ReadingKind.COUNTER
NAN = float("nan")


def table(*metrics: ElementMetric, instances: int = 1) -> ElementTable:
    return ElementTable("disk", metrics, {f"sd{i}": i for i in range(instances)})


READS = ElementMetric("disk", "reads_per_s", Unit.PER_S, COUNTER)
BUSY = ElementMetric("disk", "busy_percent", Unit.PERCENT, COUNTER, scale=0.1)  # of milliseconds
READ_MS = ElementMetric("disk", "read_ms", Unit.MS, COUNTER, per="reads_per_s")
WRAPPING = ElementMetric("disk", "reads_per_s", Unit.PER_S, COUNTER, bits=32)
DEPTH = ElementMetric("disk", "depth", Unit.IOS, combine=Combine.SUM)


def value(metrics: list[ElementMetric], before: list[float] | None, now: list[float], seconds: float) -> list[float]:
    earlier = None if before is None else np.array([before])
    found: list[float] = ratios(table(*metrics), earlier, np.array([now]), seconds).values[0].tolist()
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
    two = table(WRAPPING, instances=3)
    found = ratios(two, np.array([[2.0**32 - 1], [500.0], [1.0]]), np.array([[1.0], [2.0], [3.0]]), 1.0)
    assert (found.resets, found.wraps) == (1, 1)


def test_an_instance_that_is_new_has_no_rate_yet() -> None:
    found = ratios(table(READS, instances=2), np.array([[10.0]]), np.array([[30.0], [5.0]]), 2.0)
    assert found.values.ravel().tolist() == pytest.approx([10.0, NAN], nan_ok=True)


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
        found = ratios(table(WRAPPING), np.array([[float(before)]]), np.array([[float(counter % 2**32)]]), seconds)
        amount, per = amount + found.amounts[0, 0], per + found.pers[0, 0]
    assert amount == sum(rise for rise, _ in rises)
    assert per == pytest.approx(sum(seconds for _, seconds in rises))
