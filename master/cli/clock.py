"""The page of `ivypy clock`: how accurate the clock of a host is, compared with fio's method on the same counter.

Rule: the host measures, this page does the sums. Its verdict is the host's own: whether the engine there stamps I/Os
with the cycle counter.
"""

import asyncio
import dataclasses
import json
import re
from typing import Any, Final

from ...protocol.messages import ClockReport, MeasureClock
from ..errors import PlanError
from ..exit_codes import ExitCode
from ..hosts.bundle import slave_bundles
from ..hosts.driver import Driver
from ..hosts.host_spec import HostSpec, Launcher
from ..hosts.login_throttle import LoginThrottle
from ..plan.hosts import LOCAL
from ..run.setup.connect import connected, opener
from ..text.units import parse_duration
from ..version import VERSION
from .last_words import LastWords

PATIENCE_S: Final = 60.0  # beyond the time asked for
LEAST_S: Final = 1.0
MOST_S: Final = 3600.0
HOUR_NS: Final = 3600 * 10**9
_HOST: Final = re.compile(r"(?:(?P<user>[^@\s]+)@)?(?P<name>[^@:\s]+|\[[0-9a-fA-F:]+\])(?::(?P<port>\d+))?")


async def clock_page(host: str, duration: str, as_json: bool) -> tuple[str, ExitCode]:
    """Ask the slave of a host; the page and the exit code. Raises PlanError, HostsError."""
    seconds = seconds_of(duration)
    loop = asyncio.get_running_loop()
    opening, words = opener(slave_bundles(), LoginThrottle()), LastWords()
    async with connected(
        [host_of(host)], opening, words.log, VERSION, lambda: int(loop.time() * 1e9), pointer=words.quoted
    ) as (fleet, _):

        async def ask(driver: Driver) -> ClockReport:
            (report,) = await driver.request(MeasureClock, duration_ns=round(seconds * 1e9))
            assert isinstance(report, ClockReport)  # check_answer lets nothing else through
            return report

        (report,) = (await fleet.request_all(dict.fromkeys(fleet.alive, ask), seconds + PATIENCE_S)).values()
    text = json.dumps(figures(report), indent=2) if as_json else "\n".join(page(host, report))
    return text, ExitCode.INVALID if report.refusal else ExitCode.OK


def seconds_of(text: str) -> float:
    """The value of --time. Raises PlanError."""
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise PlanError(f"--time {error}") from None
    if not LEAST_S <= seconds <= MOST_S:
        raise PlanError(f"--time {text}: a clock is measured for {LEAST_S:g} s to an hour")
    return seconds


def host_of(text: str) -> HostSpec:
    """`local`, or where ssh goes: [user@]name[:port]. Raises PlanError."""
    if text == LOCAL:
        return HostSpec(LOCAL, Launcher.LOCAL, LOCAL)
    match = _HOST.fullmatch(text)
    if match is None:
        raise PlanError(f"--host {text}: use local, or [user@]name[:port]")
    name = match["name"].strip("[]")
    port = int(match["port"]) if match["port"] else None
    return HostSpec(name, Launcher.SSH, name, port=port, user=match["user"])


def figures(report: ClockReport) -> dict[str, Any]:
    """The host's readings, and what follows from them; null where there is no counter."""
    said = {name: value for name, value in dataclasses.asdict(report).items() if name != "re"}
    return said | {
        "used": not report.refusal,
        "spread_ppm": spread_ppm(report),
        "error_ppm": error_ppm(report, report.error_ns),
        "raw_error_ppm": error_ppm(report, report.raw_error_ns),
        "kernel_hz": report.kernel_hz or None,
        "cpuid_hz": report.cpuid_hz or None,
        "fio_errors_ppm": [hour_ppm(ns) for ns in report.fio_hours_ns],
    }


def spread_ppm(report: ClockReport) -> float | None:
    """Between the fastest and the slowest of the calibrations."""
    if not report.rate_hz:
        return None
    return (max(report.rates_hz) - min(report.rates_hz)) / report.rate_hz * 1e6


def error_ppm(report: ClockReport, error_ns: float) -> float | None:
    """An error that came up after the first calibration, in parts of the time since."""
    parts = len(report.rates_hz)
    return error_ns / (report.duration_ns * (parts - 1) / parts) * 1e6 if report.rate_hz else None


def hour_ppm(ns: int) -> float:
    """By how much a clock is wrong that takes an hour for `ns`."""
    return (ns - HOUR_NS) / HOUR_NS * 1e6


def page(host: str, report: ClockReport) -> list[str]:
    """The page, a line each."""
    lines = [f"{host}: the kernel keeps time by {report.clock_source or 'an unknown clock'}"]
    if report.rate_hz:
        lines += [*_order(report), *_ours(report), *_others(report), *_fios(report)]
    lines.append(f"a reading         {report.kernel_cost_ns:.1f} ns of CLOCK_MONOTONIC")
    if report.rate_hz:
        lines[-1] += f", {report.counter_cost_ns:.1f} ns of the counter, converted"
    if report.refusal:
        return [*lines, f"not used: {report.refusal}; I/Os are stamped with CLOCK_MONOTONIC"]
    return [*lines, "used: I/Os are stamped with the cycle counter"]


def _order(report: ClockReport) -> list[str]:
    if report.cores < 2:
        return ["order             one core"]
    ns_per_tick = 1e9 / report.rate_hz
    order = f"{report.backwards} times backwards, by up to {report.worst_ticks * ns_per_tick:.0f} ns"
    if not report.backwards:
        order = f"never backwards; offsets below {report.least_step_ticks * ns_per_tick:.0f} ns would not be seen"
    return [f"order             {report.cores} cores, each at least {report.turns:,} turns: {order}"]


def _ours(report: ClockReport) -> list[str]:
    parts, seconds = len(report.rates_hz), report.duration_ns / 1e9
    rest = seconds * (parts - 1) / parts
    return [
        f"rate              {report.rate_hz:,.1f} Hz over {seconds:.1f} s"
        f" (CLOCK_MONOTONIC_RAW: {report.raw_rate_hz:,.1f} Hz)",
        f"calibrations      {parts} of {seconds / parts:.2g} s each, {spread_ppm(report):.4f} ppm apart",
        f"error             {report.error_ns:+.0f} ns against CLOCK_MONOTONIC {rest:.3g} s after a calibration"
        f" ({error_ppm(report, report.error_ns):+.4f} ppm)",
        f"                  {report.raw_error_ns:+.0f} ns against CLOCK_MONOTONIC_RAW"
        f" ({error_ppm(report, report.raw_error_ns):+.4f} ppm)",
    ]


def _others(report: ClockReport) -> list[str]:
    """Lines with the rate as the kernel and the CPU state it; neither has measured it lately, and neither is used."""
    rates = {"the kernel's factors": report.kernel_hz, "CPUID 0x15": report.cpuid_hz}
    stated = [f"{who} {(hz / report.rate_hz - 1) * 1e6:+.2f} ppm" for who, hz in rates.items() if hz]
    return [f"stated elsewhere  {', '.join(stated)}; not used"] if stated else []


def _fios(report: ClockReport) -> list[str]:
    errors = sorted(hour_ppm(ns) for ns in report.fio_hours_ns)
    most = max(report.fio_hours_ns, key=lambda ns: abs(ns - HOUR_NS)) - HOUR_NS
    return [
        f"fio's method      {len(errors)} calibrations: {errors[0]:+.2f} to {errors[-1]:+.2f} ppm"
        f" (up to {most / 1e6:+.1f} ms an hour)"
    ]
