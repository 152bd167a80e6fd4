"""The metrics that every table shows, by its width; and a figure's title, text and marks.

Rule: a metric is named, never placed: whoever has its name has its figure, how it is written, and the verdict that
discredits it.

    40   IOPS            | (of subintervals and instances also service p99)
    60   IOPS            | service p99                        | response p99
    80        +-         |         mean p99                   |
    120          MiB/s   |                  max               |          mean p99
    160                  |         mean p50 p99 p99.9 max     |          mean p99 p99.9 max
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Final

from ..rollup.figures import FLUSH, OVERALL, RELEASES
from ..rollup.metrics import HEADLINE_STATISTICS, METRICS, Quantity, metric_of
from ..text.metric_amounts import MetricUnit
from ..text.scaled import BLANK, scaled_count, scaled_time
from ..verdicts import Scope, Verdict

NARROWEST: Final = 40  # columns of a terminal; below, lines are as for this
SLIM: Final = 60
NARROW: Final = 80
MIDDLE: Final = 120
WIDE: Final = 160

Figures = Mapping[str, float]  # by metric name, in the units of the CSV, without those that are blank there

IOPS: Final = metric_of(OVERALL, Quantity.IOPS).name
HALF_WIDTH: Final = f"{IOPS}_half_width"  # as summary.all.csv has it: 1/s
THROUGHPUT: Final = metric_of(OVERALL, Quantity.THROUGHPUT).name


def names_of(quantity: Quantity, *statistics: str, category: str = OVERALL) -> tuple[str, ...]:
    """The metrics that are these statistics of a time."""
    return tuple(metric_of(category, quantity, one).name for one in statistics)


_SERVICE, _RESPONSE = Quantity.SERVICE, Quantity.RESPONSE
OF_MEASUREMENT: Final[dict[int, tuple[str, ...]]] = {
    NARROWEST: (IOPS,),
    SLIM: (IOPS, *names_of(_SERVICE, "p99"), *names_of(_RESPONSE, "p99")),
    NARROW: (IOPS, HALF_WIDTH, *names_of(_SERVICE, "mean", "p99"), *names_of(_RESPONSE, "p99")),
    MIDDLE: (
        IOPS, HALF_WIDTH, THROUGHPUT, *names_of(_SERVICE, "mean", "p99", "max"), *names_of(_RESPONSE, "mean", "p99"),
    ),
    WIDE: (
        IOPS, HALF_WIDTH, THROUGHPUT, *names_of(_SERVICE, *HEADLINE_STATISTICS),
        *names_of(_RESPONSE, "mean", "p99", "p99_9", "max"),
    ),
}  # fmt: skip
OF_SUBINTERVAL: Final[dict[int, tuple[str, ...]]] = {
    NARROWEST: (IOPS, *names_of(_SERVICE, "p99")),
    SLIM: (IOPS, *names_of(_SERVICE, "p50", "p99"), *names_of(_RESPONSE, "p99")),
    NARROW: (IOPS, THROUGHPUT, *names_of(_SERVICE, "p50", "p99", "max"), *names_of(_RESPONSE, "p99")),
    MIDDLE: (IOPS, THROUGHPUT, *names_of(_SERVICE, "p50", "p99", "max"), *names_of(_RESPONSE, "p50", "p99", "max")),
    WIDE: (
        IOPS, THROUGHPUT, *names_of(_SERVICE, "p50", "p99", "p99_9", "max"),
        *names_of(_RESPONSE, "p50", "p99", "p99_9", "max"),
    ),
}  # fmt: skip
OF_INSTANCE: Final[dict[int, tuple[str, ...]]] = {
    NARROWEST: (IOPS, *names_of(_SERVICE, "p99")),
    SLIM: (IOPS, *names_of(_SERVICE, "p99", "max"), *names_of(_RESPONSE, "p99")),
    NARROW: (IOPS, THROUGHPUT, *names_of(_SERVICE, "p50", "p99", "max"), *names_of(_RESPONSE, "p99")),
}
OF_FLUSHES: Final = (metric_of(FLUSH, Quantity.IOPS).name, *names_of(_SERVICE, "mean", category=FLUSH))
DIRECTIONS: Final = ("read", "write")
SUBINTERVAL_METRICS: Final = tuple(dict.fromkeys(name for names in OF_SUBINTERVAL.values() for name in names))
MEASUREMENT_METRICS: Final = tuple(  # so far it stands below subintervals
    dict.fromkeys((*(name for names in OF_MEASUREMENT.values() for name in names), *SUBINTERVAL_METRICS, *OF_FLUSHES))
)
IN_NOTEBOOKS: Final = (IOPS, THROUGHPUT, *names_of(_SERVICE, "mean", "p99"), *names_of(_RESPONSE, "p99"))
IN_COMPARISONS: Final = (IOPS, *names_of(_SERVICE, "mean", "p99"), *names_of(_RESPONSE, "mean", "p99"))
ON_PAGE: Final = (
    IOPS, THROUGHPUT, *names_of(_SERVICE, "mean", "p50", "p99", "max"), *names_of(_RESPONSE, "p99"),
)  # fmt: skip
OVER_LOAD: Final = (*names_of(_RESPONSE, "p99", "mean"), *names_of(_SERVICE, "p99", "mean", "p50"))
CPU: Final = ("cpu_busy_percent", "cpu_others_percent", "cpu_steal_percent")
_OF_TIMES: Final = ("mean", "p50", "p90", "p95", "p99", "p99_9", "p99_99", "max")
IN_CHARTS: Final = (
    *(
        name
        for category in (OVERALL, *DIRECTIONS)
        for name in (
            metric_of(category, Quantity.IOPS).name, metric_of(category, Quantity.THROUGHPUT).name,
            *(name for time in (_SERVICE, _RESPONSE) for name in names_of(time, *_OF_TIMES, category=category)),
        )
    ),
    *(
        name
        for category in (*RELEASES, FLUSH)
        for name in (metric_of(category, Quantity.IOPS).name, *names_of(_SERVICE, *_OF_TIMES, category=category))
    ),
    "errors", "backlog", "outstanding", "dropped", "expired", "cpu_busy_percent", "busiest_core_percent",
    "cpu_others_percent", "cpu_steal_percent", "stalled_percent", "generator_lateness_us_p99",
)  # fmt: skip


def known_figures(names: Iterable[str], value: Callable[[str], float | None]) -> dict[str, float]:
    """Those of these metrics that are not blank. `value`: a figure by its metric's name."""
    found = {name: value(name) for name in names}
    return {name: figure for name, figure in found.items() if figure is not None}


