"""The rows of a result, the same for CSV, JSON and the screen.

Rule: columns come from one table, which also prints their documentation. Nothing is scaled: latencies are
microseconds. A cell is blank where there is no number. A figure that is only a lower bound is no number: its cell
says ">=17045651.456".
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Final

import numpy as np

from ...stats.percentiles import NS_PER_US
from ...text.metric_amounts import rounded
from ..readers.records import NS_PER_S
from ..readers.source import Format
from ..timeline.resample import tolerance_ns
from ..timeline.rollups import Slice
from .interval_statistics import Statistics
from .series import Series

WHOLE: Final = "whole"
NO_NUMBER: Final = "-"  # for eyes: there is no number

COLUMNS: Final = {
    "rollup_type": "By which attributes the logs are sliced: `all`, `run`, `host`, `host+direction` ...",
    "rollup_instance": "The slice: the attributes' values.",
    "format": "What the logs are: fio-histogram, fio-latency, smallfile, ivypy.",
    "quantity": "Which latency: fio's clat, slat or lat (histogram logs hold clat only), smallfile's response_time, "
    "ivypy's service or response. `_avg`: the log holds means (with log_max_value, maxima), so no "
    "percentiles.",
    "interval": "The interval's number from 0, or `whole`: the whole span in one row.",
    "start_s": "Start of the interval, in seconds from the jobs' start; with stamps from 1970, from the first "
    "interval's start; with others a note says from when.",
    "end_s": "End of the interval, which includes what completed exactly then.",
    "start_utc": "Start as a date, if stamps count from 1970; else blank.",
    "logs": "Logs that cover at least part of the interval, of all: `127/128`.",
    "left_out": "Parts of the logs that were left out (--keep-going); the notes name them.",
    "count": "I/Os. Not whole where records are split between intervals.",
    "covered_s": "Seconds of the interval that a log covers, from its start to its last row or I/O.",
    "iops": "I/Os per second of `covered_s`; blank where no log covers the interval.",
    "latency_us_min": "The smallest latency; from histogram logs, the lower edge of its bucket.",
    "latency_us_mean": "The mean; from fio's histogram logs, of the buckets' middles.",
    "latency_us_stdev": "The sample's standard deviation.",
    "latency_us_max": "The largest latency; from histogram logs, the upper edge of its bucket.",
    "latency_us_pN": "Percentile N of the merged distribution; p99.9 is `p99_9`. Of runs, the figure of their own CSV; "
    "blank where too few I/Os lie above it.",
    "latency_us_pN_width": "Its stated error: the width of its bucket. 0: exact.",
    "notes": "`insufficient p99`: fewer than ten I/Os lie above it, so it is noise. `saturated p99 max`: lower "
    "bounds. `partial 55%`: the logs cover 55 % of the interval. `split 12% count 880..1020 mean max p99_9`: "
    "12 % of the I/Os are of log rows that cross a boundary, so may be a neighbour's: this interval holds "
    "880 to 1,020 I/Os, and the named figures may be off by more than a bucket's width. Of runs, `2 steps`: I/Os of "
    "two steps are merged, whose loads may differ; `invalid`: the verdict of its step speaks against these latencies; "
    "`blank`: response times that the run's own rows leave blank.",
}


@cache
def percentile_name(percentile: float) -> str:
    """99.9 -> "p99_9"."""
    return f"p{percentile:g}".replace(".", "_")


@dataclass(frozen=True, slots=True)
class Percentile:
    name: str
    us: float | None
    width_us: float | None
    at_least: bool
    insufficient: bool  # too few samples beyond it


@dataclass(frozen=True, slots=True)
class Row:
    series: Series
    interval: int | None  # None: the whole span
    covered_s: float
    is_partial: bool
    split: float  # of the I/Os: the share that is in rows that the interval cuts
    split_counts: tuple[float, float]  # the fewest and the most I/Os that it may hold
    split_figures: tuple[str, ...]  # the latencies that may be off by that
    utc_ns: int | None  # its begin, from 1970, where that is known
    start_s: float
    end_s: float
    logs: int
    count: float
    low_us: float | None
    mean_us: float | None
    stdev_us: float | None
    high_us: float | None
    saturated: bool  # mean, stdev and max are lower bounds
    steps: int  # of a run, that it holds I/Os of
    is_discredited: bool  # a run's own verdict speaks against its latencies
    percentiles: tuple[Percentile, ...]

    @property
    def averaged(self) -> bool:
        return self.series.instance.averaged

    @property
    def is_blank(self) -> bool:
        """It has I/Os, but the run's own row has no latency of them."""
        return self.count > 0 and self.low_us is None

    @property
    def iops(self) -> float | None:
        if self.covered_s:
            return self.count / self.covered_s
        return self.count / (self.end_s - self.start_s) if self.count else None

    @property
    def start_utc(self) -> str:
        if self.utc_ns is None:
            return ""
        seconds, rest = divmod(self.utc_ns, NS_PER_S)
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest // 1_000_000:03d}Z"

    @property
    def lower_bounds(self) -> list[str]:
        """The names of the figures that are lower bounds."""
        names = [p.name for p in self.percentiles if p.at_least]
        return [*names, "mean", "stdev", "max"] if self.saturated else names

    @property
    def notes(self) -> str:
        words = [f"partial {_percent(self.covered_s / (self.end_s - self.start_s))}"] if self.is_partial else []
        if self.split:
            fewest, most = (f"{count:.0f}" for count in self.split_counts)
            bounds = [f"count {fewest}..{most}"] if fewest != most else []
            words.append(" ".join([f"split {_percent(self.split)}", *bounds, *self.split_figures]))
        if not self.count:
            return "; ".join(words)
        words += [f"{self.steps} steps"] if self.steps > 1 else []
        words += ["blank"] if self.is_blank else ["invalid"] if self.is_discredited else []
        few = [p.name for p in self.percentiles if p.insufficient]
        words += [f"insufficient {' '.join(few)}"] if few else []
        words += [f"saturated {' '.join(self.lower_bounds)}"] if self.lower_bounds else []
        words += ["means or maxima: no percentiles"] if self.averaged else []
        return "; ".join(words)


