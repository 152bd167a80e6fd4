"""The figures of runs for Prometheus, made from their folders when somebody scrapes.

Rule: the newest state only. A step that has ended leaves its verdict and nothing else, so no series stays behind; a
figure that is blank is absent. All names are base units: seconds, bytes, ratios. docs/metrics.md has the list.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from ..connectors.gathered import GatherState
from ..control.observation import Phase
from ..errors import IvypyError
from ..pages.growing_table import number
from ..pages.histogram_columns import Column
from ..pages.run_data import Progress, RunData
from ..rollup.figures import FLUSH, RELEASES
from ..rollup.instances import ALL
from ..summary.headline import CPU
from ..verdicts import Verdict
from .buckets import Coarse

MOST_INSTANCES: Final = 500  # of a rollup type; more are left out, and counted
MOST_CONNECTOR_FILES: Final = 500  # of a rollup type: its instances, each with the element types of all connectors
STALE_AFTER: Final = 2  # subintervals: what a connector said before is not shown; the last gather may be under way
_PERCENTILES: Final = {"50": "p50", "90": "p90", "99": "p99", "99.9": "p99_9", "99.99": "p99_99"}
_US_PER_S: Final = 1e6
_MIB: Final = 2.0**-20  # bytes are so many of it
_SUMMED: Final = {"errors": "ivypy_io_errors", "dropped": "ivypy_dropped_ios", "expired": "ivypy_expired_ios"}
_STEP: Final = ("run", "step")
NO_IO: Final[Column] = {}
_INSTANCE: Final = (*_STEP, "rollup_type", "rollup_instance")
_GAUGES: Final = {  # name: (help, labels)
    "ivypy_iops": ("I/Os completed per second in the last subinterval", (*_INSTANCE, "io")),
    "ivypy_target_iops": ("IOPS setting in force; absent at max", _INSTANCE),
    "ivypy_bytes_per_second": ("bytes transferred per second in the last subinterval", (*_INSTANCE, "io")),
    "ivypy_service_percentile_seconds": ("service times of the last subinterval", (*_INSTANCE, "io", "percentile")),
    "ivypy_response_percentile_seconds": ("response times of the last subinterval", (*_INSTANCE, "io", "percentile")),
    "ivypy_service_mean_seconds": ("mean service time in the last subinterval", (*_INSTANCE, "io")),
    "ivypy_response_mean_seconds": ("mean response time in the last subinterval", (*_INSTANCE, "io")),
    "ivypy_service_max_seconds": ("longest service time in the last subinterval", (*_INSTANCE, "io")),
    "ivypy_response_max_seconds": ("longest response time in the last subinterval", (*_INSTANCE, "io")),
    "ivypy_backlog_ios": ("I/Os that are due and not submitted", _INSTANCE),
    "ivypy_outstanding_ios": ("I/Os that are due and not completed", _INSTANCE),
    "ivypy_hosts": ("hosts that have a part in it", _INSTANCE),
    "ivypy_hosts_missing": ("of these, hosts whose result of the last subinterval is missing", _INSTANCE),
    "ivypy_host_cpu_ratio": ("share of a host's cores in the last subinterval", (*_STEP, "host", "use")),
    "ivypy_phase": ("1 for the phase of the last subinterval, 0 for the others", (*_STEP, "phase")),
    "ivypy_last_subinterval_timestamp_seconds": ("end of the last subinterval", _STEP),
    "ivypy_step_verdict": ("1 for the verdict of a step that has ended", (*_STEP, "verdict")),
    "ivypy_run_active": ("1 while the run is active, 0 once it has ended", ("run",)),
    "ivypy_controller_slack_seconds": ("time left after barrier 2 in the last subinterval; negative: too late", _STEP),
    "ivypy_connector_value": (
        "what a connector said of the elements of a rollup instance in the last subinterval, in the unit of the metric",
        (*_INSTANCE, "connector", "element", "attribute", "unit"),
    ),
    "ivypy_connector_instances_left_out": (
        "rollup instances of a type with too many for what connectors said to be shown",
        (*_STEP, "rollup_type"),
    ),
    "ivypy_instances_left_out": ("rollup instances of a type with too many to be shown", (*_STEP, "rollup_type")),
}
_COUNTERS: Final = {
    "ivypy_io_errors": "I/Os that ended with an error or a short transfer, in this step",
    "ivypy_dropped_ios": "I/Os that fell due and were dropped, in this step",
    "ivypy_expired_ios": "I/Os that were discarded after drop_after, in this step",
    "ivypy_subintervals": "subintervals of this step that closed",
}


@dataclass(slots=True)
class _Sums:
    """The sums over a step's subintervals, as far as they were read."""

    step: int | None = None
    rows: int = 0
    columns: list[Column] = field(default_factory=list)  # that are in `histograms`
    counters: dict[str, float] = field(default_factory=lambda: dict.fromkeys(_SUMMED, 0.0))
    histograms: dict[str, Coarse] = field(default_factory=dict)

    def follow(self, columns: Sequence[Column]) -> None:
        """Add those that are new. One that was read again, since it got a late result, takes its own place."""
        for column, before in zip_longest(columns, self.columns, fillvalue=NO_IO):
            if column is before:
                continue
            for name, cells in before.items():
                self.histograms[name].take([cells])
            for name, cells in column.items():
                self.histograms.setdefault(name, Coarse()).add([cells])
        self.columns = [*columns]


