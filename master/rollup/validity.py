"""Finds what limits the validity of a measurement: the findings of every row, from what was measured.

Rule: pure; one function for each check, for all rows at once. Those of the generator are in generator_checks.py, those
of I/Os and disks in io_checks.py; here are those of loads, rollup types and lengths, and the list of all. What only the
run knows (a lost host, a slow controller, an interruption) is passed in with its scope, and is a finding of every row
in it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...protocol.counters import Count
from ...protocol.parameters import MAX
from ..stats.confidence import FEWEST_STATED
from ..text.metric_amounts import rounded
from ..text.units import format_fraction
from ..verdicts import USUAL_PURPOSE, Finding, Reason, Scope, Severity, Verdict, counting_for, speaking, verdict_of
from .figures import Figures
from .generator_checks import busy_threads, cpu_contention, late_submissions, long_thoughts, reap_delay, uncovered
from .instances import Rollups
from .io_checks import (
    discarded,
    failed_tail,
    foreign_io,
    full_queues,
    io_errors,
    no_samples,
    page_cache,
    stall_at_end,
    unwritten_blocks,
)
from .load_times import bursts_cut, started_late
from .metrics import column
from .overload import rows_ahead, rows_behind, rows_of_earlier
from .parameters_in_force import Settings
from .validity_case import Case, Rows, each, rows_of_host
from .volumes import ended_apart
from .window import Measurement

MOST_MOVED: Final = 0.002  # of a subinterval: no clock is followed faster; a host whose lengths differ by more was cut
ABSENCES: Final = frozenset({Reason.HOST_LOST, Reason.HOST_LATE})
REPEATED: Final = frozenset({Reason.HOST_LATE, Reason.LATE_DECISION})  # that a long step can have any number of
LEAST_TAIL: Final = 0.99  # counts, whatever the step was for
MOST_HALF_WIDTH: Final = 0.10  # of a maximum's IOPS
OF_ONE_HOST: Final = frozenset({"host", "lun"})  # attributes by which a row is of one host alone


@dataclass(frozen=True, slots=True)
class ScopedFinding:
    """A finding from outside the numbers, whom it concerns, and in which subintervals of the step."""

    finding: Finding
    host: str = ""  # "": all hosts
    number: int | None = None  # of a workload instance on that host; None: all of them
    since: int = 0  # measurements that ended before this subinterval are free of it
    until: int | None = None  # as are those that began after this one
    of_many_hosts: bool = False  # only rows that are not of one host alone


@dataclass(frozen=True, slots=True)
class Validity:
    """The findings of a step's rows."""

    findings: tuple[tuple[Finding, ...], ...]  # per row
    reached: NDArray[np.bool_]  # (R,) the target was reached: response times have a meaning
    purpose: frozenset[Scope] = USUAL_PURPOSE  # the figures that the step was for

    @classmethod
    def unmeasured(
        cls, rollups: Rollups, findings: Iterable[Finding], purpose: frozenset[Scope] = USUAL_PURPOSE
    ) -> "Validity":
        """Of a step that ended before it had a measurement: the same findings for every row."""
        rows = len(rollups.rows)
        return cls((tuple(findings),) * rows, np.zeros(rows, bool), purpose)

    def verdict(self, row: int) -> Verdict:
        """Of what the step was for."""
        return verdict_of(counting_for(self.findings[row], self.purpose))

    def scope_verdict(self, row: int, scope: Scope) -> Verdict:
        """Of the row's figures of one scope."""
        return verdict_of(speaking(self.findings[row], {scope}))

    def worst(self) -> Verdict:
        """The verdict of the step: that of its worst row."""
        return verdict_of(counting_for((finding for row in self.findings for finding in row), self.purpose))


