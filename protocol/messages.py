"""Every message, a frozen dataclass each; what they carry is in payload.py.

Rule: a message is data. Its field types are its grammar: `lines.py` writes and checks them, so nothing that has
another shape ever becomes a message. Commands go to the far process and carry an `id`; its answers carry that
number in `re`. Times are nanoseconds; `local` ones are on the far machine's monotonic clock.
"""

from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Final, Union, get_args

from .connector import ElementMetric
from .older_python import StrEnum
from .payload import (
    NOTHING_TAKEN,
    Amount,
    Array,
    ArrayType,
    Attribute,
    CoreNumber,
    CpuTaken,
    Duration,
    EngineOptions,
    Errno,
    Facts,
    FileToCreate,
    Identity,
    Instant,
    Lun,
    Natural,
    Notice,
    Percent,
    Refusal,
    Setting,
    Subinterval,
    Within,
    WorkloadToCreate,
)

PROTOCOL_VERSION: Final = 5
NO_NUMBERS: Final = Array(ArrayType.U32, b"")
NO_SECTIONS: Final = Array(ArrayType.U64, b"")
MOST_IN_A_LIST: Final = 500  # longer lists travel in several messages
MOST_ELEMENTS: Final = 20_000  # that a host reads
MOST_READINGS: Final = 8  # in a result


class Role(StrEnum):
    SLAVE = "slave"  # drives I/O


# Commands.


@dataclass(frozen=True)
class Prepare:
    """The settings of the whole session; the first command. Answer: ok."""

    id: int
    engine: EngineOptions
    lease_ns: int
    patience_ns: int = (
        60 * 10**9
    )  # how long it may be silent between steps, or prepare without progress, before it is lost


@dataclass(frozen=True)
class ListLuns:
    """List LUNs without opening any. Answer: any number of `luns`, then `end`; or `refused`."""

    id: int
    blocks: bool  # list the block devices
    globs: tuple[str, ...]  # and the files that match these
    paths: tuple[str, ...] = ()  # the block devices that have to be there, by any of their names


@dataclass(frozen=True)
class InspectLuns:
    """Open these and read from them: their identities, the reasons against writing them. Answer: as to `list_luns`."""

    id: int
    paths: tuple[str, ...]  # as they were listed
    create: tuple[FileToCreate, ...]  # and these files, as far as they are there


@dataclass(frozen=True)
class CreateFiles:
    """Every byte is written once. Answer: as to `list_luns`, these files as they are now."""

    id: int
    files: tuple[FileToCreate, ...]
    used: tuple[tuple[str, Identity], ...]  # (path, which): those that are there and are used as was agreed
    tags: int  # I/Os that workloads may then have in flight; nothing is made where the system has no room for them
    made: tuple[str, ...] = ()  # of `used`, those that a slave which is no more made for this run


@dataclass(frozen=True)
class CreateWorkloads:
    """They are created, and dealt over threads, together with those of the messages before that had `more`."""

    id: int
    workloads: tuple[WorkloadToCreate, ...]
    more: bool = False  # another message with some of them follows; nothing is created before it


@dataclass(frozen=True)
class EditWorkloads:
    id: int
    edit: int  # its number in the run, > 0; results name it
    settings: tuple[Setting, ...]


@dataclass(frozen=True)
class DeleteWorkloads:
    id: int
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class ReinspectLuns:
    """Check every LUN that is open for writing again, before a step. Answer: ok; or `refused` with what must not be.

    Then what earlier steps wrote through the page cache is written back, and LUNs of instances with `direct: false` and
    `drop_cache` are dropped from it. `order` (u32) lists the workload numbers of the step, as in `go`.
    """

    id: int
    order: Array = NO_NUMBERS


@dataclass(frozen=True)
class FindElements:
    """Find what these LUNs are on; results then have readings of that and of the host. Answer: `elements_found`."""

    id: int
    luns: tuple[str, ...]  # paths


@dataclass(frozen=True)
class ClockProbe:
    """Heartbeat, lease renewal and offset in one. Answer: `clock_reading`.

    `newest_stamp_ns` proves how old the probe is: it was sent after that instant, so the lease runs from there, however
    long the probe was under way or waited to be read.
    """

    id: int
    newest_stamp_ns: Instant = 0  # local: the newest stamp of this slave's that the controller had read; 0: none


@dataclass(frozen=True)
class MeasureClock:
    """Measure the clock that would stamp I/Os. Answer: `clock_report`, some seconds after `duration_ns`."""

    id: int
    duration_ns: int  # how long it is compared with the kernel's clocks


