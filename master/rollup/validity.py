"""What limits the validity of a measurement: the findings of every row, from what was measured.

Rule: pure; one function for each check, for all rows at once; the list of checks is at the end. What only the run knows
(a lost host, a slow controller, an interruption) is passed in with its scope, and is a finding of every row in it.
"""

import errno
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...protocol.counters import NVME_STATUS, Count
from ...protocol.parameters import MAX
from ..stats.confidence import FEWEST_STATED
from ..text.metric_amounts import rounded
from ..text.units import format_fraction
from ..verdicts import USUAL_PURPOSE, Finding, Reason, Scope, Severity, Verdict, counting_for, speaking, verdict_of
from . import thread_stats
from .arrays import Floats
from .figures import PERCENTILES, Figures
from .host_cpu import Contention, contentions
from .instances import Rollups
from .lateness_share import excess
from .metrics import column
from .overload import FALSE_ALARM, rows_ahead, rows_behind
from .parameters_in_force import NOTHING, Settings
from .window import Measurement

MOST_DISCARDED: Final = 0.01  # of the I/Os that fell due
LATENESS_NOTE: Final = 0.10  # of the response time
LATENESS_INVALID: Final = 0.25
LEAST_REAP_DELAY_US: Final = 10.0  # a thread's own pass, or a submit call, may take so long; less is not checked
MOST_MOVED: Final = 0.002  # of a subinterval: no clock is followed faster; a host whose lengths differ by more was cut
ABSENCES: Final = frozenset({Reason.HOST_LOST, Reason.HOST_LATE})
MOST_WAIT_PERCENT: Final = 5.0  # for a core: a thread that waits for more may look idle, and has no time left
ZERO_READS_NOTE: Final = 0.01  # of the reads that were sampled
ZERO_READS_INVALID: Final = 0.10
FEWEST_ZERO_READS: Final = 3  # one of two reads says little about all of them
FOREIGN_NOTE: Final = 0.01  # of our own bytes
MOST_HALF_WIDTH: Final = 0.10  # of a maximum's IOPS
WANTED_CORE_PERCENT: Final = 1.0  # of the time: a thread ran, or waited to run
# By type and code (NVMe Base Specification, Status Code).
NVME_STATUS_NAMES: Final[Mapping[int, str]] = {
    0x001: "invalid opcode", 0x002: "invalid field", 0x004: "data transfer error", 0x006: "internal error",
    0x007: "aborted", 0x00B: "invalid namespace or format", 0x020: "namespace is write protected",
    0x080: "LBA out of range", 0x081: "capacity exceeded", 0x082: "namespace not ready", 0x083: "reservation conflict",
    0x182: "attempted write to read-only range", 0x280: "write fault", 0x281: "unrecovered read error",
    0x286: "access denied", 0x370: "path error: host aborted command", 0x371: "path error: command aborted",
}  # fmt: skip

Rows = Iterator[tuple[int, Finding]]  # (row, what was found)


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


@dataclass(frozen=True, slots=True)
class _Case:
    """The input of every check."""

    measurement: Measurement
    settings: Settings
    behind: Mapping[int, str]  # the rows whose load was not sustained, and what fell behind in them
    ahead: Mapping[int, str]  # the rows that did more than fell due, and what did so in them
    figures: Figures  # with response times of every paced row, reached or not

    def count(self, which: Count) -> NDArray[np.int64]:
        found: NDArray[np.int64] = self.measurement.merged.counts[:, which]
        return found


