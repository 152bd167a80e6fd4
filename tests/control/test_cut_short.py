"""What a step leaves that is cut short: its complete subintervals, with what they lack of what was asked for."""

import pytest

from ivypy.master.control.choices import Rule
from ivypy.master.control.control_state import ControlState
from ivypy.master.control.decision import Measured
from ivypy.master.control.fixed import Fixed
from ivypy.master.control.measure import Measure
from ivypy.master.control.observation import Observation
from ivypy.master.control.pid import pid
from ivypy.master.control.pid_loop import Range
from ivypy.master.control.probe import ProbeAnswer
from ivypy.master.control.search import Find
from ivypy.master.control.slo import Watched
from ivypy.master.control.staircase import Levels, Staircase
from ivypy.master.control.steady import Steady
from ivypy.master.control.steer import Steered
from ivypy.master.verdicts import Reason, Verdict, verdict_of
from tests.support.control_plants import LATENCY, Plant, asked, linear, mmc, noise, simulate
from tests.support.control_specs import (
    RULES,
    SETTLES_S,
    TOLERANCE,
    a_criterion,
    criterion_named,
    find_spec,
    measure_spec,
    slo_spec,
    steady_spec,
)

FIXED = Fixed(2, 60)
MEASURE = Measure(measure_spec(LATENCY, accuracy=1e-9), warmup=2)
SHORT = measure_spec(LATENCY, accuracy=1e-9, min_s=60.0, timeout_s=150.0)
STEADY = Steady(steady_spec(criterion_named("iops", 4), hold=4), warmup=2)
# From its second on, a level also has a subinterval of two loads.
STAIRS = Staircase(Levels(100.0, 100.0), Fixed(1, 3), TOLERANCE)
SEARCH = Find(find_spec(LATENCY, 2500.0), TOLERANCE, settle=1)
UNSTEADY = Steady(steady_spec(a_criterion(Rule.DEVIATION, LATENCY, 4, limit=0.0)), warmup=2)


def cut(state: ControlState, after: int) -> Measured:
    """Cut short behind so many subintervals."""
    trace = simulate(Plant(mmc(1, 1000), 1000.0, noise(1, 0.02, 0.0), iops=100.0), state, after)
    assert not trace.decisions[-1].done
    return asked(trace.state.cut_short(after - 1), trace.seen)


INTERRUPTED = [Reason.INTERRUPTED]
SHORTENED = [Reason.SHORTENED]


@pytest.mark.parametrize(
    ("state", "after", "window", "suffix", "reasons"),
    [
        (FIXED, 0, None, "", INTERRUPTED),
        (FIXED, 2, None, "", INTERRUPTED),
        (FIXED, 3, (2, 2), "", SHORTENED),
        (FIXED, 61, (2, 60), "", SHORTENED),
        (MEASURE, 2, None, "", INTERRUPTED),
        (MEASURE, 3, (2, 2), "", [Reason.ACCURACY_NOT_REACHED, *SHORTENED]),
        (STEADY, 2, None, "", INTERRUPTED),
        (STEADY, 3, (2, 2), "", [Reason.STEADY_NOT_REACHED, *SHORTENED]),
        (STEADY, 8, (4, 7), "", [Reason.STEADY_NOT_REACHED, *SHORTENED]),  # attained, and not yet held
        (STAIRS, 1, None, ":total_iops=100", INTERRUPTED),
        (STAIRS, 3, (1, 2), ":total_iops=100", SHORTENED),
        (STAIRS, 5, None, ":total_iops=200", INTERRUPTED),
        (STAIRS, 7, (6, 6), ":total_iops=200", SHORTENED),
        (SEARCH, 4, None, "", INTERRUPTED),
    ],
)
def test_complete_subintervals_are_the_measurement(
    state: ControlState, after: int, window: tuple[int, int] | None, suffix: str, reasons: list[Reason]
) -> None:
    got = cut(state, after)
    assert (got.first, got.last) == (window or (after, after - 1))
    assert (got.suffix, [finding.reason for finding in got.findings]) == (suffix, reasons)


def test_fixed_time_that_is_cut_short_is_partial() -> None:
    got = cut(FIXED, 13)
    assert [str(finding) for finding in got.findings] == ["shortened[partial] (11 of 60 subintervals)"]
    assert verdict_of(got.findings) is Verdict.PARTIAL


def test_unreached_accuracy_or_target_stays_unreached() -> None:
    accuracy, short = cut(MEASURE, 40).findings
    assert accuracy.detail.startswith("overall_response_us_mean of all +/- ") and str(short) == "shortened[partial]"
    steady, _ = cut(UNSTEADY, 40).findings
    assert steady.reason is Reason.STEADY_NOT_REACHED and "all is at " in steady.detail