class RunCollector(Collector):
    """Collects from the runs' folders that `folders` names at the moment. Any thread may collect; one does at a time.

    `types`: rollup types whose instances are wanted; None: all that the plan has.
    """

    def __init__(self, folders: Callable[[], Iterable[Path]], types: Sequence[str] | None = None) -> None:
        self._folders = folders
        self._types = types
        self._runs: dict[Path, _Run] = {}
        self._lock = threading.Lock()

    def collect(self) -> Iterator[Metric]:
        from ..version import VERSION

        yield InfoMetricFamily("ivypy_build", "the version of ivypy", value={"version": VERSION})
        families = _Families()
        with self._lock:
            wanted = [*self._folders()]
            self._runs = {path: self._runs.get(path) or _Run(path, self._types) for path in wanted}
            for one in self._runs.values():
                one.into(families)
        yield from families.used()

    def describe(self) -> Iterable[Metric]:
        """Nothing is read when it is registered."""
        return []


class _Families:
    """The metrics of one scrape."""

    def __init__(self) -> None:
        self.gauges = {name: GaugeMetricFamily(name, about, labels=labels) for name, (about, labels) in _GAUGES.items()}
        self.counters = {name: CounterMetricFamily(name, about, labels=_STEP) for name, about in _COUNTERS.items()}
        self.gathers = CounterMetricFamily(
            "ivypy_connector_gathers", "gathers of a connector in this step", labels=(*_STEP, "connector", "state")
        )
        self.histograms = {
            time: HistogramMetricFamily(
                f"ivypy_{time}_seconds", f"{time} times of this step's I/Os", labels=(*_STEP, "io")
            )
            for time in ("service", "response")
        }

    def gauge(self, name: str, labels: Sequence[str], value: float | None) -> None:
        if value is not None:
            self.gauges[name].add_metric(labels, value)

    def used(self) -> Iterator[Metric]:
        for one in (*self.gauges.values(), *self.counters.values(), self.gathers, *self.histograms.values()):
            if one.samples:
                yield one


