"""The plan's schema, control's part: `measure`, `steady`, `control`, `staircase`, `find` and `slo`.

Rule: as in schema.py. Amounts stay text here, because their unit follows from the metric, which is another key.
"""

import math
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field

from ....protocol.parameters import VolumeKind
from ...control.choices import CRITERIA, LATENCIES, LIMIT_PERCENT, WINDOW_S, OnLeave
from ...control.search import FEWEST_PROBES
from ...control.until import USUAL_TIMEOUT_S
from ...rollup.instances import ALL
from ...rollup.metrics import full_name
from ...stats.confidence import CONFIDENCE
from ...stats.estimate import Correction
from ...text.plan_parameters import Volume
from ...text.units import (
    Expected,
    format_duration,
    format_iops,
    format_number,
    parse_duration,
    parse_fraction,
    parse_iops,
)
from .field_types import (
    DURATION_SCHEMA,
    FLAG,
    IOPS_SCHEMA,
    TEXT,
    TEXT_SCHEMA,
    VOLUMES,
    WORDS,
    Reads,
    bounded,
    choice_field,
    count_field,
    duration_field,
    fraction_field,
    kind_of,
    scalar,
    volume_field,
)
from .section import Section, about, one_or_many
from .yaml_positions import Predicate

_TIMEOUT_S: Final = 900.0
EVERY_S: Final = 60.0  # between two alerts, with a command or without
_AMOUNT: Final = scalar(str, "an amount of the metric, with its unit", TEXT_SCHEMA)
_LOAD: Final = Expected("a load", "write a number, or 50% of step NAME")
_LEVEL: Final = scalar(
    bounded(lambda text: parse_iops(text, _LOAD), format_number, 0, 1e12),
    "a number, or 50% of step NAME", IOPS_SCHEMA, format_iops,
)  # fmt: skip


def _step(text: str) -> Any:
    """IOPS, or ("relative", a share of the level before)."""
    if text.strip().endswith("%"):
        return ("relative", parse_fraction(text))
    return parse_iops(text, Expected("a rise", "write a number, or a percentage"))


def _time_of_measurement(text: str) -> float:
    if text.lower() in ("on", "true", "yes"):
        raise ValueError(f"{text!r} is no time; write for example 60s, or {{ metric: iops, accuracy: 2% }}")
    return parse_duration(text)


_MEASURED_TIME: Final = scalar(
    bounded(_time_of_measurement, format_duration, 0.0, None), "a time like 60s", DURATION_SCHEMA, format_duration
)
_STEP: Final = scalar(_step, "IOPS, or a percentage of the load before", IOPS_SCHEMA)


def _words(value: Any) -> tuple[str, ...]:
    """A command: one line of shell words, or a list of them."""
    if isinstance(value, str):
        return tuple(WORDS.read(value))
    if not isinstance(value, list) or not value or not all(isinstance(word, str) and word for word in value):
        raise Predicate(f"is {kind_of(value)}; it needs a command, like [logger, too slow]")
    return tuple(value)


COMMAND: Final = Reads(_words, {"anyOf": [TEXT_SCHEMA, {"type": "array", "items": TEXT_SCHEMA, "minItems": 1}]})
_CONFIDENCE: Final = fraction_field(0.5, 0.9999)
METRIC: Final = scalar(full_name, "the name of a metric", TEXT_SCHEMA)
_METRIC_DOC: Final = (
    "A rate, mean, percentile or CPU of docs/columns.md, like overall_response_us_p99; or short: iops, p99 (of "
    "service times), response_p99, read_p99_9."
)


def _metric(default: Any = ..., doc: str = "A metric, named as in `measure`.") -> Any:
    return Field(default=default, description=doc)


def _rollup(text: str) -> Any:
    return about(text, ALL)


class MeasureDoc(Section):
    """The measurement ends after a `time` (`measure: 60s` for short), or when a metric is accurate."""

    time: Annotated[float | None, _MEASURED_TIME] = about("Measure for this long.")
    metric: Annotated[str | None, METRIC] = _metric(None, _METRIC_DOC)
    rollup: Annotated[str, TEXT] = _rollup("All instances of this rollup type must reach it.")
    accuracy: Annotated[float, fraction_field()] = about(
        "Half-width of the confidence interval, as a share of the value.", 0.02
    )
    confidence: Annotated[float, _CONFIDENCE] = about("Confidence of the interval.", CONFIDENCE)
    min: Annotated[float, duration_field()] = about("The shortest window.", 60.0)
    timeout: Annotated[float, duration_field()] = about(
        "Longest time since the step's start; then the result is invalid, with the best window.",
        _TIMEOUT_S,
    )
    correction: Annotated[Correction, choice_field(Correction)] = about(
        "Allows for dependent subintervals. effective: by their autocorrelation time; factor_two: ivy's rule, "
        "twice the width of independent ones.",
        Correction.EFFECTIVE,
    )


