"""A step's demands of control in words, for `ivypy check`."""

from collections.abc import Iterator

from ..text.metric_amounts import format_amount
from ..text.relative import OfStep
from ..text.units import format_duration, format_fraction, format_iops
from .demands import Accurate, Climbed, Demands, Found, Held, Level, Steadied, Threshold
from .model import ALL


def demand_lines(demands: Demands) -> Iterator[str]:
    """A line for each thing that is asked."""
    match demands.load:
        case Held() as held:
            yield _held(held)
        case Climbed() as climbed:
            yield _climbed(climbed)
        case Found() as found:
            target = format_amount(found.metric, found.target)
            yield (
                f"find: most total_iops with {found.metric}{_per(found.rollup)} at most {target}, "
                f"within {format_fraction(found.resolution)}, {found.probes} probes"
            )
        case None:
            pass
    match demands.judge:
        case Accurate() as one:
            yield (
                f"measure: until {one.metric}{_per(one.rollup)} is known to {format_fraction(one.accuracy)} "
                f"at {format_fraction(one.confidence)} confidence, at least {format_duration(one.min_s)}"
            )
        case Steadied() as one:
            yield _steadied(one)
        case None:
            pass
    yield from map(_threshold, demands.slo)


def _held(held: Held) -> str:
    text = f"control: pid holds {held.metric}{_per(held.rollup)} at {format_amount(held.metric, held.target)}"
    ends = held.calibration
    if ends is None:
        return f"{text}, in a range that it finds"
    return f"{text}, from {_level(ends.low_iops)} to {_level(ends.high_iops)} IOPS"


def _climbed(climbed: Climbed) -> str:
    end = "until it is not kept up with" if climbed.end is None else f"to {_level(climbed.end)}"
    if climbed.steps is not None:
        how = f"in {climbed.steps} treads"
    elif climbed.relative is not None:
        how = f"by {format_fraction(climbed.relative)} of the load before"
    else:
        how = f"by {_level(climbed.step or 0.0)}"
    return f"staircase: total_iops from {_level(climbed.start)} {end} {how}"


def _steadied(one: Steadied) -> str:
    limit = "" if one.criterion == "snia" else f" within {_limit(one)}"
    held = ", then held for one more" if one.hold else ""
    return f"steady: {one.criterion} of {one.metric}{_per(one.rollup)}{limit} over {one.window} subintervals{held}"


def _limit(one: Steadied) -> str:
    size = f"{one.limit:g}%" if one.relative else format_amount(one.metric, one.limit)
    return f"{size} per second" if one.criterion.endswith("_slope") else size


def _threshold(one: Threshold) -> str:
    ends = ", given up early" if one.abort_early else ""
    runs = f", runs {one.command[0]}" if one.command else ""
    return f"slo: {one.metric}{_per(one.rollup)} at most {format_amount(one.metric, one.at_most)}{ends}{runs}"


def _per(rollup: str) -> str:
    return "" if rollup == ALL else f" per {rollup}"


def _level(level: Level) -> str:
    return format_iops(level) if isinstance(level, OfStep) else f"{level:g}"
