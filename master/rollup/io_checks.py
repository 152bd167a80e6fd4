"""Checks the I/Os of a measurement, and the counters of their disks: that there are none, errors, a
stall, a full queue, I/Os that were discarded, blocks that were never written, I/O of others.

Rule: pure; one function for each check, for all rows at once (validity.py has the list).
"""

import errno
import math
from collections import Counter
from collections.abc import Mapping
from typing import Final

import numpy as np

from ...protocol.counters import NVME_STATUS, Count
from ..text.scaled import scaled_size
from ..verdicts import Finding, Reason, Severity
from .figures import FLUSH, OVERALL, RELEASES
from .overload import FALSE_ALARM
from .parameters_in_force import NOTHING
from .validity_case import Case, Rows, each

MOST_DISCARDED: Final = 0.01  # of the I/Os that fell due
ERRORS_PARTIAL: Final = 1e-6  # of the I/Os that ended
ERRORS_INVALID: Final = 0.01
FAILED_OF_TAIL: Final = 0.1  # of the I/Os that a percentile leaves out
ZERO_READS_NOTE: Final = 0.01  # of the reads that were sampled
ZERO_READS_INVALID: Final = 0.10
FEWEST_ZERO_READS: Final = 3  # one of two reads says little about all of them
FOREIGN_NOTE: Final = 0.01  # of our own bytes
CACHED_NOTE: Final = 0.01  # of what was read, or written
# By type and code (NVMe Base Specification, Status Code).
NVME_STATUS_NAMES: Final[Mapping[int, str]] = {
    0x001: "invalid opcode", 0x002: "invalid field", 0x004: "data transfer error", 0x006: "internal error",
    0x007: "aborted", 0x00B: "invalid namespace or format", 0x020: "namespace is write protected",
    0x080: "LBA out of range", 0x081: "capacity exceeded", 0x082: "namespace not ready", 0x083: "reservation conflict",
    0x182: "attempted write to read-only range", 0x280: "write fault", 0x281: "unrecovered read error",
    0x286: "access denied", 0x370: "path error: host aborted command", 0x371: "path error: command aborted",
}  # fmt: skip


def no_samples(case: Case) -> Rows:
    """A row without any host in has its lost hosts as the reason; a row with target 0 has no samples by intent."""
    present = case.measurement.merged.presence.hosts_in > 0
    asked = np.array([iops != NOTHING for iops in case.settings.columns["iops"]], bool)  # of those that are there
    yield from each(present & asked & (case.figures.service("overall").count == 0), Reason.NO_SAMPLES, lambda row: "")


def stall_at_end(case: Case) -> Rows:
    oldest = case.count(Count.OLDEST_OUTSTANDING_NS) / 1e3
    service, flushes = case.figures.service(OVERALL), case.figures.service(FLUSH)
    others = [service, case.figures.response(OVERALL), flushes]
    longest = np.max([np.nan_to_num(latency.max) for latency in others], axis=0)
    completed = service.count + flushes.count
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


def _fault_name(code: int) -> str:
    """Of an errno, 0 (a short transfer), or 0x8000 + an NVMe status, as the engine counts those."""
    if code >= NVME_STATUS:
        status = code - NVME_STATUS
        named = f" {NVME_STATUS_NAMES[status]}" if status in NVME_STATUS_NAMES else ""
        return f"NVMe status {status:#05x}{named}"
    return errno.errorcode.get(code, str(code)) if code else "short"


def io_errors(case: Case) -> Rows:
    kinds: dict[int, Counter[str]] = {}
    for (host, number, code), count in case.measurement.faults.items():
        word = _fault_name(code)
        for row in case.measurement.merged.rollups.rows_of(host, number):
            kinds.setdefault(row, Counter())[word] += count
    errors, completed = case.count(Count.ERRORS), case.count(Count.COMPLETED)
    for row in np.flatnonzero(errors).tolist():
        share = float(errors[row] / (errors[row] + completed[row]))
        counted = ", ".join(f"{word} {count:,}" for word, count in sorted(kinds.get(row, {}).items()))
        detail = f"{errors[row]:,}: {counted}" if counted else f"{errors[row]:,}"
        severity = (
            Severity.INVALID if share > ERRORS_INVALID
            else Severity.PARTIAL if share > ERRORS_PARTIAL
            else Severity.NOTE
        )  # fmt: skip
        failed = f"{share * 100:.3g} % of the I/Os failed{f' ({counted})' if counted else ''}"
        yield row, Finding(Reason.IO_ERRORS, detail, severity, cause=failed, share=share)


