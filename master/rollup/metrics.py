"""Every metric, once: what it is, its name, unit and meaning, and its computation for all rows at once.

Rule: this table defines the CSV columns, the lines of docs/columns.md, and the focus metrics of plans.
Names are lower_snake: category, what, unit, statistic (`overall_response_us_p99`). They are put together here and never
taken apart: whoever has a name looks up its record. nan is printed blank.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...protocol.counters import Count
from ..stats.percentiles import FEWEST_BEYOND
from ..text.metric_amounts import MetricUnit, unit_by_suffix
from ..verdicts import Scope
from .arrays import Floats
from .figures import CATEGORIES, FLUSH, OVERALL, PERCENTILES, RELEASES, Figures, LatencyFigures
from .host_cpu import HostCpu

Compute = Callable[[Figures], Floats]  # a value per row
Mask = Callable[[Figures], NDArray[np.bool_]]  # whether, per row
Statistic = Callable[[LatencyFigures], Floats]

MEAN: Final = "mean"
COUNT: Final = "count"
HEADLINE_STATISTICS: Final = (MEAN, "p50", "p99", "p99_9", "max")  # of a time, where all that matters is shown
_UNIT_WORDS: Final = {MetricUnit.US: "us", MetricUnit.KIB: "kib"}  # in names; other quantities have but one unit


class Precision(Enum):
    """How much of a number is printed: a %-format."""

    WHOLE = "%.0f"  # counts: exact
    TIME = "%.9g"  # times that are whole or half nanoseconds
    REAL = "%.7g"  # everything else


class Quantity(StrEnum):
    """The quantity that a metric measures; where it has a category, as its name says it."""

    COUNTER = "counter"  # of events, or a number at the end
    AGE = "age"
    CPU = "cpu"
    IOPS = "iops"
    THROUGHPUT = "mib_per_s"
    BLOCKSIZE = "blocksize"
    QUEUE_DEPTH = "queue_depth"
    SERVICE = "service"
    RESPONSE = "response"
    LATENESS = "lateness"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric."""

    name: str
    quantity: Quantity
    unit: MetricUnit
    meaning: str
    precision: Precision
    compute: Compute
    category: str = ""  # of CATEGORIES, or "generator"; "" where it is about no I/O in particular
    statistic: str = ""  # COUNT, or of the samples: MEAN, "p99", "max"; "" where there are no samples

    @property
    def series(self) -> tuple[str, Quantity]:
        """The key that metrics have in common that differ only in their statistic."""
        return self.category, self.quantity

    @property
    def is_rate(self) -> bool:
        """IOPS or MiB/s: 0, not blank, where there is no such I/O."""
        return self.quantity in (Quantity.IOPS, Quantity.THROUGHPUT)

    @property
    def is_over_time(self) -> bool:
        """A mean over time: over several subintervals, it is weighted by their lengths."""
        return self.is_rate or self.quantity is Quantity.CPU

    @property
    def needs_pacing(self) -> bool:
        """Only a paced load has it."""
        return self.quantity is Quantity.RESPONSE

    @property
    def scope(self) -> Scope:
        """A reason against figures of this scope discredits it."""
        times = {Quantity.SERVICE: Scope.SERVICE, Quantity.RESPONSE: Scope.RESPONSE}
        return times.get(self.quantity, Scope.RATE)

    @property
    def fraction(self) -> float | None:
        """Of a percentile: 0.999 for p99.9."""
        return PERCENTILES.get(self.statistic)


def _joined(*parts: str | None) -> str:
    return "_".join(filter(None, parts))


def _of(
    category: str,
    quantity: Quantity,
    statistic: str,
    unit: MetricUnit,
    meaning: str,
    precision: Precision,
    compute: Compute,
) -> Metric:
    name = _joined(category, quantity, _UNIT_WORDS.get(unit), statistic)
    return Metric(name, quantity, unit, meaning, precision, compute, category, statistic)


def _counted(name: str, meaning: str, *columns: Count, unit: MetricUnit = MetricUnit.IOS) -> Metric:
    return Metric(
        name, Quantity.COUNTER, unit, meaning, Precision.WHOLE, lambda figures: figures.counter(*columns)
    )  # fmt: skip


def _age(name: str, meaning: str, column: Count) -> Metric:
    return Metric(
        name, Quantity.AGE, MetricUnit.MS, meaning, Precision.REAL, lambda figures: figures.counter(column) / 1e6
    )  # fmt: skip


