"""Control's input, made from a merged subinterval: figures become samples and loads.

Rule: control sums over subintervals, so a metric comes as the sums it is computed from: a rate with its seconds, a mean
with its count, a percentile with its buckets. Other columns (a maximum, a standard deviation, a backlog) have no such
sums and cannot be focus metrics.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...protocol.counters import Count
from ..rollup.arrays import Floats, Merged
from ..rollup.disturbance import disturbance
from ..rollup.figures import Figures, LatencyFigures
from ..rollup.generator_checks import slowed_rows
from ..rollup.instances import RollupInstance, Rollups
from ..rollup.merge import MergedSubinterval
from ..rollup.metrics import MEAN, METRICS, Quantity
from ..rollup.overload import Outstanding, rows_surged
from ..rollup.parameters_in_force import Settings
from ..rollup.volumes import Volumes
from ..rollup.window import Measurement
from ..stats.metric_sample import MetricSample, value_of
from ..stats.percentiles import NS_PER_US
from .focus import Focus
from .late_hosts import LateHosts
from .observation import NO_LOAD, InstanceLoad, Observation, Phase

Samples = Mapping[Focus, Mapping[str, MetricSample]]  # by rollup instance

_LATENCIES: Final[dict[Quantity, Callable[[Figures, str], LatencyFigures]]] = {
    Quantity.SERVICE: lambda figures, category: figures.service(category),
    Quantity.RESPONSE: lambda figures, category: figures.response(category),
}
FOCUS_METRICS: Final = tuple(
    name
    for name, metric in METRICS.items()
    if metric.is_over_time
    or (metric.quantity in _LATENCIES and (metric.statistic == MEAN or metric.fraction is not None))
)


def focus_on(metric: str, rollup: str = "all") -> Focus:
    """The focus of a metric; check.py reports a metric that does not exist."""
    return Focus(metric, rollup, METRICS[metric].fraction if metric in METRICS else None)


def observe(
    closed: MergedSubinterval,
    settings: Settings,
    focuses: Iterable[Focus],
    start_s: float,
    length_s: float,
    phase: Phase,
    edited: bool,
    hosts: LateHosts,
    before: LateHosts,
    late: int = 0,
    of_connectors: Samples = MappingProxyType({}),
    other_load: bool = False,
    volumes: Volumes | None = None,
) -> Observation:
    """Observe a closed subinterval for control; `settings`: in force at its end. The rest: see Observation.

    `hosts`: whom it judges by, and `before`: in the one before. `of_connectors`: the samples of the focuses that are
    connectors' metrics.
    """
    layout = closed.layout
    known, paced = closed.known_instances(), ~layout.of_instances(settings.at_max)
    outstanding = Outstanding.of(closed.counts, known).of_paced(paced)
    surged = rows_surged(layout, outstanding)
    samples, loads = observed(closed.figures, layout.rollups, focuses, surged, layout.rows_of(hosts.judged))
    return Observation(
        closed.subinterval, start_s, length_s, phase, hosts.part == before.part, edited, {**samples, **of_connectors},
        loads, outstanding, disturbance(closed.results), not closed.absent.isdisjoint(hosts.judged),
        hosts.since.keys() != before.since.keys(), _covers(closed, length_s), late, other_load,
        volumes,
    )  # fmt: skip


def _covers(closed: MergedSubinterval, length_s: float) -> int:
    """How many subintervals before this one a result covers, by its length: what a host says of itself could begin a
    measurement anew for ever."""
    longest_ns = max((one.length_ns for one in closed.results.values()), default=0)
    return max(round(longest_ns / 1e9 / length_s) - 1, 0)


def connector_samples(
    rollups: Rollups, rows: NDArray[np.bool_], focuses: Iterable[Focus], sample: Callable[[str, int], MetricSample]
) -> dict[Focus, dict[str, MetricSample]]:
    """The samples of the focuses that are connectors' metrics, by rollup instance.

    `sample`: of a metric, by its full name, and of a row. `rows`: (R,) those that have a host which is judged.
    """
    return {
        focus: {
            one.name: sample(focus.metric, one.row) for one in rollups.type(focus.rollup).instances if rows[one.row]
        }
        for focus in set(focuses)
        if focus.connector
    }


def observe_measurement(measurement: Measurement, focuses: Iterable[Focus]) -> dict[Focus, dict[str, float | None]]:
    """The hosts' own focus metrics of a whole measurement, by instance: the input of its checks. None is blank.

    Instances none of whose hosts is in are left out.
    """
    figures, rollups = _figures(measurement.merged), measurement.layout.rollups
    participating = measurement.merged.presence.hosts_in > 0
    return {
        focus: {
            name: value_of([sample], focus.fraction)
            for name, sample in samples(figures, focus, _instances(rollups, focus.rollup, participating)).items()
        }
        for focus in set(focuses)
        if not focus.connector
    }


def slowed_instances(
    measurement: Measurement, settings: Settings, focuses: Iterable[Focus]
) -> dict[Focus, dict[str, float]]:
    """Of each focus, the instances that slowed_rows finds, with its shares."""
    slowed, rollups = slowed_rows(measurement, settings), measurement.layout.rollups
    return {
        focus: {one.name: slowed[one.row] for one in rollups.type(focus.rollup).instances if one.row in slowed}
        for focus in set(focuses)
    }


def _figures(merged: Merged) -> Figures:
    """With every row's response time, also where Settings.response_rows leaves it blank.

    A find and a threshold need it most where a load was not sustained, or they could not tell that it was missed: a
    check of a measurement may name a response time that the summary's row, for the same reason, does not show. The
    values are the same; only where they are shown differs.
    """
    return Figures(merged, np.ones(len(merged.counts), bool))


def observed(
    figures: Figures, rollups: Rollups, focuses: Iterable[Focus], surged: NDArray[np.bool_], part: NDArray[np.bool_]
) -> tuple[dict[Focus, dict[str, MetricSample]], dict[str, dict[str, InstanceLoad]]]:
    """`samples` and `loads` of an Observation: all that a state with these focuses looks at, in one subinterval.

    `surged`: (R,) rows in which a workload instance falls behind; `part`: (R,) rows that have a host which is judged.
    The others are left out; one of which no host is in is blank.
    """
    wanted = set(focuses)
    present = {name: _instances(rollups, name, part) for name in {"all", *(focus.rollup for focus in wanted)}}
    return (
        {focus: samples(figures, focus, present[focus.rollup]) for focus in wanted if not focus.connector},
        {name: loads(figures, instances, surged) for name, instances in present.items()},
    )


def _instances(rollups: Rollups, kind: str, there: NDArray[np.bool_]) -> list[RollupInstance]:
    """The instances of a rollup type whose rows are `there`."""
    return [instance for instance in rollups.type(kind).instances if there[instance.row]]


def samples(figures: Figures, focus: Focus, instances: Sequence[RollupInstance]) -> dict[str, MetricSample]:
    """The focus metric of each of a rollup type's instances, by name, in one subinterval."""
    lengths = figures.merged.presence.length_s
    metric = METRICS[focus.metric]
    if metric.is_over_time:
        values = metric.compute(figures)
        return {one.name: _over_time(float(values[one.row]), float(lengths[one.row])) for one in instances}
    latency = _LATENCIES[metric.quantity](figures, metric.category)
    shown = figures.has_response(metric.category) if metric.needs_pacing else np.ones(len(lengths), bool)
    if focus.fraction is None:
        return {one.name: _mean(latency, one.row, bool(shown[one.row])) for one in instances}
    return {one.name: _histogram(latency, one.row, bool(shown[one.row])) for one in instances}


