"""The gate: signed or held is never written. Judged as a table, gathered from real devices."""

import contextlib
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ivypy.protocol.lines import encode_line
from ivypy.protocol.messages import Luns
from ivypy.protocol.refusals import RefusalReason
from ivypy.slave.devices import block_devices
from ivypy.slave.devices.blkid import found_by_blkid, names_in
from ivypy.slave.devices.mounts import Mount, mount_of, parse_mountinfo, parse_swaps
from ivypy.slave.devices.storage_exports import LunKey, ServedPath, Use
from ivypy.slave.gate.holds import claim, is_claimed, is_written
from ivypy.slave.gate.write_gate import (
    Evidence,
    Surroundings,
    block_evidence,
    file_evidence,
    notices,
    reasons_against,
)
from ivypy.slave.luns.discovery import inspect_luns
from tests.support.devices import losetup
from tests.support.loop_devices import loop_device, machine, mounted, need, needs_loops, partitioned, run
from tests.support.refusals import found_in

BY_QEMU, BY_FIO = (
    Use(RefusalReason.OPEN_FOR_WRITING, {"pid": 5, "program": who}, size=4096) for who in ("qemu", "fio")
)
SWAP = Use(RefusalReason.SWAP, {"entry": "/f"})


def mounted_at(point: str) -> Use:
    return Use(RefusalReason.MOUNTED, {"point": point})


@pytest.mark.parametrize(
    ("seen", "sentences"),
    [
        (Evidence("/dev/sdb"), ()),
        (
            Evidence("/dev/sdb", uses=(("it", mounted_at("/data")),)),
            (RefusalReason.MOUNTED.sentence(subject="it", point="/data"),),
        ),
        (
            Evidence(
                "/dev/sdb",
                uses=(("/dev/sdb1 on it", mounted_at("/boot")),),
                partitions=("sdb1", "sdb2"),
                claimed=True,
            ),
            (
                RefusalReason.MOUNTED.sentence(subject="/dev/sdb1 on it", point="/boot"),
                RefusalReason.PARTITIONED.sentence(names="sdb1, sdb2", path="/dev/sdb"),
            ),
        ),
        (
            Evidence("/dev/sdb", holders=("dm-3",), claimed=True),
            (RefusalReason.BUILT_UPON.sentence(names="dm-3"),),
        ),
        (Evidence("/dev/sdb", read_only="/dev/sdb"), (RefusalReason.DEVICE_READ_ONLY.sentence(path="/dev/sdb"),)),
        (Evidence("/a/f", read_only="/a"), (RefusalReason.FILESYSTEM_READ_ONLY.sentence(point="/a"),)),
        (Evidence("/dev/sdb", claimed=True), (RefusalReason.CLAIMED.sentence(path="/dev/sdb"),)),
        (
            Evidence("/dev/sdb", signatures=("LVM2", "xfs")),
            (
                RefusalReason.SIGNED.sentence(format="LVM2", path="/dev/sdb"),
                RefusalReason.SIGNED.sentence(format="xfs", path="/dev/sdb"),
            ),
        ),
        (
            Evidence("/dev/sdb", unreadable="Input/output error"),
            (RefusalReason.UNREADABLE.sentence(error="Input/output error"),),
        ),
        (Evidence("/a/f", open_elsewhere=True), (RefusalReason.OPEN_ELSEWHERE.sentence(path="/a/f"),)),
        (Evidence("/a/f", locked=True), (RefusalReason.LOCKED.sentence(path="/a/f"),)),
        (  # one sentence of a user that has no name; none, where one has
            Evidence("/a/f", claimed=True, open_elsewhere=True, locked=True),
            (RefusalReason.CLAIMED.sentence(path="/a/f"),),
        ),
        (
            Evidence("/a/f", open_elsewhere=True, locked=True),
            (RefusalReason.OPEN_ELSEWHERE.sentence(path="/a/f"),),
        ),
        (
            Evidence("/a/f", uses=(("it", SWAP),), open_elsewhere=True, locked=True),
            (RefusalReason.SWAP.sentence(subject="it", entry="/f"),),
        ),
        (Evidence("/a/f", names=3), (RefusalReason.SEVERAL_NAMES.sentence(count=3),)),
    ],
)
def test_each_piece_of_evidence_is_a_reason_of_its_own(seen: Evidence, sentences: tuple[str, ...]) -> None:
    assert reasons_against(seen) == sentences


