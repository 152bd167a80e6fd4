"""Recognizes what a device holds by its bytes: filesystems, members of volumes, partition tables, disk images.

Rule: pure; a table of magic numbers, looked for in the first and the last READ bytes and in few other blocks. A
signature is only ever a reason not to write, so the table is wide rather than deep, and has what other systems put on
LUNs of a SAN, too. No row has less than four bytes to match, some of them elsewhere than the magic: ivypy's own random
data must not be taken for one of them.
"""

import functools
import operator
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

READ: Final = 256 << 10  # bytes at each end: the first ZFS label, and where MD keeps its superblocks
BLOCK: Final = 4096  # bytes of each block further inside that is read, too


@dataclass(frozen=True)
class Signature:
    name: str
    pieces: tuple[tuple[int, bytes], ...]  # (offset, magic): all must match; a negative offset counts from the end


def _one(name: str, *places: int, magic: bytes) -> tuple[Signature, ...]:
    """The same magic in any of several places."""
    return tuple(Signature(name, ((place, magic),)) for place in places)


def _either(name: str, *places: int, magic: int) -> tuple[Signature, ...]:
    """The same four bytes in either order in any of several places."""
    orders = (magic.to_bytes(4, "little"), magic.to_bytes(4, "big"))
    return tuple(Signature(name, ((place, order),)) for place in places for order in orders)