def loads(figures: Figures, instances: Sequence[RollupInstance], surged: NDArray[np.bool_]) -> dict[str, InstanceLoad]:
    """The loads of a rollup type's instances, by name."""
    columns: list[Floats] = [
        figures.counter(Count.DUE),
        figures.counter(Count.COMPLETED),
        figures.counter(Count.BACKLOG),
        figures.counter(Count.IN_FLIGHT),
        figures.counter(Count.ERRORS, Count.DROPPED),
        figures.counter(Count.EXPIRED),
    ]
    by_name = {}
    rates, presence = figures.rate("overall", 0), figures.merged.presence
    lengths = presence.length_s
    for instance in instances:
        if not presence.hosts_in[instance.row]:
            by_name[instance.name] = NO_LOAD
            continue
        due, completed, backlog, in_flight, failed, expired = (int(column[instance.row]) for column in columns)
        by_name[instance.name] = InstanceLoad(
            due, completed, backlog, float(rates[instance.row]), float(lengths[instance.row]), in_flight, failed,
            expired, bool(surged[instance.row]),
        )  # fmt: skip
    return by_name


def _over_time(value: float, length_s: float) -> MetricSample:
    if not np.isfinite(value) or not np.isfinite(length_s):
        return MetricSample(0.0, 0.0)
    return MetricSample(value * length_s, length_s, alone=value)


def _mean(latency: LatencyFigures, row: int, shown: bool) -> MetricSample:
    count = float(latency.count[row])
    if not shown or not count:
        return MetricSample(0.0, 0.0)
    return MetricSample(float(latency.total_ns[row]), count * NS_PER_US)


def _histogram(latency: LatencyFigures, row: int, shown: bool) -> MetricSample:
    """The buckets that are used, copied: a long measurement keeps one a subinterval."""
    buckets = latency.buckets
    used = np.flatnonzero(buckets.counts[row])
    if not shown or len(used) == 0:
        return MetricSample(0.0, 0.0)
    first, last = int(used[0]), int(used[-1]) + 1
    least, most = int(latency.least_ns[row]), int(latency.most_ns[row])
    return MetricSample(0.0, 0.0, buckets.counts[row, first:last].copy(), buckets.low + first, least, most)
