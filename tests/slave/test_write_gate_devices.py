"""The gate on prepared devices: each in the state that a row names, and a slave told to write it with consent.

Rows with a reason must be refused for that reason, and not a byte of the device may change; the others must be taken.
"""

import contextlib
import ctypes
import os
import shutil
import stat
import subprocess
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ivypy.protocol import messages as m
from ivypy.protocol.parameters import Parameters
from ivypy.protocol.payload import Consent, Identity, WorkloadToCreate
from ivypy.protocol.refusals import RefusalReason
from ivypy.slave.devices.signatures import SIGNATURES, Signature
from tests.support import devices
from tests.support.devices import losetup
from tests.support.loop_devices import loop_device, mounted, need, needs_loops, partitioned, run
from tests.support.refusals import refusals_in
from tests.support.slave_client import Client

pytestmark = [pytest.mark.slow, needs_loops]

SIZE = 8 << 20  # bytes of a prepared device
MiB = 1 << 20


@dataclass
class Prepared:
    """Where a row puts what it makes, and how that is undone."""

    folder: Path
    undo: contextlib.ExitStack
    names: Iterator[int] = field(default_factory=lambda: iter(range(100)))

    def path(self) -> Path:
        return self.folder / f"made-{next(self.names)}"

    def file(self, size: int = SIZE) -> str:
        path = self.path()
        path.write_bytes(os.urandom(size))
        return str(path)

    def loop(self, size: int = SIZE, *options: str) -> str:
        folder = self.path()
        folder.mkdir()
        return self.undo.enter_context(loop_device(folder, size, *options))

    def over(self, path: str, *options: str) -> str:
        """A loop device over a device or file."""
        loop = losetup("-f", "--show", *options, path)
        self.undo.callback(losetup, "-d", loop)
        return loop

    def parts(self, device: str) -> list[str]:
        need("sfdisk", "partx")
        return self.undo.enter_context(partitioned(device, "2MiB", "2MiB"))

    def ext4(self, device: str) -> str:
        run("mkfs.ext4", "-q", "-F", device)
        return device

    def mount(self, device: str, how: str = "ro") -> Path:
        """Read-only, unless it is said otherwise: a filesystem that is mounted writes by itself."""
        return self.undo.enter_context(mounted(device, self.path(), "-o", how))

    def bind(self, what: str, where: str) -> None:
        run("mount", "--bind", what, where)
        self.undo.callback(run, "umount", where)

    def zram(self) -> str:
        return self.undo.enter_context(devices.zram(SIZE))

    def process(self, script: str, *words: str, within: tuple[str, ...] = ()) -> None:
        """A process that has done what bash is told to, and lives until the row is over."""
        self.program(*within, "bash", "-c", script + "\necho done; read -r _", "bash", *words)

    def program(self, *words: str) -> None:
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdin is not None and process.stdout is not None
        self.undo.enter_context(process)  # closes its input, and so ends it
        assert process.stdout.readline() == "done\n"

    def open(self, path: str, how: str = "3<>") -> None:
        self.process(f'exec {how}"$1"', path)

    def opened_by(self, pid: int) -> list[str]:
        return [os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir()]

    def hold(self, path: str, flags: int) -> None:
        fd = os.open(path, flags)
        self.undo.callback(os.close, fd)

    def flagged(self, flag: str) -> str:
        """A file with a flag of chattr."""
        need("chattr")
        file = str(self.mount(self.ext4(self.loop()), "rw") / "f")
        Path(file).write_bytes(os.urandom(MiB))
        run("chattr", f"+{flag}", file)
        self.undo.callback(run, "chattr", f"-{flag}", file)
        return file

    def overlay(self, lower: Path | None = None, more: str = "") -> tuple[Path, Path, Path]:
        """The folders of an overlay: lower, upper, merged. `more`: options."""
        base = self.path()
        for name in ("lower", "upper", "work", "merged"):
            (base / name).mkdir(parents=True)
        lower = lower or base / "lower"
        options = f"lowerdir={lower},upperdir={base}/upper,workdir={base}/work{more}"
        done = subprocess.run(
            ["mount", "-t", "overlay", "overlay", "-o", options, str(base / "merged")], capture_output=True, check=False
        )
        if done.returncode:
            pytest.skip("this machine lacks overlay filesystems")
        self.undo.callback(run, "umount", str(base / "merged"))
        return lower, base / "upper", base / "merged"


