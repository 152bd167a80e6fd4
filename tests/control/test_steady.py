"""Steady state: the criteria as arithmetic, fio's own decisions, and the stages of a step that waits for one."""

import gzip
import json
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ivypy.master.control.choices import OnLeave, Rule
from ivypy.master.control.control_state import ControlState
from ivypy.master.control.criteria import (
    Criterion,
    Score,
    drift_bound,
    fio_block,
    score,
)
from ivypy.master.control.decision import Decision
from ivypy.master.control.focus import Focus
from ivypy.master.control.observation import Observation, Phase
from ivypy.master.control.offline import ValueSeries, first_attained, windows
from ivypy.master.control.steady import Steady
from ivypy.master.stats.metric_sample import MetricSample
from ivypy.master.verdicts import Reason
from tests.support.control_specs import a_criterion, criterion_named, steady_spec

FIO = Path(__file__).parent / "fio"
FOCUS = Focus("overall_iops")


def of_seconds(criterion: Criterion, values: list[float]) -> Score:
    """The score of values that were taken each second."""
    n = len(values)
    return score(criterion, np.arange(n, dtype=np.float64) + 0.5, np.ones(n), np.array(values, dtype=np.float64))


def fio_steadystate(name: str) -> dict[str, Any]:
    text = gzip.decompress((FIO / f"{name}.json.gz").read_bytes()).decode()
    found = json.loads(text[text.index("{") :])["jobs"][0]["steadystate"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("name", "criterion", "column"),
    [
        ("v333-iops", "iops", "iops"),
        ("v333-never", "iops", "iops"),
        ("v333-iops_slope", "iops_slope", "iops"),
        ("new-iops", "iops", "iops"),
        ("new-bw_slope_abs", "bw_slope", "bw"),
        ("new-lat", "latency", "lat_ns"),
    ],
)
def test_fios_verdict_deviation_and_slope(name: str, criterion: str, column: str) -> None:
    """From the values that fio printed. One-second samples hide what is wrong in them (see the reference's 5.4)."""
    theirs = fio_steadystate(name)
    limit = theirs["ss"].split(":")[1]
    wanted = criterion_named(criterion, theirs["duration"], float(limit.rstrip("%")), limit.endswith("%"))
    ours = of_seconds(wanted, theirs["data"][column])
    assert int(ours.attained) == theirs["attained"]
    assert ours.value == pytest.approx(float(theirs["criterion"].rstrip("%")), rel=1e-4, abs=1e-6)
    if wanted.rule is Rule.DEVIATION:
        assert ours.deviation == pytest.approx(theirs["max_deviation"], rel=1e-4, abs=0.05)
    else:
        assert ours.slope == pytest.approx(theirs["slope"], rel=1e-4)


def test_fios_scaling_fault_is_not_copied() -> None:
    """fio 3.35 and later: a stall makes an interval of 1,974 ms; it multiplies where it should divide.

    Its debug lines say 18,672 and then 49,953 IOPS for an engine that did 20,000 (see control/fio/stall-debug.txt).
    The true count was 18,672 * 1000 / 1974 in 1,974 ms: 4,792 IOPS.
    """
    lines = gzip.decompress((FIO / "stall-debug.txt.gz").read_bytes()).decode().splitlines()
    checks = [line for line in lines if "rate_msec" in line]
    milliseconds = np.array([float(line.split("rate_msec: ")[1].split(",")[0]) for line in checks])
    shown = np.array([float(line.split("iops: ")[1].split(",")[0]) for line in checks])
    done = shown / (milliseconds / 1000)  # what fio multiplied, undone
    rates = done / (milliseconds / 1000)
    assert rates[4] == pytest.approx(4792, abs=1)
    lengths = milliseconds[:5] / 1000
    ours = score(criterion_named("iops", 5, 0.001), np.cumsum(lengths) - lengths / 2, lengths, rates[:5])
    assert ours.mean == pytest.approx(done[:5].sum() / lengths.sum())
    assert not ours.attained


def test_a_window_of_more_than_1024_samples_has_a_true_slope() -> None:
    """fio 3.35 and later overflow 32 bits there and see a slope of 0."""
    values = 40_000 + 0.00152 * np.arange(1030)
    ours = of_seconds(criterion_named("iops_slope", 1030, 1e-7, False), list(values))
    assert ours.slope == pytest.approx(0.00152, rel=1e-6)
    assert not ours.attained


