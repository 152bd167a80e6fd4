"""From the control keys of a `go` to its spec: which keys exclude each other, and amounts in their metric's unit.

Rule: a step's own keys replace those of `defaults`. Keys that decide the same thing exclude each other: `measure` and
`steady`; `control`, `staircase`, `iops_curve`, `profile` and `find`.
"""

import math
from collections.abc import Iterator
from typing import Any, Final

from ...protocol.parameters import MAX
from ..control.choices import FIO, LATENCIES, OnDisturbance, Rule, Side
from ..control.control_spec import ControlSpec
from ..control.control_state import LoadSpec, MeasurementSpec
from ..control.criteria import Criterion, rule_and_metric
from ..control.feedback import Calibration, PidSpec
from ..control.fixed import FixedSpec
from ..control.load_level import Level
from ..control.measure import MeasureSpec
from ..control.observe import focus_on
from ..control.profile import ProfileSpec
from ..control.search import FindSpec
from ..control.staircase import StaircaseSpec
from ..control.steady import SteadySpec
from ..control.threshold import SloSpec
from ..control.until import USUAL_TIMEOUT_S, UntilSpec
from ..rollup.metrics import METRICS, connector_of, unit_of
from ..text.metric_amounts import parse_amount, parse_limit
from ..text.units import format_duration
from .read.field_types import VOLUMES
from .read.schema import GoDoc, TimesDoc
from .read.schema_control import EVERY_S, FindDoc, MeasureDoc, PidDoc, ProfileDoc, SloDoc, StaircaseDoc, SteadyDoc
from .read.yaml_positions import Faults, Path

_LOADS: Final = ("control", "staircase", "iops_curve", "profile", "find")
_MEASUREMENTS: Final = ("measure", "steady")
_NOT_WITH_UNTIL: Final = ("control", "staircase", "iops_curve", "profile", "find", "steady")
_CALIBRATION: Final = ("low_iops", "low_target", "high_iops", "high_target")


def until_spec(go: GoDoc, subinterval_s: float) -> UntilSpec:
    """The measurement of a step that ends by volume."""
    time_s = None if go.measure is None else go.measure.time
    time = None if time_s is None else math.ceil(round(time_s / subinterval_s, 6))
    return UntilSpec(time, go.until.timeout if go.until else USUAL_TIMEOUT_S)


def check_until(go: GoDoc, path: Path, faults: Faults) -> None:
    """`until` has one amount at most, and nothing else decides how much a step does."""
    given = [] if go.until is None else [what for what in VOLUMES if getattr(go.until, what) is not None]
    if len(given) > 1:
        faults.add_key((*path, "until", given[1]), f"until has {given[0]} and {given[1]}; it needs one of them")
    if given and go.once:
        faults.add_key((*path, "once"), "once and until both set the end; remove one")
    for text in _looped_ends(go, given):
        faults.add_key((*path, "loop", text[0]), text[1])
    if go.until is None and not go.once:
        return
    key = "until" if go.until is not None else "once"
    for name in _NOT_WITH_UNTIL:
        if getattr(go, name) is not None:
            faults.add_key((*path, name), f"{name} and {key} both set how long the step takes; make it two steps")
    if go.measure is not None and go.measure.metric is not None:
        faults.add_key((*path, "measure"), f"measure: {key} ends the step, so only a time may stand here")


def _looped_ends(go: GoDoc, given: list[str]) -> Iterator[tuple[str, str]]:
    """Find what a loop sets that the step sets itself."""
    looped: set[str] = set() if go.loop is None else go.loop.model_fields_set
    if "until" in looped and (go.once or given):
        other = "once" if go.once else given[0]
        yield "until", f"the loop's until and {other} both set the end; remove one"
    if "random_map" in looped and go.once:
        yield "random_map", "the loop's random_map and once both set whether each block comes once; remove one"


