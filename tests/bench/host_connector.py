"""What readings of a host's elements cost it: CPU time of gathering and encoding them, for some numbers of disks.

The files are real ones of this machine's kernel: the disks are made up, but the counters of each are a loop device's.
    scripts/bench host_connector
"""

import os
import tempfile
import time
from pathlib import Path
from typing import Final

from ivypy.protocol.lines import encode_line
from ivypy.slave.host_connector.boundary_reader import BoundaryReader, ReadingCells
from ivypy.slave.host_connector.connector import HostConnector

DISKS: Final = (4, 100)
GATHERS: Final = 200


def made_up(root: Path, count: int) -> dict[str, tuple[int, ...]]:
    """A root folder with so many disks; by path of a LUN on each, its device number."""
    real = sorted(Path("/sys/devices/virtual/block").glob("loop*/stat"))
    for name in ("proc", "dev"):
        (root / name).symlink_to(f"/{name}")
    (root / "sys/dev/block").mkdir(parents=True)
    (root / "sys/class").mkdir()
    (root / "sys/class/net").symlink_to("/sys/class/net")
    numbers: dict[str, tuple[int, ...]] = {}
    for n in range(count):
        folder = root / f"sys/devices/sd{n}"
        folder.mkdir(parents=True)
        (folder / "stat").symlink_to(real[n % len(real)])
        (root / f"sys/dev/block/8:{n}").symlink_to(folder)
        numbers[f"/dev/sd{n}"] = (os.makedev(8, n),)
    return numbers


def cost(root: Path, count: int) -> tuple[float, int]:
    """(ms of CPU for the readings of each subinterval, bytes of these in a result)."""
    numbers = made_up(root, count)
    reader = BoundaryReader(HostConnector(root=root, find_numbers=lambda luns: numbers), time.monotonic_ns)
    cells = ReadingCells.of(reader.find(0, list(numbers)))
    size = len(encode_line(reader.read(0, cells)))
    began = time.process_time()
    for number in range(GATHERS):
        encode_line(reader.read(number, cells))
    return 1e3 * (time.process_time() - began) / GATHERS, size


def main() -> None:
    for count in DISKS:
        with tempfile.TemporaryDirectory() as folder:
            each_ms, size = cost(Path(folder), count)
        share = f"at 1 s {each_ms / 10:.2f} % of a core"
        print(f"{count:4} disks: {each_ms:5.2f} ms of CPU a gather, {size / 1000:5.1f} kB; {share}")


if __name__ == "__main__":
    main()