PLAIN, OTHER_PLAIN, OVERLAY = 1, 2, 9  # filesystems, by st_dev


def in_use_by(*uses: tuple[LunKey, Use], plain: frozenset[int] = frozenset({PLAIN, OTHER_PLAIN})) -> Surroundings:
    twins: dict[int, tuple[LunKey, ...]] = {}
    for what, _ in uses:
        if what[0] == "file":
            twins[what[2] & 0xFFFFFFFF] = (*twins.get(what[2] & 0xFFFFFFFF, ()), what)
    return Surroundings(Path("/"), (), {what: (use,) for what, use in uses}, twins=twins, plain=plain)


@pytest.mark.parametrize(
    ("what", "of", "found"),
    [
        (("file", PLAIN, 5), ("file", PLAIN, 5), True),
        (("file", PLAIN, 5), ("file", PLAIN, 6), False),
        # an overlay's file has the inode number of the one that it is, on another filesystem
        (("file", OVERLAY, 5), ("file", PLAIN, 5), True),
        (("file", PLAIN, 5), ("file", OVERLAY, 5), True),
        (("file", OVERLAY, 5), ("file", PLAIN, 6), False),
        # with xino, which filesystem it is of stands in the high bits
        (("file", OVERLAY, 5 + (2 << 32)), ("file", PLAIN, 5), True),
        (("file", PLAIN, 5), ("file", OVERLAY, 5 + (1 << 62)), True),
        (("file", OVERLAY, 5 + (2 << 32)), ("file", PLAIN, 6), False),
        # two filesystems that are made of no others number their own
        (("file", OTHER_PLAIN, 5), ("file", PLAIN, 5), False),
        (("block", PLAIN, 5), ("file", PLAIN, 5), False),
        (("block", 5, 0), ("block", 5, 0), True),
    ],
)
def test_a_use_is_that_of_the_same_file_or_device_also_below_an_overlay(what: LunKey, of: LunKey, found: bool) -> None:
    assert in_use_by((of, BY_QEMU)).uses_of(what, 4096) == ((BY_QEMU,) if found else ())


def test_a_twin_of_another_size_is_another_file() -> None:
    around = in_use_by((("file", PLAIN, 5), BY_QEMU))
    assert around.uses_of(("file", OVERLAY, 5), 8192) == ()
    assert around.uses_of(("file", PLAIN, 5), 8192) == (BY_QEMU,)
    assert in_use_by((("file", PLAIN, 5), SWAP)).uses_of(("file", OVERLAY, 5), 8192) == (SWAP,)


def test_each_use_is_found_once_and_those_of_all_twins() -> None:
    twins: list[tuple[LunKey, Use]] = [(("file", OVERLAY, 5), BY_QEMU), (("file", PLAIN, 5), BY_FIO)]
    assert in_use_by(*twins).uses_of(("file", OVERLAY, 5), 4096) == (BY_QEMU, BY_FIO)


def test_mounts_of_one_device_are_told_apart_by_their_hashes() -> None:
    """Without that, each is compared with each: of 10,000 mounts of one device that took seconds."""
    assert len({hash(mounted_at(f"/mnt/{i}")) for i in range(1000)}) == 1000
    assert hash(mounted_at("/mnt")) == hash(mounted_at("/mnt")) and mounted_at("/mnt") == mounted_at("/mnt")


