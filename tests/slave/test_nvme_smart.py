"""The health of NVMe controllers: the command as the kernel's header has it, the page as the specification has it."""

import errno
import shutil
import subprocess
from pathlib import Path

import pytest

from ivypy.slave.host_connector import nvme_smart
from ivypy.slave.host_connector.nvme_smart import ADMIN_CMD, Health, decode, get_smart_page, read_health, read_page

HEADER = Path("/usr/include/linux/nvme_ioctl.h")
ADDRESS = 0x1122334455667788

# What the kernel's own header makes of the same command.
PROGRAM = """
#include <linux/nvme_ioctl.h>
#include <stdio.h>
#include <sys/ioctl.h>

int main(void) {
    struct nvme_admin_cmd command = {
        .opcode = 0x02, .nsid = 0xffffffff, .addr = 0x1122334455667788, .data_len = 512, .cdw10 = 0x007f0002,
    };
    printf("%lx ", (unsigned long)NVME_IOCTL_ADMIN_CMD);
    for (unsigned i = 0; i < sizeof command; i++) printf("%02x", ((unsigned char *)&command)[i]);
    return 0;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None or not HEADER.exists(), reason="needs cc and the kernel's headers")
def test_the_command_is_the_headers(tmp_path: Path) -> None:
    (tmp_path / "command.c").write_text(PROGRAM)
    subprocess.run(["cc", "-o", tmp_path / "command", tmp_path / "command.c"], check=True)
    number, data = subprocess.check_output([tmp_path / "command"], text=True).split()
    assert int(number, 16) == ADMIN_CMD
    assert data == get_smart_page(ADDRESS).hex()


def page(**fields: bytes) -> bytes:
    """A log page with bytes at some places: `at_160=b"\\1"`."""
    data = bytearray(nvme_smart.PAGE)
    for place, value in fields.items():
        at = int(place.removeprefix("at_"))
        data[at : at + len(value)] = value
    return bytes(data)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (page(), Health(None, 0, 0, 0, 0, 0, 0)),
        (page(at_0=b"\x05"), Health(None, 0, 0, 0, 5, 0, 0)),
        (page(at_1=(273 + 41).to_bytes(2, "little")), Health(41, 0, 0, 0, 0, 0, 0)),
        (page(at_1=(273 - 20).to_bytes(2, "little")), Health(-20, 0, 0, 0, 0, 0, 0)),
        (page(at_3=b"\x64", at_5=b"\xff"), Health(None, 255, 100, 0, 0, 0, 0)),
        (page(at_160=b"\x01\x02"), Health(None, 0, 0, 0x201, 0, 0, 0)),
        (page(at_160=b"\xff" * 16), Health(None, 0, 0, (1 << 63) - 1, 0, 0, 0)),  # no more than may be sent
        (page(at_192=b"\x03", at_196=b"\x09"), Health(None, 0, 0, 0, 0, 180, 0)),
        (page(at_216=b"\x07", at_224=b"\x0a", at_228=b"\x05"), Health(None, 0, 0, 0, 0, 0, 15)),
    ],
)
def test_a_page_is_decoded(given: bytes, expected: Health) -> None:
    assert decode(given) == expected


def test_what_is_no_nvme_controller_is_refused() -> None:
    with pytest.raises(OSError) as caught:
        read_page(Path("/dev/null"))
    assert caught.value.errno == errno.ENOTTY


@pytest.mark.parametrize("place", ["hwmon3/temp1_input", "device/hwmon/hwmon0/temp1_input"])
def test_without_the_page_the_kernels_temperature_remains(tmp_path: Path, place: str) -> None:
    controller = tmp_path / "sys/nvme0"
    (controller / place).parent.mkdir(parents=True)
    (controller / place).write_text("40850\n")
    assert read_health("nvme0", controller, tmp_path) == Health(temperature_c=41)


def test_without_both_nothing_is_reported(tmp_path: Path) -> None:
    health = read_health("nvme0", tmp_path, tmp_path)
    assert health == Health()
    assert list(nvme_smart.facts("nvme", "nvme0", health)) == []


def test_facts_are_the_declared_metrics() -> None:
    declared = [metric.attribute for metric in nvme_smart.metrics("nvme")]
    assert [fact.attribute for fact in nvme_smart.facts("nvme", "nvme0", Health(1, 2, 3, 4, 5, 6, 7))] == declared