def check_validity(
    measurement: Measurement,
    settings: Settings,
    tolerance: float,
    length_s: float,
    outside: Iterable[ScopedFinding] = (),
    purpose: frozenset[Scope] = USUAL_PURPOSE,
    tail: float = LEAST_TAIL,
) -> Validity:
    """The findings of every row. `tolerance`: achieved_iops_tolerance, a fraction of what fell due; `length_s`: of a
    subinterval, as planned; `purpose`: the figures that the step was for; `tail`: the highest percentile
    among them, as a fraction."""
    paced = ~measurement.layout.of_instances(settings.at_max)
    account = measurement.account.of_paced(paced)
    unsustained = rows_behind(measurement.layout, account, tolerance)
    ahead = rows_ahead(measurement.layout, account, tolerance)
    earlier = rows_of_earlier(measurement.layout, account, measurement.merged.counts[:, Count.COMPLETED])
    figures = Figures(measurement.merged, settings.response_rows())
    case = Case(measurement, settings, unsustained, ahead, earlier, max(tail, LEAST_TAIL), figures, length_s)
    findings: list[dict[Finding, None]] = [{} for _ in measurement.merged.rollups.rows]  # in order, each once
    for check in _CHECKS:
        for row, finding in check(case):
            findings[row][finding] = None
    for row, finding in _of_outside(measurement, [*_present(measurement, length_s, outside)]):
        findings[row][finding] = None
    reached = np.ones(len(findings), bool)
    reached[list(unsustained)] = False
    return Validity(tuple(tuple(row) for row in findings), reached, purpose)


def _target(case: Case) -> Rows:
    for row, detail in case.unsustained.items():
        yield row, Finding(Reason.LOAD_NOT_SUSTAINED, detail)


def _before(case: Case) -> Rows:
    for row, detail in case.ahead.items():
        yield row, Finding(Reason.EARLIER_BACKLOG, detail)
    for row, detail in case.earlier.items():
        if row not in case.ahead:
            yield row, Finding(Reason.EARLIER_IOS, detail)


def _types(case: Case) -> Rows:
    """`quantity` and `max_droop`: a failure stands on every row of the type."""
    merged = case.measurement.merged
    iops = column(case.figures, "overall_iops")
    for kind in merged.rollups.types:
        rows = [instance.row for instance in kind.instances if merged.presence.hosts_in[instance.row]]
        findings = []
        if kind.quantity is not None and len(rows) != kind.quantity:
            findings.append(Finding(Reason.QUANTITY, f"{len(rows)} instances, not {kind.quantity}"))
        if kind.max_droop is not None and rows and (fastest := iops[rows].max()) > 0:
            slowest = min(rows, key=lambda row: iops[row])
            droop = 1 - iops[slowest] / fastest
            if droop > kind.max_droop:
                where = merged.rollups.rows[slowest].name
                below, most = rounded(droop, kind.max_droop, 1, "%"), format_fraction(kind.max_droop)
                findings.append(Finding(Reason.MAX_DROOP, f"{where} is {below} below the fastest, not {most}"))
        for instance in kind.instances:
            for finding in findings:
                yield instance.row, finding


def _few(case: Case) -> Rows:
    if case.measurement.subintervals < FEWEST_STATED:
        finding = Finding(Reason.TOO_FEW_SUBINTERVALS, f"{case.measurement.subintervals}")
        yield from ((row, finding) for row in range(len(case.measurement.merged.counts)))


def _unsteady(case: Case) -> Rows:
    """Where enough subintervals give no half-width, they are too few independent samples: the IOPS drift."""
    if case.measurement.subintervals < FEWEST_STATED:
        return
    iops, half_width = column(case.figures, "overall_iops"), case.measurement.iops_half_width
    share = np.divide(half_width, iops, out=np.zeros(len(iops)), where=iops > 0)
    at_max = np.array([setting == MAX for setting in case.settings.iops], bool)

    def detail(row: int) -> str:
        return "IOPS drift throughout" if np.isnan(share[row]) else f"IOPS +/- {share[row]:.0%}"

    yield from each(at_max & ~(share <= MOST_HALF_WIDTH), Reason.UNSTEADY, detail)


_CHECKS: Final[Sequence[Callable[[Case], Rows]]] = (
    no_samples, _target, _before, stall_at_end, io_errors, failed_tail, uncovered, full_queues, discarded,
    unwritten_blocks, late_submissions, long_thoughts, reap_delay, _types, busy_threads, cpu_contention, foreign_io,
    page_cache, _few, _unsteady, ended_apart, started_late, bursts_cut,
)  # fmt: skip