def test_what_lies_on_a_filesystem_that_may_hang_is_asked_for_only_there() -> None:
    asked: list[str] = []

    def exported_as(name: str) -> Use:
        return Use(RefusalReason.EXPORTED, {"exporter": "SCST device", "name": name})

    def served(name: str, inode: int) -> ServedPath:
        def what() -> LunKey:
            asked.append(name)
            return "file", OTHER_PLAIN, inode

        return ServedPath(name, exported_as(name), what)

    around = replace(in_use_by(), unasked={OTHER_PLAIN: (served("a", 5), served("b", 6))})
    assert around.uses_of(("file", PLAIN, 5)) == () and asked == []
    assert around.uses_of(("file", OTHER_PLAIN, 6)) == (exported_as("b"),)
    assert asked == ["a", "b"]
    assert around.uses_of(("block", OTHER_PLAIN, 0)) == ()


def test_who_may_write_is_noticed_where_nothing_else_is_known_against_it() -> None:
    assert notices(Evidence("/a/f")) == ()
    (found,) = notices(Evidence("/a/f", unseen="not root"))
    assert found.text == "whether a program has it open for writing is not known: not root"
    assert notices(Evidence("/a/f", unseen="not root", names=2)) == ()


def device_at(path: str) -> block_devices.BlockDevice:
    device = block_devices.at(path)
    assert device is not None
    return device


def judged(path: str) -> tuple[str, ...]:
    return reasons_against(block_evidence(device_at(path), Surroundings.read()))


@pytest.fixture
def loop(shm: Path) -> Iterator[str]:
    with loop_device(shm) as path:
        yield path


@needs_loops
class TestOnLoopDevices:
    """The same evidence, made on real devices."""

    def test_an_empty_one_may_be_written(self, loop: str) -> None:
        assert judged(loop) == ()

    def test_a_mounted_filesystem(self, loop: str, shm: Path) -> None:
        need("mkfs.ext4")
        run("mkfs.ext4", "-q", loop)
        with mounted(loop, shm / "a b"):
            assert judged(loop) == (
                RefusalReason.MOUNTED.sentence(subject="it", point=f"{shm}/a b"),
                RefusalReason.SIGNED.sentence(format="ext2, ext3 or ext4", path=loop),
            )
        assert len(judged(loop)) == 1

    def test_a_volume_of_lvm_and_a_partition_table(self, loop: str) -> None:
        with open(loop, "r+b") as device:
            device.seek(512)
            device.write(b"LABELONE" + bytes(16) + b"LVM2 001")
        assert judged(loop) == (RefusalReason.SIGNED.sentence(format="LVM2", path=loop),)
        with open(loop, "r+b") as device:
            device.write(bytes(4096))
            device.seek(446)
            device.write(bytes((0, 1, 1, 0, 0x83, 1, 1, 0, 8, 0, 0, 0, 0, 1, 0, 0)))
            device.seek(510)
            device.write(b"\x55\xaa")
        assert judged(loop)[0] == RefusalReason.SIGNED.sentence(format="MBR partition table", path=loop)

    def test_swap_in_use(self, loop: str, tmp_path: Path) -> None:
        root = machine(tmp_path, swaps=(loop,))  # a test must not change the machine's own swap
        assert reasons_against(block_evidence(device_at(loop), Surroundings.read(root))) == (
            RefusalReason.SWAP.sentence(subject="it", entry=loop),
        )

    def test_what_someone_holds_exclusively(self, loop: str) -> None:
        held = os.open(loop, os.O_RDONLY | os.O_EXCL)
        try:
            assert is_claimed(loop)
            assert judged(loop) == (RefusalReason.CLAIMED.sentence(path=loop),)
        finally:
            os.close(held)
        assert not is_claimed(loop)

    def test_a_claim_keeps_others_from_mounting_it(self, loop: str, shm: Path) -> None:
        need("mkfs.ext4", "mount")
        run("mkfs.ext4", "-q", loop)
        held = claim(loop)
        try:
            with pytest.raises(AssertionError, match=r"busy|already mounted"), mounted(loop, shm / "point"):
                pass
        finally:
            os.close(held)

    def test_a_read_only_device(self, loop: str) -> None:
        run("blockdev", "--setro", loop)
        assert judged(loop) == (RefusalReason.DEVICE_READ_ONLY.sentence(path=loop),)

    def test_its_backing_file_is_not_written_either(self, loop: str, shm: Path) -> None:
        backing = next(shm.glob("backing-*"))
        assert reasons_against(file_evidence(str(backing), Surroundings.read())) == (
            RefusalReason.BELOW_LOOP.sentence(subject="it", device=loop),
        )


