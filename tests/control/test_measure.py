"""Measure: what window it takes, when it passes, what it says when it does not."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf

import numpy as np
import pytest

from ivypy.master.control.choices import Rule
from ivypy.master.control.control_state import ControlState
from ivypy.master.control.decision import Decision
from ivypy.master.control.focus import Focus
from ivypy.master.control.measure import (
    Measure,
    MeasureSpec,
    WindowCheck,
    WindowPart,
    check_window,
    describe_check,
    remaining_s,
    rule_t,
)
from ivypy.master.control.observation import Observation, Phase
from ivypy.master.stats.estimate import Estimate
from ivypy.master.stats.metric_sample import MetricSample
from ivypy.master.stats.trend import trend_probabilities
from ivypy.master.verdicts import Reason
from ivypy.protocol.histogram import BUCKETS, bucket_of
from tests.support.control_specs import a_criterion, conditions, measure_spec

FOCUS = Focus("overall_iops")
Values = Callable[[int], Mapping[str, float]]  # subinterval -> value per instance


def drive(
    state: ControlState, values: Values, most: int = 400, edited: tuple[int, ...] = (), changed: tuple[int, ...] = ()
) -> list[Decision]:
    """Decisions of each subinterval of 5 s, until done."""
    phase, decisions = state.opening().next_phase, []
    for number in range(most):
        samples = {FOCUS: {name: MetricSample(value * 5.0, 5.0) for name, value in values(number).items()}}
        interval = Observation(number, number * 5.0, 5.0, phase, number not in changed, number in edited, samples)
        state, decision = state.after(interval)
        decisions.append(decision)
        phase = decision.next_phase
        if decision.done:
            return decisions
    raise AssertionError(f"not done after {most} subintervals")


def noisy(seed: int, sd: float, mean: float = 1000.0) -> Values:
    values = mean * (1 + sd * np.random.default_rng(seed).standard_normal(1000))
    return lambda number: {"all": float(values[number])}


def test_twenty_effective_samples_are_needed_even_with_little_noise() -> None:
    decisions = drive(Measure(measure_spec(FOCUS), warmup=2), noisy(1, 1e-4))
    (measured,) = decisions[-1].measured
    assert measured.first == 2
    assert not measured.findings
    assert 20 <= measured.last - measured.first + 1 <= 40


def test_min_is_a_length_in_seconds() -> None:
    decisions = drive(Measure(measure_spec(FOCUS, min_s=300), warmup=1), noisy(1, 1e-4))
    (measured,) = decisions[-1].measured
    assert measured.last - measured.first + 1 == 60


def test_phases_are_warmup_run_and_tail() -> None:
    decisions = drive(Measure(measure_spec(FOCUS), warmup=3), noisy(1, 1e-4))
    assert Measure(measure_spec(FOCUS), warmup=3).opening().next_phase is Phase.WARMUP
    assert [decision.next_phase for decision in decisions[:3]] == [Phase.WARMUP, Phase.WARMUP, Phase.RUN]
    assert decisions[-1].next_phase is Phase.TAIL


def test_more_noise_takes_a_longer_window() -> None:
    lengths = [len(drive(Measure(measure_spec(FOCUS), warmup=0), noisy(4, sd), 1000)) for sd in (0.02, 0.06, 0.1)]
    assert lengths[0] < lengths[1] < lengths[2]


def test_the_beginning_is_dropped_where_there_is_a_trend() -> None:
    """Ten subintervals of ramp, then level: the window begins behind the ramp, and not at the shortest that passes."""
    noise = noisy(5, 0.002)

    def ramp(number: int) -> Mapping[str, float]:
        return {"all": noise(number)["all"] * (min(number, 10) / 10 + 0.01)}

    (measured,) = drive(Measure(measure_spec(FOCUS, min_s=150), warmup=0), ramp)[-1].measured
    assert measured.first >= 9
    assert not measured.findings


def test_every_instance_must_pass_on_one_window() -> None:
    quiet, wild = noisy(1, 1e-4), noisy(2, 0.05)

    def both(number: int) -> Mapping[str, float]:
        return {"host=a": quiet(number)["all"], "host=b": wild(number)["all"]}

    decisions = drive(Measure(measure_spec(FOCUS), warmup=0), both)
    alone = drive(Measure(measure_spec(FOCUS), warmup=0), lambda number: {"host=b": wild(number)["all"]})
    assert len(decisions) >= len(alone)
    row = decisions[-2].rows[0].cells
    assert row["worst_instance"] == "host=b"
    assert (row["passing_instances"], row["instances"]) == (1, 2)


def test_an_edit_starts_the_window_after_it() -> None:
    (measured,) = drive(Measure(measure_spec(FOCUS), warmup=0), noisy(1, 1e-4), edited=(15,))[-1].measured
    assert measured.first == 16


def test_a_change_of_hosts_starts_the_window_with_it() -> None:
    (measured,) = drive(Measure(measure_spec(FOCUS), warmup=0), noisy(1, 1e-4), changed=(15,))[-1].measured
    assert measured.first == 15


def test_a_timeout_is_invalid_and_keeps_the_best_window_not_the_last() -> None:
    """Quiet at first, then wild: the best window ends before the wild part."""
    quiet, wild = noisy(1, 0.03), noisy(2, 0.8)

    def worse(number: int) -> Mapping[str, float]:
        return quiet(number) if number < 40 else wild(number)

    decisions = drive(Measure(measure_spec(FOCUS, accuracy=0.001, timeout_s=300), warmup=0), worse)
    assert len(decisions) == 60
    (measured,) = decisions[-1].measured
    assert [finding.reason for finding in measured.findings] == [Reason.ACCURACY_NOT_REACHED]
    assert "target 0.1 %" in measured.findings[0].detail
    assert measured.last < 45


def test_an_instance_without_value_never_passes_and_is_named() -> None:
    decisions = drive(
        Measure(measure_spec(FOCUS, timeout_s=120), warmup=0), lambda number: {"host=a": 100.0, "host=idle": 0.0}
    )
    assert decisions[-2].rows[0].cells["worst_instance"] == "host=idle"
    assert decisions[-1].measured[0].findings[0].reason is Reason.ACCURACY_NOT_REACHED


def wave(number: int) -> Mapping[str, float]:
    """Slow and level: its value is well known, by few independent subintervals."""
    return {"all": 1000 + 20 * np.sin(number / 2) + float(_JITTER[number])}


_JITTER = np.random.default_rng(6).standard_normal(1000)


def test_a_timeout_names_the_condition_that_failed() -> None:
    def finding(values: Values, goal: MeasureSpec, edited: tuple[int, ...] = ()) -> str:
        (measured,) = drive(Measure(goal, warmup=0), values, edited=edited)[-1].measured
        (found,) = measured.findings
        return found.detail

    few = measure_spec(FOCUS, accuracy=0.5, min_s=0, timeout_s=120)
    assert re.fullmatch(
        r"overall_iops of all: \d+(\.\d)? of 20 effective samples \(\+/- \d+\.\d+ %, target 50 %\)", finding(wave, few)
    )
    short = measure_spec(FOCUS, min_s=120, timeout_s=185)
    detail = finding(noisy(1, 1e-4), short, edited=(15,))
    assert re.fullmatch(r"overall_iops of all: (19|20)?.*105 of 120 s \(\+/- 0\.\d+ %, target 2 %\)", detail)
    wide = measure_spec(FOCUS, accuracy=0.01, timeout_s=150)
    assert re.fullmatch(r"overall_iops of all \+/- \d\d(\.\d)? %, target 1 %", finding(noisy(2, 0.3), wide))
    young = measure_spec(FOCUS, timeout_s=100)
    assert finding(noisy(1, 0.1), young, edited=(14,)) == "overall_iops: 5 of 12 subintervals for a window"

    def rising(number: int) -> Mapping[str, float]:
        return {"all": 100.0 * (number + 1)}

    trend = "overall_iops: a trend in every window of 12 subintervals and more"
    assert finding(rising, measure_spec(FOCUS, timeout_s=150)) == trend


def test_the_worst_instance_is_the_one_that_keeps_the_window_from_passing() -> None:
    """One is the wider, and passes; the other has too few effective samples."""
    noise = noisy(3, 0.02)

    def both(number: int) -> Mapping[str, float]:
        return {"host=noisy": noise(number)["all"], "host=slow": wave(number)["all"]}

    decisions = drive(Measure(measure_spec(FOCUS, accuracy=0.1, min_s=0, timeout_s=200), warmup=0), both)
    cells = decisions[21].rows[0].cells
    assert (cells["worst_instance"], cells["passing_instances"]) == ("host=slow", 1)
    assert isinstance(cells["remaining_s"], float) and cells["remaining_s"] > 0
    assert "effective samples" in decisions[21].progress


def test_every_subinterval_reports_the_progress() -> None:
    said = [decision.progress for decision in drive(Measure(measure_spec(FOCUS), warmup=2), noisy(3, 0.05))]
    assert said[:2] == ["", ""]
    assert said[2] == "overall_iops: 1 of 12 subintervals for a window"
    assert said[12] == "overall_iops: 11 of 12 subintervals for a window"
    number = r"\d+(\.\d+)?"
    line = rf"overall_iops of all:? .*\+/- {number} %, target 2 %.*, about \d+ s more"
    assert all(re.fullmatch(line, text) for text in said[13:-1])
    assert re.fullmatch(rf"overall_iops of all \+/- {number} %, target 2 %", said[-1])


def test_remaining_time_estimate_shrinks_to_zero() -> None:
    decisions = drive(Measure(measure_spec(FOCUS), warmup=0), noisy(3, 0.05))
    left = [decision.rows[0].cells["remaining_s"] for decision in decisions if decision.rows]
    assert isinstance(left[0], float) and left[0] > 0
    assert isinstance(left[-1], float) and left[-1] <= 0
    assert "s more" in decisions[-3].progress


def test_a_percentile_is_of_the_merged_window() -> None:
    """Half the subintervals fast, half slow: the p50 of the whole lies in one of the two, not between them."""
    focus = Focus("overall_service_us_p90", fraction=0.9)
    fast, slow = np.zeros(BUCKETS, dtype=np.uint64), np.zeros(BUCKETS, dtype=np.uint64)
    fast[bucket_of(100_000)] = 1000
    slow[bucket_of(900_000)] = 500
    state: ControlState = Measure(measure_spec(focus, timeout_s=200), warmup=0)
    for number in range(40):
        samples = {focus: {"all": MetricSample(0, 0, slow if number % 2 else fast)}}
        state, decision = state.after(Observation(number, number * 5.0, 5.0, Phase.RUN, samples=samples))
    value = decision.rows[0].cells["value"]
    assert isinstance(value, float) and value == pytest.approx(900, rel=1 / 64)


def test_a_timeout_that_the_warmup_uses_up_is_impossible() -> None:
    step = conditions(5.0, warmup=6)
    assert not list(measure_spec(FOCUS, timeout_s=130).faults(step, True))
    assert list(measure_spec(FOCUS, timeout_s=129).faults(step, True)) == [
        ("timeout", "timeout is 129 s; no measurement can end before 130 s, 30 s of it warmup")
    ]


@pytest.mark.parametrize(
    ("spec", "key", "fault"),
    [
        (measure_spec(FOCUS, accuracy=0), "accuracy", "accuracy is 0"),
        (measure_spec(FOCUS, confidence=95), "confidence", "between 0 and 100%"),
        (measure_spec(FOCUS, timeout_s=30), "timeout", "no measurement can end before 100 s"),
        (measure_spec(FOCUS, min_s=1000), "timeout", "timeout is 900 s"),
    ],
)
def test_impossible_measure_is_refused_with_the_reason(spec: MeasureSpec, key: str, fault: str) -> None:
    ((found, text),) = spec.faults(conditions(5.0), True)
    assert found == key and fault in text
    assert not list(measure_spec(FOCUS).faults(conditions(5.0), True))


def test_a_thousand_instances_are_checked_as_each_would_be_alone() -> None:
    """All at once, and one by one: the same numbers."""
    random = np.random.default_rng(11)
    values = 1000 * (1 + 0.05 * random.standard_normal((40, 200)))
    values[:, 7] = 0.0
    goal = measure_spec(FOCUS, accuracy=0.02)
    names = [f"host={place}" for place in range(200)]
    samples = [dict(zip(names, (MetricSample(5 * v, 5.0 if v else 0.0) for v in row), strict=True)) for row in values]
    parts = tuple(WindowPart(number, 5.0 * number + 5, 5.0, row) for number, row in enumerate(samples))
    together = check_window(goal, parts)
    assert together is not None and together.worst == "host=7" and together.estimate is None
    alone = [
        check_window(goal, tuple(replace(part, samples={name: part.samples[name]}) for part in parts)) for name in names
    ]
    assert together.passing == sum(one is not None and one.passing for one in alone)
    without = {name for name in names if name != "host=7"}
    rest = check_window(goal, tuple(replace(part, samples={n: part.samples[n] for n in without}) for part in parts))
    worst = max((one for one in alone if one is not None and one.estimate), key=lambda one: one.shortfall)
    assert rest is not None and rest.worst == worst.worst
    assert rest.shortfall == pytest.approx(worst.shortfall)


def window_parts(columns: Mapping[str, np.ndarray]) -> tuple[WindowPart, ...]:
    """Of subintervals of 5 s; the values of each instance."""
    rows = zip(*columns.values(), strict=True)
    return tuple(
        WindowPart(
            number, 5.0 * number + 5, 5.0,
            {name: MetricSample(5 * float(value), 5.0) for name, value in zip(columns, row, strict=True)},
        )
        for number, row in enumerate(rows)
    )  # fmt: skip


@pytest.mark.parametrize("ramp", range(8, 30, 3))
def test_after_a_trend_the_window_begins_a_tenth_later_than_where_it_is_last_seen(ramp: int) -> None:
    """A rise of a half in the first `ramp` subintervals."""
    noise = 1 + 0.01 * np.random.default_rng(3).standard_normal(40)
    values = 1000 * noise * np.minimum(np.arange(40) / (2 * ramp) + 0.5, 1.0)
    starts = range(0, 29, 4)  # tenths; the last leaves 12 subintervals
    level = [trend_probabilities(values[start:, None] / 1000, 0.01)[0] >= 0.01 for start in starts]
    place = level.index(True)
    found = check_window(measure_spec(FOCUS), window_parts({"all": values}))
    assert found is not None
    assert found.first == (starts[min(place + 1, len(starts) - 1)] if place else 0)
    assert place > 0 or ramp > 20  # what rises nearly throughout is as likely to be slow noise


def test_noise_that_one_instance_of_many_shows_is_no_trend() -> None:
    """One in a hundred instances looks so by chance; alone it would be a trend."""
    random = np.random.default_rng(4)
    level = {f"host={n}": 1000 * (1 + 0.001 * random.standard_normal(40)) for n in range(100)}
    noise = random.standard_normal(40)
    for slope in np.linspace(0.0, 0.1, 400):
        leaning = 1000 * (1 + 0.001 * (noise + slope * np.arange(40)))
        probability = trend_probabilities(leaning[:, None] / 1000, 0.01)[0]
        if 0.0005 < probability < 0.005:
            break
    else:
        raise AssertionError("no slope looks like a trend of one instance alone")
    firsts = []
    for columns in ({"host=x": leaning}, level, {**level, "host=x": leaning}):
        found = check_window(measure_spec(FOCUS), window_parts(columns))
        assert found is not None
        firsts.append(found.first)
    assert firsts[0] > 0 and firsts[1:] == [0, 0]


def test_nothing_of_the_warmup_is_measured_after_a_restart() -> None:
    state = Measure(measure_spec(FOCUS), warmup=5)
    assert (state.restarted(2).first, state.restarted(9).first) == (5, 9)


def test_the_timeout_counts_from_where_the_measurement_began() -> None:
    state: ControlState = Measure(measure_spec(FOCUS, accuracy=1e-6, timeout_s=100), warmup=0, since=20)
    for number in range(20, 40):
        samples = {FOCUS: {"all": MetricSample(5000.0 + number % 7, 5.0)}}
        state, decision = state.after(Observation(number, number * 5.0, 5.0, Phase.RUN, samples=samples))
        assert decision.done is (number == 39)


def test_a_measurement_that_is_cut_short_has_what_there_is() -> None:
    empty = Measure(measure_spec(FOCUS), warmup=0)
    assert [one.reason for one in empty.cut_short(7).findings] == [Reason.INTERRUPTED]
    begun = replace(empty, parts=window_parts({"all": np.full(3, 100.0)}))
    found = begun.cut_short(7)
    assert (found.first, found.last) == (0, 7)
    assert [one.reason for one in found.findings] == [Reason.ACCURACY_NOT_REACHED, Reason.SHORTENED]


def test_a_timeout_without_any_subinterval_measures_none() -> None:
    (measured,) = drive(Measure(measure_spec(FOCUS, timeout_s=100), warmup=0), noisy(1, 0.1), edited=(19,))[-1].measured
    assert (measured.first, measured.last) == (20, 19)


def window_check(relative: float, shortfall: float, effective: float = 50.0, length_s: float = 100.0) -> WindowCheck:
    got = Estimate(1000.0, 1000.0 * relative, 20, effective)
    return WindowCheck(0, 19, "all", got, shortfall, 0, 1, length_s, False)


@pytest.mark.parametrize(
    ("check", "seconds"),
    [
        (window_check(0.04, 2.0), 300.0),  # half the width takes four times as long
        (window_check(0.01, 0.5), 20.0),  # to the shortest that the plan allows
        (window_check(0.04, inf), None),
        (window_check(0.0, 0.0), None),
        (replace(window_check(0.04, 2.0), estimate=None), None),
    ],
)
def test_the_time_that_is_left_follows_from_the_width(check: WindowCheck, seconds: float | None) -> None:
    assert remaining_s(check, measure_spec(FOCUS, min_s=120.0)) == seconds


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (window_check(0.04, 2.0), "overall_iops of all +/- 4 %, target 2 %"),
        (window_check(0.04, 2.0, 15.0), "overall_iops of all +/- 4 %, target 2 %, 15 of 20 effective samples"),
        (window_check(0.02, 1.2, 15.0), "overall_iops of all: 15 of 20 effective samples (+/- 2 %, target 2 %)"),
        (window_check(0.01, 1.0, 20.0), "overall_iops of all +/- 1 %, target 2 %"),
        (window_check(0.01, 1.0, 20.0, 50.0), "overall_iops of all: 50 of 60 s (+/- 1 %, target 2 %)"),
        (window_check(inf, inf), "overall_iops of all +/- ?, target 2 %"),
        (replace(window_check(inf, inf), estimate=None), "overall_iops of all is blank: none was seen in the window"),
    ],
)
def test_a_window_is_described_by_what_it_lacks_first(check: WindowCheck, text: str) -> None:
    assert describe_check(check, measure_spec(FOCUS, min_s=60.0)) == text


def test_a_row_holds_the_check_of_its_window() -> None:
    decisions = drive(Measure(measure_spec(FOCUS, timeout_s=100), warmup=0), noisy(3, 0.2))
    cells = decisions[14].rows[0].cells
    found = check_window(
        measure_spec(FOCUS), window_parts({"all": np.array([noisy(3, 0.2)(n)["all"] for n in range(15)])})
    )
    assert found is not None and found.estimate is not None
    assert cells["half_width_percent"] == pytest.approx(100 * found.estimate.half_width / found.estimate.value)
    assert (cells["value"], cells["effective_samples"]) == pytest.approx(
        (found.estimate.value, found.estimate.effective)
    )
    assert (cells["accuracy_percent"], cells["confidence_percent"]) == pytest.approx((2.0, 95.0))
    assert (cells["first_subinterval"], cells["last_subinterval"], cells["dropped_for_trend"]) == (0, 14, 0)


def test_a_row_has_no_half_width_where_none_is_known() -> None:
    decisions = drive(
        Measure(measure_spec(FOCUS, timeout_s=100), warmup=0), lambda n: {"all": 150.0 if n < 10 else 100.0}
    )
    cells = decisions[12].rows[0].cells  # less than one effective sample
    assert cells["value"] == pytest.approx(1800 / 13) and cells["half_width_percent"] is None


def test_a_window_whose_last_subinterval_nobody_was_in_is_not_checked() -> None:
    parts = window_parts({"all": np.full(30, 100.0)})
    assert check_window(measure_spec(FOCUS), parts) is not None
    assert check_window(measure_spec(FOCUS), (*parts[:-1], replace(parts[-1], samples={}))) is None


def test_it_may_end_with_its_best_window() -> None:
    state: ControlState = Measure(measure_spec(FOCUS, accuracy=1e-6), warmup=0)
    assert isinstance(state, Measure) and state.may_end == ()
    for number in range(25):
        samples = {FOCUS: {"all": MetricSample(5000.0 + number % 7, 5.0)}}
        state, _ = state.after(Observation(number, number * 5.0, 5.0, Phase.RUN, samples=samples))
    assert isinstance(state, Measure) and state.best is not None and state.may_end == (state.best.last,)


def test_rule_t_is_a_measurement_of_any_length() -> None:
    spec = rule_t(a_criterion(Rule.T, FOCUS, 5, 2.0), 0.9)
    assert (spec.accuracy, spec.confidence, spec.min_s, spec.timeout_s) == (0.02, 0.9, 0.0, inf)