def check_validity(
    measurement: Measurement,
    settings: Settings,
    tolerance: float,
    length_s: float,
    outside: Iterable[ScopedFinding] = (),
    purpose: frozenset[Scope] = USUAL_PURPOSE,
) -> Validity:
    """The findings of every row. `tolerance`: achieved_iops_tolerance, a fraction of what fell due; `length_s`: of a
    subinterval, as planned; `purpose`: the figures that the step was for."""
    paced = ~measurement.layout.of_instances(settings.at_max)
    account = measurement.account.of_paced(paced)
    behind = rows_behind(measurement.layout, account, tolerance)
    ahead = rows_ahead(measurement.layout, account, tolerance)
    case = _Case(measurement, settings, behind, ahead, Figures(measurement.merged, settings.response_rows()))
    findings: list[dict[Finding, None]] = [{} for _ in measurement.merged.rollups.rows]  # in order, each once
    for check in _CHECKS:
        for row, finding in check(case):
            findings[row][finding] = None
    for row, finding in _of_outside(measurement, [*_present(measurement, length_s, outside)]):
        findings[row][finding] = None
    reached = np.ones(len(findings), bool)
    reached[list(behind)] = False
    return Validity(tuple(tuple(row) for row in findings), reached, purpose)


def _each(
    rows: NDArray[np.bool_], reason: Reason, detail: Callable[[int], str], severity: Severity | None = None
) -> Rows:
    for row in np.flatnonzero(rows).tolist():
        yield row, Finding(reason, detail(row), severity)


def _target(case: _Case) -> Rows:
    for row, detail in case.behind.items():
        yield row, Finding(Reason.LOAD_NOT_SUSTAINED, detail)


def _before(case: _Case) -> Rows:
    for row, detail in case.ahead.items():
        yield row, Finding(Reason.EARLIER_BACKLOG, detail)


def _lateness(case: _Case) -> Rows:
    """The mean and the p99 can make a row invalid; higher percentiles and the maximum give a note."""
    response, lateness = case.figures.response("overall"), case.figures.lateness()
    shown = case.figures.has_response("overall")

    def part(of_lateness: Floats, of_response: Floats) -> Floats:
        known = shown & (of_response > 0) & ~np.isnan(of_lateness)
        return np.divide(of_lateness, of_response, out=np.zeros(len(shown)), where=known)

    def tail(name: str, least: float) -> Floats:
        found = excess(response.buckets, lateness.buckets, PERCENTILES[name], least)
        return np.where(shown, np.nan_to_num(found), 0.0)

    checked = {"mean": part(lateness.mean, response.mean), "p99": tail("p99", LATENESS_NOTE)}
    noted = {"p99.9": tail("p99_9", LATENESS_INVALID), "max": part(lateness.max, response.max)}
    limits = {**dict.fromkeys(checked, LATENESS_NOTE), **dict.fromkeys(noted, LATENESS_INVALID)}
    parts = {**checked, **noted}

    def detail(row: int) -> str:
        said = {name: float(found[row]) for name, found in parts.items() if found[row] > limits[name]}
        return ", ".join(f"{found:.0%} of the {name}" for name, found in said.items())

    invalid = np.maximum(*checked.values()) > LATENESS_INVALID
    worth_a_note = np.any([found > limits[name] for name, found in parts.items()], axis=0)
    yield from _each(invalid, Reason.GENERATOR_LATE, detail, Severity.INVALID)
    yield from _each(worth_a_note & ~invalid, Reason.GENERATOR_LATE, detail, Severity.NOTE)


def _reap_delay(case: _Case) -> Rows:
    """A thread with `iops: max` is always busy, so completions wait for it: that is at most a note."""
    figures, service = case.figures, case.figures.service("overall")

    def checked(share: Floats, of_us: Floats, limit: float) -> Floats:
        """What is above the limit, and long enough to be checked."""
        share, of_us = np.nan_to_num(share), np.nan_to_num(of_us)
        return np.where((share > limit) & (share * of_us >= LEAST_REAP_DELAY_US), share, 0.0)

    def tail(name: str, limit: float) -> Floats:
        found = service.percentile(name)
        return checked(1 - figures.undelayed(name) / found, found, limit)

    none = np.zeros_like(service.mean)
    mean = np.divide(figures.reap_delay_ns(), service.total_ns, out=none, where=service.count > 0)
    parts = {
        "mean": checked(mean, service.mean, LATENESS_NOTE),
        "p99": tail("p99", LATENESS_NOTE),
        "p99.9": tail("p99_9", LATENESS_INVALID),
    }

    def detail(row: int) -> str:
        return ", ".join(f"{found[row]:.0%} of the {name}" for name, found in parts.items() if found[row] > 0)

    invalid = (np.maximum(parts["mean"], parts["p99"]) > LATENESS_INVALID) & ~np.array(case.settings.some_max, bool)
    worth_a_note = np.any([found > 0 for found in parts.values()], axis=0)
    calls = {row: _long_submit_calls(of_host) for row, of_host in _workers(case)}
    for row in np.flatnonzero(worth_a_note).tolist():
        severity = Severity.INVALID if invalid[row] else Severity.NOTE
        yield row, Finding(Reason.REAP_DELAY, detail(row), severity, cause=calls.get(row, ""))


