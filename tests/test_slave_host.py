"""Cores, threads, how busy they are, and how work is dealt to them: pure, with the machine's own answers beside."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.slave.cores import Placement, place
from ivypy.slave.cpu import CpuMeter, look, percent, ticks
from ivypy.slave.deal import deal
from ivypy.slave.kernel import cpu_list, first_line, number_in


@pytest.mark.parametrize(
    ("threads", "cores", "siblings", "placement"),
    [
        (0, [0], (0,), Placement((0,), ())),
        (0, [0, 1], (0, 1), Placement((0, 1), ())),
        (0, [0, 1, 2], (0,), Placement((0, 1, 2), ())),
        (0, [0, 1, 2, 3], (0,), Placement((1, 2, 3), (0,))),
        (0, [0, 1, 2, 3], (0, 2), Placement((1, 3), (0, 2))),
        (0, [0, 1, 2, 3, 4, 5, 6, 7], (0, 4), Placement((1, 2, 3, 5, 6, 7), (0, 4))),
        (0, [4, 5, 6, 7], (0, 2), Placement((4, 5, 6, 7), ())),
        (0, [0, 1, 2, 3], (0, 1, 2, 3), Placement((0, 1, 2, 3), ())),
        (3, [0, 1], (0,), Placement((-1, -1, -1), ())),
    ],
)
def test_threads_are_placed(threads: int, cores: list[int], siblings: tuple[int, ...], placement: Placement) -> None:
    assert place(threads, cores, siblings) == placement


@pytest.mark.parametrize(
    ("text", "cores"), [("", ()), ("0", (0,)), ("0-2,8", (0, 1, 2, 8)), ("0,4-5,7\n", (0, 4, 5, 7))]
)
def test_lists_of_cores(text: str, cores: tuple[int, ...]) -> None:
    assert cpu_list(text) == cores


@pytest.mark.parametrize(
    ("before", "after", "busy"),
    [
        ((0.0, 0.0), (1.0, 4.0), 25.0),
        ((2.0, 10.0), (2.0, 15.0), 0.0),
        ((2.0, 10.0), (7.0, 15.0), 100.0),
        ((2.0, 10.0), (2.0, 10.0), 42.0),  # no tick between them: the last one stands
        ((2.0, 10.0), (1.99, 11.0), 0.0),  # the kernel's idle time may run backwards by a tick
    ],
)
def test_busy_percent_between_two_looks(before: tuple[float, float], after: tuple[float, float], busy: float) -> None:
    assert percent(before, after, otherwise=42.0) == busy


def test_guests_count_once_and_waiting_for_io_is_not_busy() -> None:
    times = {"user": 5.0, "nice": 1.0, "system": 2.0, "idle": 10.0, "iowait": 3.0, "irq": 0.0, "softirq": 0.5}
    assert ticks(times | {"steal": 0.5, "guest": 4.0, "guest_nice": 1.0}) == (9.0, 22.0)


def test_the_meter_sees_this_machines_cores() -> None:
    cores = sorted(os.sched_getaffinity(0))
    assert set(cores) <= look().keys()
    meter = CpuMeter(cores)
    busy = meter.busy()
    assert len(busy) == len(cores)
    assert all(0 <= percent <= 100 for percent in busy)


def test_small_files_of_the_kernel() -> None:
    assert first_line("/proc/sys/kernel/ostype") == "Linux"
    assert (number_in("/proc/sys/kernel/pid_max") or 0) > 0
    assert (first_line("/proc/none"), number_in("/proc/none"), number_in("/proc/sys/kernel/ostype")) == ("", None, None)


@pytest.mark.parametrize(
    ("loads", "tags", "threads"),
    [
        ([(0, 0)], [4, 4], [0, 0]),
        ([(0, 0), (0, 0)], [1, 1, 1, 1], [0, 1, 0, 1]),
        ([(0, 0), (0, 0)], [1, 32, 1, 1], [1, 0, 1, 1]),
        ([(64, 1), (0, 0)], [8, 8], [1, 1]),
        ([(4, 4), (4, 1)], [1], [1]),
        ([(0, 0), (0, 0), (0, 0)], [], []),
    ],
)
def test_instances_are_dealt_evenly(loads: list[tuple[int, int]], tags: list[int], threads: list[int]) -> None:
    assert deal(loads, tags) == threads


@given(st.integers(1, 8), st.lists(st.integers(1, 8192), max_size=60))
def test_no_thread_has_more_than_its_share_and_one_instance(threads: int, tags: list[int]) -> None:
    dealt = deal([(0, 0)] * threads, tags)
    sums = [sum(t for t, where in zip(tags, dealt, strict=True) if where == i) for i in range(threads)]
    assert max(sums) - min(sums) <= max(tags, default=0)
