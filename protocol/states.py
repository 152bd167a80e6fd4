"""What a far process may say next, and what it may be commanded: two tables.

Rule: the state is a function of what the far process has *said*. It changes when an answer is sent (there) or
received (here), never when a command is, so both ends agree without a clock. A saying that has no entry is a
protocol error of the far end. A command in a state that does not allow it was overtaken by an event: it gets
`refused`, which is no fault of anyone's.
"""

from enum import StrEnum
from typing import Final

from .errors import ProtocolError
from .messages import (
    ClockProbe,
    ClockReading,
    ClockReport,
    Command,
    Config,
    Continue,
    Cooldown,
    CreateFiles,
    CreateWorkloads,
    DeleteWorkloads,
    Die,
    DyingWords,
    EditWorkloads,
    End,
    Ending,
    Facts,
    Gather,
    Go,
    Halt,
    Hello,
    ListLuns,
    LookAgain,
    LookAtLuns,
    Luns,
    MeasureClock,
    Ok,
    Prepare,
    Ready,
    Refused,
    Result,
    Saying,
    Stop,
    Stopped,
    word,
)
from .payload import Notice


class State(StrEnum):
    CONNECTING = "connecting"  # nothing said yet
    IDLE = "idle"  # a slave between steps
    RUNNING = "running"  # a step's subintervals
    ENDING = "ending"  # stop or halt accepted; results still owed
    REPORTING = "reporting"  # a connector
    GONE = "gone"  # has said its dying words


_ANYTIME: Final[tuple[type[Saying], ...]] = (Ok, Refused, ClockReading, Notice)

NEXT: Final[dict[State, dict[type[Saying], State]]] = {
    State.CONNECTING: {Hello: State.IDLE},  # a connector's hello leads to REPORTING: see after()
    State.IDLE: {
        **dict.fromkeys((*_ANYTIME, Luns, End, ClockReport), State.IDLE),
        Ready: State.RUNNING,
        DyingWords: State.GONE,
    },
    State.RUNNING: {
        **dict.fromkeys((*_ANYTIME, Result), State.RUNNING),
        Ending: State.ENDING,
        Stopped: State.IDLE,  # unasked: the lease ran out, or a thread died
        DyingWords: State.RUNNING,
    },
    State.ENDING: {
        **dict.fromkeys((*_ANYTIME, Ending, Result, DyingWords), State.ENDING),
        Stopped: State.IDLE,
    },
    State.REPORTING: {
        **dict.fromkeys((*_ANYTIME, Facts), State.REPORTING),
        DyingWords: State.GONE,
    },
    State.GONE: {},
}

MAY_COMMAND: Final[dict[State, frozenset[type[Command]]]] = {
    State.CONNECTING: frozenset(),
    State.IDLE: frozenset(
        {
            Prepare,
            ListLuns,
            LookAtLuns,
            CreateFiles,
            CreateWorkloads,
            EditWorkloads,
            DeleteWorkloads,
            LookAgain,
            ClockProbe,
            MeasureClock,
            Go,
            Die,
        }
    ),
    State.RUNNING: frozenset({EditWorkloads, ClockProbe, Continue, Cooldown, Stop, Halt}),
    State.ENDING: frozenset({ClockProbe, Halt}),
    State.REPORTING: frozenset({ClockProbe, Config, Gather, Die}),
    State.GONE: frozenset(),
}


# What each command may be answered with, `refused` apart; the last one ends the answer.
ANSWERS: Final[dict[type[Command], tuple[type[Saying], ...]]] = {
    **dict.fromkeys((Prepare, CreateWorkloads, EditWorkloads, DeleteWorkloads, LookAgain, Continue, Cooldown), (Ok,)),
    **dict.fromkeys((ListLuns, LookAtLuns, CreateFiles), (Luns, End)),
    ClockProbe: (ClockReading,),
    MeasureClock: (ClockReport,),
    Go: (Ready,),
    Stop: (Ending,),
    Halt: (Ending,),
    Die: (DyingWords,),
    Config: (Facts,),
    Gather: (Facts,),
}


def after(state: State, saying: Saying) -> State:
    """The state once `saying` has been said.

    Raises ProtocolError, naming saying and state, where the table has no entry.
    """
    if isinstance(saying, Hello) and saying.role == "connector" and state is State.CONNECTING:
        return State.REPORTING
    try:
        return NEXT[state][type(saying)]
    except KeyError:
        raise ProtocolError(f"{word(type(saying))!r} was said in state {state}, which does not allow it") from None


def check_answer(command: type[Command], saying: Saying) -> bool:
    """Whether `saying` ends the answer to a command of that type. Raises ProtocolError if it is none of its answers."""
    if isinstance(saying, Refused):
        return True
    allowed = ANSWERS[command]
    if type(saying) not in allowed:
        raise ProtocolError(f"{word(type(saying))!r} is no answer to {word(command)!r}")
    return type(saying) is allowed[-1]


def may_command(state: State, command: Command) -> bool:
    """Whether a far process in `state` accepts `command`; if not, it answers `refused`."""
    return type(command) in MAY_COMMAND[state]


def state_tables() -> str:
    """Both tables in Markdown, for ARCHITECTURE.md: printed from the code, so that they cannot differ."""
    lines = ["| state | may be commanded | may say (and is then) |", "|---|---|---|"]
    for state in State:
        commands = ", ".join(sorted(f"`{word(command)}`" for command in MAY_COMMAND[state])) or "-"
        said: dict[State, list[str]] = {}
        for saying, after in NEXT[state].items():
            said.setdefault(after, []).append(f"`{word(saying)}`")
        says = "; ".join(
            f"{', '.join(sorted(sayings))}" + (f" → **{after}**" if after is not state else "")
            for after, sayings in said.items()
        )
        lines.append(f"| **{state}** | {commands} | {says or '-'} |")
    lines += ["", "| command | answer (or `refused`) |", "|---|---|"]
    for command, answers in ANSWERS.items():
        lines.append(f"| `{word(command)}` | {', then '.join(f'`{word(answer)}`' for answer in answers)} |")
    return "\n".join(lines) + "\n"