Row = Callable[[Prepared], str]  # prepares the device, and returns the path of what is to be driven
# By name: it, why it is refused (None where it must be taken), and words that the refusal has.
ROWS: dict[str, tuple[Row, RefusalReason | None, str]] = {}


def row(reason: RefusalReason | None = None, words: str = "") -> Callable[[Row], Row]:
    def add(make: Row) -> Row:
        ROWS[make.__name__] = (make, reason, words)
        return make

    return add


def with_bytes(path: str, at: int, data: bytes) -> str:
    with open(path, "r+b", buffering=0) as file:
        file.seek(at)
        file.write(data)
        os.fsync(file.fileno())  # closing writes it only if nobody else has the device open
    return path


# Free ones.


@row()
def a_blank_loop_device(p: Prepared) -> str:
    return p.loop()


@row()
def a_loop_device_of_random_bytes(p: Prepared) -> str:
    return p.over(p.file())


@row()
def a_loop_device_with_large_sectors(p: Prepared) -> str:
    return p.loop(SIZE, "--sector-size", "4096")


@row()
def a_loop_device_at_an_offset_of_a_file(p: Prepared) -> str:
    return p.over(p.file(), "-o", str(MiB))


@row()
def a_loop_device_by_a_link(p: Prepared) -> str:
    link = p.path()
    link.symlink_to(p.loop())
    return str(link)


@row()
def a_loop_device_over_a_loop_device_that_nothing_else_uses(p: Prepared) -> str:
    return p.over(p.loop())


@row()
def a_loop_device_whose_user_has_gone(p: Prepared) -> str:
    loop = p.loop()
    losetup("-d", losetup("-f", "--show", loop))
    with open(loop, "r+b"):
        pass
    return loop


@row()
def a_blank_zram_device(p: Prepared) -> str:
    return p.zram()


@row()
def a_blank_partition(p: Prepared) -> str:
    return p.parts(p.loop())[0]


@row()
def a_partition_beside_one_that_is_mounted(p: Prepared) -> str:
    first, second = p.parts(p.loop())
    p.mount(p.ext4(first))
    return second


@row()
def a_partition_beside_one_that_a_loop_device_is_over(p: Prepared) -> str:
    first, second = p.parts(p.loop())
    p.over(first)
    return second


@row()
def a_device_that_is_open_for_reading(p: Prepared) -> str:
    loop = p.loop()
    p.open(loop, "3<")
    return loop


@row()
def a_file(p: Prepared) -> str:
    return p.file()


@row()
def a_file_that_is_open_for_reading(p: Prepared) -> str:
    file = p.file()
    p.open(file, "3<")
    return file


@row()
def a_file_on_a_mounted_device(p: Prepared) -> str:
    path = p.mount(p.ext4(p.loop()), "rw") / "f"
    path.write_bytes(os.urandom(MiB))
    return str(path)


@row()
def a_file_where_another_was_that_a_loop_device_is_over(p: Prepared) -> str:
    file = p.file()
    p.over(file)
    os.unlink(file)
    Path(file).write_bytes(os.urandom(MiB))
    return file


@row()
def a_file_on_an_overlay(p: Prepared) -> str:
    _, _, merged = p.overlay()
    (merged / "f").write_bytes(os.urandom(MiB))
    return str(merged / "f")


@row()
def a_loop_device_over_a_file_that_a_process_serves(p: Prepared) -> str:
    return p.undo.enter_context(devices.faultfs(SIZE)).device


@row()
def a_loop_device_while_a_filesystem_hangs_whose_files_others_use(p: Prepared) -> str:
    served = p.undo.enter_context(devices.faultfs(SIZE))
    p.open(str(served.image))
    served.hang()
    p.undo.callback(served.resume)
    return p.loop()


# Mounted, partitioned, held.


@row(RefusalReason.MOUNTED)
def a_mounted_loop_device(p: Prepared) -> str:
    loop = p.ext4(p.loop())
    p.mount(loop)
    return loop


@row(RefusalReason.MOUNTED)
def a_mounted_zram_device(p: Prepared) -> str:
    zram = p.ext4(p.zram())
    p.mount(zram)
    return zram


