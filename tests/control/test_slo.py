"""Thresholds: what fails a step, what only alerts, and when a step is given up."""

from collections.abc import Callable
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.control.choices import Side
from ivypy.master.control.control_state import ControlState
from ivypy.master.control.decision import Decision
from ivypy.master.control.fixed import Fixed
from ivypy.master.control.focus import Focus
from ivypy.master.control.observation import Observation
from ivypy.master.control.observe import focus_on
from ivypy.master.control.slo import Watched
from ivypy.master.stats.metric_sample import MOST, BatchMeans, MetricSample, merged
from ivypy.master.verdicts import Reason, Severity
from tests.support.control_plants import checked
from tests.support.control_specs import slo_spec

FOCUS = Focus("overall_response_us_mean")


def drive(
    state: ControlState,
    values: Callable[[int], dict[str, float | None]],
    most: int = 100,
    covers: Callable[[int], int] = lambda number: 0,
) -> list[Decision]:
    phase, decisions = state.opening().next_phase, []
    seen: list[Observation] = []
    for number in range(most):
        samples = {
            FOCUS: {
                name: MetricSample(0.0, 0.0) if value is None else MetricSample(value * 1000, 1000)
                for name, value in values(number).items()
            }
        }
        reaches_back = covers(number)
        seen.append(Observation(number, number * 5.0, 5.0, phase, samples=samples, covers=reaches_back))
        state, decision = state.after(seen[-1])
        decisions.append(checked(decision, seen))
        phase = decision.next_phase
        if decision.done:
            break
    return decisions


def watched(limit: float = 100, measurement: int = 20, **more: bool | float | Side) -> Watched:
    return Watched(Fixed(2, measurement), (slo_spec(FOCUS, limit, **more),))


@pytest.mark.parametrize(
    ("side", "value", "missed"),
    [
        (Side.AT_MOST, 99.0, False),
        (Side.AT_MOST, 100.0, False),
        (Side.AT_MOST, 101.0, True),
        (Side.AT_LEAST, 99.0, True),
        (Side.AT_LEAST, 100.0, False),
        (Side.AT_LEAST, 101.0, False),
    ],
)
def test_the_value_of_the_whole_measurement_decides(side: Side, value: float, missed: bool) -> None:
    (measured,) = drive(watched(side=side), lambda number: {"all": value})[-1].measured
    assert [finding.reason for finding in measured.findings] == ([Reason.SLO_MISSED] if missed else [])


@pytest.mark.parametrize(
    ("metric", "side", "slowed", "severity"),
    [
        ("overall_service_us_p99", Side.AT_MOST, {"a": 0.01}, Severity.INVALID),
        ("overall_response_us_mean", Side.AT_MOST, {"a": 0.01}, Severity.INVALID),
        ("overall_iops", Side.AT_LEAST, {"a": 0.01}, Severity.INVALID),  # 99 of 100: it took 1 % of the time
        ("overall_iops", Side.AT_LEAST, {"a": 0.004}, Severity.FAILED),  # which explains 0.8 %
        ("overall_iops", Side.AT_LEAST, {"a": 1.0}, Severity.INVALID),
        ("overall_service_us_p99", Side.AT_MOST, {"b": 1.0}, Severity.FAILED),
        ("overall_service_us_p99", Side.AT_LEAST, {"a": 1.0}, Severity.FAILED),  # the times would be even shorter
        ("overall_iops", Side.AT_MOST, {"a": 1.0}, Severity.FAILED),  # the rate would be even higher
    ],
)
def test_a_miss_that_the_host_alone_may_have_caused_is_none_of_the_storages(
    metric: str, side: Side, slowed: dict[str, float], severity: Severity
) -> None:
    value = 101.0 if side is Side.AT_MOST else 99.0
    (found,) = slo_spec(focus_on(metric), 100, side=side).findings({"a": value}, slowed, {})
    assert (found.reason, found.severity) == (Reason.SLO_MISSED, severity)
    assert ("kept from running" in found.detail) == (severity is Severity.INVALID)


