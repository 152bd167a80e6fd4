"""What a step asks of control: how it is read, its description, and every fault at its place."""

import pytest

from ivypy.master.control.autopid import AutoPid
from ivypy.master.control.choices import OnDisturbance
from ivypy.master.control.control_spec import ControlSpec
from ivypy.master.control.feedback import Calibration, PidSpec
from ivypy.master.control.fixed import FixedSpec
from ivypy.master.control.focus import Focus
from ivypy.master.control.load_level import RunFacts
from ivypy.master.control.measure import MeasureSpec
from ivypy.master.control.pid import Pid
from ivypy.master.control.steady import SteadySpec
from ivypy.master.control.steer import Steered
from ivypy.master.errors import PlanError
from ivypy.master.plan.attempts import OnInvalid
from ivypy.master.plan.checks.metric_checks import kind_of
from ivypy.master.plan.describe import describe
from ivypy.master.plan.load import read
from ivypy.master.plan.model import Plan
from ivypy.master.plan.read.yaml_positions import PlanFault, PlanFaults
from ivypy.master.rollup.figures import CATEGORIES, FLUSH, OVERALL, RELEASES
from ivypy.master.rollup.metrics import unit_of
from ivypy.master.text.metric_amounts import amount_in_words, format_amount, parse_amount
from ivypy.master.text.plan_parameters import OfStep
from ivypy.master.text.suggestions import OLD_NAMES
from ivypy.protocol.counters import Kind
from tests.support.control_specs import SETTLES_S, measure_spec
from tests.support.plan import completed

P99 = "overall_response_us_p99"


def plan(*goes: str, rest: str = "") -> Plan:
    steps = "".join(f"  - go: {{ name: s{i}, {go}, subinterval: 5s }}\n" for i, go in enumerate(goes))
    return read(completed(f"rollups: [ host ]\n{rest}steps:\n{steps}"), "p.yaml")


def checked(text: str) -> PlanFault | None:
    """The only fault of a plan, if it has one."""
    try:
        read(text, "p.yaml")
    except PlanFaults as faults:
        (fault,) = faults.faults
        return fault
    return None


def asked(go: str, rest: str = "") -> ControlSpec:
    return plan(go, rest=rest).steps[0].control


@pytest.mark.parametrize(
    ("go", "purpose", "tail"),
    [
        ("measure: 60s", "rate service", 0),
        (f"slo: {{ metric: {P99}, at_most: 5ms }}", "response", 0.99),
        (f"measure: {{ metric: overall_iops }}, slo: {{ metric: {P99}, at_most: 5ms }}", "rate response", 0.99),
        (f"slo: [{{ metric: {P99}, at_most: 5ms }}, {{ metric: {P99}_9, at_most: 9ms }}]", "response", 0.999),
        ("steady: { criterion: snia, window: 50s, metric: overall_service_us_mean }", "service", 0),
        ("steady: { criterion: iops }", "rate", 0),
        ("slo: { metric: cpu_busy_percent, at_most: 50% }", "rate", 0),
        (f"find: {{ metric: {P99}, target: 5ms }}", "rate response", 0.99),
        (f"control: {{ pid: {{ metric: {P99}, target: 5ms, low_iops: 500, high_iops: 900 }} }}", "response", 0.99),
        ("measure: 10s, staircase: { start: 100, end: 200, step: 100 }", "rate service", 0),
        ("measure: 10s, profile: { ramp: [100, 200] }", "rate service", 0),
    ],
)
def test_a_step_is_for_the_figures_that_it_looks_at(go: str, purpose: str, tail: float) -> None:
    control = asked(go, "workloads: { oltp: { iops: 1000 } }\n")
    assert control.purpose == set(purpose.split())
    assert control.tail == tail


@pytest.mark.parametrize(
    ("metric", "text", "amount"),
    [
        (P99, "1ms", 1000.0),
        (P99, "1.5us", 1.5),
        ("overall_iops", "5k", 5000.0),
        ("read_mib_per_s", "200MiB/s", 200.0),
        ("read_mib_per_s", "1GiB/s", 1024.0),
        ("cpu_busy_percent", "80%", 80.0),
    ],
)
def test_an_amount_has_the_unit_of_its_metric(metric: str, text: str, amount: float) -> None:
    assert parse_amount(unit_of(metric), text) == pytest.approx(amount)
    assert parse_amount(unit_of(metric), format_amount(unit_of(metric), amount)) == pytest.approx(amount)


@pytest.mark.parametrize(
    ("metric", "text", "remedy"),
    [
        (P99, "1000", "write 1000us for microseconds"),
        ("overall_iops", "max", "write for example 5000"),
        ("overall_iops", "1ms", "'1ms' is not a number of I/Os per second; write for example 5000 or 5k$"),
        ("overall_iops", "50% of step max", "is not a number of I/Os per second; write for example 5000 or 5k$"),
        ("read_mib_per_s", "200", "write for example 200MiB/s"),
        ("cpu_busy_percent", "80", "write 80% if percent is meant"),
    ],
)
def test_an_amount_without_its_unit_is_refused(metric: str, text: str, remedy: str) -> None:
    with pytest.raises(ValueError, match=remedy):
        parse_amount(unit_of(metric), text)