def test_a_limit_of_zero_is_met_by_values_that_do_not_vary() -> None:
    assert of_seconds(criterion_named("iops", 5, 0.0), [100.0] * 5).attained
    assert not of_seconds(criterion_named("iops", 5, 0.0), [100.0] * 4 + [100.1]).attained


def test_a_mean_below_one_has_a_relative_slope() -> None:
    """fio divides by the whole part of the mean."""
    got = of_seconds(criterion_named("iops_slope", 5, 1.0), [0.5, 0.5, 0.5, 0.5, 0.5])
    assert got.attained and got.value == 0


@given(st.lists(st.floats(1, 1e6), min_size=2, max_size=50), st.floats(0.25, 60))
def test_a_slope_is_per_second_at_any_length(values: list[float], length_s: float) -> None:
    n = len(values)
    times = (np.arange(n, dtype=np.float64) + 0.5) * length_s
    got = score(criterion_named("iops_slope", n, 1.0), times, np.full(n, length_s), np.array(values))
    assert got.slope == pytest.approx(stats.linregress(times, values).slope, rel=1e-6, abs=1e-7 * max(values))
    assert got.mean == pytest.approx(np.mean(values))
    off = np.abs(np.array(values) - np.mean(values)).max()
    assert got.deviation == pytest.approx(off, abs=1e-9 * max(values))


@pytest.mark.parametrize(
    ("rounds", "attained", "why"),
    [
        ([100, 100, 100, 100, 100], True, "still"),
        ([98, 91, 100, 109, 99], True, "excursion 18.1, rise 8.05"),
        ([100, 80, 101, 100, 100], False, "excursion 21.8"),
        ([94, 97, 100, 103, 106], False, "excursion 12, rise 12"),
        ([100, 90, 109, 90, 100], True, "excursion 19.4, no rise"),
    ],
)
def test_snia_criterion_is_attained_only_within_its_limits(rounds: list[float], attained: bool, why: str) -> None:
    values = [value for value in rounds for _ in range(3)]
    assert of_seconds(a_criterion(Rule.SNIA, FOCUS, 15), values).attained is attained, why


def test_the_drift_bound_is_the_one_sided_bound_of_the_slope() -> None:
    times = np.arange(8.0)
    values = np.array([3.0, 1, 4, 1, 5, 9, 2, 6])
    theirs = stats.linregress(times, values)
    expected = abs(theirs.slope) + stats.t.ppf(0.999, 6) * theirs.stderr
    assert drift_bound(times, values) >= expected * (1 - 1e-9)  # more where residuals are correlated
    assert drift_bound(times[:4], values[:4]) == float("inf")


def test_no_drift_refuses_a_window_that_is_level_enough_but_still_moving() -> None:
    rising = [100 + 0.4 * n for n in range(18)]
    criterion = a_criterion(Rule.DEVIATION, FOCUS, 6, 2.0)
    careful = a_criterion(Rule.DEVIATION, FOCUS, 6, 2.0, no_drift=True)
    assert of_seconds(criterion, rising).attained
    assert not of_seconds(careful, rising).attained
    still = [100 + 0.1 * (-1) ** n for n in range(18)]
    assert of_seconds(careful, still).attained
    assert not of_seconds(careful, still[:17]).attained  # three windows are asked


class TestFinishedData:
    def first(self, values: list[float | None], **more: Any) -> tuple[int, int, float] | None:
        starts = [float(second) for second in range(len(values))]
        got = first_attained(
            windows(criterion_named("iops", 3, 1.0), ValueSeries(starts, [1.0] * len(values), values), **more)
        )
        return (got.first, got.last, got.second) if got else None

    def test_the_first_second_at_which_it_would_have_stopped(self) -> None:
        assert self.first([10.0, 50.0, 90.0, 100.0, 100.0, 100.0, 100.0]) == (3, 5, 6.0)

    def test_a_series_that_is_never_steady_has_no_window(self) -> None:
        assert self.first([1.0, 2.0, 4.0, 8.0]) is None
        assert self.first([100.0, 100.0]) is None

    def test_the_ramp_is_in_no_window(self) -> None:
        assert self.first([100.0] * 6, ramp_s=2.5) == (3, 5, 6.0)

    def test_no_window_holds_a_blank_value_or_a_break(self) -> None:
        assert self.first([100.0, None, 100.0, 100.0, 100.0]) == (2, 4, 5.0)
        assert self.first([100.0, 100.0, 100.0, 100.0, 100.0], breaks=(2,)) == (2, 4, 5.0)

    def test_by_t_it_stops_where_a_running_step_would(self) -> None:
        values = list(1000 + 20 * np.random.default_rng(1).standard_normal(200))
        criterion = a_criterion(Rule.T, FOCUS, 5, 2.0)
        got = first_attained(windows(criterion, ValueSeries([float(n) for n in range(200)], [1.0] * 200, values)))
        decisions = drive(Steady(steady_spec(criterion), warmup=0), one(values))
        assert got is not None
        assert got.last == len(decisions) - 1


