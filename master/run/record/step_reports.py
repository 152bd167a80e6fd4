"""A step's figures for whoever watches: one closed subinterval, and one measurement.

Rule: the same figures as the CSV row of `all=all`, blank where that is blank.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final, Literal

import numpy as np

from ....protocol.parameters import MAX
from ...causes import cause_of
from ...control.observation import Phase
from ...live.reports import InstanceRow, Instances, Steadiness, Subinterval, WorstInstance
from ...output.record_types import SummaryRecord
from ...plan.model import Step
from ...rollup.figures import Figures
from ...rollup.instances import Rollups, RollupType
from ...rollup.metrics import METRICS, Quantity, value
from ...summary.headline import (
    DIRECTIONS,
    HALF_WIDTH,
    IOPS,
    MEASUREMENT_METRICS,
    SUBINTERVAL_METRICS,
    names_of,
    of_direction,
)
from ...summary.measured import MeasurementRow
from ...verdicts import Finding, Scope, by_weight, counting_for, verdict_of
from ..step.step_types import ALL_ROW, ClosedSubinterval

_TIMES: Final = (Quantity.RESPONSE, Quantity.SERVICE)
_WORST_BY: Final = tuple(  # the first that all have: a p99 takes 1,000 I/Os, a response time a rate
    name for statistic in ("p99", "mean") for time in _TIMES for name in names_of(time, statistic)
)
_OF_SUBINTERVAL: Final = (*SUBINTERVAL_METRICS, "errors", "cpu_busy_percent", "busiest_core_percent")


def subinterval_report(
    closed: ClosedSubinterval,
    figures: Figures,
    step: Step,
    rollups: Rollups,
    end_utc: str,
    remaining_s: float,
    later_steps_s: float,
) -> Subinterval:
    """`remaining_s`: of the step; `later_steps_s`: how long the steps after it are planned to take."""
    merged, settings = closed.interval.merged, closed.settings
    return Subinterval(
        utc=end_utc,
        step=step.name,
        phase=closed.phase,
        number=closed.number,
        target_iops=_target(settings.iops[ALL_ROW]),
        figures=_figures_of(figures, (*_OF_SUBINTERVAL, *_of_directions(figures)), [ALL_ROW])[0],
        hosts_in=int(merged.presence.hosts_in[ALL_ROW]),
        hosts_of=int(merged.presence.hosts_of[ALL_ROW]),
        messages=closed.decision.messages,
        news=closed.decision.news,
        step_remaining_s=remaining_s,
        run_remaining_s=remaining_s + later_steps_s,
        paused=closed.decision.paused,
        steady=_steadiness(closed.decision.steady),
        worst=worst_instance(figures, rollups.types),
    )


def remaining_s(closed: ClosedSubinterval, step: Step, before_s: float) -> float:
    """The time that the step still takes, with its tail, in seconds: as control knows, or at most as planned. A pause
    takes nothing off.

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
    validity, measurement = record.validity, record.measurement
    hosts_in = hosts_of = 0
    shown: dict[str, float] = {}
    if measurement is not None and record.figures is not None:
        (shown,) = _figures_of(record.figures, [one for one in MEASUREMENT_METRICS if one != HALF_WIDTH], [ALL_ROW])
        if not np.isnan(half := float(measurement.iops_half_width[ALL_ROW])):
            shown[HALF_WIDTH] = half
        presence = measurement.merged.presence
        hosts_in, hosts_of = int(presence.hosts_in[ALL_ROW]), int(presence.hosts_of[ALL_ROW])
    return MeasurementRow(
        name=name,
        verdict=verdict_of(counting_for(findings, validity.purpose)),
        rate_verdict=validity.scope_verdict(ALL_ROW, Scope.RATE),
        service_verdict=validity.scope_verdict(ALL_ROW, Scope.SERVICE),
        response_verdict=validity.scope_verdict(ALL_ROW, Scope.RESPONSE),
        findings=by_weight(findings, validity.purpose),
        cause=cause_of(findings, validity.purpose),
        figures=shown,
        hosts_in=hosts_in,
        hosts_of=hosts_of,
    )


def _target(setting: str) -> float | Literal["max", "mixed"]:
    """The shown form of `iops_setting`, which is blank where some are paced and some are not."""
    if setting == MAX:
        return "max"
    return float(setting) if setting else "mixed"


def _steadiness(block: Mapping[str, Any] | None) -> Steadiness | None:
    """The part of steady.json that watchers are shown: all but the values."""
    return None if block is None else Steadiness(**{one.name: block[one.name] for one in fields(Steadiness)})


def instances_of(closed: ClosedSubinterval, figures: Figures, step: Step, kind: RollupType) -> Instances:
    """The rollup instances of one type, in the order of the CSV."""
    found = _figures_of(figures, SUBINTERVAL_METRICS, [one.row for one in kind.instances])
    rows = (InstanceRow(one.name, own) for one, own in zip(kind.instances, found, strict=True))
    return Instances(kind.name, step.name, closed.number, tuple(rows))


def worst_instance(figures: Figures, types: Iterable[RollupType]) -> WorstInstance | None:
    """One that waits for I/Os of which none completed; else the one with the highest of the times that all have which
    completed any. Of equal ones, that of the type named first; None where none is above the median of its type."""
    several = [kind for kind in types if len(kind.instances) > 1]
    rows = [[instance.row for instance in kind.instances] for kind in several]
    done, waits = (value(figures, METRICS[metric]) for metric in (IOPS, "outstanding"))
    for kind, own in zip(several, rows, strict=True):
        stuck = np.flatnonzero((done[own] == 0) & (waits[own] > 0))
        if len(stuck) and done[own].any():
            return WorstInstance(f"{kind.name}={kind.instances[stuck[0]].name}", "", 0.0, 0.0, len(own))
    worst: WorstInstance | None = None
    for metric in _WORST_BY:
        times = value(figures, METRICS[metric])
        if not several or any(np.isnan(times[own])[done[own] > 0].any() for own in rows):
            continue
        for kind, own in zip(several, rows, strict=True):
            known = times[own][done[own] > 0]
            if len(known) < 2 or known.max() <= (median := float(np.median(known))):
                continue
            if worst is None or known.max() > worst.figure:
                name = f"{kind.name}={kind.instances[int(np.nanargmax(times[own]))].name}"
                worst = WorstInstance(name, metric, float(known.max()), median, len(known))
        return worst
    return None


def _of_directions(figures: Figures) -> list[str]:
    """The metrics of reads and of writes, where the subinterval had both."""
    both = all(figures.rate(one, 0)[ALL_ROW] > 0 for one in DIRECTIONS)
    return [of_direction(metric, one) for one in DIRECTIONS for metric in SUBINTERVAL_METRICS] if both else []


def _figures_of(figures: Figures, metrics: Sequence[str], rows: Sequence[int]) -> list[dict[str, float]]:
    """Of each of these rows its figures, without those that are blank."""
    columns = [value(figures, METRICS[metric])[rows].tolist() for metric in metrics]
    return [
        {metric: cell for metric, cell in zip(metrics, cells, strict=True) if not np.isnan(cell)}
        for cells in zip(*columns, strict=True)
    ]
