"""How good this machine's clock is: the cycle counter against the kernel's clocks, measured for a while.

Rule: reads the clocks through the engine and sleeps in between; only the test of the order across cores, the cost of a
reading and fio's own method spin, for about two seconds in all. The first tenth of the time calibrates, the rest shows
how wrong that calibration would have gone.
"""

import time
from dataclasses import dataclass
from typing import Final

from ...protocol.messages import ClockReport
from ..engine import _engine
from ..kernel_files import first_line
from .fio_clock import WINDOW_NS, WINDOWS, FioClock, cycles_per_ms

CLOCK_SOURCE: Final = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
PARTS: Final = 10  # calibrations of ours, one after the other
FIO_CALIBRATIONS: Final = 20
TURNS: Final = 10_000
TURNS_NS: Final = 3_000_000_000  # how long their test may take
COST_READINGS: Final = 20_000


@dataclass(frozen=True)
class Anchor:
    """The counter and one of the kernel's clocks at one instant."""

    ticks: int
    ns: int
    width: int  # ticks between which that instant lies

    @classmethod
    def now(cls, raw: bool) -> "Anchor":
        return cls(*_engine.anchor(raw))


def rate_hz(first: Anchor, second: Anchor) -> float:
    """Ticks per second between two anchors."""
    return (second.ticks - first.ticks) / (second.ns - first.ns) * 1e9


def gone_wrong_ns(anchors: list[Anchor]) -> float:
    """How far a clock calibrated between the first two anchors is ahead of the kernel's at the last."""
    first, second, last = anchors[0], anchors[1], anchors[-1]
    predicted = (last.ticks - second.ticks) * (second.ns - first.ns) / (second.ticks - first.ticks)
    return predicted - (last.ns - second.ns)


def measure(number: int, duration_ns: int) -> ClockReport:
    """The report that answers command `number`; takes `duration_ns` and some seconds."""
    why, cores, turns, backwards, worst, least = _engine.check_tsc(TURNS, TURNS_NS)
    kernel_cost_ns = _engine.reading_cost_ns(False, COST_READINGS)
    ticking = _engine.anchor(False)[0] > 0
    anchors, raw = _watch(duration_ns) if ticking else ([], [])
    rate = rate_hz(anchors[0], anchors[-1]) if ticking else 0.0
    kernel_hz, cpuid_hz = _engine.nominal_hz() if ticking else (0.0, 0.0)
    return ClockReport(
        re=number,
        refusal=why,
        clock_source=first_line(CLOCK_SOURCE),
        cores=cores,
        turns=turns,
        backwards=backwards,
        worst_ticks=worst,
        least_step_ticks=least if cores > 1 and turns else 0,
        counter_cost_ns=_engine.reading_cost_ns(True, COST_READINGS) if ticking else 0.0,
        kernel_cost_ns=kernel_cost_ns,
        duration_ns=anchors[-1].ns - anchors[0].ns if ticking else 0,
        rate_hz=rate,
        raw_rate_hz=rate_hz(raw[0], raw[-1]) if ticking else 0.0,
        rates_hz=tuple(rate_hz(a, b) for a, b in zip(anchors, anchors[1:])),
        widest_ticks=max((anchor.width for anchor in anchors), default=0),
        error_ns=gone_wrong_ns(anchors) if ticking else 0.0,
        raw_error_ns=gone_wrong_ns(raw) if ticking else 0.0,
        kernel_hz=kernel_hz,
        cpuid_hz=cpuid_hz,
        fio_per_ms=(fio := _fio() if ticking else ()),
        fio_hours_ns=tuple(FioClock.of(per_ms).ns(round(rate * 3600)) for per_ms in fio),
    )


def _watch(duration_ns: int) -> tuple[list[Anchor], list[Anchor]]:
    """Anchors to CLOCK_MONOTONIC and to CLOCK_MONOTONIC_RAW, PARTS + 1 of each, evenly over the time."""
    anchors: list[Anchor] = []
    raw: list[Anchor] = []
    for part in range(PARTS + 1):
        if part:
            time.sleep(max(anchors[0].ns + duration_ns * part // PARTS - time.monotonic_ns(), 0) / 1e9)
        anchors.append(Anchor.now(False))
        raw.append(Anchor.now(True))
    return anchors, raw


def _fio() -> tuple[int, ...]:
    """The counter's cycles per millisecond that fio would find, started FIO_CALIBRATIONS times."""
    return tuple(
        cycles_per_ms([_engine.fio_window(WINDOW_NS) for _ in range(WINDOWS)]) for _ in range(FIO_CALIBRATIONS)
    )