@dataclass(frozen=True)
class Go:
    """Start a step. `order` (u32) lists workload numbers; `classes` (u32) the merge class of each, 0, 1, 2 ...;
    `sections`: in how many of each LUN I/Os are counted by address, 0: in none.

    Answer: `ready`, once every thread is.
    """

    id: int
    start_ns: Instant  # local
    length_ns: int
    order: Array
    classes: Array
    sections: int = 0


@dataclass(frozen=True)
class Continue:
    """Subinterval `subinterval` ends at `boundary_ns` (local): k + 2 is placed while k + 1 runs.

    It renews the lease as a `clock_probe` does, and its `ok` serves as a clock reading.
    """

    id: int
    subinterval: int
    boundary_ns: Instant
    newest_stamp_ns: Instant = 0


@dataclass(frozen=True)
class Cooldown:
    """From `subinterval` on, nothing falls due."""

    id: int
    subinterval: int


@dataclass(frozen=True)
class Stop:
    """No subinterval after `last`; then wait for the I/Os in flight. Answer: `ending`, later `stopped`."""

    id: int
    last: int


@dataclass(frozen=True)
class Halt:
    """Submit nothing more from now. Answer: `ending`, the cut result, `stopped`."""

    id: int


@dataclass(frozen=True)
class Die:
    """Answer: `dying_words`, then exit."""

    id: int


# Answers and events of a slave.


@dataclass(frozen=True)
class Hello:
    """The first message, sent by the far process."""

    role: Role
    protocol: int
    version: str  # of ivypy
    bundle: str  # hash of what was pushed; "" where nothing was
    hostname: str  # as the machine knows itself
    pid: Natural
    python: str
    kernel: str
    libc: str
    machine: str
    cores: tuple[CoreNumber, ...]  # that this process may use
    clock_source: str
    backends: tuple[str, ...]
    aio_left: int  # fs.aio-max-nr - fs.aio-nr
    io_uring: tuple[str, ...] = ()  # what the kernel's can do beyond its beginnings
    facts: dict[str, Attribute] = field(default_factory=dict)  # what else it is: HOST_FACTS of the controller's columns


@dataclass(frozen=True)
class Ok:
    re: int
    effective_ns: Instant  # local; when the last thread took an edit, else when it was done
    discarded: Natural = 0  # I/Os of the backlog that an edit discarded, since it changed their rate
    backend: str = ""  # that instances were created with, once backend `auto` has been decided; else ""


@dataclass(frozen=True)
class Refused:
    re: int
    refusals: tuple[Refusal, ...]


@dataclass(frozen=True)
class Luns:
    re: int
    luns: tuple[Lun, ...]


@dataclass(frozen=True)
class End:
    re: int


@dataclass(frozen=True)
class ElementsFound:
    """The elements that a host reads at the end of each subinterval, and their metrics.

    A reading has a cell for each metric of each element: element type after element type in the order of `metrics`, in
    it instance after instance.
    """

    re: int
    metrics: tuple[ElementMetric, ...]
    instances: dict[str, tuple[str, ...]]  # by element type; one without instances may be left out
    facts: Facts  # which element belongs to which LUN, by its path


@dataclass(frozen=True)
class ClockReading:
    re: int
    received_ns: Instant  # local
    sent_ns: Instant  # local
    done: Natural = 0  # what its worker thread has done, in single steps; it grows for as long as a command gets on


@dataclass(frozen=True)
class ClockReport:
    """The CPU's cycle counter, measured against the kernel's clocks. Without one, what concerns it is 0 or empty."""

    re: int
    refusal: str  # why the counter does not stamp I/Os, a sentence; "" where it does
    clock_source: str  # the kernel's
    cores: int
    turns: int  # how often the core with the fewest read the counter right after another one had
    backwards: int  # how often it read less than the other
    worst_ticks: int  # by how much, at most
    least_step_ticks: int  # the shortest step from core to core: smaller offsets stay unseen
    counter_cost_ns: float  # of one reading, converted
    kernel_cost_ns: float  # of one reading of CLOCK_MONOTONIC
    duration_ns: int
    rate_hz: float  # over all that time, against CLOCK_MONOTONIC
    raw_rate_hz: float  # against CLOCK_MONOTONIC_RAW
    rates_hz: tuple[float, ...]  # of its parts, each a calibration of its own
    widest_ticks: int  # of the brackets in which the anchors lie
    error_ns: float  # calibrated in the first part, how far ahead of CLOCK_MONOTONIC at the end of the last
    raw_error_ns: float  # the same with CLOCK_MONOTONIC_RAW
    kernel_hz: float  # the rate by the kernel's own factors (the perf page); 0: it has none
    cpuid_hz: float  # the rate by CPUID leaf 0x15; 0: the CPU does not report it
    fio_per_ms: tuple[int, ...]  # cycles per millisecond by fio's method, repeated
    fio_hours_ns: tuple[int, ...]  # what fio would take for an hour, by each of these