def test_threshold_is_checked_on_the_complete_subintervals() -> None:
    for at_most, missed in ((1.0, [Reason.SLO_MISSED]), (1e9, [])):
        got = cut(Watched(FIXED, (slo_spec(LATENCY, at_most),)), 13)
        assert [finding.reason for finding in got.findings] == [*SHORTENED, *missed]
    unmeasured = cut(Watched(FIXED, (slo_spec(LATENCY, 1.0),)), 2)
    assert [finding.reason for finding in unmeasured.findings] == INTERRUPTED


def test_feedback_is_measured_from_where_it_had_settled() -> None:
    """At its target the window is one; on the way there it is none; off its target it says so."""
    ends = {"all": Range(20.0, 950.0, 1020.0, 20_000.0)}
    for after in range(1, 40):
        state = Steered(pid(LATENCY, 2000.0, ends, RULES, warmup=1), Fixed(1, 60), SETTLES_S)
        trace = simulate(Plant(linear(1000, 2.0), 1000.0, noise(1, 0.001, 0.0)), state, after)
        assert isinstance(trace.state, Steered)
        since, got = trace.state.measurable, trace.state.cut_short(after - 1)
        if since is None or since > after - 1:
            assert (got.first, got.last) == (after, after - 1)
            assert [finding.reason for finding in got.findings] == INTERRUPTED
        else:
            assert (got.first, got.last) == (since, after - 1)
            assert {finding.reason for finding in got.findings} <= {Reason.SHORTENED, Reason.TARGET_NOT_HELD}
    assert since is not None and [finding.reason for finding in got.findings] == SHORTENED


def test_interrupted_search_reports_what_it_knows() -> None:
    """Over every moment of a search: nothing, then a load that passed, then an interval."""
    stages: list[tuple[Reason, ...]] = []
    trace = simulate(Plant(mmc(1, 1000), 1000.0, noise(2, 0.02, 0.0)), SEARCH, 400)
    for number, state in enumerate(trace.states[:-1]):
        assert isinstance(state, Find)
        got = state.cut_short(number)
        reasons = tuple(finding.reason for finding in got.findings)
        if stages[-1:] != [reasons]:
            stages.append(reasons)
        passes = [one for one in state.probes if one.answer is ProbeAnswer.PASS]
        assert (got.first <= got.last) == bool(passes)
        if passes:
            met = {(one.first, one.last, f":total_iops={one.iops:.6g}") for one in state.probes if not one.above}
            assert (got.first, got.last, got.suffix) in met
    assert trace.decisions[-1].done and stages[0] == (Reason.INTERRUPTED,)
    known = {
        (Reason.INTERRUPTED,),
        (Reason.SEARCH_UNBOUNDED, Reason.SHORTENED),
        (Reason.SEARCH_FOUND, Reason.SHORTENED),
    }
    assert len(stages) >= 2 and set(stages) <= known


@pytest.mark.slow
@pytest.mark.parametrize(
    "state",
    [
        Fixed(2, 30),
        Measure(measure_spec(LATENCY, accuracy=1e-9, timeout_s=400.0), warmup=2),
        Steady(steady_spec(criterion_named("iops", 4), hold=9, timeout_s=400.0), warmup=2),
        Staircase(Levels(100.0, 100.0, end=800.0), Measure(SHORT, warmup=0), TOLERANCE),
        SEARCH,
        Steered(
            pid(LATENCY, 2000.0, {"all": Range(20.0, 950.0, 1020.0, 20_000.0)}, RULES, warmup=1), MEASURE, SETTLES_S
        ),
        Watched(Fixed(1, 200), (slo_spec(LATENCY, 1000.0, abort_early=True),)),
    ],
    ids=lambda state: type(state).__name__,
)
def test_measurements_end_now_or_at_a_subinterval_named_before(state: ControlState) -> None:
    """Now, or with a subinterval that was named in advance: of all others nothing needs to be kept."""
    plant = Plant(mmc(1, 1000), 1000.0, noise(4, 0.05, 0.3), iops=600.0)
    seen: list[Observation] = []
    decision, named = state.opening(), [0]
    for number in range(200):
        seen.append(plant.interval(number, decision))
        state, decision = state.after(seen[-1])
        for measured in (*decision.measured, state.cut_short(number)):
            assert measured.last in (number, *named) or measured.last < measured.first
        named = [one for one in (number, *state.may_end) if one in (number, *named)]
        if decision.done:
            break