LOAD: Final = (
    _counted("due", "I/Os that fell due; with iops: max, I/Os that were submitted", Count.DUE),
    _counted("backlog", "I/Os due but not submitted, at the end", Count.BACKLOG),
    _counted(
        "outstanding", "I/Os due but not completed, at the end: backlog and in flight", Count.BACKLOG, Count.IN_FLIGHT
    ),
    _counted("errors", "I/Os that ended with an error or a short transfer; no latency includes them", Count.ERRORS),
    _counted("short_transfers", "errors that were short transfers: fewer bytes than requested", Count.SHORT),
    _counted("dropped", "I/Os that fell due and were dropped", Count.DROPPED),
    _counted("expired", "I/Os that waited for longer than drop_after and were discarded", Count.EXPIRED),
    _counted(
        "queue_limited",
        "how often a workload instance waited because a hardware queue of the device (nr_requests) was full",
        Count.QUEUE_LIMITED,
        unit=MetricUnit.WAITS,
    ),
    _counted("eagain", "submissions that the kernel returned (EAGAIN), submitted again", Count.EAGAIN),
    _counted("reads_sampled", "reads whose data was checked, about one in 64", Count.READS_SAMPLED),
    _counted(
        "zero_reads",
        "of these, those that returned zeros: of blocks never written, or that hold zeros",
        Count.ZERO_READS,
    ),
    Metric(
        "foreign_kib",
        Quantity.COUNTER,
        MetricUnit.KIB,
        "bytes that others read and wrote on the LUNs' disks, as far as that is certain",
        Precision.REAL,
        lambda figures: figures.counter(Count.FOREIGN_BYTES) / 2**10,
    ),
    Metric(
        "cached_kib",
        Quantity.COUNTER,
        MetricUnit.KIB,
        "bytes read with direct: false that no disk read: they came from the hosts' page caches",
        Precision.REAL,
        lambda figures: figures.counter(Count.CACHED) / 2**10,
    ),
    Metric(
        "dirty_kib",
        Quantity.COUNTER,
        MetricUnit.KIB,
        "bytes written with direct: false since the step's start that no disk had written, at the end",
        Precision.REAL,
        lambda figures: figures.counter(Count.DIRTY) / 2**10,
    ),
    _age(
        "oldest_in_flight_ms",
        "age of the oldest I/O in flight since its submission, at the end",
        Count.OLDEST_IN_FLIGHT_NS,
    ),
    _age(
        "oldest_outstanding_ms",
        "age of the oldest outstanding I/O since it fell due, at the end",
        Count.OLDEST_OUTSTANDING_NS,
    ),
)


def _cpu(name: str, column: HostCpu, meaning: str) -> Metric:
    return Metric(
        name, Quantity.CPU, MetricUnit.PERCENT, meaning, Precision.REAL,
        lambda figures: figures.merged.presence.cpu[:, column],
    )  # fmt: skip


HOSTS: Final = (
    _cpu("cpu_busy_percent", HostCpu.BUSY, "busy share of the cores, mean over cores and hosts"),
    _cpu("busiest_core_percent", HostCpu.BUSIEST, "busy share of the busiest core of any host"),
    _cpu(
        "cpu_others_percent",
        HostCpu.OTHERS,
        "share of the cores used by others than ivypy: processes, kernel threads, interrupts; mean over cores and "
        "hosts",
    ),
    _cpu(
        "cpu_steal_percent",
        HostCpu.STEAL,
        "share of the cores that the hypervisor took (steal), mean over cores and hosts",
    ),
    _cpu(
        "cpu_wait_percent",
        HostCpu.WAIT,
        "share of the time for which the worst thread of any host waited for a core (run-queue delay)",
    ),
    _cpu(
        "cpu_throttled_percent",
        HostCpu.THROTTLED,
        "share of the cores' time for which a cgroup's CPU quota held the slave back, mean over hosts",
    ),
    _cpu(
        "stalled_percent",
        HostCpu.STALLED,
        "share of the time for which no thread of the slave ran though one was due to (machine stalls), highest of any "
        "host",
    ),
)


def _percentile(name: str) -> tuple[str, Precision, Statistic]:
    share = f"{PERCENTILES[name] * 100:g} %"
    words = f"{share} took at most this long, within 1/128; blank with fewer than {FEWEST_BEYOND} samples above"
    return words, Precision.TIME, lambda latency: latency.percentile(name)


_STATISTICS: Final[dict[str, tuple[str, Precision, Statistic]]] = {
    MEAN: ("mean", Precision.REAL, lambda latency: latency.mean),
    "sd": ("standard deviation (of a sample: n - 1)", Precision.REAL, lambda latency: latency.sd),
    "min": ("shortest, exact", Precision.TIME, lambda latency: latency.min),
    **{name: _percentile(name) for name in PERCENTILES},
    "max": ("longest, exact", Precision.TIME, lambda latency: latency.max),
}


