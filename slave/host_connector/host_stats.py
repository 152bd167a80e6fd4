"""Reads what the kernel counts of the whole host: cores, memory, network interfaces, and time lost to shortages (PSI).

Rule: texts in, facts out. Each metric means the same on every host, whatever the number of its cores. Of network
interfaces those are read that packets pass once: hardware, and in a container, which sees none, those that are not
built upon others (bonds, VLANs and bridges are).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from ...protocol.connector import Combine, ElementMetric, ReadingKind, Unit
from ...protocol.payload import Fact
from ..devices.block_devices import ROOT
from ..host.cpu_usage import TICKS_PER_S, core_times
from ..kernel_files import first_line, number_in

CPU, MEMORY, NIC, PRESSURE = "cpu", "memory", "nic", "pressure"  # element types
HOST: Final = "host"  # the instance of those of which a host has one
IFF_UP: Final = 1

_MIB: Final = 1 << 20
_KIB_PER_MIB: Final = 1024
_GAUGES_OF_MEMORY: Final = {  # by their names in /proc/meminfo
    "MemAvailable": ("available_mib", "what programs may still get without swapping"),
    "Dirty": ("dirty_mib", "waits to be written to disks"),
    "Writeback": ("writeback_mib", "is being written to disks"),
}
_SHORTAGES: Final = ("cpu", "io", "memory")


def metrics() -> tuple[ElementMetric, ...]:
    return (*_metrics_of_cores(), *_metrics_of_memory(), *_metrics_of_network(), *_metrics_of_pressure())


def _counter(element: str, attribute: str, unit: Unit, combine: Combine, scale: float, meaning: str) -> ElementMetric:
    return ElementMetric(element, attribute, unit, ReadingKind.COUNTER, combine, scale, meaning=meaning)


# Cores.


def _metrics_of_cores() -> Iterator[ElementMetric]:
    yield _counter(
        CPU,
        "busy_percent",
        Unit.PERCENT,
        Combine.MEAN,
        100.0,
        "busy time of the cores that the slave may use, on average; busy-waiting and stolen time included",
    )
    yield ElementMetric(CPU, "mhz", Unit.MHZ, meaning="mean frequency of these cores, every 10 s")


def core_facts(text: str, cores: Sequence[int]) -> Iterator[Fact]:
    """From /proc/stat, in seconds; nothing while one of the cores is offline: their sum would be another's.

    Made of whole ticks: the error of a sum of floats would make the counter of an idle host go backwards.
    """
    times = core_times(text)
    if all(core in times for core in cores):
        ticks = round(sum(times[core].busy for core in cores) * TICKS_PER_S)
        yield Fact(CPU, HOST, "busy_percent", ticks / TICKS_PER_S / len(cores))


def mean_mhz(cores: Sequence[int], root: Path = ROOT) -> float | None:
    """The mean frequency of cores; None where the kernel does not show it.

    Takes 10 ms for each core, and an interrupt on it, on x86 before Linux 5.18.
    """
    khz = [number_in(root / f"sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq") for core in cores]
    found = [one / 1000 for one in khz if one is not None] or list(_mhz_of_cpuinfo(cores, root))
    return sum(found) / len(found) if found else None


def _mhz_of_cpuinfo(cores: Sequence[int], root: Path) -> Iterator[float]:
    core = -1
    for line in (root / "proc/cpuinfo").read_text("utf-8", "replace").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "processor" and value.strip().isdigit():
            core = int(value)
        elif name.strip() == "cpu MHz" and core in cores:
            yield float(value)


def interrupt_counts(text: str, numbers: Mapping[str, Sequence[int]]) -> Iterator[tuple[str, int]]:
    """The interrupts so far of each device, by its interrupts' numbers, from /proc/stat.

    /proc/interrupts has the same by core: megabytes on a large host. Each count has 32 bits, so a sum of them does.
    """
    counts = next((line.split()[2:] for line in text.splitlines() if line.startswith("intr ")), [])
    for name, some in numbers.items():
        if some and max(some) < len(counts):
            yield name, sum(int(counts[number]) for number in some) % (1 << 32)


# Memory.


def _metrics_of_memory() -> Iterator[ElementMetric]:
    for attribute, meaning in _GAUGES_OF_MEMORY.values():
        yield ElementMetric(MEMORY, attribute, Unit.MIB, meaning=meaning)


def memory_facts(text: str) -> Iterator[Fact]:
    """From /proc/meminfo: `Dirty:   1234 kB`, whose kB are KiB."""
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        if name in _GAUGES_OF_MEMORY:
            yield Fact(MEMORY, HOST, _GAUGES_OF_MEMORY[name][0], int(rest.split()[0]) / _KIB_PER_MIB)


# Network interfaces.


def _metrics_of_network() -> Iterator[ElementMetric]:
    yield _counter(NIC, "rx_mib_per_s", Unit.MIB_PER_S, Combine.SUM, 1 / _MIB, "data received, headers included")
    yield _counter(NIC, "tx_mib_per_s", Unit.MIB_PER_S, Combine.SUM, 1 / _MIB, "data sent, headers included")
    yield _counter(NIC, "errors_per_s", Unit.PER_S, Combine.SUM, 1.0, "packets received or sent with an error")
    yield _counter(NIC, "drops_per_s", Unit.PER_S, Combine.SUM, 1.0, "packets dropped in either direction")


def interfaces(root: Path = ROOT) -> frozenset[str]:
    """Those that are up now, but for the loopback."""
    try:
        entries = [entry for entry in (root / "sys/class/net").iterdir() if entry.name != "lo" and _is_up(entry)]
    except OSError:
        return frozenset()
    hardware = [entry for entry in entries if (entry / "device").exists()]
    return frozenset(entry.name for entry in hardware or entries if hardware or not any(entry.glob("lower_*")))


def _is_up(folder: Path) -> bool:
    try:
        return bool(int(first_line(folder / "flags"), 16) & IFF_UP) and first_line(folder / "operstate") != "down"
    except ValueError:
        return False


def network_facts(text: str, names: frozenset[str]) -> Iterator[Fact]:
    """From /proc/net/dev: `eth0: bytes packets errs drop fifo frame compressed multicast`, and as many sent.

    A name may hold what Unicode takes for the end of a line.
    """
    for line in text.split("\n"):
        padded, _, rest = line.rpartition(":")
        name, counts = padded.strip(" "), rest.split()
        if name in names and len(counts) >= 12:
            yield Fact(NIC, name, "rx_mib_per_s", int(counts[0]))
            yield Fact(NIC, name, "tx_mib_per_s", int(counts[8]))
            yield Fact(NIC, name, "errors_per_s", int(counts[2]) + int(counts[10]))
            yield Fact(NIC, name, "drops_per_s", int(counts[3]) + int(counts[11]))


# Pressure stall information.


def _metrics_of_pressure() -> Iterator[ElementMetric]:
    for what in _SHORTAGES:
        for share, who in (("some", "at least one task"), ("full", "every task that had work")):
            meaning = f"of the time, {who} waited for {what}"
            yield _counter(PRESSURE, f"{what}_{share}_percent", Unit.PERCENT, Combine.MEAN, 100 / 1e6, meaning)


def pressure_facts(root: Path = ROOT) -> Iterator[Fact]:
    """From /proc/pressure/io: `some avg10=0.00 avg60=0.00 avg300=0.00 total=MICROSECONDS`; `full` likewise."""
    for what in _SHORTAGES:
        for line in text_of(root / "proc/pressure" / what).splitlines():
            share, _, rest = line.partition(" ")
            total = rest.rpartition("total=")[2]
            if share in ("some", "full") and total.isdigit():
                yield Fact(PRESSURE, HOST, f"{what}_{share}_percent", int(total))


def text_of(path: Path) -> str:
    """A whole file of the kernel's; "" where it cannot be read. Names in it may have any bytes."""
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError:
        return ""
