"""Every message, a frozen dataclass each.

Rule: a message is data. Its field types are its grammar: `lines.py` writes and checks them, so nothing that has
another shape ever becomes a message. Commands go to the far process and carry an `id`; its answers carry that
number in `re`. Times are nanoseconds; `local` ones are on the far machine's monotonic clock.
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Self

from .parameters import Parameters

PROTOCOL_VERSION: Final = 1
MOST_IN_A_LIST: Final = 500  # longer lists travel in several messages

Attribute = int | float | str


class Role(StrEnum):
    SLAVE = "slave"  # drives I/O
    CONNECTOR = "connector"  # reports about something else, as four-tuples


class ArrayType(StrEnum):
    """Element types of a packed array, all little-endian."""

    U32 = "u4"
    U64 = "u8"
    I64 = "i8"

    @property
    def size(self) -> int:
        return int(self[1])


@dataclass(frozen=True, slots=True)
class Array:
    """A packed array of integers; its shape is known from the layout (counters.py and `go`)."""

    type: ArrayType
    data: bytes = field(repr=False)
    packed: bytes = field(default=b"", repr=False, compare=False)  # the zlib stream that it came in, if it came in one

    def __len__(self) -> int:
        return len(self.data) // self.type.size

    @property
    def stream(self) -> bytes:
        """It, compressed: as it came, else level 1, which is dense enough and three times as fast as the default."""
        return self.packed or zlib.compress(self.data, 1)


@dataclass(frozen=True, slots=True)
class Identity:
    """Which LUN it is, whatever path it has by now: what a user agrees to have written. "" where nobody says."""

    size: int  # bytes
    wwn: str = ""
    serial: str = ""

    @classmethod
    def of(cls, size: int, attributes: Mapping[str, Attribute]) -> Self:
        return cls(size, str(attributes.get("wwn", "")), str(attributes.get("serial", "")))


@dataclass(frozen=True, slots=True)
class Lun:
    """A thing that can be driven, as its host sees it."""

    path: str
    kind: str  # "block" or "file"
    size: int  # bytes
    block: int  # logical block size: O_DIRECT's unit, bytes
    attributes: dict[str, Attribute]
    refusals: tuple[str, ...]  # why it must not be written, a sentence each; empty if nothing stands against it
    remarks: tuple[str, ...]  # what makes numbers from it doubtful (unwritten extents ...)
    named: tuple[str, ...] = ()  # of the paths that were asked for, those that lead to it

    @property
    def identity(self) -> Identity:
        return Identity.of(self.size, self.attributes)


@dataclass(frozen=True, slots=True)
class FileToCreate:
    path: str  # "{}" in it becomes the file's number, from 0
    size: int  # bytes
    count: int
    keep: bool  # else removed when the slave exits


@dataclass(frozen=True, slots=True)
class WorkloadToCreate:
    number: int  # the controller's, unique on this host; `go` and edits name it
    instance: str  # host+lun+workload, for messages and logs
    lun: str  # path
    consent: bool  # the user agreed that this LUN is written; else it is opened read-only
    parameters: Parameters
    ceiling: int  # the most tags that any step or edit of the plan may ask for; buffers are made for so many
    blocksize_ceiling: int  # the largest blocksize that an edit may ask for, bytes: the size of each buffer
    seen: Identity | None = None  # which LUN was looked at, and agreed to; None: whichever is there


@dataclass(frozen=True, slots=True)
class Setting:
    """New live settings of one workload instance: its complete parameters after the edit."""

    number: int
    parameters: Parameters


@dataclass(frozen=True, slots=True)
class Refusal:
    what: str  # the instance, LUN or file
    reason: str  # a sentence that says the remedy


# Commands.


@dataclass(frozen=True, slots=True)
class Prepare:
    """What holds for the whole session; the first command. Answer: ok."""

    id: int
    backend: str
    threads: int  # 0: one per core
    lease_ns: int
    cpus: tuple[int, ...] = ()  # the cores that they run on; empty: the host's choice
    spin: bool = False  # they do not sleep while their load is paced
    polled: bool = False  # io_uring: they look for completions in the devices' queues, which raise no interrupt
    sqpoll: bool = False  # io_uring: a kernel thread of each takes its submissions


@dataclass(frozen=True, slots=True)
class ListLuns:
    """Answer: any number of `luns`, then `end`; or `refused`."""

    id: int
    blocks: bool  # list the block devices
    globs: tuple[str, ...]  # and the files that match these
    create: tuple[FileToCreate, ...]  # made first, every byte written once
    tags: int  # I/Os that workloads may then have in flight; nothing is made where the system has no room for them
    paths: tuple[str, ...] = ()  # the block devices that have to be there, by any of their names


@dataclass(frozen=True, slots=True)
class CreateWorkloads:
    id: int
    workloads: tuple[WorkloadToCreate, ...]


@dataclass(frozen=True, slots=True)
class EditWorkloads:
    id: int
    edit: int  # its number in the run, > 0; results name it
    settings: tuple[Setting, ...]


@dataclass(frozen=True, slots=True)
class DeleteWorkloads:
    id: int
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ClockProbe:
    """Heartbeat, lease renewal and offset in one. Answer: `clock_reading`."""

    id: int


@dataclass(frozen=True, slots=True)
class MeasureClock:
    """How good is the clock that would stamp I/Os? Answer: `clock_report`, some seconds after `duration_ns`."""

    id: int
    duration_ns: int  # how long it is compared with the kernel's clocks


@dataclass(frozen=True, slots=True)
class Go:
    """Start a step. `order` (u32) lists workload numbers; `classes` (u32) the merge class of each, 0, 1, 2 ...

    Answer: `ready`, once every thread is.
    """

    id: int
    start_ns: int  # local
    length_ns: int
    order: Array
    classes: Array


@dataclass(frozen=True, slots=True)
class Continue:
    """Subinterval `subinterval` ends at `boundary_ns` (local): k + 2 is placed while k + 1 runs."""

    id: int
    subinterval: int
    boundary_ns: int


@dataclass(frozen=True, slots=True)
class Cooldown:
    """From `subinterval` on, nothing falls due."""

    id: int
    subinterval: int


@dataclass(frozen=True, slots=True)
class Stop:
    """No subinterval after `last`; then catch what is in flight. Answer: `ending`, later `stopped`."""

    id: int
    last: int


@dataclass(frozen=True, slots=True)
class Halt:
    """Submit nothing more from now. Answer: `ending`, the cut result, `stopped`."""

    id: int


@dataclass(frozen=True, slots=True)
class Die:
    """Answer: `dying_words`, then exit."""

    id: int


# Answers and events of a slave.


@dataclass(frozen=True, slots=True)
class Hello:
    """The far process speaks first."""

    role: Role
    protocol: int
    version: str  # of ivypy
    bundle: str  # hash of what was pushed; "" where nothing was
    hostname: str  # as the machine knows itself
    pid: int
    python: str
    kernel: str
    libc: str
    machine: str
    cores: tuple[int, ...]  # that this process may use
    clock_source: str
    backends: tuple[str, ...]
    aio_left: int  # fs.aio-max-nr - fs.aio-nr
    io_uring: tuple[str, ...] = ()  # what the kernel's can do beyond its beginnings


@dataclass(frozen=True, slots=True)
class Ok:
    re: int
    effective_ns: int  # local; when the last thread took an edit, else when it was done


@dataclass(frozen=True, slots=True)
class Refused:
    re: int
    refusals: tuple[Refusal, ...]


@dataclass(frozen=True, slots=True)
class Luns:
    re: int
    luns: tuple[Lun, ...]


@dataclass(frozen=True, slots=True)
class End:
    re: int


@dataclass(frozen=True, slots=True)
class ClockReading:
    re: int
    received_ns: int  # local
    sent_ns: int  # local


@dataclass(frozen=True, slots=True)
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
    kernel_hz: float  # the rate by the kernel's own factors (the perf page); 0: it gives none
    cpuid_hz: float  # the rate by CPUID leaf 0x15; 0: the CPU does not say
    fio_per_ms: tuple[int, ...]  # cycles per millisecond by fio's method, repeated
    fio_hours_ns: tuple[int, ...]  # what fio would take for an hour, by each of these


@dataclass(frozen=True, slots=True)
class Ready:
    """Every thread is ready to start at `go`'s instant."""

    re: int


