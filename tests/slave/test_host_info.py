"""Cores and how busy they are, from the kernel's small files: pure, with the machine's own answers beside."""

import os

import pytest

from ivypy.slave.cpu_usage import CpuMeter, percent, read_times, ticks
from ivypy.slave.kernel_files import cpu_list, first_line, number_in


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
def test_busy_percent_is_between_two_readings(
    before: tuple[float, float], after: tuple[float, float], busy: float
) -> None:
    assert percent(before, after, otherwise=42.0) == busy


def test_guests_count_once_and_waiting_for_io_is_not_busy() -> None:
    times = {"user": 5.0, "nice": 1.0, "system": 2.0, "idle": 10.0, "iowait": 3.0, "irq": 0.0, "softirq": 0.5}
    assert ticks(times | {"steal": 0.5, "guest": 4.0, "guest_nice": 1.0}) == (9.0, 22.0)


def test_the_meter_sees_this_machines_cores() -> None:
    cores = sorted(os.sched_getaffinity(0))
    assert set(cores) <= read_times().keys()
    meter = CpuMeter(cores)
    busy = meter.busy()
    assert len(busy) == len(cores)
    assert all(0 <= percent <= 100 for percent in busy)


def test_small_files_of_the_kernel() -> None:
    assert first_line("/proc/sys/kernel/ostype") == "Linux"
    assert (number_in("/proc/sys/kernel/pid_max") or 0) > 0
    assert (first_line("/proc/none"), number_in("/proc/none"), number_in("/proc/sys/kernel/ostype")) == ("", None, None)
