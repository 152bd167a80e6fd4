"""The parameters of a workload, once.

Rule: a field's metadata is the table (unit, meaning, range, whether it may change while running). The plan's
model, its units and its JSON schema, the slave's range checks and docs/plan.md all come from here. Values are
absolute on the wire: the controller has resolved percentages of a LUN, of another step, and totals.
"""

from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal, Optional, Union

from .older_python import StrEnum

MAX: Final = "max"  # as an IOPS setting: as fast as the tags allow
Iops = Union[float, Literal["max"]]
NEVER: Final = "never"  # as drop_after: what is due stays due
DropAfter = Union[float, Literal["never"]]  # seconds
AUTO: Final = "auto"  # as a spread: the host decides
Spread = Union[int, Literal["auto"]]


class VolumeKind(StrEnum):
    """Which of a workload's I/Os count towards its end, and how."""

    NEVER = "never"  # none does
    TIME = "time"  # no I/O, but the clock: nanoseconds from the step's start
    IOS = "ios"
    BYTES = "bytes"  # read and written
    READ = "read"  # bytes
    WRITTEN = "written"  # bytes


@dataclass(frozen=True)
class Until:
    """A workload instance's end by volume: it submits no I/O more once so many count."""

    what: VolumeKind
    amount: int  # I/Os, bytes or nanoseconds; 0 where it never ends


ENDLESS: Final = Until(VolumeKind.NEVER, 0)


class FlushKind(StrEnum):
    """The system call that makes written data durable."""

    FSYNC = "fsync"  # data and all metadata of the file
    FDATASYNC = "fdatasync"  # data, and what is needed to read it back


@dataclass(frozen=True)
class Flush:
    """How often a workload instance flushes what it wrote."""

    every: int  # acknowledged writes from one to the next; 0: never
    how: FlushKind = FlushKind.FSYNC


NO_FLUSH: Final = Flush(0)


class Sync(StrEnum):
    """Whether each write is durable when it is acknowledged."""

    NONE = "none"
    DSYNC = "dsync"  # its data, and what is needed to read it back (RWF_DSYNC)
    SYNC = "sync"  # with all metadata (RWF_SYNC)


class Operation(StrEnum):
    """The operation of an I/O; a flush is none of these."""

    READ = "read"
    WRITE = "write"
    TRIM = "trim"  # deallocates
    WRITE_ZEROES = "write_zeroes"  # without data


@dataclass(frozen=True)
class MixPart:
    """The I/Os of a workload that have one operation and one size."""

    operation: Operation
    bytes: int
    share: float  # of all its I/Os, as issued


Mix = tuple[MixPart, ...]
MOST_PARTS: Final = 64  # of a mix


@dataclass(frozen=True)
class Zone:
    """A part of a random workload's range, and how many of its I/Os go there; the zones of a workload do not overlap,
    and their shares add up to 1."""

    start: int  # bytes in the LUN
    end: int
    reads: float  # share of its reads
    others: float  # share of its other I/Os


Zones = tuple[Zone, ...]


@dataclass(frozen=True)
class Bursts:
    """How long a workload's load is on, and off, in turns; in seconds."""

    on: float
    off: float


NO_BURSTS: Final = Bursts(0.0, 0.0)
MOST_ZONES: Final = 64


class Cursors(StrEnum):
    """Which I/O the next one of a sequential mix follows."""

    SHARED = "shared"  # the last one
    BY_OPERATION = "by_operation"  # the last of its operation


class Iosequencer(StrEnum):
    RANDOM_STEADY = "random_steady"
    RANDOM_INDEPENDENT = "random_independent"
    SEQUENTIAL = "sequential"