def _long_submit_calls(of_host: Mapping[str, thread_stats.ThreadSummary]) -> str:
    """The sentence, about the host with the longest; "" where they are short."""
    host = max(of_host, key=lambda name: of_host[name].submit_us)
    if (us := of_host[host].submit_us) < LEAST_REAP_DELAY_US:
        return ""
    return f"{host}: a submit call takes {us:.0f} us on average, and the thread finds no completions meanwhile"


def _busy(case: _Case) -> Rows:
    """By the busy share of workload threads' cores, which includes other programs; where a thread busy-waits, by the
    thread's own work. Where a host's other threads had time left, that is the remedy. A core that is busy with others
    alone does not limit threads that hardly want it."""
    of_row = _busiest_cores(case)
    waits = _longest_waits(case)
    calm = {host for host, taken in case.measurement.taken.items() if taken.wait <= MOST_WAIT_PERCENT}
    for row, of_host in _workers(case):
        core = of_row.get(row, 0.0)
        thread = max(one.busy_percent for one in of_host.values())
        wanted = thread + waits.get(row, 0.0) >= WANTED_CORE_PERCENT
        spins = any(one.spins for one in of_host.values())
        if uneven := [host for host, one in of_host.items() if one.busy and one.idle and host in calm]:
            yield row, Finding(Reason.HOST_LIMIT, _idle_beside_busy(of_host, uneven))
        elif core >= thread_stats.BUSY_PERCENT and wanted and not spins:
            yield row, Finding(Reason.HOST_LIMIT, f"busiest core {core:.0f} %")
        elif thread >= thread_stats.BUSY_PERCENT:
            yield row, Finding(Reason.HOST_LIMIT, f"busiest workload thread {thread:.0f} %")


def _idle_beside_busy(of_host: Mapping[str, thread_stats.ThreadSummary], uneven: Sequence[str]) -> str:
    """The host with the busiest thread stands for all that are `uneven`; the others are counted."""
    host = max(uneven, key=lambda name: of_host[name].busy_percent)
    one = of_host[host]
    threads = "one thread" if one.busy == 1 else f"{one.busy} threads"
    said = f"{threads} of {one.threads} {'was' if one.busy == 1 else 'were'} busy, {one.idle} had time left"
    others = len(uneven) - 1
    more = f", and {others} more host{'s' * (others > 1)}" if others else ""
    return f"{said} ({host}, thread {one.busiest} {one.busy_percent:.0f} %{more}): use more of them with `spread`"


def slowed_rows(measurement: Measurement, settings: Settings) -> frozenset[int]:
    """The rows with a load at max on a host whose CPU others took: at max, rates are lower for it, and times longer."""
    layout, said = measurement.layout, _contentions(measurement)
    pairs = zip(*(part.tolist() for part in layout.pairs), strict=True)
    return frozenset(row for row, host in pairs if settings.some_max[row] and said.get(layout.hosts[host]))


def _contentions(measurement: Measurement) -> dict[str, list[Contention]]:
    """What kept the threads of each host from running."""
    position = measurement.layout.position
    return {
        host: contentions(taken, int(measurement.length_ns[position[host]]))
        for host, taken in measurement.taken.items()
    }