@pytest.mark.parametrize(
    ("metric", "amount", "words"),
    [
        (P99, 1.0, "1 us"),
        (P99, 83.21537, "83.2154 us"),
        (P99, 999.0, "999 us"),
        (P99, 100_000.0, "100 ms"),
        (P99, 2_500_000.0, "2.5 s"),
        (P99, 0.0, "0 us"),
        (P99, -1500.0, "-1.5 ms"),
        ("read_mib_per_s", 412.0, "412 MiB/s"),
        ("cpu_busy_percent", 80.0, "80 %"),
        ("overall_iops", 5000.0, "5000"),
    ],
)
def test_an_amount_is_described_with_its_unit(metric: str, amount: float, words: str) -> None:
    assert amount_in_words(unit_of(metric), amount) == words


@pytest.mark.parametrize(
    "go",
    [
        "slo: { metric: overall_respons, at_most: 5ms }",
        "steady: { criterion: t, metric: overall_respons, limit: 1ms }",
    ],
)
def test_no_amount_of_an_unknown_metric_is_read(go: str) -> None:
    with pytest.raises(PlanFaults) as caught:
        plan(go)
    (fault,) = caught.value.faults
    assert "there is no metric overall_respons" in fault.text


def test_accuracy_settings_of_measure_are_read() -> None:
    got = asked("measure: { metric: overall_iops, accuracy: 1%, rollup: host, timeout: 10m }").measurement
    assert got == measure_spec(Focus("overall_iops", "host"), accuracy=0.01, timeout_s=600.0)


def test_a_time_is_a_measurement_of_fixed_length() -> None:
    assert asked("measure: 30s").fixed


def test_a_steps_own_measurement_overrides_the_defaults() -> None:
    defaults = "defaults: { measure: { metric: overall_iops } }\n"
    made = plan("warmup: 5s", "measure: 20s", "steady: { criterion: iops }", rest=defaults)
    kinds = [type(step.control.measurement) for step in made.steps]
    assert kinds == [MeasureSpec, FixedSpec, SteadySpec]
    assert made.steps[1].measure_s == 20.0


@pytest.mark.parametrize(
    ("keys", "metric", "limit", "relative"),
    [
        ("criterion: iops", "overall_iops", 2.0, True),
        ("criterion: bw_slope, limit: 5MiB/s", "overall_mib_per_s", 5.0, False),
        ("criterion: latency, latency: p99_9, limit: 50us", "overall_service_us_p99_9", 50.0, False),
        ("criterion: latency", "overall_service_us_mean", 2.0, True),
        ("criterion: t, metric: overall_service_us_p99, limit: 1%", "overall_service_us_p99", 1.0, True),
    ],
)
def test_steady_settings_are_read(keys: str, metric: str, limit: float, relative: bool) -> None:
    got = asked(f"steady: {{ {keys}, window: 60s }}").measurement
    assert isinstance(got, SteadySpec)
    assert (got.focus.metric, got.criterion.relative, got.criterion.window) == (metric, relative, 12)
    assert got.criterion.limit == pytest.approx(limit)


def test_feedback_control_in_a_range_that_refers_to_a_step() -> None:
    pid = f"control: {{ pid: {{ metric: {P99}, target: 1ms, low_iops: 5% of step s0, high_iops: 90% of step s0 }} }}"
    got = plan("measure: 5s", pid).steps[1].control.load
    ends = Calibration(OfStep(0.05, "s0"), OfStep(0.9, "s0"), None, None)
    assert got == PidSpec(Focus(P99, "all", 0.99), 1000.0, ends, SETTLES_S)


def test_a_curve_is_a_step_at_max_and_its_fractions() -> None:
    made = plan("iops_curve: [10%, 50%]", "measure: 5s")
    assert [step.name for step in made.steps] == [
        "s0+total_iops=max", "s0+total_iops=10%", "s0+total_iops=50%", "s1",
    ]  # fmt: skip
    assert made.steps[2].edits[0].changes == {"total_iops": OfStep(0.5, "s0+total_iops=max")}
    assert made.steps[3].edits == ()