def fitting(layouts: Mapping[int, tuple[str, ...]], width: int) -> tuple[str, ...]:
    """The metrics for a terminal of this width."""
    return layouts[max((least for least in layouts if least <= width), default=NARROWEST)]


def grouped(names: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Metrics that stand together, with what they are of: rates with "", then each time."""
    return [(title, [*some]) for title, some in groupby(names, _time_of)]


def of_direction(name: str, direction: str) -> str:
    """The same metric of reads or of writes."""
    metric = METRICS[name]
    return metric_of(direction, metric.quantity, metric.statistic).name


def title_of(name: str) -> str:
    """The title of its column, next to its time: `p99.9`."""
    if name == HALF_WIDTH:
        return "+-"
    metric = METRICS[name]
    titles = {Quantity.IOPS: "IOPS", Quantity.THROUGHPUT: "MiB/s"}
    return titles.get(metric.quantity) or metric.statistic.replace("_", ".")


def full_title(name: str) -> str:
    """Its title where it stands alone: `service p99.9`."""
    return " ".join(filter(None, (_time_of(name), title_of(name))))


def scope_of(name: str) -> Scope:
    return Scope.RATE if name == HALF_WIDTH else METRICS[name].scope


def figure_text(name: str, value: float | None) -> str:
    """In three digits, with its unit where it is a time."""
    is_time = METRICS[name].unit is MetricUnit.US
    return scaled_time(value) if is_time else scaled_count(value)


def text_of(name: str, figures: Figures) -> str:
    """Its figure's text; the half-width in % of the IOPS, of which nothing is known where it is ten times them."""
    if name != HALF_WIDTH:
        return figure_text(name, figures.get(name))
    half, iops = figures.get(HALF_WIDTH), figures.get(IOPS)
    if half is None or not iops:
        return BLANK
    return f"{half / iops:.1%}" if half < 10 * iops else ">999%"


def marked(text: str, verdict: Verdict) -> str:
    """A figure that is discredited, `[42.1 k]`, or partial, `(42.1 k)`; others as they are."""
    before, behind = {Verdict.INVALID: ("[", "]"), Verdict.PARTIAL: ("(", ")")}.get(verdict, ("", ""))
    return f"{before}{text}{behind}" if text != BLANK else text


def _time_of(name: str) -> str:
    quantity = Quantity.IOPS if name == HALF_WIDTH else METRICS[name].quantity
    return quantity if quantity in (Quantity.SERVICE, Quantity.RESPONSE) else ""
