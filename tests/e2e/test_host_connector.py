"""The host connector on devices that this machine's kernel lacks, in a virtual machine with Debian's."""

import json
import sys
from typing import Any

import pytest

from tests.support.devices import Missing
from tests.support.guest import run_in_guest

pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]

WRITES = 50
PROGRAM = """
import json, subprocess, time
from ivypy.slave.host_connector.connector import HostConnector

connector = HostConnector()
_, facts = connector.config({luns})
before = after = connector.gather().facts
words = "dd if=/dev/zero of={lun} bs=4096 count={writes} oflag=direct status=none"
subprocess.run(words.split(), check=True)
while after is before or sum(fact.attribute == "temperature_c" for fact in after) < {healthy}:
    time.sleep(0.1)
    after = connector.gather().facts
print(json.dumps(dict(joins=facts, before=before, after=after)))
"""
SCRIPT = """
set -e
dmsetup create d1 --table "0 $(blockdev --getsz /dev/nvme0n1) linear /dev/nvme0n1 0" >/dev/null
dmsetup mknodes
cat > /tmp/program.py <<'end'
{program}
end
{python} /tmp/program.py
"""


def said_by_guest(program: str, controllers: int = 1) -> Any:
    try:
        lines = run_in_guest(SCRIPT.format(program=program, python=sys.executable), controllers=controllers)
    except Missing as missing:
        pytest.skip(f"this machine lacks {missing}")
    return json.loads(lines[-1])


def readings(said: Any) -> list[dict[tuple[str, ...], float]]:
    return [{tuple(fact[:3]): fact[3] for fact in said[when]} for when in ("before", "after")]


def test_a_volume_on_an_nvme_disk_with_its_controllers_health() -> None:
    """The page is what QEMU's controller answers to the real command: 323 K."""
    luns = ["/dev/mapper/d1", "/dev/nvme0n1"]
    said = said_by_guest(PROGRAM.format(luns=luns, lun=luns[0], writes=WRITES, healthy=1))
    assert sorted(said["joins"]) == [
        ["disk", "dm-0", "component", "nvme0n1"],
        ["disk", "dm-0", "nvme", "nvme0"],
        ["disk", "dm-0", "path", "/dev/mapper/d1"],
        ["disk", "nvme0n1", "nvme", "nvme0"],
        ["disk", "nvme0n1", "path", "/dev/nvme0n1"],
    ]
    before, after = readings(said)
    for element, instance in (("disk", "dm-0"), ("component", "nvme0n1")):
        key = element, instance, "writes_per_s"
        assert after[key] - before[key] == WRITES
    for element in ("disk", "component"):
        key = element, "nvme0n1", "interrupts_per_s"
        assert after[key] > before[key]
    assert after["nvme", "nvme0", "temperature_c"] == 50
    assert after["nvme", "nvme0", "media_errors"] == 0


def test_a_namespace_behind_two_controllers_has_two_components() -> None:
    lun = "/dev/nvme0n1"
    said = said_by_guest(PROGRAM.format(luns=[lun], lun=lun, writes=WRITES, healthy=2), controllers=2)
    assert sorted(said["joins"]) == [
        ["disk", "nvme0n1", "component", "nvme0c0n1"],
        ["disk", "nvme0n1", "component", "nvme0c1n1"],
        ["disk", "nvme0n1", "nvme", "nvme0"],
        ["disk", "nvme0n1", "nvme", "nvme1"],
        ["disk", "nvme0n1", "path", "/dev/nvme0n1"],
    ]
    before, after = readings(said)
    paths = ("component", "nvme0c0n1", "writes_per_s"), ("component", "nvme0c1n1", "writes_per_s")
    assert sum(after[path] - before[path] for path in paths) == WRITES
    assert not any(key[:2] == ("disk", "nvme0n1") for key in after), "6.1 does not count what several paths serve"
    assert {after["nvme", name, "temperature_c"] for name in ("nvme0", "nvme1")} == {50}