def test_a_file_with_a_second_name(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"x" * 4096)
    assert reasons_against(file_evidence(str(tmp_path / "one"), Surroundings.read())) == ()
    (tmp_path / "two").hardlink_to(tmp_path / "one")
    (refusal,) = reasons_against(file_evidence(str(tmp_path / "one"), Surroundings.read()))
    assert refusal == RefusalReason.SEVERAL_NAMES.sentence(count=2)


MOUNTINFO = b"""\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw,discard
30 27 8:17 / /mnt/a\\040b ro,relatime shared:3 - xfs /dev/sdb1 rw,attr2
31 27 0:44 /sub /btr rw - btrfs /dev/sdc rw
32 27 8:33 / /sup rw,nosuid - ext4 /dev/sdc1 ro,errors=continue
"""


def test_mounts_are_read_with_their_escapes_and_either_read_only() -> None:
    assert parse_mountinfo(MOUNTINFO) == (
        Mount((0, 21), "/proc", "proc", "proc", False),
        Mount((254, 0), "/", "ext4", "/dev/vda", False),
        Mount((8, 17), "/mnt/a b", "xfs", "/dev/sdb1", True),
        Mount((0, 44), "/btr", "btrfs", "/dev/sdc", False),
        Mount((8, 33), "/sup", "ext4", "/dev/sdc1", True),
    )


@pytest.mark.parametrize(
    ("path", "point"), [("/", "/"), ("/etc/x", "/"), ("/mnt/a b/f", "/mnt/a b"), ("/mnt/a", "/"), ("/btrfs/f", "/")]
)
def test_a_path_lies_on_the_mount_with_the_longest_point(path: str, point: str) -> None:
    mount = mount_of(path, parse_mountinfo(MOUNTINFO))
    assert mount is not None
    assert mount.point == point


def test_a_later_mount_on_the_same_point_hides_the_earlier() -> None:
    mount = mount_of("/x/f", (Mount((1, 1), "/x", "ext4", "a", False), Mount((2, 2), "/x", "xfs", "b", False)))
    assert mount is not None
    assert mount.filesystem == "xfs"


def test_proc_swaps_is_read_with_its_escapes() -> None:
    text = b"Filename\t\tType\tSize\tUsed\tPriority\n/dev/sda2\tpartition\t1\t0\t-2\n/swap\\040file file\t1\t0\t-3\n"
    assert parse_swaps(text) == ("/dev/sda2", "/swap file")


# What Unicode takes for an end of line or a blank and the kernel does not; and what is no Unicode at all.
ODD = ("\u2028", "\x0b", "\x0c", "\x1c", "\x85", "\xa0", "\u3000", "\r", os.fsdecode(b"\xff"))


@pytest.mark.parametrize("odd", ODD)
def test_a_path_with_an_odd_byte_is_mounted_and_swap_all_the_same(odd: str) -> None:
    path = f"/mnt/a{odd}b"
    mountinfo = os.fsencode(f"36 35 8:1 / {path} rw,relatime - ext4 /dev/sda1 rw\n37 36 8:2 / /x rw - xfs {path} rw\n")
    assert parse_mountinfo(mountinfo) == (
        Mount((8, 1), path, "ext4", "/dev/sda1", False),
        Mount((8, 2), "/x", "xfs", path, False),
    )
    assert parse_swaps(os.fsencode(f"Filename\t\tType\n{path} file\t\t1\t0\t-2\n")) == (path,)


