"""What the bytes of a device say it holds: filesystems, members of volumes, partition tables.

Rule: pure; a table of magic numbers, looked for in the first and the last READ bytes. A signature is only ever a
reason not to write, so the table is wide rather than deep; rows of two or three bytes have a second place that must
match as well, since ivypy's own random data must not be taken for one of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

READ: Final = 256 << 10  # bytes at each end: the first ZFS label, and where MD keeps its superblocks


@dataclass(frozen=True, slots=True)
class Signature:
    name: str
    pieces: tuple[tuple[int, bytes], ...]  # (offset, magic): all must match; a negative offset counts from the end


def _one(name: str, *places: int, magic: bytes) -> tuple[Signature, ...]:
    """The same magic in any of several places."""
    return tuple(Signature(name, ((place, magic),)) for place in places)


BOOT: Final = (510, b"\x55\xaa")
SWAP_PAGES: Final = (4096, 8192, 16384, 65536)
BTRFS_AT: Final = 0x10040
ZFS_UBERBLOCKS: Final = range(128 << 10, 256 << 10, 1024)

SIGNATURES: Final[tuple[Signature, ...]] = (
    # Filesystems. Beside ext's two bytes: the upper three of s_log_block_size, which is at most 6.
    Signature("ext2, ext3 or ext4", ((1080, b"\x53\xef"), (1049, b"\0\0\0"))),
    *_one("xfs", 0, magic=b"XFSB"),
    *_one("btrfs", BTRFS_AT, magic=b"_BHRfS_M"),
    Signature("vfat", ((82, b"FAT32   "), BOOT)),
    Signature("vfat", ((54, b"FAT16   "), BOOT)),
    Signature("vfat", ((54, b"FAT12   "), BOOT)),
    Signature("exfat", ((3, b"EXFAT   "), BOOT)),
    Signature("ntfs", ((3, b"NTFS    "), BOOT)),
    Signature("hfs+", ((1024, b"H+\x00\x04"),)),
    Signature("hfs+", ((1024, b"HX\x00\x05"),)),
    *_one("apfs", 32, magic=b"NXSB"),
    *_one("f2fs", 1024, magic=b"\x10\x20\xf5\xf2"),
    *_one("erofs", 1024, magic=b"\xe2\xe1\xf5\xe0"),
    *_one("squashfs", 0, magic=b"hsqs"),
    *_one("iso9660", 0x8001, magic=b"CD001"),
    *_one("udf", 0x8001, 0x8801, 0x9001, magic=b"NSR0"),
    *_one("jfs", 0x8000, magic=b"JFS1"),
    *_one("reiserfs", 0x10034, magic=b"ReIsEr"),
    *_one("gfs2", 0x10000, magic=b"\x01\x16\x19\x70"),
    *_one("ocfs2", 1024, 2048, 4096, 8192, magic=b"OCFSV2"),
    *_one("bcachefs", 4096 + 24, magic=bytes.fromhex("c68573f666ce90a9d96a60cf803df7ef")),
    # Members of volumes, and what databases and stores put straight on a device.
    *(Signature("LVM2", ((at, b"LABELONE"), (at + 24, b"LVM2 001"))) for at in (0, 512, 1024, 1536)),
    *_one("LUKS", 0, magic=b"LUKS\xba\xbe"),
    *_one("LUKS", 0x4000, 0x8000, 0x10000, 0x20000, magic=b"SKUL\xba\xbe"),
    *_one("BitLocker", 3, magic=b"-FVE-FS-"),
    *_one("dm-integrity", 0, magic=b"integrt\0"),
    *_one("dm-verity", 0, magic=b"verity\0\0"),
    *_one("VDO", 0, magic=b"dmvdo001"),
    *_one("stratis", 0x204, 0x1204, magic=b"!Stra0tis\x86\xff\x02^\x41rh"),
    *_one("mdraid 1.1", 0, magic=b"\xfc\x4e\x2b\xa9\x01\0\0\0"),
    *_one("mdraid 1.2", 4096, magic=b"\xfc\x4e\x2b\xa9\x01\0\0\0"),
    *_one("Intel RAID", -1024, magic=b"Intel Raid ISM Cfg Sig. "),
    *_one("DDF RAID", -512, magic=b"\xde\x11\xde\x11"),
    *(Signature("ZFS", ((at, b"\x0c\xb1\xba\0\0\0\0\0"),)) for at in ZFS_UBERBLOCKS),
    *(Signature("ZFS", ((at, b"\0\0\0\0\0\xba\xb1\x0c"),)) for at in ZFS_UBERBLOCKS),
    *_one("bcache", 4096 + 24, magic=bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81")),
    *_one("Ceph BlueStore", 0, magic=b"bluestore block device"),
    *_one("Oracle ASM", 32, magic=b"ORCLDISK"),
    *(Signature("swap", ((page - 10, b"SWAPSPACE2"),)) for page in SWAP_PAGES),
    *(Signature("swap", ((page - 10, b"SWAP-SPACE"),)) for page in SWAP_PAGES),
    *(Signature("hibernation image", ((page - 10, b"S1SUSPEND"),)) for page in SWAP_PAGES),
    # GPT: in the second and in the last logical block, of 512 or 4096 bytes.
    *_one("GPT partition table", 512, 4096, -512, -4096, magic=b"EFI PART"),
)


@dataclass(frozen=True, slots=True)
class Ends:
    """The first and the last bytes of a device of `size` bytes; the two overlap where it is small."""

    head: bytes
    tail: bytes
    size: int

    def read(self, offset: int, length: int) -> bytes:
        """Bytes at `offset` (negative: from the end); b"" where they are in neither end."""
        if offset < 0:
            offset += self.size
        if 0 <= offset and offset + length <= len(self.head):
            return self.head[offset : offset + length]
        start = self.size - len(self.tail)
        if start <= offset and offset + length <= self.size:
            return self.tail[offset - start : offset - start + length]
        return b""


def found(ends: Ends) -> tuple[str, ...]:
    """The names of what these bytes say the device holds, each once."""
    names = [s.name for s in SIGNATURES if all(ends.read(at, len(magic)) == magic for at, magic in s.pieces)]
    names += _mdraid_at_the_end(ends)
    if not {"vfat", "exfat", "ntfs", "GPT partition table"} & set(names) and _is_mbr(ends.head):
        names.append("MBR partition table")
    return tuple(dict.fromkeys(names))


def _mdraid_at_the_end(ends: Ends) -> Iterator[str]:
    """Version 0.90 is in the last whole 64 KiB, in either byte order; version 1.0 8 KiB to 12 KiB before the end."""
    at = (ends.size & ~0xFFFF) - 0x10000
    if at >= 0 and ends.read(at, 4) in (b"\xfc\x4e\x2b\xa9", b"\xa9\x2b\x4e\xfc"):
        yield "mdraid 0.90"
    at = ((ends.size // 512 - 16) & ~7) * 512
    if at >= 0 and ends.read(at, 8) == b"\xfc\x4e\x2b\xa9\x01\0\0\0":
        yield "mdraid 1.0"


def _is_mbr(head: bytes) -> bool:
    """A boot sector whose four partition entries, of 16 bytes from 446 on, all begin with a possible boot flag."""
    return head[510:512] == b"\x55\xaa" and all(head[446 + 16 * i] in (0x00, 0x80) for i in range(4))