def check_some_end(go: GoDoc, some: bool, path: Path, faults: Faults) -> None:
    """Find a step that is to end by volume, and cannot. `some`: of its passes do."""
    if some or (go.until is None and not go.once):
        return
    key = "until" if go.until is not None else "once"
    if go.once or (go.until and go.until.volume):
        text = f"{key}: no workload that is driven ends by volume; set iops, or leave {key} out"
    else:
        text = "until has no amount, and no workload that is driven has an until; give an amount, like written: 2x"
    faults.add_key((*path, key), text)


def control_spec(
    go: GoDoc, path: Path, defaults: TimesDoc, fixed: FixedSpec, warmup: int, subinterval_s: float, tolerance: float,
    faults: Faults,
) -> ControlSpec:  # fmt: skip
    """The spec of the `go` at `path`, with what it leaves to `defaults`. `fixed`: its measurement by time."""
    for text in _exclusions(go):
        faults.add_key((*path, text[0]), text[1])
    measurement: MeasurementSpec = fixed
    steady, measure = _measurement(go, defaults)
    if go.find is None:
        if steady is not None:
            measurement = _steady(steady, _at(go, path, "steady"), subinterval_s, faults)
        elif measure is not None and measure.metric is not None:
            measurement = _accurate(measure, measure.metric)
    if go.profile is None:
        load = _load(go, path, defaults, faults)
    else:
        load = _profile(go.profile, measurement, subinterval_s, (*path, "profile"), faults)
    slo, disturbed = _slo(go, path, defaults, faults), go.disturbed or defaults.disturbed or OnDisturbance.SET_ASIDE
    return ControlSpec(
        subinterval_s, warmup, measurement, load, slo, tolerance, disturbed, rounds=None, is_watched=False
    )


def check_measures(go: GoDoc | TimesDoc, path: Path, faults: Faults) -> None:
    """A `measure` has a time, or a metric with its keys; and it excludes `steady`."""
    doc = go.measure
    if doc is not None:
        accurate = [name for name in doc.model_fields_set if name != "time"]
        unread = any(faults.unreadable((*path, "measure", key)) for key in ("time", "metric"))
        if doc.time is None and doc.metric is None and not unread:
            faults.add((*path, "measure"), "measure needs a time, like 60s, or a metric that is to be known")
        elif doc.time is not None and accurate:
            text = f"measure has a time, so it ends then and {sorted(accurate)[0]} means nothing; remove one of them"
            faults.add_key((*path, "measure", "time"), text)
    if doc is not None and go.steady is not None:
        faults.add_key((*path, "steady"), "steady and measure both set when the measurement is complete; remove one")


def _exclusions(go: GoDoc) -> Iterator[tuple[str, str]]:
    given = [name for name in _LOADS if getattr(go, name) is not None]
    for name in given[1:]:
        yield name, f"{name} and {given[0]} both set the load; make it two steps"
    if go.find is not None:
        for name in _MEASUREMENTS:
            if getattr(go, name) is not None:
                yield name, f"find takes its own measurements; remove {name}"
    if go.loop is not None and given:
        looped = {"iops", "total_iops"} & go.loop.model_fields_set
        if looped:
            yield given[0], f"{given[0]} and the loop's {sorted(looped)[0]} both set the load; remove one"


def _measurement(go: GoDoc, defaults: TimesDoc) -> tuple[SteadyDoc | None, MeasureDoc | None]:
    """The one in force: the step's own, else the one of `defaults`."""
    if go.steady is not None or go.measure is not None:
        return go.steady, go.measure
    return defaults.steady, defaults.measure


def _at(go: GoDoc, path: Path, key: str) -> Path:
    """The place of a step's key: in the step, or in `defaults`."""
    return (*path, key) if getattr(go, key) is not None else ("defaults", key)


def _accurate(doc: MeasureDoc, metric: str) -> MeasureSpec:
    return MeasureSpec(focus_on(metric, doc.rollup), doc.accuracy, doc.confidence, doc.min, doc.timeout, doc.correction)


