"""The connector `host`: what a test host knows of the disks that its LUNs are on, and of itself.

Rule: a gather reads memory of the kernel's, never a device, and costs less than 10 ms of one core with 100 disks. What
may have to wait for a device or for a core is read beside it (SlowReading). Which disks and interfaces there are is
found once, by `config`; of one that is gone since, there are no readings.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Final, Generic, TypeVar

from ...protocol.connector import ElementMetric, Readings
from ...protocol.payload import Fact, Facts
from ..devices.block_devices import ROOT
from . import block_stats, host_stats, nvme_smart
from .elements import COMPONENT, DISK, NO_ELEMENTS, NVME, PARTITION, DeviceNumbers, device_numbers, find_elements
from .host_stats import CPU, HOST, MEMORY, NIC, PRESSURE, text_of

Value = TypeVar("Value")

EVERY_S: Final = 10.0
KEPT_S: Final = 30.0
METRICS: Final = (
    *block_stats.metrics_of_disks(DISK),
    *block_stats.metrics_of_partitions(PARTITION),
    *block_stats.metrics_of_disks(COMPONENT),
    *nvme_smart.metrics(NVME),
    *host_stats.metrics(),
)


class SlowReading(Generic[Value]):
    """A reading that may take long, or for ever: it is made in a thread of its own, and nobody waits for it.

    One at a time, at most every EVERY_S. What was read last stands until it is older than KEPT_S: a device that hangs
    has no reading then, rather than an old one, and one thread. State: the last value with the time at which its
    reading began, and the thread that reads now.
    """

    def __init__(self, read: Callable[[], Value]) -> None:
        """`read` may raise OSError: then there is no value."""
        self._read = read
        self._last: tuple[Value | None, float] = (None, 0.0)  # assigned as a whole: another thread does it
        self._thread: Thread | None = None
        self._begun_s = 0.0

    def latest(self, now_s: float) -> Value | None:
        """The last value, if there is one; begins a reading where one is due."""
        idle = self._thread is None or not self._thread.is_alive()
        if idle and (self._thread is None or now_s - self._begun_s >= EVERY_S):
            self._begun_s = now_s
            self._thread = Thread(target=self._take, args=(now_s,), name="slow reading", daemon=True)
            self._thread.start()
        value, begun_s = self._last
        return value if now_s - begun_s <= KEPT_S else None

    def _take(self, now_s: float) -> None:
        try:
            self._last = (self._read(), now_s)
        except OSError:
            self._last = (None, now_s)


class HostConnector:
    """State: what `config` found, and the readings that are made beside gathers."""

    def __init__(
        self,
        cores: Sequence[int] = (),
        root: Path = ROOT,
        now_ns: Callable[[], int] = time.monotonic_ns,
        find_numbers: Callable[[Sequence[str]], DeviceNumbers] = device_numbers,
    ) -> None:
        """`cores`: those that the slave may use; none: those that this process may. `find_numbers`: see elements.py."""
        self._cores = tuple(cores) or tuple(sorted(os.sched_getaffinity(0)))
        self._root = root
        self._now_ns = now_ns
        self._find_numbers = find_numbers
        self._elements = NO_ELEMENTS
        self._interfaces = frozenset[str]()
        self._health: dict[str, SlowReading[nvme_smart.Health]] = {}
        self._frequency = SlowReading(partial(host_stats.mean_mhz, self._cores, root))

    def config(self, luns: Sequence[str]) -> tuple[tuple[ElementMetric, ...], tuple[Fact, ...]]:
        """The metrics, which are the same on every host, and which elements are below the LUNs at these paths."""
        self._elements = find_elements(self._find_numbers(luns), self._root)
        self._interfaces = host_stats.interfaces(self._root)
        self._health = {
            name: SlowReading(partial(nvme_smart.read_health, name, Path(folder), self._root))
            for name, folder in self._elements.controllers.items()
        }
        return METRICS, self._elements.facts

    @property
    def read_later(self) -> Sequence[tuple[str, str]]:
        """The elements (type and instance) that may have no value in the first gather, and some in later ones."""
        return [(NVME, name) for name in self._health]

    def gather(self) -> Readings:
        """All present values; disks first, whose counters move the most, each element type with a stamp of its own."""
        start_ns = self._now_ns()
        facts: list[Fact] = []
        stamps: dict[str, int] = {}
        for element, read in (
            (DISK, self._disks),
            (PARTITION, self._partitions),
            (COMPONENT, self._components),
            (CPU, self._cores_and_interrupts),
            (NIC, self._network),
            (MEMORY, self._memory),
            (PRESSURE, self._pressure),
            (NVME, self._controllers),
        ):
            stamps[element] = self._now_ns()
            facts += read()
        return Readings(0, Facts(facts), start_ns, self._now_ns(), stamps)

    def _disks(self) -> Iterator[Fact]:
        return block_stats.disk_facts(DISK, self._elements.disks)

    def _partitions(self) -> Iterator[Fact]:
        return block_stats.partition_facts(PARTITION, self._elements.partitions)

    def _components(self) -> Iterator[Fact]:
        return block_stats.disk_facts(COMPONENT, self._elements.components)

    def _cores_and_interrupts(self) -> Iterator[Fact]:
        text = text_of(self._root / "proc/stat")
        yield from host_stats.core_facts(text, self._cores)
        mhz = self._frequency.latest(self._now_ns() / 1e9)
        if mhz is not None:
            yield Fact(CPU, HOST, "mhz", mhz)
        for name, count in host_stats.interrupt_counts(text, self._elements.interrupts):
            for element, folders in ((DISK, self._elements.disks), (COMPONENT, self._elements.components)):
                if name in folders:
                    yield Fact(element, name, block_stats.INTERRUPTS, count)

    def _network(self) -> Iterator[Fact]:
        return host_stats.network_facts(text_of(self._root / "proc/net/dev"), self._interfaces)

    def _memory(self) -> Iterator[Fact]:
        return host_stats.memory_facts(text_of(self._root / "proc/meminfo"))

    def _pressure(self) -> Iterator[Fact]:
        return host_stats.pressure_facts(self._root)

    def _controllers(self) -> Iterator[Fact]:
        for name, reading in self._health.items():
            health = reading.latest(self._now_ns() / 1e9)
            if health is not None:
                yield from nvme_smart.facts(NVME, name, health)


def metric_table() -> str:
    """The metrics as the docs have them, in Markdown; one that several element types have in one line."""
    elements: dict[ElementMetric, list[str]] = {}
    for metric in METRICS:
        elements.setdefault(replace(metric, element=""), []).append(f"`{metric.element}`")
    lines: dict[str, list[str]] = {}
    for metric, names in elements.items():
        several = "ratio of sums" if metric.per else metric.combine
        unit = f"{metric.unit}; " if metric.unit else ""
        lines.setdefault(", ".join(names), []).append(f"- `{metric.attribute}` ({unit}{several}): {metric.meaning}\n")
    return "\n".join(f"{names}:\n\n{''.join(of)}" for names, of in lines.items())
