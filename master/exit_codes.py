"""Exit codes: what each means, and which one follows from the verdicts of a run's steps.

docs/exit-codes.md is printed from these tables.
"""

from collections.abc import Iterable, Sequence
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


NOT_REACHED: Final = frozenset(
    {
        Reason.ACCURACY_NOT_REACHED,
        Reason.STEADY_NOT_REACHED,
        Reason.ROUNDS_NOT_STEADY,
        Reason.STEADY_LOST,
        Reason.TARGET_NOT_HELD,
        Reason.SEARCH_UNBOUNDED,
        Reason.SEARCH_NEVER_MET,
    }
)
ORDER: Final = (
    ExitCode.SLO_MISSED,
    ExitCode.NOT_REACHED,
    ExitCode.INVALID,
    ExitCode.PARTIAL,
    ExitCode.OK,
)  # of the steps of a run, the first of these counts


def code_of(steps: Iterable[Iterable[Finding]]) -> ExitCode:
    """The exit code of a run whose steps have these findings, of each those that count for what the step was for."""
    codes = {_code_of_step([*findings]) for findings in steps}
    return next((code for code in ORDER if code in codes), ExitCode.OK)


def _code_of_step(findings: Sequence[Finding]) -> ExitCode:
    """That of the step's verdict. A target that is not reached has a code of its own where no other reason is as bad:
    figures that are discredited show neither that a threshold is missed, nor that a target was not reached."""
    verdict = verdict_of(findings)
    worst = {finding.reason for finding in findings if str(finding.severity) == verdict}
    match verdict:
        case Verdict.INVALID if any(_is_missed(one, findings) for one in findings):
            return ExitCode.SLO_MISSED
        case Verdict.INVALID:
            return ExitCode.NOT_REACHED if worst <= NOT_REACHED else ExitCode.INVALID
        case Verdict.FAILED:
            return ExitCode.NOT_REACHED if worst <= NOT_REACHED else ExitCode.SLO_MISSED
        case Verdict.PARTIAL:
            return ExitCode.PARTIAL
        case Verdict.VALID:
            return ExitCode.OK


def _is_missed(finding: Finding, findings: Sequence[Finding]) -> bool:
    """Whether it is a threshold that is missed by a figure that nothing speaks against."""
    if finding.reason is not Reason.SLO_MISSED or finding.severity is not Severity.FAILED or finding.about is None:
        return False
    against = [one.reason.scope for one in findings if one.severity is Severity.INVALID]
    return all(scope and finding.about not in scope for scope in against)


# What a code means for a command that runs no steps, where it is not what it means for a run.
OF_COMMANDS: Final = (
    ("ivypy clock", ExitCode.INVALID, "ivypy would not use the cycle counter there; the output says why."),
    ("ivypy edit", ExitCode.PARTIAL, "A host did not apply the edit."),
    ("ivypy attach", ExitCode.OK, "Exits with the code of the run that it follows."),
    ("ivypy import", ExitCode.NOT_REACHED, "Something that changes the load has no counterpart in the plan."),
    ("ivypy steady", ExitCode.NOT_REACHED, "The criterion was never attained in the data."),
    ("ivypy steady", ExitCode.PARTIAL, "The criterion was attained only while hosts were missing."),
    ("ivypy connector check", ExitCode.HOSTS, "The program cannot be started."),
    ("ivypy connector check", ExitCode.INVALID, "The program does not conform; the output says how."),
    ("ivypy compare", ExitCode.OK, "No figure is worse by more than the limit."),
    ("ivypy compare", ExitCode.SLO_MISSED, "A figure is worse by more than the limit."),
    ("ivypy compare", ExitCode.NOT_REACHED, "The runs cannot tell; the output says what is missing."),
    ("ivypy percentiles", ExitCode.SLO_MISSED, "A threshold of the command line was missed."),
    ("ivypy percentiles", ExitCode.PARTIAL, "With --keep-going: faulty parts of logs were left out."),
    (
        "ivypy percentiles",
        ExitCode.INVALID,
        "With --check: histograms and logs of every I/O differ by more than a bucket. "
        "With --sla: figures that must not be used.",
    ),
)

_EXIT_SENTENCES = {
    ExitCode.OK: "Every step is valid, no threshold was missed.",
    ExitCode.INTERNAL: "ivypy itself failed, or the run folder could not be written.",
    ExitCode.PLAN: "The plan or the command line has faults; no host was touched.",
    ExitCode.HOSTS: "A host, LUN or permission that the plan needs is missing; nothing was measured.",
    ExitCode.REFUSED: "Nothing was started: this would write to a device in use, or without consent.",
    ExitCode.SLO_MISSED: "A threshold of the plan, or of the command line, was missed, by figures that are valid.",
    ExitCode.NOT_REACHED: "A target was not reached: an accuracy, a steady state, a value to hold, or the "
    "target of a search.",
    ExitCode.PARTIAL: "At least one step is partial: cut short, or a host or device was lost.",
    ExitCode.INVALID: "At least one step is invalid. What now: ivypy help invalid",
    ExitCode.INTERRUPTED: "Interrupted by Ctrl-C, a signal or `ivypy stop`; the results so far are written.",
}
