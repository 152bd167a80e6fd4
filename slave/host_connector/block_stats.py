"""The kernel's counters of block devices, from `stat` in sysfs, as metrics.

Rule: numbers go out as the kernel counts them, and the declared scale and width say what they are. Times are whole
milliseconds in 32 bits, on a 64-bit kernel, too, so they start anew after 50 days of busy time; everything else has 64
bits. An I/O and its time count when it completes. Busy time is counted in ticks of 1 to 10 ms: before Linux 6.10, each
I/O makes the whole tick in which it starts a busy one; since then, those within a tick are often missed. Kernels before
4.18 have no discards, those before 5.5 no flushes: what is not counted is absent, as is all of a device whose counters
are switched off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from ...protocol.connector import Combine, ElementMetric, ReadingKind, Unit
from ...protocol.payload import Fact
from ..kernel_files import first_line, number_in

INTERRUPTS: Final = "interrupts_per_s"
_TICK_BITS: Final = 32
_MIB_PER_SECTOR: Final = 512 / (1 << 20)  # the kernel's sector, whatever the device's block size


def _counter(
    attribute: str,
    unit: Unit,
    meaning: str,
    scale: float = 1.0,
    combine: Combine = Combine.SUM,
    per: str = "",
    bits: int = 0,
) -> ElementMetric:
    return ElementMetric("", attribute, unit, ReadingKind.COUNTER, combine, scale, per, bits, meaning)


def _gauge(attribute: str, unit: Unit, meaning: str) -> ElementMetric:
    return ElementMetric("", attribute, unit, combine=Combine.SUM, meaning=meaning)


_MEAN_TIME: Final = "mean time of a {}, waiting in the kernel included"
_BUSY: Final = "part of the time with an I/O in flight, by kernel ticks: an estimate where I/Os are shorter than these"
_DEPTH: Final = "mean I/Os in flight, from the times of those that completed"

_OF_BOTH: Final = {  # by its place in `stat`, from 0
    0: _counter("reads_per_s", Unit.PER_S, "reads that completed, as merged"),
    4: _counter("writes_per_s", Unit.PER_S, "writes that completed, as merged; flushes, too"),
    2: _counter("read_mib_per_s", Unit.MIB_PER_S, "data read", _MIB_PER_SECTOR),
    6: _counter("write_mib_per_s", Unit.MIB_PER_S, "data written", _MIB_PER_SECTOR),
    3: _counter("read_ms", Unit.MS, _MEAN_TIME.format("read"), per="reads_per_s", bits=_TICK_BITS),
    7: _counter("write_ms", Unit.MS, _MEAN_TIME.format("write"), per="writes_per_s", bits=_TICK_BITS),
    9: _counter("busy_percent", Unit.PERCENT, _BUSY, 100 / 1000, Combine.MEAN, bits=_TICK_BITS),
    10: _counter("queue_depth", Unit.IOS, _DEPTH, 1 / 1000, bits=_TICK_BITS),
    8: _gauge("in_flight", Unit.IOS, "I/Os in flight at the instant of the reading"),
    11: _counter("discards_per_s", Unit.PER_S, "discards that completed"),
    13: _counter("discard_mib_per_s", Unit.MIB_PER_S, "data discarded", _MIB_PER_SECTOR),
}
_OF_DISKS: Final = {**_OF_BOTH, 15: _counter("flushes_per_s", Unit.PER_S, "flushes of its write cache")}
_INTERRUPTS: Final = _counter(INTERRUPTS, Unit.PER_S, "of its adapter, where that serves no other disk", bits=32)


def metrics_of_disks(element: str) -> tuple[ElementMetric, ...]:
    """Of an element type whose instances are whole disks."""
    return tuple(replace(metric, element=element) for metric in (*_OF_DISKS.values(), _INTERRUPTS))


def metrics_of_partitions(element: str) -> tuple[ElementMetric, ...]:
    return tuple(replace(metric, element=element) for metric in _OF_BOTH.values())


def counted(folder: Path) -> bool:
    """Whether the kernel counts the I/Os of a whole disk; where it does not, its counters stand still.

    What has no hardware queues counts by itself, even where it shows that this is off, as dm before Linux 6.11. Only
    a disk that NVMe's own multipathing makes of several paths does not then, before 6.5.
    """
    by_itself = not (folder / "mq").is_dir() and not folder.name.startswith("nvme")
    return by_itself or number_in(folder / "queue/iostats") != 0


def disk_facts(element: str, folders: Mapping[str, str]) -> Iterator[Fact]:
    """The counters of whole disks (name: folder in sysfs); of one that is gone, none."""
    return _facts(element, folders, _OF_DISKS)


def partition_facts(element: str, folders: Mapping[str, str]) -> Iterator[Fact]:
    return _facts(element, folders, _OF_BOTH)


def _facts(element: str, folders: Mapping[str, str], columns: Mapping[int, ElementMetric]) -> Iterator[Fact]:
    for name, folder in folders.items():
        values = first_line(f"{folder}/stat").split()
        for place, metric in columns.items():
            if place < len(values):
                yield Fact(element, name, metric.attribute, int(values[place]))