class Notation(StrEnum):
    """How a quantity is written in a plan, and what it is on the wire."""

    BYTES = "bytes"  # "8KiB" -> 8192
    FRACTION = "fraction"  # "70%" or 0.7 -> 0.7
    COUNT = "count"  # a whole number
    DURATION = "duration"  # "1ms" -> seconds
    TIMEOUT = "timeout"  # "1s" or never -> seconds or "never"
    COUNT_OR_AUTO = "count_or_auto"  # a whole number, or "auto"
    IOPS = "iops"  # a number, "max", or "50% of step NAME" -> float or "max"
    RANGE = "range"  # ["0%", "50%"] or ["1GiB", "2GiB"] -> (start, end) in bytes
    CHOICE = "choice"  # a word of an enum
    FLAG = "flag"  # true or false
    VOLUME = "volume"  # { written: 2x } or { ios: 1M } -> what counts, and how much of it
    FLUSH = "flush"  # { every: 32 } -> how often, and with which system call
    SIZES = "sizes"  # "8KiB" or { 4KiB: 60%, 64KiB: 40% } -> bytes of the largest
    MIX = "mix"  # { read: 60%, trim: 40% } -> the share of each operation and size
    NUMBER = "number"  # "1.1", or "30%" -> 1.1, 0.3
    ZONES = "zones"  # [{ range: 10%, share: 90% }] -> the places and the shares of all of the range
    BURSTS = "bursts"  # { on: 1s, off: 3s }, or never -> seconds of each
    PART = "part"  # "10%" or "5GiB" of the range -> bytes


@dataclass(frozen=True)
class About:
    """One row of the table of parameters."""

    unit: Notation
    doc: str
    low: Optional[float] = None
    high: Optional[float] = None
    live: bool = False  # may be edited while a step runs
    of_slave: bool = False  # the engine does not know it


def about(
    unit: Notation,
    doc: str,
    *,
    low: Optional[float] = None,
    high: Optional[float] = None,
    live: bool = False,
    of_slave: bool = False,
) -> dict[str, Any]:
    """Field metadata: `field(default=..., metadata=about(...))`."""
    return {"about": About(unit, doc, low, high, live, of_slave)}


def sizes_of(operations: Mix, blocksize: int) -> list[int]:
    """The sizes of a workload's I/Os, ascending."""
    return sorted({part.bytes for part in operations} or {blocksize})


SCATTERED: Final = ("zipf", "pareto", "working_set")
UNEVEN: Final = ("zipf", "pareto", "normal", "hot_zones")  # how often a place of a random workload comes
RELEASES: Final = (Operation.TRIM, Operation.WRITE_ZEROES)  # they transfer nothing


