"""`on_invalid`: what follows where a step is invalid; and the names of steps that run more than once: attempts (`max`,
`max+attempt=2` ...) and rounds (`mix+round=1`, `mix+round=2` ...).

Rule: the last attempt is the one that counts; each round does. Nothing heavy is imported, so that reading logs stays
fast.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

MOST_REPEATS: Final = 100
ATTEMPT: Final = "+attempt="  # in no other step's name
ROUND: Final = "+round="  # likewise
ROUND_COLUMN: Final = "round"  # of summaries, beside those of what a loop sets
PATTERN: Final = "(continue|stop|repeat [1-9][0-9]{0,2})"


@dataclass(frozen=True, slots=True)
class OnInvalid:
    """How the run goes on where a step's verdict is invalid; by default the run goes on with the next step."""

    stop: bool = False  # the run ends
    repeats: int = 0  # the step runs again, up to so many times more, while it is invalid

    def __str__(self) -> str:
        return "stop" if self.stop else f"repeat {self.repeats}" if self.repeats else "continue"


def parse_on_invalid(text: str) -> OnInvalid:
    """From `continue`, `stop` or `repeat 2`. Raises ValueError."""
    if not re.fullmatch(PATTERN, text):
        raise ValueError(f"{text!r} is none of continue, stop and repeat with a number, like 'repeat 2'")
    action, _, number = text.partition(" ")
    if int(number or 0) > MOST_REPEATS:
        raise ValueError(f"{text!r} is more than {MOST_REPEATS} repeats")
    return OnInvalid(action == "stop", int(number or 0))


def attempt_name(step: str, attempt: int) -> str:
    """The name of an attempt, from 1, of a step of the plan."""
    return step if attempt == 1 else f"{step}{ATTEMPT}{attempt}"


def step_of_attempt(name: str) -> str:
    """The plan's step of which this is an attempt."""
    return name.partition(ATTEMPT)[0]


def round_name(step: str, number: int) -> str:
    """The name of a step of the plan in a round, from 1."""
    return f"{step}{ROUND}{number}"


def step_of_plan(name: str) -> str:
    """The plan's step of which this is an attempt, or a round, or both."""
    return step_of_attempt(name).partition(ROUND)[0]


def attempts_that_count(names: Collection[str]) -> frozenset[str]:
    """Of the steps of a run, in their order, the last attempt of each."""
    return frozenset({step_of_attempt(name): name for name in names}.values())


def last_of_each(names: Collection[str]) -> frozenset[str]:
    """Of the steps of a run, in their order, the last attempt of each in its last round."""
    return frozenset({step_of_plan(name): name for name in names}.values())
