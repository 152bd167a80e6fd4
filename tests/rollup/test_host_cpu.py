"""What kept threads from running: what is said of it, over windows and hosts, and when nothing is."""

from dataclasses import astuple, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.rollup.figures import Figures
from ivypy.master.rollup.generator_checks import slowed_rows
from ivypy.master.rollup.host_cpu import TakenTotals, contentions, lost_shares
from ivypy.master.rollup.instances import Rollups
from ivypy.master.rollup.metrics import column
from ivypy.master.rollup.parameters_in_force import Settings
from ivypy.master.rollup.validity import check_validity
from ivypy.master.rollup.window import Measurement, Window
from ivypy.protocol.counters import SERVICES, Count
from ivypy.protocol.parameters import Iops, Parameters
from ivypy.protocol.payload import CpuTaken
from tests.support.rollup import instance, merger_of, rollups_by
from tests.support.rollup_results import HostData, lost, result

MS = 10**6
S = 10**9
LENGTH = 10 * S

HOGS = CpuTaken(others=61, others_user=60, others_beside=98, wait=48)
SAID = "other processes used 61 % of this host's CPU and 98 % of one core, a workload thread waited 48 % of the time for its core"  # noqa: E501


@pytest.mark.parametrize(
    ("taken", "says"),
    [
        (CpuTaken(), ""),
        (HOGS, SAID),
        # the kernel's own work
        (replace(HOGS, others_user=20), SAID.replace("other", "the kernel (its threads, interrupts) and other", 1)),
        # others use cores that our threads do not need
        (CpuTaken(others=90, others_user=90, others_beside=2, wait=0.1), ""),
        # a busy core for which nobody of ours waited: nearly all cores are taken, and none was missed
        (CpuTaken(others=60, others_user=60, others_beside=99, wait=0.9), ""),
        # many wake-ups of some microseconds, beside little else
        (CpuTaken(others=4, others_user=4, others_beside=24, wait=4.9), ""),
        # more threads than cores: they wait for each other
        (CpuTaken(others=1, others_user=1, others_beside=4.9, wait=50), ""),
        (CpuTaken(steal=0.4, steal_beside=0.9), ""),
        (
            CpuTaken(steal=12, steal_beside=25),
            "the hypervisor took 12 % of the cores and 25 % of a workload thread's core (steal)",
        ),
        (CpuTaken(throttled_ns=10 * MS), ""),
        (CpuTaken(throttled_ns=340 * MS), "the cgroup throttled the slave for 340 ms"),
        # a throttled slave does not run: that is one thing, said once
        (CpuTaken(throttled_ns=340 * MS, stalled_ns=300 * MS), "the cgroup throttled the slave for 340 ms"),
        (CpuTaken(stalled_ns=10 * MS, longest_stall_ns=10 * MS), ""),
        (
            CpuTaken(stalled_ns=120 * MS, longest_stall_ns=45 * MS),
            "machine stalls: no thread of the slave ran for 120 ms in total, 45 ms at the longest",
        ),
    ],
)
def test_what_is_said_of_ten_seconds(taken: CpuTaken, says: str) -> None:
    assert ", ".join(one.detail for one in contentions(taken, LENGTH)) == says


percents = st.floats(0, 100)
times = st.integers(0, S)
takens = st.builds(CpuTaken, *[percents] * 7, times, times, times)


