"""log_hist_msec of logs whose rows came irregularly, found from their rows.

fio writes a direction's row k at the first completion at or after its due time

    D(k) = h + (k + 1) M        (h: the direction's first completion; M: log_hist_msec)

so after a gap of many periods one completion after the other writes a row, each of one I/O, until the log has
caught up. It had caught up at row p if row p + 1 holds more than one I/O: then a completion between the two found
no row due. With s(k), the stamp of row k,

    D(k) <= s(k) for every row,     D(p) > s(p) - M where the log had caught up

which bounds M from both sides, for rows i < j:

    M > (s(j) - s(i)) / (j - i + 1)  if it had caught up at j
    M < (s(j) - s(i)) / (j - i - 1)  if it had caught up at i

Rule: within the bounds of all logs of the job set M is the commonest step between rows; without one there, the
roundest number, and then a note states the assumption. Logs whose rows come regularly skip all of this.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Final

import numpy as np

from .records import NS_PER_MS, Ints
from .row_arrays import HistogramRows
from .source import DIRECTIONS, Format, Source
from .text_rows import Reading

_JITTER: Final = 0.2  # of the median step: more is irregular
_MOST_ROWS: Final = 600  # of a direction that are read: the bounds of M narrow as 1 / rows
_COMMON: Final = 3  # steps that must agree
_NEAR: Final = 0.03  # how well
_ROUND: Final = (10_000, 5_000, 1_000, 500, 250, 100, 50, 25, 10, 5, 1)  # ms


@dataclass(frozen=True, slots=True)
class Bounds:
    """M lies in (low, high], ms."""

    low: float = 0.0
    high: float = math.inf
    assumes_start: bool = False  # `low` holds only if the log's first I/O came at the job's start

    def within(self, other: "Bounds") -> "Bounds":
        narrower = self if self.low >= other.low else other
        return Bounds(narrower.low, min(self.high, other.high), narrower.assumes_start)

    @property
    def is_possible(self) -> bool:
        return math.floor(self.high) > self.low if self.high < math.inf else True

    def holds(self, ms: float) -> bool:
        return self.low < ms <= self.high


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of one direction of one job: stamps in ms, and I/Os a row."""

    stamps: Ints
    totals: Ints

    @property
    def caught_up(self) -> np.ndarray:
        """Whether the log had caught up at a row; never known of the last one."""
        return np.append(self.totals[1:] > 1, False)


@dataclass(frozen=True, slots=True)
class _Seen:
    source: Source
    rows: dict[int, list[_Rows]]  # by direction; several jobs in a log that jobs share
    bounds: Bounds
    steps: Counter[int]


def is_regular(stamps: Iterable[Sequence[int]]) -> bool:
    """Whether rows came at one distance. `stamps`: of the first rows, per direction."""
    steps = [b - a for own in stamps for a, b in itertools.pairwise(own)]
    if len(steps) < 2:
        return False
    middle = median(steps)
    return all(abs(step - middle) <= _JITTER * middle for step in steps)


