"""A change of a running test and its effect, as lines of text: for `ivypy edit`, `pause` and `unpause`."""

from datetime import datetime

from .socket_messages import Changed, Done, HostAnswer
from .step_lines import done_at


def answer_text(answer: Changed | Done, now: datetime) -> str:
    """The answer to a request that changes the run."""
    return answer.text if isinstance(answer, Done) else "\n".join(changed_lines(answer, now))


def changed_lines(changed: Changed, now: datetime) -> list[str]:
    """Lines: what is different now, since when on which host, and what that means for the step."""
    if not changed.what:
        return ["nothing changed: these settings were in force already"]
    lines = [changed.what, *(f"  {_took(took)}" for took in changed.took)]
    if changed.discarded:
        lines.append(f"{changed.discarded:,} overdue I/Os were discarded")
    if changed.restarts:
        remaining_s = changed.step_remaining_s
        end = "" if remaining_s is None else f"; the step is now {done_at(remaining_s, now)}"
        lines.append(f"the measurement begins again{end}")
    return lines


def _took(took: HostAnswer) -> str:
    if took.failed:
        return f"{took.host}: did not apply it: {took.failed}"
    return f"{took.host}: in force since {took.utc}, in subinterval {took.subinterval}"