@row(RefusalReason.MOUNTED)
def a_device_of_a_mounted_btrfs(p: Prepared) -> str:
    need("mkfs.btrfs")
    loop = p.loop(128 << 20)
    run("mkfs.btrfs", "-q", loop)
    p.mount(loop)
    return loop


@row(RefusalReason.MOUNTED_ELSEWHERE)
def a_device_that_is_mounted_in_another_namespace(p: Prepared) -> str:
    loop, point = p.ext4(p.loop()), p.path()
    point.mkdir()
    p.process('mount -o ro "$1" "$2"', loop, str(point), within=("unshare", "-m"))
    return loop


@row(RefusalReason.MOUNTED, " on it ")
def a_disk_with_a_mounted_partition(p: Prepared) -> str:
    loop = p.loop()
    p.mount(p.ext4(p.parts(loop)[0]))
    return loop


@row(RefusalReason.MOUNTED)
def a_mounted_partition(p: Prepared) -> str:
    partition = p.ext4(p.parts(p.loop())[0])
    p.mount(partition)
    return partition


@row(RefusalReason.PARTITIONED)
def a_disk_with_partitions(p: Prepared) -> str:
    loop = p.loop()
    p.parts(loop)
    return loop


@row(RefusalReason.CLAIMED)
def a_device_that_is_held(p: Prepared) -> str:
    loop = p.loop()
    p.hold(loop, os.O_RDONLY | os.O_EXCL)
    return loop


@row(RefusalReason.CLAIMED)
def a_partition_of_a_disk_that_is_held(p: Prepared) -> str:
    loop = p.loop()
    partition = p.parts(loop)[0]
    p.hold(loop, os.O_RDONLY | os.O_EXCL)
    return partition


@row(RefusalReason.DEVICE_READ_ONLY)
def a_device_that_was_set_read_only(p: Prepared) -> str:
    loop = p.loop()
    run("blockdev", "--setro", loop)
    return loop


@row(RefusalReason.DEVICE_READ_ONLY)
def a_loop_device_that_is_read_only(p: Prepared) -> str:
    loop = losetup("-f", "--show", "-r", p.file())
    p.undo.callback(losetup, "-d", loop)
    p.undo.callback(run, "blockdev", "--setrw", loop)
    return loop


