"""What is wrong with a step's control, as far as its plan alone shows it.

Rule: every fault is the keys from the step's `go` down to the value, and a sentence. An amount that could not be read
is not a number here; its own fault has been reported, and no other follows from it.
"""

import math
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from ..rollup.metrics import HOW_SHORT, METRICS, connector_of
from ..stats.percentiles import fewest_ios
from ..text.metric_amounts import amount_in_words
from ..text.plan_parameters import OfStep
from ..text.suggestions import OLD_NAMES, did_you_mean
from ..text.units import format_fraction
from .control_spec import ControlSpec, Fault, FindSpec, Keys, Level, MeasureSpec, PidSpec, StaircaseSpec, SteadySpec
from .focus import Focus
from .measure import FEWEST_EFFECTIVE
from .observe import FOCUS_METRICS
from .pid_loop import Range
from .staircase import Levels, levels_of_steps

_NO_FOCUS: Final = "cannot be a focus metric: only rates, means, percentiles and CPU can"
FEWEST_PROBES = 4  # max, a pass, a fail, and the fail again


def faults(
    spec: ControlSpec, rollups: Collection[str] | None, connectors: Collection[str] | None = ()
) -> Iterator[Fault]:
    """Everything wrong with a step's control. `rollups`: the plan's types; `connectors`: the names of its connectors;
    None where some of them are not known."""
    steered = {keys for keys, _ in spec.steered()}
    for keys, focus in (*spec.checked(), *spec.steered()):
        if text := metric_fault(focus.metric, keys in steered, connectors):
            yield (*keys, "metric"), text
        if text := "" if rollups is None else rollup_fault(focus.rollup, rollups):
            yield (*keys, "rollup"), text
    match spec.measurement:
        case MeasureSpec() as measure if _can_be_focus(measure.focus):
            yield from _below(("measure",), measure_faults(measure, spec.subinterval_s, _warmup_s(spec)))
        case SteadySpec() as steady:
            if _can_be_focus(steady.focus):
                yield from _below(("steady",), steady.criterion.faults())
            yield from _too_short(spec, steady)
    match spec.load:
        case PidSpec() as pid:
            yield from _pid_faults(("control", "pid"), pid, spec.subinterval_s)
        case StaircaseSpec() as staircase:
            if levels := stairs(staircase):
                yield from _below(("staircase",), levels.faults())
        case FindSpec() as find if _can_be_focus(find.focus) and not math.isnan(find.target):
            yield from _below(("find",), find_faults(find))


def _can_be_focus(focus: Focus) -> bool:
    return bool(focus.connector) or focus.metric in FOCUS_METRICS


def metric_fault(metric: str, steered: bool = False, connectors: Collection[str] | None = ()) -> str:
    """Why control cannot use a metric; "" where it can. `steered`: IOPS are to hold it at a target. `connectors`: those
    that there are; which metrics they have shows only when they have been started."""
    if connector := connector_of(metric):
        if connectors is None or connector in connectors:
            return ""
        near = did_you_mean(connector, connectors) or "; name it in `connectors`"
        return f"metric {metric}: there is no connector {connector}{near}"
    if (now := OLD_NAMES.get(metric)) is not None:
        more = "" if now in FOCUS_METRICS else f", and {_NO_FOCUS}"
        return f"metric {metric} is called {now} since 0.2{more}"
    if metric in METRICS and metric not in FOCUS_METRICS:
        return f"metric {metric} {_NO_FOCUS}"
    if metric not in FOCUS_METRICS:
        return f"there is no metric {metric}{did_you_mean(metric, FOCUS_METRICS) or f'; {HOW_SHORT}'}"
    if steered and METRICS[metric].is_rate:
        return f"metric {metric} is what control sets; use a latency or CPU"
    return ""


def rollup_fault(rollup: str, rollups: Collection[str]) -> str:
    """Why control cannot use a rollup type; "" where it can."""
    if rollup in rollups:
        return ""
    return f"there is no rollup type {rollup} with instances{did_you_mean(rollup, rollups)}"


def _below(keys: Keys, found: Iterable[tuple[str, str]]) -> Iterator[Fault]:
    """Faults of a section's own keys."""
    yield from (((*keys, key), text) for key, text in found)


