"""Verdicts and reasons: each a closed list with a sentence for its reader.

Rule: every number has a verdict. A reason has one name, the severities that it can have, and a scope: the figures
that it discredits. A row has a verdict for the figures of each scope, and one for what its step was for.
docs/verdicts.md is printed from these tables.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final


class Verdict(StrEnum):
    VALID = "valid"
    PARTIAL = "partial"
    FAILED = "failed"
    INVALID = "invalid"

    @property
    def sentence(self) -> str:
        return {
            Verdict.VALID: "The number can be used; there may be notes.",
            Verdict.PARTIAL: "The number is true, but covers less than the plan asked for: a host or device was "
            "missing, or the measurement was interrupted.",
            Verdict.FAILED: "The number is true: a threshold is missed, or no load meets the target of a search. Only "
            "of `verdict`.",
            Verdict.INVALID: "The number is not a measurement of what the plan asked for; the reasons say why.",
        }[self]


class Severity(StrEnum):
    """The effect of a reason on the verdict; the worst last."""

    NOTE = "note"  # nothing
    PARTIAL = "partial"
    FAILED = "failed"
    INVALID = "invalid"


class Scope(StrEnum):
    """The figures that a reason speaks against."""

    RATE = "rate"  # IOPS, MiB/s
    SERVICE = "service"  # service times
    RESPONSE = "response"  # response times

    @property
    def figures(self) -> str:
        """Their name in a sentence."""
        return "IOPS" if self is Scope.RATE else f"{self} times"


NOTE: Final = (Severity.NOTE,)
PARTIAL: Final = (Severity.PARTIAL,)
FAILED: Final = (Severity.FAILED,)
INVALID: Final = (Severity.INVALID,)
ALL: Final = tuple(Scope)
LATENCY: Final = (Scope.SERVICE, Scope.RESPONSE)
STEP: Final = ()  # speaks against no figure: the step did not reach what it had to
_CORES_OF_THEIR_OWN: Final = (
    "Give the workload threads their own cores (`engine: cpus`), stop other programs, or busy-wait (`engine: spin`)."
)
_WRITE_FIRST: Final = "Write all of it first: `ivypy help fill`. A file can be created by the plan (`luns: create`)."
USUAL_PURPOSE: Final = frozenset({Scope.RATE, Scope.SERVICE})  # of a step that checks no metric


class Reason(Enum):
    """Value: severities, scope, a few plain words, a sentence, and the remedy. The name in lower case is what the CSV's
    `reasons` have.

    The order is that of weight, among reasons of the same severity: first what makes it another measurement, whatever
    the load and the hosts did.
    """

    UNWRITTEN_EXTENTS = (
        INVALID,
        ALL,
        "parts of a file were never written",
        "A file has extents that were never written: reads of them reach no disk.",
        _WRITE_FIRST,
    )
    UNWRITTEN_BLOCKS = (
        (Severity.NOTE, Severity.INVALID),
        ALL,
        "blocks were read that had never been written",
        "Sampled reads returned zeros: blocks were never written (thin LUN, trimmed SSD, sparse file), or hold "
        "zeros, which many arrays do not store: no medium is touched. Note: above 1 % of the samples. Invalid: "
        "above 10 %, and at least three.",
        _WRITE_FIRST,
    )
    NO_SAMPLES = (
        INVALID,
        ALL,
        "no I/O completed",
        "No I/O completed in the measurement.",
        "Measure for longer, or ask for more. `oldest_outstanding_ms` shows I/Os that hang.",
    )
    IO_ERRORS = (
        (Severity.NOTE, Severity.PARTIAL, Severity.INVALID),
        ALL,
        "I/Os failed",
        "I/Os ended with errors or short transfers; no latency includes them. Note: at most one in a million. "
        "Partial: at most 1 %. Invalid: more, or `on_io_error: stop`.",
        "Look at the device in the host's kernel log. events.csv names the workload instances.",
    )
    FAILED_TAIL = (
        INVALID,
        LATENCY,
        "I/Os that failed may hide the tail of the latencies",
        "Failed I/Os, which are in no latency, are more than a tenth of those above the p99 (0.1 % of all), or "
        "above the step's higher percentile (0.01 % for a p99.9).",
        "As for io_errors. The percentile is of the I/Os that succeeded.",
    )
    QUANTITY = (
        INVALID,
        ALL,
        "there are more or fewer instances than `quantity` says",
        "The rollup type has more or fewer instances than its `quantity`.",
        "Compare luns.csv with what should be there (paths, zoning, `select`), or correct `quantity`.",
    )
    EDIT_NOT_APPLIED = (
        INVALID,
        ALL,
        "a host did not apply an edit",
        "A host did not apply or acknowledge an edit in time: part of the measurement is of another load.",
        "Run the step again. log/<host>.log has the host's answer.",
    )
    LOAD_NOT_SUSTAINED = (
        INVALID,
        ALL,
        "the storage did not keep up with this load",
        "Outstanding I/O of a workload instance, or of all, grew beyond the tolerance and chance. Response "
        "times mean nothing.",
        "Ask for less (`find`, `staircase` or a step at max show what is sustained), or raise `maxtags`.",
    )
    GENERATOR_LATE = (
        (Severity.NOTE, Severity.INVALID),
        (Scope.RESPONSE,),
        "I/Os were issued late by the test host",
        "Part of the response time is the generator's own lateness. Note: above 10 % of the mean or p99, or 25 % of "
        "the p99.9 or maximum. Invalid: above 25 % of the mean or p99.",
        _CORES_OF_THEIR_OWN,
    )
    THOUGHT_TOO_LONG = (
        (Severity.NOTE, Severity.INVALID),
        (Scope.RATE,),
        "users thought for longer than their think time",
        "Tags waited for their thread after their `think_time`: the load was too low. Note: above 10 % of the "
        "mean time from a tag's I/O to its next (tags / IOPS). Invalid: above 25 %.",
        _CORES_OF_THEIR_OWN,
    )
    REAP_DELAY = (
        (Severity.NOTE, Severity.INVALID),
        LATENCY,
        "completions were found late by the test host",
        "Completions may have waited while their thread was preempted, busy, or in a submit call. Note: above "
        "10 % of the service time's mean or p99, or 25 % of its p99.9. Invalid: above 25 % of the mean or p99 "
        "of a paced load; with iops: max only of the p99, where cpu_contention explains it.",
        "Give the workload threads their own cores (`engine: cpus`), or divide the load among more of them (`engine: "
        "threads`, `spread`).",
    )
    HOST_LIMIT = (
        NOTE,
        (Scope.RATE, Scope.RESPONSE),
        "a core of a test host was busy all the time",
        "A workload thread's core was busy all the time, busy-waiting not counted. With iops: max the result is "
        "the host's limit, not the storage's; paced I/Os are late. The detail counts threads with time left: "
        "`spread` gives them load.",
        "Use more cores or threads (`engine: threads`, `engine: cpus`, `spread`), more hosts, or larger blocks.",
    )
    CPU_CONTENTION = (
        (Severity.NOTE, Severity.INVALID),
        ALL,
        "other programs took CPU time",
        "Other processes, the hypervisor (steal), a cgroup's CPU quota or a machine stall took CPU time that "
        "workload threads needed. Invalid: with iops: max for 25 % of the time or more. Note: less, or a paced "
        "load, where generator_late and reap_delay say what it did to latencies.",
        "Stop what else runs on the host, keep it off the workload threads' cores (`engine: cpus`), or get the host "
        "more CPU.",
    )
    STALL_AT_END = (
        INVALID,
        LATENCY,
        "an I/O still hung at the end",
        "An I/O outstanding at the end is older than the longest response, by more than chance: no latency "
        "shows this stall.",
        "Measure for longer than the stall. The host's kernel log may name the device.",
    )
    OVERRUN = (
        (Severity.NOTE, Severity.INVALID),
        ALL,
        "a host did not hand over its results in time",
        "Workload threads found no free buffer at a boundary. Note: all threads of a frozen host; a later "
        "subinterval has what is missing. Invalid: some, so their figures are of other subintervals.",
        "Look for what froze the host (hypervisor, SIGSTOP, debugger, swapping) or its connection, or give the "
        "workload threads their own cores (`engine: cpus`).",
    )
    MAX_DROOP = (
        INVALID,
        ALL,
        "the slowest instance is too far below the fastest",
        "The slowest instance is further below the fastest than `max_droop` allows.",
        "Compare the instances in the type's summary, or allow more.",
    )
    PAGE_CACHE = (
        NOTE,
        ALL,
        "part of the I/O stayed in the hosts' page caches",
        "With `direct: false`, the hosts' disks read less than the workloads did, or had not written everything "
        "at the end: memory did the rest. Read-ahead counts as the disk's. Not known for files on NFS or tmpfs.",
        "Use `direct: true`, or drive more than fits the hosts' memory, and end writes with `end_fsync`.",
    )
    VOLUME_NOT_REACHED = (
        PARTIAL,
        ALL,
        "the step's volume was not done",
        "A workload with `until`, or its last flush, had not ended at the `timeout`, or when its host was lost.",
        "Give `until` a longer `timeout`, or ask for more IOPS.",
    )
    VOLUME_LEFT = (
        NOTE,
        ALL,
        "the step's time came before its volume was done",
        "The step's time (`measure`) was over before its volume (`until`) was done.",
        "For all of the volume, leave `measure` out.",
    )
    END_SEEN_LATE = (
        (Severity.NOTE, Severity.INVALID),
        (Scope.RATE,),
        "time after the end of all I/O was measured",
        "The result with the end by volume came late: the rates include time after it. Invalid: above 1 %.",
        "Run the step again; `send_up_ms` in interlock.csv shows what was late.",
    )
    ENDED_APART = (
        NOTE,
        ALL,
        "workload instances ended at different times",
        "Workload instances that end by volume did so more than a twentieth of the time before the last: the "
        "figures include time in which fewer drove the storage.",
        "Look at the subintervals before the first end.",
    )
    BURSTS_CUT = (
        INVALID,
        (Scope.RATE,),
        "other than whole bursts were measured",
        "The load comes in bursts, and the time that was measured has more or less of them than whole periods have: by "
        "more than 5 %.",
        "Measure whole periods, on and off, in subintervals that hold them.",
    )
    STARTED_LATE = (
        NOTE,
        ALL,
        "workload instances began after the measurement did",
        "By `start_after`, some began more than a twentieth of the time after the measurement: figures include time "
        "in which fewer drove the storage.",
        "Make the warmup as long as `start_after`, or look at the subintervals after it.",
    )
    HOST_LOST = (
        PARTIAL,
        ALL,
        "a host was lost",
        "A host was lost: later rows are without it.",
        "Look for the cause in events.csv and log/<host>.log. A longer `lease` survives longer network outages.",
    )
    HOST_LATE = (
        (Severity.NOTE, Severity.PARTIAL),
        ALL,
        "results of a host came late",
        "No result of a host came within 6 s of a subinterval's end (0.6 of the `lease`, if less). Rows of "
        "these subintervals, and control, are without it. Note: all came later, and are measured. Partial: some "
        "did not.",
        "Look for what delays the host: `send_up_ms` in interlock.csv.",
    )
    HOST_NOT_AWAITED = (
        PARTIAL,
        ALL,
        "control went on without a host",
        "A host was late for a minute and 36 subintervals in a row: control decided without it. Its results may "
        "be in the figures.",
        "As for host_late. The detail has the subintervals.",
    )
    SHARED_LUN = (
        NOTE,
        ALL,
        "a LUN was driven more than once",
        "Several hosts or paths drive the same LUN at the same time: each gets what the others leave.",
        "If that is not intended, select the LUN on one host, by one path.",
    )
    VOLATILE_CACHE = (
        NOTE,
        ALL,
        "a write cache is volatile",
        "LUNs that the row writes to have a volatile write cache: a power failure loses completed writes.",
        "If the cache is not part of the test, switch it off.",
    )
    FOREIGN_IO = (
        NOTE,
        ALL,
        "others used the disk",
        "Others on this machine used the LUNs' disks (or their other partitions, or the file system): more than 1 % "
        "of the bytes. Another machine's I/O to a shared LUN is not seen.",
        "Measure when nobody else uses the disk.",
    )
    EDITED = (
        NOTE,
        ALL,
        "somebody edited the load",
        "Somebody, or `on_loss`, edited the load during the step. The detail says who and what.",
        "For the plan's load, run the step again.",
    )
    EARLIER_BACKLOG = (
        INVALID,
        ALL,
        "I/Os were left over from an earlier load",
        "The measurement includes I/Os that fell due under an earlier load: the rate is too high, and response "
        "times are not this load's.",
        "Lengthen `warmup`, so that they are done before the measurement.",
    )
    EARLIER_IOS = (
        INVALID,
        (Scope.RESPONSE,),
        "I/Os from before the measurement are in its tail",
        "More than 0.5 % of the measured I/Os fell due before the measurement, beyond what the load itself leaves "
        "outstanding: the tail of the response times is theirs.",
        "Lengthen `warmup`, so that they are done before the measurement.",
    )
    BASELINE_STEP = (
        (Severity.NOTE, Severity.PARTIAL, Severity.INVALID),
        ALL,
        "the step that this one refers to is in doubt",
        "A setting is a share of what another step (the baseline step) measured. Note: that has a valid rate, "
        "but a later measurement of it is invalid. Partial: it was partial, and hosts that took no part in it "
        "have no load; or it was at max, on what others left of the host. Invalid: it was not valid otherwise: "
        "this step was not run.",
        "See to the baseline step first.",
    )
    HUNG_IOS = (
        PARTIAL,
        LATENCY,
        "I/Os did not complete",
        "I/Os in flight in the measurement had not completed when their host stopped: no latency includes them.",
        "Look for a hung device or path in the host's kernel log.",
    )
    ORPHANED_IOS = (
        NOTE,
        ALL,
        "I/Os of the step before may still have been in flight",
        "I/Os of the step before had not completed when it ended: they may still have been in the queue.",
        "Lengthen the `cooldown` of the step before.",
    )
    LOST_HOST_ACTIVE = (
        PARTIAL,
        ALL,
        "a lost host may have gone on with its I/O",
        "A lost host may have driven its LUNs during the measurement: its lease had not ended.",
        "Run the step again, or shorten `lease`.",
    )
    HOST_MISSING = (
        PARTIAL,
        ALL,
        "a host is missing",
        "A host of the row is missing from all or part of the measurement, and no event says why.",
        "Run the step again. log/<host>.log has what the host sent.",
    )
    HOSTS_CHANGED = (
        PARTIAL,
        ALL,
        "the hosts changed during the measurement",
        "Hosts changed during the measurement, which started again with the remaining ones.",
        "Run the step again with all hosts.",
    )
    SET_ASIDE = (
        NOTE,
        ALL,
        "disturbed subintervals were measured again",
        "Other programs, the hypervisor or a machine stall kept a workload thread from running for more than 5 "
        "% of these subintervals. They do not count: others were measured, or a probe repeated. `disturbed: "
        "keep` lets them count.",
        "For fewer, stop what else runs on the host, or keep it off the workload threads' cores (`engine: cpus`).",
    )
    SHORTENED = (
        PARTIAL,
        ALL,
        "the measurement was cut short",
        "The measurement was interrupted (Ctrl-C, `ivypy stop`, `ivypy skip`, an error, no host left): the row "
        "is of the subintervals until then.",
        "Run the step again, to its end.",
    )
    CONTROLLER_ENDED = (
        (Severity.NOTE, Severity.PARTIAL),
        ALL,
        "the controller ended before the step did",
        "The controller was killed, crashed or could not write: the row is of what it had stored. Note: all of "
        "the measurement.",
        "Run the step again, to its end.",
    )
    INTERRUPTED = (
        INVALID,
        ALL,
        "the step was interrupted before it measured anything",
        "The step, or the level, was interrupted before a complete subinterval was measured.",
        "Run the step again, to its end.",
    )
    CONNECTOR_GAPS = (
        NOTE,
        ALL,
        "a connector gave no values for part of the time",
        "A connector whose metric control looked at gave no values for some subintervals: its figure is of the others.",
        "gathers.csv of the step says why: lengthen `subinterval` or `deadline`, or see to the connector.",
    )
    CLOCK_UNCERTAIN = (
        NOTE,
        ALL,
        "the clock of a host is known only roughly",
        "The error bound of a host's clock offset is above 1 % of a subinterval.",
        "Lengthen `subinterval`, or use a faster network to the host.",
    )
    CLOCK_STEPPED = (
        PARTIAL,
        ALL,
        "the clock of a host was set",
        "A host's clock was stepped, or slewed by more than 500 ppm (suspended virtual machine, time daemon): "
        "its subintervals did not begin and end as planned.",
        "Let the time daemon slew the clock, and do not suspend the host.",
    )
    SLOW_CONTROLLER = (
        NOTE,
        ALL,
        "the controller was slow",
        "The controller worked for more than half a subinterval (from the last result's arrival to its decision, or in "
        "CPU time), or was stalled for that long.",
        "Lengthen `subinterval`, use fewer rollup instances, or a controller with free cores.",
    )
    LATE_DECISION = (
        NOTE,
        ALL,
        "the load was changed late",
        "Control changed the load a subinterval too late: a host's result came late, or the controller was stalled. "
        "Nothing is missing.",
        "Look for what delays the host (`send_up_ms` in interlock.csv), or use a controller with free cores.",
    )
    QUEUE_DEPTH_LIMITED = (
        NOTE,
        ALL,
        "the queue of a device was full",
        "A hardware queue of the device (nr_requests), or a thread's share, was full: fewer I/Os were in flight "
        "than maxtags allows.",
        "Lower `maxtags`, raise nr_requests, or accept it as the device's limit.",
    )
    EAGAIN = (
        NOTE,
        LATENCY,
        "the kernel returned I/Os to be submitted again",
        "The kernel returned submissions (EAGAIN); they were submitted again and kept their times.",
        "Lower `maxtags`.",
    )
    DROPPED_DUE = (
        (Severity.NOTE, Severity.INVALID),
        (Scope.RATE, Scope.RESPONSE),
        "overdue I/Os were discarded",
        "Control changed the rate in the measurement, and so discarded overdue I/Os: no response time includes "
        "them. Note: up to 1 % of the I/Os due. Invalid: more.",
        "Lengthen `warmup`, so that the measurement begins after the change of the rate; of a `profile`, ask for less.",
    )
    EXPIRED_DUE = (
        (Severity.NOTE, Severity.INVALID),
        (Scope.RATE, Scope.RESPONSE),
        "I/Os that waited for too long were discarded",
        "I/Os that waited for longer than drop_after were discarded: no response time includes them. Note: up to 1 % "
        "of the I/Os due. Invalid: more.",
        "Ask for less, or lengthen `drop_after`.",
    )
    TOO_FEW_SUBINTERVALS = (
        NOTE,
        ALL,
        "too few subintervals for a half-width",
        "Fewer than 20 subintervals: half-widths are blank.",
        "Measure for at least 20 subintervals.",
    )
    UNSTEADY = (
        NOTE,
        (Scope.RATE,),
        "the rate was not steady",
        "The IOPS of a load at max have a half-width above 10 % of them, or drift so much that none can be estimated: "
        "another measurement may give another maximum.",
        "Measure for longer, or until a steady state (`steady`).",
    )
    NO_RESPONSE = (
        INVALID,
        ALL,
        "a load at max has no response time",
        "The step needs a response time, but its load is max, which has none: the step was not run.",
        "Set `iops`, or look at the service time instead.",
    )
    ACCURACY_NOT_REACHED = (
        INVALID,
        ALL,
        "the accuracy was not reached",
        "The measurement timed out, or was interrupted, before it reached the accuracy; the row is of the best window.",
        "Allow more time (`timeout`) or a coarser `accuracy`.",
    )
    STEADY_NOT_REACHED = (
        INVALID,
        ALL,
        "no steady state was reached",
        "The step timed out, or was interrupted, before it attained a steady state or had held one.",
        "Allow more time (`timeout`) or a wider `limit`, or precondition the storage first.",
    )
    STEADY_LOST = (
        (Severity.NOTE, Severity.INVALID),
        ALL,
        "the steady state was left again",
        "A steady state was attained and then left during the measurement. Note with `on_leave: note`, else invalid.",
        "Precondition the storage for longer, widen `limit`, or accept it (`on_leave: note`).",
    )
    STEADY_RESTARTED = (
        NOTE,
        ALL,
        "the steady state was left once",
        "A steady state was attained, left before it had held, and attained again.",
        "To be sure, precondition the storage for longer.",
    )
    ROUNDS_NOT_STEADY = (
        INVALID,
        ALL,
        "its rounds were not steady",
        "The metric of the step's rounds was not steady over the last five of the most that it may have; this is the "
        "last.",
        "Precondition the storage for longer, allow more rounds (`most`), or measure each pass for longer.",
    )
    STEADY_ROUNDS = (
        NOTE,
        ALL,
        "its rounds are steady",
        "The metric of its rounds is steady over the last five, of which this is the last.",
        "None is needed.",
    )
    TARGET_NOT_HELD = (
        INVALID,
        ALL,
        "the target was not held",
        "The metric was not held at its target, or the load was at a bound of its range.",
        "Widen the range (`low_iops`, `high_iops`), or choose a target within reach.",
    )
    TARGET_UNSURE = (
        NOTE,
        ALL,
        "the target may not have been held",
        "Noise alone may exceed the allowed deviation from the target: whether it was held is unclear.",
        "Measure for longer.",
    )
    SEARCH_UNBOUNDED = (
        INVALID,
        ALL,
        "the search cannot say which load meets the target",
        "The search ended without probes on both sides of its target: they were unclear, or its time was over.",
        "Give the search more time (`within`), or choose another target.",
    )
    SEARCH_NEVER_MET = (
        FAILED,
        STEP,
        "no load meets the target",
        "The metric is above the target even at the lowest load that the search probes.",
        "Choose a higher target.",
    )
    SEARCH_ALWAYS_MET = (
        NOTE,
        ALL,
        "every load meets the target",
        "No load that the storage sustains is above the target.",
        "None is needed; a lower target shows where latency rises.",
    )
    SEARCH_FOUND = (
        NOTE,
        ALL,
        "the highest load that meets the target",
        "The result of a search, with the interval that holds the true load at its confidence.",
        "None is needed; more time (`within`, `probes`, `longest_probe`) narrows the interval.",
    )
    SEARCH_DISTURBED = (
        INVALID,
        ALL,
        "a test host was too busy for the search",
        "Three probes in a row were unclear, and a host kept workload threads from running in each: the search ended.",
        "Stop what else runs on the host, keep it off the workload threads' cores (`engine: cpus`), or get the host "
        "more CPU.",
    )
    SLO_MISSED = (
        (Severity.FAILED, Severity.INVALID),
        STEP,
        "a threshold was missed",
        "The measurement breaches a threshold (slo). Invalid: the figure is blank, or CPU time that others took "
        "(cpu_contention) or a missing host may explain the miss.",
        "Ask for less: `find` shows the highest load that meets it. If the figure is blank, measure for longer. "
        "If others used the CPU, stop them, or set `iops`. If a host is missing, run the step again.",
    )

    def __init__(
        self, severities: tuple[Severity, ...], scope: tuple[Scope, ...], short: str, sentence: str, remedy: str
    ) -> None:
        self.severities = severities
        self.scope = scope
        self.short = short  # as a verdict gives it
        self.sentence = sentence
        self.remedy = remedy  # what to do, where it was not intended

    @property
    def word(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Finding:
    """A reason with its severity and what was seen: `generator_late[note] (12% of the mean)`.

    Several findings are joined with `; `, so the text of one never contains it.
    """

    reason: Reason
    detail: str = ""
    chosen: Severity | None = None  # of a reason that can have several; None for all others
    cause: str = ""  # the detail in one short sentence, where the reason explains others (causes.py)
    about: Scope | None = None  # of a threshold that is missed: the figures that its own is one of
    share: float = 1.0  # of the time, or of the bytes, that others took, where that is what it found

    def __post_init__(self) -> None:
        several = len(self.reason.severities) > 1
        if several != (self.chosen is not None) or (several and self.chosen not in self.reason.severities):
            raise ValueError(f"{self.reason.word} has the severities {self.reason.severities}, not {self.chosen}")

    @property
    def severity(self) -> Severity:
        return self.chosen or self.reason.severities[0]

    def __str__(self) -> str:
        detail = self.detail.replace("; ", ", ")
        name = f"{self.reason.word}[{self.severity}]"
        return f"{name} ({detail})" if detail else name


def by_weight(findings: Iterable[Finding], purpose: Collection[Scope]) -> tuple[Finding, ...]:
    """Sort findings: those that decide the verdict of a step that was for these figures, those that discredit others,
    notes; of each the worst first.
    """
    all_findings = [*findings]
    severities, reasons, deciding = [*Severity], [*Reason], {*counting_for(all_findings, purpose)}

    def weight(one: Finding) -> tuple[bool, bool, int, int]:
        is_note = one.severity is Severity.NOTE
        return is_note, not is_note and one not in deciding, -severities.index(one.severity), reasons.index(one.reason)

    return tuple(sorted(all_findings, key=weight))


def speaking(findings: Iterable[Finding], scopes: Collection[Scope]) -> tuple[Finding, ...]:
    """The findings that speak against figures of any of these scopes."""
    return tuple(finding for finding in findings if not {*scopes}.isdisjoint(finding.reason.scope))


def counting_for(findings: Iterable[Finding], purpose: Collection[Scope]) -> tuple[Finding, ...]:
    """The findings that count for a step that was for these figures: also those about the step itself."""
    return tuple(one for one in findings if one.reason.scope == STEP or not {*purpose}.isdisjoint(one.reason.scope))


def standing(measured: Sequence[tuple[Verdict, bool]]) -> int:
    """Which of a step's measurements the step stands for: the last with figures that is not invalid, else the last with
    figures, else the last. `measured`: the verdict of each, at least one, and whether it has figures."""
    ranks = [(has_figures, verdict is not Verdict.INVALID) for verdict, has_figures in measured]
    best = max(ranks)
    return len(ranks) - 1 - ranks[::-1].index(best)


def verdict_of(findings: Iterable[Finding]) -> Verdict:
    """The verdict that follows from the worst of these severities."""
    severities = {finding.severity for finding in findings} - {Severity.NOTE}
    return Verdict(max(severities, key=[*Severity].index)) if severities else Verdict.VALID