@row(RefusalReason.UNREADABLE)
def a_device_that_cannot_be_read_to_its_end(p: Prepared) -> str:
    file = p.file()
    loop = p.over(file)
    os.truncate(file, SIZE // 2)
    return loop


@row(RefusalReason.SIGNED, " MBR partition table: ")
def a_disk_with_a_partition_table_of_which_the_kernel_knows_nothing(p: Prepared) -> str:
    loop = p.loop()
    subprocess.run(["sfdisk", "-q", loop], input="label: dos\n", text=True, check=True, capture_output=True)
    return loop


@row(RefusalReason.SIGNED, " mdraid 1.0: ")
def a_member_of_an_array_whose_superblock_is_at_the_end(p: Prepared) -> str:
    return with_bytes(p.loop(), SIZE - 8192, b"\xfc\x4e\x2b\xa9\x01\0\0\0")


@row(RefusalReason.SIGNED, " DRBD: ")
def a_member_of_drbd(p: Prepared) -> str:
    return with_bytes(p.loop(), SIZE - 4096 + 60, b"\x83\x74\x02\x6d")


@row(RefusalReason.SIGNED, " vmfs: ")
def a_file_with_the_signature_of_a_filesystem_of_vmware(p: Prepared) -> str:
    return with_bytes(p.file(), 2 * MiB, b"\x5e\xf1\xab\x2f")


# What something is served from.


@row(RefusalReason.BELOW_LOOP)
def a_device_below_a_loop_device(p: Prepared) -> str:
    loop = p.loop()
    p.over(loop)
    return loop


@row(RefusalReason.BELOW_LOOP)
def a_device_below_a_loop_device_at_an_offset(p: Prepared) -> str:
    loop = p.loop()
    p.over(loop, "-o", str(MiB))
    return loop


@row(RefusalReason.BELOW_LOOP)
def a_device_below_a_mounted_loop_device_at_an_offset(p: Prepared) -> str:
    loop = p.loop()
    p.mount(p.ext4(p.over(loop, "-o", str(MiB))))
    return loop


@row(RefusalReason.BELOW_LOOP)
def a_device_below_a_loop_device_that_is_read_only(p: Prepared) -> str:
    loop = p.loop()
    p.over(loop, "-r")
    return loop


@row(RefusalReason.BELOW_LOOP)
def a_device_below_a_loop_device_by_another_node(p: Prepared) -> str:
    loop = p.loop()
    node = p.path()
    os.mknod(node, 0o600 | stat.S_IFBLK, os.stat(loop).st_rdev)
    p.over(str(node))
    return loop


@row(RefusalReason.BELOW_LOOP)
def a_zram_device_below_a_loop_device(p: Prepared) -> str:
    zram = p.zram()
    p.over(zram)
    return zram


@row(RefusalReason.BELOW_LOOP, " on it ")
def a_disk_whose_partition_is_below_a_loop_device(p: Prepared) -> str:
    loop = p.loop()
    p.over(p.parts(loop)[1])
    return loop


@row(RefusalReason.BELOW_LOOP)
def a_partition_below_a_loop_device(p: Prepared) -> str:
    partition = p.parts(p.loop())[0]
    p.over(partition)
    return partition


@row(RefusalReason.BELOW_LOOP, ", which it is a part of, ")
def a_partition_whose_disk_is_below_a_loop_device(p: Prepared) -> str:
    loop = p.loop()
    partition = p.parts(loop)[0]
    p.over(loop)
    return partition


@row(RefusalReason.MOUNTED)
def a_device_with_a_file_below_a_loop_device(p: Prepared) -> str:
    loop = p.ext4(p.loop(16 << 20))
    image = p.mount(loop, "rw") / "image"
    image.write_bytes(bytes(MiB))
    run("mount", "-o", "remount,ro", str(image.parent))
    p.over(str(image))
    return loop


@row(RefusalReason.MOUNTED, " below it ")
def a_loop_device_over_one_that_is_mounted(p: Prepared) -> str:
    loop = p.ext4(p.loop())
    p.mount(loop)
    return p.over(loop, "-o", str(MiB))


@row(RefusalReason.MOUNTED, " below it ")
def a_loop_device_over_a_disk_with_a_mounted_partition(p: Prepared) -> str:
    loop = p.loop()
    p.mount(p.ext4(p.parts(loop)[1]))
    return p.over(loop, "-o", str(MiB))


@row(RefusalReason.PARTITIONED_BELOW, " below it ")
def a_loop_device_over_a_disk_with_partitions(p: Prepared) -> str:
    loop = p.loop()
    p.parts(loop)
    return p.over(loop, "-o", str(MiB))


@row(RefusalReason.BELOW_LOOP, " below it ")
def a_loop_device_over_one_that_another_is_over(p: Prepared) -> str:
    loop = p.loop()
    p.mount(p.ext4(p.over(loop, "-o", str(MiB))))
    return p.over(loop)


@row()
def a_loop_device_over_a_partition(p: Prepared) -> str:
    return p.over(p.parts(p.loop())[0])


@row(RefusalReason.OPENED_EXCLUSIVELY, " below it ")
def a_loop_device_over_one_that_is_held(p: Prepared) -> str:
    loop = p.loop()
    p.hold(loop, os.O_RDONLY | os.O_EXCL)
    return p.over(loop)


@row(RefusalReason.OPEN_FOR_WRITING, " below it ")
def a_loop_device_over_one_that_is_open_for_writing(p: Prepared) -> str:
    loop = p.loop()
    p.open(loop)
    return p.over(loop)


@row(RefusalReason.SIGNED_BELOW, " ext2, ext3 or ext4: ")
def a_loop_device_behind_the_signature_of_the_device_below(p: Prepared) -> str:
    return p.over(p.ext4(p.loop()), "-o", str(MiB))


@row(RefusalReason.BELOW_LOOP, " below it ")
def a_loop_device_over_a_file_that_another_is_over(p: Prepared) -> str:
    file = p.file()
    p.mount(p.ext4(p.over(file, "-o", str(MiB))))
    return p.over(file)


@row(RefusalReason.BELOW_LOOP, " below it ")
def a_loop_device_over_a_deleted_file_that_another_is_over(p: Prepared) -> str:
    file = p.file()
    first, _ = p.over(file), p.over(file)
    os.unlink(file)
    return first


@row(RefusalReason.OPEN_FOR_WRITING, " below it ")
def a_loop_device_over_a_file_that_is_open_for_writing(p: Prepared) -> str:
    file = p.file()
    p.open(file)
    return p.over(file)


@row(RefusalReason.BELOW_LOOP)
def a_file_below_a_loop_device(p: Prepared) -> str:
    file = p.file()
    p.over(file, "-o", str(MiB))
    return file


@row(RefusalReason.BELOW_LOOP)
def a_file_below_a_loop_device_that_was_renamed(p: Prepared) -> str:
    file, new = p.file(), str(p.path())
    p.over(file)
    os.rename(file, new)
    return new


@row(RefusalReason.BELOW_LOOP)
def a_file_below_a_loop_device_by_a_bind_mount(p: Prepared) -> str:
    file, other = p.file(), p.file(1)
    p.over(file)
    p.bind(file, other)
    return other


@row(RefusalReason.BELOW_LOOP)
def a_file_below_a_loop_device_that_was_made_in_another_namespace(p: Prepared) -> str:
    file, other = p.file(), p.file(1)
    script = 'mount --bind "$1" "$2"; losetup -f --show "$2" >"$3"'
    run("unshare", "-m", "bash", "-c", script, "bash", file, other, str(told := p.path()))
    p.undo.callback(losetup, "-d", told.read_text().strip())
    return file


@row(RefusalReason.IMMUTABLE)
def a_file_that_is_immutable(p: Prepared) -> str:
    return p.flagged("i")


@row(RefusalReason.APPEND_ONLY)
def a_file_that_may_only_be_appended_to(p: Prepared) -> str:
    return p.flagged("a")


@row(RefusalReason.IS_RUN)
def a_program_that_is_running(p: Prepared) -> str:
    copy = p.path()
    shutil.copy(shutil.which("bash") or "", copy)
    p.program(str(copy), "-c", "echo done; read -r _")
    return str(copy)


@row(RefusalReason.SEVERAL_NAMES, " 2 names: ")
def a_file_below_a_loop_device_by_another_name(p: Prepared) -> str:
    file, other = p.file(), p.path()
    other.hardlink_to(file)
    p.over(file)
    return str(other)


@row(RefusalReason.BELOW_LOOP)
def a_file_of_an_overlay_whose_upper_one_is_below_a_loop_device(p: Prepared) -> str:
    _, upper, merged = p.overlay()
    (merged / "f").write_bytes(os.urandom(MiB))
    p.over(str(upper / "f"))
    return str(merged / "f")


@row(RefusalReason.BELOW_LOOP)
def a_file_that_is_an_overlays_that_is_below_a_loop_device(p: Prepared) -> str:
    _, upper, merged = p.overlay()
    (merged / "f").write_bytes(os.urandom(MiB))
    p.over(str(merged / "f"))
    return str(upper / "f")


@row(RefusalReason.BELOW_LOOP)
def a_file_below_an_overlay_with_numbers_of_its_own(p: Prepared) -> str:
    """Its layers are on two filesystems, and which one a file is of stands in its number."""
    lower = p.mount(p.ext4(p.loop()), "rw")
    (lower / "f").write_bytes(os.urandom(MiB))
    _, _, merged = p.overlay(lower, ",xino=on")
    if (merged / "f").stat().st_ino == (lower / "f").stat().st_ino:
        pytest.skip("this machine's overlays number files as their layers do")
    p.over(str(merged / "f"), "--read-only")
    return str(lower / "f")


@row(RefusalReason.MOUNTED)
def a_file_that_is_mounted_without_a_loop_device(p: Prepared) -> str:
    need("mkfs.erofs")
    base = p.path()
    for folder in ("from", "on"):
        (base / folder).mkdir(parents=True)
    (base / "from/f").write_bytes(os.urandom(MiB))
    image = p.mount(p.ext4(p.loop(4 * SIZE)), "rw") / "image"  # not on a tmpfs
    run("mkfs.erofs", str(image), str(base / "from"))
    mount = ctypes.CDLL(None, use_errno=True).mount
    if mount(os.fsencode(image), os.fsencode(base / "on"), b"erofs", os.ST_RDONLY, None):
        pytest.skip("this kernel mounts no file without a loop device")
    p.undo.callback(run, "umount", str(base / "on"))
    with image.open("r+b") as file:  # it is read already
        file.seek(1024)
        file.write(bytes(4))
    return str(image)


@row(RefusalReason.BELOW_LOOP)
def a_file_that_a_process_serves_below_a_loop_device(p: Prepared) -> str:
    return str(p.undo.enter_context(devices.faultfs(SIZE)).image)


@row(RefusalReason.BELOW_LOOP, " below it ")
def a_loop_device_over_a_file_that_a_process_serves_and_another_is_over(p: Prepared) -> str:
    return p.over(str(p.undo.enter_context(devices.faultfs(SIZE)).image))


# Open for writing.


@row(RefusalReason.OPEN_FOR_WRITING)
def a_file_that_another_is_served_from(p: Prepared) -> str:
    served = p.undo.enter_context(devices.faultfs(SIZE))
    (found,) = (path for path in p.opened_by(served.process.pid) if path.startswith("/dev/shm/"))
    return found


@row(RefusalReason.OPEN_FOR_WRITING, " below it ")
def a_loop_device_over_a_file_that_a_process_serves_and_another_has_open(p: Prepared) -> str:
    served = p.undo.enter_context(devices.faultfs(SIZE))
    p.open(str(served.image))
    return served.device


@row(RefusalReason.OPEN_FOR_WRITING)
def a_device_that_is_open_for_writing(p: Prepared) -> str:
    loop = p.loop()
    p.open(loop)
    return loop


@row(RefusalReason.OPEN_FOR_WRITING)
def a_device_that_is_open_for_writing_only(p: Prepared) -> str:
    loop = p.loop()
    p.open(loop, "3>")
    return loop


@row(RefusalReason.OPEN_FOR_WRITING)
def a_device_that_is_open_for_writing_by_another_node(p: Prepared) -> str:
    loop = p.loop()
    node = p.path()
    os.mknod(node, 0o600 | stat.S_IFBLK, os.stat(loop).st_rdev)
    p.open(str(node))
    node.unlink()
    return loop


@row(RefusalReason.OPEN_FOR_WRITING)
def a_device_that_is_open_for_writing_in_a_container(p: Prepared) -> str:
    loop = p.loop()
    p.process('exec 3<>"$1"', loop, within=("unshare", "-m", "-p", "-f", "-n", "-u", "-i", "--mount-proc"))
    return loop


@row(RefusalReason.OPEN_FOR_WRITING)
def a_device_that_is_open_for_writing_in_a_program_whose_first_thread_has_ended(p: Prepared) -> str:
    loop = p.loop()
    script = """\
import ctypes, os, sys, threading
kept = os.open(sys.argv[1], os.O_RDWR)
def rest():
    while "Z (zombie)" not in open(f"/proc/{os.getpid()}/status").read():
        pass
    print("done", flush=True)
    sys.stdin.read()
    os._exit(0)
threading.Thread(target=rest).start()
ctypes.CDLL(None).pthread_exit(None)
"""
    p.program("python3", "-c", script, loop)
    return loop


@row(RefusalReason.OPEN_FOR_WRITING, ", which it is a part of, ")
def a_partition_whose_disk_is_open_for_writing(p: Prepared) -> str:
    loop = p.loop()
    partition = p.parts(loop)[0]
    p.open(loop)
    return partition


@row(RefusalReason.OPEN_FOR_WRITING, " on it ")
def a_disk_whose_partition_is_open_for_writing(p: Prepared) -> str:
    loop = p.loop()
    p.open(p.parts(loop)[1])
    return loop


@row(RefusalReason.SIGNED, " sysv: ")
def a_device_with_a_format_that_only_blkid_knows(p: Prepared) -> str:
    need("blkid")
    return with_bytes(p.loop(), 1016, b"\xfd\x18\x7e\x20")


@row(RefusalReason.LOCKED)
def a_file_that_is_open_for_reading_and_locked(p: Prepared) -> str:
    file = p.file()
    script = """\
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, 100)
print("done", flush=True)
sys.stdin.read()
"""
    p.program("python3", "-c", script, file)
    return file


@row(RefusalReason.OPEN_FOR_WRITING)
def a_file_that_is_open_for_writing(p: Prepared) -> str:
    file = p.file()
    p.open(file)
    return file


@row(RefusalReason.OPEN_FOR_WRITING)
def a_file_that_is_open_for_writing_by_another_mount(p: Prepared) -> str:
    file, other = p.file(), p.file(1)
    p.process('mount --bind "$1" "$2"; exec 3<>"$2"', file, other, within=("unshare", "-m", "-p", "-f"))
    return file


@row(RefusalReason.OPEN_FOR_WRITING)
def a_file_of_an_overlay_whose_upper_one_is_open_for_writing(p: Prepared) -> str:
    _, upper, merged = p.overlay()
    (merged / "f").write_bytes(os.urandom(MiB))
    p.open(str(upper / "f"))
    return str(merged / "f")


@row(RefusalReason.OPEN_ELSEWHERE)
def a_file_that_is_mapped_for_writing_and_closed(p: Prepared) -> str:
    file = p.file()
    script = """\
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
seen = mmap.mmap(fd, 4096)
for name in os.listdir("/proc/self/fd"):
    if os.path.realpath(f"/proc/self/fd/{name}") == sys.argv[1]:
        os.close(int(name))
print("done", flush=True)
sys.stdin.read()
"""
    p.program("python3", "-c", script, file)
    return file


@row(RefusalReason.CLAIMED)
def a_file_that_is_locked(p: Prepared) -> str:
    file = p.file()
    p.process('exec 3<"$1"; flock -xn 3', file)
    return file


@row(RefusalReason.FILESYSTEM_READ_ONLY)
def a_file_on_a_filesystem_that_is_read_only(p: Prepared) -> str:
    path = p.mount(p.ext4(p.loop()), "rw") / "f"
    path.write_bytes(os.urandom(MiB))
    run("mount", "-o", "remount,ro", str(path.parent))
    return str(path)


# Neither device nor file.


@row(RefusalReason.NO_DEVICE_OR_FILE)
def a_character_device(p: Prepared) -> str:
    return "/dev/null"


@row(RefusalReason.FOLDER)
def a_folder(p: Prepared) -> str:
    return str(p.folder)


@row(RefusalReason.EMPTY_FILE)
def an_empty_file(p: Prepared) -> str:
    return p.file(0)


@row(RefusalReason.NO_SIZE)
def a_loop_device_without_a_file(p: Prepared) -> str:
    p.undo.enter_context(devices.loops_alone())
    loop = losetup("-f", "--show", p.file())
    node = p.path()
    os.mknod(node, 0o600 | stat.S_IFBLK, os.stat(loop).st_rdev)
    losetup("-d", loop)
    return str(node)


def digest(path: str) -> str:
    """A sum of all bytes of a device or file, which a byte changes; its kind where it is neither."""
    mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISBLK(mode)):
        return oct(mode)
    found = 0
    with open(path, "rb") as file, contextlib.suppress(OSError):  # it may not be readable to its end
        while piece := file.read(MiB):
            found = zlib.crc32(piece, found)
    return f"{found:x}"