def _what(category: str) -> str:
    """A category in words: `random_read` is "random reads"."""
    words = category.replace("_", " ")
    return {
        OVERALL: "all I/O", "random": "random I/O", "sequential": "sequential I/O", FLUSH: "flushes",
        "zeroes": "writes of zeroes",
    }.get(category, words + "s")  # fmt: skip


def _throughput(category: str) -> Iterator[Metric]:
    what = _what(category)

    def iops(figures: Figures) -> Floats:
        return figures.rate(category, 0)

    def bytes_per_s(figures: Figures) -> Floats:
        return figures.transfers(category)[1]

    def blocksize(figures: Figures) -> Floats:
        ios, transferred = figures.transfers(category)
        per_io = np.full(len(ios), np.nan)
        np.divide(transferred, ios, out=per_io, where=ios > 0)
        return per_io / 1024

    def depth(figures: Figures) -> Floats:
        """Little's law. Only for completed I/Os: in a stall, where none completes, the figure is nan, not 0."""
        in_flight: Floats = iops(figures) * figures.service(category).mean * 1e-6
        return in_flight

    real = Precision.REAL
    yield _of(
        category, Quantity.IOPS, "", MetricUnit.PER_S,
        f"I/Os completed per second, {what}; the sum over hosts", real, iops,
    )  # fmt: skip
    yield _of(
        category, Quantity.THROUGHPUT, "", MetricUnit.MIB_PER_S,
        f"transfer rate, {what}", real, lambda figures: bytes_per_s(figures) / 2**20,
    )  # fmt: skip
    yield _of(category, Quantity.BLOCKSIZE, MEAN, MetricUnit.KIB, f"mean I/O size, {what}", real, blocksize)
    yield _of(
        category, Quantity.QUEUE_DEPTH, MEAN, MetricUnit.IOS,
        f"mean number of I/Os in flight, {what}: iops x mean service time of those that completed", real, depth,
    )  # fmt: skip


def _latency(
    category: str, quantity: Quantity, meaning: str, latency_of: Callable[[Figures], LatencyFigures], shown: Mask
) -> Iterator[Metric]:
    """A count, and the statistics of one time; blank in rows where `shown` is false."""

    def blanked(read: Statistic) -> Compute:
        return lambda figures: np.where(shown(figures), read(latency_of(figures)), np.nan)

    yield _of(
        category, quantity, COUNT, MetricUnit.IOS,
        f"{meaning}: number of samples", Precision.WHOLE, blanked(lambda latency: latency.count),
    )  # fmt: skip
    for statistic, (words, precision, read) in _STATISTICS.items():
        yield _of(category, quantity, statistic, MetricUnit.US, f"{meaning}: {words}", precision, blanked(read))


def _of_flushes() -> Iterator[Metric]:
    yield _of(
        FLUSH, Quantity.IOPS, "", MetricUnit.PER_S,
        "flushes completed per second (`flush`, `end_fsync`), which are no part of any other rate", Precision.REAL,
        lambda figures: figures.rate(FLUSH, 0),
    )  # fmt: skip
    yield from _latency(
        FLUSH, Quantity.SERVICE, "service time of flushes",
        lambda figures: figures.service(FLUSH), lambda figures: np.ones(len(figures.merged.counts), bool),
    )  # fmt: skip


def _of_releases(category: str) -> Iterator[Metric]:
    what = _what(category)
    yield _of(
        category, Quantity.IOPS, "", MetricUnit.PER_S,
        f"{what} completed per second, which count as I/Os, and for no transfer rate", Precision.REAL,
        lambda figures: figures.rate(category, 0),
    )  # fmt: skip
    yield _of(
        category, Quantity.THROUGHPUT, "", MetricUnit.MIB_PER_S,
        f"what {what} released per second", Precision.REAL, lambda figures: figures.rate(category, 1) / 2**20,
    )  # fmt: skip
    yield from _latency(
        category, Quantity.SERVICE, f"service time of {what}",
        lambda figures: figures.service(category), lambda figures: np.ones(len(figures.merged.counts), bool),
    )  # fmt: skip


