"""Which messages a far process may send next, and which commands it accepts: two tables.

Rule: the state is a function of what the far process has *sent*. It changes when an answer is sent (there) or
received (here), never when a command is, so both ends have the same state without a clock. A message that has no entry
is a protocol error of the far end. A command in a state that does not allow it was overtaken by an event: it gets
`refused`, which is no fault of anyone's.
"""

from typing import Final

from .errors import ProtocolError
from .messages import (
    ClockProbe,
    ClockReading,
    ClockReport,
    Command,
    Continue,
    Cooldown,
    CreateFiles,
    CreateWorkloads,
    DeleteWorkloads,
    Die,
    DyingWords,
    EditWorkloads,
    ElementsFound,
    End,
    Ending,
    FindElements,
    Go,
    Halt,
    Hello,
    HostMessage,
    InspectLuns,
    ListLuns,
    Luns,
    MeasureClock,
    Ok,
    Prepare,
    Ready,
    Refused,
    ReinspectLuns,
    Result,
    Stop,
    Stopped,
    wire_name,
)
from .older_python import StrEnum
from .payload import Notice


class State(StrEnum):
    CONNECTING = "connecting"  # nothing was sent yet
    IDLE = "idle"  # a slave between steps
    RUNNING = "running"  # a step's subintervals
    ENDING = "ending"  # stop or halt accepted; results outstanding
    GONE = "gone"  # has sent its dying words


_ANYTIME: Final[tuple[type[HostMessage], ...]] = (Ok, Refused, ClockReading, ElementsFound, Notice)

NEXT: Final[dict[State, dict[type[HostMessage], State]]] = {
    State.CONNECTING: {Hello: State.IDLE},
    State.IDLE: {
        **dict.fromkeys((*_ANYTIME, Luns, End, ClockReport), State.IDLE),
        Ready: State.RUNNING,
        DyingWords: State.GONE,
    },
    State.RUNNING: {
        **dict.fromkeys((*_ANYTIME, Result), State.RUNNING),
        Ending: State.ENDING,
        Stopped: State.IDLE,  # as an event: the lease ran out, or a thread died
        DyingWords: State.RUNNING,
    },
    State.ENDING: {
        **dict.fromkeys((*_ANYTIME, Ending, Result, DyingWords), State.ENDING),
        Stopped: State.IDLE,
    },
    State.GONE: {},
}

MAY_COMMAND: Final[dict[State, frozenset[type[Command]]]] = {
    State.CONNECTING: frozenset(),
    State.IDLE: frozenset(
        {
            Prepare,
            ListLuns,
            InspectLuns,
            CreateFiles,
            CreateWorkloads,
            EditWorkloads,
            DeleteWorkloads,
            ReinspectLuns,
            FindElements,
            ClockProbe,
            MeasureClock,
            Go,
            Die,
        }
    ),
    State.RUNNING: frozenset({EditWorkloads, ClockProbe, Continue, Cooldown, Stop, Halt}),
    State.ENDING: frozenset({ClockProbe, Halt}),
    State.GONE: frozenset(),
}


# The answers to each command, besides `refused`; the last one ends the answer.
ANSWERS: Final[dict[type[Command], tuple[type[HostMessage], ...]]] = {
    **dict.fromkeys(
        (Prepare, CreateWorkloads, EditWorkloads, DeleteWorkloads, ReinspectLuns, Continue, Cooldown), (Ok,)
    ),
    **dict.fromkeys((ListLuns, InspectLuns, CreateFiles), (Luns, End)),
    ClockProbe: (ClockReading,),
    FindElements: (ElementsFound,),
    MeasureClock: (ClockReport,),
    Go: (Ready,),
    Stop: (Ending,),
    Halt: (Ending,),
    Die: (DyingWords,),
}


def state_after(state: State, message: HostMessage) -> State:
    """The state after `message` was sent.

    Raises ProtocolError, naming message and state, where the table has no entry.
    """
    try:
        return NEXT[state][type(message)]
    except KeyError:
        raise ProtocolError(
            f"{wire_name(type(message))!r} was sent in state {state}, which does not allow it"
        ) from None


def check_answer(command: type[Command], message: HostMessage) -> bool:
    """Whether `message` ends the answer to a command of that type. Raises ProtocolError if it is no answer to it."""
    if isinstance(message, Refused):
        return True
    allowed = ANSWERS[command]
    if type(message) not in allowed:
        raise ProtocolError(f"{wire_name(type(message))!r} is no answer to {wire_name(command)!r}")
    return type(message) is allowed[-1]


def may_command(state: State, command: Command) -> bool:
    """Whether a far process in `state` accepts `command`; if not, it answers `refused`."""
    return type(command) in MAY_COMMAND[state]


def state_tables() -> str:
    """Both tables in Markdown, for ARCHITECTURE.md: printed from the code, so that they cannot differ."""
    lines = ["| state | accepts | may send (and is then) |", "|---|---|---|"]
    for state in State:
        commands = ", ".join(sorted(f"`{wire_name(command)}`" for command in MAY_COMMAND[state])) or "-"
        sent: dict[State, list[str]] = {}
        for message, after in NEXT[state].items():
            sent.setdefault(after, []).append(f"`{wire_name(message)}`")
        sends = "; ".join(
            f"{', '.join(sorted(messages))}" + (f" → **{after}**" if after is not state else "")
            for after, messages in sent.items()
        )
        lines.append(f"| **{state}** | {commands} | {sends or '-'} |")
    lines += ["", "| command | answer (or `refused`) |", "|---|---|"]
    for command, answers in ANSWERS.items():
        lines.append(f"| `{wire_name(command)}` | {', then '.join(f'`{wire_name(answer)}`' for answer in answers)} |")
    return "\n".join(lines) + "\n"
