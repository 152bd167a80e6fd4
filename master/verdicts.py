"""Verdicts, reasons and exit codes: each a closed list with a sentence for its reader.

Rule: a number is never shown without knowing whether it may be believed. A reason is a note (the number stands,
know this), partial (it is true of less than was asked for) or invalid (do not use it). docs/verdicts.md and
docs/exit-codes.md are printed from here.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, IntEnum, StrEnum
from typing import Final


class Verdict(StrEnum):
    VALID = "valid"
    PARTIAL = "partial"
    INVALID = "invalid"

    @property
    def sentence(self) -> str:
        return {
            Verdict.VALID: "Nothing that ivypy watches speaks against the number.",
            Verdict.PARTIAL: "True, but of less than was asked for: a host or device was missing for part of the time, "
            "or it was cut short.",
            Verdict.INVALID: "Not a measurement of what was asked for; the reasons say why.",
        }[self]


class Weight(StrEnum):
    """What a reason does to the verdict."""

    NOTE = "note"
    PARTIAL = "partial"
    INVALID = "invalid"


class Reason(Enum):
    """Value: the weight and a sentence; the name in lower case stands in the CSV's `reasons`."""

    TARGET_NOT_REACHED = (
        Weight.INVALID,
        "More I/O fell due than was done, by a workload instance in the row or by all of them together: what is owed "
        "(in the backlog and in flight) grew beyond the tolerance and chance, so response times have no meaning.",
    )
    GENERATOR_LATE = (
        Weight.INVALID,
        "More than 25 % of the mean response time is the generator's own lateness, or the p99 may be more than 25 % "
        "shorter without the I/Os that were late.",
    )
    GENERATOR_LATENESS = (
        Weight.NOTE,
        "More than 10 % of the response time (mean or p99) may be the generator's own lateness, or more than 25 % of "
        "the p99.9 or of the longest.",
    )
    HARVEST_LATE = (
        Weight.INVALID,
        "Completions waited while their workload thread had no core, or other work, for more than 25 % of the service "
        "time (mean or p99) of a paced load.",
    )
    HARVEST_LATENESS = (
        Weight.NOTE,
        "Completions waited so for more than 10 % of the service time (mean or p99); with iops: max, where a thread is "
        "always at work, however long.",
    )
    HOST_LIMIT = (
        Weight.NOTE,
        "The generator had a core busy throughout: with iops: max this is the host's limit, not the storage's; a paced "
        "load comes late. With `spin`, time awake without need does not count.",
    )
    STALL_AT_END = (
        Weight.INVALID,
        "An I/O unfinished at the end is older than the longest response in the window, and by more than chance: a "
        "stall is hidden.",
    )
    OVERRUN = (
        Weight.INVALID,
        "A workload thread found no free buffer at a boundary: a result covers more than one subinterval.",
    )
    NO_SAMPLES = Weight.INVALID, "No I/O completed in the measurement."
    QUANTITY = Weight.INVALID, "The rollup type has another number of instances than its `quantity` demands."
    MAX_DROOP = Weight.INVALID, "The slowest instance is further below the fastest than `max_droop` allows."
    IO_ERRORS = Weight.INVALID, "I/Os ended with errors or short transfers; they are in no latency."
    UNWRITTEN_EXTENTS = (
        Weight.INVALID,
        "A file has extents that were never written: reads of them do not touch the disk.",
    )
    HOST_LOST = Weight.PARTIAL, "A host was lost: the rows after that are without it."
    HOST_LATE = (
        Weight.PARTIAL,
        "A host's result came after barrier 1 closed; that subinterval and the rest of the step are without it.",
    )
    SHARED_LUN = Weight.NOTE, "A LUN is driven by several hosts or paths at once: each gets what the others leave."
    EDITED = Weight.NOTE, "The load was not the plan's: somebody edited it while the step ran; it says who, and what."
    EDIT_NOT_TAKEN = (
        Weight.INVALID,
        "A host did not take an edit, of control or of a person: it drove another load than was asked for.",
    )
    BACKLOG_BEFORE = (
        Weight.INVALID,
        "I/Os of a load before were done in the measurement: more than was asked for, and late for a reason that is "
        "not this load's.",
    )
    OF_PARTIAL_STEP = (
        Weight.PARTIAL,
        "A setting is a share of what another step measured, and that was partial: hosts that were not in it have no "
        "load.",
    )
    HUNG_IOS = (
        Weight.PARTIAL,
        "I/Os that were under way in the measurement had not come back when their host stopped: no latency has them.",
    )
    ORPHANED_IOS = (
        Weight.NOTE,
        "I/Os of the step before had not come back from the LUN when it ended: they may still have been in its queue.",
    )
    MAY_BE_DRIVEN = (
        Weight.PARTIAL,
        "A host that was given up while it drove may have gone on beside the measurement: its lease had not ended.",
    )
    HOST_MISSING = (
        Weight.PARTIAL,
        "A host that has a part in the row is not in the measurement, or not for all of its time, and no event says "
        "why.",
    )
    HOSTS_CHANGED = (
        Weight.PARTIAL,
        "The set of hosts changed in the measurement, which began again with those that were left.",
    )
    SHORTENED = (
        Weight.PARTIAL,
        "The measurement was cut short (Ctrl-C, `ivypy stop`, an error, no host left): it is of the complete "
        "subintervals until then.",
    )
    INTERRUPTED = Weight.INVALID, "The step, or the tread, was cut short before a subinterval of it was measured."
    CLOCK_UNCERTAIN = Weight.NOTE, "A host's clock offset is known no better than 1 % of a subinterval."
    CLOCK_STEPPED = (
        Weight.PARTIAL,
        "A host's clock was stepped, or slewed by more than 500 ppm (a suspended virtual machine, a time daemon): its "
        "boundaries were not where they were meant to be, and follow by 0.1 % of a subinterval each.",
    )
    LATE_CONTROLLER = (
        Weight.NOTE,
        "The controller worked for more than half a subinterval (from the last result's arrival to its decision, or in "
        "CPU time), or stood still for so long.",
    )
    LATE_DECISION = (
        Weight.PARTIAL,
        "The controller decided on a subinterval after the next one, in which the decision was to act, had ended: it "
        "stood still, or had too much to do. Results that came in time are merged all the same.",
    )
    QUEUE_DEPTH_LIMITED = (
        Weight.NOTE,
        "A hardware queue of the device (nr_requests), or a thread's part of it, was full: in flight was capped below "
        "maxtags.",
    )
    SUBMISSIONS_RETURNED = Weight.NOTE, "The kernel gave submissions back (EAGAIN); their times were kept."
    DROPPED_DUE = Weight.INVALID, "I/Os that had fallen due were given up."
    TOO_FEW_SUBINTERVALS = (
        Weight.NOTE,
        "Fewer than 20 subintervals: how they depend on each other is hardly seen, so no half-width is stated.",
    )
    STEP_LIMIT = Weight.INVALID, "The step that this one's setting refers to was not valid."
    NO_RESPONSE = (
        Weight.INVALID,
        "The step asks for a response time where the load is max: there is none, so it was not run.",
    )
    ACCURACY_NOT_REACHED = (
        Weight.INVALID,
        "The measurement timed out, or was cut short, before it was as accurate as asked; the window is the best that "
        "was seen.",
    )
    STEADY_NOT_REACHED = (
        Weight.INVALID,
        "The step timed out, or was cut short, before a steady state was attained, or before it had held.",
    )
    STEADY_LOST = Weight.INVALID, "A steady state was attained and then left: the step's end is not like its beginning."
    STEADY_LEFT = Weight.NOTE, "The steady state was left during the measurement; the plan asked to note it and go on."
    STEADY_RESTARTED = Weight.NOTE, "A steady state was attained, lost while it was to hold, and attained again."
    TARGET_NOT_HELD = (
        Weight.INVALID,
        "Feedback control did not bring the metric to its target, or was at a bound of its range.",
    )
    TARGET_UNSURE = (
        Weight.NOTE,
        "Whether feedback control held the metric at its target cannot be said: by noise alone it may have been "
        "further off than is allowed.",
    )
    SEARCH_UNBOUNDED = (
        Weight.INVALID,
        "The search found no load that meets its target, or none that fails it: there is no bracket.",
    )
    SEARCH_UNRESOLVED = Weight.NOTE, "The search ended with a bracket wider than its resolution."
    SLO_MISSED = Weight.INVALID, "A threshold of the step (slo) was missed."

    @property
    def weight(self) -> Weight:
        return self.value[0]

    @property
    def sentence(self) -> str:
        return self.value[1]

    @property
    def word(self) -> str:
        return self.name.lower()


