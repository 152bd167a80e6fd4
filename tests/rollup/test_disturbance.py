"""Whether the generator was disturbed: by what it measures about itself, and by nothing else."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.rollup.disturbance import (
    MOST_UNDISTURBED_PERCENT,
    Cause,
    Disturbance,
    disturbance,
    set_aside_finding,
    too_busy,
)
from ivypy.protocol.counters import LATENESS, RESPONSES, SERVICES, Count
from ivypy.protocol.messages import IoFault, Result
from ivypy.protocol.payload import CpuTaken
from tests.support.rollup_results import HostData, result

MS = 10**6
S = 10**9


def waits(percent: float, beside: float, user: float = 1.0) -> CpuTaken:
    """For a core of which others used so much; `user`: the part of it that processes used."""
    return CpuTaken(wait=percent, others=10, others_user=10 * user, others_beside=beside)


@pytest.mark.parametrize(
    ("taken", "cause", "percent"),
    [
        (CpuTaken(), None, 0),
        (
            waits(5, 90),
            None,
            0,
        ),  # the threshold itself is not above it
        (waits(5.1, 90), Cause.RUN_QUEUE_DELAY, 5.1),
        (
            waits(50, 6),
            Cause.RUN_QUEUE_DELAY,
            6,
        ),  # the rest, its own threads
        (waits(50, 4.9), None, 0),  # more threads than cores: they wait for each other
        (waits(0.1, 99), None, 0),  # a busy core that no thread wanted
        (CpuTaken(others=90, wait=0.1, steal=90, busiest_beside=100), None, 0),  # on cores that no thread may run on
        (CpuTaken(steal_beside=6), Cause.STEAL, 6),
        (CpuTaken(stalled_ns=50 * MS, longest_stall_ns=50 * MS), None, 0),
        (CpuTaken(stalled_ns=60 * MS, longest_stall_ns=20 * MS), Cause.MACHINE_STALL, 6),
        (waits(8, 30, user=0), None, 0),  # kernel threads: the storage's work
        (waits(20, 16, user=0.5), Cause.RUN_QUEUE_DELAY, 8),
        (CpuTaken(throttled_ns=900 * MS), None, 0),  # the slave's own work, which fast storage makes more of
        (
            replace(waits(20, 30), stalled_ns=300 * MS),
            Cause.MACHINE_STALL,
            30,
        ),  # the worst of two
    ],
)
def test_what_disturbed_one_second(taken: CpuTaken, cause: Cause | None, percent: float) -> None:
    found = disturbance({"h": result(HostData(0, 0, {}), length_ns=S, taken=taken)})
    if cause is None:
        assert found is None
    else:
        assert found is not None
        assert (found.cause, found.host) == (cause, "h")
        assert found.percent == pytest.approx(percent)


def test_a_subinterval_with_an_error_counts_so_that_the_error_is_seen() -> None:
    failed = replace(_disturbed(30.0), faults=(IoFault(1, 5, 1),))
    assert disturbance({"a": _disturbed(30.0)}) is not None
    assert disturbance({"a": _disturbed(30.0), "b": failed}) is None


def test_the_worst_host_stands_for_all() -> None:
    calm = result(HostData(0, 0, {}), taken=CpuTaken())
    found = disturbance({"a": calm, "b": _disturbed(20.0), "c": _disturbed(30.0), "d": calm})
    assert found == Disturbance(Cause.STEAL, "c", 30.0)


def test_the_note_counts_and_names_the_most_frequent_cause_first() -> None:
    causes = [Cause.STEAL, Cause.RUN_QUEUE_DELAY, Cause.RUN_QUEUE_DELAY]
    (note,) = set_aside_finding([Disturbance(cause, "h", 10.0) for cause in causes], counted=30)
    assert str(note) == "set_aside[note] (3 of 33 subintervals: run-queue delay, steal)"
    assert set_aside_finding([], counted=30) == ()


percents = st.floats(0, 100)
times = st.integers(0, S)
takens = st.builds(CpuTaken, *[percents] * 7, times, times, times)
latencies = st.lists(st.integers(1, 100 * S), max_size=4)  # of single I/Os, stalls of the storage among them
columns: list[tuple[int, Count]] = [(0, column) for column in Count if column is not Count.EDIT]
counts: st.SearchStrategy[dict[tuple[int, Count], int]] = st.dictionaries(
    st.sampled_from(columns), st.integers(0, 10**6)
)


@st.composite
def storages(draw: st.DrawFn) -> HostData:
    """Whatever storage may do in a subinterval: any latencies, rates, backlogs and errors."""
    samples = {(0, series): draw(latencies) for series in (SERVICES[0], RESPONSES[0], LATENESS)}
    return HostData(1, 1, samples, draw(counts))


@given(takens, st.lists(storages(), min_size=2, max_size=4))
def test_law_the_storage_never_decides(taken: CpuTaken, storages: list[HostData]) -> None:
    """The generator's figures fixed, the storage's random: the same decision."""
    found = {disturbance({"h": result(one, length_ns=S, taken=taken)}) for one in storages}
    assert len(found) == 1


@given(storages())
def test_law_a_generator_that_has_its_cores_is_never_disturbed(storage: HostData) -> None:
    assert disturbance({"h": result(storage, taken=CpuTaken())}) is None


@given(storages(), st.floats(MOST_UNDISTURBED_PERCENT, 100, exclude_min=True), st.sampled_from(Cause), takens)
def test_law_a_host_that_takes_more_than_the_threshold_always_disturbs(
    storage: HostData, percent: float, cause: Cause, others: CpuTaken
) -> None:
    length_ns, lost_ns = 10**12, round(percent * 10**10) + 1
    taken = {
        Cause.RUN_QUEUE_DELAY: replace(others, wait=percent, others=1.0, others_user=1.0, others_beside=percent),
        Cause.STEAL: replace(others, steal_beside=percent),
        Cause.MACHINE_STALL: replace(others, stalled_ns=lost_ns),
    }[cause]
    calm = result(HostData(0, 0, {}), taken=CpuTaken())
    found = disturbance({"a": calm, "b": result(storage, length_ns=length_ns, taken=taken)})
    assert found is not None
    assert found.host == "b"
    assert found.percent >= percent


def _disturbed(percent: float) -> Result:
    return result(HostData(0, 0, {}), taken=CpuTaken(steal_beside=percent))


@pytest.mark.parametrize(
    ("lost", "text"),
    [
        (
            [Disturbance(Cause.RUN_QUEUE_DELAY, "local", 60.0, 96.0), Disturbance(Cause.STEAL, "local", 9.0, 94.0)],
            "this host is too busy to say: others use 95 % of the CPU (run-queue delay, steal)",
        ),
        (
            [Disturbance(Cause.STEAL, "usr1", 40.0, 3.0)],
            "usr1 is too busy to say: threads had no core for 40 % of the time (steal)",
        ),
    ],
)
def test_a_host_that_is_too_busy_to_say_is_named_with_what_takes_its_cpu(lost: list[Disturbance], text: str) -> None:
    assert too_busy(lost) == text


def test_a_disturbance_knows_what_others_used() -> None:
    taken = CpuTaken(others=88.0, steal_beside=30.0)
    disturbed = disturbance({"h": result(HostData(0, 0, {}), taken=taken)})
    assert disturbed is not None and disturbed.others_percent == 88.0
