"""A run as Markdown for a ticket: the table of its measurements, and its verdicts in words."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from ..exit_codes import ExitCode
from ..results.measured_rows import Measured, read_measured
from ..results.render_measured import markdown_of
from ..results.run_entries import entry_of
from ..rollup.instances import ALL
from ..verdicts import Severity, Verdict


def ticket_of(folder: Path) -> str:
    """Raises PlanError."""
    entry, measured = entry_of(folder, datetime.now(UTC)), read_measured(folder, ALL, ())
    sentence = "" if entry.exit_code is None else ExitCode(entry.exit_code).sentence
    words = [*_verdicts(measured), *_reasons(measured)]
    return markdown_of(entry, measured, sentence) + "\n".join([*(["", *words] if words else []), ""])


def _verdicts(measured: Measured) -> Iterable[str]:
    """What each verdict means, but for valid."""
    found = {one.verdict for step in measured.steps for one in step.measured}
    return [f"- **{verdict}**: {verdict.sentence}" for verdict in Verdict if verdict in found - {Verdict.VALID}]


def _reasons(measured: Measured) -> Iterable[str]:
    """What each reason that stands against a figure means, and what to do."""
    findings = [finding for step in measured.steps for one in step.measured for finding in one.findings]
    reasons = dict.fromkeys(one.reason for one in findings if one.severity is not Severity.NOTE)
    return [f"- `{reason.word}`: {reason.sentence} {reason.remedy}".rstrip() for reason in reasons]
