"""Profiles: the rate of each subinterval, over the time of the measurement."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.control.fixed import Fixed
from ivypy.master.control.load_level import RunFacts
from ivypy.master.control.observation import Observation, Phase
from ivypy.master.control.profile import Point, Profile, ProfileSpec, mean_rate
from tests.support.control_plants import LENGTH_S, Plant, Trace, load_of, mmc, noise, simulate
from tests.support.control_specs import conditions

RAMP = ((0.0, 100.0), (20.0, 500.0))
POINTS = st.lists(st.integers(1, 50), min_size=0, max_size=6, unique=True).flatmap(
    lambda times: st.lists(st.integers(0, 1000), min_size=len(times) + 1, max_size=len(times) + 1).map(
        lambda rates: tuple(zip(map(float, (0, *sorted(times))), map(float, rates), strict=True))
    )
)


def ios(points: tuple[Point, ...], until_s: int) -> Fraction:
    """The area below a profile from 0 until a time, which is exact."""
    area = Fraction(0)
    for (begin, low), (end, high) in pairwise((*points, (max(points[-1][0], float(until_s)) + 1, points[-1][1]))):
        stop = min(Fraction(end), Fraction(until_s))
        if stop > begin:
            slope = (Fraction(high) - Fraction(low)) / (Fraction(end) - Fraction(begin))
            at_stop = Fraction(low) + slope * (stop - Fraction(begin))
            area += (Fraction(low) + at_stop) / 2 * (stop - Fraction(begin))
    return area


def driven(points: tuple[Point, ...] = RAMP, judge: Fixed | None = None) -> Trace:
    plant = Plant(mmc(4, 1000), 4000, noise(1, 0.01, 0.0))
    judge = judge or Fixed(2, 4)
    return simulate(plant, Profile(points, judge, LENGTH_S, points[0][1]), 100)


def seen(number: int) -> Observation:
    load = load_of(500, 500, 0, 0)
    return Observation(number, number * LENGTH_S, LENGTH_S, Phase.RUN, loads={"all": {"all": load}})


@given(POINTS, st.integers(1, 60), st.sampled_from([0.25, 0.5, 1.0, 2.0]))
def test_the_ios_of_all_subintervals_are_those_of_the_profile(
    points: tuple[Point, ...], number: int, length_s: float
) -> None:
    until_s = number * 2
    count = int(until_s / length_s)
    found = sum(mean_rate(points, one * length_s, (one + 1) * length_s) * length_s for one in range(count))
    assert found == pytest.approx(float(ios(points, until_s)), rel=1e-9, abs=1e-6)


def test_the_profile_begins_with_the_measurement_and_the_warmup_has_its_first_rate() -> None:
    trace = driven()
    (closed,) = (one for decision in trace.decisions for one in decision.measured)
    assert (closed.first, closed.last) == (2, 5)
    assert closed.mean_rate == 300
    assert trace.loads[:6] == [100, 100, 150, 250, 350, 450]
    assert [decision.next_phase for decision in trace.decisions][-1] is Phase.TAIL and not trace.decisions[-1].edits


def test_after_its_last_point_a_profile_keeps_that_rate() -> None:
    assert driven(RAMP, Fixed(0, 6)).loads[:6] == [150, 250, 350, 450, 500, 500]


def test_each_subinterval_is_a_row_with_what_was_asked_for_and_what_came() -> None:
    rows = [row.cells for decision in driven().decisions for row in decision.rows]
    assert [row["subinterval"] for row in rows] == [0, 1, 2, 3, 4, 5]
    assert [row["total_iops"] for row in rows] == [100, 100, 150, 250, 350, 450]
    assert [row["due_iops"] for row in rows] == pytest.approx([100, 100, 150, 250, 350, 450], rel=0.02)


@pytest.mark.parametrize(
    ("last", "rates"),
    [
        (seen(6), []),  # it has that rate already
        (replace(seen(6), same_hosts=False), [150]),  # the measurement begins anew, and the profile with it
        (replace(seen(6), edited=True), [150]),
    ],
)
def test_a_rate_is_sent_where_it_is_another_or_others_have_it(last: Observation, rates: list[float]) -> None:
    state = Profile(RAMP, Fixed(0, 100), LENGTH_S, 500)
    for number in range(6):
        state, _ = state.after(seen(number))
    _, decision = state.after(last)
    assert [edit.total_iops for edit in decision.edits] == rates


def test_a_late_decision_asks_for_the_rate_of_the_subinterval_in_which_it_acts() -> None:
    state = Profile(RAMP, Fixed(0, 100), LENGTH_S, 150)
    _, decision = state.after(replace(seen(0), late=1))
    assert [edit.total_iops for edit in decision.edits] == [350]


@pytest.mark.parametrize(
    ("points", "words"),
    [
        (RAMP, "profile: total_iops from 100 at 0s to 500 at 20s"),
        (
            tuple((float(at), at * 10.0) for at in range(4)),
            "profile: total_iops from 0 at 0s to 10 at 1s to 20 at 2s to 30 at 3s",
        ),
        (
            tuple((float(at), at * 10.0) for at in range(5)),
            "profile: total_iops from 0 at 0s to 10 at 1s to ... 2 more points ... to 40 at 4s",
        ),
        (
            tuple((float(at), at * 10.0) for at in range(6)),
            "profile: total_iops from 0 at 0s to 10 at 1s to ... 3 more points ... to 50 at 5s",
        ),
    ],
)
def test_it_is_said_in_words(points: tuple[Point, ...], words: str) -> None:
    assert ProfileSpec(points).in_words == words


@pytest.mark.parametrize(("number", "mean"), [(1, None), (2, 150), (4, 250)])
def test_a_measurement_that_is_cut_short_has_the_mean_of_its_part(number: int, mean: float | None) -> None:
    state = Profile(RAMP, Fixed(2, 4), LENGTH_S, 100)
    for closed in range(number + 1):
        state, _ = state.after(seen(closed))
    assert state.cut_short(number).mean_rate == mean


def test_of_what_was_measured_before_the_profile_began_anew_no_mean_is_said() -> None:
    state = Profile(RAMP, Fixed(0, 100), LENGTH_S, 100)
    for closed in range(3):
        state, _ = state.after(seen(closed))
    state, _ = state.after(replace(seen(3), edited=True))
    assert (state.cut_short(3).last, state.cut_short(3).mean_rate) == (2, None)


@pytest.mark.parametrize(
    "last", [replace(seen(6), same_hosts=False), replace(seen(6), edited=True)], ids=["host lost", "edited"]
)
def test_one_point_holds_the_total_whoever_is_left_and_whatever_somebody_set(last: Observation) -> None:
    state = Profile(((0.0, 100.0),), Fixed(0, 100), LENGTH_S, 100)
    for number in range(6):
        state, decision = state.after(seen(number))
        assert not decision.edits
    _, decision = state.after(last)
    assert [edit.total_iops for edit in decision.edits] == [100]


def test_it_begins_at_its_first_rate_with_the_measurement_of_the_plan() -> None:
    spec = ProfileSpec(((0.0, 40.0), (10.0, 70.0), (20.0, 30.0)))
    state = spec.state(conditions(LENGTH_S, 2), Fixed(2, 4), RunFacts({}, lambda *_: 0.0))
    assert (state.points, state.subinterval_s, state.asked) == (spec.points, LENGTH_S, 40.0)
    assert [edit.total_iops for edit in state.opening().edits] == [40]
    assert (state.focuses, state.may_end) == (Fixed(2, 4).focuses, ())
    assert not list(spec.faults(conditions(LENGTH_S, 2), True)) and not spec.goes_by_max and not spec.settles