@dataclass(frozen=True)
class Ready:
    """Every thread is ready to start at `go`'s instant."""

    re: int


@dataclass(frozen=True)
class Ending:
    """A `stop` or `halt` was accepted: the outstanding results follow, then `stopped`."""

    re: int


@dataclass(frozen=True)
class IoFault:
    """I/O errors of one instance in one subinterval."""

    number: Natural
    errno: Errno  # 0: short transfers
    count: Amount


@dataclass(frozen=True)
class HostReadings:
    """The values of its elements that a host read at the end of a subinterval."""

    subinterval: Annotated[int, Within(-1, (1 << 32) - 1)]  # -1: at the start of the step
    start_ns: Instant  # local; before the first value was read
    end_ns: Instant  # after the last one
    stamps: tuple[Instant, ...]  # of each element type that has a metric: when its values were read
    values: Array  # f8 (cells,), nan where there is none


@dataclass(frozen=True)
class Result:
    """One subinterval of one host. Layouts: counters.py; instances and classes in the order that `go` gave."""

    subinterval: Subinterval
    start_ns: Instant  # local
    length_ns: Duration  # as it really was
    last: bool  # the step's last subinterval
    collected_ns: Instant  # local; when the result was put together
    cpu: tuple[Percent, ...]  # busy percent per core, the subinterval's; in the order of `hello.cores`
    counts: Array  # i64 (instances, Count)
    moments: Array  # u64 (classes, SERIES, Moment)
    spans: Array  # u32 (classes, SERIES, 2): first used bucket, how many are sent
    buckets: Array  # u32 or u64: the used ranges one after the other
    threads: Array  # i64 (threads, ThreadCount)
    faults: tuple[IoFault, ...]
    missing: tuple[Natural, ...]  # threads that did not hand over their buffer; their counts are in a later result
    taken: CpuTaken = NOTHING_TAKEN
    sections: Array = NO_SECTIONS  # u64 (instances, sections, SectionCount)
    readings: tuple[HostReadings, ...] = ()  # of this subinterval, behind those that were not ready for earlier results


class StopReason(StrEnum):
    COMMANDED = "commanded"  # stop or halt
    LEASE = "lease"  # no command of the controller arrived within the lease
    DIED = "died"  # a workload thread could not go on


@dataclass(frozen=True)
class Stopped:
    reason: StopReason
    caught: Amount  # I/Os in flight at the end that completed in time
    failed: Amount  # that came back in time, with an error or short
    uncaught: Amount  # that did not come back
    oldest_uncaught_ns: Duration  # age of the oldest of these
    longest_caught_ns: Duration  # the longest service time among those that came back
    dropped: Natural  # I/Os that were due and were given up


@dataclass(frozen=True)
class DyingWords:
    """As an event: one thread could not go on. As the answer to `die` (thread -1): goodbye."""

    re: int  # 0: an event
    thread: Annotated[int, Within(-1, 65_535)]
    words: str
    clean: bool = False  # as the answer to `die`: nothing went wrong, and nothing is left on the host


Command = Union[
    Prepare, ListLuns, InspectLuns, CreateFiles, CreateWorkloads, EditWorkloads, DeleteWorkloads, ReinspectLuns,
    FindElements, ClockProbe, MeasureClock, Go, Continue, Cooldown, Stop, Halt, Die,
]  # fmt: skip
HostMessage = Union[
    Hello,
    Ok,
    Refused,
    Luns,
    End,
    ElementsFound,
    ClockReading,
    ClockReport,
    Ready,
    Ending,
    Result,
    Stopped,
    DyingWords,
    Notice,
]
Message = Union[Command, HostMessage]

COMMANDS: Final[tuple[type[Command], ...]] = get_args(Command)
HOST_MESSAGES: Final[tuple[type[HostMessage], ...]] = get_args(HostMessage)


def wire_name(message: type) -> str:
    """A message type's name on the wire: `ClockProbe` is `clock_probe`."""
    return _wire_name(message.__name__)


@cache  # each message of a run asks for it several times
def _wire_name(name: str) -> str:
    return "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")


TYPES: Final[dict[str, type[Message]]] = {wire_name(m): m for m in (*COMMANDS, *HOST_MESSAGES)}
