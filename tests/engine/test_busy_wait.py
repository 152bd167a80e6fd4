"""When a thread sleeps and when it busy-waits, on a simulated clock: laws of any machine, and what they buy."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.engine import MS, S, run

pytestmark = pytest.mark.slow

US = 1000
LENGTH_NS = 2 * S


@dataclass(frozen=True, slots=True)
class Simulated:
    """Two seconds of a thread. Times in ns."""

    ios: int
    p50: int  # lateness
    p99: int
    mean: int
    sleeps: int
    sleeps_with_work_ahead: int
    busy_wait: int
    spared: int  # of that, what sleeps would have taken of the core as well
    brief: int  # and in waits that are too short for a sleep
    over_budget: int  # -1: never


def simulate(
    spin: str,
    iops: float,
    service: int = 115 * US,
    late: int = 35 * US,
    spread: int = 35 * US,
    cost: int = 25 * US,
    wanted: bool = False,
    seed: int = 1,
) -> Simulated:
    number = ("auto", "off", "on").index(spin)
    return Simulated(*map(int, run("busy_wait", number, iops, service, late, spread, cost, int(wanted), seed).split()))


@pytest.mark.parametrize("iops", [1_000, 5_000, 10_000, 20_000])
def test_paced_ios_leave_on_time_on_a_machine_whose_timers_are_late(iops: int) -> None:
    """A virtual machine: timers are 35 to 70 us late, the device takes 115 us."""
    late, on_time = simulate("off", iops), simulate("auto", iops)
    assert late.p50 > 15 * US
    assert on_time.p50 <= US
    assert on_time.mean <= 0.02 * 115 * US


@pytest.mark.parametrize(
    ("what", "changes", "most"),
    [
        ("half of the core", {"cost": 2 * US}, 1 / 2),
        ("others want the core", {"wanted": True}, 1 / 16),
        ("lateness does not show in so long a service", {"service": 10 * MS}, 1 / 16),
        ("timers are exact", {"late": 0, "spread": 1 * US, "cost": 2 * US}, 1 / 16),
    ],
)
@pytest.mark.parametrize("iops", [2_000, 15_000, 60_000])
def test_busy_waiting_has_a_budget(what: str, changes: dict[str, Any], most: float, iops: int) -> None:
    seen = simulate("auto", iops, **changes)
    assert seen.busy_wait - seen.spared - seen.brief <= most * LENGTH_NS + MS, what


@pytest.mark.parametrize("service", [0, 8 * US, 19 * US, 21 * US, 115 * US])
def test_a_fast_device_is_waited_for_awake(service: int) -> None:
    """For 1.5 times its service time, where that is below 20 us; always with `on`, never with `off`."""
    sleeps = {
        spin: simulate(spin, 500, service=service, late=3 * US, spread=0, cost=3 * US) for spin in ("off", "auto", "on")
    }
    slept_for_completions = {spin: seen.sleeps - seen.ios > 0.5 * seen.ios for spin, seen in sleeps.items()}
    assert slept_for_completions == {"off": service > 2 * US, "auto": service > 20 * US, "on": False}


def test_with_on_a_thread_never_sleeps_while_something_is_ahead() -> None:
    assert simulate("on", 100, wanted=True).sleeps_with_work_ahead == 0


def test_with_off_a_thread_busy_waits_only_where_a_sleep_is_not_worth_its_call() -> None:
    seen = simulate("off", 20_000)
    assert seen.busy_wait == seen.brief


@settings(deadline=None, max_examples=30)  # each is a program of its own
@given(
    st.sampled_from(["auto", "off", "on"]),
    st.floats(100, 80_000),
    st.integers(0, 10 * MS),
    st.integers(0, 400 * US),
    st.integers(0, 400 * US),
    st.integers(0, 60 * US),
    st.booleans(),
    st.integers(1, 1 << 40),
)
def test_the_laws_hold_on_any_machine(
    spin: str, iops: float, service: int, late: int, spread: int, cost: int, wanted: bool, seed: int
) -> None:
    """No sleep is set to end after what is due (the driver checks it), and at no instant is the budget exceeded."""
    seen = simulate(spin, iops, service, late, spread, cost, wanted, seed)
    if spin == "auto":
        assert seen.over_budget == -1
    if spin == "on":
        assert seen.sleeps_with_work_ahead == 0
    if spin == "off":
        assert seen.busy_wait == seen.brief