@pytest.mark.parametrize(
    ("keys", "longest_s"),
    [
        ("measure: 30s", 30),
        ("measure: { metric: overall_iops, timeout: 10m }", 590),
        ("steady: { criterion: iops, timeout: 5m }", 290),
        ("warmup: 30s, measure: { metric: overall_iops, timeout: 10m }", 570),
        ("warmup: 30s, steady: { criterion: iops, timeout: 5m }", 270),
        (
            "measure: { metric: overall_iops, timeout: 5m }, warmup: 5s, staircase: { start: 1, end: 2, step: 1 }",
            2 * 305,
        ),
        (f"measure: 30s, control: {{ pid: {{ metric: {P99}, target: 1ms, auto: true, timeout: 5m }} }}", 330),
        ("measure: 30s, warmup: 5s, staircase: { start: 100, end: 300, step: 100 }", 3 * 40),
        ("measure: 30s, warmup: 5s, staircase: { start: 100, end: 400, step: 100% }", 3 * 40),
        ("measure: 30s, warmup: 5s, staircase: { start: 100, end: 300, steps: 5 }", 5 * 40),
        ("measure: 30s, profile: { ramp: [1, 2] }", 30),
        (f"find: {{ metric: {P99}, target: 1ms, probes: 6, longest_probe: 20 }}", 6 * 21 * 5),
    ],
)
def test_what_a_step_may_take_is_known_beforehand(keys: str, longest_s: float) -> None:
    assert plan(keys).steps[0].measuring_s == longest_s


def test_timeouts_of_pid_and_measurement_add_up() -> None:
    pid = f"control: {{ pid: {{ metric: {P99}, target: 1ms, auto: true }} }}, warmup: 30s"
    assert plan(f"{pid}, measure: {{ metric: overall_iops, timeout: 2m }}").steps[0].measuring_s == 900 + 120
    assert plan(f"{pid}, steady: {{ criterion: iops, timeout: 30s }}").steps[0].measuring_s == 900 + 30


def test_a_description_lists_measure_slo_and_find() -> None:
    text = describe(
        plan(
            f"measure: {{ metric: {P99}, rollup: host }}, slo: [ {{ metric: {P99}, at_most: 2ms, abort_early: true }}, "
            "{ metric: iops, at_least: 5k } ]",
            f"find: {{ metric: {P99}, target: 1ms }}",
            rest="workloads: { w: { iops: 100 } }\n",
        )
    )
    assert f"    measure: until {P99} per host is known to 2% at 95% confidence, at least 1m\n" in text
    assert f"    slo: {P99} at most 2ms, aborted early\n" in text
    assert "    slo: overall_iops at least 5000\n" in text
    assert f"    find: most total_iops with {P99} at most 1ms, to 2%, 12 probes\n" in text
    assert text.endswith("at most 1h4m20s in all\n")


@pytest.mark.parametrize(
    ("defaults", "go", "found"),
    [
        ("", "measure: 60s", OnDisturbance.SET_ASIDE),
        ("", "measure: 60s, disturbed: keep", OnDisturbance.KEEP),
        ("disturbed: keep", "measure: 60s", OnDisturbance.KEEP),
        ("disturbed: keep", "measure: 60s, disturbed: set_aside", OnDisturbance.SET_ASIDE),
    ],
)
def test_disturbed_subintervals_are_set_aside_unless_a_step_or_the_defaults_keep_them(
    defaults: str, go: str, found: OnDisturbance
) -> None:
    made = plan(go, rest=f"defaults: {{ {defaults} }}\n" if defaults else "")
    assert made.steps[0].control.disturbed is found
    assert ("    disturbed: keep\n" in describe(made)) is (found is OnDisturbance.KEEP)


