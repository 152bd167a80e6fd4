"""The two state tables: complete, consistent, and used the same way by both ends."""

import pytest

from ivypy.protocol.errors import ProtocolError
from ivypy.protocol.messages import (
    COMMANDS,
    HOST_MESSAGES,
    ClockProbe,
    ClockReading,
    Die,
    Ending,
    Go,
    Hello,
    HostMessage,
    Luns,
    Ok,
    Ready,
    Refused,
    Role,
    Stop,
    Stopped,
    StopReason,
)
from ivypy.protocol.states import ANSWERS, MAY_COMMAND, NEXT, State, check_answer, state_after


def hello(role: Role) -> Hello:
    return Hello(role, 1, "0.1.0", "", "h", 1, "3.11", "6.1", "2.36", "x86_64", (0,), "tsc", ("null",), 65536)


STOPPED = Stopped(StopReason.COMMANDED, 0, 0, 0, 0, 0, 0)


def test_a_step_from_hello_to_idle_again() -> None:
    state = State.CONNECTING
    said: list[tuple[HostMessage, State]] = [
        (hello(Role.SLAVE), State.IDLE),
        (Ok(1, 0), State.IDLE),
        (Ready(2), State.RUNNING),
        (ClockReading(3, 0, 0), State.RUNNING),
        (Ending(4), State.ENDING),
        (STOPPED, State.IDLE),
    ]
    for saying, expected in said:
        state = state_after(state, saying)
        assert state is expected


@pytest.mark.parametrize(
    "state, saying",
    [
        (State.CONNECTING, Ok(1, 0)),
        (State.IDLE, hello(Role.SLAVE)),
        (State.IDLE, STOPPED),
        (State.RUNNING, Ready(1)),
        (State.RUNNING, Luns(1, ())),
        (State.GONE, Ok(1, 0)),
    ],
)
def test_a_message_out_of_turn_names_message_and_state(state: State, saying: HostMessage) -> None:
    with pytest.raises(ProtocolError, match=f"was sent in state {state}"):
        state_after(state, saying)


def test_the_tables_know_every_state_and_message() -> None:
    assert NEXT.keys() == MAY_COMMAND.keys() == set(State)
    assert {saying for row in NEXT.values() for saying in row} == set(HOST_MESSAGES)
    assert {command for row in MAY_COMMAND.values() for command in row} == set(COMMANDS)
    assert ANSWERS.keys() == set(COMMANDS)


def test_every_answer_may_be_sent_where_its_command_is_allowed() -> None:
    for state, commands in MAY_COMMAND.items():
        for command in commands:
            for answer in ANSWERS[command]:
                assert answer in NEXT[state], f"{answer.__name__} in {state}"
            assert Refused in NEXT[state]


def test_an_answer_must_fit_its_command() -> None:
    assert check_answer(ClockProbe, ClockReading(1, 0, 0))
    assert check_answer(Go, Refused(1, ()))
    assert not check_answer(*_listing())
    with pytest.raises(ProtocolError, match="'ok' is no answer to 'stop'"):
        check_answer(Stop, Ok(1, 0))
    with pytest.raises(ProtocolError, match="'ending' is no answer to 'die'"):
        check_answer(Die, Ending(1))


def _listing() -> tuple[type, Luns]:
    from ivypy.protocol.messages import ListLuns

    return ListLuns, Luns(1, ())
