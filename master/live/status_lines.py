"""The status of a run as lines of text, for `ivypy status`."""

from datetime import datetime

from ..summary.steps_table import verdict_lines
from .instances_table import instances_lines
from .reports import RunStatus
from .step_lines import left, step_position
from .subinterval_lines import header_lines, subinterval_lines


def standing_lines(standing: RunStatus, width: int, now: datetime) -> list[str]:
    """Step, phase, last figures, control's messages, what remains, the instances that were asked for, and the hosts."""
    lines = [f"{standing.plan} (pid {standing.pid}), {standing.folder}"]
    lines += [f"  {line}" for step in standing.ended for line in verdict_lines(step)]
    step, last = standing.step, standing.last
    if step is None:
        lines.append("no step has begun")
    elif not standing.running:
        lines.append(f"between steps, after {step_position(step)}")
    else:
        lines.append(f"{step_position(step)}: {step.name}{', paused' if standing.paused else ''}")
        if last is not None and last.step == step.name:
            lines += [*header_lines(width), *subinterval_lines(last, width)]
            step_left, run_left = (
                left(remaining_s, standing.paused, now) for remaining_s in (last.step_remaining_s, last.run_remaining_s)
            )
            lines.append(f"step {step_left}; run {run_left}")
            if standing.paused:
                lines.append("the measurement starts again when the run goes on: ivypy unpause")
        else:
            lines.append("its first subinterval has not closed yet")
    if standing.instances is not None:
        lines += ["", *instances_lines(standing.instances, width), ""]
    lost = {name: reason for name, reason in standing.hosts.items() if reason}
    count = len(standing.hosts)
    lines.append(f"{count - len(lost)} of {count} host{'s' * (count != 1)} taking part")
    return lines + [f"  {name}: {reason}" for name, reason in lost.items()]