class SteadyDoc(Section):
    """Run until a steady state; that window, or with `hold` the next, is the measurement."""

    criterion: Annotated[str, choice_field(CRITERIA)] = Field(
        description="fio's iops, iops_slope, bw, bw_slope, latency or latency_slope; snia; or t (measure's rule)."
    )
    limit: Annotated[str, _AMOUNT] = about(
        "Largest deviation from the mean, or slope per second: a percentage of the mean, or an amount of the "
        "metric. snia has its own; for t it is the accuracy.",
        f"{LIMIT_PERCENT:g}%",
    )
    window: Annotated[float, duration_field()] = about("Length of the window; at least two subintervals.", WINDOW_S)
    ramp: Annotated[float | None, duration_field()] = about("Time left out at the beginning (the step's warmup).")
    latency: Annotated[str | None, choice_field(LATENCIES)] = about(
        "Statistic of service time for the latency criteria (mean)."
    )
    metric: Annotated[str | None, METRIC] = about("Metric for snia and t (overall_iops).")
    rollup: Annotated[str, TEXT] = _rollup("All instances of this rollup type must be steady.")
    hold: Annotated[bool, FLAG] = about("Measure one more window, which must stay steady.", False)
    on_leave: Annotated[OnLeave, choice_field(OnLeave)] = about(
        "If the steady state is left before it has held: note, restart or stop.", OnLeave.RESTART
    )
    no_drift: Annotated[bool, FLAG] = about(
        "Also the trend of three windows, continued for one more, must stay within the limit.", False
    )
    confidence: Annotated[float, _CONFIDENCE] = about("Confidence, for t.", CONFIDENCE)
    timeout: Annotated[float, duration_field()] = about(
        "Longest time since the step's start; then the result is invalid.", _TIMEOUT_S
    )


class UntilDoc(Section):
    """The step ends when its workloads have driven so much of each LUN: at most one amount, for all that have such
    I/O; without one, each ends by its own `until`."""

    written: Annotated[Any, volume_field(VolumeKind.WRITTEN)] = about("Bytes written, like 2x or 100GiB.")
    read: Annotated[Any, volume_field(VolumeKind.READ)] = about("Bytes read.")
    bytes: Annotated[Any, volume_field(VolumeKind.BYTES)] = about("Bytes read and written.")
    ios: Annotated[Any, volume_field(VolumeKind.IOS)] = about("I/Os, like 1M.")
    time: Annotated[Any, volume_field(VolumeKind.TIME)] = about("Time from the step's start, like 60s.")
    timeout: Annotated[float, duration_field()] = about(
        "Longest time since the step's start; then the result is partial.",
        USUAL_TIMEOUT_S,
    )

    @property
    def volume(self) -> Volume | None:
        """The one amount that is given; None: there is none."""
        return next((one for what in VOLUMES if (one := getattr(self, what)) is not None), None)


class PidDoc(Section):
    """Moves the total IOPS of each rollup instance until the metric is at its target."""

    metric: Annotated[str, METRIC] = _metric()
    target: Annotated[str, _AMOUNT] = Field(description="Its target, with its unit.")
    rollup: Annotated[str, TEXT] = _rollup("Each instance of this rollup type is controlled by itself.")
    auto: Annotated[bool, FLAG] = about("Calibrate first: a short run at max, and one at 2% of it.", False)
    low_iops: Annotated[Any, _LEVEL] = about("Lowest load of an instance: a number, or 5% of step NAME.")
    low_target: Annotated[str | None, _AMOUNT] = about("The metric at low_iops; below the target.")
    high_iops: Annotated[Any, _LEVEL] = about("Highest load of an instance.")
    high_target: Annotated[str | None, _AMOUNT] = about("The metric at high_iops; above the target.")
    timeout: Annotated[float, duration_field()] = about("Longest time for the load to settle.", _TIMEOUT_S)


class ControlDoc(Section):
    """Feedback control of the load."""

    pid: PidDoc = Field(description="Hold a metric at a target.")


class StaircaseDoc(Section):
    """Several loads, each with its own warmup, measurement and summary row."""

    start: Annotated[Any, _LEVEL] = Field(description="Total IOPS of the first level: a number, or 10% of step NAME.")
    end: Annotated[Any, _LEVEL] = about("Total IOPS of the last level; without it, until a load is not sustained.")
    step: Annotated[Any, _STEP] = about("Increase per level: IOPS, a percentage of the level before, or of a step.")
    steps: Annotated[int | None, count_field(2, 10_000)] = about(
        "Instead of step: number of levels, evenly from start to end."
    )


def _points(value: Any) -> tuple[tuple[float, float], ...]:
    """Rates by time, as { 0s: 1000, 30s: 5000 }."""
    if not isinstance(value, dict) or not value or not all(isinstance(rate, str) for rate in value.values()):
        raise Predicate(f"is {kind_of(value)}; it needs rates by time, like {{ 0s: 1000, 30s: 5000 }}")
    return tuple((_time_of_point(at), _rate(rate)) for at, rate in value.items())


