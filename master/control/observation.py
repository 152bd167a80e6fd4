"""The observation of a closed subinterval that control decides by: numbers and times only."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from ..rollup.disturbance import Disturbance
from ..rollup.overload import Outstanding
from ..rollup.volumes import Volumes
from ..stats.metric_sample import MetricSample, value_of
from .focus import Focus


class Phase(StrEnum):
    """The purpose of a subinterval, as known when its row was written.

    Which subintervals make a measurement is decided later; windows.csv and the summary have it.
    """

    WARMUP = "warmup"  # under load, before the measurement may begin
    RUN = "run"  # under load, may become part of a measurement
    TRANSIENT = "transient"  # an edit acted in it: two loads in one row
    DISTURBED = "disturbed"  # announced as `run`, but the generator was disturbed: set aside from the measurement
    TAIL = "tail"  # ran while the decision to stop was on its way, or was cut by a halt; never measured
    COOLDOWN = "cooldown"  # at 0 IOPS, until what is in flight has come back


@dataclass(frozen=True, slots=True)
class InstanceLoad:
    """The I/Os of one rollup instance in a subinterval: due, done, and outstanding at its end."""

    due: int  # I/Os that fell due
    completed: int
    backlog: int  # at the end: due, not submitted
    iops: float  # completed per second of real time, as the CSV row has it
    length_s: float  # real, the mean over its hosts
    in_flight: int = 0  # at the end: submitted, not completed
    failed: int = 0  # errors, short transfers, and dropped I/Os
    expired: int = 0  # discarded, because they had waited for longer than drop_after
    surged: bool = False  # this subinterval alone shows that a workload instance falls behind

    @property
    def outstanding(self) -> int:
        """At the end: due and not done."""
        return self.backlog + self.in_flight

    @property
    def growth(self) -> int:
        """By how many the outstanding I/Os grew, or would have, had none expired: due, less done."""
        return self.due - self.completed - self.failed


NO_LOAD: Final = InstanceLoad(0, 0, 0, 0.0, 0.0)


def achieved_iops(loads: Iterable[InstanceLoad]) -> float:
    """The IOPS of one rollup instance over several subintervals."""
    seen = list(loads)
    length_s = sum(one.length_s for one in seen)
    return sum(one.iops * one.length_s for one in seen) / length_s if length_s else 0.0


@dataclass(frozen=True, slots=True)
class Observation:
    """One closed subinterval of a step, as barrier 1 hands it over."""

    number: int  # in the step, from 0
    start_s: float  # since the step's start
    length_s: float  # as planned
    phase: Phase  # as it was announced
    same_hosts: bool = True  # the same take part as in the one before (at first: as in `go`)
    edited: bool = False  # an edit from outside (ivypy edit, pause) acted in it
    samples: Mapping[Focus, Mapping[str, MetricSample]] = field(default_factory=dict)  # by focus and rollup instance
    loads: Mapping[str, Mapping[str, InstanceLoad]] = field(default_factory=dict)  # by rollup type and instance
    outstanding: Outstanding = field(default_factory=Outstanding.none)  # of each workload instance
    disturbance: Disturbance | None = None  # what its hosts did to the generator; None: too little to matter
    # A host that control waits for is not in, and what it did comes late or not at all: nothing is concluded from this.
    absent: bool = False
    rejudged: bool = False  # control has just ceased to wait for a host, or such a host is in again: late_hosts.py
    covers: int = 0  # subintervals before this one that a host's result covers, too
    late: int = 0  # subintervals that have ended since: what control changes now acts in the one after them
    other_load: bool = False  # than in the one before, in more than its rates: block sizes, tags, ranges
    volumes: Volumes | None = None  # of the workload instances that end by volume; None: there are none

    @property
    def began(self) -> int:
        """The first subinterval of which it has figures."""
        return self.number - self.covers

    @property
    def acts_in(self) -> int:
        """The subinterval in which an edit by control acts, if it is sent now."""
        return self.number + 1 + self.late

    @property
    def end_s(self) -> float:
        return self.start_s + self.length_s

    @property
    def same_figures(self) -> bool:
        """They are of the same hosts as those of the one before."""
        return self.same_hosts and not self.rejudged

    @property
    def whole(self) -> bool:
        """It had one load and figures of the same hosts as the one before, so a window may run through it."""
        return self.same_figures and not self.edited

    def value(self, focus: Focus, instance: str) -> float | None:
        """The focus metric of one rollup instance in this subinterval alone; None where it is blank."""
        return value_of([self.samples[focus][instance]], focus.fraction)
