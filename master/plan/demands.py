"""What a step asks of control: when its measurement is good, what steers its load, what it must not exceed.

Rule: as the plan says it, in base units; amounts are in the metric's own unit. Which metrics there are, and whether the
numbers fit each other, control knows (control/build.py); it makes its states from these.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ..text.relative import OfStep

RESPONSE: Final = "_response_us_"  # in the name of a metric that only a paced load has

Level = float | OfStep  # total IOPS of a rollup instance

# fio's six; snia's; and the rule of `measure`.
CRITERIA: Final = ("iops", "iops_slope", "bw", "bw_slope", "latency", "latency_slope", "snia", "t")
WINDOWS: Final = ("longest", "shortest")  # which window `measure` looks at; control/measure.py
CORRECTIONS: Final = ("effective", "factor_two")  # how it allows for correlation; control/estimate.py
ON_LEAVE: Final = ("note", "restart", "stop")  # when a steady state is left; control/steady.py


@dataclass(frozen=True, slots=True)
class Accurate:
    """`measure` by accuracy: until the metric is known so well."""

    metric: str
    rollup: str
    accuracy: float
    confidence: float
    min_s: float
    timeout_s: float
    window: str  # one of WINDOWS
    correction: str  # one of CORRECTIONS


@dataclass(frozen=True, slots=True)
class Steadied:
    """`steady`: until the metric stands still."""

    criterion: str  # one of CRITERIA
    metric: str
    rollup: str
    limit: float  # percent of the mean where `relative`, else in the metric's unit; a slope's per second
    relative: bool
    window: int  # subintervals
    ramp: int  # subintervals
    hold: bool
    on_leave: str  # one of ON_LEAVE
    no_drift: bool
    confidence: float
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """Two loads of each rollup instance, with the metric there."""

    low_iops: Level
    high_iops: Level
    low_target: float | None
    high_target: float | None


@dataclass(frozen=True, slots=True)
class Held:
    """`control: { pid: ... }`: hold the metric at its target."""

    metric: str
    rollup: str
    target: float
    calibration: Calibration | None  # None: it finds its own range
    timeout_s: float  # to settle


@dataclass(frozen=True, slots=True)
class Climbed:
    """`staircase`: several loads, a measurement of each."""

    start: Level
    end: Level | None  # None: until a load is not kept up with
    step: Level | None  # None where `steps` is given
    relative: float | None  # the step as a share of the tread before
    steps: int | None


@dataclass(frozen=True, slots=True)
class Found:
    """`find`: the highest load whose metric meets the target."""

    metric: str
    rollup: str
    target: float
    resolution: float
    confidence: float
    probes: int
    most: int  # subintervals of one probe


@dataclass(frozen=True, slots=True)
class Threshold:
    """One of `slo`: what must not be exceeded."""

    metric: str
    rollup: str
    at_most: float
    abort_early: bool
    command: tuple[str, ...]  # run when it is; empty: none
    every_s: float  # at most so often


@dataclass(frozen=True, slots=True)
class Demands:
    """All that a step asks. Nothing: a measurement of fixed length."""

    judge: Accurate | Steadied | None = None
    load: Held | Climbed | Found | None = None
    slo: tuple[Threshold, ...] = ()

    @property
    def fixed(self) -> bool:
        """The step's length is known beforehand, unless a threshold gives it up."""
        return self.judge is None and self.load is None

    def levels(self) -> Iterator[Level]:
        """Every load that it names."""
        match self.load:
            case Held(calibration=Calibration() as ends):
                yield from (ends.low_iops, ends.high_iops)
            case Climbed() as climbed:
                yield from (one for one in (climbed.start, climbed.end, climbed.step) if one is not None)


NOTHING: Final = Demands()
