"""Random data with a magic of two or three bytes that blkid knows may be written; what really is there may not.

ivypy fills LUNs with random bytes, so such a magic stands on one of some 60,000 of them, and says nothing.
"""

import os
import random
import shutil
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivypy.protocol.refusals import RefusalReason
from ivypy.slave.gate.write_gate import Surroundings, file_evidence, reasons_against
from tests.support.loop_devices import need, run
from tests.support.refusals import refusals_in

pytestmark = pytest.mark.skipif(shutil.which("blkid", path="/usr/sbin:/sbin:/usr/bin:/bin") is None, reason="no blkid")

SIZE = 400 << 20  # xfs wants 300 MiB
HEAD = 72 << 10  # bytes from the start that weak magics and what is checked beside them are in
Pieces = tuple[tuple[int, bytes], ...]  # (offset, bytes); a negative offset counts from the end

WEAK: dict[str, Pieces] = {
    "ext": ((1080, b"\x53\xef"),),
    "hfs": ((1024, b"BD"),),
    "hfs+": ((1024, b"H+"),),
    "hfsx": ((1024, b"HX"),),
    **{f"minix {magic.hex()}": ((1040, magic),) for magic in (b"\x7f\x13", b"\x8f\x13", b"\x68\x24", b"\x78\x24")},
    **{f"minix {magic.hex()}": ((1040, magic),) for magic in (b"\x13\x7f", b"\x13\x8f", b"\x24\x68", b"\x24\x78")},
    **{f"minix {magic.hex()}": ((1048, magic),) for magic in (b"\x5a\x4d", b"\x4d\x5a")},
    "fat": ((0, b"\xeb"), (510, b"\x55\xaa")),
    "a protective MBR": ((450, b"\xee"), (510, b"\x55\xaa")),
    "nilfs2": ((1030, b"\x34\x34"),),
    "LVM1": ((0, b"HM"),),
    "a Sun label": ((508, b"\xda\xbe"),),
    "an Apple partition map": ((0, b"ER"),),
    "VIA RAID": ((-512, b"\x55\xaa"),),
    "JMicron RAID": ((-512, b"JM"),),
}


@pytest.fixture(scope="module")
def around() -> Surroundings:
    return Surroundings.read(openers=False, blkid=True)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("weak") / "image"


def fill(image: Path, seed: int, pieces: Pieces = ()) -> None:
    """A sparse file whose ends are random, but for `pieces`."""
    source = random.Random(seed)
    with open(image, "wb") as file:
        file.write(source.randbytes(HEAD))
        file.truncate(SIZE)
        file.seek(-HEAD, os.SEEK_END)
        file.write(source.randbytes(HEAD))
        for at, data in pieces:
            file.seek(at % SIZE)
            file.write(data)


def refusals(image: Path, around: Surroundings) -> tuple[str, ...]:
    return reasons_against(file_evidence(str(image), around))


@pytest.mark.slow
@pytest.mark.parametrize("name", WEAK)
@settings(max_examples=20)
@given(seed=st.integers(0, 2**32))
def test_random_data_with_a_weak_magic_may_be_written(name: str, around: Surroundings, image: Path, seed: int) -> None:
    fill(image, seed, WEAK[name])
    assert refusals(image, around) == ()


def minix(order: str, magic: int) -> Pieces:
    """The superblock of an older minix, as a machine of this byte order writes it."""
    return ((1024, struct.pack(f"{order}6HI2H", 96, 300, 1, 1, 7, 0, 0x10081C00, magic, 1)),)


def minix3(order: str) -> Pieces:
    return ((1024, struct.pack(f"{order}IHHHHHHIIHHHB", 96, 0, 1, 1, 7, 0, 0, 0x7FFFFFFF, 300, 0x4D5A, 0, 1024, 0)),)


def hfs_plus(signature: bytes, version: int) -> Pieces:
    """A volume header (TN1150): journaled, blocks of 4096 bytes."""
    header = struct.pack(">2sHI4s8I", signature, version, 0x2100, b"HFSJ", 2, 0, 0, 0, 0, 3, 4, 4096)
    return ((1024, header),)


def jmicron(total: int) -> Pieces:
    """The last sector of a member of an array; its words, the checksum among them, add up to `total`."""
    words = [0x4D4A, 0x0100, 0, *range(1, 62)]
    words[2] = (total - sum(words)) & 0xFFFF
    return ((-512, struct.pack("<64H", *words)),)


REAL: dict[str, tuple[str, Pieces]] = {
    "hfs+": ("hfs+", hfs_plus(b"H+", 4)),
    "hfs+ of the next version": ("hfs+", hfs_plus(b"H+", 5)),
    "hfsx": ("hfs+", hfs_plus(b"HX", 5)),
    "hfsx of the version before": ("hfs+", hfs_plus(b"HX", 4)),
    **{
        f"hfs with blocks of {size}": ("hfs", ((1024, struct.pack(">2s18xII", b"BD", size, 4 * size)),))
        for size in (512, 4096, 32 << 20)
    },
    **{
        f"minix {magic:x} {order}": ("minix", minix(order, magic))
        for magic in (0x137F, 0x138F, 0x2468, 0x2478)
        for order in "<>"
    },
    **{f"minix 3 {order}": ("minix", minix3(order)) for order in "<>"},
    **{f"JMicron RAID {total}": ("JMicron RAID", jmicron(total)) for total in (0, 1)},
    "a protective MBR": ("MBR", ((446, b"\0\0\2\0\xee" + bytes(59)), (510, b"\x55\xaa"))),
    "a protective MBR with a flag of its own": (
        "MBR",
        ((446, b"\x01\0\2\0\xee\xff\xff\xff\1\0\0\0"), (510, b"\x55\xaa")),
    ),
}


@pytest.mark.parametrize("name", REAL)
def test_a_prepared_superblock_on_random_data_is_refused(name: str, around: Surroundings, image: Path) -> None:
    format_name, pieces = REAL[name]
    fill(image, 1, pieces)
    assert any(
        refusals_in(said) == {RefusalReason.SIGNED} and f" of {format_name}" in said for said in refusals(image, around)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "maker",
    [
        ["mkfs.ext4", "-q", "-F"],
        ["mkfs.ext2", "-q", "-F"],
        ["mkfs.xfs", "-q", "-f"],
        ["mkfs.btrfs", "-q", "-f"],
        ["mkfs.vfat"],
        ["mkfs.minix"],
        ["mkfs.minix", "-2"],
        ["mkfs.minix", "-3"],
        ["mkfs.bfs"],
        ["mkswap", "-q"],
    ],
    ids=" ".join,
)
def test_what_a_real_maker_writes_on_random_data_is_refused(
    maker: list[str], around: Surroundings, image: Path
) -> None:
    """Also where weak magics stood before, and may stand there still."""
    need(maker[0])
    for weak in ((), *WEAK.values()):
        fill(image, 2, weak)
        run(*maker, str(image))
        assert refusals(image, around) != (), weak
