"""The kernel's write counters, from a /proc that the test made: real devices are in test_write_gate_devices.py."""

from dataclasses import replace
from pathlib import Path

import pytest

from ivypy.slave.devices.block_devices import BlockDevice
from ivypy.slave.gate.write_counters import WriteCounters, Writes

DEVICE = BlockDevice("sdb", "/dev/sdb", (8, 16), 1 << 20, 512, Path("/sys/x"), Path("/sys/x"), {})


def diskstats(root: Path, writes: int, sectors: int) -> None:
    (root / "proc").mkdir(exist_ok=True)
    row = f"   8      16 sdb 10 0 80 4 {writes} 1 {sectors} 5 0 9 9 0 0 0 0 0 0\n"
    (root / "proc/diskstats").write_text("   7       0 loop0 1 2 3 4 5 6 7 8 9 10 11\n" + row)


@pytest.mark.parametrize(
    ("before", "after", "since"),
    [
        ((5, 40), (5, 40), Writes(0, 0)),
        ((5, 40), (8, 64), Writes(3, 24 * 512)),
        ((5, 40), (1, 8), Writes(0, 0)),  # attached again: another number of the same name
    ],
)
def test_what_was_written_since(before: tuple[int, int], after: tuple[int, int], since: Writes, tmp_path: Path) -> None:
    diskstats(tmp_path, *before)
    counters = WriteCounters(tmp_path)
    assert counters.since(DEVICE) == Writes(0, 0), "nothing is known before it was noted"
    counters.note()
    diskstats(tmp_path, *after)
    assert counters.since(DEVICE) == since
    assert counters.since(replace(DEVICE, number=(8, 32))) == Writes(0, 0)


def test_a_machine_that_shows_no_counters(tmp_path: Path) -> None:
    counters = WriteCounters(tmp_path)
    counters.note()
    assert counters.since(DEVICE) == Writes(0, 0)