def _present(measurement: Measurement, length_s: float, outside: Iterable[ScopedFinding]) -> Iterator[ScopedFinding]:
    """The findings that were passed in, matched to the data: who is missing follows from the data, an event says why.

    A host that was lost or late after its last measured subinterval is not missing (but if the measurement was cut
    short, it may be why); one that is missing makes its rows partial though no event says so.
    """
    missing = _missing(measurement, length_s)
    present = once(
        [scoped for scoped in outside if scoped.since <= measurement.last and not _was_over(scoped, measurement.first)]
    )
    shortened = any(scoped.finding.reason is Reason.SHORTENED for scoped in present)
    for scoped in present:
        absence = bool(scoped.host) and scoped.finding.reason in ABSENCES
        if scoped.finding.reason is Reason.HOST_LATE and missing.get(scoped.host):
            detail = f"{scoped.finding.detail}; {missing[scoped.host]}"
            yield replace(scoped, finding=replace(scoped.finding, detail=detail))
        elif scoped.finding.reason is Reason.HOST_LATE and scoped.host not in missing and not shortened:
            yield replace(scoped, finding=replace(scoped.finding, chosen=Severity.NOTE))
        elif not absence or shortened or scoped.host in missing:
            yield scoped
        if absence and scoped.host in missing:
            missing[scoped.host] = ""
    for host, why in missing.items():
        if why:
            yield ScopedFinding(Finding(Reason.HOST_MISSING, f"{host}: {why}"), host)


def once(findings: Iterable[ScopedFinding]) -> list[ScopedFinding]:
    """The findings, but of each REPEATED one and host the first, with the number of the others."""
    kept: list[ScopedFinding] = []
    others: dict[tuple[Reason, str], list[int]] = {}  # where the first is, and how many follow it
    for scoped in findings:
        if scoped.finding.reason not in REPEATED:
            kept.append(scoped)
        elif seen := others.get((scoped.finding.reason, scoped.host)):
            seen[1] += 1
        else:
            others[scoped.finding.reason, scoped.host] = [len(kept), 0]
            kept.append(scoped)
    for place, more in others.values():
        if more:
            finding = kept[place].finding
            words = f"{finding.detail}, and {more} time{'s' * (more > 1)} more"
            kept[place] = replace(kept[place], finding=replace(finding, detail=words))
    return kept


def _was_over(one: ScopedFinding, first: int) -> bool:
    return one.until is not None and first > one.until


def _missing(measurement: Measurement, length_s: float) -> dict[str, str]:
    """The hosts that are missing for some or all of the measurement, and how that shows."""
    lacking = {host: "no subinterval includes it" for host in measurement.layout.hosts if host not in measurement.hosts}
    planned_s = measurement.subintervals * length_s
    ended_s = length_s if measurement.merged.counts[0, Count.ENDED_NS] > 0 else 0.0  # see rollup/volumes.py
    for host in sorted(measurement.hosts):
        real_s = float(measurement.length_ns[measurement.layout.position[host]]) * 1e-9
        without = measurement.subintervals - measurement.within[host]
        if host in measurement.cut:
            lacking[host] = f"its result of subinterval {measurement.cut[host]} was cut"
        elif without > 0:
            lacking[host] = f"missing in {without} of {measurement.subintervals} subintervals"
        elif not -ended_s <= _beyond(real_s - planned_s, length_s / 2 + MOST_MOVED * planned_s) <= 0 and (
            host not in measurement.uncovered
        ):
            lacking[host] = f"its subintervals are {real_s:.4g} s long in total, not {planned_s:.4g} s"
    return lacking


def _beyond(difference: float, allowed: float) -> float:
    """By how much a difference is beyond what is allowed either way, with its sign."""
    return difference - max(min(difference, allowed), -allowed)


def _of_outside(measurement: Measurement, outside: Iterable[ScopedFinding]) -> Rows:
    rollups = measurement.merged.rollups
    for scoped in outside:
        if scoped.of_many_hosts:
            rows: Iterable[int] = [
                row.row for kind in rollups.types if not OF_ONE_HOST & set(kind.by) for row in kind.instances
            ]
        elif not scoped.host:
            rows = range(len(rollups.rows))
        elif scoped.number is None:
            rows = rows_of_host(measurement, scoped.host)
        else:
            rows = rollups.rows_of(scoped.host, scoped.number)
        for row in rows:
            yield row, scoped.finding