def measure_faults(spec: MeasureSpec, subinterval_s: float, warmup_s: float = 0.0) -> Iterator[tuple[str, str]]:
    """What is wrong with the numbers of `measure`: the key, and a sentence. The timeout runs in the warmup, too."""
    if not spec.accuracy > 0:
        yield "accuracy", f"accuracy is {format_fraction(spec.accuracy)}; it must be above 0"
    if not 0 < spec.confidence < 1:
        yield "confidence", f"confidence is {format_fraction(spec.confidence)}; it must be between 0 and 100%"
    least_s = warmup_s + max(spec.min_s, FEWEST_EFFECTIVE * subinterval_s)
    if spec.timeout_s < least_s:
        warmup = f", {warmup_s:g} s of it warmup" if warmup_s else ""
        yield "timeout", f"timeout is {spec.timeout_s:g} s; no measurement can end before {least_s:g} s{warmup}"


def find_faults(spec: FindSpec) -> Iterator[tuple[str, str]]:
    """What is wrong with the numbers of `find`: the key, and a sentence."""
    if not spec.target > 0:
        yield "target", _not_above_0("target", spec.focus, spec.target)
    if not spec.resolution > 0:
        yield "resolution", f"resolution is {format_fraction(spec.resolution)}; it must be above 0"
    if spec.probes < FEWEST_PROBES:
        least = f"a bracket takes at least {FEWEST_PROBES} (max, a pass, a fail, and the fail again)"
        yield "probes", f"probes is {spec.probes}; {least}"


def _not_above_0(key: str, focus: Focus, value: float) -> str:
    return f"{key} is {amount_in_words(focus.unit, value)}; it must be above 0"


def _warmup_s(spec: ControlSpec) -> float:
    """How much of a measurement's timeout the warmup takes; under feedback control the timeout begins after it."""
    return 0.0 if isinstance(spec.load, PidSpec) else spec.warmup * spec.subinterval_s


def _too_short(spec: ControlSpec, steady: SteadySpec) -> Iterator[Fault]:
    """A timeout that leaves no room for a window."""
    ramp_s = 0.0 if isinstance(spec.load, PidSpec) else steady.ramp * spec.subinterval_s
    windows_s = (steady.criterion.window + steady.hold) * spec.subinterval_s
    least_s = (ramp_s or _warmup_s(spec)) + windows_s
    if steady.timeout_s < least_s:
        yield ("steady", "timeout"), f"timeout is {steady.timeout_s:g} s; it cannot be steady before {least_s:g} s"


def _pid_faults(keys: Keys, pid: PidSpec, subinterval_s: float) -> Iterator[Fault]:
    if pid.target <= 0:
        yield (*keys, "target"), _not_above_0("target", pid.focus, pid.target)
    ends = pid.calibration
    if ends is None:
        return
    known = True
    for key, value in (("low_target", ends.low_target), ("high_target", ends.high_target)):
        if value is not None and value <= 0:
            known = False
            yield (*keys, key), _not_above_0(key, pid.focus, value)
    low, high = number_of(ends.low_iops), number_of(ends.high_iops)
    if known:  # loads that refer to a step are not known yet: any two will do to check the targets
        both = not math.isnan(low + high)
        found = Range(low if both else 1, high if both else 2, ends.low_target, ends.high_target)
        yield from _below(keys, found.faults(pid.target, pid.focus.unit))
    if text := blank_fault(pid.focus, low, subinterval_s):
        yield (*keys, "low_iops"), text


def blank_fault(focus: Focus, low_iops: float, subinterval_s: float) -> str:
    """Why a percentile would be blank in every subinterval at the lowest load, so that nothing would ever move it."""
    if focus.fraction is None or not low_iops * subinterval_s < (least := fewest_ios(focus.fraction)):
        return ""
    return (
        f"low_iops is {low_iops:g}, {low_iops * subinterval_s:g} I/Os in a subinterval; this percentile needs "
        f"{least}: raise it to {least / subinterval_s:g}, or take longer subintervals"
    )


def number_of(level: Level) -> float:
    """A load in IOPS; not a number where it refers to a step."""
    return math.nan if isinstance(level, OfStep) else level


def stairs(spec: StaircaseSpec) -> Levels | None:
    """The levels; None where a load is not a number yet."""
    start = number_of(spec.start)
    end = None if spec.end is None else number_of(spec.end)
    step = spec.relative if spec.step is None else number_of(spec.step)
    if any(value is not None and math.isnan(value) for value in (start, end, step)):
        return None
    if spec.steps is not None and end is not None:
        return levels_of_steps(start, end, spec.steps)
    return Levels(start, step or 0.0, spec.relative is not None, end)