def _of_category(category: str) -> Iterator[Metric]:
    if category == FLUSH:
        yield from _of_flushes()
        return
    if category in RELEASES:
        yield from _of_releases(category)
        return
    what = _what(category)
    yield from _throughput(category)
    yield from _latency(
        category, Quantity.SERVICE, f"service time (from submission to completion) of {what}",
        lambda figures: figures.service(category), lambda figures: np.ones(len(figures.merged.counts), bool),
    )  # fmt: skip
    yield from _latency(
        category, Quantity.RESPONSE, f"response time (from due to completion) of {what}",
        lambda figures: figures.response(category), lambda figures: figures.has_response(category),
    )  # fmt: skip


LATENESS: Final = tuple(
    metric
    for metric in _latency(
        "generator", Quantity.LATENESS,
        "generator lateness (from due, or tag free if later, to submission) of paced I/O and of I/O after a think time",
        Figures.lateness, lambda figures: figures.lateness().count > 0,
    )
    if metric.statistic in (COUNT, MEAN, "p50", "p99", "max")
)  # fmt: skip

# By category, "" where it is about none. Categories whose I/O is of the same kinds have blocks of the same values.
BLOCKS: Final[tuple[tuple[str, tuple[Metric, ...]], ...]] = (
    ("", (*LOAD, *HOSTS)),
    *((category, tuple(_of_category(category))) for category in CATEGORIES),
    ("", LATENESS),
)
METRICS: Final[dict[str, Metric]] = {metric.name: metric for _, block in BLOCKS for metric in block}
_OF_NOTHING: Final = {  # the cells of a category that saw no I/O
    metric.name: "0" if metric.is_rate or (metric.quantity, metric.statistic) == (Quantity.SERVICE, COUNT) else ""
    for category, block in BLOCKS
    if category not in ("", OVERALL)
    for metric in block
}
_BLANK: Final = dict.fromkeys(_OF_NOTHING, "")
_OF_PARTS: Final = {(one.category, one.quantity, one.statistic): one for one in METRICS.values() if one.category}


def of_nothing(overall_iops: str) -> Mapping[str, str]:
    """The cells of categories that saw no I/O, whose columns files leave out, in a row with that overall_iops.

    Where that is blank, the row has no figures at all: its host was lost, or nothing was measured.
    """
    return _OF_NOTHING if overall_iops else _BLANK


def _short_names() -> Mapping[str, str]:
    """Short names of rates and latencies: without `overall`, `service` and the unit of latencies."""
    names: dict[str, str] = {}
    for (category, quantity, statistic), metric in _OF_PARTS.items():
        prefix = "" if category == OVERALL else category
        unit = _UNIT_WORDS.get(metric.unit) if metric.is_rate else None
        if metric.is_rate or quantity in (Quantity.SERVICE, Quantity.RESPONSE):
            names[_joined(prefix, quantity, unit, statistic)] = metric.name
        if quantity is Quantity.SERVICE:
            names[_joined(prefix, statistic)] = metric.name
    return names


SHORT_NAMES: Final = _short_names()  # p99, iops, response_p99, read_p99_9: the names in the CSV
HOW_SHORT: Final = (
    "short names: iops, mib_per_s; mean, min, max, p50, p90, p95, p99, p99_9, p99_99 of service times, of response "
    "times with response_ before them; read_, write_ before any of them"
)


def full_name(name: str) -> str:
    """A metric's name as the CSV has it, for a short one; any other name stays as it is."""
    return name if name in METRICS else SHORT_NAMES.get("_".join(name.split(".")), name)


def metric_of(category: str, quantity: Quantity, statistic: str = "") -> Metric:
    """The metric with this category, quantity and statistic. Raises KeyError."""
    return _OF_PARTS[category, quantity, statistic]


def connector_of(name: str) -> str:
    """The connector that a metric is of: `array` for `array.mp_busy_percent`; "" where it is one of METRICS."""
    connector, _, rest = name.partition(".")
    return connector if rest[:1].isalpha() else ""  # p99.9 is none


def unit_of(name: str) -> MetricUnit:
    """The unit of a metric; of a connector's as its name says it."""
    if connector_of(name):
        return unit_by_suffix(name)
    return METRICS[name].unit if name in METRICS else MetricUnit.NONE


def unit_word(name: str) -> str:
    """The same as people say it: IOPS for I/Os per second."""
    return "IOPS" if name.endswith("iops") else str(unit_of(name))


def column(figures: Figures, name: str) -> Floats:
    """A metric for all rows by name, shape (R,); nan where a row includes no host. Raises KeyError."""
    return value(figures, METRICS[name])


def value(figures: Figures, metric: Metric) -> Floats:
    """A metric for all rows, shape (R,); nan where a row includes no host."""
    found = metric.compute(figures)
    return found if figures.absent is None else np.where(figures.absent, np.nan, found)
