"""Law: a row is valid only if every host that has a part in it is in all of the measurement, whatever events say."""

from collections.abc import Collection, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivypy.master.rollup.instances import Rollups
from ivypy.master.rollup.parameters_in_force import Settings
from ivypy.master.rollup.validity import ScopedFinding, Validity, check_validity
from ivypy.master.rollup.window import Window
from ivypy.master.verdicts import Finding, Reason, Severity, Verdict
from ivypy.protocol.counters import RESPONSES, SERVICES, Count
from ivypy.protocol.parameters import Parameters
from tests.support.rollup import instance as workload
from tests.support.rollup import merger_of, rollups_by
from tests.support.rollup_results import HostData, result

HOSTS = ("a", "b", "c", "d")
SITES = {"a": "x", "b": "x", "c": "y", "d": "y"}
S = 10**9
ROLLUPS = rollups_by([workload(0, host, site=SITES[host]) for host in HOSTS], "host", "site")
SETTINGS = Settings.of(ROLLUPS, {(host, 0): Parameters(iops=100.0) for host in HOSTS})
DATA = HostData(
    1,
    1,
    {(0, SERVICES[0]): [10**6] * 20, (0, RESPONSES[0]): [10**6] * 20},
    {(0, column): 20 for column in (Count.DUE, Count.SUBMITTED, Count.COMPLETED)},
)

# Of one host in one subinterval: how much of it there is in its result, and whether it calls the result its last;
# None: no result.
Sent = tuple[float, bool] | None
WHOLE: Sent = (1.0, False)


def check(
    sent: Sequence[Sequence[Sent]],
    outside: Sequence[ScopedFinding] = (),
    part: Collection[str] = (),
    data: HostData = DATA,
) -> tuple[Validity, int, int]:
    """The last window that can be summed of these subintervals, checked; its first subinterval and its last.

    `part`: the hosts that take part in all of them, in or not.
    """
    merger = merger_of(ROLLUPS)
    window, first = Window(merger.layout), 0
    for k, of_hosts in enumerate(sent):
        merger.open(k)
        for host, one in zip(HOSTS, of_hosts, strict=True):
            if one is not None:
                merger.add(host, result(data, k, round(one[0] * S), last=one[1]))
        interval = merger.close(part)
        if not window.fits(interval):
            window, first = Window(merger.layout), k
        window.add(interval)
    return check_validity(window.measurement(), SETTINGS, 0.0025, 1.0, outside), first, len(sent) - 1


SENT = st.one_of(
    st.just(WHOLE), st.just(WHOLE), st.just(WHOLE), st.none(), st.just((1.0, True)),
    st.floats(0.01, 0.4).map(lambda x: (x, False)),
    st.floats(0.01, 0.99).map(lambda x: (x, True)),
)  # fmt: skip
SEVERITIES = {Reason.HOST_LOST: None, Reason.HOST_LATE: Severity.PARTIAL}
EVENTS = st.lists(
    st.tuples(st.sampled_from((Reason.HOST_LOST, Reason.HOST_LATE)), st.sampled_from(HOSTS)).map(
        lambda event: ScopedFinding(Finding(event[0], f"{event[1]}: somehow", SEVERITIES[event[0]]), event[1])
    )
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(SENT, SENT, SENT, SENT), min_size=1, max_size=6),
    EVENTS,
    st.lists(st.sampled_from(HOSTS), unique=True),
)
def test_no_row_is_valid_that_misses_a_host_or_a_part_of_its_time(
    sent: list[tuple[Sent, ...]], events: list[ScopedFinding], part: list[str]
) -> None:
    """Whoever of the hosts takes part throughout, in or not: a hole in such a host begins no measurement anew."""
    validity, first, last = check(sent, events, part)
    whole = {host for i, host in enumerate(HOSTS) if all(sent[k][i] == WHOLE for k in range(first, last + 1))}
    for row in ROLLUPS.rows:
        hosts = {member.host for member in row.members}
        absent = {one.detail[0] for one in validity.findings[row.row] if one.severity is not Severity.NOTE}
        expected = hosts - whole
        assert validity.verdict(row.row) is (Verdict.PARTIAL if expected else Verdict.VALID), (row, validity)
        assert absent == expected, "each is named, and nobody else"


@pytest.mark.parametrize(
    ("lengths_s", "says"),
    [
        ([5 / 6] + [1.0] * 5, None),  # not called its last, and no event: within half a subinterval
        ([1.0] * 6, None),
        ([1.001] * 6, None),  # boundaries follow the controller's clock by up to 0.1 %
        ([0.8] * 6, "host_missing[partial] (a: its subintervals are 4.8 s long in total, not 6 s)"),
        ([0.4] + [1.0] * 5, "host_missing[partial] (a: its subintervals are 5.4 s long in total, not 6 s)"),
        # half a subinterval, and 0.2 % of all: 512 ms of 6 s
        ([1.0] * 5 + [1.511], None),
        ([1.0] * 5 + [1.513], "host_missing[partial] (a: its subintervals are 6.513 s long in total, not 6 s)"),
        ([1.0] * 5 + [0.489], None),
        ([1.0] * 5 + [0.487], "host_missing[partial] (a: its subintervals are 5.487 s long in total, not 6 s)"),
        ([1.2] * 6, "host_missing[partial] (a: its subintervals are 7.2 s long in total, not 6 s)"),
    ],
)
def test_a_hosts_subintervals_are_as_long_as_planned(lengths_s: list[float], says: str | None) -> None:
    validity, _, _ = check([((length, False), WHOLE, WHOLE, WHOLE) for length in lengths_s])
    found = [str(one) for one in validity.findings[0] if one.reason is not Reason.TOO_FEW_SUBINTERVALS]
    assert found == ([says] if says else [])


