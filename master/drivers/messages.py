"""What the controller and its driver processes say to each other.

Rule: plain data, pickled between two processes of one installation. A driver has the number that `Open` gave it, so
that a host that is connected again is not taken for what it was before. All that is said of a driver is said in the
order in which it happened, each with the state in which it then was.
"""

from dataclasses import dataclass
from pathlib import Path

from ...protocol.messages import Command, Hello, HostMessage
from ...protocol.payload import Refusal
from ...protocol.states import State
from ..errors import HostFault
from ..hosts.driver import Event
from ..hosts.spec import HostSpec
from ..rollup.partial_merge import MergePlaces, PartialMerge

# What the controller says.


@dataclass(frozen=True, slots=True)
class Begin:
    """The first of all."""

    silence_s: float  # the controller has gone when nothing is heard of it for so long


@dataclass(frozen=True, slots=True)
class Alive:
    """Whoever says it goes on, and has nothing else to say. The process says it to each of the controller's."""


@dataclass(frozen=True, slots=True)
class Open:
    """Connect to a host, and drive it."""

    driver: int
    spec: HostSpec
    log: Path


@dataclass(frozen=True, slots=True)
class Ask:
    driver: int
    command: Command  # its id is the controller's


@dataclass(frozen=True, slots=True)
class Lose:
    """Give a host up."""

    driver: int
    reason: str


@dataclass(frozen=True, slots=True)
class Close:
    """Close a host's pipe."""

    driver: int


@dataclass(frozen=True, slots=True)
class BeginStep:
    """The places of the process's hosts in the step that is about to begin."""

    places: MergePlaces


@dataclass(frozen=True, slots=True)
class AddUp:
    """Give the sum of exactly these hosts' results of a subinterval."""

    subinterval: int
    hosts: frozenset[str]


FromController = Begin | Alive | Open | Ask | Lose | Close | BeginStep | AddUp

# What a driver process says.


@dataclass(frozen=True, slots=True)
class Opened:
    driver: int
    fault: HostFault | None


@dataclass(frozen=True, slots=True)
class Greeted:
    driver: int
    state: State
    hello: Hello


@dataclass(frozen=True, slots=True)
class Answered:
    driver: int
    state: State
    id: int
    sayings: tuple[HostMessage, ...]


@dataclass(frozen=True, slots=True)
class NotDone:
    """The host refused a command, or its driver did."""

    driver: int
    state: State
    id: int
    refusals: tuple[Refusal, ...]


@dataclass(frozen=True, slots=True)
class Said:
    """What a driver puts into its inbox. A result comes without the arrays that only merging needs."""

    driver: int
    state: State
    event: Event
    misfit: str = ""  # why a result cannot be merged
    may_drive_until_ns: int | None = None  # of a host that is lost, as its driver has it


@dataclass(frozen=True, slots=True)
class Probed:
    """A beat was answered."""

    driver: int
    stamps_ns: tuple[int, int, int, int]  # as OffsetEstimator.add takes them
    round_trip_s: float  # as of late


@dataclass(frozen=True, slots=True)
class Closed:
    driver: int


@dataclass(frozen=True, slots=True)
class Sum:
    part: PartialMerge


@dataclass(frozen=True, slots=True)
class Failed:
    """The last of all: the process cannot go on."""

    why: str


FromProcess = Alive | Opened | Greeted | Answered | NotDone | Said | Probed | Closed | Sum | Failed