def _steady(doc: SteadyDoc, path: Path, subinterval_s: float, faults: Faults) -> SteadySpec:
    window, ramp = (math.ceil(round(seconds / subinterval_s, 6)) for seconds in (doc.window, doc.ramp or 0.0))
    criterion = _criterion(doc, path, window, faults)
    return SteadySpec(
        criterion, ramp, window if doc.hold else 0, doc.on_leave, doc.confidence, doc.timeout
    )  # fmt: skip


def _criterion(doc: SteadyDoc, path: Path, window: int, faults: Faults) -> Criterion:
    if doc.criterion in FIO and doc.metric is not None:
        faults.add_key((*path, "metric"), f"{doc.criterion} names its metric itself; remove this, or use t or snia")
    if doc.latency is not None and doc.criterion not in ("latency", "latency_slope"):
        faults.add_key((*path, "latency"), f"{doc.criterion} does not use latency; remove this")
    if doc.criterion == Rule.SNIA and "limit" in doc.model_fields_set:
        faults.add_key((*path, "limit"), "snia has limits of its own; remove this")
    rule, metric = rule_and_metric(doc.criterion, doc.latency or LATENCIES[0])
    if doc.criterion not in FIO and doc.metric is not None:
        metric = doc.metric
    limit, relative = math.nan, True  # where it cannot be read: no other fault follows from it
    try:
        if metric in METRICS or connector_of(metric):
            limit, relative = parse_limit(unit_of(metric), doc.limit)
    except ValueError as error:
        faults.add((*path, "limit"), f"limit: {error}")
    if rule is Rule.T and not relative:
        faults.add((*path, "limit"), f"limit: {doc.limit!r} is no accuracy; write a percentage, like 2%")
    no_drift = doc.criterion in FIO and doc.no_drift
    return Criterion(rule, focus_on(metric, doc.rollup), window, limit, relative, no_drift)


def _amount(metric: str, key: str, text: str, path: Path, faults: Faults) -> float:
    """An amount of a metric; one that cannot be read is a fault, and not a number here.

    Of a metric that does not exist, which is a fault of its own, no amount can be read.
    """
    try:
        return parse_amount(unit_of(metric), text) if metric in METRICS or connector_of(metric) else math.nan
    except ValueError as error:
        faults.add((*path, key), f"{key}: {error}")
        return math.nan


def _load(go: GoDoc, path: Path, defaults: TimesDoc, faults: Faults) -> LoadSpec | None:
    if go.find is not None:
        return _find(go.find, (*path, "find"), faults)
    if go.staircase is not None:
        return _stairs(go.staircase, (*path, "staircase"), faults)
    control = go.control or (None if go.iops_curve else defaults.control)
    return _pid(control.pid, (*_at(go, path, "control"), "pid"), faults) if control else None


def _pid(doc: PidDoc, path: Path, faults: Faults) -> PidSpec:
    target = _amount(doc.metric, "target", doc.target, path, faults)
    given = [key for key in _CALIBRATION if getattr(doc, key) is not None]
    calibration = None
    if doc.auto and given:
        faults.add_key((*path, given[0]), f"auto finds {given[0]} itself; remove one of them")
    elif not doc.auto:
        ends_of = ("low_iops", "high_iops")
        missing = [key for key in ends_of if key not in given and not faults.unreadable((*path, key))]
        if missing:
            faults.add(path, f"pid needs {' and '.join(missing)}, the range of its load; or write auto: true")
        else:
            ends = [
                None if (text := getattr(doc, key)) is None else _amount(doc.metric, key, text, path, faults)
                for key in ("low_target", "high_target")
            ]
            low, high = (_level(getattr(doc, key), key, path, faults) for key in ends_of)
            calibration = Calibration(low, high, *ends)
    return PidSpec(focus_on(doc.metric, doc.rollup), target, calibration, doc.timeout)


