"""Thresholds: what fails a step, what only alerts, and when a step is given up."""

from collections.abc import Callable

import numpy as np
import pytest

from ivypy.master.control.decide import State, decide, opening
from ivypy.master.control.decision import Decision
from ivypy.master.control.fixed import Fixed
from ivypy.master.control.focus import Focus, Sample
from ivypy.master.control.interval import Interval
from ivypy.master.control.slo import Threshold, Watched
from ivypy.master.verdicts import Reason

FOCUS = Focus("overall_response_us_mean")


def drive(state: State, values: Callable[[int], dict[str, float | None]], most: int = 100) -> list[Decision]:
    phase, decisions = opening(state).next_phase, []
    for number in range(most):
        samples = {
            FOCUS: {
                name: Sample(0.0, 0.0) if value is None else Sample(value * 1000, 1000)
                for name, value in values(number).items()
            }
        }
        state, decision = decide(state, Interval(number, number * 5.0, 5.0, phase, samples=samples))
        decisions.append(decision)
        phase = decision.next_phase
        if decision.done:
            break
    return decisions


def watched(at_most: float = 100, measurement: int = 20, **more: bool | float) -> Watched:
    return Watched(Fixed(2, measurement), (Threshold(FOCUS, at_most, **more),))  # type: ignore[arg-type]


@pytest.mark.parametrize(("value", "missed"), [(99.0, False), (100.0, False), (101.0, True)])
def test_the_measurements_own_value_decides(value: float, missed: bool) -> None:
    (measured,) = drive(watched(), lambda number: {"all": value})[-1].measured
    assert [finding.reason for finding in measured.findings] == ([Reason.SLO_MISSED] if missed else [])


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


def test_a_hopeless_step_is_given_up_only_if_asked() -> None:
    noise = np.random.default_rng(1).standard_normal(100)

    def slow(number: int) -> dict[str, float | None]:
        return {"all": 200.0 + float(noise[number])}

    decisions = drive(watched(abort_early=True), slow)
    assert len(decisions) < 12
    (measured,) = decisions[-1].measured
    assert measured.first == 2
    assert "given up early" in measured.findings[0].detail
    assert len(drive(watched(), slow)) == 22


def test_a_step_near_its_threshold_is_not_given_up() -> None:
    noise = np.random.default_rng(1).standard_normal(100)
    decisions = drive(watched(abort_early=True), lambda number: {"all": 100.0 + 10 * float(noise[number])})
    assert len(decisions) == 22