PID = f"metric: {P99}, target: 1ms"
FAULTS = [
    (
        "measure: { metric: overall_iopz }",
        "measure: { metric: ",
        "there is no metric overall_iopz; did you mean 'overall_iops'",
    ),
    ("measure: { metric: backlog }", "measure: { metric: ", "metric backlog cannot be a focus metric"),
    (
        "measure: { metric: overall_iops, rollup: hots }",
        "rollup: ",
        "there is no rollup type hots with instances; did you mean 'host'",
    ),
    ("measure: { accuracy: 2% }", "measure: ", "measure needs a time, like 60s, or a metric that is to be known"),
    (
        "measure: { time: 60s, accuracy: 2% }",
        "measure: { ",
        "measure has a time, so it ends then and accuracy means nothing",
    ),
    ("measure: { metric: overall_iops, accuracy: 0% }", "accuracy: ", "accuracy is 0%; it must be above 0"),
    (
        "measure: { metric: overall_iops, timeout: 90s }",
        "timeout: ",
        "timeout is 90 s; no measurement can end before 110 s, 10 s of it warmup",
    ),
    (
        "warmup: 30s, measure: { metric: overall_iops, timeout: 2m }",
        "timeout: ",
        "timeout is 120 s; no measurement can end before 130 s, 30 s of it warmup",
    ),
    (
        "measure: { metric: overall_iops, window: shortest }",
        "overall_iops, ",
        "unknown key 'window' in measure; it is gone, since the shortest window that passes was wrong more often than "
        "its confidence allows: leave it out; the window is the longest since the warmup",
    ),
    (
        "measure: { metric: overall_iops, correction: factor_too }",
        "correction: ",
        "'factor_too' is not known here; did you mean 'factor_two'?",
    ),
    ("measure: 60s, steady: { criterion: iops }", "measure: 60s, ", "steady and measure both set when"),
    ("steady: { criterion: iops, window: 5s }", "window: ", "window is 1 subinterval; it must be at least two"),
    ("steady: { criterion: snia, window: 30s }", "window: ", "snia has five rounds, so it must be a multiple of five"),
    ("steady: { criterion: iops, latency: p99 }", "criterion: iops, ", "iops does not use latency; remove this"),
    ("steady: { criterion: iops, metric: overall_iops }", "criterion: iops, ", "iops names its metric itself"),
    ("steady: { criterion: latency, limit: 5 }", "limit: ", "limit: '5' has no unit; write 5us for microseconds"),
    ("steady: { criterion: t, limit: 5 }", "limit: ", "limit: '5' is no accuracy; write a percentage, like 2%"),
    ("steady: { criterion: iops, timeout: 20s }", "timeout: ", "timeout is 20 s; it cannot be steady before 40 s"),
    (
        f"control: {{ pid: {{ {PID} }} }}",
        "pid: ",
        "pid needs low_iops and high_iops, the range of its load; or write auto: true",
    ),
    (f"control: {{ pid: {{ {PID}, auto: true, low_iops: 5 }} }}", "auto: true, ", "auto finds low_iops itself"),
    (
        f"control: {{ pid: {{ {PID}, low_iops: 500, high_iops: 400 }} }}",
        "low_iops: ",
        "low must be above 0 and below high",
    ),
    (
        f"control: {{ pid: {{ {PID}, low_iops: 100, high_iops: 900 }} }}",
        "low_iops: ",
        "500 I/Os in a subinterval; this percentile needs 1000: raise it to 200, or take longer subintervals",
    ),
    (f"control: {{ pid: {{ {PID}, low_iops: max, high_iops: 100 }} }}", "low_iops: ", "'max' is no number of IOPS"),
    (
        f"control: {{ pid: {{ {PID}, low_iops: 500, high_iops: 1000, low_target: 2ms }} }}",
        "target: ",
        "target is 1 ms; it must be above low_target, 2 ms",
    ),
    (
        f"control: {{ pid: {{ {PID}, low_iops: 500, high_iops: 1000, high_target: 900us }} }}",
        "target: ",
        "target is 1 ms; it must be below high_target, 900 us",
    ),
    (
        "control: { pid: { metric: overall_iops, target: 500, auto: true } }",
        "metric: ",
        "metric overall_iops is what control sets",
    ),
    (
        f"control: {{ pid: {{ {PID}, low_iops: 5% of step mx, high_iops: 100 }} }}",
        "low_iops: ",
        "the plan has no step 'mx'",
    ),
    ("staircase: { start: 10, end: 5, step: 1 }", "end: ", "end is 5; it must be at least start, 10"),
    ("staircase: { start: 10, end: 50 }", "staircase: ", "staircase needs either step"),
    ("staircase: { start: 10, end: 50, steps: 1 }", "steps: ", "steps: '1' is too little; the least is 2"),
    ("staircase: { start: 10, end: 50, step: 5q }", "step: ", "'5q' is not a rise; write a number, or a percentage"),
    ("staircase: { start: 10, end: x, steps: 5 }", "end: ", "'x' is not a load; write a number, or 50% of step NAME"),
    (f"control: {{ pid: {{ {PID}, low_iops: x, high_iops: 100 }} }}", "low_iops: ", "'x' is not a load"),
    ("measure: { time: 5 }", "time: ", "'5' has no unit; write 5s"),
    ("staircase: { start: 10, steps: 5 }", "start: 10, ", "steps are counted from start to end; add end"),
    ("staircase: { start: 10, step: 0 }", "step: ", "step is 0; it must be above 0"),
    ("profile: { ramp: [10] }", "ramp: ", "it needs two rates or more, like [1000, 5000]"),
    ("profile: { ramp: [10, max] }", "ramp: ", "'max' is no rate of a profile; write IOPS, a number"),
    ("profile: { ramp: [10, 5% of step s] }", "ramp: ", "is no rate of a profile; write IOPS, a number"),
    ("profile: { ramp: [10, -1] }", "ramp: ", "'-1' is no rate of a profile; write IOPS, a number"),
    ("profile: { ramp: [0, 0] }", "profile: ", "all rates are 0, so nothing would be driven"),
    ("profile: { points: { 1s: 10, 5s: 20 } }", "points: ", "the first point is at 1s; a profile begins at 0s"),
    ("profile: { points: { 0s: 10, 5s: 20, 5000ms: 9 } }", "points: ", "5s follows 5s; points are in order"),
    ("profile: { points: { 0s: 10, 5s: 20, 4s: 9 } }", "points: ", "4s follows 5s; points are in order"),
    (
        "profile: { points: { 0s: 10, 21s: 20 } }, measure: 20s",
        "points: ",
        "the last point is at 21s, but the measurement ends at 20s: lengthen measure",
    ),
    ("profile: { ramp: [5%, 100%] }", "ramp: ", "'5%' is no rate of a profile; write IOPS, a number"),
    ("profile: { points: { 0: 10, 5: 20 } }", "points: ", "'5' has no unit; write 5s"),
    ("profile: { points: [1, 2] }", "points: ", "it needs rates by time, like { 0s: 1000, 30s: 5000 }"),
    ("profile: { ramp: [1, 2], points: { 0s: 1 } }", "profile: ", "profile needs either ramp"),
    ("profile: { ramp: [1, 2] }, steady: { criterion: iops }", "profile: ", "needs a measurement of a fixed time"),
    (
        "profile: { ramp: [1, 2] }, staircase: { start: 1, step: 1 }",
        "name: s0, ",
        "profile and staircase both set the load",
    ),
    (f"find: {{ metric: {P99}, target: 1 }}", "target: ", "target: '1' has no unit; write 1us for microseconds"),
    (f"find: {{ metric: {P99}, target: 0 }}", "target: ", "target is 0 us; it must be above 0"),
    (
        f"find: {{ metric: {P99}, target: 1ms }}, measure: 5s",
        "1ms }, ",
        "find takes its own measurements; remove measure",
    ),
    (
        f"find: {{ metric: {P99}, target: 1ms }}, iops_curve: [10%]",
        "name: s0, ",
        "find and iops_curve both set the load",
    ),
    (
        "staircase: { start: 1, step: 1 }, loop: { total_iops: [5] }",
        "name: s0, ",
        "staircase and the loop's total_iops both set",
    ),
    ("iops_curve: [10%, 110%]", "iops_curve: ", "'110%' is no load below the maximum"),
    (
        "slo: { metric: overall_response_us_p98, at_most: 1ms }",
        "metric: ",
        "there is no metric overall_response_us_p98",
    ),
    (
        "slo: [ { metric: overall_iops, at_most: 1, on_break: { command: [] } } ]",
        "command: ",
        "it needs a command, like",
    ),
    ("slo: { metric: overall_iops }", "slo: ", "exactly one of at_most and at_least"),
    ("slo: { metric: overall_iops, at_most: 9, at_least: 1 }", "slo: ", "write two thresholds for a range"),
    ("slo: { metric: overall_mib_per_s, at_least: 9 }", "at_least: ", "is not a transfer rate"),
]


