"""Specs of control for tests: what a test does not set is what a plan fills in."""

from dataclasses import replace
from typing import Any, Final, TypeVar

from ivypy.master.control.choices import Rule
from ivypy.master.control.control_spec import ControlSpec
from ivypy.master.control.criteria import Criterion, rule_and_metric
from ivypy.master.control.feedback import PidSpec
from ivypy.master.control.focus import Focus
from ivypy.master.control.measure import MeasureSpec
from ivypy.master.control.observe import focus_on
from ivypy.master.control.pid_loop import PidRules
from ivypy.master.control.search import FindSpec
from ivypy.master.control.steady import SteadySpec
from ivypy.master.control.threshold import SloSpec
from ivypy.master.plan.load import read

from .plan import completed

_Spec = TypeVar("_Spec")


def control_of(go: str) -> ControlSpec:
    """The control of a step with the keys `go`."""
    return read(completed(f"steps: [ go: {{ name: one, {go} }} ]"), "p.yaml").steps[0].control


def _made(kind: type[_Spec], found: object) -> _Spec:
    assert isinstance(found, kind)
    return found


_METRIC: Final = "metric: overall_service_us_mean"
MEASURE: Final = _made(MeasureSpec, control_of(f"measure: {{ {_METRIC} }}").measurement)
STEADY: Final = _made(SteadySpec, control_of("steady: { criterion: iops }").measurement)
PID: Final = _made(PidSpec, control_of(f"control: {{ pid: {{ {_METRIC}, target: 1ms, auto: true }} }}").load)
FIND: Final = _made(FindSpec, control_of(f"find: {{ {_METRIC}, target: 1ms }}").load)
(SLO,) = control_of(f"slo: {{ {_METRIC}, at_most: 1ms }}").slo
SETTLES_S: Final = PID.timeout_s
TOLERANCE: Final = control_of("measure: 1s").tolerance
RULES: Final = PidRules(TOLERANCE)


def measure_spec(focus: Focus, **changes: Any) -> MeasureSpec:
    return replace(MEASURE, focus=focus, **changes)


def a_criterion(
    rule: Rule, focus: Focus, window: int, limit: float = STEADY.criterion.limit, relative: bool = True,
    no_drift: bool = False,
) -> Criterion:  # fmt: skip
    return Criterion(rule, focus, window, limit, relative, no_drift)


def criterion_named(name: str, window: int, limit: float = STEADY.criterion.limit, relative: bool = True) -> Criterion:
    """One of those that a plan may name; `window` in subintervals."""
    rule, metric = rule_and_metric(name, "mean")
    return a_criterion(rule, focus_on(metric), window, limit, relative)


def steady_spec(criterion: Criterion, **changes: Any) -> SteadySpec:
    return replace(STEADY, criterion=criterion, **changes)


def find_spec(focus: Focus, target: float, **changes: Any) -> FindSpec:
    return replace(FIND, focus=focus, target=target, **changes)


def conditions(subinterval_s: float, warmup: int = 0) -> ControlSpec:
    """Of a step with nothing else in it."""
    return replace(control_of("measure: 1s"), subinterval_s=subinterval_s, warmup=warmup)


def slo_spec(focus: Focus, limit: float, **changes: Any) -> SloSpec:
    return replace(SLO, focus=focus, limit=limit, **changes)