@pytest.fixture(scope="module")
def slave() -> Iterator[Client]:
    with Client() as client:
        client.prepare("libaio")
        yield client


def inspect(slave: Client, lun: str) -> Consent:
    """Tell a slave to inspect a LUN: consent to it, as far as that can be had. The gate has the last word."""
    slave.all.clear()
    slave.ask(m.InspectLuns, paths=(lun,), create=())
    luns = [one for said in slave.all if isinstance(said, m.Luns) for one in said.luns]
    size = luns[0].size if luns else 1 << 20
    identity = luns[0].identity if luns else None
    return Consent(identity or Identity("", size, ()), ((0, size),))


def attempt(slave: Client, lun: str) -> list[str]:
    """Tell a slave to inspect and write a LUN, with consent; why it does not. What it would is deleted at once."""
    return create(slave, lun, inspect(slave, lun))


def create(slave: Client, lun: str, agreed: Consent) -> list[str]:
    parameters = Parameters(fraction_read=0.0)
    workload = WorkloadToCreate(0, f"h+{lun}+w", lun, agreed, parameters, 1, parameters.blocksize)
    answer = slave.ask(m.CreateWorkloads, workloads=(workload,))
    if isinstance(answer, m.Refused):
        return [refusal.reason for refusal in answer.refusals]
    slave.do(m.DeleteWorkloads, numbers=(0,))
    return []


