"""Which of a step's findings is the cause of others, as one sentence that is shown before the list of reasons.

Rule: it follows from the findings alone. A cause is shown only where it explains a reason that is more than a note, and
is large enough to: the tail of latencies shows what lasts for a hundredth of the time, a rate does not.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from .verdicts import Finding, Reason, Scope, Severity, Verdict, by_weight, counting_for, verdict_of

_UNSTEADY_LOAD: Final = (
    Reason.LOAD_NOT_SUSTAINED,
    Reason.EARLIER_BACKLOG,  # from the warmup: what is going on now most likely did then
    Reason.EARLIER_IOS,
    Reason.MAX_DROOP,
    Reason.ACCURACY_NOT_REACHED,
    Reason.STEADY_NOT_REACHED,
    Reason.ROUNDS_NOT_STEADY,
    Reason.STEADY_LOST,
    Reason.TARGET_NOT_HELD,
)
_OF_FAILED: Final = (Reason.FAILED_TAIL,)  # however few have failed
LEAST_SHARE_OF_RATES: Final = 0.05
_SLOW_THREADS: Final = (Reason.GENERATOR_LATE, Reason.THOUGHT_TOO_LONG, Reason.REAP_DELAY, Reason.OVERRUN)
DISCREDITED: Final = "do not use the "
_MISSING: Final = (Reason.HOST_MISSING, Reason.HOSTS_CHANGED, Reason.SHORTENED, Reason.QUANTITY)

# What `ivypy quick` has in the place of a plan's keys.
_OPTIONS: Final = {
    ", keep it off the workload threads' cores (`engine: cpus`)": "",
    " (`engine: threads`, `engine: cpus`, `spread`)": "",
    "`find`, `staircase` or a step at max show": "--p99, or a run without --rate, shows",
    "for at least 20 subintervals": "for at least 20 seconds (--time 20s)",
    "`within`": "--within",
    "`longest_probe`": "--time",
    "`warmup`": "--ramp",
    "`measure`": "--time",
    "`maxtags`": "--iodepth",
    "`iops`": "--rate",
    "`find`": "--p99",
    "Use `direct: true`": "Leave --buffered out",
    "`end_fsync`": "--end-fsync",
    "`select`": "--select",
}

# The words, around what the finding itself says, and the reasons that it explains; the first that applies counts.
EXPLAINS: Final[Mapping[Reason, tuple[str, tuple[Reason, ...]]]] = {
    Reason.HOST_LOST: ("a host was lost: {}", _MISSING),
    Reason.HOST_LATE: ("a host was late: {}", _MISSING),
    Reason.IO_ERRORS: ("{}", (Reason.IO_ERRORS, *_OF_FAILED, *_SLOW_THREADS, *_UNSTEADY_LOAD, Reason.STALL_AT_END)),
    Reason.CPU_CONTENTION: ("{}", (Reason.CPU_CONTENTION, *_SLOW_THREADS, *_UNSTEADY_LOAD, Reason.STALL_AT_END)),
    Reason.HOST_LIMIT: ("the host has no CPU time left: {}", (*_SLOW_THREADS, Reason.LOAD_NOT_SUSTAINED)),
    Reason.FOREIGN_IO: ("something else uses the disk: {}", _UNSTEADY_LOAD),
    Reason.SHARED_LUN: ("a LUN is driven more than once: {}", _UNSTEADY_LOAD),
    Reason.QUEUE_DEPTH_LIMITED: ("{}", (Reason.LOAD_NOT_SUSTAINED, Reason.GENERATOR_LATE)),
    Reason.REAP_DELAY: ("{}", (Reason.REAP_DELAY,)),  # where it knows its own cause
}


def cause_of(findings: Sequence[Finding], purpose: Collection[Scope]) -> str:
    """The sentence; "" where no finding explains another.

    It is about what decides the verdict of a step that was for these figures; where nothing is known about that, about
    what discredits other figures, and says so, also where nothing explains it.
    """
    counting = counting_for(findings, purpose)
    if deciding := _explanation(findings, counting):
        return deciding
    other = _explanation(findings, findings)
    if not other:
        if verdict_of(counting) is Verdict.INVALID or verdict_of(findings) is not Verdict.INVALID:
            return ""
        other = next(one for one in by_weight(findings, purpose) if one.severity is Severity.INVALID).reason.short
    speaking = [one for one in findings if one.severity is not Severity.NOTE and one not in counting]
    unusable = [scope.figures for scope in Scope if any(scope in one.reason.scope for one in speaking)]
    return f"{DISCREDITED}{' and '.join(unusable)}: {other}"


def is_explained(finding: Finding, findings: Sequence[Finding]) -> bool:
    """Whether one of a row's findings has its cause in them: in another, or in what it says itself."""
    for reason, (_, explained) in EXPLAINS.items():
        cause = _worst(findings, reason)
        if cause is not None and (cause.cause or cause.reason is not finding.reason):
            if finding.reason in _within(cause, explained):
                return True
    return False


def remedy_of(finding: Finding, findings: Sequence[Finding]) -> str:
    """The remedy of one of a row's findings: where another explains it, that one's remedy, since its own would not
    help."""
    if finding.severity is Severity.NOTE:
        return finding.reason.remedy
    for reason, (_, explained) in EXPLAINS.items():
        found = _worst(findings, reason)
        if found is not None and reason is not finding.reason and finding.reason in _within(found, explained):
            return reason.remedy
    return finding.reason.remedy


def in_options(text: str) -> str:
    """A remedy for a run of `ivypy quick`: with its options in the place of a plan's keys, where it has them."""
    for key, option in _OPTIONS.items():
        text = text.replace(key, option)
    return text


def _worst(findings: Sequence[Finding], reason: Reason) -> Finding | None:
    return max(
        (one for one in findings if one.reason is reason),
        key=lambda one: [*Severity].index(one.severity),
        default=None,
    )


def _within(finding: Finding, explained: Collection[Reason]) -> set[Reason]:
    """The reasons that a finding is large enough to explain."""
    if finding.reason is Reason.IO_ERRORS and finding.severity is not Severity.INVALID:
        return {*_OF_FAILED}
    small = finding.share < LEAST_SHARE_OF_RATES
    return {*explained}.difference(_UNSTEADY_LOAD if small else ())


def _explanation(findings: Sequence[Finding], unexplained: Sequence[Finding]) -> str:
    worse = {finding.reason for finding in unexplained if finding.severity is not Severity.NOTE}
    for reason, (words, explained) in EXPLAINS.items():
        explaining = _worst(findings, reason)
        if explaining is None or (reason in explained and not explaining.cause):
            continue
        if worse & _within(explaining, explained):
            return words.format(explaining.cause or explaining.detail)
    return ""