@dataclass(frozen=True)
class Parameters:
    """Everything that defines one workload instance's stream, in absolute values."""

    iosequencer: Iosequencer = field(
        default=Iosequencer.RANDOM_STEADY,
        metadata=about(
            Notation.CHOICE,
            "When the next I/O falls due and at which address: random_steady (even gaps), random_independent "
            "(exponential gaps) or sequential (ascending addresses).",
        ),
    )
    blocksize: int = field(
        default=4096,
        metadata=about(
            Notation.SIZES,
            "Size of each I/O; a multiple of the LUN's logical block size; with direct: false any on a file, and on a "
            "block device one of 4 KiB. Several with their shares: `{ 4KiB: 60%, 64KiB: 40% }`; by operation: "
            "`{ read: 4KiB, write: { 8KiB: 50%, 16KiB: 50% } }`.",
            low=1,
            high=1 << 30,
            live=True,
        ),
    )
    fraction_read: float = field(
        default=1.0,
        metadata=about(
            Notation.FRACTION,
            "Share of I/Os that are reads; the others write.",
            low=0.0,
            high=1.0,
            live=True,
        ),
    )
    operations: Mix = field(
        default=(),
        metadata=about(
            Notation.MIX,
            "`{ read: 60%, write: 30%, trim: 10% }`, in place of fraction_read: the share of each operation (read, "
            "write, trim, write_zeroes) among its I/Os. To trim or to write zeroes needs consent as a write does.",
            live=True,
        ),
    )
    align: int = field(
        default=0,
        metadata=about(
            Notation.BYTES,
            "I/Os begin at multiples of it, counted from the LUN's start; 0: of the operation's (smallest) blocksize.",
            low=0,
            high=1 << 30,
        ),
    )
    sequential: float = field(
        default=0.0,
        metadata=about(
            Notation.FRACTION,
            "Share of a random workload's I/Os that begin where its last one ended.",
            low=0.0,
            high=1.0,
        ),
    )
    streams: int = field(
        default=1,
        metadata=about(
            Notation.COUNT,
            "Streams of a sequential workload, in turns: each drives its own part of the range.",
            low=1,
            high=256,
        ),
    )
    cursors: Cursors = field(
        default=Cursors.SHARED,
        metadata=about(
            Notation.CHOICE,
            "Where a sequential workload has several operations: shared, each I/O follows the last one; by_operation, "
            "the last of its operation.",
        ),
    )
    maxtags: int = field(
        default=1,
        metadata=about(
            Notation.COUNT,
            "Largest number of I/Os in flight per LUN: the queue depth.",
            low=1,
            high=8192,
            live=True,
        ),
    )
    iops: Iops = field(
        default=MAX,
        metadata=about(
            Notation.IOPS,
            "I/Os per second that fall due per LUN (open loop); max: as maxtags allows (closed loop); 0: pause.",
            low=0,
            high=1e9,
            live=True,
        ),
    )
    range: tuple[int, int] = field(
        default=(0, 0),
        metadata=about(
            Notation.RANGE,
            "Part of the LUN that is driven: its first byte and the byte after its last; (0, 0) is the whole LUN.",
            live=True,
        ),
    )
    spread: Spread = field(
        default=AUTO,
        metadata=about(
            Notation.COUNT_OR_AUTO,
            "Number of workload threads that share its tags and its rate on each LUN, if that is faster than one "
            "core; each paces its own part. A sequential workload stays on one. auto: at max or above 100,000 IOPS "
            "idle threads help, each with 8 tags or more.",
            low=1,
            high=256,
            of_slave=True,
        ),
    )
    seed: int = field(
        default=1,
        metadata=about(
            Notation.COUNT,
            "Seed of the random sequences: the same seed gives the same addresses and gaps. Each host, instance and "
            "step derives its own; `seed` in run.json has the run's.",
            low=0,
            high=(1 << 63) - 1,
        ),
    )
    drop_after: DropAfter = field(
        default=NEVER,
        metadata=about(
            Notation.TIMEOUT,
            "How long an I/O may wait for its submission after it fell due (open loop), before it is discarded (column "
            "expired). never: what is due stays due.",
            low=0.001,
            high=86400,
        ),
    )
    think_time: float = field(
        default=0.0,
        metadata=about(
            Notation.DURATION,
            "How long each tag waits between the end of its I/O and its next one, where iops is max (closed loop): "
            "maxtags users that think. In a step's first think_time they begin one after the other.",
            low=0,
            high=86400,
        ),
    )
    zipf: float = field(
        default=0.0,
        metadata=about(
            Notation.NUMBER,
            "Random I/Os by Zipf's law: to the nth most frequent place 1/n^zipf times as often as to the first.",
            low=0.0,
            high=16,
        ),
    )
    pareto: float = field(
        default=0.0,
        metadata=about(
            Notation.FRACTION,
            "By Pareto's rule, as fio's: 20% is 80 % of the I/Os in a fifth of the range, and so on in that.",
            low=0.0,
            high=0.99,
        ),
    )
    normal: float = field(
        default=0.0,
        metadata=about(
            Notation.FRACTION,
            "By a normal distribution around the middle of the range: its standard deviation.",
            low=0.0,
            high=10,
        ),
    )
    hot_zones: Zones = field(
        default=(),
        metadata=about(
            Notation.ZONES,
            "`[{ range: 10%, share: 90% }]`: the share of the I/Os in the first tenth of the range; the rest has the "
            "others. The next zone lies behind, or at `range: [40%, 50%]`. `read_share`, `write_share`: of reads, of "
            "all others.",
        ),
    )
    working_set: int = field(
        default=0,
        metadata=about(
            Notation.PART,
            "The part of the range that random I/Os go to, and no others; 0: all.",
            low=0,
        ),
    )
    scattered: bool = field(
        default=True,
        metadata=about(
            Notation.FLAG,
            "Whether the places of zipf, pareto and working_set lie all over the range, or the most frequent first.",
        ),
    )
    scatter_seed: int = field(
        default=0,
        metadata=about(
            Notation.COUNT,
            "What they are scattered by: the same places of a LUN from every host. By default each workload has its "
            "own, by `seed` and its name.",
            low=0,
            high=(1 << 63) - 1,
        ),
    )
    start: int = field(
        default=0,
        metadata=about(
            Notation.PART,
            "Where a sequential workload begins in its range.",
            low=0,
        ),
    )
    skew: float = field(
        default=0.0,
        metadata=about(
            Notation.NUMBER,
            "Its weight among the workloads of a LUN: with iops: max their I/Os are held in that proportion, by one "
            "thread; total_iops is divided so. 0: each goes as it can, and is 1 of a total.",
            low=0.0,
            high=1e6,
        ),
    )
    start_after: float = field(
        default=0.0,
        metadata=about(
            Notation.DURATION,
            "How long after a step's start it begins; until then it does no I/O.",
            low=0,
            high=86400,
        ),
    )
    bursty: Bursts = field(
        default=NO_BURSTS,
        metadata=about(
            Notation.BURSTS,
            "`{ on: 1s, off: 3s }`: its load comes in bursts, from its start on; iops is the mean of both times. At "
            "max, it drives while they are on.",
        ),
    )
    random_map: bool = field(
        default=False,
        metadata=about(
            Notation.FLAG,
            "Whether a random workload visits each block of its range once before any again, as fio does. One thread "
            "drives it.",
        ),
    )
    until: Until = field(
        default=ENDLESS,
        metadata=about(
            Notation.VOLUME,
            "Its end on each LUN: `{ written: 2x }`, `{ read: 100GiB }`, `{ bytes: 1x }` (both) or `{ ios: 1M }`, from "
            "the step's start; 1x is its range; or `{ time: 60s }`. One thread drives it.",
        ),
    )
    direct: bool = field(
        default=True,
        metadata=about(
            Notation.FLAG,
            "Whether its I/O goes past this host's page cache (O_DIRECT). false: through the cache, with the backend "
            "io_uring; what came from memory is said.",
            of_slave=True,
        ),
    )
    drop_cache: bool = field(
        default=True,
        metadata=about(
            Notation.FLAG,
            "With direct: false, whether the LUN is dropped from the host's page cache before each step. What earlier "
            "steps wrote is written back first, even if not.",
            of_slave=True,
        ),
    )
    sync: Sync = field(
        default=Sync.NONE,
        metadata=about(
            Notation.CHOICE,
            "Whether a write is acknowledged only once it is durable: none, dsync (its data; FUA where the device has "
            "it) or sync (with all metadata).",
        ),
    )
    flush: Flush = field(
        default=NO_FLUSH,
        metadata=about(
            Notation.FLUSH,
            "`{ every: 32 }`: a flush after so many acknowledged writes, which covers these; `with: fdatasync` or "
            "fsync, the default. It takes a tag as a write does, and is measured apart.",
        ),
    )
    end_fsync: bool = field(
        default=False,
        metadata=about(
            Notation.FLAG,
            "With `until`: whether its end is a flush of all that it wrote, whose time counts.",
        ),
    )