@pytest.mark.parametrize(
    ("keys", "before", "says"), FAULTS, ids=[f"{keys[:50]} {i}" for i, (keys, *_) in enumerate(FAULTS)]
)
def test_a_fault_is_reported_at_its_place(keys: str, before: str, says: str) -> None:
    line = f"  - go: {{ name: s0, {keys} }}"
    with pytest.raises(PlanFaults) as caught:
        plan(keys)
    (fault,) = caught.value.faults
    assert says in fault.text
    assert (fault.place.line, fault.place.column) == (3, line.index(before) + len(before) + 1)


MAX = "workloads: { w: { iops: max } }\n"
PACED = "edit: { rollup: all=all, set: { total_iops: 100 } }"
AT_MAX = "edit: { rollup: host=local, set: { iops: max } }"


@pytest.mark.parametrize(
    ("steps", "refused"),
    [
        ([f"go: {{ name: a, slo: {{ metric: {P99}, at_most: 5ms }} }}"], "slo"),
        ([f"go: {{ name: a, measure: {{ metric: {P99} }} }}"], "measure"),
        ([f"go: {{ name: a, steady: {{ criterion: t, metric: {P99} }} }}"], "steady"),
        ([f"go: {{ name: a, iops_curve: [10%], measure: {{ metric: {P99} }} }}"], "measure"),
        (["go: { name: a, slo: { metric: overall_service_us_p99, at_most: 5ms } }"], ""),
        ([PACED, f"go: {{ name: a, slo: {{ metric: {P99}, at_most: 5ms }} }}"], ""),
        ([PACED, AT_MAX, f"go: {{ name: a, slo: {{ metric: {P99}, at_most: 5ms }} }}"], ""),  # the hosts decide
        ([f"go: {{ name: a, loop: {{ iops: [5, max] }}, slo: {{ metric: {P99}, at_most: 5ms }} }}"], "slo"),
        ([f"go: {{ name: a, staircase: {{ start: 1, step: 1 }}, slo: {{ metric: {P99}, at_most: 5ms }} }}"], ""),
    ],
)
def test_a_response_time_where_the_load_is_max_is_refused_at_its_place(steps: list[str], refused: str) -> None:
    text = completed(MAX + "rollups: [ host ]\nsteps:\n" + "".join(f"  - {step}\n" for step in steps))
    fault = checked(text)
    if not refused:
        assert fault is None
        return
    assert fault is not None
    assert "workload 'w' runs at max, where there is no response time; use overall_service_us_p99, or" in fault.text
    line = text.splitlines()[fault.place.line - 1]
    assert line[fault.place.column - 1 :].startswith(P99) and refused in line


