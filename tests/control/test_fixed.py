"""Fixed time: the phases, the window, and what an edit or a lost host does to them."""

import pytest

from ivypy.master.control.decision import Decision, Measured
from ivypy.master.control.fixed import Fixed
from ivypy.master.control.observation import Observation, Phase
from ivypy.master.verdicts import Reason


def run(state: Fixed, edited: tuple[int, ...] = (), changed: tuple[int, ...] = ()) -> list[Decision]:
    """Decisions until the step is done, the opening first."""
    decisions = [state.opening()]
    deciding, number = state, 0
    while not decisions[-1].done:
        phase = decisions[-1].next_phase
        interval = Observation(number, number * 5.0, 5.0, phase, number not in changed, number in edited)
        after, decision = deciding.after(interval)
        assert isinstance(after, Fixed)
        deciding, number = after, number + 1
        decisions.append(decision)
    return decisions


@pytest.mark.parametrize(
    ("warmup", "measurement", "phases"),
    [
        (0, 1, "run tail"),
        (0, 3, "run run run tail"),
        (2, 1, "warmup warmup run tail"),
        (1, 2, "warmup run run tail"),
    ],
)
def test_phases_follow_the_two_lengths(warmup: int, measurement: int, phases: str) -> None:
    decisions = run(Fixed(warmup, measurement))
    assert " ".join(decision.next_phase for decision in decisions) == phases
    assert decisions[-1].measured == (Measured(warmup, warmup + measurement - 1),)


def test_an_edit_in_the_measurement_starts_it_again() -> None:
    decisions = run(Fixed(2, 4), edited=(3,))
    assert decisions[-1].measured == (Measured(4, 7),)


def test_an_edit_in_the_warmup_changes_nothing() -> None:
    assert run(Fixed(2, 4), edited=(1,))[-1].measured == (Measured(2, 5),)


def test_a_change_of_hosts_starts_the_window_again_with_those_that_are_left() -> None:
    (measured,) = run(Fixed(2, 6), changed=(5,))[-1].measured
    assert (measured.first, measured.last) == (5, 10)
    assert [finding.reason for finding in measured.findings] == [Reason.HOSTS_CHANGED]
    (measured,) = run(Fixed(2, 6), changed=(5, 7))[-1].measured
    assert (measured.first, measured.last) == (7, 12)
    assert len(measured.findings) == 2


def test_a_change_of_hosts_at_the_first_measured_subinterval_is_before_the_window() -> None:
    assert run(Fixed(2, 3), changed=(2,))[-1].measured == (Measured(2, 4),)
    assert run(Fixed(2, 3), changed=(1,))[-1].measured == (Measured(2, 4),)


def test_the_next_phase_is_of_the_subinterval_that_already_runs() -> None:
    decisions = run(Fixed(1, 1))
    assert [decision.next_phase for decision in decisions] == [Phase.WARMUP, Phase.RUN, Phase.TAIL]