def _contention(case: _Case) -> Rows:
    """The host that lost the most to one cause stands for all; the others are counted. A row without I/O, as of a
    paused instance, has no figures that they could have changed; one at `iops: max` may have none for that reason."""
    measurement = case.measurement
    outstanding = case.count(Count.BACKLOG) + case.count(Count.IN_FLIGHT)
    had_io = case.count(Count.DUE) + case.count(Count.COMPLETED) + outstanding > 0
    concerned = had_io | np.array(case.settings.some_max, bool)
    layout = measurement.layout
    said = _contentions(measurement)
    of_row: dict[int, list[str]] = {}
    for row, host in zip(*(part.tolist() for part in layout.pairs), strict=True):
        if concerned[row] and said.get(layout.hosts[host]):
            of_row.setdefault(row, []).append(layout.hosts[host])
    for row, hosts in of_row.items():
        worst = max(hosts, key=lambda host: max(one.percent for one in said[host]))
        others = len(hosts) - 1
        more = f" (and {others} more host{'s' * (others > 1)})" if others else ""
        detail = ", ".join(one.detail for one in said[worst])
        most = max(said[worst], key=lambda one: one.percent)
        where = f"{worst}: " if len(layout.hosts) > 1 else ""
        yield (
            row,
            Finding(
                Reason.CPU_CONTENTION,
                f"{worst}: {detail}{more}",
                cause=f"{where}{most.sentence}{more}",
                share=most.percent / 100,
            ),
        )


def _busiest_cores(case: _Case) -> dict[int, float]:
    """Busy percent of the busiest core of each row's hosts, of those that workload threads may run on."""
    taken = case.measurement.taken
    return _highest(
        case,
        {host: min(max(cores), taken[host].busiest_beside) for host, cores in case.measurement.cores.items() if cores},
    )


def _longest_waits(case: _Case) -> dict[int, float]:
    """Percent of the time that a workload thread of each row's hosts waited for its core."""
    return _highest(case, {host: taken.wait for host, taken in case.measurement.taken.items()})


def _highest(case: _Case, of_host: Mapping[str, float]) -> dict[int, float]:
    """Of each row's hosts."""
    layout = case.measurement.layout
    of_row: dict[int, float] = {}
    for row, host in zip(*(part.tolist() for part in layout.pairs), strict=True):
        of_row[row] = max(of_row.get(row, 0.0), of_host.get(layout.hosts[host], 0.0))
    return of_row


def _workers(case: _Case) -> Iterator[tuple[int, dict[str, thread_stats.ThreadSummary]]]:
    """Each row, with the workload threads of its hosts that are in."""
    layout, found = case.measurement.layout, case.measurement.workers
    of_row: dict[int, dict[str, thread_stats.ThreadSummary]] = {}
    for row, host in zip(*(part.tolist() for part in layout.pairs), strict=True):
        name = layout.hosts[host]
        if (seen := found.get(name)) is not None:
            of_row.setdefault(row, {})[name] = seen
    yield from of_row.items()


def _stall(case: _Case) -> Rows:
    oldest = case.count(Count.OLDEST_OUTSTANDING_NS) / 1e3
    overall = [case.figures.service("overall"), case.figures.response("overall")]
    longest = np.max([np.nan_to_num(latency.max) for latency in overall], axis=0)
    completed = overall[0].count
    outstanding = np.maximum(case.count(Count.IN_FLIGHT) + case.count(Count.BACKLOG), 1)
    for row in np.flatnonzero(oldest > longest).tolist():
        chance = older_by_chance(oldest[row] / longest[row], completed[row]) if longest[row] else 0.0
        if chance * outstanding[row] * len(oldest) < FALSE_ALARM:
            detail = f"oldest outstanding {oldest[row] / 1e3:,.3f} ms, longest completed {longest[row] / 1e3:,.3f} ms"
            yield row, Finding(Reason.STALL_AT_END, detail)


