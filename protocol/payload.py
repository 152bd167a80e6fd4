"""The contents of messages: bounds of numbers, packed arrays, LUNs and their identities, workloads, refusals, notices.

Rule: as for messages: data, whose field types are its grammar.
"""

import zlib
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Final, NamedTuple, Optional, Union

from .older_python import StrEnum
from .parameters import Parameters

Attribute = Union[int, float, str]


@dataclass(frozen=True)
class Within:
    """Lower and upper bound of a number on the link."""

    low: float
    high: float


# What a host reports is accepted within these alone; a command is checked by the host that executes it.
Instant = Annotated[int, Within(-(1 << 62), 1 << 62)]  # ns on a machine's monotonic clock
Duration = Annotated[int, Within(0, 1 << 60)]  # ns
Natural = Annotated[int, Within(0, (1 << 63) - 1)]
Amount = Annotated[int, Within(0, 1 << 48)]  # of what can be counted one by one
Subinterval = Annotated[int, Within(0, (1 << 32) - 1)]
CoreNumber = Annotated[int, Within(0, 65_535)]
Errno = Annotated[int, Within(0, 65_535)]  # or NVME_STATUS (counters.py) plus a status
Percent = Annotated[float, Within(0, 100)]


class Spin(StrEnum):
    """Whether workload threads busy-wait where they could sleep."""

    OFF = "off"
    AUTO = "auto"  # within a budget
    ON = "on"  # always


@dataclass(frozen=True)
class EngineOptions:
    """How the engine does the I/O on a host, for the whole run: the `engine` of a plan."""

    backend: str = "auto"
    threads: int = 0  # 0: one per core
    cpus: tuple[int, ...] = ()  # the cores that they run on; empty: the host's choice
    spin: Spin = Spin.AUTO
    cpu_dma_latency: Optional[int] = (
        None  # us: no idle state with a longer exit latency is entered; None: host's choice
    )
    polled: bool = False  # io_uring: they poll the devices' queues, which raise no interrupt
    reserved_huge_pages: bool = False  # I/O buffers may take those that the administrator reserved


class ArrayType(StrEnum):
    """Element types of a packed array, all little-endian."""

    U8 = "u1"
    U16 = "u2"
    U32 = "u4"
    U64 = "u8"
    I64 = "i8"
    F64 = "f8"

    @property
    def size(self) -> int:
        return int(self[1])


@dataclass(frozen=True)
class Array:
    """A packed array of numbers; its shape is known from the layout (counters.py and `go`)."""

    type: ArrayType
    data: bytes = field(repr=False)
    packed: bytes = field(default=b"", repr=False, compare=False)  # the zlib stream that it came in, if it came in one

    def __len__(self) -> int:
        return len(self.data) // self.type.size

    @property
    def stream(self) -> bytes:
        """The data, compressed: as it came, else by level 1, dense enough and three times as fast as the default."""
        return self.packed or zlib.compress(self.data, 1)


def packed_numbers(numbers: Iterable[int]) -> Array:
    """Numbers of workloads, u32."""
    return Array(ArrayType.U32, array("I", numbers).tobytes())


@dataclass(frozen=True)
class Identity:
    """Which LUN it is, independent of its path: what a user agrees to have written."""

    machine: str  # a hash that identifies the machine, whatever its name
    size: Natural  # bytes
    facts: tuple[tuple[str, str], ...]  # what distinguishes it: ("wwn", "0x5..."), ("serial", "A1") ...


@dataclass(frozen=True)
class Consent:
    """The user's agreement to have a LUN written."""

    identity: Identity  # of this LUN, and no other
    extents: tuple[
        tuple[Natural, Natural], ...
    ]  # within these: first byte, and the one behind the last; ascending, apart


@dataclass(frozen=True)
class CpuTaken:
    """The causes that kept the slave's threads from running in one subinterval; percentages are of its length.

    0 also where the kernel does not tell.
    """

    others: Percent = 0.0  # of the cores' time: other processes, kernel threads and interrupts
    others_user: Percent = 0.0  # of these, in user mode: certainly processes
    others_beside: Percent = 0.0  # the same of one core: the worst of those that workload threads may run on
    steal: Percent = 0.0  # of the cores' time: taken by the hypervisor
    steal_beside: Percent = 0.0  # of one core, as above
    busiest_beside: Percent = 100.0  # busy time of the busiest of those cores; not known: it may be any
    wait: Percent = 0.0  # for which a workload thread waited for a core (run-queue delay, throttled or not): the worst
    throttled_ns: Duration = 0  # by the CPU quota of a cgroup, summed over cores; of several cgroups the most
    stalled_ns: Duration = 0  # machine stalls: no thread of the slave ran
    longest_stall_ns: Duration = 0


