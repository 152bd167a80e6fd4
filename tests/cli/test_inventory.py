"""The inventory: the block devices of a host, who uses them, and how to select them."""

import asyncio
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.cli.inventory import device_lines, example_lines, used_by
from ivypy.master.hosts.driver import CommandRefused
from ivypy.master.plan.load import read
from ivypy.master.run.setup.discover_luns import block_devices
from ivypy.master.text.wrapping import wrapped
from ivypy.protocol.messages import ListLuns, Luns
from ivypy.protocol.payload import Lun, Refusal
from tests.support.fork_server import COMMAND
from tests.support.loop_devices import loop_device, need, needs_loops
from tests.support.real_runs import answered


def lun(path: str, *refusals: str, **attributes: Any) -> Lun:
    return Lun(path, "block", 1 << 40, 512, attributes, refusals, ())


def test_devices_with_their_users_and_a_select() -> None:
    found = [
        lun("/dev/sda", "it has partitions (sda1): wipefs -a /dev/sda", vendor="ATA", model="DISK", serial="A1"),
        lun("/dev/sda1", "it is mounted at /: umount /", serial="A1"),
        lun("/dev/sdb", model="DISK", serial="B2"),
        lun("/dev/vdb", vendor="0x1af4"),
    ]
    assert device_lines("lab01", found) == [
        "",
        "lab01: 4 block devices",
        "  /dev/sda  1.00 TiB  ATA, DISK, serial A1",
        "      in use: has partitions (sda1)",
        "  /dev/sda1  1.00 TiB  serial A1",
        "      in use: mounted at /",
        "  /dev/sdb  1.00 TiB  DISK, serial B2",
        "      not in use",
        '      select: { serial: "B2" }',
        "  /dev/vdb  1.00 TiB",
        "      not in use",
        '      select: { path: "/dev/vdb" }',
    ]


def test_what_a_free_device_seems_to_hold_is_shown() -> None:
    one = replace(lun("/dev/sdb"), holds=("gzip data",))
    assert device_lines("h", [one])[3:5] == ["      not in use", "      contents: gzip data"]


def test_a_serial_of_two_devices_selects_neither() -> None:
    lines = device_lines("h", [lun("/dev/sdb", serial="A"), lun("/dev/sdc", serial="A")])
    assert [line.strip() for line in lines if "select" in line] == [
        'select: { path: "/dev/sdb" }',
        'select: { path: "/dev/sdc" }',
    ]


@given(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), max_size=40))
@pytest.mark.slow
def test_every_select_can_be_pasted(serial: str) -> None:
    lines = device_lines("h", [lun("/dev/sdb", serial=serial)])
    (select,) = [line.strip() for line in lines if "select:" in line.split()[:1]]
    plan = read(f"luns: {{ {select} }}\nworkloads: {{ w: {{ maxtags: 1 }} }}\nsteps: [ go: one ]\n", "pasted")
    assert plan.luns.select is not None
    assert plan.luns.select.matches({"serial": serial, "path": "/dev/sdb"})


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        ("it is mounted at /: umount /", "mounted at /"),
        ("it has the signature of LVM: wipefs -a /dev/sdb", "has the signature of LVM"),
        ("/dev/sdb1 on it is mounted at /: umount /", "/dev/sdb1 on it is mounted at /"),
        ("dm-0 is built upon it: take it out", "dm-0 is built upon it"),
    ],
)
def test_who_uses_it(refusal: str, said: str) -> None:
    assert used_by(refusal) == said


def test_the_page_fits_a_terminal() -> None:
    many = "it is open for writing by a program with a long name and many words in it: end it"
    lines = device_lines("h", [lun("/dev/sdb", *[many] * 5, model="MODEL " * 10, serial="S" * 40)])
    page = [piece for line in [*lines, *example_lines("/dev/nvme0n1")] for piece in wrapped(line, 80)]
    assert max(map(len, page)) <= 80


class HostWithBadDevices:
    """A host that lists its devices, and refuses to inspect any beside those that are bad by then, one at a time."""

    name = "lab01"

    def __init__(self, *listed: str, bad: Sequence[str] = ()) -> None:
        self.listed, self.bad = listed, bad

    async def request(self, kind: type[Any], **fields: Any) -> list[Any]:
        if kind is ListLuns:
            return [Luns(1, tuple(lun(path) for path in self.listed))]
        if found := [path for path in self.bad if path in fields["paths"]]:
            raise CommandRefused((Refusal(found[0], "it cannot be inspected: No medium found"),))
        return [Luns(2, tuple(lun(path, serial="seen") for path in fields["paths"]))]


@pytest.mark.parametrize("bad", [[], ["/dev/b"], ["/dev/a", "/dev/c"], ["/dev/a", "/dev/b", "/dev/c"]])
def test_a_device_that_cannot_be_inspected_hides_no_other(bad: list[str]) -> None:
    host: Any = HostWithBadDevices("/dev/a", "/dev/b", "/dev/c", bad=bad)
    found = asyncio.run(block_devices(host))
    assert [one.path for one in found] == ["/dev/a", "/dev/b", "/dev/c"]
    assert [one.path for one in found if one.refusals] == bad
    assert all(one.refusals or one.attributes["serial"] == "seen" for one in found)


def test_a_host_that_inspects_nothing_at_all_is_refused() -> None:
    host: Any = HostWithBadDevices("/dev/a")
    host.request = AsyncMock(side_effect=[[Luns(1, (lun("/dev/a"),))], CommandRefused((Refusal("", "no state"),))])
    with pytest.raises(CommandRefused, match="no state"):
        asyncio.run(block_devices(host))


# Other tests' devices are none of this machine's: it would claim each for a moment.
ONE_DEVICE = 'mount -t tmpfs none /sys/block && ln -s "$1" /sys/block && shift && exec "$@"'


@needs_loops
@pytest.mark.slow
def test_without_a_plan_devices_lists_this_machine(shm: Path) -> None:
    need("unshare", "mount")
    with loop_device(shm) as loop:
        folder = Path("/sys/block", Path(loop).name).resolve()
        words = ["unshare", "--mount", "sh", "-c", ONE_DEVICE, "sh", str(folder), COMMAND, "devices"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("local") and "\nlocal: 1 block device\n" in done.stdout
    assert f"\n  {loop}  32.0 MiB\n      not in use\n" in done.stdout


@pytest.mark.slow
def test_without_a_target_quick_says_what_it_takes() -> None:
    assert "ivypy quick" in answered("quick").stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-D", "a=b"], "no plan is named"),
        (["x.yaml", "lab01"], "name one plan"),
        (["x.yaml", "--user", "perf"], "ssh: { user: NAME }"),
        (["lab[01-"], "has no partner"),
    ],
)
def test_devices_refuses_what_it_cannot_mean(words: list[str], said: str) -> None:
    done = answered("devices", *words)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr
