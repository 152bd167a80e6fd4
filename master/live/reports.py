"""The reports that a run sends to its watchers: plain data, and the interface of a watcher.

Rule: a watcher only shows. It sends nothing back, and a run without one is the same run.
"""

from dataclasses import dataclass
from typing import Final, Literal, Protocol

from ...protocol.payload import NoticeKind
from ..control.observation import Phase
from ..summary.measured import MeasurementRow, StepEnds

NOTE: Final = "note"  # of a step's plan
# Kinds of events that say how a step was set up: nobody has to act on them.
SET_UP: Final = frozenset(
    {
        NOTE, NoticeKind.BACKEND_CHOSEN, NoticeKind.SPREAD_CHOSEN, NoticeKind.BUFFER_PAGES, NoticeKind.KERNEL_THREADS,
        NoticeKind.CPU_DMA_LATENCY,
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RunBegins:
    """The run has its folder; no host is connected yet."""

    folder: str
    plan: str
    hosts: int


@dataclass(frozen=True, slots=True)
class StepBegins:
    number: int
    name: str
    of_steps: int  # of the run; 0: rounds decide how many
    planned_s: float  # all subintervals, as far as is known beforehand
    run_planned_s: float  # all steps of the run, likewise
    subinterval_s: float


@dataclass(frozen=True, slots=True)
class Steadiness:
    """How a steady-state criterion stands, in the words of fio's JSON."""

    ss: str  # "overall_iops:2.000000%"
    stage: str  # seeking, attained, holding, lost
    instance: str  # that is furthest from the criterion
    duration: float  # of the window, in seconds, as planned
    attained: int
    criterion: str | None  # the present value, with the limit's unit; None where it is not known yet
    max_deviation: float | None
    slope: float


@dataclass(frozen=True, slots=True)
class WorstInstance:
    """The rollup instance that was slowest in a subinterval, of all types that have several."""

    name: str  # type=name
    metric: str  # the time by which it is the slowest; "": no I/O completed
    figure: float  # in the unit of the CSV
    median: float  # of the instances of its type that completed any
    compared: int  # so many


@dataclass(frozen=True, slots=True)
class Subinterval:
    """One closed subinterval of `all=all`."""

    utc: str  # of its end
    step: str
    phase: Phase
    number: int
    target_iops: float | Literal["max", "mixed"]  # mixed: some at max and some paced; the CSV has a blank
    figures: dict[str, float]  # by metric name, in the units of the CSV; those that are blank there are not in it
    hosts_in: int
    hosts_of: int
    messages: tuple[str, ...]  # control's messages: on what it steers, what it measures, and each threshold
    step_remaining_s: float
    run_remaining_s: float
    steady: Steadiness | None = None  # where the step waits for a steady state and its window is full
    paused: bool = False  # there is no load; the remaining times are from when the run goes on
    news: tuple[str, ...] = ()  # messages of what is not known beforehand: where the load and the measurement stand
    worst: WorstInstance | None = None  # where one is slower than the median of its type


@dataclass(frozen=True, slots=True)
class InstanceRow:
    """The figures of a rollup instance in a subinterval."""

    name: str  # without its type
    figures: dict[str, float]  # as those of a subinterval


@dataclass(frozen=True, slots=True)
class Instances:
    """The rollup instances of one type in a subinterval that closed, in the order of the CSV."""

    by: str  # the rollup type
    step: str
    number: int  # of the subinterval
    rows: tuple[InstanceRow, ...]


@dataclass(frozen=True, slots=True)
class MeasuredSoFar:
    """The measurement of the running step as if it ended now. It costs CPU time, so it comes now and then."""

    step: str
    row: MeasurementRow


@dataclass(frozen=True, slots=True)
class EventLine:
    """Something that happened: a host lost, an error, a late controller."""

    utc: str
    host: str  # "" where it is of the whole run
    text: str
    kind: str = ""  # as events.csv has it


@dataclass(frozen=True, slots=True)
class RunEnds:
    folder: str  # "" where a run that was refused left none
    steps: tuple[StepEnds, ...]
    exit_code: int
    words: str  # the exit code's sentence


@dataclass(frozen=True, slots=True)
class RunStatus:
    """The status of a run."""

    folder: str
    plan: str
    pid: int
    step: StepBegins | None  # that runs now, or ran last
    running: bool  # whether a step is running
    paused: bool
    last: Subinterval | None  # that closed, of any step
    ended: tuple[StepEnds, ...]  # the latest hundred
    hosts: dict[str, str]  # by name: "" where all is well, or why it is lost
    instances: Instances | None = None  # where they were asked for, and a subinterval has closed
    so_far: MeasuredSoFar | None = None  # of `step`


Report = RunBegins | StepBegins | Subinterval | Instances | MeasuredSoFar | StepEnds | EventLine | RunEnds | RunStatus


class Watcher(Protocol):
    def show(self, report: Report) -> None: ...

    def close(self) -> None: ...


class Nobody:
    """Shows nothing."""

    def show(self, report: Report) -> None:
        pass

    def close(self) -> None:
        pass
