"""The health of NVMe controllers: log page 2 (SMART), by an admin command through the controller's character device.

Rule: the command has no time limit of its own. Where one expires, the kernel resets the controller, and that would be
our doing, in the middle of a test; so it is the caller that does not wait (SlowReading in connector.py). Where the
command is not allowed, what remains is the temperature that the kernel itself reads, by the same command.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...protocol.connector import Combine, ElementMetric, Unit
from ...protocol.payload import Fact
from ..devices.block_devices import ROOT
from ..kernel_files import number_in

ADMIN_CMD: Final = 0xC0484E41  # _IOWR('N', 0x41, struct nvme_admin_cmd)
# opcode, flags, -, namespace, dwords 2 and 3, metadata, data, their lengths, dwords 10 to 15, time limit in ms, result
COMMAND: Final = struct.Struct("=BBHIIIQQIIIIIIIIII")
GET_LOG_PAGE: Final = 0x02
SMART_PAGE: Final = 0x02
ALL_NAMESPACES: Final = 0xFFFFFFFF
PAGE: Final = 512  # bytes
KELVIN: Final = 273


@dataclass(frozen=True)
class Health:
    """None: the controller does not report it."""

    temperature_c: int | None = None
    used_percent: int | None = None
    available_spare_percent: int | None = None
    media_errors: int | None = None
    critical_warning: int | None = None
    hot_s: int | None = None
    throttled_s: int | None = None


def metrics(element: str) -> tuple[ElementMetric, ...]:
    """All are gauges: a log page that is read now and then gives no rates."""
    return (
        ElementMetric(element, "temperature_c", Unit.CELSIUS, combine=Combine.MAX, meaning="composite temperature"),
        ElementMetric(
            element,
            "used_percent",
            Unit.PERCENT,
            combine=Combine.MAX,
            meaning="of its rated life; may exceed 100",
        ),
        ElementMetric(
            element,
            "available_spare_percent",
            Unit.PERCENT,
            meaning="spare capacity that remains, of what it came with",
        ),
        ElementMetric(
            element, "media_errors", Unit.COUNT, combine=Combine.SUM, meaning="unrecovered data errors, ever"
        ),
        ElementMetric(
            element,
            "critical_warning",
            Unit.NONE,
            combine=Combine.MAX,
            meaning="bits of the warnings in force; 0: none",
        ),
        ElementMetric(
            element,
            "hot_s",
            Unit.S,
            combine=Combine.SUM,
            meaning="time above its warning temperature, ever; in whole minutes",
        ),
        ElementMetric(
            element,
            "throttled_s",
            Unit.S,
            combine=Combine.SUM,
            meaning="time throttled by thermal management, ever",
        ),
    )


def facts(element: str, name: str, health: Health) -> Iterator[Fact]:
    for attribute, value in vars(health).items():
        if value is not None:
            yield Fact(element, name, attribute, value)


def read_health(name: str, folder: Path, root: Path = ROOT) -> Health:
    """Of the controller `nvme0` with this folder in sysfs. May hang. Raises OSError where there is nothing to read."""
    try:
        return decode(read_page(root / "dev" / name))
    except OSError:
        return Health(temperature_c=kernel_temperature(folder))


def read_page(device: Path) -> bytes:
    """The log page of the controller at this character device. May hang. Raises OSError."""
    page = ctypes.create_string_buffer(PAGE)
    fd = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    try:
        status = fcntl.ioctl(fd, ADMIN_CMD, get_smart_page(ctypes.addressof(page)))
    finally:
        os.close(fd)
    if isinstance(status, int) and status:  # NVMe's own
        raise OSError(0, f"the controller answered with status {status:#x}")
    return page.raw


def get_smart_page(address: int) -> bytearray:
    """The command that writes the page there, as the kernel's ioctl takes it."""
    dwords = PAGE // 4 - 1  # counted from 0, in the upper half
    return bytearray(
        COMMAND.pack(
            GET_LOG_PAGE,
            0,
            0,
            ALL_NAMESPACES,
            0,
            0,
            0,
            address,
            0,
            PAGE,
            dwords << 16 | SMART_PAGE,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
        )
    )


def decode(page: bytes) -> Health:
    """Of a page as NVMe's base specification lays it out; little-endian."""
    kelvin = number(page, 1, 2)
    return Health(
        temperature_c=kelvin - KELVIN if kelvin else None,
        used_percent=page[5],
        available_spare_percent=page[3],
        media_errors=number(page, 160, 16),
        critical_warning=page[0],
        hot_s=60 * number(page, 192, 4),
        throttled_s=number(page, 224, 4) + number(page, 228, 4),  # lightly and heavily
    )


def number(page: bytes, at: int, size: int) -> int:
    """No larger than may be sent: some counters have 16 bytes."""
    return min(int.from_bytes(page[at : at + size], "little"), (1 << 63) - 1)


def kernel_temperature(folder: Path) -> int | None:
    """Degrees, which the kernel shows in thousandths; None where it shows none."""
    for pattern in ("hwmon*/temp1_input", "device/hwmon/hwmon*/temp1_input"):
        for place in sorted(folder.glob(pattern)):
            thousandths = number_in(place)
            if thousandths is not None:
                return round(thousandths / 1000)
    return None