@pytest.mark.parametrize(
    ("taken", "percent", "sentence"),
    [
        # a short wait needs others with a good part of the core
        (CpuTaken(others=9, others_user=9, others_beside=25, wait=1), 1, "other processes used 9 % of this host's CPU"),
        (CpuTaken(others=9, others_user=4, others_beside=5, wait=5), 5, "the kernel (its threads, interrupts) and"),
        (
            CpuTaken(steal=0.5, steal_beside=1),
            1,
            "the hypervisor took a workload thread's core for 100 ms (1 % of the time)",
        ),
        (
            CpuTaken(steal=9, steal_beside=37),
            37,
            "the hypervisor took a workload thread's core for 3,700 ms (37 % of the time)",
        ),
        # of eight cores together; and of one, which had more to wait for
        (CpuTaken(wait=5, throttled_ns=4 * S), 5, "the cgroup throttled the slave for 4,000 ms"),
        (CpuTaken(wait=80, throttled_ns=4 * S), 40, "the cgroup throttled the slave for 4,000 ms"),
        (CpuTaken(wait=80, throttled_ns=11 * MS), 0.11, "the cgroup throttled the slave for 11 ms"),
        (CpuTaken(stalled_ns=11 * MS), 0.11, "the whole machine stalled for 11 ms (0.11 % of the time)"),
    ],
)
def test_what_kept_threads_from_running_and_for_how_long(taken: CpuTaken, percent: float, sentence: str) -> None:
    (found,) = contentions(taken, LENGTH)
    assert found.percent == pytest.approx(percent) and found.sentence.startswith(sentence)


