"""A step's figures for whoever watches: one closed subinterval, and one measurement.

Rule: the same figures as the CSV row of `all=all`, blank where that is blank.
"""

from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from typing import Any, Final, Literal

import numpy as np

from ...protocol.counters import Count
from ...protocol.parameters import MAX
from ..causes import cause_of
from ..control.observation import Phase
from ..live.reports import Instances, Latency, MeasurementRow, Slice, Steadiness, Subinterval
from ..output.record_types import SummaryRecord
from ..plan.model import Step
from ..rollup.figures import OVERALL, Figures
from ..rollup.instances import RollupType
from ..rollup.metrics import MEAN, METRICS, Metric, Quantity, metric_of, value
from ..verdicts import Finding, Scope, by_weight, counting_for, verdict_of
from .step_types import ClosedSubinterval

ALL_ROW: Final = 0  # `all=all` is every run's first row
DIRECTIONS: Final = ("read", "write")
STATISTICS: Final = ("p50", "p99", "max", "p99_9")  # as the fields of Latency


def subinterval_report(
    closed: ClosedSubinterval, figures: Figures, step: Step, end_utc: str, remaining_s: float, later_steps_s: float
) -> Subinterval:
    """`remaining_s`: of the step; `later_steps_s`: how long the steps after it are planned to take."""
    merged, settings = closed.interval.merged, closed.settings
    return Subinterval(
        utc=end_utc,
        step=step.name,
        phase=closed.phase,
        number=closed.number,
        target_iops=_target(settings.iops[ALL_ROW]),
        iops=_overall(figures, Quantity.IOPS),
        mib_per_s=_overall(figures, Quantity.THROUGHPUT),
        service=_latency(figures, Quantity.SERVICE),
        response=_latency(figures, Quantity.RESPONSE),
        errors=int(merged.counts[ALL_ROW, Count.ERRORS]),
        hosts_in=int(merged.presence.hosts_in[ALL_ROW]),
        hosts_of=int(merged.presence.hosts_of[ALL_ROW]),
        busy_percent=_figure(figures, METRICS["cpu_busy_percent"]),
        busiest_percent=_figure(figures, METRICS["busiest_core_percent"]),
        messages=closed.decision.messages,
        step_remaining_s=remaining_s,
        run_remaining_s=remaining_s + later_steps_s,
        directions=_directions(figures),
        paused=closed.decision.paused,
        steady=_steadiness(closed.decision.steady),
    )


def remaining_s(closed: ClosedSubinterval, step: Step, before_s: float) -> float:
    """What the step still takes, with its tail: as control knows, or at most as planned. A pause takes nothing off.

    `before_s`: what it was before this subinterval.
    """
    decision = closed.decision
    if decision.paused:
        return before_s
    if closed.phase in (Phase.TAIL, Phase.COOLDOWN):
        return 0.0
    if decision.done:
        return step.subinterval_s
    if decision.remaining is not None:
        return (decision.remaining + 1) * step.subinterval_s
    return max(before_s - step.subinterval_s, 0.0)


def measurement_report(name: str, record: SummaryRecord, findings: tuple[Finding, ...]) -> MeasurementRow:
    """A row of the table at the end of a run; `findings` are of all its rollup instances."""
    validity, nothing = record.validity, Latency(*[None] * 3)
    row = partial(
        MeasurementRow,
        name=name,
        verdict=verdict_of(counting_for(findings, validity.purpose)),
        rate_verdict=validity.scope_verdict(ALL_ROW, Scope.RATE),
        service_verdict=validity.scope_verdict(ALL_ROW, Scope.SERVICE),
        response_verdict=validity.scope_verdict(ALL_ROW, Scope.RESPONSE),
        findings=by_weight(findings, validity.purpose),
        cause=cause_of(findings, validity.purpose),
    )
    figures = figures_of(record)
    if figures is None or record.measurement is None:
        return row(
            iops=None, half_width_percent=None, mib_per_s=None, service_mean_us=None, service=nothing,
            response_mean_us=None, response=nothing,
        )  # fmt: skip
    iops, half = _overall(figures, Quantity.IOPS), record.measurement.iops_half_width[ALL_ROW]
    return row(
        iops=iops,
        half_width_percent=None if np.isnan(half) or not iops else float(half / iops * 100),
        mib_per_s=_overall(figures, Quantity.THROUGHPUT),
        service_mean_us=_overall(figures, Quantity.SERVICE, MEAN),
        service=_latency(figures, Quantity.SERVICE),
        response_mean_us=_overall(figures, Quantity.RESPONSE, MEAN),
        response=_latency(figures, Quantity.RESPONSE),
        hosts_in=int(record.measurement.merged.presence.hosts_in[ALL_ROW]),
        hosts_of=int(record.measurement.merged.presence.hosts_of[ALL_ROW]),
    )


def figures_of(record: SummaryRecord) -> Figures | None:
    """What was measured, as the summary's rows have it; None where nothing was."""
    if record.measurement is None:
        return None
    return Figures(record.measurement.merged, record.settings.response_rows(record.validity.reached))


def _target(setting: str) -> float | Literal["max", "mixed"]:
    """What is shown of `iops_setting`, which is blank where some are paced and some are not."""
    if setting == MAX:
        return "max"
    return float(setting) if setting else "mixed"


def _steadiness(block: Mapping[str, Any] | None) -> Steadiness | None:
    """What watchers are shown of steady.json: all but the values."""
    return None if block is None else Steadiness(**{one.name: block[one.name] for one in fields(Steadiness)})


def _overall(figures: Figures, quantity: Quantity, statistic: str = "") -> float | None:
    return _figure(figures, metric_of(OVERALL, quantity, statistic))


def _figure(figures: Figures, metric: Metric) -> float | None:
    """None where the CSV has a blank."""
    found = float(value(figures, metric)[ALL_ROW])
    return None if np.isnan(found) else found


def _directions(figures: Figures) -> tuple[Slice, ...]:
    """Reads and writes, where the subinterval had both."""
    both = all(figures.rate(name, 0)[ALL_ROW] > 0 for name in DIRECTIONS)
    return tuple(_slices(figures, name, {ALL_ROW: name})[0] for name in DIRECTIONS) if both else ()


def instances_of(closed: ClosedSubinterval, figures: Figures, step: Step, kind: RollupType) -> Instances:
    """The rollup instances of one type, in the order of the CSV."""
    slices = _slices(figures, OVERALL, {one.row: one.name for one in kind.instances})
    return Instances(kind.name, step.name, closed.number, slices)


def _slices(figures: Figures, category: str, names: Mapping[int, str]) -> tuple[Slice, ...]:
    """The figures of some rows, `names` by row; None where the CSV has a blank."""
    rows = list(names)

    def column(quantity: Quantity, statistic: str = "") -> list[float | None]:
        found = value(figures, metric_of(category, quantity, statistic))[rows].tolist()
        return [None if one != one else one for one in found]

    def latencies(quantity: Quantity) -> list[Latency]:
        return [Latency(*each) for each in zip(*(column(quantity, name) for name in STATISTICS), strict=True)]

    columns = (
        column(Quantity.IOPS), column(Quantity.THROUGHPUT), latencies(Quantity.SERVICE), latencies(Quantity.RESPONSE)
    )  # fmt: skip
    return tuple(Slice(*each) for each in zip(names.values(), *columns, strict=True))


def _latency(figures: Figures, quantity: Quantity) -> Latency:
    return Latency(*(_overall(figures, quantity, name) for name in STATISTICS))
