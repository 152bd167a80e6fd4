"""From a step's demands to the state that decides, and what is wrong with them before anything has begun.

Rule: a plan knows words and units, control knows metrics and numbers; the two meet here. `faults` needs no host;
`state_of` is asked when the rollup instances are known and the steps that a load refers to have run.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ..plan.demands import Accurate, Calibration, Climbed, Found, Held, Level, Steadied, Threshold
from ..plan.model import ALL, Step
from ..plan.read.yaml_positions import Path
from ..stats.histograms import fewest_ios
from ..text.metric_amounts import amount_in_words
from ..text.relative import OfStep
from . import observe
from .autopid import AutoPid
from .criteria import Criterion, Rule, criterion_named
from .decide import Judge, State
from .estimate import Correction
from .fixed import Fixed
from .measure import Goal, Measure, Window
from .observe import focus_on
from .pid import Pid, Range, Rules, pid
from .probe import Question
from .search import Find
from .slo import Threshold as Watch
from .slo import Watched
from .staircase import Staircase, Stairs, stairs_of_steps
from .steady import OnLeave, Steady
from .steer import Steered

Reached = Callable[[str, str, str], float]  # step, rollup type, rollup instance -> IOPS that it measured there

_SAMPLE_METRIC: Final = "overall_iops"  # any that can be looked at, to ask about rollups alone


@dataclass(frozen=True, slots=True)
class Known:
    """What a run knows when a step begins."""

    instances: Mapping[str, Sequence[str]]  # rollup type: its instances
    tolerance: float  # achieved_iops_tolerance
    reached: Reached


def faults(step: Step, rollups: Collection[str] | None) -> Iterator[tuple[Path, str]]:
    """What control has against a step: the keys below its `go`, and a sentence each. `rollups`: the plan's types.

    An amount that could not be read is not a number here; it has been told, and nothing follows from it.
    """
    demands = step.demands
    match demands.judge:
        case Accurate() as accurate:
            yield from _unseen(("measure",), accurate.metric, accurate.rollup, rollups)
            if accurate.metric in observe.FOCUS_METRICS:
                yield from _at(("measure",), _goal(accurate).faults(step.subinterval_s, _warmup_s(step)))
        case Steadied() as steadied:
            yield from _unseen(("steady",), steadied.metric, steadied.rollup, rollups)
            if steadied.metric in observe.FOCUS_METRICS:
                yield from _at(("steady",), _criterion(steadied).faults())
            yield from _too_short(step, steadied)
        case None:
            pass
    yield from _load_faults(step, rollups)
    for i, threshold in enumerate(demands.slo):
        yield from _unseen(("slo", i), threshold.metric, threshold.rollup, rollups)


def _load_faults(step: Step, rollups: Collection[str] | None) -> Iterator[tuple[Path, str]]:
    match step.demands.load:
        case Held() as held:
            path: Path = ("control", "pid")
            yield from _unseen(path, held.metric, held.rollup, rollups, controls=True)
            if held.target <= 0:
                yield (*path, "target"), f"target is {amount_in_words(held.metric, held.target)}; it must be above 0"
            yield from _range_faults(path, held, step)
        case Climbed() as climbed:
            if stairs := _stairs(climbed, _only_numbers):
                yield from _at(("staircase",), stairs.faults())
        case Found() as found:
            yield from _unseen(("find",), found.metric, found.rollup, rollups, controls=True)
            if found.metric in observe.FOCUS_METRICS and not math.isnan(found.target):
                yield from _at(("find",), _find(found, step, 0.0).faults())
        case None:
            pass


def _range_faults(path: Path, held: Held, step: Step) -> Iterator[tuple[Path, str]]:
    ends = held.calibration
    if ends is None:
        return
    known = True
    for key in ("low_target", "high_target"):
        value = getattr(ends, key)
        if value is not None and value <= 0:
            known = False
            yield (*path, key), f"{key} is {amount_in_words(held.metric, value)}; it must be above 0"
    low, high = (_only_numbers(level, "") for level in (ends.low_iops, ends.high_iops))
    if known:  # loads that refer to a step are not known yet: any two will do to judge the targets
        both = not math.isnan(low + high)
        found = Range(low if both else 1, high if both else 2, ends.low_target, ends.high_target)
        yield from _at(path, found.faults(held.target, held.metric))
    if held.metric in observe.FOCUS_METRICS:
        yield from _at(path, _unseeable(held, low, step))


def _unseeable(held: Held, low_iops: float, step: Step) -> list[str]:
    """A percentile that is blank in every subinterval at the lowest load, so that nothing would ever move it."""
    fraction = focus_on(held.metric).fraction
    if fraction is None or not low_iops * step.subinterval_s < (least := fewest_ios(fraction)):
        return []
    return [
        f"low_iops is {low_iops:g}, {low_iops * step.subinterval_s:g} I/Os in a subinterval; this percentile needs "
        f"{least}: raise it to {least / step.subinterval_s:g}, or take longer subintervals"
    ]


def _unseen(
    path: Path, metric: str, rollup: str, rollups: Collection[str] | None, controls: bool = False
) -> Iterator[tuple[Path, str]]:
    """What keeps a metric, or a rollup type, from being looked at."""
    for text in observe.faults(metric, ALL, (ALL,), controls):
        yield (*path, "metric"), text
    for text in observe.faults(_SAMPLE_METRIC, rollup, (rollup,) if rollups is None else rollups):
        yield (*path, "rollup"), text


def _at(path: Path, sentences: Sequence[str]) -> Iterator[tuple[Path, str]]:
    """Sentences with their keys: each begins with the word that it is about."""
    for text in sentences:
        yield (*path, text.partition(" ")[0]), text


def _warmup_s(step: Step) -> float:
    """How much of a judge's timeout the warmup takes; beneath a controller the judge begins later than that."""
    return 0.0 if isinstance(step.demands.load, Held) else step.warmup_s