@pytest.mark.parametrize(
    ("metric", "side", "lacking", "severity"),
    [
        ("overall_iops", Side.AT_LEAST, "a", Severity.INVALID),
        ("overall_mib_per_s", Side.AT_LEAST, "a", Severity.INVALID),
        ("overall_iops", Side.AT_LEAST, "b", Severity.FAILED),
        ("overall_iops", Side.AT_MOST, "a", Severity.FAILED),  # with all hosts it would be even more
        ("overall_service_us_p99", Side.AT_MOST, "a", Severity.FAILED),
    ],
)
def test_a_rate_that_lacks_the_share_of_a_host_shows_nothing_about_the_storage(
    metric: str, side: Side, lacking: str, severity: Severity
) -> None:
    value = 101.0 if side is Side.AT_MOST else 50.0
    hosts = {lacking: "2 of 3 hosts"}
    (found,) = slo_spec(focus_on(metric), 100, side=side).findings({"a": value}, {}, hosts)
    assert (found.reason, found.severity) == (Reason.SLO_MISSED, severity)
    assert ("of 2 of 3 hosts" in found.detail) == (lacking == "a")  # whoever sees it, sees of whom it is


@given(st.floats(1, 1e9), st.floats(1, 1e9))
def test_a_value_meets_a_floor_where_it_misses_the_same_ceiling(limit: float, value: float) -> None:
    ceiling, floor = (slo_spec(FOCUS, limit, side=side) for side in (Side.AT_MOST, Side.AT_LEAST))
    assert ceiling.excess(value) == -floor.excess(value)


def test_the_instance_furthest_below_a_floor_is_the_worst() -> None:
    decision = drive(watched(side=Side.AT_LEAST), lambda number: {"a": 150.0, "b": 90.0, "c": 70.0})[-1]
    assert [finding.detail[-4:] for finding in decision.measured[0].findings] == ["of b", "of c"]
    assert decision.thresholds == ("overall_response_us_mean at least 100 us: now 70 us of c",)
    (row,) = [row.cells for row in decision.rows if row.file == "slo.csv"]
    assert (row["at_most"], row["at_least"], row["worst_instance"], row["breached"]) == (None, 100, "c", True)


def test_a_step_certainly_below_its_floor_is_aborted_early() -> None:
    noise = np.random.default_rng(1).standard_normal(100)
    decisions = drive(
        watched(side=Side.AT_LEAST, abort_early=True), lambda number: {"all": 50.0 + float(noise[number])}
    )
    assert len(decisions) < 12 and "aborted early" in decisions[-1].measured[0].findings[0].detail
    above = drive(watched(side=Side.AT_LEAST, abort_early=True), lambda number: {"all": 150.0 + float(noise[number])})
    assert len(above) == 22 and not above[-1].measured[0].findings


def test_the_warmup_does_not_count() -> None:
    decisions = drive(watched(), lambda number: {"all": 5000.0 if number < 2 else 50.0})
    assert not decisions[-1].measured[0].findings
    assert not any(decision.alerts for decision in decisions)


def test_one_bad_subinterval_alerts_and_does_not_fail() -> None:
    decisions = drive(watched(), lambda number: {"all": 500.0 if number == 10 else 50.0})
    assert not decisions[-1].measured[0].findings
    (alert,) = [alert for decision in decisions for alert in decision.alerts]
    assert (alert.subinterval, alert.instance, alert.value) == (10, "all", 500.0)


def test_alerts_are_limited_in_rate() -> None:
    decisions = drive(watched(every_s=30), lambda number: {"all": 500.0})
    alerts = [alert.subinterval for decision in decisions for alert in decision.alerts]
    assert alerts == [2, 8, 14, 20]


def test_each_instance_that_missed_is_named() -> None:
    decisions = drive(watched(), lambda number: {"host=a": 50.0, "host=b": 150.0, "host=c": 160.0})
    details = [finding.detail for finding in decisions[-1].measured[0].findings]
    assert len(details) == 2
    assert "at most 100 us: 150 us of host=b" in details[0]


def test_a_blank_metric_does_not_meet_its_threshold() -> None:
    (measured,) = drive(watched(), lambda number: {"all": None})[-1].measured
    assert "blank" in measured.findings[0].detail


