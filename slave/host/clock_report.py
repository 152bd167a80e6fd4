"""How good this machine's clock is: the cycle counter against the kernel's clocks, measured for a while.

Rule: reads the clocks through the engine and sleeps in between; only the test of the order across cores, the cost of a
reading and fio's own method spin, for about two seconds in all. The first tenth of the time calibrates, the rest shows
how wrong that calibration would have gone. fio's calibration is computed as in its gettime.c: whole numbers, cycles per
millisecond from fifty short windows, a multiplier of limited width, chunks of about an hour.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...protocol.messages import ClockReport
from ..engine import _engine
from ..kernel_files import first_line

CLOCK_SOURCE: Final = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
PARTS: Final = 10  # calibrations of ours, one after the other
FIO_CALIBRATIONS: Final = 20
FIO_WINDOWS: Final = 51  # of each calibration; the first is thrown away
FIO_WINDOW_NS: Final = 1_280_000
TURNS: Final = 10_000
TURNS_NS: Final = 3_000_000_000  # how long their test may take
COST_READINGS: Final = 20_000

_FIO_LONGEST_S: Final = 3600  # that fio's multiplier may overflow after
_U64: Final = 2**64 - 1


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
        cycles_per_ms([_engine.fio_window(FIO_WINDOW_NS) for _ in range(FIO_WINDOWS)]) for _ in range(FIO_CALIBRATIONS)
    )


def cycles_per_ms(windows: Sequence[tuple[int, int]]) -> int:
    """The cycles per millisecond that fio finds in windows of (ticks, ns)."""
    measured = [ticks * 1_000_000 // ns for ticks, ns in windows[1:]]
    mean = sum(measured) / len(measured)
    deviation = math.sqrt(sum((cycles - mean) ** 2 for cycles in measured) / (len(measured) - 1))
    kept = [cycles for cycles in measured if abs(cycles - mean) <= deviation] or measured
    return sum(kept) // len(kept)


@dataclass(frozen=True)
class FioClock:
    """The factors that fio derives from its cycles per millisecond."""

    shift: int
    multiplier: int
    chunk: int  # ticks, a power of two
    chunk_ns: int

    @classmethod
    def of(cls, per_ms: int) -> "FioClock":
        most_ticks = _FIO_LONGEST_S * 1000 * per_ms
        shift = math.floor(math.log2((_U64 // most_ticks) * per_ms / 1_000_000))
        multiplier = (1_000_000 << shift) // per_ms
        chunk = 1 << (most_ticks.bit_length() - 1)
        return cls(shift, multiplier, chunk, (chunk * multiplier) >> shift)

    def ns(self, ticks: int) -> int:
        """How long so many ticks are, as fio has it."""
        chunks, rest = divmod(ticks, self.chunk)
        return chunks * self.chunk_ns + ((rest * self.multiplier) >> self.shift)