def _time_of_point(text: str) -> float:
    return 0.0 if text.strip() == "0" else parse_duration(text)


def _rate(text: str) -> float:
    is_share = "%" in text  # of a step, which is known in the run alone
    rate = None if is_share else parse_iops(text, Expected("a rate", "write IOPS, a number"))
    if not isinstance(rate, float) or not 0 <= rate < math.inf:
        raise ValueError(f"{text!r} is no rate of a profile; write IOPS, a number")
    return rate


def _ramp(value: Any) -> tuple[float, ...]:
    if not isinstance(value, list) or len(value) < 2 or not all(isinstance(rate, str) for rate in value):
        raise Predicate(f"is {kind_of(value)}; it needs two rates or more, like [1000, 5000]")
    return tuple(map(_rate, value))


_NUMBER_SCHEMA: Final = {"type": ["number", "string"]}
_POINTS: Final = Reads(_points, {"type": "object", "additionalProperties": _NUMBER_SCHEMA, "minProperties": 1})
_RAMP: Final = Reads(_ramp, {"type": "array", "items": _NUMBER_SCHEMA, "minItems": 2})


class ProfileDoc(Section):
    """Total IOPS that change while they are measured. The warmup runs at the first rate. `measure` has a time."""

    ramp: Annotated[tuple[float, ...] | None, _RAMP] = about(
        "Rates at even distances over the measurement, on straight lines between them: [1000, 5000]."
    )
    points: Annotated[tuple[tuple[float, float], ...] | None, _POINTS] = about(
        "Instead of ramp: rates by the measurement's time, likewise: { 0s: 1000, 30s: 5000 }. After the last it stays."
    )


class FindDoc(Section):
    """The highest total IOPS whose metric is at most the target, with its interval."""

    metric: Annotated[str, METRIC] = _metric()
    target: Annotated[str, _AMOUNT] = Field(description="Largest value that passes, with its unit.")
    rollup: Annotated[str, TEXT] = _rollup("All instances of this rollup type must pass.")
    resolution: Annotated[float, fraction_field()] = about(
        "Width of the interval, as a share of the load, at which the search ends.", 0.02
    )
    within: Annotated[float | None, duration_field()] = about(
        "Time from the step's start until the search ends; without it, by `probes`."
    )
    confidence: Annotated[float, _CONFIDENCE] = about("Confidence of the interval.", 0.95)
    probes: Annotated[int, count_field(FEWEST_PROBES, 1000)] = about(
        "Largest number of probes, including the run at max.", 12
    )
    longest_probe: Annotated[int, count_field(10, 10_000)] = about(
        "Subintervals after which an unclear probe ends.", 48
    )


class OnBreakDoc(Section):
    """An alert: a command that the controller runs when a subinterval breaches the threshold."""

    command: Annotated[tuple[str, ...], COMMAND] = Field(
        description="A list of words, or one line, without a shell. Its environment: IVYPY_THRESHOLD, IVYPY_INSTANCE, "
        "IVYPY_VALUE (in the metric's unit: us for times), IVYPY_STEP, IVYPY_SUBINTERVAL."
    )
    every: Annotated[float, duration_field(1.0)] = about("Shortest time between two alerts.", EVERY_S)


class SloDoc(Section):
    """A step fails if its measurement does not meet the threshold (exit code 5)."""

    metric: Annotated[str, METRIC] = _metric()
    at_most: Annotated[str | None, _AMOUNT] = about("Largest value that meets it, with its unit.")
    at_least: Annotated[str | None, _AMOUNT] = about("Smallest; instead of at_most.")
    rollup: Annotated[str, TEXT] = _rollup("All instances of this rollup type must meet it.")
    abort_early: Annotated[bool, FLAG] = about("End the step as soon as it is certain to fail.", False)
    on_break: OnBreakDoc | None = about("The command of an alert.")


Slo = Annotated[list[SloDoc], BeforeValidator(one_or_many, json_schema_input_type=SloDoc | list[SloDoc])]


def _fractions(value: Any) -> tuple[float, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
        raise Predicate(f"is {kind_of(value)}; it needs a list of fractions, like [10%, 50%, 98%]")
    fractions = tuple(parse_fraction(one) for one in value)
    for text, fraction in zip(value, fractions, strict=True):
        if not 0 < fraction <= 1:
            raise ValueError(f"{text!r} is no load below the maximum; write a fraction from above 0% to 100%")
    if len(set(fractions)) < len(fractions):
        raise ValueError("holds a fraction twice")
    return fractions


FRACTIONS: Final = Reads(_fractions, {"type": "array", "items": TEXT_SCHEMA, "minItems": 1})