@pytest.mark.parametrize(
    ("taken", "kept", "stolen", "percent"),
    [
        (CpuTaken(), 0, 0, 0),
        (HOGS, 48, 0, 48),
        (HOGS, 3, 0, 3),  # the longest wait is another thread's
        (replace(HOGS, others_beside=4), 48, 0, 0),
        # eight cores, each throttled for 4 % of the time; too short to matter
        (CpuTaken(wait=5, throttled_ns=8 * LENGTH // 25), 4, 0, 4),
        (CpuTaken(wait=5, throttled_ns=LENGTH // 1001), 4, 0, 0),
        # who is stolen from does not wait
        (replace(HOGS, steal_beside=40), 20, 10, 30),
        (CpuTaken(steal_beside=0.9), 0, 0.8, 0),
        # a stall of the machine may have been the hypervisor's
        (CpuTaken(steal_beside=30, stalled_ns=LENGTH // 4), 0, 30, 30),
        (CpuTaken(steal_beside=30, stalled_ns=LENGTH // 2), 0, 30, 50),
        (CpuTaken(stalled_ns=LENGTH // 1001), 0, 0, 0),
        (replace(HOGS, steal_beside=70), 80, 70, 100),
    ],
)
def test_the_part_of_the_time_that_was_lost_for_others(
    taken: CpuTaken, kept: float, stolen: float, percent: float
) -> None:
    of_instances = (np.array([round(share / 100 * LENGTH)]) for share in (kept, stolen))
    assert lost_shares(taken, LENGTH, *of_instances) == pytest.approx([percent / 100])


@given(st.lists(st.tuples(takens, st.integers(1, 10 * S)), min_size=1, max_size=8))
def test_a_window_lies_between_its_subintervals_and_adds_their_times(parts: list[tuple[CpuTaken, int]]) -> None:
    totals = TakenTotals()
    for taken, length_ns in parts:
        totals.add(taken, length_ns)
    *shares, throttled, stalled, longest = astuple(totals.seen())
    every = [astuple(taken) for taken, _ in parts]
    for place, share in enumerate(shares):
        assert min(one[place] for one in every) - 1e-9 <= share <= max(one[place] for one in every) + 1e-9
    assert (throttled, stalled, longest) == (
        sum(e[7] for e in every),
        sum(e[8] for e in every),
        max(e[9] for e in every),
    )


BUSY = HostData(1, 1, {(0, SERVICES[0]): [MS] * 100}, {(0, Count.DUE): 100, (0, Count.COMPLETED): 100})


def measured(
    rollups: Rollups,
    taken: dict[str, CpuTaken],
    iops: Iops | dict[int, Iops] = "max",
    cpu: tuple[float, float] = (50.0, 50.0),
    data: HostData = BUSY,
) -> tuple[dict[str, str], Figures]:
    """(by row, what is said of it; the figures of the whole window)"""
    measurement, settings = measurement_of(rollups, taken, iops, cpu, data)
    found = check_validity(measurement, settings, 0.0025, 1.0).findings
    said = {str(row): "; ".join(map(str, found[i])) for i, row in enumerate(rollups.rows)}
    return said, Figures(measurement.merged, settings.response_rows())


def measurement_of(
    rollups: Rollups,
    taken: dict[str, CpuTaken],
    iops: Iops | dict[int, Iops] = "max",
    cpu: tuple[float, float] = (50.0, 50.0),
    data: HostData = BUSY,
) -> tuple[Measurement, Settings]:
    merger = merger_of(rollups)
    window = Window(merger.layout)
    for k in range(20):
        merger.open(k)
        for host, one in taken.items():
            counts = {**lost(one, data.instances, S), **data.counts}
            merger.add(host, result(replace(data, counts=counts), k, S, taken=one, cpu=cpu))
        window.add(merger.close())
    of = iops if isinstance(iops, dict) else dict.fromkeys(range(data.instances), iops)
    return window.measurement(), Settings.of(
        rollups, {(host, n): Parameters(iops=one) for host in taken for n, one in of.items()}
    )


def test_it_stands_on_the_rows_of_its_host_and_names_the_worst_of_many() -> None:
    rollups = rollups_by([instance(0, host) for host in ("h1", "h2", "h3")], "host")
    said, _ = measured(rollups, {"h1": HOGS, "h2": CpuTaken(), "h3": replace(HOGS, wait=70)})
    assert said["host=h1"] == f"cpu_contention[invalid] (h1: {SAID})"
    assert said["host=h2"] == ""
    assert said["all=all"] == f"cpu_contention[invalid] (h3: {SAID.replace('48', '70')} (and 1 more host))"


@pytest.mark.parametrize(
    ("iops", "taken", "invalid"),
    [
        ("max", {"h1": replace(HOGS, wait=24.9)}, False),
        ("max", {"h1": replace(HOGS, wait=25)}, True),
        (100.0, {"h1": replace(HOGS, wait=100)}, False),  # its own checks say what that did
        # the hosts' mean
        ("max", {"h1": replace(HOGS, wait=49.9), "h2": CpuTaken()}, False),
        ("max", {"h1": replace(HOGS, wait=50), "h2": CpuTaken()}, True),
        (
            "max",
            {
                "h1": replace(HOGS, wait=100),
                **{f"h{n}": CpuTaken() for n in (2, 3, 4)},
            },
            True,
        ),
    ],
)
def test_at_max_the_rate_is_what_was_left(iops: Iops, taken: dict[str, CpuTaken], invalid: bool) -> None:
    said, _ = measured(rollups_by([instance(0, host) for host in taken]), taken, iops)
    assert said["all=all"].startswith("cpu_contention[invalid]" if invalid else "cpu_contention[note]")


@pytest.mark.parametrize(
    ("hogged", "idle", "paced", "invalid"),
    [
        # of four LUNs, each on a thread of its own
        ({0: 50}, (), (), {"serial=0"}),
        ({0: 24}, (), (), set()),
        ({0: 50, 1: 50}, (), (), {"serial=0", "serial=1", "all=all"}),
        ({0: 51}, (2, 3), (), {"serial=0", "all=all"}),  # what is paused has no part in a row's rate
        ({0: 100}, (0, 1, 2, 3), (), {"all=all", "serial=0"}),  # nothing had any
        ({0: 50, 1: 99}, (), (1, 2, 3), {"all=all", "serial=0"}),  # paced loads have checks of their own
    ],
)
def test_a_row_is_invalid_by_what_its_own_threads_lost(
    hogged: dict[int, int], idle: tuple[int, ...], paced: tuple[int, ...], invalid: set[str]
) -> None:
    luns = range(4)
    rollups = rollups_by([instance(n, "h1", serial=str(n)) for n in luns], "serial")
    counts = {(n, count): 100 * (n not in idle) for n in luns for count in (Count.DUE, Count.COMPLETED)}
    counts |= {(n, Count.KEPT_NS): hogged.get(n, 0) * S // 100 for n in luns}
    samples = {(n, SERVICES[0]): [MS] * 100 * (n not in idle) for n in luns}
    iops: dict[int, Iops] = {n: 100.0 if n in paced else "max" for n in luns}
    taken = {"h1": replace(HOGS, wait=max(hogged.values()))}
    said, _ = measured(rollups, taken, iops, data=HostData(4, 4, samples, counts))
    assert {row for row in said if "cpu_contention[invalid]" in said[row]} == invalid


@pytest.mark.parametrize(("iops", "slowed"), [("max", {"host=h1": 0.48, "host=h3": 0.2, "all=all": 0.48}), (100.0, {})])
def test_rows_at_max_are_slowed_by_the_part_of_their_worst_host(iops: Iops, slowed: dict[str, float]) -> None:
    rollups = rollups_by([instance(0, host) for host in ("h1", "h2", "h3")], "host")
    found = slowed_rows(*measurement_of(rollups, {"h1": HOGS, "h2": CpuTaken(), "h3": replace(HOGS, wait=20)}, iops))
    assert {str(row): found[row.row] for row in rollups.rows if row.row in found} == pytest.approx(slowed)


def test_a_host_that_is_gone_has_no_part_in_the_mean() -> None:
    rollups = rollups_by([instance(0, host) for host in ("h1", "h2")])
    said, _ = measured(rollups, {"h1": replace(HOGS, wait=30)})
    assert "cpu_contention[invalid]" in said["all=all"]


@pytest.mark.parametrize("iops", ["max", 100.0])
def test_it_is_said_whatever_the_load(iops: Iops) -> None:
    said, _ = measured(rollups_by([instance(0, "h1")], "host"), {"h1": CpuTaken(throttled_ns=50 * MS)}, iops)
    assert "cpu_contention[note] (h1: the cgroup throttled the slave for 1,000 ms)" in said["all=all"]


@pytest.mark.parametrize(
    ("iops", "counts", "stands"),
    [
        (0.0, {}, False),  # paused
        (0.1, {}, False),
        (0.1, {Count.DUE: 1, Count.BACKLOG: 1}, True),
        (0.0, {Count.IN_FLIGHT: 1}, True),
        ("max", {}, True),  # its thread may have had no core at all
    ],
)
def test_it_stands_on_no_row_without_io(iops: Iops, counts: dict[Count, int], stands: bool) -> None:
    rollups = rollups_by([instance(0, "h1")], "host")
    data = HostData(1, 1, {}, {(0, count): value for count, value in counts.items()})
    said, _ = measured(rollups, {"h1": HOGS}, iops, data=data)
    assert ("cpu_contention" in said["host=h1"]) is stands


def test_columns_are_means_over_hosts_or_the_worst() -> None:
    rollups = rollups_by([instance(0, host) for host in ("h1", "h2")], "host")
    one = replace(HOGS, steal=4.0, throttled_ns=S // 5, stalled_ns=S // 4)
    _, figures = measured(rollups, {"h1": one, "h2": CpuTaken()})
    names = (
        "cpu_others_percent", "cpu_steal_percent", "cpu_wait_percent", "cpu_throttled_percent", "stalled_percent",
    )  # fmt: skip
    assert [column(figures, name)[0] for name in names] == pytest.approx([30.5, 2, 48, 5, 25])
    assert [column(figures, name)[1] for name in names] == pytest.approx([61, 4, 48, 10, 25])


@pytest.mark.parametrize(("beside", "limited"), [(100.0, True), (96.0, True), (20.0, False)])
def test_a_busy_core_that_no_workload_thread_runs_on_is_no_limit_of_the_host(beside: float, limited: bool) -> None:
    taken = CpuTaken(others=50, others_user=50, busiest_beside=beside, wait=2)
    said, _ = measured(rollups_by([instance(0, "h1")], "host"), {"h1": taken}, cpu=(5.0, 100.0))
    assert ("host_limit" in said["all=all"]) is limited
