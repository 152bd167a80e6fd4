"""What control sees of a merged subinterval is what the CSV's columns say."""

from functools import cache

import numpy as np
import pytest

from ivypy.master.control.autopid import AutoPid
from ivypy.master.control.choices import Rule
from ivypy.master.control.control_spec import metric_fault, rollup_fault
from ivypy.master.control.control_state import ControlState
from ivypy.master.control.fixed import Fixed
from ivypy.master.control.measure import Measure
from ivypy.master.control.observation import InstanceLoad, Observation
from ivypy.master.control.observe import FOCUS_METRICS, focus_on, loads, observed, samples
from ivypy.master.control.pid import pid
from ivypy.master.control.pid_loop import Range
from ivypy.master.control.search import Find
from ivypy.master.control.slo import Watched
from ivypy.master.control.staircase import Levels, Staircase
from ivypy.master.control.steady import Steady
from ivypy.master.control.steer import Steered
from ivypy.master.rollup.figures import Figures
from ivypy.master.rollup.metrics import METRICS, column
from ivypy.master.stats.estimate import estimates
from ivypy.master.stats.metric_sample import value_of
from ivypy.master.stats.sample_matrix import matrix_of
from ivypy.protocol.counters import RESPONSES, SERVICES, Count, Kind
from tests.support.control_specs import (
    RULES,
    SETTLES_S,
    TOLERANCE,
    a_criterion,
    find_spec,
    measure_spec,
    slo_spec,
    steady_spec,
)
from tests.support.rollup import instance, merged, merger_of, rollups_by
from tests.support.rollup_results import HostData

ROLLUPS = rollups_by([instance(0, "h1"), instance(0, "h2")], "host")
IOPS = 1200.0  # of each host: 6,000 in 5 s
ALL = np.ones(len(ROLLUPS.rows), bool)
NOWHERE = np.zeros(len(ROLLUPS.rows), bool)  # nothing falls behind
EVERYWHERE = ~NOWHERE


@cache
def figures(response: bool = True) -> Figures:
    """Two hosts of different speed, each with random reads and sequential writes."""
    random = np.random.default_rng(1)

    def host(scale: float) -> HostData:
        times = {
            (0, series): [int(ns) for ns in random.exponential(scale, 3000)]
            for first in (SERVICES[0], RESPONSES[0])
            for series in (first + Kind.RANDOM_READ, first + Kind.SEQUENTIAL_WRITE)
        }
        return HostData(
            1,
            1,
            times,
            {
                (0, Count.DUE): 6100,
                (0, Count.COMPLETED): 6000,
                (0, Count.BACKLOG): 70,
                (0, Count.IN_FLIGHT): 20,
                (0, Count.ERRORS): 6,
                (0, Count.DROPPED): 4,
            },
        )

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
                assert value == expected, "the same float: a limit that the row meets is met"


def test_a_percentile_is_never_above_the_maximum() -> None:
    """5,000 I/Os of exactly 1 ms: the middle of their bucket is 1003.52 us, and `at_most: 1ms` must hold."""
    shown = Figures(merged(merger_of(ROLLUPS), {"h1": HostData(1, 1, {(0, SERVICES[0]): [10**6] * 5000})}).merged, ALL)
    focus = focus_on("overall_service_us_p99")
    found = samples(shown, focus, ROLLUPS.type("all").instances)["all"]
    assert column(shown, focus.metric)[0] == 1000
    assert value_of([found], focus.fraction) == 1000
    assert value_of([found] * 3, focus.fraction) == 1000
    assert estimates(matrix_of([{"all": found}] * 8, focus.fraction)).values.tolist() == [1000]


def test_a_response_time_that_is_not_shown_is_blank() -> None:
    for metric in ("overall_response_us_mean", "overall_response_us_p99"):
        focus = focus_on(metric)
        found = samples(figures(response=False), focus, ROLLUPS.type("all").instances)
        assert value_of([found["all"]], focus.fraction) is None


def test_loads_are_counted_per_instance() -> None:
    shown = figures()
    assert loads(shown, ROLLUPS.type("host").instances, NOWHERE) == dict.fromkeys(
        ("h1", "h2"), InstanceLoad(6100, 6000, 70, IOPS, 5.0, 20, 10)
    )
    assert loads(shown, ROLLUPS.type("all").instances, NOWHERE) == {
        "all": InstanceLoad(12200, 12000, 140, 2 * IOPS, 5.0, 40, 20)
    }
    one = InstanceLoad(6100, 6000, 70, IOPS, 5.0, 20, 10)
    assert one.growth == one.outstanding


def test_focuses_of_a_state_are_all_that_it_reads() -> None:
    """Every kind of state names its focuses; what is observed by them is all that it asks an interval for."""
    p99, cpu = focus_on("overall_response_us_p99", "host"), focus_on("cpu_busy_percent")
    measure = Measure(measure_spec(p99), warmup=0)
    control = pid(cpu, 50, {"all": Range(1, 2)}, RULES, warmup=1)
    states: list[ControlState] = [
        Fixed(0, 1),
        measure,
        Steady(steady_spec(a_criterion(Rule.DEVIATION, p99, 2)), warmup=0),
        Steered(control, measure, SETTLES_S),
        Steered(AutoPid(p99, 1000, ("h1", "h2"), RULES), Fixed(0, 1), SETTLES_S),
        Staircase(Levels(1, 1), measure, TOLERANCE),
        Find(find_spec(p99, 1000), TOLERANCE, settle=1),
        Watched(Steered(control, measure, SETTLES_S), (slo_spec(p99, 1000),)),
    ]
    for state in states:
        found, asked = observed(figures(), ROLLUPS, state.focuses, NOWHERE, EVERYWHERE)
        assert set(found) == set(state.focuses)
        closed = Observation(0, 0.0, 5.0, state.opening().next_phase, samples=found, loads=asked)
        state.after(closed)
    assert states[0].focuses == ()
    assert set(states[-1].focuses) == {p99, cpu}


def test_every_focus_metric_is_a_metric() -> None:
    assert set(FOCUS_METRICS) <= set(METRICS)


@pytest.mark.parametrize(
    ("metric", "rollup", "controls", "fault"),
    [
        ("overall_response_us_p99", "host", True, ""),
        ("overall_iops", "all", False, ""),
        ("overall_iops", "all", True, "is what control sets"),
        ("overall_respons_us_p99", "all", False, "did you mean 'overall_response_us_p99'?"),
        ("overall_service_us_max", "all", False, "only rates, means, percentiles and CPU"),
        ("cpu_busy_percent", "hosts", False, "did you mean 'host'?"),
        ("xyzzy", "all", False, "there is no metric xyzzy"),
    ],
)
def test_unknown_metric_or_rollup_is_refused_with_the_reason(
    metric: str, rollup: str, controls: bool, fault: str
) -> None:
    found = [*filter(None, [metric_fault(metric, controls), rollup_fault(rollup, ["all", "host"])])]
    assert fault in found[0] if fault else not found