def largest_transfer(parameters: Parameters) -> int:
    """The size of the largest read or write of a workload, in bytes: its buffers hold that. 0: it has none."""
    if not parameters.operations:
        return parameters.blocksize
    return max((part.bytes for part in parameters.operations if part.operation not in RELEASES), default=0)


def releases(parameters: Parameters) -> list[Operation]:
    """Those of a workload's operations that transfer nothing."""
    return [part.operation for part in parameters.operations if part.operation in RELEASES]


PARAMETERS: Final[dict[str, About]] = {f.name: f.metadata["about"] for f in fields(Parameters)}
LIVE: Final = frozenset(name for name, parameter in PARAMETERS.items() if parameter.live)
OF_ENGINE: Final = tuple(name for name, parameter in PARAMETERS.items() if not parameter.of_slave)
EngineFields = dict[str, Any]  # a value of each of OF_ENGINE
_ROUNDING: Final = 1e-9  # of shares
_SHORTEST_BURST: Final = 1e-4  # seconds
_LONGEST_BURST: Final = 86400.0
_WORDS: Final = {MAX: -1.0, NEVER: 0.0}  # as the engine takes them


def engine_fields(parameters: Parameters) -> EngineFields:
    """The parameters as the engine takes them: words as numbers, times in seconds."""
    return {name: _for_engine(getattr(parameters, name), PARAMETERS[name].unit) for name in OF_ENGINE}