class _Run:
    """One run's figures."""

    def __init__(self, folder: Path, types: Sequence[str] | None) -> None:
        self._name = folder.name
        self._data = RunData(folder)
        self._types = types
        self._sums = _Sums()

    def into(self, families: _Families) -> None:
        try:
            progress = self._data.progress()
            steps = self._data.steps()
        except (IvypyError, OSError):
            return  # not there any more, or not to be read: others' figures are not spoiled
        families.gauge("ivypy_run_active", [self._name], float(not progress.ended))
        for step in steps:
            if step["verdict"]:
                for verdict in Verdict:
                    labels = [self._name, step["name"], str(verdict)]
                    families.gauge("ivypy_step_verdict", labels, float(step["verdict"] == verdict))
        running = next((step for step in steps if step["number"] == progress.step and not step["verdict"]), None)
        if running is not None and not progress.ended and progress.closed:
            self._step_into(families, running, progress)

    def _step_into(self, families: _Families, step: dict[str, Any], progress: Progress) -> None:
        number_of, labels = step["number"], [self._name, step["name"]]
        last = progress.closed - 1
        if self._sums.step != number_of:
            self._sums = _Sums(number_of)
        series = self._data.series(number_of, first=min(self._sums.rows, last))
        end = series["start"][-1] + (series["length_s"][-1] or 0.0)
        families.gauge("ivypy_last_subinterval_timestamp_seconds", labels, end)
        for phase in Phase:
            families.gauge("ivypy_phase", [*labels, str(phase)], float(series["phase"][-1] == phase))
        for metric, name in _SUMMED.items():
            unread = series["metrics"][metric][self._sums.rows - series["from"] :]
            self._sums.counters[metric] += sum(one or 0.0 for one in unread)
            families.counters[name].add_metric(labels, self._sums.counters[metric])
        self._sums.rows = series["from"] + len(series["subinterval"])
        families.counters["ivypy_subintervals"].add_metric(labels, progress.closed)
        self._histograms_into(families, number_of, labels)
        cpu = self._data.cpu(number_of, last)
        for host, values in cpu["hosts"].items():
            busy, others, steal = (values[name][-1] for name in CPU)
            own = None if busy is None else max(busy - (others or 0.0), 0.0)
            for use, percent in (("ivypy", own), ("others", others), ("steal", steal)):
                ratio = None if percent is None else percent / 100
                families.gauge("ivypy_host_cpu_ratio", [*labels, host, use], ratio)
        families.gauge("ivypy_controller_slack_seconds", labels, self._data.slack_s(number_of))
        self._connectors_into(families, number_of, labels, progress.closed)
        for kind, instances in self._chosen_types(number_of).items():
            if len(instances) > MOST_INSTANCES:
                families.gauge("ivypy_instances_left_out", [*labels, kind], len(instances))
                continue
            for instance, row in self._data.newest_rows(number_of, kind).items():
                _row_into(families, [*labels, kind, instance], row)

    def _connectors_into(self, families: _Families, step: int, labels: Sequence[str], closed: int) -> None:
        elements, taken = self._data.step_elements(step), self._data.stems(step)
        states: dict[str, Counter[str]] = {}
        for (connector, _), counts in elements.gathers().states.items():
            states[connector] = states.get(connector, Counter()) + counts
        for connector, counts in states.items():
            for state in GatherState:
                families.gathers.add_metric([*labels, connector, str(state)], counts[state])
        types = len(elements.element_types())
        for kind, instances in self._chosen_types(step).items():
            if len(instances) * types > MOST_CONNECTOR_FILES:
                families.gauge("ivypy_connector_instances_left_out", [*labels, kind], len(instances))
                continue
            for instance in instances:
                for reading in elements.newest(kind, instance, taken):
                    if reading.subinterval >= closed - STALE_AFTER:
                        of = [reading.connector, reading.element, reading.attribute, reading.unit]
                        families.gauge("ivypy_connector_value", [*labels, kind, instance, *of], reading.value)

    def _chosen_types(self, step: int) -> dict[str, list[str]]:
        """The rollup types that are wanted, with their instances."""
        types = self._types
        rollups = self._data.rollups(step)
        return {kind: some for kind, some in rollups.items() if kind == ALL or types is None or kind in types}

    def _histograms_into(self, families: _Families, step: int, labels: Sequence[str]) -> None:
        self._sums.follow(self._data.columns(step))
        for name, coarse in self._sums.histograms.items():
            io, time = name.split(".")
            families.histograms[time].add_metric([*labels, io], coarse.cumulative(), coarse.sum_s)


def _row_into(families: _Families, labels: Sequence[str], row: dict[str, str]) -> None:
    """A row of the last subinterval."""

    def figure(name: str, unit: float = 1.0) -> float | None:
        value = number(row.get(name, ""))
        return None if value is None else value / unit

    for io, category in (
        ("all", "overall"),
        ("read", "read"),
        ("write", "write"),
        *((one, one) for one in (*RELEASES, FLUSH)),
    ):
        if io != "all" and not figure(f"{category}_service_count"):
            continue
        label_values = [*labels, io]
        families.gauge("ivypy_iops", label_values, figure(f"{category}_iops"))
        families.gauge("ivypy_bytes_per_second", label_values, figure(f"{category}_mib_per_s", _MIB))
        for time in ("service", "response"):
            latency = f"{category}_{time}_us"
            families.gauge(f"ivypy_{time}_mean_seconds", label_values, figure(f"{latency}_mean", _US_PER_S))
            families.gauge(f"ivypy_{time}_max_seconds", label_values, figure(f"{latency}_max", _US_PER_S))
            for percentile, name in _PERCENTILES.items():
                families.gauge(
                    f"ivypy_{time}_percentile_seconds",
                    [*label_values, percentile],
                    figure(f"{latency}_{name}", _US_PER_S),
                )
    families.gauge("ivypy_target_iops", labels, figure("iops_setting"))
    families.gauge("ivypy_backlog_ios", labels, figure("backlog"))
    families.gauge("ivypy_outstanding_ios", labels, figure("outstanding"))
    here, of_all = figure("hosts_in"), figure("hosts_of")
    families.gauge("ivypy_hosts", labels, of_all)
    families.gauge("ivypy_hosts_missing", labels, None if here is None or of_all is None else of_all - here)
