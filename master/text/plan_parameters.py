"""Workload parameters as a plan states them: what is relative to a LUN or to another step is still so.

Rule: the table is protocol/parameters.py; names, defaults and ranges come from there (a test compares the names).
Some parameters differ from their absolute form: `range` may be in fractions of the LUN, `until` in multiples of the
range, and `iops` may refer to a step; several sizes and the shares of operations become one table, and hot zones get
what lies between them. And a workload without a `seed` has that of its run (`Plan.seeded`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Final

from ...protocol.geometry import Extent, extent, least_block, whole_blocks
from ...protocol.parameters import (
    ENDLESS,
    PARAMETERS,
    Bursts,
    Cursors,
    DropAfter,
    Flush,
    Iops,
    Iosequencer,
    Operation,
    Parameters,
    Spread,
    Sync,
    Until,
    VolumeKind,
)
from .mixes import COUNTED, Operations, Sizes, bytes_per_io, is_plain, mix_of, share_of_reads
from .places import BEGINNING, WHOLE, HotZones, Position, Span, in_bytes, zones_on

_DEFAULT: Final = Parameters()

# Why a workload's own iops cannot be a share of a step.
NO_STEP_YET: Final = "no step has run when a workload begins; set this in an edit before a 'go'"


@dataclass(frozen=True, slots=True)
class OfStep:
    """`50% of step max`: a fraction of the IOPS that the same rollup instance reached in an earlier step."""

    fraction: float
    step: str  # name of a step that runs earlier


@dataclass(frozen=True, slots=True)
class Volume:
    """`{ written: 2x }` or `{ ios: 1M }`: what counts towards a workload's end, and how much of it ends it."""

    what: VolumeKind
    amount: int = 0  # I/Os, bytes or nanoseconds
    times: float | None = None  # of the range, instead

    def until(self, parameters: Parameters, kind: str, lun_size: int) -> Until:
        """On a LUN that the workload fits. Without an end where it has no such I/O."""
        if self.what is VolumeKind.NEVER or (self.what in COUNTED and not bytes_per_io(self.what, parameters)):
            return ENDLESS
        if self.times is None:
            return Until(self.what, self.amount)
        each = 1 if self.what is VolumeKind.IOS else least_block(parameters)
        return Until(self.what, ceil(round(self.times * whole_blocks(parameters, kind, lun_size), 6)) * each)


NO_END: Final = Volume(VolumeKind.NEVER)
ONE_PASS: Final = Volume(VolumeKind.BYTES, times=1.0)
Value = (
    int | float | str | OfStep | Span | Iosequencer | Volume | Flush | Sizes | Operations | Position | HotZones | Bursts
)


def with_reads(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes of an edit: new `operations` say how much is read, too."""
    if "operations" not in changes:
        return dict(changes)
    return {**changes, "fraction_read": share_of_reads(changes["operations"])}


@dataclass(frozen=True, slots=True)
class PlanParameters:
    """Everything that defines a workload, for any LUN."""

    iosequencer: Iosequencer = _DEFAULT.iosequencer
    blocksize: int | Sizes = _DEFAULT.blocksize
    fraction_read: float = _DEFAULT.fraction_read  # of `operations`, where it has any
    operations: Operations = ()
    align: int = _DEFAULT.align
    sequential: float = _DEFAULT.sequential
    streams: int = _DEFAULT.streams
    cursors: Cursors = _DEFAULT.cursors
    maxtags: int = _DEFAULT.maxtags
    iops: Iops | OfStep = _DEFAULT.iops
    range: Span = WHOLE
    spread: Spread = _DEFAULT.spread
    seed: int | None = None  # None: the run's
    drop_after: DropAfter = _DEFAULT.drop_after
    think_time: float = _DEFAULT.think_time
    zipf: float = _DEFAULT.zipf
    pareto: float = _DEFAULT.pareto
    normal: float = _DEFAULT.normal
    hot_zones: HotZones = ()
    working_set: Position = BEGINNING
    scattered: bool = _DEFAULT.scattered
    scatter_seed: int | None = None  # None: by the run's, and the workload's name
    start: Position = BEGINNING
    skew: float = _DEFAULT.skew
    start_after: float = _DEFAULT.start_after
    bursty: Bursts = _DEFAULT.bursty
    random_map: bool = _DEFAULT.random_map
    until: Volume = NO_END
    direct: bool = _DEFAULT.direct
    drop_cache: bool = _DEFAULT.drop_cache
    sync: Sync = _DEFAULT.sync
    flush: Flush = _DEFAULT.flush
    end_fsync: bool = _DEFAULT.end_fsync

    def edited(self, changes: Mapping[str, Value]) -> "PlanParameters":
        """These parameters after an edit; `total_iops` is the session's to share out, and is not taken here."""
        return replace(self, **with_reads(changes))

    def absolute(self, lun_size: int, kind: str, iops: Iops) -> Parameters:
        """The parameters on a LUN of `lun_size` bytes, with the IOPS that the session has worked out for it.

        `kind`: block or file.

        The whole LUN stays (0, 0), so that the slave leaves out the last partial block itself.
        """
        values = {name: getattr(self, name) for name in PARAMETERS}
        mix = mix_of(self.blocksize, self.fraction_read, self.operations)
        values["blocksize"] = max(part.bytes for part in mix)
        if len({part.operation is Operation.READ for part in mix}) == 1:  # what rounding left of the others
            values["fraction_read"] = float(mix[0].operation is Operation.READ)
        values["operations"] = () if is_plain(mix) else mix
        values["range"] = in_bytes(self.range, lun_size, values["blocksize"])
        for name in ("seed", "scatter_seed"):
            values[name] = getattr(_DEFAULT if values[name] is None else self, name)
        values |= self._places(extent(values["range"], lun_size), min(part.bytes for part in mix), values["blocksize"])
        made = Parameters(**{**values, "iops": iops, "until": ENDLESS, "end_fsync": False})
        until = self.until.until(made, kind, lun_size)
        return replace(made, until=until, end_fsync=self.end_fsync and until != ENDLESS)

    def _places(self, extent: Extent, least: int, largest: int) -> dict[str, Any]:
        """The parameters that are relative to its range, which lies there; with I/Os of `least` to `largest` bytes."""
        align = self.align or least
        length = extent[1] - extent[0]
        return {
            "hot_zones": zones_on(self.hot_zones, extent, align, largest) if self.hot_zones else (),
            "working_set": self.working_set.within(length, align),
            "start": 0 if self.start == BEGINNING else extent[0] + self.start.within(length, align),
        }