@dataclass(frozen=True, slots=True)
class Ending:
    """A `stop` or `halt` was accepted: the results still owed come, then `stopped`."""

    re: int


@dataclass(frozen=True, slots=True)
class Fault:
    """I/O errors of one instance in one subinterval."""

    number: int
    errno: int  # 0: short transfers
    count: int


@dataclass(frozen=True, slots=True)
class Result:
    """One subinterval of one host. Layouts: counters.py; instances and classes in the order that `go` gave."""

    subinterval: int
    start_ns: int  # local
    length_ns: int  # as it really was
    last: bool  # the step's last subinterval
    collected_ns: int  # local; when the result was put together
    cpu: tuple[float, ...]  # busy percent per core, the subinterval's; in the order of `hello.cores`
    counts: Array  # i64 (instances, Count)
    moments: Array  # u64 (classes, SERIES, Moment)
    spans: Array  # u32 (classes, SERIES, 2): first used bucket, how many are sent
    buckets: Array  # u32 or u64: the used ranges one after the other
    threads: Array  # i64 (threads, ThreadCount)
    faults: tuple[Fault, ...]
    missing: tuple[int, ...]  # threads that did not hand over; their numbers come with a later result


class StopReason(StrEnum):
    COMMANDED = "commanded"  # stop or halt
    LEASE = "lease"  # the controller was not heard of for the lease's time
    DIED = "died"  # a workload thread could not go on


