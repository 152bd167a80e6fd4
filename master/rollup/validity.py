"""What speaks against a measurement: the findings of every row, from what was measured.

Rule: pure; one function a question, each answering for all rows at once; the list of questions at the end. What the
session alone can know (a lost host, a late controller, an interruption) is handed in with the scope it concerns, and
stands on every row that has a part in it.
"""

import errno
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...protocol.counters import Count
from ..verdicts import Finding, Reason, Verdict, verdict_of
from . import workers
from .deficit import allowed
from .figures import Figures
from .instances import Rollups
from .metrics import column
from .settings import Settings
from .statistics import FEWEST
from .window import Measurement

LATENESS_NOTE: Final = 0.10  # of the response time
LATENESS_INVALID: Final = 0.25
LEAST_HARVEST_US: Final = 10.0  # a thread's own pass may take so long; less is not judged
BUSY_CORE_PERCENT: Final = 95.0  # a core that had no time left

Rows = Iterator[tuple[int, Finding]]  # (row, what was found)


@dataclass(frozen=True, slots=True)
class Outside:
    """A finding from outside the numbers, and whom it concerns."""

    finding: Finding
    host: str = ""  # "": everybody
    number: int | None = None  # of a workload instance on that host; None: all of them


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the rows of a step are worth."""

    findings: tuple[tuple[Finding, ...], ...]  # per row
    reached: NDArray[np.bool_]  # (R,) the target was reached: response times have a meaning

    @classmethod
    def unmeasured(cls, rollups: Rollups, findings: Iterable[Finding]) -> "Judgement":
        """Of a step that ended before it had a measurement: the same findings for every row."""
        rows = len(rollups.rows)
        return cls((tuple(findings),) * rows, np.zeros(rows, bool))

    def verdict(self, row: int) -> Verdict:
        return verdict_of(finding.reason for finding in self.findings[row])

    def worst(self) -> Verdict:
        """The verdict of the step: that of its worst row."""
        return verdict_of(finding.reason for row in self.findings for finding in row)


@dataclass(frozen=True, slots=True)
class _Case:
    """What every question looks at."""

    measurement: Measurement
    settings: Settings
    tolerance: float  # of what fell due
    figures: Figures  # with response times of every paced row, reached or not

    def count(self, which: Count) -> NDArray[np.int64]:
        found: NDArray[np.int64] = self.measurement.merged.counts[:, which]
        return found


def judge(measurement: Measurement, settings: Settings, tolerance: float, outside: Iterable[Outside] = ()) -> Judgement:
    """The findings of every row. `tolerance`: achieved_iops_tolerance, a fraction of what fell due."""
    case = _Case(measurement, settings, tolerance, Figures(measurement.merged, settings.paced))
    findings: list[dict[Finding, None]] = [{} for _ in measurement.merged.rollups.rows]  # in order, each once
    for question in _QUESTIONS:
        for row, finding in question(case):
            findings[row][finding] = None
    for row, finding in _of_outside(measurement, outside):
        findings[row][finding] = None
    return Judgement(tuple(tuple(row) for row in findings), ~_not_reached(case))


def _each(rows: NDArray[np.bool_], reason: Reason, detail: Callable[[int], str]) -> Rows:
    for row in np.flatnonzero(rows).tolist():
        yield row, Finding(reason, detail(row))


def _growth(case: _Case) -> NDArray[np.int64]:
    """By how much what is owed grew. Where iops is max, what is in flight is no deficit: the backlog alone counts."""
    left = case.count(Count.DUE) - case.count(Count.DROPPED)
    done = case.count(Count.COMPLETED) + case.count(Count.ERRORS)
    return np.where(case.settings.some_max, left - case.count(Count.SUBMITTED), left - done)


def _not_reached(case: _Case) -> NDArray[np.bool_]:
    measurement = case.measurement
    in_flight = np.where(case.settings.some_max, 0.0, measurement.in_flight)
    most = allowed(case.count(Count.DUE), case.tolerance, in_flight, measurement.merged.presence.instances)
    found: NDArray[np.bool_] = _growth(case) > most
    return found


def _target(case: _Case) -> Rows:
    growth = _growth(case)

    def detail(row: int) -> str:
        return f"what is owed grew by {growth[row]:,} of {case.count(Count.DUE)[row]:,} due"

    yield from _each(_not_reached(case), Reason.TARGET_NOT_REACHED, detail)


def _lateness(case: _Case) -> Rows:
    response, lateness = case.figures.response("overall"), case.figures.lateness()
    shown = case.figures.has_response("overall")
    shares = {}
    for name, of_lateness, of_response in (
        ("mean", lateness.mean, response.mean),
        ("p99", lateness.percentile("p99"), response.percentile("p99")),
    ):
        blank = np.zeros(len(shown))
        known = shown & (of_response > 0) & ~np.isnan(of_lateness)
        shares[name] = np.divide(of_lateness, of_response, out=blank, where=known)

    def detail(row: int) -> str:
        return ", ".join(
            f"{share[row]:.0%} of the {name}" for name, share in shares.items() if share[row] > LATENESS_NOTE
        )

    worst = np.maximum(shares["mean"], shares["p99"])
    yield from _each(worst > LATENESS_INVALID, Reason.GENERATOR_LATE, detail)
    yield from _each((worst > LATENESS_NOTE) & (worst <= LATENESS_INVALID), Reason.GENERATOR_LATENESS, detail)


def _harvests(case: _Case) -> Rows:
    """A thread with iops: max is always at work, so that completions wait for it: that is noted, and no more."""
    service = case.figures.service("overall")
    means, p99s = service.mean, service.percentile("p99")
    for row, seen in _workers(case):
        shares = [
            (late_us / service_us, name)
            for name, late_us, service_us in zip(
                ("mean", "p99"), workers.late_us(seen), (means[row], p99s[row]), strict=True
            )
            if service_us > 0 and late_us >= LEAST_HARVEST_US and late_us > LATENESS_NOTE * service_us
        ]
        if not shares:
            continue
        invalid = max(shares)[0] > LATENESS_INVALID and not case.settings.some_max[row]
        detail = ", ".join(f"{min(share, 1.0):.0%} of the {name}" for share, name in shares)
        yield row, Finding(Reason.HARVEST_LATE if invalid else Reason.HARVEST_LATENESS, detail)


def _busy(case: _Case) -> Rows:
    """By its core, which others may use too; where a thread spins, by its own work."""
    for row, seen in _workers(case):
        core = case.measurement.merged.presence.busiest_core_percent[row]
        thread = max(one.busy_percent for one in seen)
        if core >= BUSY_CORE_PERCENT and not any(one.spins for one in seen):
            yield row, Finding(Reason.HOST_LIMIT, f"busiest core {core:.0f} %")
        elif thread >= BUSY_CORE_PERCENT:
            yield row, Finding(Reason.HOST_LIMIT, f"busiest workload thread {thread:.0f} %")


def _workers(case: _Case) -> Iterator[tuple[int, list[workers.Seen]]]:
    """Each row, with the workload threads of its hosts that are in."""
    layout, found = case.measurement.layout, case.measurement.workers
    of_row: dict[int, list[workers.Seen]] = {}
    for row, host in zip(*(part.tolist() for part in layout.pairs), strict=True):
        if (seen := found.get(layout.hosts[host])) is not None:
            of_row.setdefault(row, []).append(seen)
    yield from of_row.items()


def _stall(case: _Case) -> Rows:
    oldest = case.count(Count.OLDEST_OWED_NS) / 1e3
    overall = [case.figures.service("overall"), case.figures.response("overall")]
    longest = np.max([np.nan_to_num(latency.max) for latency in overall], axis=0)

    def detail(row: int) -> str:
        return f"oldest unfinished {oldest[row] / 1e3:,.3f} ms, longest completed {longest[row] / 1e3:,.3f} ms"

    yield from _each(oldest > longest, Reason.STALL_AT_END, detail)


def _uncovered(case: _Case) -> Rows:
    for host, count in case.measurement.uncovered.items():
        finding = Finding(Reason.OVERRUN, f"{host}: {count} times")
        for row in _rows_of_host(case.measurement, host):
            yield row, finding


def _samples(case: _Case) -> Rows:
    """A row none of whose hosts is in has its lost hosts as the reason."""
    present = case.measurement.merged.presence.hosts_in > 0
    yield from _each(present & (case.figures.service("overall").count == 0), Reason.NO_SAMPLES, lambda row: "")


def _errors(case: _Case) -> Rows:
    kinds: dict[int, Counter[str]] = {}
    for (host, number, code), count in case.measurement.faults.items():
        word = errno.errorcode.get(code, str(code)) if code else "short"
        for row in case.measurement.merged.rollups.rows_of(host, number):
            kinds.setdefault(row, Counter())[word] += count

    def detail(row: int) -> str:
        said = ", ".join(f"{word} {count:,}" for word, count in sorted(kinds.get(row, {}).items()))
        return f"{case.count(Count.ERRORS)[row]:,}: {said}" if said else f"{case.count(Count.ERRORS)[row]:,}"

    yield from _each(case.count(Count.ERRORS) > 0, Reason.IO_ERRORS, detail)


def _types(case: _Case) -> Rows:
    """`quantity` and `max_droop`: a failure stands on every row of the type."""
    merged = case.measurement.merged
    iops = column(case.figures, "overall_iops")
    for kind in merged.rollups.types:
        rows = [instance.row for instance in kind.instances if merged.presence.hosts_in[instance.row]]
        found = []
        if kind.quantity is not None and len(rows) != kind.quantity:
            found.append(Finding(Reason.QUANTITY, f"{len(rows)} instances, not {kind.quantity}"))
        if kind.max_droop is not None and rows and (fastest := iops[rows].max()) > 0:
            slowest = min(rows, key=lambda row: iops[row])
            droop = 1 - iops[slowest] / fastest
            if droop > kind.max_droop:
                where = merged.rollups.rows[slowest].name
                found.append(
                    Finding(Reason.MAX_DROOP, f"{where} is {droop:.1%} below the fastest, not {kind.max_droop:.1%}")
                )
        for instance in kind.instances:
            for finding in found:
                yield instance.row, finding


def _counters(case: _Case) -> Rows:
    for reason, which in (
        (Reason.QUEUE_DEPTH_LIMITED, Count.QUEUE_LIMITED),
        (Reason.SUBMISSIONS_RETURNED, Count.AGAIN),
        (Reason.DROPPED_DUE, Count.DROPPED),
    ):
        counts = case.count(which)
        yield from _each(counts > 0, reason, lambda row, counts=counts: f"{counts[row]:,}")  # type: ignore[misc]


def _few(case: _Case) -> Rows:
    if case.measurement.subintervals < FEWEST:
        finding = Finding(Reason.TOO_FEW_SUBINTERVALS, f"{case.measurement.subintervals}")
        yield from ((row, finding) for row in range(len(case.measurement.merged.counts)))


_QUESTIONS: Final[Sequence[Callable[[_Case], Rows]]] = (
    _samples, _target, _stall, _errors, _uncovered, _counters, _lateness, _harvests, _types, _busy, _few,
)  # fmt: skip


def _of_outside(measurement: Measurement, outside: Iterable[Outside]) -> Rows:
    rollups = measurement.merged.rollups
    for one in outside:
        if not one.host:
            rows: Iterable[int] = range(len(rollups.rows))
        elif one.number is None:
            rows = _rows_of_host(measurement, one.host)
        else:
            rows = rollups.rows_of(one.host, one.number)
        for row in rows:
            yield row, one.finding


def _rows_of_host(measurement: Measurement, host: str) -> list[int]:
    """None for a host that was gone before the step began."""
    layout = measurement.layout
    rows, hosts = layout.pairs
    found: list[int] = rows[hosts == layout.position.get(host, -1)].tolist()
    return found
