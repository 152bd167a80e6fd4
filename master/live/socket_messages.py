"""Messages on a run's control socket: requests of a user's commands, answers of the run, and its reports.

Rule: one request a connection at a time, answered by exactly one answer; after `follow` come the run's reports until
it ends. The lines are the link's own (protocol/lines.py), the limits are smaller: a request is short.
"""

import re
from dataclasses import dataclass
from typing import Final

from ...protocol.lines import LONGEST_LINE
from ...protocol.messages import wire_name
from ..summary.measured import StepEnds
from .reports import EventLine, Instances, MeasuredSoFar, Report, RunBegins, RunEnds, RunStatus, StepBegins, Subinterval

LONGEST_REQUEST: Final = 64 << 10  # bytes of a line
LONGEST_ANSWER: Final = LONGEST_LINE
VIA: Final = re.compile(r"[\w .:%/\[\]-]{1,100}", re.ASCII)


@dataclass(frozen=True, slots=True)
class StatusRequest:
    """How does it stand?"""

    by: str = ""  # a rollup type, whose instances are wanted too


@dataclass(frozen=True, slots=True)
class FollowRequest:
    """Send every report from now on."""

    by: str = ""  # a rollup type: after each subinterval, its instances too


@dataclass(frozen=True, slots=True)
class EditRequest:
    words: tuple[str, ...]  # as on the command line: clauses and settings
    force: bool  # also where control sets the iops


@dataclass(frozen=True, slots=True)
class StopRequest:
    """As the first Ctrl-C."""


@dataclass(frozen=True, slots=True)
class SkipRequest:
    """End the running step with what it has measured, and go on with the next one."""


@dataclass(frozen=True, slots=True)
class PauseRequest:
    """No I/O until `unpause`."""


@dataclass(frozen=True, slots=True)
class UnpauseRequest:
    """Back to the load from before the pause."""


@dataclass(frozen=True, slots=True)
class MarkRequest:
    text: str  # for events.csv


@dataclass(frozen=True, slots=True)
class ViaRequest:
    """The requests that follow on this connection come through a program: for the author in events.csv."""

    via: str  # "ivypy web from 127.0.0.1"


Request = (
    StatusRequest
    | FollowRequest
    | ViaRequest
    | EditRequest
    | StopRequest
    | SkipRequest
    | PauseRequest
    | UnpauseRequest
    | MarkRequest
)


@dataclass(frozen=True, slots=True)
class HostAnswer:
    """When a host took a change."""

    host: str
    utc: str  # its last workload thread had it
    subinterval: int
    failed: str  # why it did not, "" if it did


@dataclass(frozen=True, slots=True)
class Changed:
    """A change was made."""

    what: str  # old and new values; "" where nothing was different
    took: tuple[HostAnswer, ...]
    discarded: int = 0  # overdue I/Os, by a change of the rate
    restarts: bool = False  # the measurement begins again
    step_remaining_s: float | None = None  # where that moves the end of the step


@dataclass(frozen=True, slots=True)
class Done:
    """The request is done, or under way."""

    text: str


@dataclass(frozen=True, slots=True)
class Rejection:
    """Nothing was done."""

    reasons: tuple[str, ...]


Answer = Changed | Done | Rejection | RunStatus

REQUESTS: Final[dict[str, type[Request]]] = {
    wire_name(kind): kind
    for kind in (
        StatusRequest,
        FollowRequest,
        ViaRequest,
        EditRequest,
        StopRequest,
        SkipRequest,
        PauseRequest,
        UnpauseRequest,
        MarkRequest,
    )
}
ANSWERS: Final[dict[str, type[Answer | Report]]] = {
    wire_name(kind): kind
    for kind in (
        Changed,
        Done,
        Rejection,
        RunStatus,
        RunBegins,
        StepBegins,
        Subinterval,
        Instances,
        MeasuredSoFar,
        StepEnds,
        EventLine,
        RunEnds,
    )
}