def _percent(share: float) -> str:
    return f"{share:.0%}" if 0.01 <= share <= 0.99 else "<1%" if share < 0.5 else ">99%" if share < 1 else "100%"


@dataclass(frozen=True, slots=True)
class LogResult:
    """The result that every output is made from."""

    series: tuple[Series, ...]
    length_ns: int
    percentiles: tuple[float, ...]
    settings: dict[str, str]
    notes: tuple[str, ...]
    left_out: tuple[str, ...]
    zero_ns: int | None = None  # where quantum 0 begins, from 1970; None: at the jobs' own start
    apart_ns: dict[Slice, int] = field(default_factory=dict)  # the same of each series, where they are runs apart
    steps: tuple[tuple[int, str], ...] = ()  # of a run: where each begins, in ns from quantum 0, and its name
    not_measured: tuple[tuple[int, int], ...] = ()  # of a run: (begin, end) of warmup and the like, likewise

    @property
    def span(self) -> range:
        """The intervals that all series are laid out over."""
        if not self.series:
            return range(0)
        return range(min(series.first for series in self.series), max(series.last for series in self.series) + 1)

    def span_of(self, series: Series) -> range:
        """The intervals that a series is laid out over: all, or, of runs apart, its own."""
        return range(series.first, series.last + 1) if self.apart_ns else self.span

    @property
    def origin_ns(self) -> int:
        """Where start_s counts from, counted from quantum 0."""
        return self.span.start * self.length_ns if self.zero_ns == 0 else 0


def rows(result: LogResult, series: Series) -> Iterator[Row]:
    """A row per interval of the result's span, empty ones included, then one of the whole."""
    where = {int(quantum): index for index, quantum in enumerate(series.quanta)}
    nothing = _Nothing(len(series.percentiles))
    span = result.span_of(series)
    for number, quantum in enumerate(span):
        begin_ns = quantum * result.length_ns
        index = where.get(quantum)
        statistics, row = (nothing, 0) if index is None else (series.statistics, index)
        yield _row(
            result, series, number, begin_ns, begin_ns + result.length_ns, series.logs_at(quantum), statistics, row
        )
    begin_ns, end_ns = span.start * result.length_ns, span.stop * result.length_ns
    yield _row(result, series, None, begin_ns, end_ns, len(series.spans), series.whole, 0)


