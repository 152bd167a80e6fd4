"""The table of a step's states: what may follow on what, and what each state means for the measurement."""

import pytest

from ivypy.master.run.step.step_states import NEXT, Change, StepProgress, StepState


def test_every_state_is_in_the_table_and_reached_from_running() -> None:
    assert set(NEXT) == set(StepState)
    reached = {StepState.RUNNING}
    for _ in StepState:
        reached |= {after for state in reached for after in NEXT[state].values()}
    assert reached == set(StepState)


@pytest.mark.parametrize(
    ("changes", "deciding", "complete", "halted"),
    [
        ((), True, False, False),
        ((Change.DONE,), False, True, False),
        ((Change.DONE, Change.HALT), False, True, True),
        ((Change.HALT,), False, False, True),
        ((Change.NO_HOST,), False, False, False),
        ((Change.NO_HOST, Change.HALT), False, False, True),
    ],
)
def test_a_halt_before_control_is_done_cuts_the_measurement_and_one_after_it_does_not(
    changes: tuple[Change, ...], deciding: bool, complete: bool, halted: bool
) -> None:
    progress = StepProgress()
    for change in changes:
        progress.move(change)
    assert (progress.is_deciding, progress.is_complete, progress.is_halted) == (deciding, complete, halted)


@pytest.mark.parametrize("first", [Change.HALT, Change.DONE, Change.NO_HOST])
@pytest.mark.parametrize("second", [Change.DONE, Change.NO_HOST])
def test_control_decides_nothing_once_the_step_is_ending(first: Change, second: Change) -> None:
    progress = StepProgress()
    progress.move(first)
    with pytest.raises(KeyError):
        progress.move(second)