def verdict_of(reasons: Iterable[Reason]) -> Verdict:
    """The verdict that a set of reasons comes to: the worst weight among them."""
    weights = {reason.weight for reason in reasons}
    if Weight.INVALID in weights:
        return Verdict.INVALID
    return Verdict.PARTIAL if Weight.PARTIAL in weights else Verdict.VALID


@dataclass(frozen=True, slots=True)
class Finding:
    """A reason with what was seen, for people: `target_not_reached (what is owed grew by 1,204 of 50,000 due)`.

    Several are told with `; ` between them, so none has one within.
    """

    reason: Reason
    detail: str = ""

    def __str__(self) -> str:
        detail = self.detail.replace("; ", ", ")
        return f"{self.reason.word} ({detail})" if detail else self.reason.word


class ExitCode(IntEnum):
    OK = 0
    INTERNAL = 1
    PLAN = 2
    HOSTS = 3
    REFUSED = 4
    SLO_MISSED = 5
    NOT_REACHED = 6
    PARTIAL = 7
    INVALID = 8
    INTERRUPTED = 130

    @property
    def sentence(self) -> str:
        return _EXIT_SENTENCES[self]


# What the reasons of a run's steps come to: the first that applies.
CODES: Final = (
    (ExitCode.SLO_MISSED, frozenset({Reason.SLO_MISSED})),
    (
        ExitCode.NOT_REACHED,
        frozenset(
            {
                Reason.ACCURACY_NOT_REACHED,
                Reason.STEADY_NOT_REACHED,
                Reason.STEADY_LOST,
                Reason.TARGET_NOT_HELD,
                Reason.SEARCH_UNBOUNDED,
            }
        ),
    ),
    (ExitCode.INVALID, frozenset(reason for reason in Reason if reason.weight is Weight.INVALID)),
    (ExitCode.PARTIAL, frozenset(reason for reason in Reason if reason.weight is Weight.PARTIAL)),
)