def with_periods(sources: Sequence[Source], given_ns: int | None) -> tuple[list[Source], list[str]]:
    """The sources with the periods, and the first rows' begins, of those whose rows came irregularly; and notes."""
    irregular = [s for s in sources if s.format is Format.FIO_HISTOGRAM and not s.is_regular]
    seen = [_seen(source) for source in irregular]
    known = Counter(s.period_ns // NS_PER_MS for s in sources if s.is_regular and s.period_ns)
    placed: dict[Source, Source] = {}
    assumed: dict[tuple[int, Bounds], list[str]] = {}
    unknown: list[str] = []
    for log in seen:
        period_ms, bounds, is_assumed = _found(log, seen, known)
        if given_ns:
            period_ms, is_assumed = given_ns // NS_PER_MS, False
        if period_ms is None:
            unknown.append(log.source.name)
        elif is_assumed:
            assumed.setdefault((period_ms, bounds), []).append(log.source.name)
        placed[log.source] = replace(
            log.source,
            period_ns=period_ms * NS_PER_MS if period_ms else None,
            begins_ms=_begins(log, period_ms),
        )
    return [placed.get(source, source) for source in sources], [*_assumptions(assumed), *_unknowns(unknown)]


def _assumptions(assumed: dict[tuple[int, Bounds], list[str]]) -> Iterator[str]:
    for (period_ms, bounds), names in assumed.items():
        condition = ", if the first I/O came at the job's start" if bounds.assumes_start else ""
        yield (
            f"log_hist_msec of {_logs(names)} is taken to be {period_ms}: the rows after gaps show more than "
            f"{bounds.low:.4g} and at most {bounds.high:.4g} ms{condition}; set it with --log-hist-msec"
        )


def _unknowns(names: list[str]) -> Iterator[str]:
    if names:
        yield (
            f"{_logs(names)}: the rows do not show log_hist_msec, so the I/Os of each are spread evenly back to the "
            "row before; set it with --log-hist-msec"
        )


def _logs(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} logs ({names[0]} ...)"


def _found(log: _Seen, seen: Sequence[_Seen], known: Counter[int]) -> tuple[int | None, Bounds, bool]:
    """(period in ms, its bounds, whether it is assumed) of a log, by its own rows and those of its job set."""
    for period_ms, _ in known.most_common():
        if log.bounds.holds(period_ms):
            return period_ms, log.bounds, False
    bounds, steps = log.bounds, log.steps
    for other in seen:
        if other.source.kind == log.source.kind and bounds.within(other.bounds).is_possible:
            bounds, steps = bounds.within(other.bounds), steps + other.steps
    common = _commonest({step: count for step, count in steps.items() if bounds.holds(step)})
    if common is not None:
        near = bounds.within(Bounds(common * (1 - _NEAR), common * (1 + _NEAR)))
        return _roundest(near if near.is_possible else bounds), bounds, False
    if not bounds.low or bounds.high == math.inf or not bounds.is_possible:
        return log.source.period_ns and log.source.period_ns // NS_PER_MS, bounds, False
    return _roundest(bounds), bounds, True


def _commonest(steps: dict[int, int]) -> int | None:
    """The step that the most others are near to; None where too few are."""
    near = {step: sum(count for other, count in steps.items() if abs(other - step) <= _NEAR * step) for step in steps}
    best = max(near, key=lambda step: (near[step], steps[step]), default=None)
    return best if best is not None and near[best] >= _COMMON else None


def _roundest(bounds: Bounds) -> int:
    """The roundest whole number within bounds, the one nearest the middle if there are several."""
    middle = (bounds.low + bounds.high) / 2
    for unit in _ROUND:
        multiple = round(middle / unit) * unit
        for ms in (multiple, multiple - unit, multiple + unit):
            if ms > 0 and bounds.holds(ms):
                return ms
    return math.floor(bounds.high)


def _seen(source: Source) -> _Seen:
    """The first rows of a log, and the bounds that they set to its period."""
    rows: dict[int, list[_Rows]] = {}
    for direction, stamps, totals in _first_rows(source):
        cuts = np.flatnonzero(np.diff(stamps) < 0) + 1
        rows[direction] = [_Rows(*parts) for parts in zip(np.split(stamps, cuts), np.split(totals, cuts), strict=True)]
    bounds, steps = Bounds(), Counter[int]()
    for own in (part for parts in rows.values() for part in parts):
        narrower = bounds.within(_bounds(own, source.epoch))
        bounds = narrower if narrower.is_possible else bounds
        steps.update(np.diff(own.stamps)[own.caught_up[:-1]].tolist())
    return _Seen(source, rows, bounds, steps)


def _first_rows(source: Source) -> Iterator[tuple[int, Ints, Ints]]:
    """(direction, stamps, I/Os a row) of every direction; faults are found again when the log is read."""
    into = HistogramRows(source)
    stamps, directions, totals = [], [], []
    rows = 0
    for _, (count, entries, *_) in Reading(source).parse(into.parse):
        upto = np.concatenate([[0], np.cumsum(into.counts[:entries].astype(np.int64))])
        stamps.append(into.stamps[:count].copy())
        directions.append(into.directions[:count].copy())
        totals.append(np.diff(upto[into.first[: count + 1]]))
        rows += count
        if rows > _MOST_ROWS * len(DIRECTIONS):
            break
    if not rows:
        return
    of = np.concatenate(directions)
    for direction in np.unique(of).tolist():
        own = np.flatnonzero(of == direction)[:_MOST_ROWS]
        yield direction, np.concatenate(stamps)[own], np.concatenate(totals)[own]


def _bounds(rows: _Rows, epoch: bool) -> Bounds:
    stamps, caught_up = rows.stamps.astype(np.float64), rows.caught_up
    number = np.arange(len(stamps))
    between, apart = stamps[None, :] - stamps[:, None], number[None, :] - number[:, None]  # of rows [i, j]
    lows = (between / (np.maximum(apart, 0) + 1.0))[(apart > 0) & caught_up[None, :]]
    highs = (between / np.maximum(apart - 1, 1))[(apart > 1) & caught_up[:, None]]
    low, high = lows.max(initial=0.0), highs.min(initial=math.inf)
    if not epoch:  # h is 0 at least: what is due before a row's stamp has been written
        high = min(high, float((stamps / (number + 1)).min()))
        if not low:  # one gap: nothing shows h, or whether the log caught up after it
            return Bounds(float(stamps[-1] / (len(stamps) + 1)), float(high), assumes_start=True)
    return Bounds(float(low), float(high))


def _begins(log: _Seen, period_ms: int | None) -> tuple[int | None, ...]:
    """Where the first row of each direction begins, ms: as many periods before a row at which the log had caught up as
    rows were written until then; the job's start, if that is within a period. None where no such row is seen."""
    begins: list[int | None] = [None] * len(DIRECTIONS)
    for direction, (rows, *_) in log.rows.items():
        if not period_ms:
            continue
        caught_up = np.flatnonzero(rows.caught_up)
        if len(caught_up):
            last = int(caught_up[0])
        elif len(rows.stamps) > 1 and rows.stamps[-1] - rows.stamps[0] < period_ms:
            last = len(rows.stamps) - 1  # one burst: it is taken to have caught up
        else:
            continue
        begin = int(rows.stamps[last]) - (last + 1) * period_ms
        begins[direction] = begin if begin > period_ms else 0
    return tuple(begins)