@needs_loops
@pytest.mark.parametrize("odd", [*ODD, " ", "\n", "\t"])
def test_a_device_is_mounted_wherever(odd: str, loop: str, shm: Path) -> None:
    need("mkfs.ext4")
    run("mkfs.ext4", "-q", loop)
    with mounted(loop, shm / f"a{odd}b") as point:
        shown = os.fsencode(point).decode("utf-8", "backslashreplace")
        assert RefusalReason.MOUNTED.sentence(subject="it", point=shown) in judged(loop)
        assert encode_line(Luns(1, tuple(inspect_luns([loop])[0]))), "it can be told"


@needs_loops
@pytest.mark.parametrize("odd", [*ODD, " ", "\n", "\t"])
@pytest.mark.parametrize("name", ["image{}", "{}image", "im{}age"])
def test_the_backing_file_of_a_loop_device_is_known_by_whatever_name(name: str, odd: str, shm: Path) -> None:
    image = shm / name.format(odd)
    image.write_bytes(os.urandom(1 << 20))
    loop = losetup("-f", "--show", str(image))
    try:
        assert reasons_against(file_evidence(str(image), Surroundings.read())) == (
            RefusalReason.BELOW_LOOP.sentence(subject="it", device=loop),
        )
    finally:
        losetup("-d", loop)


@needs_loops
def test_a_device_that_cannot_be_read_to_its_end(shm: Path) -> None:
    with loop_device(shm, 32 << 20) as loop:
        os.truncate(next(shm.glob("backing-*")), 16 << 20)
        (refusal,) = judged(loop)
        assert refusal == RefusalReason.UNREADABLE.sentence(error="Input/output error")


@needs_loops
def test_a_file_on_a_filesystem_that_is_mounted_read_only(loop: str, shm: Path) -> None:
    need("mkfs.ext4")
    run("mkfs.ext4", "-q", loop)
    with mounted(loop, shm / "p") as point:
        (point / "f").write_bytes(b"x" * 4096)
        run("mount", "-o", "remount,ro", str(point))
        assert reasons_against(file_evidence(str(point / "f"), Surroundings.read())) == (
            RefusalReason.FILESYSTEM_READ_ONLY.sentence(point=point),
        )


@needs_loops
def test_a_disk_with_a_mounted_partition(shm: Path) -> None:
    need("sfdisk", "partx", "mkfs.ext4")
    with loop_device(shm, 64 << 20) as loop, partitioned(loop, "16MiB", "16MiB") as (partition, second):
        run("mkfs.ext4", "-q", partition)
        with mounted(partition, shm / "p"):
            assert judged(loop)[:2] == (
                RefusalReason.MOUNTED.sentence(subject=f"{partition} on it", point=shm / "p"),
                RefusalReason.PARTITIONED.sentence(names=f"{Path(loop).name}p1, {Path(loop).name}p2", path=loop),
            )
            assert judged(second) == ()


def as_nobody(look: Callable[[], str]) -> str:
    """What `look` says in a process of a user without rights."""
    here, there = os.pipe()
    if (child := os.fork()) == 0:
        said = "it raised"
        with contextlib.suppress(Exception):
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            said = look()
        os.write(there, said.encode())
        os._exit(0)
    os.close(there)
    with open(here) as answer:
        said = answer.read()
    os.waitpid(child, 0)
    return said


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("DEVNAME=/dev/sdb\nVERSION=1.0\nTYPE=sysv\nUSAGE=filesystem\n", ("sysv",)),
        ("DEVNAME=/dev/sdb\nTYPE=via_raid_member\nUSAGE=raid\nPTTYPE=dos\n",
         ("via_raid_member", "a dos partition table")),
        ("DEVNAME=/dev/sdb\nTYPE=ext4\nUSAGE=filesystem\n", ()),  # two bytes of magic: ours compares more
        ("DEVNAME=/dev/sdb\nLABEL=TYPE=xfs\n", ()),
        ("", ()),
    ],
)  # fmt: skip
def test_the_formats_that_blkid_prints(text: str, names: tuple[str, ...]) -> None:
    assert names_in(text) == names