@pytest.mark.parametrize(
    ("workload", "edit"),
    [
        ("{ iops: lots }", ""),
        ("{ iops: max }", "  - edit: { rollup: all=all, set: { iops: lots } }\n"),
        ("{ iops: max }", "  - edit: { rollup: all=all, set: { total_iops: lots } }\n"),
    ],
)
def test_a_rate_that_cannot_be_read_is_not_taken_for_max(workload: str, edit: str) -> None:
    """The one fault has no second that follows from it."""
    go = f"  - go: {{ name: a, slo: {{ metric: {P99}, at_most: 5ms }} }}\n"
    with pytest.raises(PlanError) as raised:
        read(completed(f"workloads: {{ w: {workload} }}\nsteps:\n{edit}{go}"), "p.yaml")
    assert "'lots'" in str(raised.value) and "at max" not in str(raised.value)


READER, WRITER = "r: { fraction_read: 100%, iops: 50 }", "w: { fraction_read: 0%, iops: 50 }"
STREAM = "s: { iosequencer: sequential, iops: 50 }"
WRITES = "measure: { metric: write_service_us_mean }"
SET = "edit: { rollup: %s, set: { %s } }"


def go(keys: str) -> str:
    return f"go: {{ name: a, {keys} }}"


@pytest.mark.parametrize(
    ("workloads", "steps", "says"),
    [
        (READER, [go(WRITES)],
         "the workloads do no write I/O; use overall_service_us_mean, or set fraction_read below 100%"),
        (READER, [go("measure: { metric: sequential_iops }")],
         "the workloads do no sequential I/O; use overall_iops, or set iosequencer: sequential"),
        (READER, [go("find: { metric: write_service_us_p99, target: 1ms }")], "no write I/O"),
        (READER, [go("control: { pid: { metric: random_write_service_us_mean, target: 1ms, auto: true } }")],
         "no random write I/O; use overall_service_us_mean, or set fraction_read below 100%"),
        (READER, [go("slo: { metric: write_service_us_p99, at_most: 1ms }")], "no write I/O"),
        (READER, [go("slo: { metric: write_iops, at_most: 5 }")], ""),  # a rate of 0 meets it
        (READER, [go("slo: { metric: write_iops, at_least: 5 }")], "no write I/O"),
        (READER, [go("steady: { criterion: snia, metric: write_iops, window: 25s }")], "no write I/O"),
        (WRITER, [go("measure: { metric: read_mib_per_s }")],
         "use overall_mib_per_s, or set fraction_read above 0%"),
        (WRITER, [go(WRITES)], ""),
        (STREAM, [go("measure: { metric: random_iops }")], "set iosequencer: random_steady"),
        (STREAM, [go("measure: { metric: sequential_read_iops }")], ""),
        (STREAM, [go("measure: { metric: random_write_iops }")],
         "set iosequencer: random_steady and fraction_read below 100%"),
        (f"{STREAM}, {WRITER}", [go("measure: { metric: sequential_write_iops }")], "set iosequencer: sequential"),
        (f"{READER}, {WRITER}", [go(WRITES)], ""),
        (f"{READER}, {WRITER}", [go("measure: { metric: write_service_us_mean, rollup: workload }")],
         "workload 'r', an instance of rollup 'workload', does no write I/O"),
        (f"{READER}, {WRITER}", [go("measure: { metric: read_service_us_mean, rollup: host+workload }")],
         "workload 'w', an instance of rollup 'host+workload', does no read I/O"),
        (READER, [SET % ("all=all", "fraction_read: 50%"), go(WRITES)], ""),
        (WRITER, [SET % ("all=all", "fraction_read: 100%"), go(WRITES)], "no write I/O"),
        (READER, [SET % ("host=local", "fraction_read: 50%"), go(WRITES)], ""),  # it can: how many, the hosts know
        (READER, [go(f"loop: {{ fraction_read: [50%, 100%] }}, {WRITES}")],
         "in step 'a+fraction_read=100%' the workloads"),
        (READER, [go("measure: { metric: write_ipos }")], "there is no metric write_ipos"),  # reported once
    ],
)  # fmt: skip
def test_a_kind_of_io_that_a_step_cannot_have_is_refused(workloads: str, steps: list[str], says: str) -> None:
    """A step would wait for it until its timeout."""
    rollups = "rollups: [ host, workload, host+workload ]\n"
    text = completed(f"workloads: {{ {workloads} }}\n{rollups}steps:\n" + "".join(f"  - {step}\n" for step in steps))
    fault = checked(text)
    if not says:
        assert fault is None
        return
    assert fault is not None
    assert says in fault.text
    line = text.splitlines()[fault.place.line - 1]
    assert line[: fault.place.column - 1].endswith("metric: ")