def older_by_chance(times: float, completed: float) -> float:
    """The chance that an outstanding I/O is older than so many `times` (at least 1) the longest of `completed` ones.

    Of exponential times, where an age is distributed as they are: E exp(-times x longest) = n B(times + 1, n).
    """
    return math.exp(math.lgamma(completed + 1) + math.lgamma(times + 1) - math.lgamma(completed + times + 1))


def _uncovered(case: _Case) -> Rows:
    for host, count in case.measurement.uncovered.items():
        finding = Finding(Reason.OVERRUN, f"{host}: {count} times")
        for row in _rows_of_host(case.measurement, host):
            yield row, finding


def _samples(case: _Case) -> Rows:
    """A row without any host in has its lost hosts as the reason; a row with target 0 has no samples by intent."""
    present = case.measurement.merged.presence.hosts_in > 0
    asked = np.array([iops != NOTHING for iops in case.settings.iops], bool)
    yield from _each(present & asked & (case.figures.service("overall").count == 0), Reason.NO_SAMPLES, lambda row: "")


def _fault_name(code: int) -> str:
    """Of an errno, 0 (a short transfer), or 0x8000 + an NVMe status, as the engine counts those."""
    if code >= NVME_STATUS:
        status = code - NVME_STATUS
        named = f" {NVME_STATUS_NAMES[status]}" if status in NVME_STATUS_NAMES else ""
        return f"NVMe status {status:#05x}{named}"
    return errno.errorcode.get(code, str(code)) if code else "short"


def _errors(case: _Case) -> Rows:
    kinds: dict[int, Counter[str]] = {}
    for (host, number, code), count in case.measurement.faults.items():
        word = _fault_name(code)
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
                below, most = rounded(droop, kind.max_droop, 1, "%"), format_fraction(kind.max_droop)
                found.append(Finding(Reason.MAX_DROOP, f"{where} is {below} below the fastest, not {most}"))
        for instance in kind.instances:
            for finding in found:
                yield instance.row, finding


def _counters(case: _Case) -> Rows:
    for reason, which in (
        (Reason.QUEUE_DEPTH_LIMITED, Count.QUEUE_LIMITED),
        (Reason.EAGAIN, Count.EAGAIN),
    ):
        counts = case.count(which)
        yield from _each(counts > 0, reason, lambda row, counts=counts: f"{counts[row]:,}")  # type: ignore[misc]


def _discarded(case: _Case) -> Rows:
    due = case.count(Count.DUE)
    for reason, which in ((Reason.DROPPED_DUE, Count.DROPPED), (Reason.EXPIRED_DUE, Count.EXPIRED)):
        counts = case.count(which)
        many = counts > MOST_DISCARDED * due
        for rows, severity in ((many, Severity.INVALID), (~many & (counts > 0), Severity.NOTE)):
            for row in np.flatnonzero(rows).tolist():
                yield row, Finding(reason, f"{counts[row]:,} of {due[row]:,} due", severity)


def _unwritten(case: _Case) -> Rows:
    zeros, sampled = case.count(Count.ZERO_READS), case.count(Count.READS_SAMPLED)
    for row in np.flatnonzero(zeros > ZERO_READS_NOTE * sampled).tolist():
        share = zeros[row] / sampled[row]
        certain = share > ZERO_READS_INVALID and zeros[row] >= FEWEST_ZERO_READS
        severity = Severity.INVALID if certain else Severity.NOTE
        detail = f"{share:.0%} of {sampled[row]:,} sampled reads: never written, or zeros"
        yield row, Finding(Reason.UNWRITTEN_BLOCKS, detail, severity)


