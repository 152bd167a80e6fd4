"""Every metric, once: name, unit, meaning, and its computation for all rows at once.

Rule: this table defines the CSV columns, the lines of docs/columns.md, and the focus metrics of plans.
Names are lower_snake: category, what, unit, statistic (`overall_response_us_p99`). nan is printed blank.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...protocol.counters import Count
from ..stats.percentiles import FEWEST_BEYOND
from .arrays import Floats
from .figures import CATEGORIES, PERCENTILES, Figures, LatencyFigures

Compute = Callable[[Figures], Floats]  # a value per row
Mask = Callable[[Figures], NDArray[np.bool_]]  # whether, per row
Statistic = Callable[[LatencyFigures], Floats]


class Precision(Enum):
    """How much of a number is printed: a %-format."""

    WHOLE = "%.0f"  # counts: exact
    TIME = "%.9g"  # times that are whole or half nanoseconds
    REAL = "%.7g"  # everything else


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric."""

    name: str
    unit: str
    meaning: str
    precision: Precision
    compute: Compute


def _counted(name: str, meaning: str, *columns: Count) -> Metric:
    return Metric(name, "I/Os", meaning, Precision.WHOLE, lambda figures: figures.counter(*columns))


def _age(name: str, meaning: str, column: Count) -> Metric:
    return Metric(name, "ms", meaning, Precision.REAL, lambda figures: figures.counter(column) / 1e6)