def code_of(reasons: Iterable[Reason]) -> ExitCode:
    """The exit code of a run whose steps have these."""
    found = set(reasons)
    return next((code for code, those in CODES if those & found), ExitCode.OK)


# What a code means of a command that runs no steps, where that is not what it means of a run.
OF_COMMANDS: Final = (
    ("ivypy clock", ExitCode.INVALID, "The cycle counter would not be used there; it says why."),
    ("ivypy edit", ExitCode.PARTIAL, "A host did not take the edit."),
    ("ivypy attach", ExitCode.OK, "Ends with the code of the run that it follows, whichever that is."),
    ("ivypy steady", ExitCode.NOT_REACHED, "The criterion was never attained in the data."),
    ("ivypy percentiles", ExitCode.SLO_MISSED, "A threshold of the command line was missed."),
    ("ivypy percentiles", ExitCode.PARTIAL, "With --keep-going: faulty logs were left out."),
    (
        "ivypy percentiles",
        ExitCode.INVALID,
        "With --check: histograms and logs of every I/O differ by more than a bucket.",
    ),
)

_EXIT_SENTENCES = {
    ExitCode.OK: "Every step is valid, every threshold met.",
    ExitCode.INTERNAL: "ivypy itself failed, or the run folder could not be written.",
    ExitCode.PLAN: "The plan or the command line has faults; nothing was touched.",
    ExitCode.HOSTS: "A host, LUN or right that the plan needs is missing; nothing was measured.",
    ExitCode.REFUSED: "A device would be overwritten that must not be, or without consent; no I/O was started.",
    ExitCode.SLO_MISSED: "A threshold of the plan, or of the command line, was missed.",
    ExitCode.NOT_REACHED: "A target was not reached: a search, steady state or accuracy timed out.",
    ExitCode.PARTIAL: "A host or device was lost; what was measured before and without it is kept.",
    ExitCode.INVALID: "At least one step is invalid; its row in the summary says why.",
    ExitCode.INTERRUPTED: "Interrupted by Ctrl-C or `ivypy stop`; what there was is written.",
}
