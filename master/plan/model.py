"""A plan, resolved: what the rest of the controller works with.

Rule: everything here is validated, in base units (bytes, seconds, fractions) and complete. A step carries all
edits that are in force in it, so that it can be started alone. What can only be known on the test hosts - which
LUNs there are, how large, which rollup instances that makes - is resolved by the run, which reports its
faults at a place of the plan through `Plan.fault`.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Final

from ...protocol.payload import Attribute, EngineOptions, FileToCreate
from ..connectors.connector_spec import ConnectorSpec
from ..control.control_spec import ControlSpec
from ..control.until import UntilSpec
from ..hosts.host_spec import HostSpec
from ..rollup.instances import RollupSpec
from ..text.places import Span
from ..text.plan_parameters import PlanParameters, Value
from .attempts import OnInvalid
from .read.yaml_positions import Place, PlanFault, PlanFaults
from .select.selection import Select

TOTAL_IOPS: Final = (
    "total_iops"  # an edit's change beside the workload parameters: shared equally over the LUNs it selects
)


@dataclass(frozen=True, slots=True)
class LunSelection:
    """Which LUNs the plan drives: the union of its parts. A block device is never taken by default."""

    select: Select | None  # block devices; None: none
    files: tuple[str, ...]  # globs of files that are there
    create: tuple[FileToCreate, ...]
    paths: tuple[str, ...]  # the block devices that have to be there; `select` has them, too
    place: Place


@dataclass(frozen=True, slots=True)
class AttributeRule:
    """Attributes that the plan itself gives to the LUNs that match."""

    match: Select
    attributes: Mapping[str, Attribute]
    place: Place


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    select: Select | None  # of the plan's LUNs; None: all of them
    parameters: PlanParameters
    place: Place

    def seeded(self, seed: int) -> "Workload":
        """With what it is seeded by in a run with this seed, where it says nothing of it: in its name all workloads
        differ."""
        digest = hashlib.sha256(f"{seed}\n{self.name}".encode()).digest()
        parameters = self.parameters
        if parameters.scatter_seed is None:
            parameters = replace(parameters, scatter_seed=int.from_bytes(digest[:8], "little") >> 1)
        return replace(self, parameters=replace(parameters, seed=seed) if parameters.seed is None else parameters)


@dataclass(frozen=True, slots=True)
class Edit:
    """New settings for the workload instances of some rollup instances."""

    rollup: str  # name of a rollup type
    instances: tuple[str, ...]  # rollup instances; empty: all of the type
    changes: Mapping[str, Value]  # parameter name, or TOTAL_IOPS, -> value
    place: Place


@dataclass(frozen=True, slots=True)
class Step:
    """One `go`. All times are whole multiples of the subinterval."""

    number: int  # from 0, in the order in which steps run
    name: str  # unique; a loop's values are part of it
    edits: tuple[Edit, ...]  # all in force, oldest first: every change of the workloads since they were created
    subinterval_s: float
    warmup_s: float
    measure_s: float  # > 0; of each measurement, unless `control` leaves its length open
    cooldown_s: float
    loop: Mapping[str, Value]  # this pass's value of every looped parameter; empty where nothing is looped
    place: Place
    control: ControlSpec
    notes: tuple[str, ...] = ()  # for people: where it differs from the plan's text
    longest_s: float | None = None  # of all measuring together, where that is not measure_s
    on_invalid: OnInvalid = field(default_factory=OnInvalid)

    @property
    def measuring_s(self) -> float:
        """How long measuring may take in all."""
        return self.measure_s if self.longest_s is None else self.longest_s

    @property
    def is_open(self) -> bool:
        """It takes as long as its volume, which only its timeout bounds."""
        return isinstance(self.control.measurement, UntilSpec) and self.control.measurement.time is None

    @property
    def planned_s(self) -> float:
        """How long it takes at most, with the tail, in which its end is decided; without what may be set aside. 0 where
        it is open."""
        if self.is_open:
            return 0.0
        return self.warmup_s + self.measuring_s + self.subinterval_s + self.cooldown_s

    @property
    def cooldown_subintervals(self) -> int:
        return round(self.cooldown_s / self.subinterval_s)

    @property
    def most_runs(self) -> int:
        """How often it runs at most, but for attempts."""
        rounds = self.control.rounds
        return 1 if rounds is None else rounds.most


@dataclass(frozen=True, slots=True)
class Live:
    """Limits for edits of a running step, where they exceed what the steps use."""

    maxtags: int  # 0: none
    blocksize: int  # bytes; 0: none
    range: Span | None  # that may be written, by workloads that write


class OnIoError(StrEnum):
    COUNT = "count"  # the I/O is counted, the step goes on
    STOP = "stop"  # the run is halted


class OnLoss(StrEnum):
    """Who drives the IOPS of a lost host."""

    KEEP = "keep"  # the others drive their own
    REDISTRIBUTE = "redistribute"  # the others of the same workload drive them, too


@dataclass(frozen=True, slots=True)
class Plan:
    name: str
    text: str  # as read
    path: Path | None  # None: it was not read from a file
    hosts: tuple[HostSpec, ...]  # at least one
    luns: LunSelection
    attributes: tuple[AttributeRule, ...]
    workloads: tuple[Workload, ...]
    rollups: tuple[RollupSpec, ...]  # `all` first
    steps: tuple[Step, ...]
    destroy: bool  # block devices may be overwritten, given the token too
    lease_s: float
    engine: EngineOptions
    subinterval_s: float  # of steps that do not set their own
    achieved_iops_tolerance: float  # so much of what fell due may be left over
    on_io_error: OnIoError
    on_loss: OnLoss
    by_address: int  # sections of each LUN, by which I/Os are counted; 0: they are not
    live: Live
    may_miss: int  # so many hosts may be missing when the run begins
    report: bool  # is written at the run's end
    prepare_timeout_s: float  # for each command between steps, without progress
    start_timeout_s: float  # from `go` until a host is ready
    connectors: tuple[ConnectorSpec, ...]  # but for that of the test hosts
    host_connector: ConnectorSpec | None  # of every test host, which each makes its own; None: it is off
    parameters: Mapping[str, str]  # `${name}` and the text it became

    def seeded(self, seed: int) -> "Plan":
        """With seeds for the workloads that have none."""
        return replace(
            self,
            workloads=tuple(one.seeded(seed) for one in self.workloads),
        )

    def fault(self, place: Place | None, text: str) -> PlanFaults:
        """An error with `text` at a place of this plan, in the form of all plan errors."""
        return self.faults([(place, text)])

    def faults(self, placed_texts: Iterable[tuple[Place | None, str]]) -> PlanFaults:
        """As `fault`, for several at once; a fault without a place is about the plan as a whole."""
        first = Place(self.steps[0].place.name if self.steps else self.name, 1, 1)
        return PlanFaults([PlanFault(place or first, text) for place, text in placed_texts], self.text)
