"""Another target for a step under feedback control, while it runs: which state holds one, and the state after it.

Rule: a target that changes moves no load by itself; control does, with its next decision.
"""

from collections.abc import Mapping
from dataclasses import replace

from .decide import State
from .slo import Watched
from .steer import Steered


def held(state: State) -> Steered | None:
    """What holds a metric at a target in this state; None where nothing does."""
    if isinstance(state, Watched):
        return held(state.state)
    return state if isinstance(state, Steered) else None


def retargeted(state: State, targets: Mapping[str, float], number: int) -> State:
    """`state`, which holds targets, with other ones for these instances since subinterval `number`."""
    if isinstance(state, Watched):
        return replace(state, state=retargeted(state.state, targets, number))
    assert isinstance(state, Steered)
    return state.retargeted(targets, number)
