"""A run as JUnit's XML, which CI systems show: a test case for each step, and one for each of its thresholds.

Rule: a failure says that the storage did not do what it had to; an error, that the figures do not tell. So a threshold
of a figure that is invalid is an error, met or missed; and a step is one whose figures lack something, whatever it
missed. Of a step that was repeated, the last attempt counts. A run that did not end is an error, whatever its steps
were. A step of the plan that never began is skipped.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath
from typing import Any, Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ..exit_codes import ORDER, ExitCode
from ..plan.attempts import step_of_attempt, step_of_plan
from ..rollup.metrics import METRICS, unit_of, unit_word
from ..summary.measured import StepEnds
from ..text.metric_amounts import MetricUnit
from ..verdicts import Finding, Reason, Severity, Verdict
from .measured_rows import MeasuredSteps
from .run_entries import RunEntry, RunState

FAILURE: Final = "failure"
ERROR: Final = "error"
SKIPPED: Final = "skipped"  # neither passed nor red: of what cannot be told


@dataclass(frozen=True, slots=True)
class JunitCase:
    """One test case."""

    name: str
    kind: str = ""  # FAILURE, ERROR or SKIPPED; "": passed
    message: str = ""


def cases_of(step: StepEnds, thresholds: Sequence[str]) -> list[JunitCase]:
    """The step's own case, then those of its thresholds, in words as its reasons have them."""
    name = step_of_attempt(step.name)
    missed = {text: _misses(text, step.findings) for text in thresholds}
    others = [one for one in step.findings if one.reason is not Reason.SLO_MISSED]
    against = _against(step, others)
    match step.verdict:
        case Verdict.INVALID | Verdict.PARTIAL if against:
            own = JunitCase(name, ERROR, against)
        case Verdict.FAILED if any(one.severity is Severity.PARTIAL for one in others):
            own = JunitCase(name, ERROR, against)
        case Verdict.FAILED if any(one.severity is Severity.FAILED for one in others):
            own = JunitCase(name, FAILURE, against)
        case _:
            own = JunitCase(name)
    unusable = {text: step.verdict is Verdict.INVALID and not _is_usable(text, others) for text in thresholds}
    return [own, *(_threshold(name, text, unusable[text], missed[text], against) for text in thresholds)]


def _is_usable(threshold: str, findings: Sequence[Finding]) -> bool:
    """Whether the figure of a threshold is valid in a step that is not, as these findings show."""
    metric, _, _ = threshold.partition(" ")
    invalid = [finding for finding in findings if finding.severity is Severity.INVALID]
    if metric not in METRICS or not invalid:
        return False
    return all(finding.reason.scope and METRICS[metric].scope not in finding.reason.scope for finding in invalid)


def _threshold(step: str, threshold: str, is_unusable: bool, misses: Sequence[Finding], against: str) -> JunitCase:
    name = f"{step}: {threshold}"
    message = "\n".join(_with_unit(one.detail, threshold) for one in misses)
    if any(one.severity is Severity.INVALID for one in misses):
        return JunitCase(name, ERROR, message)
    if is_unusable:
        return JunitCase(name, ERROR, "\n".join(filter(None, [message, against])) or "the step is invalid")
    return JunitCase(name, FAILURE, message) if misses else JunitCase(name)


def _with_unit(miss: str, threshold: str) -> str:
    """The detail of a threshold that was missed, with the unit of a figure that is a number alone: `overall_iops at
    least 5000: 99.9 IOPS`; times have theirs."""
    metric, _, _ = threshold.partition(" ")
    if unit_of(metric) not in (MetricUnit.PER_S, MetricUnit.IOS, MetricUnit.WAITS, MetricUnit.KIB):
        return miss
    return re.sub(rf"({re.escape(threshold)}: [-+.\de]*\d)", rf"\1 {unit_word(metric)}", miss, count=1)


def _misses(threshold: str, findings: Sequence[Finding]) -> list[Finding]:
    """Those of a threshold: its words begin the detail, or follow whose measurement it was."""
    return [
        one for one in findings
        if one.reason is Reason.SLO_MISSED and f": {threshold}: " in f": {one.detail}"
    ]  # fmt: skip


def _against(step: StepEnds, findings: Sequence[Finding]) -> str:
    """The first cause of its measurements, what is more than a note, and the hosts that a measurement is of."""
    cause = next((one.cause for one in step.measured if one.cause), "")
    partly = [f"{one.name}: of {one.missing}" for one in step.measured if one.missing]
    return "\n".join(
        filter(None, [cause, *(_words(one) for one in findings if one.severity is not Severity.NOTE), *partly])
    )


def _words(finding: Finding) -> str:
    """A reason; that of an interrupted step as the console has it."""
    if finding.reason is not Reason.INTERRUPTED:
        return str(finding)
    return f"{finding.reason.short} ({finding.detail})" if finding.detail else finding.reason.short


def _never_began(record: Mapping[str, Any]) -> list[JunitCase]:
    began = {step_of_plan(step["name"]) for step in record["steps"]}
    return [JunitCase(name, SKIPPED, "the step never began") for name in record["planned_steps"] if name not in began]


def junit_of(entry: RunEntry, measured: MeasuredSteps, record: Mapping[str, Any], why: str) -> str:
    """The file's text. `record`: run.json; `why`: of a run in which no step has ended, which is one error."""
    thresholds = {step["number"]: step["thresholds"] for step in record["steps"]}
    cases = [case for step in measured.steps for case in cases_of(step, thresholds[step.number])]
    if cases and entry.state is not RunState.ENDED:
        cases.append(JunitCase("run", ERROR, "it did not end, or not yet: steps may be missing"))
    elif cases and entry.exit_code and (entry.exit_code not in ORDER or not any(case.kind for case in cases)):
        cases.append(JunitCase("run", ERROR, f"{ExitCode(entry.exit_code).sentence} Steps may be missing."))
    cases = [*(cases or [JunitCase("run", ERROR, why)]), *_never_began(record)]
    return junit_text(entry.folder.name, entry.name, entry.start, entry.length_s or 0, cases)


def junit_of_no_run(plan: str, now: datetime, why_not: str = "") -> str:
    """The text until a run ends; so it stays, should that be killed. `plan`: its path; `now`: in UTC; `why_not`: why it
    was refused."""
    name = PurePath(plan).stem
    why_not = why_not or f"no run of {plan} has ended: its output says why"
    return junit_text(name, name, now, 0, [JunitCase("run", ERROR, why_not)])


def junit_text(suite: str, plan: str, start: datetime, length_s: float, cases: Sequence[JunitCase]) -> str:
    """The file's text. `plan`: the name of the class that CI systems group by."""
    kinds = [case.kind for case in cases]
    root = Element("testsuites")
    suite_element = SubElement(
        root, "testsuite", name=_printable(suite), timestamp=start.isoformat(timespec="seconds").replace("+00:00", ""),
        time=f"{length_s:.3f}", tests=f"{len(cases)}", failures=f"{kinds.count(FAILURE)}",
        errors=f"{kinds.count(ERROR)}", skipped=f"{kinds.count(SKIPPED)}",
    )  # fmt: skip
    for case in cases:
        element = SubElement(suite_element, "testcase", classname=_printable(plan), name=_printable(case.name))
        if case.kind:
            first, _, _ = case.message.partition("\n")
            SubElement(element, case.kind, message=_printable(first)).text = _printable(case.message)
    indent(root)
    return tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _printable(text: str) -> str:
    """Without the characters that XML cannot have."""
    return "".join(one if one.isprintable() or one == "\n" else "?" for one in text)
