"""Which step it is, and when it ends: the words that every view has for it."""

from datetime import datetime, timedelta

from ..text.scaled import duration, time_of_day
from .reports import StepBegins, Subinterval


def local_now() -> datetime:
    """For the time of day at which something ends, in the reader's zone."""
    return datetime.now().astimezone()


def step_position(step: StepBegins) -> str:
    """Which of the run's steps it is: its number, as its folder has it, and how many there are."""
    return f"step {step.number}" + (f" ({step.number + 1} of {step.of_steps})" if step.of_steps > 1 else "")


def step_line(step: StepBegins, every: int = 1) -> str:
    """`every`: of so many subintervals one is shown, where the step may have so many."""
    about = f", about {duration(step.planned_s)}" if step.planned_s else ""
    has_so_many = not step.planned_s or step.planned_s >= every * step.subinterval_s
    sampled = f"; 1 subinterval of {every} is shown" if every > 1 and has_so_many else ""
    return f"{step_position(step)}: {step.name}{about}{sampled}"


def done_and_all(step: StepBegins, report: Subinterval) -> tuple[float, float]:
    """How many seconds of the step are done, and how many it takes: as planned, or as its progress lets expect."""
    if step.planned_s:
        return max(step.planned_s - report.step_remaining_s, 0.0), step.planned_s
    done_s = (report.number + 1) * step.subinterval_s
    return done_s, done_s + report.step_remaining_s


def done_at(remaining_s: float, now: datetime) -> str:
    """The time of day when what takes that long will be done, and how long it takes: `done 14:32, 3h58m`."""
    return f"done {time_of_day(now + timedelta(seconds=remaining_s), now)}, {duration(remaining_s)}"


def left(remaining_s: float, paused: bool, now: datetime) -> str:
    """When it is done; while the run is paused, how long it takes once the run goes on: `paused, 40s left`."""
    return f"paused, {duration(remaining_s)} left" if paused else done_at(remaining_s, now)
