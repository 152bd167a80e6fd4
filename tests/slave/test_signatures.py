"""What the bytes of a device say it holds: the table, against real makers of such bytes and against random data."""

import functools
import operator
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.slave.devices.signatures import BLOCK, FURTHER, READ, SIGNATURES, DeviceEnds, Signature, formats_in
from ivypy.slave.gate.holds import read_ends

pytestmark = pytest.mark.slow

SIZE = 8 << 20
KEY = ["--key-file", "/proc/version", "--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000"]  # any file will do


def ends(data: bytes | bytearray) -> DeviceEnds:
    further = tuple((at, bytes(data[at : at + BLOCK])) for at in FURTHER if at + BLOCK <= len(data))
    return DeviceEnds(bytes(data[:READ]), bytes(data[-READ:]), len(data), further)


@functools.cache
def random_data() -> bytes:
    return random.Random(1).randbytes(SIZE)


@pytest.mark.parametrize("row", dict.fromkeys(s for s in SIGNATURES if s.name != "ZFS"), ids=lambda s: s.name)
def test_every_row_is_found_in_random_data(row: Signature) -> None:
    data = bytearray(random_data())
    for at, magic in row.pieces:
        start = at % SIZE
        data[start : start + len(magic)] = magic
    assert row.name in formats_in(ends(data))


@given(st.integers(0, 2**64 - 1))
def test_random_data_has_no_signature(seed: int) -> None:
    assert formats_in(ends(random.Random(seed).randbytes(2 * READ))) == ()


def test_no_row_matches_by_less_than_four_bytes() -> None:
    assert [row.name for row in SIGNATURES if sum(len(magic) for _, magic in row.pieces) < 4] == []


def test_what_lies_beyond_the_ends_is_in_few_blocks() -> None:
    assert FURTHER == (256 << 10, 1 << 20, 2 << 20)  # ufs, a VMFS volume, vmfs
    assert "vmfs" not in formats_in(ends(bytes(SIZE)))


def test_a_sun_label_is_one_only_with_its_checksum() -> None:
    data = bytearray(random_data())
    data[508:510] = b"\xda\xbe"
    data[510:512] = bytes(2)
    assert formats_in(ends(data)) == ()
    words = [data[i : i + 2] for i in range(0, 510, 2)]
    data[510] = functools.reduce(operator.xor, (word[0] for word in words))
    data[511] = functools.reduce(operator.xor, (word[1] for word in words))
    assert formats_in(ends(data)) == ("Sun disk label",)


@pytest.mark.parametrize("size", [0, 1, 511, 512, 4096, READ - 1, READ + 1])
def test_small_and_empty_devices_have_no_signature(size: int) -> None:
    assert formats_in(ends(bytes(size))) == ()


def test_zfs_is_found_by_an_uberblock_in_either_byte_order() -> None:
    for magic in (b"\x0c\xb1\xba\0\0\0\0\0", b"\0\0\0\0\0\xba\xb1\x0c"):
        data = bytearray(SIZE)
        data[(128 << 10) + 7 * 1024 : (128 << 10) + 7 * 1024 + 8] = magic
        assert formats_in(ends(data)) == ("ZFS",)


@pytest.mark.parametrize(
    ("name", "at", "magic"),
    [
        ("mdraid 0.90", SIZE - 0x10000, b"\xfc\x4e\x2b\xa9"),
        ("mdraid 0.90", SIZE - 0x10000, b"\xa9\x2b\x4e\xfc"),
        ("mdraid 1.0", SIZE - 8192, b"\xfc\x4e\x2b\xa9\x01\0\0\0"),
        ("DRBD", SIZE - 4096 + 60, b"\x83\x74\x02\x6b"),
        ("DRBD", SIZE - 4096 + 60, b"\x83\x74\x02\x6d"),
    ],
)
def test_superblocks_at_the_end_of_a_device_are_found(name: str, at: int, magic: bytes) -> None:
    data = bytearray(SIZE)
    data[at : at + len(magic)] = magic
    assert formats_in(ends(data)) == (name,)


def test_a_boot_sector_is_an_mbr_only_with_possible_partition_flags() -> None:
    data = bytearray(SIZE)
    data[510:512] = b"\x55\xaa"
    data[446] = 0x80
    assert formats_in(ends(data)) == ("MBR partition table",)
    data[446] = 0x17
    assert formats_in(ends(data)) == ()


def test_a_gpt_is_named_and_its_protective_mbr_is_not() -> None:
    data = bytearray(SIZE)
    data[510:512] = b"\x55\xaa"
    data[512:520] = b"EFI PART"
    data[-512:-504] = b"EFI PART"
    assert formats_in(ends(data)) == ("GPT partition table",)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("maker", "name"),
    [
        (["mkfs.ext4", "-q", "-F"], "ext2, ext3 or ext4"),
        (["mkfs.ext2", "-q", "-F"], "ext2, ext3 or ext4"),
        (["mkfs.xfs", "-q", "-f"], "xfs"),
        (["mkfs.btrfs", "-q", "-f"], "btrfs"),
        (["mkfs.vfat"], "vfat"),
        (["mkfs.vfat", "-F", "32"], "vfat"),
        (["mkfs.exfat"], "exfat"),
        (["mkfs.f2fs", "-q"], "f2fs"),
        (["mkfs.ntfs", "-q", "-F", "-Q"], "ntfs"),
        (["cryptsetup", "luksFormat", "-q", "--type", "luks1", *KEY], "LUKS"),
        (["cryptsetup", "luksFormat", "-q", "--type", "luks2", *KEY], "LUKS"),
        (["mkfs.minix"], "minix"),
        (["mkfs.minix", "-2"], "minix"),
        (["mkfs.minix", "-3"], "minix"),
        (["mkfs.bfs"], "bfs"),
        (["mkswap", "-q"], "swap"),
        (["mkswap", "-q", "-p", "65536"], "swap"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_what_real_makers_write_is_found_and_wipefs_removes_it(maker: list[str], name: str, tmp_path: Path) -> None:
    if shutil.which(maker[0]) is None or shutil.which("wipefs") is None:
        pytest.skip(f"this machine lacks {maker[0]} or wipefs")
    image = tmp_path / "image"
    with open(image, "wb") as file:
        file.truncate(400 << 20)  # xfs wants 300 MiB
    subprocess.run([*maker, str(image)], check=True, capture_output=True)
    seen, why = read_ends(str(image))
    assert seen is not None, why
    assert formats_in(seen) == (name,)
    subprocess.run(["wipefs", "-q", "-a", "-f", str(image)], check=True)
    seen, _ = read_ends(str(image))
    assert seen is not None
    assert formats_in(seen) == ()


def test_unreadable_devices_are_reported_with_the_reason(tmp_path: Path) -> None:
    assert read_ends(str(tmp_path / "nothing")) == (None, "No such file or directory")
    assert read_ends(os.fspath(tmp_path)) == (None, "Is a directory")