@pytest.mark.parametrize("script", ["exit 2", "exit 8", "kill -9 $$", "echo TYPE=a; exit 4"])
def test_a_blkid_that_fails_says_nothing_and_one_that_cannot_decide_does(script: str, tmp_path: Path) -> None:
    program = tmp_path / "blkid"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    found = found_by_blkid(str(program), "/dev/null")
    assert found == (("more than one format (blkid -p shows no more)",) if script == "exit 8" else ())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_unreadable_processes_of_other_users_are_reported(shm: Path) -> None:
    said = as_nobody(lambda: Surroundings.read().unseen)
    assert re.fullmatch(r"\d+ process(es)? could not be inspected: run the slave as root", said)
    device = Evidence("/dev/sdb", unseen=said)
    assert reasons_against(device) == ()
    assert [one.text for one in notices(device)] == [f"whether a program has it open for writing is not known: {said}"]
    assert notices(replace(device, claimed=True)) == (), "it is refused already"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_writers_of_an_own_file_are_always_known(shm: Path) -> None:
    shm.chmod(0o755)
    file = shm / "f"
    file.write_bytes(b"x" * 4096)
    assert as_nobody(lambda: str(is_written(str(file)))) == "None"
    os.chown(file, 65534, 65534)
    assert as_nobody(lambda: str(is_written(str(file)))) == "False"
    words = ["bash", "-c", 'exec 3<>"$1"; echo done; read -r _', "bash", str(file)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as opener:
        assert opener.stdout is not None and opener.stdout.readline()
        assert as_nobody(lambda: str(is_written(str(file)))) == "True"
        said = as_nobody(lambda: "\n".join(reasons_against(file_evidence(str(file), Surroundings.read()))))
        assert found_in(said.splitlines()) == [RefusalReason.OPEN_ELSEWHERE]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_that_writers_are_unknown_is_said_of_files_of_others_alone(shm: Path) -> None:
    shm.chmod(0o755)
    file = shm / "f"
    file.write_bytes(b"x" * 4096)
    for owner, unknown in ((0, True), (65534, False)):
        os.chown(file, owner, owner)
        said = as_nobody(lambda: file_evidence(str(file), Surroundings.read()).unseen)
        assert ("could not be inspected" in said) is unknown, said


def test_what_this_process_writes_itself_is_no_writing_by_others(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"x" * 4096)
    with open(file, "r+b"):
        status = os.stat(file)
        around = Surroundings.read()
        assert ("file", status.st_dev, status.st_ino) in around.ours
        assert reasons_against(file_evidence(str(file), around)) == ()
        around = replace(around, ours=frozenset())
        assert found_in(reasons_against(file_evidence(str(file), around))) == [RefusalReason.OPEN_ELSEWHERE]


def test_opening_a_file_during_the_lease_check_kills_nobody(tmp_path: Path) -> None:
    """A lease that another breaks is told by a signal, which would end this process if it were SIGIO."""
    (tmp_path / "f").write_bytes(b"x")
    words = ["bash", "-c", 'echo done; while :; do exec 3<>"$1"; exec 3>&-; done', "bash", str(tmp_path / "f")]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as opener:
        assert opener.stdout is not None and opener.stdout.readline()
        seen = {is_written(str(tmp_path / "f")) for _ in range(2000)}
        opener.kill()
    assert seen <= {True, False}
