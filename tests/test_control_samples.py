"""What control sees of a merged subinterval is what the CSV's columns say."""

from functools import cache

import numpy as np
import pytest

from ivypy.master.control.focus import value_of
from ivypy.master.control.interval import Load
from ivypy.master.control.samples import FOCUS_METRICS, faults, focus_on, loads, samples
from ivypy.master.rollup.figures import Figures
from ivypy.master.rollup.metrics import METRICS, column
from ivypy.protocol.counters import RESPONSE, SERVICE, Count, Kind
from tests.rollup import instance, merged, merger_of, rollups_by
from tests.rollup.results import HostData

ROLLUPS = rollups_by([instance(0, "h1"), instance(0, "h2")], "host")


@cache
def figures(response: bool = True) -> Figures:
    """Two hosts of different speed, each with random reads and sequential writes."""
    random = np.random.default_rng(1)

    def host(scale: float) -> HostData:
        times = {
            (0, series): [int(ns) for ns in random.exponential(scale, 3000)]
            for first in (SERVICE, RESPONSE)
            for series in (first + Kind.RANDOM_READ, first + Kind.SEQUENTIAL_WRITE)
        }
        return HostData(1, 1, times, {(0, Count.DUE): 6100, (0, Count.COMPLETED): 6000, (0, Count.BACKLOG): 100})

    found = merged(merger_of(ROLLUPS), {"h1": host(1e5), "h2": host(4e5)})
    return Figures(found.merged, np.full(3, response))


@pytest.mark.parametrize("metric", FOCUS_METRICS)
def test_every_focus_metric_is_its_column(metric: str) -> None:
    shown = figures()
    for rollup in ("all", "host"):
        focus = focus_on(metric, rollup)
        instances = ROLLUPS.type(rollup).instances
        found = samples(shown, focus, instances)
        assert list(found) == [one.name for one in instances]
        for one in instances:
            expected = float(column(shown, metric)[one.row])
            value = value_of([found[one.name]], focus.fraction)
            if np.isnan(expected):
                assert value in (None, 0.0)
            else:
                assert value == pytest.approx(expected, rel=1e-9)


def test_a_response_time_that_is_not_shown_is_blank() -> None:
    for metric in ("overall_response_us_mean", "overall_response_us_p99"):
        focus = focus_on(metric)
        found = samples(figures(response=False), focus, ROLLUPS.type("all").instances)
        assert value_of([found["all"]], focus.fraction) is None


def test_loads_are_counted_per_instance() -> None:
    shown = figures()
    assert loads(shown, ROLLUPS.type("host").instances) == {"h1": Load(6100, 6000, 100), "h2": Load(6100, 6000, 100)}
    assert loads(shown, ROLLUPS.type("all").instances) == {"all": Load(12200, 12000, 200)}


def test_every_focus_metric_is_a_metric() -> None:
    assert set(FOCUS_METRICS) <= set(METRICS)


@pytest.mark.parametrize(
    ("metric", "rollup", "controls", "fault"),
    [
        ("overall_response_us_p99", "host", True, ""),
        ("overall_iops", "all", False, ""),
        ("overall_iops", "all", True, "is what is being set"),
        ("overall_respons_us_p99", "all", False, "did you mean overall_response_us_p99?"),
        ("overall_service_us_max", "all", False, "only rates, means, percentiles and CPU"),
        ("cpu_busy_percent", "hosts", False, "did you mean host?"),
        ("xyzzy", "all", False, "there is no metric xyzzy"),
    ],
)
def test_what_cannot_be_looked_at_says_why(metric: str, rollup: str, controls: bool, fault: str) -> None:
    found = faults(metric, rollup, ["all", "host"], controls)
    assert fault in found[0] if fault else not found


def test_an_unknown_metric_has_no_focus() -> None:
    with pytest.raises(KeyError):
        focus_on("overall_service_us_max")