GPT, MBR, AIX, SGI = "GPT partition table", "MBR partition table", "AIX label", "SGI disk label"
SUN, BSD, APPLE, AMIGA = "Sun disk label", "BSD disk label", "Apple partition map", "Amiga partition table"
DASD = "DASD label"
TABLES: Final = frozenset({GPT, MBR, AIX, SGI, SUN, BSD, APPLE, AMIGA, DASD})  # of parts, each to be used by itself
BOOT: Final = (510, b"\x55\xaa")
SWAP_PAGES: Final = (4096, 8192, 16384, 65536)
BTRFS_AT: Final = 0x10040
ZFS_UBERBLOCKS: Final = range(128 << 10, 256 << 10, 1024)
UFS_AT: Final = tuple((at << 10) + 0x55C for at in (0, 8, 64, 256))
UFS_MAGIC: Final = (0x00011954, 0x19540119, 0x00195612, 0x00095014, 0x00612195, 0x05231994)
BSD_LABEL: Final = b"\x57\x45\x56\x82"
SWAP_SUSPENDED: Final = (b"S1SUSPEND", b"S2SUSPEND", b"ULSUSPEND", b"LINHIB0001", b"\xed\xc3\x02\xe9\x98\x56\xe5\x0c")

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
    # TN1150: the version is 4 below H+ and 5 below HX; Linux takes either below either.
    *(Signature("hfs+", ((1024, magic + version),)) for magic in (b"H+", b"HX") for version in (b"\0\4", b"\0\5")),
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
    *_one("squashfs", 0, magic=b"sqsh"),
    *_one("refs", 0, magic=b"\0\0\0ReFS\0"),
    *(row for magic in UFS_MAGIC for row in _either("ufs", *UFS_AT, magic=magic)),
    *_either("vxfs", 1024, 8192, magic=0xA501FCF5),
    *_one("vmfs", 2 << 20, magic=b"\x5e\xf1\xab\x2f"),
    Signature("nilfs2", ((1024, b"\2\0\0\0\0\0\x34\x34"),)),  # revision 2.0, magic
    *_one("zonefs", 0, magic=b"SFOZ"),
    *_either("cramfs", 0, 512, magic=0x28CD3D45),
    *_one("romfs", 0, magic=b"-rom1fs-"),
    *_one("ubi", 0, magic=b"UBI#"),
    *_one("ubifs", 0, magic=b"\x31\x18\x10\x06"),
    *_one("hpfs", 0x2000, magic=b"\x49\xe8\x95\xf9"),
    *_either("bfs", 0, magic=0x1BADFACE),
    *_either("befs", 544, magic=0x42465331),
    *_one("reiserfs", 0x2034, magic=b"ReIsEr"),
    *_one("reiser4", 0x10000, magic=b"ReIsEr4"),
    *_one("exfs", 0, magic=b"EXFS"),
    *_one("netware", 4096, magic=b"SPB5"),
    *_one("iso9660", 0x8009, magic=b"CDROM"),
    *_one("udf", 0x8001, magic=b"BEA01"),
    # Beside two bytes of magic: of hfs the lowest bytes of drAlBlkSiz, a multiple of 512, and of drClpSiz, a multiple
    # of that; of minix s_log_zone_size, which is 0, and in the older ones the upper byte of s_state; either in the
    # maker's byte order.
    Signature("hfs", ((1024, b"BD"), (1047, b"\0"), (1051, b"\0"))),
    *(
        Signature("minix", ((1034, b"\0\0"), (1040, magic), (1043, b"\0")))
        for magic in (b"\x7f\x13", b"\x8f\x13", b"\x68\x24", b"\x78\x24")
    ),
    *(
        Signature("minix", ((1034, b"\0\0"), (1040, magic), (1042, b"\0")))
        for magic in (b"\x13\x7f", b"\x13\x8f", b"\x24\x68", b"\x24\x78")
    ),
    *(Signature("minix", ((1036, b"\0\0\0\0"), (1048, magic))) for magic in (b"\x5a\x4d", b"\x4d\x5a")),
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
    *_one("VMFS volume", 1 << 20, magic=b"\x0d\xd0\x01\xc0"),
    *_one("DRBD proxy", 0, magic=b"DRBDdlh*"),
    *_one("DRBD manage", 0, magic=b"$DRBDmgr=q"),
    *_one("AIX LVM", 0xE00, magic=b"_LVM"),
    *_one("HP-UX LVM", 0x2000, magic=b"LVMREC01"),
    *(Signature("LVM1", ((0, b"HM" + version),)) for version in (b"\1\0", b"\2\0")),
    *_one("LVM snapshot", 0, magic=b"SnAp"),
    *_one("dm-thin metadata", 32, magic=(27022010).to_bytes(8, "little")),
    *_one("dm-cache metadata", 32, magic=(6142003).to_bytes(8, "little")),
    *_one("Nvidia RAID", -1024, magic=b"NVIDIA"),
    *_one("LSI RAID", -512, magic=b"$XIDE$"),
    *_one("Adaptec RAID", -512, magic=b"DPTM"),
    *_one("mpool", 0, magic=b"mpoolDev"),
    *_one("Windows storage space", 4096, magic=b"SPACEDB "),
    *_one("Windows dynamic disk", 0xC00, magic=b"PRIVHEAD"),
    *_one("Ceph BlueStore", 0, magic=b"bluestore block device"),
    *_one("Oracle ASM", 32, magic=b"ORCLDISK"),
    *(Signature("swap", ((page - 10, b"SWAPSPACE2"),)) for page in SWAP_PAGES),
    *(Signature("swap", ((page - 10, b"SWAP-SPACE"),)) for page in SWAP_PAGES),
    *(Signature("hibernation image", ((page - 10, magic),)) for page in SWAP_PAGES for magic in SWAP_SUSPENDED),
    # Images of disks, in files above all.
    *_one("qcow image", 0, magic=b"QFI\xfb"),
    *_one("qed image", 0, magic=b"QED\0"),
    *_one("vmdk image", 0, magic=b"KDMV"),
    *_one("vmdk image", 0, magic=b"COWD"),
    *_one("vmdk image", 0, magic=b"# Disk DescriptorFile"),
    *_one("vhdx image", 0, magic=b"vhdxfile"),
    *_one("vhd image", 0, -512, magic=b"conectix"),
    *_one("vdi image", 64, magic=b"\x7f\x10\xda\xbe"),
    *_one("Parallels image", 0, magic=b"WithoutFreeSpace"),
    *_one("Parallels image", 0, magic=b"WithouFreSpacExt"),
    # Partition tables; one of BSD has its magic twice.
    *_one(AIX, 0, magic=b"\xc9\xc2\xd4\xc1"),
    *_one(SGI, 0, magic=b"\x0b\xe5\xa9\x41"),
    *(Signature(BSD, ((at, BSD_LABEL), (at + 132, BSD_LABEL))) for at in (512, 0, 64, 128)),
    *(Signature(APPLE, ((at, b"PM\0\0"), (at + 48, b"Apple_"))) for at in (512, 1024, 2048, 4096)),
    *_one(AMIGA, *range(0, 16 * 512, 512), magic=b"RDSK"),
    *(
        Signature(DASD, ((at, magic),))
        for at in (1024, 4096, 8192)
        for magic in (b"\xd3\xd5\xe7\xf1", b"\xe5\xd6\xd3\xf1")
    ),
    # GPT: in the second and in the last logical block, of 512 or 4096 bytes.
    *_one(GPT, 512, 4096, -512, -4096, magic=b"EFI PART"),
)
# Where inside, beyond the first READ bytes, there are blocks to be read.
FURTHER: Final = tuple(
    sorted({at // BLOCK * BLOCK for row in SIGNATURES for at, magic in row.pieces if at + len(magic) > READ})
)


@dataclass(frozen=True)
class DeviceEnds:
    """The first and the last bytes of a device of `size` bytes; the two overlap where it is small."""

    head: bytes
    tail: bytes
    size: int
    further: tuple[tuple[int, bytes], ...] = ()  # (offset, block) of those at FURTHER that it has

    def read(self, offset: int, length: int) -> bytes:
        """Bytes at `offset` (negative: from the end); b"" where they were not read."""
        if offset < 0:
            offset += self.size
        if 0 <= offset and offset + length <= len(self.head):
            return self.head[offset : offset + length]
        start = self.size - len(self.tail)
        if start <= offset and offset + length <= self.size:
            return self.tail[offset - start : offset - start + length]
        for at, block in self.further:
            if at <= offset and offset + length <= at + len(block):
                return block[offset - at : offset - at + length]
        return b""


def formats_in(ends: DeviceEnds) -> tuple[str, ...]:
    """The names of what these bytes show that the device holds, each once."""
    names = [s.name for s in SIGNATURES if all(ends.read(at, len(magic)) == magic for at, magic in s.pieces)]
    names += _mdraid_at_the_end(ends)
    names += _drbd_at_the_end(ends)
    names += _jmicron_at_the_end(ends)
    if not {"vfat", "exfat", "ntfs", GPT} & set(names) and _is_mbr(ends.head):
        names.append(MBR)
    if _is_sun(ends.head):
        names.append(SUN)
    return tuple(dict.fromkeys(names))


def _mdraid_at_the_end(ends: DeviceEnds) -> Iterator[str]:
    """Version 0.90 is in the last whole 64 KiB, in either byte order; version 1.0 8 KiB to 12 KiB before the end."""
    at = (ends.size & ~0xFFFF) - 0x10000
    if at >= 0 and ends.read(at, 4) in (b"\xfc\x4e\x2b\xa9", b"\xa9\x2b\x4e\xfc"):
        yield "mdraid 0.90"
    at = ((ends.size // 512 - 16) & ~7) * 512
    if at >= 0 and ends.read(at, 8) == b"\xfc\x4e\x2b\xa9\x01\0\0\0":
        yield "mdraid 1.0"


def _drbd_at_the_end(ends: DeviceEnds) -> Iterator[str]:
    """In the last whole 4 KiB, at 60 of it: of 8.3, of 8.4 while it is in use, and of 9."""
    at = (ends.size & ~0xFFF) - 0x1000 + 60
    if at >= 60 and ends.read(at, 4) in (b"\x83\x74\x02\x6b", b"\x83\x74\x02\x6c", b"\x83\x74\x02\x6d"):
        yield "DRBD"


def _jmicron_at_the_end(ends: DeviceEnds) -> Iterator[str]:
    """In the last whole sector: two letters, and 64 words of 16 bits whose sum is 0 or 1."""
    at = (ends.size // 512 - 1) * 512
    record = ends.read(at, 128) if at >= 0 else b""
    if record.startswith(b"JM") and sum(struct.unpack("<64H", record)) & 0xFFFF in (0, 1):
        yield "JMicron RAID"


def _is_sun(head: bytes) -> bool:
    """A sector with the magic in its last but two bytes, whose 16-bit words are 0 by exclusive or."""
    if len(head) < 512 or head[508:510] != b"\xda\xbe":
        return False
    return not _xor(head[0:512:2]) and not _xor(head[1:512:2])


def _xor(data: bytes) -> int:
    return functools.reduce(operator.xor, data)


def _is_mbr(head: bytes) -> bool:
    """A boot sector whose four partition entries, of 16 bytes from 446 on, all begin with a possible boot flag; or that
    protects a GPT, by an entry of type EE from sector 1 on, whatever flags it has."""
    entries = [head[at : at + 16] for at in range(446, 510, 16)]
    possible = all(entry[:1] in (b"\x00", b"\x80") for entry in entries)
    protective = any(entry[4:5] == b"\xee" and entry[8:12] == b"\1\0\0\0" for entry in entries)
    return head[510:512] == b"\x55\xaa" and (possible or protective)
