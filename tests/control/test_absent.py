"""Law: subintervals that a late host is not in decide nothing, whatever the others' sums are."""

from collections.abc import Iterator, Mapping
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivypy.master.control.choices import OnLeave, Rule, Side
from ivypy.master.control.control_state import ControlState
from ivypy.master.control.decision import Decision
from ivypy.master.control.fixed import Fixed
from ivypy.master.control.focus import Focus
from ivypy.master.control.measure import Measure
from ivypy.master.control.observation import Observation, Phase
from ivypy.master.control.slo import EarlyAbort, Watched
from ivypy.master.control.steady import Steady
from ivypy.master.rollup.disturbance import Cause, Disturbance
from ivypy.master.stats.metric_sample import MetricSample
from tests.support.control_specs import a_criterion, measure_spec, slo_spec, steady_spec

FOCUS: Final = Focus("overall_iops")
LENGTH_S: Final = 5.0
MOST: Final = 200
STATES: Final[Mapping[str, ControlState]] = {
    "measure": Measure(measure_spec(FOCUS, accuracy=0.05, min_s=60.0), warmup=1),
    "steady": Steady(steady_spec(a_criterion(Rule.DEVIATION, FOCUS, 4, 5.0), hold=6, on_leave=OnLeave.STOP), warmup=1),
    "restarted": Steady(
        steady_spec(a_criterion(Rule.DEVIATION, FOCUS, 4, 5.0, no_drift=True), hold=6, on_leave=OnLeave.RESTART),
        warmup=1,
    ),
    "aborted": Watched(Fixed(1, 60), (slo_spec(FOCUS, 90, side=Side.AT_LEAST, abort_early=True),)),
}


def value_at(number: int) -> float:
    return 100.5 if number % 2 == 0 else 99.5


def driven(state: ControlState, absent: Mapping[int, float]) -> Iterator[tuple[Observation, Decision]]:
    """`absent`: by subinterval, what those that are in did there."""
    phase = state.opening().next_phase
    for number in range(MOST):
        value = absent.get(number, value_at(number))
        samples = {FOCUS: {"all": MetricSample(value * LENGTH_S, LENGTH_S)}}
        seen = Observation(number, number * LENGTH_S, LENGTH_S, phase, samples=samples, absent=number in absent)
        state, decision = state.after(seen)
        yield seen, decision
        if decision.done:
            return
        phase = decision.next_phase


@pytest.mark.slow
@pytest.mark.parametrize("name", STATES)
@given(absent=st.dictionaries(st.integers(0, 80), st.floats(0, 1000), max_size=30))
@settings(max_examples=30, deadline=None)
def test_a_load_that_is_steady_is_measured_as_such(name: str, absent: dict[int, float]) -> None:
    alone = [*driven(STATES[name], {})][-1][1]
    *_, (_, last) = seen = [*driven(STATES[name], absent)]
    assert not any(decision.alerts for _, decision in seen)
    assert not any(decision.measured for one, decision in seen if one.absent and name != "aborted")  # it has its length
    (found,), (expected,) = last.measured, alone.measured
    assert found.findings == expected.findings == ()
    assert found.last - found.first >= expected.last - expected.first


@pytest.mark.parametrize("absent", range(40))
def test_a_hold_ends_with_a_last_check_of_all_hosts(absent: int) -> None:
    """The drift is looked at there, which is not done within the hold."""
    *_, (seen, last) = driven(STATES["restarted"], {absent: 0.0})
    (measured,) = last.measured
    assert measured.last == seen.number != absent


def test_what_is_set_aside_is_noted_also_where_a_host_is_absent() -> None:
    spec, disturbance = slo_spec(FOCUS, 90, side=Side.AT_LEAST, abort_early=True), Disturbance(Cause.STEAL, "a", 50.0)
    samples = {FOCUS: {"all": MetricSample(500.0, 5.0)}}
    one = Observation(7, 35.0, LENGTH_S, Phase.RUN, samples=samples)
    both = Observation(8, 40.0, LENGTH_S, Phase.RUN, samples=samples, absent=True, disturbance=disturbance)
    found = EarlyAbort().after(one, [spec], False).after(both, [spec], True)
    assert (found.last, found.aside) == (7, ((8, disturbance),))