def test_a_kind_of_io_that_a_live_edit_may_add_is_allowed() -> None:
    """Reads with any edit, writes where some step of the plan writes; what is sequential stays so."""
    some = "live: { maxtags: 4 }\nworkloads: { w: { fraction_read: 0%, iops: 50 } }\n"
    assert plan("measure: { metric: read_iops }", rest=some)
    reads = "measure: { metric: overall_iops }, loop: { fraction_read: [0%, 100%] }"
    assert plan(reads, "measure: { metric: write_iops }", rest=some)
    with pytest.raises(PlanFaults, match="no write I/O"):
        plan(WRITES, rest=some.replace("0%", "100%"))
    with pytest.raises(PlanFaults, match="no sequential I/O"):
        plan("measure: { metric: sequential_iops }", rest=some)


def test_the_kinds_of_io_in_metrics_names_are_those_of_the_rollups() -> None:
    assert kind_of("flush_service_us_mean") == ("", "")
    for category, kinds in CATEGORIES.items():
        if category == FLUSH:
            continue
        sequence, direction = kind_of(f"{category}_service_us_mean")
        plain = [*Kind][:4] if category not in (OVERALL, *RELEASES) else [*Kind]
        assert kinds == tuple(
            kind for kind in plain if sequence in kind.name.lower() and direction in kind.name.lower()
        )
    for metric in ("cpu_busy_percent", "overall_iops", "busiest_core_percent"):
        assert not any(kind_of(metric))


def test_a_plan_whose_workload_could_not_be_read_has_no_report_of_what_it_lacks() -> None:
    with pytest.raises(PlanFaults) as caught:
        plan(WRITES, rest="workloads: { w: { fraction_read: many } }\n")
    assert len(caught.value.faults) == 1


def test_a_curves_run_at_max_has_no_threshold_on_response_time() -> None:
    made = plan(f"iops_curve: [10%], slo: [{{ metric: {P99}, at_most: 5ms }}, {{ metric: overall_iops, at_most: 5 }}]")
    assert [len(step.control.slo) for step in made.steps] == [1, 2]
    assert "not checked at max" in made.steps[0].notes[-1]


TOTAL = "edit: { rollup: all=all, set: { total_iops: 100 } }"
ONE_HOST = "edit: { rollup: host=local, set: { total_iops: 100 } }"


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ([TOTAL, go("measure: 60s, slo: { metric: p99_9, at_most: 5ms }")],
         "in step 'a' 6000 I/Os are measured, and it needs 10000; measure for 1m40s, or use a lower percentile"),
        ([TOTAL, go("measure: 60s, slo: { metric: write_p99, at_most: 5ms }")], "600 I/Os are measured"),
        ([TOTAL, go("measure: 60s, slo: { metric: read_p99, at_most: 5ms }")], ""),
        ([TOTAL, go("measure: 100s, slo: { metric: p99_9, at_most: 5ms }")], ""),
        ([go("loop: { total_iops: [1, 2] }, measure: 600s, slo: { metric: p99, at_most: 5ms }")], "600 I/Os are"),
        ([TOTAL, go("loop: { iops: [1, 2] }, measure: 60s, slo: { metric: p99_9, at_most: 5ms }")], ""),  # LUNs decide
        ([go("measure: 60s, slo: { metric: p99_9, at_most: 5ms }")], "6000 I/Os are measured"),  # of one file
        ([ONE_HOST, go("measure: 60s, slo: { metric: p99_9, at_most: 5ms }")], ""),
        ([TOTAL, go("measure: { metric: iops }, slo: { metric: p99_9, at_most: 5ms }")], ""),  # until it is accurate
    ],
)  # fmt: skip
def test_a_threshold_on_a_percentile_of_too_few_ios_is_refused(steps: list[str], says: str) -> None:
    """Its figure would be blank, after the whole step."""
    workload = "workloads: { w: { fraction_read: 90%, iops: 100 } }\nrollups: [ host ]\nsteps:\n"
    fault = checked(completed(workload + "".join(f"  - {step}\n" for step in steps)))
    assert (fault is None) == (not says)
    assert fault is None or says in fault.text


@pytest.mark.parametrize(
    ("luns", "few"),
    [
        ("create: { path: '/x/f{}', size: 1MiB, count: 2 }", "in step 'a' 20 I/Os are measured"),
        ("paths: [ /dev/sdb, /dev/sdc, /dev/sdd ]", "in step 'a' 30 I/Os are measured"),
        ("paths: '/dev/sd*'", ""),
        ("files: '/x/?'", ""),
        ("files: '/x/[ab]'", ""),
        ("create: { path: /x/f, size: 1MiB }, select: { vendor: HITACHI }", ""),
    ],
)
def test_a_workloads_own_rate_counts_where_the_plan_names_every_lun(luns: str, few: str) -> None:
    text = f"luns: {{ {luns} }}\nworkloads: {{ w: {{ fraction_read: 100%, iops: 10 }} }}\nsteps:\n"
    fault = checked(completed(text + "  - " + go("measure: 1s, slo: { metric: p99, at_most: 5ms }") + "\n"))
    assert (fault is None) == (not few)
    assert fault is None or few in fault.text