def _for_engine(value: Any, unit: Notation) -> Any:
    if unit in (Notation.IOPS, Notation.TIMEOUT, Notation.DURATION):
        return _WORDS[value] if isinstance(value, str) else float(value)
    if unit is Notation.VOLUME:
        return str(value.what), value.amount
    if unit is Notation.FLUSH:
        return str(value.how), value.every
    if unit is Notation.MIX:
        return tuple((str(part.operation), part.bytes, part.share) for part in value)
    if unit is Notation.BURSTS:
        return round(value.on * 1e9), round(value.off * 1e9)
    if unit is Notation.ZONES:
        return tuple((zone.start, zone.end, zone.reads, zone.others) for zone in value)
    return str(value) if unit is Notation.CHOICE else value


def faults(parameters: Parameters) -> list[str]:
    """The values of `parameters` that are out of range, a sentence each."""
    texts = []
    for name, parameter in PARAMETERS.items():
        value = getattr(parameters, name)
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            continue
        if parameter.low is not None and not value >= parameter.low:  # nan, too
            texts.append(f"{name} is {value:g}; the least is {parameter.low:g}")
        if parameter.high is not None and value > parameter.high:
            texts.append(f"{name} is {value:g}; the most is {parameter.high:g}")
    texts += _faults_of_mix(parameters)
    texts += _faults_of_zones(parameters.hot_zones)
    texts += [text for _, text in order_faults(parameters)]
    if (parameters.until.amount < 1) is (parameters.until.what is not VolumeKind.NEVER):
        texts.append(f"until is {parameters.until.amount} of {parameters.until.what}; the least is 1")
    if parameters.bursty != NO_BURSTS and not all(
        _SHORTEST_BURST <= time <= _LONGEST_BURST for time in (parameters.bursty.on, parameters.bursty.off)
    ):
        texts.append(
            f"bursty is on for {parameters.bursty.on:g} s and off for {parameters.bursty.off:g} s; each is from "
            f"{_SHORTEST_BURST:g} s to {_LONGEST_BURST:g} s"
        )
    if not 0 <= parameters.flush.every < 1 << 32:
        texts.append(f"flush is every {parameters.flush.every}; the least is 0 (never), the most 4294967295")
    if parameters.end_fsync and parameters.until == ENDLESS:
        texts.append("end_fsync is for a workload that ends by `until`")
    return texts