def drive(state: ControlState, values: list[dict[str, float]], **marks: tuple[int, ...]) -> list[Decision]:
    """Decisions over one-second subintervals, until done or the values end."""
    phase, decisions = state.opening().next_phase, []
    for number, instances in enumerate(values):
        samples = {FOCUS: {name: MetricSample(value, 1.0) for name, value in instances.items()}}
        same, edited = number not in marks.get("changed", ()), number in marks.get("edited", ())
        state, decision = state.after(Observation(number, float(number), 1.0, phase, same, edited, samples))
        decisions.append(decision)
        phase = decision.next_phase
        if decision.done:
            break
    return decisions


def one(values: Sequence[float]) -> list[dict[str, float]]:
    return [{"all": value} for value in values]


def steady(window: int = 4, warmup: int = 0, **more: Any) -> Steady:
    criterion = a_criterion(Rule.DEVIATION, FOCUS, window, 1.0)
    return Steady(steady_spec(criterion, **more), warmup)


def stages(decisions: list[Decision]) -> str:
    return " ".join(str(decision.rows[0].cells["stage"]) for decision in decisions)


class TestStages:
    def test_without_hold_the_attained_window_is_the_measurement(self) -> None:
        decisions = drive(steady(), one([10, 50, 100, 100, 100, 100, 100]))
        (measured,) = decisions[-1].measured
        assert (measured.first, measured.last, measured.findings) == (2, 5, ())

    def test_with_hold_the_next_window_is_the_measurement(self) -> None:
        decisions = drive(steady(hold=4), one([10, 50] + [100] * 20))
        (measured,) = decisions[-1].measured
        assert (measured.first, measured.last, measured.findings) == (6, 9, ())
        assert stages(decisions).split()[-5:] == ["attained", "holding", "holding", "holding", "holding"]

    def test_leaving_while_holding_starts_again_and_is_reported(self) -> None:
        decisions = drive(steady(hold=4), one([100] * 6 + [50] + [100] * 20))
        assert "lost" in stages(decisions)
        (measured,) = decisions[-1].measured
        assert (measured.first, measured.last) == (11, 14)
        assert [finding.reason for finding in measured.findings] == [Reason.STEADY_RESTARTED]

    def test_on_leave_note_goes_on(self) -> None:
        decisions = drive(steady(hold=6, on_leave=OnLeave.NOTE), one([100] * 6 + [50] + [100] * 20))
        (measured,) = decisions[-1].measured
        assert (measured.first, measured.last) == (4, 9)
        assert [str(finding).split(" ")[0] for finding in measured.findings] == ["steady_lost[note]"]

    def test_on_leave_stop_stops(self) -> None:
        decisions = drive(steady(hold=6, on_leave=OnLeave.STOP), one([100] * 6 + [50] + [100] * 20))
        assert len(decisions) == 7
        (measured,) = decisions[-1].measured
        assert [str(finding).split(" ")[0] for finding in measured.findings] == ["steady_lost[invalid]"]

    def test_a_timeout_reports_value_and_instance(self) -> None:
        decisions = drive(steady(timeout_s=10), one([float(10 * n + 10) for n in range(30)]))
        assert len(decisions) == 10
        (finding,) = decisions[-1].measured[0].findings
        assert finding.reason is Reason.STEADY_NOT_REACHED
        assert finding.detail == "deviation of overall_iops within 1%; all is at 17.65%"

    def test_every_instance_must_be_steady(self) -> None:
        values = [{"host=a": 100.0, "host=b": 10.0 * n if n < 8 else 100.0} for n in range(30)]
        decisions = drive(steady(), values)
        assert decisions[-1].measured[0].first >= 8
        assert decisions[5].rows[0].cells["worst_instance"] == "host=b"

    @pytest.mark.parametrize(("marks", "first"), [({"edited": (2,)}, 3), ({"changed": (2,)}, 2)])
    def test_an_edit_or_a_change_of_hosts_starts_the_window_again(self, marks: Any, first: int) -> None:
        decisions = drive(steady(), one([100] * 20), **marks)
        assert decisions[-1].measured[0].first == first

    def test_the_ramp_is_warmup(self) -> None:
        state = steady(warmup=3)
        assert state.opening().next_phase is Phase.WARMUP
        decisions = drive(state, one([100] * 20))
        assert [decision.next_phase for decision in decisions[:3]] == [Phase.WARMUP, Phase.WARMUP, Phase.RUN]
        assert decisions[-1].measured[0].first == 3

    def test_by_t_it_is_measures_rule(self) -> None:
        values = list(1000 + np.random.default_rng(1).standard_normal(200))
        decisions = drive(Steady(steady_spec(a_criterion(Rule.T, FOCUS, 5, 2.0)), warmup=0), one(values))
        assert 20 <= len(decisions) < 40

    def test_what_t_does_not_know_yet_is_null_in_json(self) -> None:
        """While nothing completes, a half-width is no share of the value."""
        decisions = drive(
            Steady(steady_spec(a_criterion(Rule.T, FOCUS, 5, 2.0), timeout_s=20), warmup=0), one([0.0] * 20)
        )
        blocks = [decision.steady for decision in decisions if decision.steady is not None]
        assert blocks and all((block["criterion"], block["attained"]) == (None, 0) for block in blocks)
        json.dumps(blocks, allow_nan=False)
        assert "inf" not in decisions[-1].measured[0].findings[0].detail

    @pytest.mark.parametrize(
        ("rule", "ios", "why"),
        [
            (Rule.DEVIATION, 300, "in a subinterval, 300 of the 1000 that it needs; lengthen subinterval"),
            (Rule.T, 30, "in the window"),
        ],
    )
    def test_a_blank_percentile_is_never_steady_and_is_reported(self, rule: Rule, ios: int, why: str) -> None:
        focus = Focus("overall_service_us_p99", fraction=0.99)
        current: ControlState = Steady(steady_spec(a_criterion(rule, focus, 4), timeout_s=20), warmup=0)
        said = []
        for number in range(20):
            few, many = (MetricSample(0, 0, np.array([count], dtype=np.uint64), 500) for count in (ios, 2000))
            samples = {focus: {"host=a": many, "host=b": few}}
            current, decision = current.after(Observation(number, number, 1.0, Phase.RUN, samples=samples))
            said.append(decision.progress)
        blank = f"overall_service_us_p99 of host=b is blank: fewer than 10 I/Os beyond it {why}"
        assert said[2] == f"seeking: 3 of {4 if rule is Rule.DEVIATION else 12} subintervals for a window"
        assert said[12] == f"seeking: {blank}"
        (finding,) = decision.measured[0].findings
        assert (finding.reason, finding.detail) == (Reason.STEADY_NOT_REACHED, blank)
        assert decision.steady is None

    def test_a_metric_without_values_is_reported(self) -> None:
        focus = Focus("write_service_us_p99", fraction=0.99)
        current: ControlState = Steady(steady_spec(a_criterion(Rule.DEVIATION, focus, 2)), warmup=0)
        for number in range(3):
            samples = {focus: {"all": MetricSample(0, 0, None)}}
            current, decision = current.after(Observation(number, number, 1.0, Phase.RUN, samples=samples))
        assert decision.progress == "seeking: write_service_us_p99 of all is blank: no I/O in a subinterval"

    def test_within_the_limit_but_not_steady_reports_what_is_missing(self) -> None:
        correlated = one([1000 + 20 * np.sin(n / 2) for n in range(24)])
        decisions = drive(Steady(steady_spec(a_criterion(Rule.T, FOCUS, 5, 50.0), timeout_s=24), warmup=0), correlated)
        (finding,) = decisions[-1].measured[0].findings
        assert finding.detail.endswith(" of 20 effective samples")
        careful = Steady(steady_spec(a_criterion(Rule.DEVIATION, FOCUS, 4, 1.0, no_drift=True), timeout_s=14), warmup=0)
        said = [decision.progress for decision in drive(careful, one([1000 + 3.0 * n for n in range(20)]))]
        assert said[5].endswith("now 0.4453% (all), 6 of 12 subintervals to see a drift")
        assert said[12].endswith("now 0.4363% (all), it may drift by 12 in a window")

    def test_a_level_window_that_drifts_is_lost_at_the_end_of_hold_not_within_it(self) -> None:
        """In 4 subintervals it moves by 0.9 %, which the criterion allows."""
        criterion = a_criterion(Rule.DEVIATION, FOCUS, 4, 1.0, no_drift=True)
        level = [100 + 0.1 * (-1) ** n for n in range(12)]
        rising = [100 + 0.3 * n for n in range(30)]
        state = Steady(steady_spec(criterion, hold=6, on_leave=OnLeave.STOP), warmup=0)
        decisions = drive(state, one([*level, *rising]))
        assert stages(decisions) == " ".join([*["seeking"] * 11, "attained", *["holding"] * 5, "lost"])
        still = drive(state, one([*level, *level, *level]))
        assert stages(still) == " ".join([*["seeking"] * 11, "attained", *["holding"] * 6])
        assert (still[-1].measured[0].first, still[-1].measured[0].last) == (12, 17)

    def test_the_worst_instance_has_not_attained_though_another_is_further_off(self) -> None:
        criterion = a_criterion(Rule.DEVIATION, FOCUS, 4, 1.0, no_drift=True)
        values = [{"host=a": 100 + 0.55 * (-1) ** n, "host=b": 100 + 0.3 * n} for n in range(14)]
        decisions = drive(Steady(steady_spec(criterion), warmup=0), values)
        assert "(host=b), it may drift" in decisions[-1].progress
        assert decisions[-1].rows[0].cells["worst_instance"] == "host=b"

    def test_the_timeout_counts_from_where_the_step_or_level_began(self) -> None:
        state: ControlState = steady(timeout_s=10).begun(20)
        for number in range(20, 30):
            samples = {FOCUS: {"all": MetricSample(10.0 * number, 1.0)}}
            state, decision = state.after(Observation(number, float(number), 1.0, Phase.RUN, samples=samples))
            assert decision.done is (number == 29)

    def test_a_level_begins_with_nothing_of_the_one_before(self) -> None:
        state: ControlState = steady(hold=2, warmup=1)
        first: ControlState = state
        for number, value in enumerate([0, 100, 100, 100, 100, 50, 100]):
            samples = {FOCUS: {"all": MetricSample(float(value), 1.0)}}
            state, _ = state.after(Observation(number, float(number), 1.0, Phase.RUN, samples=samples))
        assert isinstance(state, Steady) and isinstance(first, Steady) and state.left == (5,)
        assert state.begun(7) == Steady(first.spec, 1, since=7)

    def test_nothing_of_the_warmup_is_used_after_a_restart(self) -> None:
        assert (steady(warmup=5).restarted(2).first, steady(warmup=5).restarted(9).first) == (5, 9)

    def test_a_steady_state_that_is_cut_short_has_what_there_is(self) -> None:
        assert [one.reason for one in steady().cut_short(3).findings] == [Reason.INTERRUPTED]
        state: ControlState = steady()
        for number in range(6):
            samples = {FOCUS: {"all": MetricSample(10.0 * number, 1.0)}}
            state, _ = state.after(Observation(number, float(number), 1.0, Phase.RUN, samples=samples))
        found = state.cut_short(5)
        assert (found.first, found.last) == (2, 5)
        assert [one.reason for one in found.findings] == [Reason.STEADY_NOT_REACHED, Reason.SHORTENED]

    def test_a_hold_that_times_out_reports_how_long_it_held(self) -> None:
        decisions = drive(steady(hold=10, timeout_s=8), one([100] * 20))
        (finding,) = decisions[-1].measured[0].findings
        assert finding.detail == "attained in subinterval 3, held 4 of 10 subintervals"

    def test_a_row_and_the_json_block_hold_the_window(self) -> None:
        decisions = drive(steady(), one([100, 104, 96, 100, 102]))
        cells, block = decisions[-1].rows[0].cells, decisions[-1].steady
        assert (cells["mean"], cells["value"], cells["max_deviation"]) == pytest.approx((100.5, 450 / 100.5, 4.5))
        assert (cells["limit"], cells["limit_unit"], cells["attained"]) == (1.0, "percent", False)
        assert (cells["complete_subintervals"], cells["times_left"], cells["drift_bound"]) == (5, 0, None)
        assert block is not None and block["data"] == {"overall_iops": [104, 96, 100, 102], "overall_iops_mean": 100.5}
        nothing = drive(Steady(steady_spec(a_criterion(Rule.T, FOCUS, 5, 2.0)), warmup=0), one([0.0] * 12))
        assert nothing[-1].rows[0].cells["value"] is None
        noise = 1 + 0.01 * np.random.default_rng(3).standard_normal(40)
        slow = list(
            1000 * noise * np.minimum(np.arange(40) / 20 + 0.5, 1.0) * np.minimum(np.arange(40) / 28 + 0.1, 1.0)
        )
        unknown = drive(Steady(steady_spec(a_criterion(Rule.T, FOCUS, 5, 2.0)), warmup=0), one(slow))
        assert (unknown[-1].rows[0].cells["value"], unknown[-1].rows[0].cells["max_deviation"]) == (None, None)

    def test_a_blank_window_is_explained_by_its_subinterval_with_the_fewest_ios(self) -> None:
        focus = Focus("overall_service_us_p99", fraction=0.99)
        current: ControlState = Steady(steady_spec(a_criterion(Rule.DEVIATION, focus, 2)), warmup=0)
        for number, ios in enumerate((900, 300)):
            samples = {focus: {"all": MetricSample(0, 0, np.array([ios], dtype=np.uint64), 500)}}
            current, decision = current.after(Observation(number, number, 1.0, Phase.RUN, samples=samples))
        assert "300 of the 1000 that it needs" in decision.progress


