"""The controller's side of one subinterval, as numbers: when what arrived, and how far apart the hosts' clocks are."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ..hosts.driver import Driver
from ..output.records import HostTiming, Timing
from ..rollup.merge import Interval

BEFORE_NS: Final = 10**9  # of the first boundary: a step noticed so late was not known when the start was placed


@dataclass(frozen=True, slots=True)
class Moments:
    """Instants of one subinterval, in nanoseconds of the controller's clock."""

    start: int  # as planned
    end: int
    all_in: int  # the last thing came that barrier 1 waited for: a result, a loss, or its deadline
    barrier_1: int  # closed: all is merged
    decided: int
    arrived: Mapping[Driver, int]  # each host's result
    acknowledged: Mapping[Driver, int]  # each host's answer to what followed


def timing_of(interval: Interval, at: Moments, stood_ns: int, cpu_ns: int) -> Timing:
    """Durations count from the subinterval's planned end. `stood_ns`, `cpu_ns`: as of controller_lag.py."""
    hosts = {}
    for driver, arrived_ns in at.arrived.items():
        jump = driver.clock.jump
        stepped = jump if jump and jump.noticed_ns >= at.start - BEFORE_NS else None
        result, offset = interval.results[driver.name], driver.clock.at(arrived_ns)
        began, ended = (driver.clock.to_controller(t) for t in (result.start_ns, result.start_ns + result.length_ns))
        answered = at.acknowledged.get(driver)
        hosts[driver.name] = HostTiming(
            send_up_ns=arrived_ns - ended,
            acknowledgement_ns=None if answered is None else answered - at.decided,
            offset_ns=offset.offset_ns,
            error_bound_ns=offset.bound_ns,
            rate_ppm=offset.rate_ppm,
            start_skew_ns=began - at.start,
            boundary_skew_ns=ended - at.end,
            jump_ns=stepped.by_ns if stepped else 0,
            jumped_since_ns=stepped.since_ns - at.start if stepped else 0,
        )
    barrier_2_ns = max(at.acknowledged.values(), default=at.decided)
    return Timing(
        barrier_1_ns=at.barrier_1 - at.end,
        processing_ns=at.decided - at.all_in,
        barrier_2_ns=barrier_2_ns - at.decided,
        left_ns=2 * at.end - at.start - barrier_2_ns,
        hosts=hosts,
        stood_ns=stood_ns,
        cpu_ns=cpu_ns,
    )