def order_faults(parameters: Parameters) -> list[tuple[str, str]]:
    """The parameters that do not go with its order of addresses, each with a sentence."""
    uneven = [name for name in UNEVEN if getattr(parameters, name)]
    if parameters.iosequencer is Iosequencer.SEQUENTIAL:
        texts = [
            (name, f"{name}: {noun} of a random workload, and this one is sequential; leave it out")
            for name, noun in (
                ("sequential", "a share of the I/Os"),
                *((name, "the places") for name in (*uneven, "working_set")),
            )
            if getattr(parameters, name)
        ]
        if parameters.start and parameters.streams > 1:
            texts.append(("start", "start: several streams begin in their parts of the range; leave one of both out"))
        return texts
    texts = [
        (name, f"{name}: {noun} of a sequential workload; leave it out, or set iosequencer: sequential")
        for name, noun, given in (
            ("streams", "those", parameters.streams > 1),
            ("start", "the first place", parameters.start > 0),
        )
        if given
    ]
    for name in uneven[1:]:
        texts.append((name, f"{name}: {uneven[0]} says where its I/Os go already; leave one of both out"))
    if parameters.working_set and uneven and uneven[0] not in SCATTERED:
        text = f"working_set: goes with zipf and pareto, not with {uneven[0]}; leave one of both out"
        texts.append(("working_set", text))
    if parameters.working_set and parameters.sequential:
        text = "working_set: sequential I/Os would leave it; leave one of both out"
        texts.append(("working_set", text))
    if parameters.working_set and not _is_of_one_size(parameters):
        text = "working_set: needs I/Os of one size, aligned to it; leave it out, or give one blocksize, no align"
        texts.append(("working_set", text))
    if parameters.random_map:
        for name in (*uneven, "working_set"):
            if getattr(parameters, name):
                text = f"random_map: visits each block once, and {name} some more often; leave one out"
                texts.append(("random_map", text))
        if parameters.sequential:
            text = "random_map: visits each block once, and sequential I/Os would visit some again; leave one out"
            texts.append(("random_map", text))
        if not _is_of_one_size(parameters):
            text = "random_map: needs I/Os of one size, aligned to it; leave it out, or give one blocksize, no align"
            texts.append(("random_map", text))
    return texts


def _is_of_one_size(parameters: Parameters) -> bool:
    """Whether all I/Os are blocks of one size, at multiples of it."""
    sizes = sizes_of(parameters.operations, parameters.blocksize)
    return len(sizes) == 1 and parameters.align in (0, parameters.blocksize)


def _faults_of_zones(zones: Zones) -> list[str]:
    """Whether they are ascending and apart, and have all I/Os between them."""
    if not zones:
        return []
    if len(zones) > MOST_ZONES:
        return [f"hot_zones are {len(zones)}; the most is {MOST_ZONES}"]
    edges = [edge for zone in zones for edge in (zone.start, zone.end)]
    if edges[0] < 0 or any(zone.start >= zone.end for zone in zones) or edges != sorted(edges):
        return ["hot_zones overlap, or one is empty"]
    shares = [share for zone in zones for share in (zone.reads, zone.others)]
    sums = (sum(shares[::2]), sum(shares[1::2]))
    if not all(0 <= share <= 1 + _ROUNDING for share in shares) or any(abs(total - 1) > _ROUNDING for total in sums):
        return [f"the shares of hot_zones add up to {sums[0]:g} of the reads and {sums[1]:g} of the others, not to 1"]
    return []


def _faults_of_mix(parameters: Parameters) -> list[str]:
    """Whether its parts add up to what blocksize and fraction_read say of it: the largest size, the share of reads."""
    mix = parameters.operations
    if not mix:
        return []
    if len(mix) > MOST_PARTS:
        return [f"operations has {len(mix)} parts; the most is {MOST_PARTS}"]
    if not all(part.bytes >= 1 and 0 < part.share <= 1 + _ROUNDING for part in mix):
        return ["operations has a part without a size, or without a share above 0"]
    if abs(sum(part.share for part in mix) - 1) > _ROUNDING:
        return [f"the shares of operations add up to {sum(part.share for part in mix):g}, not to 1"]
    texts = []
    if max(part.bytes for part in mix) != parameters.blocksize:
        texts.append("blocksize is not the largest of operations")
    reads = sum(part.share for part in mix if part.operation is Operation.READ)
    if abs(reads - parameters.fraction_read) > _ROUNDING:
        texts.append("fraction_read is not the share of reads in operations")
    return texts