def _too_short(step: Step, steadied: Steadied) -> Iterator[tuple[Path, str]]:
    """A timeout that leaves no room for a window."""
    ramp_s = 0.0 if isinstance(step.demands.load, Held) else steadied.ramp * step.subinterval_s
    least_s = (ramp_s or _warmup_s(step)) + steadied.window * (2 if steadied.hold else 1) * step.subinterval_s
    if steadied.timeout_s < least_s:
        yield ("steady", "timeout"), f"timeout is {steadied.timeout_s:g} s; it cannot be steady before {least_s:g} s"


def _only_numbers(level: Level, instance: str) -> float:
    return math.nan if isinstance(level, OfStep) else level


def state_of(step: Step, known: Known) -> State:
    """The state that a step begins with. Raises what `known.reached` raises, and ValueError for loads that do not fit
    each other now that they are known."""
    demands = step.demands
    judge = _judge(step)
    state: State
    match demands.load:
        case None:
            state = judge
        case Held() as held:
            state = Steered(_steer(held, step, known), judge, held.timeout_s)
        case Climbed() as climbed:
            stairs = _stairs(climbed, lambda level, name: _level(level, ALL, name, known))
            assert stairs is not None
            _refuse(stairs.faults())
            state = Staircase(stairs, judge, known.tolerance)
        case Found() as found:
            state = _find(found, step, known.tolerance)
    return Watched(state, tuple(map(watch, demands.slo))) if demands.slo else state


def _refuse(sentences: Sequence[str]) -> None:
    if sentences:
        raise ValueError("; ".join(sentences))


def _judge(step: Step) -> Judge:
    match step.demands.judge:
        case Accurate() as accurate:
            return Measure(_goal(accurate), step.warmup_subintervals)
        case Steadied() as steadied:
            return Steady(
                _criterion(steadied),
                warmup=steadied.ramp or step.warmup_subintervals,
                hold=steadied.window if steadied.hold else 0,
                on_leave=OnLeave(steadied.on_leave),
                timeout_s=steadied.timeout_s,
                confidence=steadied.confidence,
            )
        case None:
            return Fixed(step.warmup_subintervals, step.measure_subintervals)


def _goal(one: Accurate) -> Goal:
    return Goal(
        focus_on(one.metric, one.rollup), one.accuracy, one.confidence, one.min_s, one.timeout_s,
        Window(one.window), Correction(one.correction),
    )  # fmt: skip


def _criterion(one: Steadied) -> Criterion:
    focus = focus_on(one.metric, one.rollup)
    if one.criterion in (Rule.SNIA, Rule.T):
        return Criterion(Rule(one.criterion), focus, one.window, one.limit, one.relative)
    made = criterion_named(one.criterion, one.window, one.limit, one.relative)
    return replace(made, focus=focus, no_drift=one.no_drift)


def _steer(held: Held, step: Step, known: Known) -> Pid | AutoPid:
    focus = focus_on(held.metric, held.rollup)
    names, rules = tuple(known.instances[held.rollup]), Rules(tolerance=known.tolerance)
    if held.calibration is None:
        return AutoPid(focus, held.target, names, rules)
    ranges = {name: _range(held.calibration, held.rollup, name, known) for name in names}
    for name, found in ranges.items():
        sentences = found.faults(held.target, held.metric) + _unseeable(held, found.low_iops, step)
        _refuse([f"{held.rollup}={name}: {text}" for text in sentences])
    return pid(focus, held.target, ranges, rules, warmup=max(1, step.warmup_subintervals))


def _range(ends: Calibration, rollup: str, name: str, known: Known) -> Range:
    low, high = (_level(level, rollup, name, known) for level in (ends.low_iops, ends.high_iops))
    return Range(low, high, ends.low_target, ends.high_target)


def _level(level: Level, rollup: str, name: str, known: Known) -> float:
    return level.fraction * known.reached(level.step, rollup, name) if isinstance(level, OfStep) else level


def _stairs(climbed: Climbed, number: Callable[[Level, str], float]) -> Stairs | None:
    """The treads; None where a load is not a number yet."""
    start = number(climbed.start, ALL)
    end = None if climbed.end is None else number(climbed.end, ALL)
    step = climbed.relative if climbed.step is None else number(climbed.step, ALL)
    if any(value is not None and math.isnan(value) for value in (start, end, step)):
        return None
    if climbed.steps is not None and end is not None:
        return stairs_of_steps(start, end, climbed.steps)
    return Stairs(start, step or 0.0, climbed.relative is not None, end)


def _find(found: Found, step: Step, tolerance: float) -> Find:
    question = Question(
        focus_on(found.metric, found.rollup), found.target, found.confidence, most=found.most, tolerance=tolerance
    )
    return Find(question, found.resolution, found.probes, settle=max(1, step.warmup_subintervals))


def watch(one: Threshold) -> Watch:
    """What control makes of one threshold of the plan."""
    return Watch(focus_on(one.metric, one.rollup), one.at_most, one.abort_early, one.every_s)
