"""Until: the step ends with the last instance that ends by volume, by its time, or by its timeout."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.control.decision import Decision, Measured
from ivypy.master.control.fixed import Fixed
from ivypy.master.control.observation import Observation, Phase
from ivypy.master.control.until import UntilEnded, UntilSpec
from ivypy.master.rollup.volumes import Volumes
from ivypy.master.verdicts import Reason, Severity

LENGTH_S = 5.0
EndTimes = list[float]  # of each instance: seconds after the step's start at which it ends


def volumes_at(end_s: float, ends: EndTimes, only: bool = True) -> Volumes:
    """As a subinterval that ends then shows instances that all go at an even pace from the start to their ends."""
    left = [max(1 - end_s / one, 0.0) for one in ends]
    ended = [max(round((end_s - one) * 1e9), 1) if one <= end_s else 0 for one in ends]
    return Volumes(np.array(left), np.array(ended), only, round(LENGTH_S * 1e9))


def run(
    ends: EndTimes,
    warmup: int = 0,
    time: int | None = None,
    timeout_s: float = 500.0,
    edited: tuple[int, ...] = (),
    changed: tuple[int, ...] = (),
) -> list[Decision]:
    """Decisions until the step is done, the opening first."""
    state = UntilEnded(UntilSpec(time, timeout_s), Fixed(warmup, time or round(timeout_s / LENGTH_S) - warmup))
    decisions, number = [state.opening()], 0
    while not decisions[-1].done:
        phase, start_s = decisions[-1].next_phase, number * LENGTH_S
        seen = Observation(
            number, start_s, LENGTH_S, phase, number not in changed, number in edited,
            volumes=volumes_at(start_s + LENGTH_S, ends),
        )  # fmt: skip
        state, decision = state.after(seen)
        decisions.append(decision)
        number += 1
    return decisions


def measured(decisions: list[Decision]) -> Measured:
    (one,) = decisions[-1].measured
    return one


def reasons(one: Measured) -> list[Reason]:
    return [finding.reason for finding in one.findings]


@pytest.mark.parametrize(
    ("ends", "warmup", "span"),
    [
        ([0.001], 0, (0, 0)),
        ([5.0], 0, (0, 0)),
        ([5.1], 0, (0, 1)),
        ([19.0, 20.0], 0, (0, 3)),
        ([19.0, 20.0], 2, (2, 3)),
    ],
)
def test_the_measurement_is_of_all_after_the_warmup_up_to_the_last_end(
    ends: EndTimes, warmup: int, span: tuple[int, int]
) -> None:
    decisions = run(ends, warmup)
    assert measured(decisions) == Measured(*span)
    assert [one.next_phase for one in decisions[:warmup]] == [Phase.WARMUP] * warmup
    assert decisions[-1].progress == f"ended after {max(ends):.4g} s"


@pytest.mark.parametrize(
    ("end_s", "seen_in", "severity"), [(12.0, 2, None), (12.0, 3, Severity.INVALID), (996.0, 200, Severity.NOTE)]
)
def test_the_time_after_an_end_that_was_seen_late_speaks_against_the_rates(
    end_s: float, seen_in: int, severity: Severity | None
) -> None:
    state = UntilEnded(UntilSpec(None, 2000.0), Fixed(0, 400))
    start_s = seen_in * LENGTH_S
    seen = Observation(seen_in, start_s, LENGTH_S, Phase.RUN, volumes=volumes_at(start_s + LENGTH_S, [end_s]))
    (one,) = state.after(seen)[1].measured
    assert [finding.severity for finding in one.findings] == ([severity] if severity else [])
    if severity is Severity.INVALID:
        assert str(one.findings[0]) == "end_seen_late[invalid] (the last 8 s, 40% of the time, are after the last end)"


def test_a_host_that_ended_and_was_lost_is_not_the_first_to_end() -> None:
    """Of those that are left only one has an end."""
    state = UntilEnded(UntilSpec(None, 900.0), Fixed(0, 180))
    early, late = (Observation(n, n * 5.0, LENGTH_S, Phase.RUN, n == 0, volumes=volumes_at((n + 1) * 5.0, ends))
                   for n, ends in enumerate(([1.0, 9.0], [9.0])))  # fmt: skip
    (one,) = state.after(early)[0].after(late)[1].measured
    assert reasons(one) == [Reason.HOSTS_CHANGED]


def test_an_end_within_the_warmup_measures_nothing_and_says_so() -> None:
    one = measured(run([7.0], warmup=2))
    assert one.last < one.first
    assert one.findings[0].detail == "all ended after 7 s, within the warmup: choose a shorter one"


def test_an_end_right_after_an_edit_measures_what_was_before_it() -> None:
    one = measured(run([14.0], edited=(2,)))
    assert (one.first, one.last, reasons(one)) == (0, 1, [Reason.SHORTENED])
    one = measured(run([4.0], edited=(0,)))
    assert one.findings[0].detail == "all ended after 4 s, before the measurement that an edit began"


@pytest.mark.parametrize(
    ("limits", "span", "reason"),
    [
        ({"time": 3}, (0, 2), Reason.VOLUME_LEFT),
        ({"time": 3, "warmup": 1}, (1, 3), Reason.VOLUME_LEFT),
        ({"timeout_s": 20.0}, (0, 3), Reason.VOLUME_NOT_REACHED),
        ({"timeout_s": 20.0, "changed": (2,)}, (2, 3), Reason.VOLUME_NOT_REACHED),  # though it began anew
        ({"timeout_s": 20.0, "edited": (2,)}, (3, 3), Reason.VOLUME_NOT_REACHED),
    ],
)
def test_a_step_that_ends_before_its_volume_says_how_much_was_left(
    limits: dict[str, object], span: tuple[int, int], reason: Reason
) -> None:
    one = measured(run([40.0, 20.1], **limits))  # type: ignore[arg-type]
    assert (one.first, one.last) == span
    (finding,) = (finding for finding in one.findings if finding.reason is not Reason.HOSTS_CHANGED)
    end_s = (one.last + 1) * LENGTH_S
    left = f"{100 * (1 - end_s / 40):g}%"
    assert (finding.reason, finding.detail) == (reason, f"{left} was left; 0 of 2 workload instances had ended")


def test_a_step_that_has_submitted_all_says_so_at_its_timeout() -> None:
    """The last I/O, or the flush that is its end, hangs."""
    volumes = Volumes(np.array([0.0, 0.0]), np.array([0, 7]), True, round(LENGTH_S * 1e9))
    state = UntilEnded(UntilSpec(None, LENGTH_S), Fixed(0, 1))
    _, decision = state.after(Observation(0, 0.0, LENGTH_S, Phase.RUN, volumes=volumes))
    (finding,) = decision.measured[0].findings
    assert finding.reason is Reason.VOLUME_NOT_REACHED
    assert finding.detail.startswith("all was submitted, and the last, or its flush, open; 1 of 2 workload instances")


def test_an_edit_and_a_change_of_hosts_begin_the_measurement_anew() -> None:
    one = measured(run([29.0], edited=(2,)))
    assert (one.first, reasons(one)) == (3, [Reason.SHORTENED])
    assert one.findings[0].detail == "an edit or a pause began it anew, 15 s after the step's start"
    one = measured(run([29.0], changed=(2,)))
    assert (one.first, reasons(one)) == (2, [Reason.HOSTS_CHANGED])
    assert reasons(measured(run([29.0], warmup=4, edited=(2,)))) == []  # before it began


def test_a_step_without_its_newest_instances_goes_on_until_its_timeout() -> None:
    """Paused ones are not waited for: where all are, there is nothing to wait for but the time."""
    state = UntilEnded(UntilSpec(None, 10.0), Fixed(0, 2))
    _, decision = state.after(Observation(0, 0.0, LENGTH_S, Phase.RUN))
    assert not decision.done and decision.progress == ""


def test_a_step_ends_once_the_hosts_of_all_that_end_by_volume_are_lost() -> None:
    """Nothing would end it but its timeout, which may be a day away."""
    state = UntilEnded(UntilSpec(None, 900.0), Fixed(0, 180))
    state, _ = state.after(Observation(0, 0.0, LENGTH_S, Phase.RUN, volumes=volumes_at(5.0, [20.0, 40.0], only=False)))
    _, decision = state.after(Observation(1, 5.0, LENGTH_S, Phase.RUN, same_hosts=False))
    assert decision.done
    left = next(one for one in decision.measured[0].findings if one.reason is Reason.VOLUME_NOT_REACHED)
    assert (
        left.detail == "87.5% was left; 0 of 2 workload instances had ended; the hosts of all that were to end are lost"
    )


def test_progress_says_the_share_and_the_time_that_is_left() -> None:
    assert run([20.0, 9.0])[1].progress == "25% of the volume, about 15s left"
    assert run([20.0, 9.0])[2].progress == "50% of the volume, 1 of 2 workload instances ended, about 10s left"


def test_a_step_that_is_cut_short_says_how_much_is_left() -> None:
    state = UntilEnded(UntilSpec(None, 100.0), Fixed(0, 20))
    after, _ = state.after(Observation(0, 0.0, LENGTH_S, Phase.RUN, volumes=volumes_at(5.0, [20.0])))
    cut = after.cut_short(0)
    assert (cut.first, cut.last, reasons(cut)) == (0, 0, [Reason.SHORTENED])
    assert cut.findings[0].detail == "75% of its volume left"


@given(st.lists(st.floats(0.01, 400.0), min_size=1, max_size=5), st.integers(0, 5))
def test_it_ends_in_the_subinterval_of_the_last_end(ends: EndTimes, warmup: int) -> None:
    one = measured(run(ends, warmup))
    last = next(number for number in range(100) if max(ends) <= (number + 1) * LENGTH_S)
    assert one.last == last
    assert one.first == (warmup if warmup <= last else last + 1)


@pytest.mark.parametrize(
    ("timeout_s", "warmup", "time", "longest_s"),
    [(100.0, 0, None, 100.0), (101.0, 2, None, 95.0), (100.0, 0, 4, 20.0), (10.0, 0, 4, 10.0)],
)
def test_the_longest_is_the_least_of_time_and_timeout(
    timeout_s: float, warmup: int, time: int | None, longest_s: float, conditions: Callable[[int], object]
) -> None:
    assert UntilSpec(time, timeout_s).longest_s(conditions(warmup)) == longest_s  # type: ignore[arg-type]


@pytest.fixture
def conditions() -> Callable[[int], object]:
    class Conditions:
        subinterval_s = LENGTH_S

        def __init__(self, warmup: int) -> None:
            self.warmup = warmup

    return Conditions