@pytest.mark.parametrize(("last_s", "is_whole"), [(1.0, True), (0.001, True), (1.6, False), (-0.95, False)])
def test_the_last_subinterval_of_what_ended_by_volume_may_be_short(last_s: float, is_whole: bool) -> None:
    """It is as long as its I/O went on; those before it are whole."""
    ended = replace(DATA, counts={**DATA.counts, (0, Count.ENDED_NS): 1})
    lengths_s = [1.0] * 4 + ([1.0 + last_s, 0.4] if last_s < 0 else [1.0, last_s])
    validity, _, _ = check([((one, False),) * 4 for one in lengths_s], data=ended)
    found = {one.reason for one in validity.findings[0]}
    assert (Reason.HOST_MISSING not in found) is is_whole


LOST = ScopedFinding(Finding(Reason.HOST_LOST, "a: its connection ended"), "a")
LATE = ScopedFinding(Finding(Reason.HOST_LATE, "b: no result of subinterval 6 in time", Severity.PARTIAL), "b")
CUT_SHORT = ScopedFinding(Finding(Reason.SHORTENED, "4 of 6 subintervals"))


def test_a_loss_after_the_measurement_does_not_affect_it() -> None:
    validity, _, _ = check([(WHOLE,) * 4] * 20, (LOST, replace(LATE, since=20)))
    assert validity.worst() is Verdict.VALID and not any(validity.findings)


def test_a_host_whose_results_came_late_is_noted_and_one_that_is_missing_counted() -> None:
    validity, _, _ = check([(WHOLE,) * 4] * 20, (LATE,))
    assert validity.worst() is Verdict.VALID
    assert str(validity.findings[0][0]) == "host_late[note] (b: no result of subinterval 6 in time)"
    validity, _, _ = check([(WHOLE,) * 4] * 18 + [(WHOLE, None, WHOLE, WHOLE)] * 2, (LATE,), HOSTS)
    assert [str(one) for one in validity.findings[0]] == [
        "host_late[partial] (b: no result of subinterval 6 in time, missing in 2 of 20 subintervals)"
    ]


def test_what_cut_the_measurement_short_is_reported() -> None:
    validity, _, _ = check([(WHOLE,) * 4] * 20, (LOST, LATE, CUT_SHORT))
    assert validity.findings[0] == (LOST.finding, LATE.finding, CUT_SHORT.finding)


def test_an_event_explains_why_a_host_is_missing() -> None:
    validity, _, _ = check([(None, WHOLE, WHOLE, WHOLE)] * 20, (LOST,))
    by_name = {row.name: validity.findings[row.row] for row in ROLLUPS.rows}
    assert by_name == {
        "all": (LOST.finding,), "a": (LOST.finding,), "x": (LOST.finding,), "b": (), "c": (), "d": (), "y": (),
    }  # fmt: skip


def test_rollups_of_this_file_are_as_intended() -> None:
    assert isinstance(ROLLUPS, Rollups) and [row.name for row in ROLLUPS.rows] == ["all", *HOSTS, "x", "y"]


def test_an_event_of_another_time_does_not_explain_a_missing_host() -> None:
    for when in ({"since": 21}, {"until": -1}):
        validity, _, _ = check([(None, WHOLE, WHOLE, WHOLE)] * 20, (replace(LOST, **when),))  # type: ignore[arg-type]
        assert [str(one) for one in validity.findings[0]] == ["host_missing[partial] (a: no subinterval includes it)"]


def test_a_result_that_a_host_marks_as_its_last_was_cut() -> None:
    """However long it is."""
    validity, _, _ = check([(WHOLE,) * 4] * 19 + [((1.0, True), WHOLE, WHOLE, WHOLE)])
    assert [str(one) for one in validity.findings[0]] == [
        "host_missing[partial] (a: its result of subinterval 19 was cut)"
    ]


def test_an_event_of_another_kind_does_not_explain_a_missing_host() -> None:
    other = ScopedFinding(Finding(Reason.SLOW_CONTROLLER, "2.6 s"), "a")
    validity, _, _ = check([(None, WHOLE, WHOLE, WHOLE)] * 20, (other,))
    assert [one.reason for one in validity.findings[0]] == [Reason.SLOW_CONTROLLER, Reason.HOST_MISSING]


def test_a_loss_that_names_no_host_concerns_all() -> None:
    validity, _, _ = check([(WHOLE,) * 4] * 20, (replace(LOST, host=""),))
    assert all(findings == (LOST.finding,) for findings in validity.findings)


def test_an_event_is_of_a_measurement_that_begins_and_ends_with_the_step() -> None:
    validity, _, _ = check([(WHOLE,) * 4], (CUT_SHORT,))
    assert CUT_SHORT.finding in validity.findings[0]