def test_a_slope_is_that_of_the_middles_of_subintervals_of_any_length() -> None:
    state: ControlState = Steady(steady_spec(a_criterion(Rule.SLOPE, FOCUS, 4, 1.0)), warmup=0)
    starts, lengths = (0.0, 1.0, 4.0, 5.0), (1.0, 3.0, 1.0, 2.0)
    for number, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        samples = {FOCUS: {"all": MetricSample((100 + 2 * (start + length / 2)) * length, length)}}
        state, _ = state.after(Observation(number, start, length, Phase.RUN, samples=samples))
    assert isinstance(state, Steady)
    got = state.standing().score
    assert got is not None and got.slope == pytest.approx(2.0)


def test_of_a_long_step_it_keeps_what_a_score_looks_at_and_of_a_restart_nothing() -> None:
    state: ControlState = steady(window=4)
    for number in range(20):
        samples = {FOCUS: {"all": MetricSample(100.0 * (1 + number % 2), 1.0)}}
        state, _ = state.after(Observation(number, float(number), 1.0, Phase.RUN, samples=samples))
    assert isinstance(state, Steady)
    assert (len(state.parts), len(state.values), state.complete, state.may_end) == (4, 4, 20, ())
    again = state.restarted(20)
    assert (again.parts, again.values, again.complete, again.attained) == ((), (), 0, None)


