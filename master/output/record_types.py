"""The data that a run hands to its folder: plain records, with times as UTC nanoseconds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ...protocol.messages import Hello
from ...protocol.payload import Lun
from ..rollup.figures import Figures
from ..rollup.merge import MergedSubinterval
from ..rollup.parameters_in_force import Settings
from ..rollup.validity import Validity
from ..rollup.window import Measurement


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, a row of events.csv."""

    utc_ns: int
    kind: str  # one word
    text: str
    step: int | None = None
    subinterval: int | None = None
    host: str = ""


@dataclass(frozen=True, slots=True)
class HostRecord:
    host: str
    launcher: str
    address: str
    hello: Hello


@dataclass(frozen=True, slots=True)
class LunRecord:
    host: str
    lun: Lun


@dataclass(frozen=True, slots=True)
class MeasuredWindow:
    """The subintervals that a measurement includes."""

    first: int
    last: int
    set_aside: tuple[int, ...]  # between them


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step, in run.json: while it runs without an end, then with one."""

    number: int
    name: str
    start_utc_ns: int
    end_utc_ns: int | None = None
    verdict: str = ""
    reasons: tuple[str, ...] = ()
    thresholds: tuple[str, ...] = ()  # in the words of the reasons that name them
    measured: Sequence[Mapping[str, Any]] = ()  # the rows of the table at the end, as JSON has them
    windows: tuple[MeasuredWindow, ...] | None = None  # only in so_far/: the rows of subintervals do not have them yet


@dataclass(frozen=True, slots=True)
class RunRecord:
    """run.json."""

    version: str  # of ivypy
    argv: tuple[str, ...]
    plan: str  # path of the plan
    start_utc_ns: int
    seed: int  # of workloads that have none
    end_utc_ns: int | None = None
    exit_code: int | None = None
    hosts: Mapping[str, Hello] = field(default_factory=dict)
    steps: tuple[StepRecord, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)  # whatever else is worth keeping, as JSON takes it


@dataclass(frozen=True, slots=True)
class HostTiming:
    """One host in one subinterval; durations in nanoseconds, counted as docs/columns.md says of interlock and clock."""

    send_up_ns: int
    acknowledgement_ns: int | None  # None: no answer
    offset_ns: int
    error_bound_ns: int
    rate_ppm: float
    start_skew_ns: int
    boundary_skew_ns: int
    jump_ns: int = 0  # what its clock moved beyond any drift, noticed in this subinterval or just before it


@dataclass(frozen=True, slots=True)
class Timing:
    """The controller's side of one subinterval; durations in nanoseconds."""

    barrier_1_ns: int
    processing_ns: int
    barrier_2_ns: int
    left_ns: int
    hosts: Mapping[str, HostTiming]
    stalled_ns: int = 0
    cpu_ns: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class SubintervalRecord:
    """One closed subinterval, with all that is written of it."""

    interval: MergedSubinterval
    figures: Figures  # of the interval, so that what others asked of it is not worked out again
    settings: Settings  # in force at its end
    phase: str
    start_utc_ns: int
    timing: Timing


@dataclass(frozen=True, slots=True)
class WindowRecord:
    """A row of windows.csv."""

    window: str
    first: int
    last: int
    set_aside: int  # subintervals between them that do not count
    start_utc_ns: int
    end_utc_ns: int
    hosts: int
    why: str


@dataclass(frozen=True, eq=False)
class SummaryRecord:
    """A step's result: a row in every summary, for each rollup instance."""

    step_start_utc_ns: int
    start_utc_ns: int | None  # of the measurement
    end_utc_ns: int | None
    measurement: Measurement | None  # None: the step ended before there was one
    validity: Validity
    settings: Settings
    suffix: str = ""  # of the step's name, where it has several measurements: ":total_iops=500"

    @cached_property
    def figures(self) -> Figures | None:
        """The figures that were measured, with the response times that have a meaning; None where nothing was."""
        if self.measurement is None:
            return None
        return Figures(self.measurement.merged, self.settings.response_rows(self.validity.reached))

    def release(self) -> None:
        """Its rows are written: figures that are asked for again are worked out again."""
        self.__dict__.pop("figures", None)