def _row(
    result: LogResult,
    series: Series,
    number: int | None,
    begin_ns: int,
    end_ns: int,
    logs: int,
    statistics: "Statistics | _Nothing",
    row: int,
) -> Row:
    origin, zero_ns = result.origin_ns, result.apart_ns.get(series.instance, result.zero_ns)
    covered_ns, length_ns = series.covered_ns(begin_ns, end_ns), end_ns - begin_ns
    is_short = 0 < covered_ns < length_ns and covered_ns < length_ns - int(tolerance_ns(np.array(length_ns), length_ns))
    count = float(statistics.count[row])
    is_split = number is not None and count > 0 and series.splits.ios[row] > 0
    is_run = series.instance.format == Format.IVYPY
    return Row(
        series,
        number,
        (covered_ns if is_short or not covered_ns else length_ns) / NS_PER_S,
        is_short and number is not None,
        float(series.splits.ios[row] / count) if is_split else 0.0,
        (float(series.splits.fewest[row]), float(series.splits.most[row])) if is_split else (count, count),
        _split_figures(series, statistics, row) if is_split else (),
        None if zero_ns is None else begin_ns + zero_ns,
        (begin_ns - origin) / NS_PER_S,
        (end_ns - origin) / NS_PER_S,
        logs,
        count,
        _us(statistics.low[row]),
        _mean_us(statistics, row),
        _us(statistics.stdev[row]),
        _us(statistics.high[row]),
        bool(statistics.saturated[row]),
        series.steps_in(begin_ns, end_ns),
        series.is_discredited(begin_ns, end_ns),
        tuple(
            _percentile(percentile_name(p), statistics, row, column, series.instance.averaged, is_run)
            for column, p in enumerate(series.percentiles)
        ),
    )


def _split_figures(series: Series, statistics: "Statistics | _Nothing", row: int) -> tuple[str, ...]:
    """The latencies that rows which the interval cuts may have moved."""
    above_ns = series.splits.above_ns[row]
    is_known = ~np.isnan(statistics.values[row])
    moved = is_known & (series.splits.moved[row] | (statistics.values[row] > above_ns))
    names = [percentile_name(p) for p, may_move in zip(series.percentiles, moved, strict=True) if may_move]
    return ("mean", *(["max"] if statistics.high[row] > above_ns else []), *names)


def _percentile(
    name: str, statistics: "Statistics | _Nothing", row: int, column: int, is_averaged: bool, is_run: bool
) -> Percentile:
    if is_averaged:
        return Percentile(name, None, None, False, False)
    insufficient = bool(statistics.insufficient[row, column])
    if is_run and insufficient:  # blank, as in the run's own rows
        return Percentile(name, None, None, False, True)
    value, width = _us(statistics.values[row, column]), _us(statistics.widths[row, column])
    return Percentile(name, value, width, bool(statistics.at_least[row, column]), insufficient)


class _Nothing:
    """The statistics of an empty interval."""

    def __init__(self, percentiles: int) -> None:
        none = np.array([np.nan])
        self.count = np.zeros(1)
        self.sums = np.zeros(1)
        self.low = self.stdev = self.high = none
        self.values = self.widths = np.full((1, percentiles), np.nan)
        self.at_least = self.insufficient = np.zeros((1, percentiles), bool)
        self.saturated = np.zeros(1, bool)


def _us(ns: float) -> float | None:
    value = float(ns)
    return None if math.isnan(value) else value / NS_PER_US


def _mean_us(statistics: "Statistics | _Nothing", row: int) -> float | None:
    """Divided once, as a run's own rows are, so that it is the same float."""
    count, total = float(statistics.count[row]), float(statistics.sums[row])
    return total / (count * NS_PER_US) if count > 0 and not math.isnan(total) else None


_UNITS: Final = (("s", 1e6), ("ms", 1e3), ("us", 1.0), ("ns", 1e-3))


def latency_text(us: float | None, at_least: bool = False, limit_us: float | None = None) -> str:
    """Three digits and a unit, for eyes: "1.23 ms"; more where it takes them to show the side of a limit."""
    if us is None:
        return NO_NUMBER
    unit, factor = next(((u, f) for u, f in _UNITS if us >= f * 0.9995), _UNITS[-1])
    scaled = us / factor
    digits = 2 - min(2, math.floor(math.log10(scaled))) if scaled >= 1 else 2
    shown = rounded(scaled, scaled if limit_us is None else limit_us / factor, digits, "f")
    return f"{'>= ' if at_least else ''}{shown} {unit}"


def columns(percentiles: Sequence[float]) -> list[str]:
    """The CSV's columns."""
    names: list[str] = []
    for name in COLUMNS:
        if name == "latency_us_pN":
            for percentile in percentiles:
                names += [
                    f"latency_us_{percentile_name(percentile)}",
                    f"latency_us_{percentile_name(percentile)}_width",
                ]
        elif name != "latency_us_pN_width":
            names.append(name)
    return names


def documentation() -> str:
    """The columns, as docs/percentiles.md has them."""
    return "\n".join(f"- `{name}`: {text}" for name, text in COLUMNS.items())