def test_a_hopeless_step_is_aborted_early_only_with_abort_early() -> None:
    noise = np.random.default_rng(1).standard_normal(100)

    def slow(number: int) -> dict[str, float | None]:
        return {"all": 200.0 + float(noise[number])}

    decisions = drive(watched(abort_early=True), slow)
    assert len(decisions) < 12
    (measured,) = decisions[-1].measured
    assert measured.first == 2
    assert "aborted early" in measured.findings[0].detail
    assert len(drive(watched(), slow)) == 22


@pytest.mark.parametrize(("covers", "first"), [({2: 1}, 3), ({3: 1}, 2), ({2: 1, 3: 2}, 4)])
def test_what_is_aborted_does_not_begin_with_a_result_that_reaches_back(covers: dict[int, int], first: int) -> None:
    noise = np.random.default_rng(1).standard_normal(100)
    decisions = drive(
        watched(abort_early=True),
        lambda number: {"all": 200.0 + float(noise[number])},
        covers=lambda k: covers.get(k, 0),
    )
    (measured,) = decisions[-1].measured
    assert measured.first == first and "aborted early" in measured.findings[0].detail


def test_a_step_near_its_threshold_is_not_aborted() -> None:
    noise = np.random.default_rng(1).standard_normal(100)
    decisions = drive(watched(abort_early=True), lambda number: {"all": 100.0 + 10 * float(noise[number])})
    assert len(decisions) == 22


def test_a_step_a_little_above_its_threshold_is_aborted_once_that_is_certain() -> None:
    """5 % above, with noise of 20 %: it takes hundreds of subintervals to be sure of it, put together by then."""
    noise = np.random.default_rng(2).standard_normal(2000)
    decisions = drive(
        watched(abort_early=True, measurement=2000),
        lambda number: {"a": 50.0, "b": 105.0 + 20 * float(noise[number])},
        2000,
    )
    (measured,) = decisions[-1].measured
    assert 2 * MOST < len(decisions) < 1000 and measured.first == 2
    assert " of b, aborted early" in measured.findings[0].detail


def test_memory_of_a_threshold_does_not_grow_with_the_step() -> None:
    state: ControlState = watched(limit=100, abort_early=True, measurement=10_000)
    phase = state.opening().next_phase
    for number in range(3000):
        samples = {FOCUS: {"a": MetricSample(90.0 * 1000, 1000), "b": MetricSample(50.0 * 1000, 1000)}}
        state, decision = state.after(Observation(number, number * 5.0, 5.0, phase, samples=samples))
        phase = decision.next_phase
    assert isinstance(state, Watched)
    (batches,) = state.abort.batches
    assert len(batches.whole) < MOST and state.abort.subintervals == 2998


@given(st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=6), min_size=1, max_size=300), st.data())
def test_batches_hold_what_was_added(histograms: list[list[int]], data: st.DataObject) -> None:
    samples = []
    for counts in histograms:
        low = data.draw(st.integers(0, 20))
        samples.append(MetricSample(float(sum(counts)), 2.0, np.array(counts, np.uint64), low))
    batches = BatchMeans()
    for sample in samples:
        batches = batches.added({"a": sample})
    assert len(batches.whole) < MOST and len(batches.whole) * batches.size + batches.in_part == len(samples)
    in_batches = [*batches.of("a"), *([batches.part["a"]] if batches.in_part else [])]
    for held in (in_batches, [batches.total["a"]]):
        found, expected = (reduce(merged, one).counts for one in (held, samples))
        assert found is not None and expected is not None and found.tolist() == expected.tolist()
        assert sum(one.amount for one in held) == sum(one.amount for one in samples)
        assert sum(one.per for one in held) == 2.0 * len(samples)


def test_what_is_said_of_a_threshold_does_not_contradict_its_verdict() -> None:
    decision = drive(watched(limit=5000), lambda number: {"all": 5000.004})[-1]
    (finding,) = decision.measured[0].findings
    assert finding.detail == "overall_response_us_mean at most 5 ms: 5.000004 ms"
    assert decision.thresholds == ("overall_response_us_mean at most 5 ms: now 5.000004 ms",)
