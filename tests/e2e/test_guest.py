"""The engine on devices that this machine's kernel lacks, in a virtual machine with Debian's."""

import sys

import pytest

from tests.support.devices import Missing
from tests.support.engine import built
from tests.support.guest import run_in_guest

pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]

TAGS = 256

SCRIPT = """
set -e
blocks=$(blockdev --getsz /dev/nullb0)
dmsetup create d1 --table "0 $blocks linear /dev/nullb0 0" >/dev/null
dmsetup mknodes
uname -r
echo shown $(cat /sys/block/dm-0/queue/nr_requests) $(ls -d /sys/block/dm-0/mq 2>/dev/null)
{driver} libaio /dev/mapper/d1 dm-0 {tags}
{driver} libaio /dev/nvme0n1 nvme0n1 {tags}
"""

NVME_SCRIPT = """
set -e
{driver} namespace /dev/nvme0n1
"""


RELOAD_SCRIPT = """
set -e
blocks=$(blockdev --getsz /dev/nvme0n1)
facts() {{ {python} -c 'from ivypy.slave.luns.discovery import inspect_luns
((lun,), _) = inspect_luns(["/dev/mapper/v"]); print(lun.identity.facts, lun.refusals)'; }}
echo "0 $blocks linear /dev/nvme0n1 0" | dmsetup create v --uuid LVM-abc >/dev/null
dmsetup mknodes
facts
dmsetup suspend v; dmsetup resume v
facts
echo "0 $blocks linear /dev/nullb0 0" | dmsetup reload v
facts
dmsetup suspend v; dmsetup resume v
facts
"""


def said_by_guest(script: str) -> list[str]:
    try:
        return run_in_guest(script)
    except Missing as missing:
        pytest.skip(f"this machine lacks {missing}")


def figures(line: str) -> dict[str, int]:
    """Of "limit 0 most 256 ..."."""
    words = line.split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


def test_device_mapper_on_an_older_kernel_is_not_capped_at_128() -> None:
    """6.1 shows nr_requests 128 for a linear volume, which limits nothing: all 256 tags are in flight on it, by the
    kernel's own count. An NVMe disk has hardware queues, and their length is its limit."""
    release, shown, *lines = said_by_guest(SCRIPT.format(driver=built("on_device", "plain"), tags=TAGS))
    volume, disk = map(figures, lines)
    assert release.startswith("6.1.")
    assert shown == "shown 128"  # and no folder mq
    assert volume["limit"] == 0
    assert volume["most"] == TAGS
    assert disk["limit"] > 0
    assert disk["most"] > 0
    for found in (volume, disk):
        assert found["completed"] > 0
        assert found["errors"] == 0
    assert volume["waits"] == 0


def test_a_volume_whose_table_is_reloaded_is_another_though_its_uuid_stays() -> None:
    script = RELOAD_SCRIPT.format(python=sys.executable)
    first, resumed, loaded, reloaded = said_by_guest(script)
    assert first == resumed == loaded, "a table that is not in use yet counts for nothing"
    assert "('dm uuid', 'LVM-abc'), ('table', '" in first
    assert first != reloaded
    assert all(line.endswith(" ()") for line in (first, reloaded)), "nothing is against writing it"


def test_nvme_commands_do_what_the_block_device_shows() -> None:
    """On QEMU's emulated disk; the driver checks the data, and an error's number."""
    lines = said_by_guest(NVME_SCRIPT.format(driver=built("nvme", "plain")))
    said = [line.split(" completed")[0] for line in lines]
    once = [f"{what} depth {depth}" for depth in (1, 32) for what in ("writes", "reads")]
    assert [line for line in said if "depth" in line] == once
    assert len([line for line in said if line.startswith("behind_the_end errors ")]) == 1