def _stairs(doc: StaircaseDoc, path: Path, faults: Faults) -> StaircaseSpec:
    start = _level(doc.start, "start", path, faults)
    open_end = doc.end is None and not faults.unreadable((*path, "end"))
    end = None if open_end else _level(doc.end, "end", path, faults)
    relative: float | None = None
    step: Level | None = None if doc.steps else math.nan
    rise_unread = any(faults.unreadable((*path, key)) for key in ("step", "steps"))
    if not rise_unread and (doc.step is None) == (doc.steps is None):
        faults.add(path, "staircase needs either step, the rise from level to level, or steps, the number of levels")
    elif doc.steps is not None and end is None:
        faults.add_key((*path, "steps"), "steps are counted from start to end; add end")
        step = math.nan
    elif isinstance(doc.step, tuple):
        relative, step = doc.step[1], None
    elif doc.step is not None:
        step = _level(doc.step, "step", path, faults)
    return StaircaseSpec(start, end, step, relative, doc.steps)


def _profile(
    doc: ProfileDoc, measurement: MeasurementSpec, subinterval_s: float, path: Path, faults: Faults
) -> ProfileSpec:
    unread = any(faults.unreadable((*path, key)) for key in ("ramp", "points"))
    if not unread and (doc.ramp is None) == (doc.points is None):
        faults.add(path, "profile needs either ramp, rates over the measurement, or points, rates by time")
    elif not isinstance(measurement, FixedSpec):
        faults.add(path, "profile needs a measurement of a fixed time, like measure: 60s")
    elif doc.ramp is not None:
        distance_s = measurement.subintervals * subinterval_s / (len(doc.ramp) - 1)
        return ProfileSpec(tuple((number * distance_s, rate) for number, rate in enumerate(doc.ramp)))
    elif doc.points and doc.points[-1][0] > (end_s := measurement.subintervals * subinterval_s):
        last, end = format_duration(doc.points[-1][0]), format_duration(end_s)
        faults.add(
            (*path, "points"), f"the last point is at {last}, but the measurement ends at {end}: lengthen measure"
        )
    return ProfileSpec(doc.points or ())


def _level(value: Any, key: str, path: Path, faults: Faults) -> Level:
    """A load; one that could not be read has a fault already, and is not a number here."""
    if value is None:
        return math.nan
    if value == MAX:
        faults.add((*path, key), f"{key}: 'max' is no number of IOPS; write a number, or 98% of step NAME")
        return math.nan
    level: Level = value
    return level


def _find(doc: FindDoc, path: Path, faults: Faults) -> FindSpec:
    target = _amount(doc.metric, "target", doc.target, path, faults)
    focus = focus_on(doc.metric, doc.rollup)
    return FindSpec(focus, target, doc.resolution, doc.confidence, doc.probes, doc.longest_probe, doc.within)


def _slo(go: GoDoc, path: Path, defaults: TimesDoc, faults: Faults) -> tuple[SloSpec, ...]:
    docs = go.slo if go.slo is not None else defaults.slo or []
    return tuple(_threshold(doc, (*_at(go, path, "slo"), i), faults) for i, doc in enumerate(docs))


def _threshold(doc: SloDoc, path: Path, faults: Faults) -> SloSpec:
    given = {side: text for side in Side if (text := getattr(doc, side)) is not None}
    if len(given) != 1 and not any(faults.unreadable((*path, side)) for side in Side):
        faults.add(path, f"a threshold has exactly one of {' and '.join(Side)}; write two thresholds for a range")
    side, limit = Side.AT_MOST, math.nan
    for side, text in given.items():
        limit = _amount(doc.metric, side, text, path, faults)
    focus, alert = focus_on(doc.metric, doc.rollup), doc.on_break
    command, every_s = (alert.command, alert.every) if alert else ((), EVERY_S)
    return SloSpec(focus, side, limit, doc.abort_early, command, every_s)