def failed_tail(case: Case) -> Rows:
    """Whether the I/Os that failed would be a good part of the tail, as if they had taken for ever."""
    errors, completed = case.count(Count.ERRORS), case.count(Count.COMPLETED)
    beyond = (1 - case.tail) * (errors + completed)
    percentile = f"p{100 * case.tail:.6g}"

    def detail(row: int) -> str:
        return f"{errors[row]:,} failed, and {beyond[row]:,.0f} are beyond the {percentile}"

    yield from each((completed > 0) & (errors > FAILED_OF_TAIL * beyond), Reason.FAILED_TAIL, detail)


def full_queues(case: Case) -> Rows:
    for reason, which in (
        (Reason.QUEUE_DEPTH_LIMITED, Count.QUEUE_LIMITED),
        (Reason.EAGAIN, Count.EAGAIN),
    ):
        counts = case.count(which)
        yield from each(counts > 0, reason, lambda row, counts=counts: f"{counts[row]:,}")  # type: ignore[misc]


def discarded(case: Case) -> Rows:
    due = case.count(Count.DUE)
    for reason, which in ((Reason.DROPPED_DUE, Count.DROPPED), (Reason.EXPIRED_DUE, Count.EXPIRED)):
        counts = case.count(which)
        many = counts > MOST_DISCARDED * due
        for rows, severity in ((many, Severity.INVALID), (~many & (counts > 0), Severity.NOTE)):
            for row in np.flatnonzero(rows).tolist():
                yield row, Finding(reason, f"{counts[row]:,} of {due[row]:,} due", severity)


def unwritten_blocks(case: Case) -> Rows:
    """Find reads of what holds nothing; a load that makes such blocks itself is meant so."""
    zeros, sampled = case.count(Count.ZERO_READS), case.count(Count.READS_SAMPLED)
    released = np.sum([case.figures.service(category).count for category in RELEASES], axis=0) > 0
    for row in np.flatnonzero(zeros > ZERO_READS_NOTE * sampled).tolist():
        share = zeros[row] / sampled[row]
        certain = share > ZERO_READS_INVALID and zeros[row] >= FEWEST_ZERO_READS
        severity = Severity.INVALID if certain and not released[row] else Severity.NOTE
        why = "trimmed or zeroed by this load, or never written" if released[row] else "never written, or zeros"
        detail = f"{share:.0%} of {sampled[row]:,} sampled reads: {why}"
        yield row, Finding(Reason.UNWRITTEN_BLOCKS, detail, severity)


def page_cache(case: Case) -> Rows:
    """Find what the hosts' memory did instead of their disks, and what nobody knows of."""
    cached, dirty, unseen = (case.count(one) for one in (Count.CACHED, Count.DIRTY, Count.UNSEEN))
    written = case.count(Count.WRITTEN)
    read = case.count(Count.BYTES) - written
    dirty = np.minimum(dirty, written)
    for row in np.flatnonzero((cached > CACHED_NOTE * read) | (dirty > CACHED_NOTE * written) | (unseen > 0)).tolist():
        words = []
        if cached[row] > CACHED_NOTE * read[row]:
            words.append(f"{cached[row] / read[row]:.0%} of what was read came from memory")
        if dirty[row] > CACHED_NOTE * written[row]:
            words.append(f"{dirty[row] / written[row]:.0%} of what was written had not reached the disk at the end")
        if unseen[row]:
            words.append(f"not known of {scaled_size(int(unseen[row]))}, for whose files no disk is counted")
        yield row, Finding(Reason.PAGE_CACHE, ", ".join(words))


def foreign_io(case: Case) -> Rows:
    """Find the I/O of others on the disks that is certain: beyond what may have been in flight at a boundary."""
    foreign, ours = case.count(Count.FOREIGN_BYTES), case.count(Count.BYTES)

    for row in np.flatnonzero(foreign > FOREIGN_NOTE * ours).tolist():
        unit, size = ("MiB", 2**20) if foreign[row] >= 2**20 else ("KiB", 2**10)
        detail = f"others {foreign[row] / size:,.0f} {unit}, ivypy {ours[row] / size:,.0f} {unit}"
        share = float(foreign[row] / (foreign[row] + ours[row]))
        yield row, Finding(Reason.FOREIGN_IO, detail, share=share)
