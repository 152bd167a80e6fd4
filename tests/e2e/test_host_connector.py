"""The host connector on devices that this machine's kernel lacks, in a virtual machine with Debian's."""

import json
import sys

import pytest

from tests.support.devices import Missing
from tests.support.guest import run_in_guest

pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]

WRITES = 50
PROGRAM = """
import json, subprocess, time
from ivypy.slave.host_connector.connector import HostConnector

connector = HostConnector()
_, facts = connector.config(["/dev/mapper/d1", "/dev/nvme0n1"])
before = after = connector.gather().facts
words = "dd if=/dev/zero of=/dev/mapper/d1 bs=4096 count={writes} oflag=direct status=none"
subprocess.run(words.split(), check=True)
while after is before or not any(fact.element == "nvme" for fact in after):
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


def test_a_volume_on_an_nvme_disk_with_its_controllers_health() -> None:
    """The page is what QEMU's controller answers to the real command: 323 K."""
    try:
        lines = run_in_guest(SCRIPT.format(program=PROGRAM.format(writes=WRITES), python=sys.executable))
    except Missing as missing:
        pytest.skip(f"this machine lacks {missing}")
    said = json.loads(lines[-1])
    assert sorted(said["joins"]) == [
        ["disk", "dm-0", "component", "nvme0n1"],
        ["disk", "dm-0", "nvme", "nvme0"],
        ["disk", "dm-0", "path", "/dev/mapper/d1"],
        ["disk", "nvme0n1", "nvme", "nvme0"],
        ["disk", "nvme0n1", "path", "/dev/nvme0n1"],
    ]
    before, after = ({tuple(fact[:3]): fact[3] for fact in facts} for facts in (said["before"], said["after"]))
    for element, instance in (("disk", "dm-0"), ("component", "nvme0n1")):
        key = element, instance, "writes_per_s"
        assert after[key] - before[key] == WRITES
    for element in ("disk", "component"):
        key = element, "nvme0n1", "interrupts_per_s"
        assert after[key] > before[key]
    assert after["nvme", "nvme0", "temperature_c"] == 50
    assert after["nvme", "nvme0", "media_errors"] == 0
