"""Exit codes: what each means, and which one follows from the verdicts of a run's steps.

docs/exit-codes.md is printed from these tables.
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import Final

from .verdicts import Finding, Reason, Severity, Verdict, verdict_of


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


# The codes that stand for certain reasons, where these make a step invalid: the first that applies counts.
OF_REASONS: Final = (
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
)
OF_VERDICTS: Final = {
    Verdict.INVALID: ExitCode.INVALID,
    Verdict.PARTIAL: ExitCode.PARTIAL,
    Verdict.VALID: ExitCode.OK,
}  # for all others


def code_of(findings: Iterable[Finding]) -> ExitCode:
    """The exit code of a run whose steps have these findings."""
    found = [*findings]
    invalid = {finding.reason for finding in found if finding.severity is Severity.INVALID}
    return next((code for code, reasons in OF_REASONS if reasons & invalid), OF_VERDICTS[verdict_of(found)])


# What a code means for a command that runs no steps, where it is not what it means for a run.
OF_COMMANDS: Final = (
    ("ivypy clock", ExitCode.INVALID, "ivypy would not use the cycle counter there; the output says why."),
    ("ivypy edit", ExitCode.PARTIAL, "A host did not apply the edit."),
    ("ivypy attach", ExitCode.OK, "Exits with the code of the run that it follows."),
    ("ivypy steady", ExitCode.NOT_REACHED, "The criterion was never attained in the data."),
    ("ivypy percentiles", ExitCode.SLO_MISSED, "A threshold of the command line was missed."),
    ("ivypy percentiles", ExitCode.PARTIAL, "With --keep-going: faulty parts of logs were left out."),
    (
        "ivypy percentiles",
        ExitCode.INVALID,
        "With --check: histograms and logs of every I/O differ by more than a bucket.",
    ),
)

_EXIT_SENTENCES = {
    ExitCode.OK: "Every step is valid, every threshold met.",
    ExitCode.INTERNAL: "ivypy itself failed, or the run folder could not be written.",
    ExitCode.PLAN: "The plan or the command line has faults; no host was touched.",
    ExitCode.HOSTS: "A host, LUN or permission that the plan needs is missing; nothing was measured.",
    ExitCode.REFUSED: "The plan would write to a device in use, or without consent; no I/O was started.",
    ExitCode.SLO_MISSED: "A threshold of the plan, or of the command line, was missed.",
    ExitCode.NOT_REACHED: "A target was not reached: a search, steady state or accuracy timed out.",
    ExitCode.PARTIAL: "A host or device was lost; results before that and without it are kept.",
    ExitCode.INVALID: "At least one step is invalid; its row in the summary says why.",
    ExitCode.INTERRUPTED: "Interrupted by Ctrl-C or `ivypy stop`; the results so far are written.",
}
