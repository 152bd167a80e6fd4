"""The messages between the controller and its driver processes.

Rule: plain data, pickled between two processes of one installation. `OpenHost` gives each driver a number of its own,
so a host that is connected again is not mistaken for its earlier connection. Messages about a driver are sent in the
order of the events, each with the driver's state at that moment.
"""

from dataclasses import dataclass
from pathlib import Path

from ...protocol.messages import Command, Hello, HostMessage
from ...protocol.payload import Refusal
from ...protocol.states import State
from ..errors import HostFault
from ..hosts.driver import Event
from ..hosts.host_spec import HostSpec
from ..rollup.partial_merge import MergePlaces, PartialMerge

# From the controller.


@dataclass(frozen=True, slots=True)
class Begin:
    """The first message."""

    silence_s: float  # without a message for so long, the process takes the controller for dead


@dataclass(frozen=True, slots=True)
class SignOfLife:
    """A sign of life without other content. The process answers each of the controller's with one."""


@dataclass(frozen=True, slots=True)
class OpenHost:
    """Connect to a host, and drive it."""

    driver: int
    spec: HostSpec
    log: Path


@dataclass(frozen=True, slots=True)
class SendCommand:
    driver: int
    command: Command  # its id is the controller's


@dataclass(frozen=True, slots=True)
class GiveUpHost:
    """Take a host for lost."""

    driver: int
    reason: str


@dataclass(frozen=True, slots=True)
class CloseHost:
    """Close a host's pipe."""

    driver: int


@dataclass(frozen=True, slots=True)
class BeginStep:
    """Where the results of the process's hosts are added in the step that is about to begin."""

    places: MergePlaces


@dataclass(frozen=True, slots=True)
class SumResults:
    """Send the sum of exactly these hosts' results of a subinterval."""

    subinterval: int
    hosts: frozenset[str]


FromController = Begin | SignOfLife | OpenHost | SendCommand | GiveUpHost | CloseHost | BeginStep | SumResults

# From a driver process.


@dataclass(frozen=True, slots=True)
class HostOpened:
    driver: int
    fault: HostFault | None


@dataclass(frozen=True, slots=True)
class HostGreeted:
    driver: int
    state: State
    hello: Hello


@dataclass(frozen=True, slots=True)
class CommandAnswered:
    driver: int
    state: State
    id: int
    answers: tuple[HostMessage, ...]


@dataclass(frozen=True, slots=True)
class CommandFailed:
    """The host, or its driver, refused a command."""

    driver: int
    state: State
    id: int
    refusals: tuple[Refusal, ...]


@dataclass(frozen=True, slots=True)
class DriverEvent:
    """An event of a driver. A result comes without the arrays that only merging needs."""

    driver: int
    state: State
    event: Event
    misfit: str = ""  # why a result cannot be merged
    may_drive_until_ns: int | None = None  # of a lost host, as its driver computed it


@dataclass(frozen=True, slots=True)
class ClockProbed:
    """A host answered a beat."""

    driver: int
    stamps_ns: tuple[int, int, int, int]  # as OffsetEstimator.add takes them
    round_trip_s: float  # recent


@dataclass(frozen=True, slots=True)
class HostClosed:
    driver: int


@dataclass(frozen=True, slots=True)
class SummedResults:
    part: PartialMerge


@dataclass(frozen=True, slots=True)
class ProcessFailed:
    """The last message: the process cannot go on."""

    why: str


FromProcess = (
    SignOfLife
    | HostOpened
    | HostGreeted
    | CommandAnswered
    | CommandFailed
    | DriverEvent
    | ClockProbed
    | HostClosed
    | SummedResults
    | ProcessFailed
)
