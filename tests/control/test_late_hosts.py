"""Whom control waits for, and for how long: laws over random absences."""

from itertools import takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.control.decision import Measured
from ivypy.master.control.late_hosts import LEAST_WITHOUT_S, MOST_WITHOUT, LateHosts, most_without
from ivypy.master.verdicts import Severity

HOSTS = frozenset("abc")
LENGTH_S = 5.0
ABSENCES = st.lists(
    st.tuples(st.frozensets(st.sampled_from(sorted(HOSTS))), st.integers(1, 2 * MOST_WITHOUT)), min_size=1, max_size=8
).map(lambda parts: [absent for absent, count in parts for _ in range(count)])  # in runs, each as long as it is


@pytest.mark.parametrize("length_s", [0.1, 0.25, 1.0, 5.0, 60.0])
def test_a_host_is_waited_for_through_36_subintervals_and_a_minute(length_s: float) -> None:
    most = most_without(length_s)
    assert most >= MOST_WITHOUT and most * length_s >= LEAST_WITHOUT_S
    assert most == MOST_WITHOUT or (most - 1) * length_s < LEAST_WITHOUT_S


def in_a_row(absences: list[frozenset[str]], number: int, host: str) -> int:
    """For how many subintervals, `number` the last of them, the host has not been in."""
    return len([*takewhile(lambda absent: host in absent, reversed(absences[: number + 1]))])


@given(ABSENCES)
def test_those_are_judged_that_have_been_in_of_late(absences: list[frozenset[str]]) -> None:
    state = LateHosts(HOSTS)
    for number, absent in enumerate(absences):
        state = state.after(number, HOSTS, absent, LENGTH_S)
        gone = {host for host in HOSTS if in_a_row(absences, number, host) > most_without(LENGTH_S)}
        assert state.judged == (HOSTS if gone == HOSTS else HOSTS - gone)


@given(ABSENCES, st.integers(0, 300), st.integers(0, 300))
def test_a_measurement_names_each_host_that_it_was_judged_without(
    absences: list[frozenset[str]], first: int, length: int
) -> None:
    state, judged = LateHosts(HOSTS), []
    for number, absent in enumerate(absences):
        state = state.after(number, HOSTS, absent, LENGTH_S)
        judged.append(state.judged)
    measured = Measured(first, first + length)
    missed = {host for alone in judged[first : first + length + 1] for host in HOSTS - alone}
    found = [*state.findings(measured)]
    assert {one.host for one in found} == missed
    assert {one.finding.severity for one in found} <= {Severity.PARTIAL}
    of_all = {host for alone in judged[: first + length + 1] for host in HOSTS - alone}
    assert {one.host for one in state.findings(Measured(first, first + length, rests_on=0))} == of_all


def test_a_host_that_is_lost_is_not_waited_for() -> None:
    state = LateHosts(HOSTS).after(0, HOSTS, {"a"}, LENGTH_S).after(1, HOSTS - {"a"}, (), LENGTH_S)
    assert (state.judged, state.missed) == (HOSTS - {"a"}, {})