@dataclass(frozen=True, slots=True)
class Stopped:
    reason: StopReason
    caught: int  # I/Os in flight at the end that completed in time
    uncaught: int  # that did not
    oldest_uncaught_ns: int  # age of the oldest of these
    longest_caught_ns: int  # the longest service time among the caught
    dropped: int  # I/Os that were due and were given up


@dataclass(frozen=True, slots=True)
class DyingWords:
    """Unasked: one thread could not go on. As the answer to `die` (thread -1): goodbye."""

    re: int  # 0 if unasked
    thread: int
    words: str


@dataclass(frozen=True, slots=True)
class Remark:
    """Something a person should know; kept in events.csv."""

    text: str


# A connector's, so that the pipe driver need not know what it drives.


@dataclass(frozen=True, slots=True)
class Config:
    id: int


@dataclass(frozen=True, slots=True)
class Gather:
    id: int
    subinterval: int


@dataclass(frozen=True, slots=True)
class FourTuple:
    element: str
    instance: str
    attribute: str
    value: Attribute


@dataclass(frozen=True, slots=True)
class Facts:
    re: int
    facts: tuple[FourTuple, ...]


Command = (
    Prepare | ListLuns | CreateWorkloads | EditWorkloads | DeleteWorkloads | ClockProbe | MeasureClock | Go | Continue
    | Cooldown | Stop | Halt | Die | Config | Gather
)  # fmt: skip
Saying = (
    Hello | Ok | Refused | Luns | End | ClockReading | ClockReport | Ready | Ending | Result | Stopped | DyingWords
    | Remark | Facts
)  # fmt: skip
Message = Command | Saying

COMMANDS: Final[tuple[type[Command], ...]] = Command.__args__
SAYINGS: Final[tuple[type[Saying], ...]] = Saying.__args__


def word(message: type) -> str:
    """A message type's name on the wire: `ClockProbe` is `clock_probe`."""
    return "".join("_" + c.lower() if c.isupper() else c for c in message.__name__).lstrip("_")


TYPES: Final[dict[str, type[Message]]] = {word(m): m for m in (*COMMANDS, *SAYINGS)}