def _foreign(case: _Case) -> Rows:
    """What others did on the disks, for certain: beyond what may have been in flight at a boundary."""
    foreign, ours = case.count(Count.FOREIGN_BYTES), case.count(Count.BYTES)

    for row in np.flatnonzero(foreign > FOREIGN_NOTE * ours).tolist():
        unit, size = ("MiB", 2**20) if foreign[row] >= 2**20 else ("KiB", 2**10)
        detail = f"others {foreign[row] / size:,.0f} {unit}, ivypy {ours[row] / size:,.0f} {unit}"
        share = float(foreign[row] / (foreign[row] + ours[row]))
        yield row, Finding(Reason.FOREIGN_IO, detail, share=share)


def _few(case: _Case) -> Rows:
    if case.measurement.subintervals < FEWEST_STATED:
        finding = Finding(Reason.TOO_FEW_SUBINTERVALS, f"{case.measurement.subintervals}")
        yield from ((row, finding) for row in range(len(case.measurement.merged.counts)))


def _unsteady(case: _Case) -> Rows:
    """Where enough subintervals give no half-width, they are too few independent samples: the IOPS drift."""
    if case.measurement.subintervals < FEWEST_STATED:
        return
    iops, half_width = column(case.figures, "overall_iops"), case.measurement.iops_half_width
    share = np.divide(half_width, iops, out=np.zeros(len(iops)), where=iops > 0)
    at_max = np.array([setting == MAX for setting in case.settings.iops], bool)

    def detail(row: int) -> str:
        return "IOPS drift throughout" if np.isnan(share[row]) else f"IOPS +/- {share[row]:.0%}"

    yield from _each(at_max & ~(share <= MOST_HALF_WIDTH), Reason.UNSTEADY, detail)


_CHECKS: Final[Sequence[Callable[[_Case], Rows]]] = (
    _samples, _target, _before, _stall, _errors, _uncovered, _counters, _discarded, _unwritten, _lateness, _reap_delay,
    _types, _busy, _contention, _foreign, _few, _unsteady,
)  # fmt: skip


def _present(measurement: Measurement, length_s: float, outside: Iterable[ScopedFinding]) -> Iterator[ScopedFinding]:
    """The findings that were passed in, matched to the data: who is missing follows from the data, an event says why.

    A host that was lost or late after its last measured subinterval is not missing (but if the measurement was cut
    short, it may be why); one that is missing makes its rows partial though no event says so.
    """
    missing = _missing(measurement, length_s)
    said = [one for one in outside if one.since <= measurement.last and not _was_over(one, measurement.first)]
    shortened = any(one.finding.reason is Reason.SHORTENED for one in said)
    for one in said:
        absence = bool(one.host) and one.finding.reason in ABSENCES
        if not absence or shortened or one.host in missing:
            yield one
        if absence and one.host in missing:
            missing[one.host] = ""
    for host, why in missing.items():
        if why:
            yield ScopedFinding(Finding(Reason.HOST_MISSING, f"{host}: {why}"), host)


def _was_over(one: ScopedFinding, first: int) -> bool:
    return one.until is not None and first > one.until


def _missing(measurement: Measurement, length_s: float) -> dict[str, str]:
    """The hosts that are missing for some or all of the measurement, and how that shows."""
    found = {host: "no subinterval includes it" for host in measurement.layout.hosts if host not in measurement.hosts}
    planned_s = measurement.subintervals * length_s
    for host in sorted(measurement.hosts):
        real_s = float(measurement.length_ns[measurement.layout.position[host]]) * 1e-9
        if host in measurement.cut:
            found[host] = f"its result of subinterval {measurement.cut[host]} was cut"
        elif abs(real_s - planned_s) > length_s / 2 + MOST_MOVED * planned_s and host not in measurement.uncovered:
            found[host] = f"its subintervals are {real_s:.4g} s long in total, not {planned_s:.4g} s"
    return found


def _of_outside(measurement: Measurement, outside: Iterable[ScopedFinding]) -> Rows:
    rollups = measurement.merged.rollups
    for one in outside:
        if one.of_many_hosts:
            rows: Iterable[int] = [
                row.row for kind in rollups.types if not OF_ONE_HOST & set(kind.by) for row in kind.instances
            ]
        elif not one.host:
            rows = range(len(rollups.rows))
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
