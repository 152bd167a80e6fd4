"""From a step's control spec to the state that decides, once the rollup instances are known.

Rule: loads that refer to earlier steps become numbers here. Faults that the plan alone shows are found in check.py.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..rollup.instances import ALL
from ..text.plan_parameters import OfStep
from .autopid import AutoPid
from .check import blank_fault, stairs
from .choices import OnDisturbance
from .control_spec import (
    Calibration,
    ControlSpec,
    FindSpec,
    FixedSpec,
    Level,
    MeasureSpec,
    PidSpec,
    StaircaseSpec,
    SteadySpec,
)
from .control_state import ControlState, MeasurementState
from .fixed import Fixed, most_aside
from .measure import Measure
from .pid import Pid, pid
from .pid_loop import PidRules, Range
from .search import Find
from .slo import Watched
from .staircase import Staircase
from .steady import Steady
from .steer import Steered

Reached = Callable[[str, str, str], float]  # step, rollup type, rollup instance -> IOPS that it measured there


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What a run knows when a step begins."""

    instances: Mapping[str, Sequence[str]]  # rollup type: its instances
    reached: Reached


def state_of(spec: ControlSpec, known: RunFacts) -> ControlState:
    """The state that a step begins with. Raises what `known.reached` raises, and ValueError for loads that do not fit
    each other now that they are known."""
    measurement = _measurement(spec)
    state: ControlState
    match spec.load:
        case None:
            state = measurement
        case PidSpec() as held:
            state = Steered(_steer(held, spec, known), measurement, held.timeout_s)
        case StaircaseSpec() as climbed:
            levels = stairs(_with_numbers(climbed, known))
            assert levels is not None
            _refuse(text for _, text in levels.faults())
            state = Staircase(levels, measurement, spec.tolerance)
        case FindSpec() as find:
            repeats = spec.disturbed is OnDisturbance.SET_ASIDE
            state = Find(find, spec.tolerance, settle=max(1, spec.warmup), repeats=repeats)
    return Watched(state, spec.slo) if spec.slo else state


def fixed_time(state: ControlState) -> Fixed | None:
    """The measurement of this state that takes a fixed time, at whose end the step ends; None: there is none."""
    match state:
        case Watched():
            return fixed_time(state.state)
        case Steered():
            return state.measurement if isinstance(state.measurement, Fixed) else None
    return state if isinstance(state, Fixed) else None


def _refuse(sentences: Iterable[str]) -> None:
    if text := "; ".join(sentences):
        raise ValueError(text)


def _measurement(spec: ControlSpec) -> MeasurementState:
    match spec.measurement:
        case FixedSpec(subintervals):
            sets_aside = spec.fixed and spec.disturbed is OnDisturbance.SET_ASIDE
            return Fixed(spec.warmup, subintervals, most_aside(subintervals) if sets_aside else 0)
        case MeasureSpec() as measure:
            return Measure(measure, spec.warmup)
        case SteadySpec() as steady:
            return Steady(steady, steady.ramp or spec.warmup)


def _steer(held: PidSpec, spec: ControlSpec, known: RunFacts) -> Pid | AutoPid:
    names, rules = tuple(known.instances[held.focus.rollup]), PidRules(spec.tolerance)
    if held.calibration is None:
        return AutoPid(held.focus, held.target, names, rules)
    ranges = {name: _range(held.calibration, held.focus.rollup, name, known) for name in names}
    for name, found in ranges.items():
        texts = [text for _, text in found.faults(held.target, held.focus.unit)]
        if blank := blank_fault(held.focus, found.low_iops, spec.subinterval_s):
            texts.append(blank)
        _refuse(f"{held.focus.rollup}={name}: {text}" for text in texts)
    return pid(held.focus, held.target, ranges, rules, warmup=max(1, spec.warmup))


def _range(ends: Calibration, rollup: str, name: str, known: RunFacts) -> Range:
    low, high = (_level(level, rollup, name, known) for level in (ends.low_iops, ends.high_iops))
    return Range(low, high, ends.low_target, ends.high_target)


def _level(level: Level, rollup: str, name: str, known: RunFacts) -> float:
    return level.fraction * known.reached(level.step, rollup, name) if isinstance(level, OfStep) else level


def _with_numbers(climbed: StaircaseSpec, known: RunFacts) -> StaircaseSpec:
    """The same staircase, with numbers in the place of references to steps."""

    def number(level: Level | None) -> float | None:
        return None if level is None else _level(level, ALL, ALL, known)

    start = _level(climbed.start, ALL, ALL, known)
    return replace(climbed, start=start, end=number(climbed.end), step=number(climbed.step))