@pytest.mark.parametrize("end", ["auto: true", "low_iops: 1000, high_iops: 10k"])
def test_the_plans_tolerance_reaches_feedback_control(end: str) -> None:
    pid = f"control: {{ pid: {{ metric: {P99}, target: 1ms, {end} }} }}"
    spec = asked(pid, rest="achieved_iops_tolerance: 10%\n")
    state = spec.state(RunFacts({"all": ["all"]}, lambda *_: 0.0))
    assert isinstance(state, Steered) and isinstance(state.steer, (AutoPid, Pid))
    assert state.steer.rules.tolerance == 0.1


def test_all_faults_are_reported_at_once_wherever_they_stand() -> None:
    text = completed(f"""\
defaults: {{ slo: {{ metric: overall_iopz, at_most: 5 }}, lease: 5s }}
steps:
  - go: {{ name: a, measure: {{ metric: overal_iops }} }}
  - go: {{ name: b, find: {{ metric: {P99}, target: 0 }} }}
""")
    with pytest.raises(PlanFaults) as caught:
        read(text, "p.yaml")
    assert [(fault.place.line, fault.text.partition(";")[0]) for fault in caught.value.faults] == [
        (1, "there is no metric overall_iopz"),
        (1, "unknown key 'lease' in defaults"),
        (3, "there is no metric overal_iops"),
        (4, "target is 0 us"),
    ]


@pytest.mark.parametrize("old", OLD_NAMES)
@pytest.mark.parametrize(
    "keys",
    [
        "measure: {{ metric: {} }}",
        "steady: {{ criterion: snia, metric: {} }}",
        "control: {{ pid: {{ metric: {}, target: 1ms, auto: true }} }}",
        "find: {{ metric: {}, target: 1ms }}",
        "slo: {{ metric: {}, at_most: 1ms }}",
    ],
)
def test_a_metrics_old_name_is_answered_with_its_present_one(keys: str, old: str) -> None:
    line = f"  - go: {{ name: s0, {keys.format(old)} }}"
    with pytest.raises(PlanFaults) as caught:
        plan(keys.format(old))
    said = [fault.text for fault in caught.value.faults if fault.place.column == line.index(old) + 1]
    assert any(text.startswith(f"metric {old} is called {OLD_NAMES[old]} since 0.2") for text in said)


@pytest.mark.parametrize(
    ("defaults", "go", "found"),
    [
        ("", "measure: 60s", OnInvalid()),
        ("", "on_invalid: continue", OnInvalid()),
        ("", "on_invalid: stop", OnInvalid(stop=True)),
        ("", "on_invalid: repeat 2", OnInvalid(repeats=2)),
        ("on_invalid: stop", "measure: 60s", OnInvalid(stop=True)),
        ("on_invalid: stop", "on_invalid: repeat 1", OnInvalid(repeats=1)),
        ("on_invalid: repeat 3", "on_invalid: continue", OnInvalid()),
    ],
)
def test_a_step_has_its_own_on_invalid_or_that_of_the_defaults(defaults: str, go: str, found: OnInvalid) -> None:
    made = plan(go, rest=f"defaults: {{ {defaults} }}\n")
    assert made.steps[0].on_invalid == found
    assert (f"    on_invalid: {found}\n" in describe(made)) is (found != OnInvalid())


@pytest.mark.parametrize("text", ["repeat", "repeat 0", "repeat 101", "repeat -1", "again", "repeat  2"])
def test_what_on_invalid_cannot_be_is_refused_with_what_it_can(text: str) -> None:
    fault = checked(completed(f"steps: [ go: {{ name: s, on_invalid: {text} }} ]"))
    assert fault is not None and "on_invalid" in fault.text and "repeat" in fault.text


def test_no_step_has_the_name_of_an_attempt() -> None:
    fault = checked(completed("steps:\n  - go: s\n  - go: s+attempt=2\n"))
    assert fault is not None and "repeated steps" in fault.text


@pytest.mark.parametrize(
    ("keys", "measure"),
    [
        ("measure: 30s", "measure 30s"),
        ("measure: 30s, profile: { ramp: [10, 20] }", "measure 30s"),
        ("measure: 5s, staircase: { start: 10, end: 20, step: 10 }", "measure at most"),
        ("measure: { metric: overall_iops }", "measure at most"),
        ("find: { metric: overall_service_us_mean, target: 5ms }", "measure at most"),
    ],
)
def test_a_step_that_ends_as_planned_is_not_said_to_end_at_most_then(keys: str, measure: str) -> None:
    text = "workloads: { w: { iops: 10 } }\nsteps:\n  - go: { name: a, warmup: 1s, " + keys + " }\n"
    said = describe(read(completed(text), "p.yaml"))
    assert f", {measure}" in said and ("measure at most" in said) == (measure == "measure at most")
