"""The attributes that LUNs have, in one place: what `select` and rollups may name.

Rule: a host's discovery finds those of the LUN; the controller adds what only it knows (host, lun, workload, all);
a plan may add its own. An attribute that a LUN does not have is absent: as a rollup's value, `none`.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Holds(StrEnum):
    """The type of an attribute's values; decides how a condition on it is read."""

    TEXT = "text"
    NUMBER = "number"
    BYTES = "bytes"
    FLAG = "flag"  # 0 or 1


@dataclass(frozen=True, slots=True)
class AboutAttribute:
    holds: Holds
    doc: str
    selectable: bool = True  # False: known only once workloads are placed


_TEXT, _NUMBER, _BYTES, _FLAG = Holds.TEXT, Holds.NUMBER, Holds.BYTES, Holds.FLAG

SHARED: Final = "shared"

ATTRIBUTES: Final[dict[str, AboutAttribute]] = {
    "all": AboutAttribute(_TEXT, "Always `all`: everything together.", selectable=False),
    "host": AboutAttribute(_TEXT, "The host's name in the plan; as a condition, ranges like lab[01-16] are allowed."),
    "hostname": AboutAttribute(_TEXT, "The machine's own name."),
    "lun": AboutAttribute(_TEXT, "host:path.", selectable=False),
    "workload": AboutAttribute(_TEXT, "The workload's name in the plan.", selectable=False),
    SHARED: AboutAttribute(
        _NUMBER,
        "Number of hosts and paths through which the plan drives the LUN, where it is more than one.",
        selectable=False,
    ),
    "kind": AboutAttribute(_TEXT, "block or file."),
    "path": AboutAttribute(_TEXT, "/dev/nvme0n1, /data/file.1 ..."),
    "name": AboutAttribute(_TEXT, "The kernel's name: nvme0n1, sdb, dm-3; for a file, the last part of its path."),
    "vendor": AboutAttribute(_TEXT, "As the device reports it, without trailing spaces."),
    "model": AboutAttribute(_TEXT, "As the device reports it, without trailing spaces."),
    "serial": AboutAttribute(_TEXT, "The device's serial number."),
    "wwn": AboutAttribute(_TEXT, "World-wide name: 0x5000..., eui.... or uuid...."),
    "size": AboutAttribute(_BYTES, "Size of the LUN."),
    "logical_block_size": AboutAttribute(_BYTES, "The unit of I/O."),
    "physical_block_size": AboutAttribute(_BYTES, "The unit in which the device writes internally."),
    "rotational": AboutAttribute(_FLAG, "true for rotating disks."),
    "scheduler": AboutAttribute(_TEXT, "The kernel's I/O scheduler: none, mq-deadline ..."),
    "nr_requests": AboutAttribute(
        _NUMBER, "Length of each of the device's hardware queues in the kernel. Without `hw_queues` it limits nothing."
    ),
    "hw_queues": AboutAttribute(_NUMBER, "How many hardware queues the device has; dm, md and zram devices have none."),
    "write_cache": AboutAttribute(
        _TEXT, "`write back` where the device has a volatile write cache that the kernel flushes, else `write through`."
    ),
    "fua": AboutAttribute(_FLAG, "true where the device can write around its cache (FUA)."),
    "firmware": AboutAttribute(_TEXT, "The firmware's revision, as the device reports it."),
    "max_sectors_kb": AboutAttribute(_NUMBER, "KiB of the largest request that the kernel sends to the device."),
    "zoned": AboutAttribute(_TEXT, "none, host-aware or host-managed."),
    "wbt_lat_usec": AboutAttribute(
        _NUMBER, "Target of the kernel's throttling of buffered writes, in microseconds; 0: off."
    ),
    "nomerges": AboutAttribute(_NUMBER, "0: the kernel merges requests; 1: only simple cases; 2: never."),
    "rq_affinity": AboutAttribute(
        _NUMBER, "Where a completion is processed: 0 anywhere, 1 on a core near the submitting one, 2 on that core."
    ),
    "io_poll": AboutAttribute(_FLAG, "true where the device has queues that can be polled (`engine: polled`)."),
    "irq_cores": AboutAttribute(_TEXT, "The cores that serve the interrupts of the device or its adapter, like 0-3."),
    "numa_node": AboutAttribute(_NUMBER, "The NUMA node that the device is attached to."),
    "transport": AboutAttribute(_TEXT, "nvme, nvme_tcp, nvme_fc, sata, sas, fc, iscsi, usb or virtio."),
    "by_id": AboutAttribute(_TEXT, "The device's name in /dev/disk/by-id."),
    "multipath": AboutAttribute(_TEXT, "The multipath map's name."),
    "read_only": AboutAttribute(_FLAG, "true where the kernel refuses writes."),
    "filesystem": AboutAttribute(_TEXT, "For a file: type of its filesystem."),
    "mount": AboutAttribute(_TEXT, "For a file: mount point of its filesystem."),
    "partition_of": AboutAttribute(_TEXT, "For a partition: name of the whole device."),
}
