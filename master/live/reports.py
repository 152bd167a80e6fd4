"""The reports that a run sends to its watchers: plain data, and the interface of a watcher.

Rule: a watcher only shows. It sends nothing back, and a run without one is the same run.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

from ..control.observation import Phase
from ..verdicts import Finding, Verdict


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
    of_steps: int
    planned_s: float  # all subintervals, as far as is known beforehand
    run_planned_s: float  # all steps of the run, likewise


@dataclass(frozen=True, slots=True)
class Latency:
    """Of the merged distribution, in microseconds; None where it is blank in the CSV too."""

    p50_us: float | None
    p99_us: float | None
    max_us: float | None
    p99_9_us: float | None = None


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of what `all=all` did in a subinterval: its reads, its writes, or a rollup instance."""

    name: str  # "read", "write", or the instance's name without its type
    iops: float | None
    mib_per_s: float | None
    service: Latency
    response: Latency


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
class Subinterval:
    """One closed subinterval of `all=all`."""

    utc: str  # of its end
    step: str
    phase: Phase
    number: int
    target_iops: float | Literal["max", "mixed"]  # mixed: some at max and some paced; the CSV has a blank
    iops: float | None
    mib_per_s: float | None
    service: Latency
    response: Latency
    errors: int
    hosts_in: int
    hosts_of: int
    busy_percent: float | None
    busiest_percent: float | None
    messages: tuple[str, ...]  # control's messages: on what it steers, what it measures, and each threshold
    step_remaining_s: float
    run_remaining_s: float
    steady: Steadiness | None = None  # where the step waits for a steady state and its window is full
    directions: tuple[Slice, ...] = ()  # reads and writes, where there are both
    paused: bool = False  # there is no load; the remaining times are from when the run goes on


@dataclass(frozen=True, slots=True)
class Instances:
    """The rollup instances of one type in a subinterval that closed, in the order of the CSV."""

    by: str  # the rollup type
    step: str
    number: int  # of the subinterval
    slices: tuple[Slice, ...]


@dataclass(frozen=True, slots=True)
class MeasurementRow:
    """One measurement of a step, a row of the table at the end: its row of summary.all.csv."""

    name: str  # the step's; where the load is control's, with the load: "climb:total_iops=500"
    verdict: Verdict  # of what the step was for, over all rollup instances
    rate_verdict: Verdict  # of the figures of `all=all`
    service_verdict: Verdict
    response_verdict: Verdict
    findings: tuple[Finding, ...]  # of `all=all`, and what stands on other rollup instances only; by weight
    cause: str  # of these findings, in one sentence; "" where none explains others
    iops: float | None
    half_width_percent: float | None  # of IOPS, at 95 %
    mib_per_s: float | None
    service_mean_us: float | None
    service: Latency
    response_mean_us: float | None
    response: Latency
    hosts_in: int = 0  # whose results its figures include
    hosts_of: int = 0  # of so many; 0: not known
    stands: bool = False  # whether the step stands for this one of its measurements

    @property
    def missing(self) -> str:
        """The hosts that it is of, where that is not all: "1 of 3 hosts"; else ""."""
        return f"{self.hosts_in} of {self.hosts_of} hosts" if self.hosts_in < self.hosts_of else ""


@dataclass(frozen=True, slots=True)
class StepEnds:
    """How a step ended."""

    number: int
    name: str
    verdict: Verdict  # of all measurements that count: not of the level with which a staircase showed saturation
    findings: tuple[Finding, ...]  # of the same; where there are several, each says of which
    measured: tuple[MeasurementRow, ...]  # at least one

    @property
    def standing(self) -> MeasurementRow:
        """The measurement that the step stands for."""
        return next((row for row in self.measured if row.stands), self.measured[-1])


@dataclass(frozen=True, slots=True)
class EventLine:
    """Something that happened: a host lost, an error, a late controller."""

    utc: str
    host: str  # "" where it is of the whole run
    text: str


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


Report = RunBegins | StepBegins | Subinterval | Instances | StepEnds | EventLine | RunEnds | RunStatus


class Watcher(Protocol):
    def show(self, report: Report) -> None: ...

    def close(self) -> None: ...


class Nobody:
    """Shows nothing."""

    def show(self, report: Report) -> None:
        pass

    def close(self) -> None:
        pass