def test_an_infinite_score_is_null_in_the_json_block() -> None:
    criterion = a_criterion(Rule.T, FOCUS, 5, 2.0)
    block = fio_block(criterion, Score(inf, False, 100.0, inf, 0.0), 5, {"overall_iops": [100.0] * 5})
    assert (block["criterion"], block["max_deviation"]) == (None, None)
    json.dumps(block, allow_nan=False)


def test_the_json_block_reads_like_fios() -> None:
    theirs = fio_steadystate("v333-iops")
    criterion = criterion_named("iops", 5, 5.0)
    ours = fio_block(criterion, of_seconds(criterion, theirs["data"]["iops"]), 5, {"iops": theirs["data"]["iops"]})
    assert set(theirs) == set(ours)
    assert ours["criterion"] == theirs["criterion"]
    assert ours["attained"] == theirs["attained"]


@pytest.mark.parametrize(
    ("criterion", "fault"),
    [
        (a_criterion(Rule.DEVIATION, FOCUS, 1), "at least two"),
        (a_criterion(Rule.SNIA, FOCUS, 12), "multiple of five"),
        (a_criterion(Rule.SLOPE, FOCUS, 6, -1), "limit is -1"),
        (a_criterion(Rule.T, FOCUS, 6, 0), "above 0"),
        (a_criterion(Rule.DEVIATION, FOCUS, 2, 0), ""),
    ],
)
def test_impossible_criteria_are_refused_with_the_reason(criterion: Criterion, fault: str) -> None:
    found = [text for _, text in criterion.faults()]
    assert fault in found[0] if fault else not found