NOTHING_TAKEN: Final = CpuTaken()


class NoticeKind(StrEnum):
    """The subject of a notice. Code that acts on a notice reads its kind, never its text."""

    BACKEND_CHOSEN = "backend_chosen"  # what backend `auto` is, and why
    SPREAD_CHOSEN = "spread_chosen"  # how many threads `spread: auto` is
    CPU_DMA_LATENCY = "cpu_dma_latency"  # cores are not kept out of deep idle states
    KERNEL_THREADS = "kernel_threads"  # io_uring hands the I/Os on some LUNs to kernel threads
    BLOCKING_SUBMITS = "blocking_submits"  # submit calls on some LUNs may delay others on their workload thread
    BUFFER_PAGES = "buffer_pages"  # in which pages the large I/O buffers lie
    FILE_REUSED = "file_reused"  # a file that ivypy created in an earlier run is used as it is
    CREATING_FILES = "creating_files"  # how much of the files is written
    FILES_CREATED = "files_created"
    NOT_INSPECTED = "not_inspected"  # a LUN that could not be inspected again before a step
    UNWRITTEN_EXTENTS = "unwritten_extents"  # reads of parts of a file do not reach the disk
    WRITERS_UNKNOWN = "writers_unknown"  # whether a program has a LUN open for writing is not known
    NO_ANSWER = "no_answer"  # a LUN did not answer a read in time
    NOT_WRITTEN_BACK = "not_written_back"  # a step may pay for writes of an earlier one
    STAYS_CACHED = "stays_cached"  # part of a LUN could not be dropped from the page cache before a step


@dataclass(frozen=True)
class Notice:
    """Something that a person should know: as a message, an event of the host; in a `Lun`, about that LUN."""

    kind: NoticeKind
    text: str


@dataclass(frozen=True)
class Lun:
    """A LUN as its host sees it. What only an inspection finds is empty until then."""

    path: str
    kind: str  # "block" or "file"
    size: Natural  # bytes
    block: Annotated[int, Within(1, 1 << 30)]  # logical block size: O_DIRECT's unit, bytes
    attributes: dict[str, Attribute]
    refusals: tuple[str, ...]  # why it must not be written, a sentence each; empty if it may be
    notices: tuple[Notice, ...]  # what makes numbers from it doubtful
    named: tuple[str, ...] = ()  # of the requested paths, those that lead to it
    identity: Optional[Identity] = None  # None: it was not inspected, or the inspection did not find it
    silent: bool = False  # it did not answer the inspection
    ours: bool = False  # ivypy created it, and nobody but ivypy has written to it since
    holds: tuple[str, ...] = ()  # what would be lost, as far as that shows: its kind, of a file its owner and age, too
    made: bool = False  # it was created for this run; this slave removes it at its exit unless it is kept


@dataclass(frozen=True)
class FileToCreate:
    path: str  # "{}" in it becomes the file's number, from 0
    size: int  # bytes
    count: int
    keep: bool  # else removed when the slave exits


@dataclass(frozen=True)
class WorkloadToCreate:
    number: int  # the controller's, unique on this host; `go` and edits name it
    instance: str  # host+lun+workload, for messages and logs
    lun: str  # path
    consent: Optional[Consent]  # to writing this LUN; None: it is opened read-only
    parameters: Parameters
    ceiling: int  # the most tags that any step or edit of the plan may set; buffers are made for so many
    blocksize_ceiling: int  # the largest blocksize that an edit may set, bytes: the size of each buffer
    fast_tags: int = 0  # the most tags of a step that needs the faster backend; 0: none does


@dataclass(frozen=True)
class Setting:
    """New live settings of one workload instance: its complete parameters after the edit."""

    number: int
    parameters: Parameters


@dataclass(frozen=True)
class Refusal:
    what: str  # the instance, LUN or file
    reason: str  # a sentence with the remedy


class Fact(NamedTuple):
    """One four-tuple of a connector: the unit is declared with the attribute (connector.py)."""

    element: str
    instance: str
    attribute: str
    value: Attribute


class Facts(tuple[Fact, ...]):
    """Many of them: a type of its own, since lines.py reads them by the ten thousand."""