@pytest.mark.parametrize("name", ROWS)
def test_a_prepared_device_is_refused_for_its_reason_or_accepted(name: str, slave: Client, shm: Path) -> None:
    prepare, reason, words = ROWS[name]
    need("mkfs.ext4", "mount", "unshare", "bash", "flock")
    with contextlib.ExitStack() as undo:
        try:
            lun = prepare(Prepared(shm, undo))
        except devices.Missing as missing:
            pytest.skip(f"this machine lacks {missing}")
        before = digest(lun)
        refused = attempt(slave, lun)
        if reason:
            assert any(refusals_in(said) == {reason} and words in said for said in refused), refused
            assert digest(lun) == before
        else:
            assert refused == [], run("losetup", "--list", "-O", "NAME,BACK-INO,BACK-MAJ:MIN,BACK-FILE")


def test_the_table_has_at_least_50_rows() -> None:
    assert len(ROWS) >= 50


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("signed")
    try:
        with loop_device(folder, SIZE) as loop:
            yield loop
    finally:
        shutil.rmtree(folder)


ONE_OF_EACH = list({row.name: row for row in SIGNATURES}.values())


@pytest.mark.parametrize("row", ONE_OF_EACH, ids=lambda row: row.name)
def test_a_device_with_a_signature_is_refused(row: Signature, slave: Client, signed: str) -> None:
    for at, magic in row.pieces:
        with_bytes(signed, at % SIZE, magic)
    before = digest(signed)
    refused = attempt(slave, signed)
    assert digest(signed) == before
    for at, magic in row.pieces:
        with_bytes(signed, at % SIZE, bytes(len(magic)))
    signed_so = RefusalReason.SIGNED.sentence(format=row.name, path=signed)
    assert RefusalReason.MUST_NOT_BE_WRITTEN.sentence(lun=signed, reason=signed_so) in refused
    assert attempt(slave, signed) == []