LOAD: Final = (
    _counted("due", "I/Os that fell due; with iops: max, I/Os that were submitted", Count.DUE),
    _counted("backlog", "I/Os due but not submitted, at the end", Count.BACKLOG),
    _counted(
        "outstanding", "I/Os due but not completed, at the end: backlog and in flight", Count.BACKLOG, Count.IN_FLIGHT
    ),
    _counted("errors", "I/Os that ended with an error or a short transfer; no latency includes them", Count.ERRORS),
    _counted("short_transfers", "errors that were short transfers: fewer bytes than requested", Count.SHORT),
    _counted("dropped", "I/Os that fell due and were dropped", Count.DROPPED),
    Metric(
        "queue_limited",
        "waits",
        "how often a workload instance waited because a hardware queue of the device (nr_requests) was full",
        Precision.WHOLE,
        lambda figures: figures.counter(Count.QUEUE_LIMITED),
    ),
    _counted("eagain", "submissions that the kernel returned (EAGAIN) and that were submitted again", Count.EAGAIN),
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

HOSTS: Final = (
    Metric(
        "cpu_busy_percent", "%", "busy share of the cores, mean over cores and hosts",
        Precision.REAL, lambda figures: figures.merged.presence.cpu_percent,
    ),
    Metric(
        "busiest_core_percent", "%", "busy share of the busiest core of any host",
        Precision.REAL, lambda figures: figures.merged.presence.busiest_core_percent,
    ),
)  # fmt: skip


def _percentile(name: str) -> tuple[str, Precision, Statistic]:
    share = f"{PERCENTILES[name] * 100:g} %"
    words = f"{share} took at most this long, within 1/128; blank with fewer than {FEWEST_BEYOND} samples above"
    return words, Precision.TIME, lambda latency: latency.percentile(name)


_STATISTICS: Final[dict[str, tuple[str, Precision, Statistic]]] = {
    "mean": ("mean", Precision.REAL, lambda latency: latency.mean),
    "sd": ("standard deviation (of a sample: n - 1)", Precision.REAL, lambda latency: latency.sd),
    "min": ("shortest, exact", Precision.TIME, lambda latency: latency.min),
    **{name: _percentile(name) for name in PERCENTILES},
    "max": ("longest, exact", Precision.TIME, lambda latency: latency.max),
}


def _what(category: str) -> str:
    """A category in words: `random_read` is "random reads"."""
    words = category.replace("_", " ")
    return {"overall": "all I/O", "random": "random I/O", "sequential": "sequential I/O"}.get(category, words + "s")


def _throughput(category: str) -> Iterator[Metric]:
    what = _what(category)

    def iops(figures: Figures) -> Floats:
        return figures.rate(category, 0)

    def bytes_per_s(figures: Figures) -> Floats:
        return figures.rate(category, 1)

    def blocksize(figures: Figures) -> Floats:
        per_io = np.full(len(iops(figures)), np.nan)
        np.divide(bytes_per_s(figures), iops(figures), out=per_io, where=iops(figures) > 0)
        return per_io / 1024

    def depth(figures: Figures) -> Floats:
        """Little's law. Only for completed I/Os: in a stall, where none completes, the figure is nan, not 0."""
        in_flight: Floats = iops(figures) * figures.service(category).mean * 1e-6
        return in_flight

    real = Precision.REAL
    yield Metric(f"{category}_iops", "1/s", f"I/Os completed per second, {what}; the sum over hosts", real, iops)
    yield Metric(f"{category}_mib_per_s", "MiB/s", f"transfer rate, {what}", real, lambda f: bytes_per_s(f) / 2**20)
    yield Metric(f"{category}_blocksize_kib_mean", "KiB", f"mean I/O size, {what}", real, blocksize)
    yield Metric(
        f"{category}_queue_depth_mean",
        "I/Os",
        f"mean number in flight of the I/Os that completed, {what}: iops x mean service time",
        real,
        depth,
    )


def _latency(
    category: str, kind: str, meaning: str, of: Callable[[Figures], LatencyFigures], shown: Mask
) -> Iterator[Metric]:
    """A count, and the statistics of one time; blank in rows where `shown` is false."""

    def blanked(read: Statistic) -> Compute:
        return lambda figures: np.where(shown(figures), read(of(figures)), np.nan)

    yield Metric(
        f"{category}_{kind}_count",
        "I/Os",
        f"{meaning}: number of samples",
        Precision.WHOLE,
        blanked(lambda latency: latency.count),
    )
    for name, (words, precision, read) in _STATISTICS.items():
        yield Metric(f"{category}_{kind}_us_{name}", "us", f"{meaning}: {words}", precision, blanked(read))


def _of_category(category: str) -> Iterator[Metric]:
    what = _what(category)
    yield from _throughput(category)
    yield from _latency(
        category, "service", f"service time (from submission to completion) of {what}",
        lambda figures: figures.service(category), lambda figures: np.ones(len(figures.merged.counts), bool),
    )  # fmt: skip
    yield from _latency(
        category, "response", f"response time (from due to completion) of {what}",
        lambda figures: figures.response(category), lambda figures: figures.has_response(category),
    )  # fmt: skip


LATENESS: Final = tuple(
    metric
    for metric in _latency(
        "generator", "lateness", "generator lateness (from due, or tag free if later, to submission) of paced I/O",
        Figures.lateness, lambda figures: figures.lateness().count > 0,
    )
    if metric.name.endswith(("count", "mean", "p50", "p99", "max"))
)  # fmt: skip

# By category, "" where it is about none. Categories whose I/O is of the same kinds have blocks of the same values.
BLOCKS: Final[tuple[tuple[str, tuple[Metric, ...]], ...]] = (
    ("", (*LOAD, *HOSTS)),
    *((category, tuple(_of_category(category))) for category in CATEGORIES),
    ("", LATENESS),
)
METRICS: Final[dict[str, Metric]] = {metric.name: metric for _, block in BLOCKS for metric in block}


def column(figures: Figures, name: str) -> Floats:
    """A metric for all rows by name, shape (R,); nan where a row includes no host. Raises KeyError."""
    return value(figures, METRICS[name])


def value(figures: Figures, metric: Metric) -> Floats:
    """A metric for all rows, shape (R,); nan where a row includes no host."""
    found = metric.compute(figures)
    present = figures.merged.presence.hosts_in > 0
    return found if present.all() else np.where(present, found, np.nan)