def test_a_device_that_was_written_since_its_inspection_is_refused(shm: Path) -> None:
    """Whoever wrote it: here one who has closed it again, as one in another container is not seen to have it open."""
    with loop_device(shm, SIZE) as loop, Client() as slave:
        slave.prepare("libaio")
        agreed = inspect(slave, loop)
        run("dd", "if=/dev/urandom", f"of={loop}", "bs=4096", "count=3", "seek=5", "oflag=direct", "status=none")
        written = RefusalReason.WRITTEN_SINCE.sentence(writes=3, size="12 KiB", path=loop)
        assert create(slave, loop, agreed) == [RefusalReason.MUST_NOT_BE_WRITTEN.sentence(lun=loop, reason=written)]
        assert attempt(slave, loop) == [], "and is accepted once it has been inspected again"


def test_what_the_slave_wrote_itself_is_no_writing_by_others(shm: Path) -> None:
    with loop_device(shm, SIZE) as loop, Client() as slave:
        slave.prepare("libaio")
        slave.ask(m.InspectLuns, paths=(loop,), create=())
        for _ in range(2):
            slave.create(loop, Parameters(fraction_read=0.0), consent=True)
            slave.ask(m.ClockProbe)
            slave.go(0, length_s=0.1)
            slave.send(m.Stop, last=0)
            slave.until(m.Stopped)
            slave.do(m.DeleteWorkloads, numbers=(0,))


def test_the_slave_writes_an_accepted_device(slave: Client, shm: Path) -> None:
    """So that a digest that stays the same says something."""
    with loop_device(shm, SIZE) as loop:
        before = digest(loop)
        slave.create(loop, Parameters(fraction_read=0.0), consent=True)
        slave.ask(m.ClockProbe)
        slave.go(0, length_s=0.1)
        slave.send(m.Stop, last=0)
        slave.until(m.Stopped)
        slave.do(m.DeleteWorkloads, numbers=(0,))
        assert digest(loop) != before
