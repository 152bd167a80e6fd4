"""The gate on devices that the machine of these tests cannot have: folders made as sysfs, configfs and /proc show them.

Made by hand after the kernel's documentation and source, not recorded from machines. What needs the device itself (its
bytes, its claim) is not in here.
"""

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ivypy.protocol.refusals import RefusalReason
from ivypy.slave.devices import block_devices
from ivypy.slave.devices.storage_exports import ServedPath, served_paths
from ivypy.slave.gate import write_gate
from ivypy.slave.gate.write_gate import Surroundings, in_use, reasons_against

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="device nodes need root")


@dataclass
class Made:
    root: Path

    def write(self, path: str, text: str) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text + "\n")

    def device(self, name: str, number: str, disk: str = "", **files: str) -> str:
        """A disk, or a partition of `disk`; the path of its node. Loop devices are opened, so theirs must be none."""
        folder = f"sys/devices/x/{disk}/{name}" if disk else f"sys/devices/x/{name}"
        facts = {"dev": number, "size": "2048", "ro": "0", **({"partition": "1"} if disk else {}), **files}
        for file, text in facts.items():
            self.write(f"{folder}/{file.replace('__', '/')}", text)
        for link in (f"sys/dev/block/{number}", *([] if disk else [f"sys/block/{name}"])):
            self.link(link, folder)
        self.node(f"dev/{name}", number)
        if mapped := files.get("dm__name"):
            self.node(f"dev/mapper/{mapped}", number)
        return f"/dev/{name}"

    def node(self, path: str, number: str, kind: int = stat.S_IFBLK) -> None:
        major, minor = map(int, number.split(":"))
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        os.mknod(self.root / path, 0o600 | kind, os.makedev(major, minor))

    def link(self, path: str, to: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).symlink_to(self.root / to)

    def upon(self, upper: str, *lower: str) -> None:
        """`upper` is made of these, as the kernel shows it on both sides."""
        top = self.folder(upper)
        for name in lower:
            (top / "slaves").mkdir(exist_ok=True)
            (top / "slaves" / name).symlink_to(self.folder(name))
            (self.folder(name) / "holders").mkdir(exist_ok=True)
            (self.folder(name) / "holders" / upper).symlink_to(top)

    def folder(self, name: str) -> Path:
        (found,) = (path for path in (self.root / "sys/devices/x").rglob(name) if not path.is_symlink())
        return found

    def process(self, pid: int, program: str, *opened: str) -> None:
        folder = self.root / f"proc/{pid}"
        (folder / "fd").mkdir(parents=True)
        (folder / "comm").write_text(program + "\n")
        for number, path in enumerate(opened, 3):
            (folder / f"fd/{number}").symlink_to(f"{self.root}{path}")  # a link's mode lets anyone write

    def judged(self, path: str) -> tuple[str, ...]:
        self.write("proc/self/mountinfo", "\n".join(self.mounts))
        self.write("proc/swaps", "Filename Type\n" + "\n".join(self.swaps))
        status = os.stat(self.root / path.lstrip("/"))
        device = block_devices.numbered(status.st_rdev, self.root)
        assert device is not None
        return reasons_against(in_use(device, Surroundings.read(self.root)))

    def __post_init__(self) -> None:
        self.mounts = ["27 1 0:21 / / rw - tmpfs tmpfs rw"]
        self.swaps: list[str] = []
        self.process(1, "systemd")

    def mount(self, number: str, point: str, source: str = "x", filesystem: str = "xfs") -> None:
        self.mounts.append(f"30 27 {number} / {point} rw - {filesystem} {source} rw")


Row = Callable[[Made], str]
ROWS: dict[str, tuple[Row, str]] = {}


def row(reason: str = "") -> Callable[[Row], Row]:
    def add(make: Row) -> Row:
        ROWS[make.__name__] = (make, reason)
        return make

    return add


def multipath(t: Made) -> str:
    for name, number in (("sdb", "8:16"), ("sdc", "8:32")):
        t.device(name, number)
    t.device("dm-3", "253:3", dm__name="mpatha", dm__uuid="mpath-36006")
    t.upon("dm-3", "sdb", "sdc")
    return "/dev/dm-3"


def volume(t: Made) -> str:
    """The usual system disk: sda1 is /boot, sda2 swap, sda3 has the volumes root and data."""
    t.device("sda", "8:0")
    for part in (1, 2, 3):
        t.device(f"sda{part}", f"8:{part}", "sda")
    for minor, name in enumerate(("root", "data")):
        t.device(f"dm-{minor}", f"253:{minor}", dm__name=f"vg-{name}", dm__uuid="LVM-1")
        t.upon(f"dm-{minor}", "sda3")
    t.mount("8:1", "/boot", "/dev/sda1")
    t.mount("253:0", "/home", "/dev/mapper/vg-root")
    t.swaps.append("/dev/sda2 partition")
    return "/dev/dm-1"


def array(t: Made) -> str:
    for name, number in (("sdb", "8:16"), ("sdc", "8:32")):
        t.device(name, number)
    t.device("md0", "9:0", md__level="raid1")
    t.upon("md0", "sdb", "sdc")
    return "/dev/md0"


def nvme(t: Made) -> str:
    return t.device("nvme0n1", "259:0")


def bcache(t: Made) -> str:
    t.device("sdb", "8:16")
    t.device("bcache0", "252:0")
    t.upon("bcache0", "sdb")
    return "/dev/bcache0"


def export(t: Made, path: str) -> None:
    t.write("sys/kernel/config/nvmet/subsystems/nqn.2014-08.org:a/namespaces/1/device_path", path)


def exported(subject: str) -> str:
    return RefusalReason.EXPORTED.sentence(subject=subject, exporter="nvmet namespace", name="nqn.2014-08.org:a/1")


@row()
def a_map_of_multipath(t: Made) -> str:
    return multipath(t)


@row()
def a_volume_beside_the_systems(t: Made) -> str:
    return volume(t)


@row()
def an_array(t: Made) -> str:
    return array(t)


@row()
def an_nvme_namespace(t: Made) -> str:
    export(t, "/dev/sdx")
    t.write("sys/kernel/config/nvmet/subsystems/nqn.2014-08.org:a/namespaces/2/device_path", "(null)")
    return nvme(t)


@row()
def a_cached_device(t: Made) -> str:
    return bcache(t)


@row()
def an_nbd_device_that_its_own_client_has_open(t: Made) -> str:
    t.device("nbd0", "43:0", pid="711")
    t.process(711, "nbd-client", "/dev/nbd0")
    return "/dev/nbd0"


@row()
def a_device_whose_neighbours_are_in_use(t: Made) -> str:
    t.device("sdc", "8:32")
    t.mount("8:32", "/data")
    export(t, "/dev/sdc")
    t.process(5, "qemu-system-x86", "/dev/sdc")
    return t.device("sdb", "8:16")


@row(RefusalReason.BUILT_UPON.sentence(names="dm-3"))
def a_path_of_multipath(t: Made) -> str:
    multipath(t)
    return "/dev/sdc"


@row(RefusalReason.BUILT_UPON.sentence(names="dm-0, dm-1"))
def a_physical_volume(t: Made) -> str:
    volume(t)
    return "/dev/sda3"


@row(RefusalReason.MOUNTED.sentence(subject="/dev/sda1 on it", point="/boot"))
def a_system_disk(t: Made) -> str:
    volume(t)
    return "/dev/sda"


@row(RefusalReason.OF_SYSTEM.sentence(subject="/dev/sda1 on it"))
def a_disk_that_the_system_runs_from(t: Made) -> str:
    t.device("sda", "8:0")
    t.device("sda1", "8:1", "sda")
    t.mount("8:1", "/", "/dev/sda1")
    return "/dev/sda"


@row(RefusalReason.SWAP.sentence(subject="/dev/sda2 on it", entry="/dev/sda2"))
def a_system_disk_with_swap(t: Made) -> str:
    volume(t)
    return "/dev/sda"


@row(RefusalReason.SWAP.sentence(subject="it", entry="/dev/sda2"))
def a_swap_partition(t: Made) -> str:
    volume(t)
    return "/dev/sda2"


@row(RefusalReason.MOUNTED.sentence(subject="it", point="/home"))
def a_mounted_volume(t: Made) -> str:
    volume(t)
    return "/dev/dm-0"


@row(RefusalReason.BUILT_UPON.sentence(names="md0"))
def a_member_of_an_array(t: Made) -> str:
    array(t)
    return "/dev/sdb"


@row(RefusalReason.BUILT_UPON.sentence(names="bcache0"))
def a_device_below_a_cached_one(t: Made) -> str:
    bcache(t)
    return "/dev/sdb"


@row(RefusalReason.MOUNTED.sentence(subject="it", point="/btr"))
def a_device_of_btrfs_whose_number_is_its_own(t: Made) -> str:
    t.device("sdb", "8:16")
    t.mount("0:44", "/btr", "/dev/sdb", "btrfs")
    return "/dev/sdb"


@row(exported("it"))
def an_nvmet_namespace(t: Made) -> str:
    device = nvme(t)
    export(t, device)
    return device


@row(exported("it"))
def an_nvmet_namespace_by_a_link(t: Made) -> str:
    device = nvme(t)
    (t.root / "dev/disk/by-id").mkdir(parents=True)
    (t.root / "dev/disk/by-id/nvme-a").symlink_to("../../nvme0n1")
    export(t, "/dev/disk/by-id/nvme-a")
    return device


@row(exported("/dev/sdb below it"))
def a_map_whose_path_is_exported(t: Made) -> str:
    device = multipath(t)
    export(t, "/dev/sdb")
    return device


@row(exported("/dev/sda below it"))
def a_volume_whose_disk_is_exported(t: Made) -> str:
    device = volume(t)
    export(t, "/dev/sda")
    return device


@row(RefusalReason.EXPORTED.sentence(subject="it", exporter="LIO backstore", name="iblock_0/lun1"))
def a_backstore_of_lio(t: Made) -> str:
    device = t.device("sdb", "8:16")
    t.write("sys/kernel/config/target/core/iblock_0/lun1/udev_path", device)
    return device


@row(RefusalReason.EXPORTED.sentence(subject="it", exporter="LIO backstore", name="fileio_3/lun1"))
def a_backstore_of_lio_that_is_opened_by_path(t: Made) -> str:
    device = t.device("sdb", "8:16")
    said = f"Status: ACTIVATED\n        TCM FILEIO ID: 0        File: {device}  Size: 1048576  Mode: O_DSYNC"
    t.write("sys/kernel/config/target/core/fileio_3/lun1/info", said)
    return device


@row(RefusalReason.EXPORTED.sentence(subject="it", exporter="SCST device", name="devices/disk01"))
def a_device_of_scst(t: Made) -> str:
    device = t.device("sdb", "8:16")
    t.write("sys/kernel/scst_tgt/devices/disk01/filename", f"{device}\n[key]")
    return device


@row(RefusalReason.EXPORTED.sentence(subject="it", exporter="USB gadget", name="mass_storage.0/lun.0"))
def a_disk_of_a_usb_gadget(t: Made) -> str:
    device = t.device("sdb", "8:16")
    t.write("sys/kernel/config/usb_gadget/g1/functions/mass_storage.0/lun.0/file", device)
    return device


@row(RefusalReason.OF_XEN_GUEST.sentence(subject="it", backend="vbd-3-51712"))
def a_disk_of_a_xen_guest(t: Made) -> str:
    t.write("sys/bus/xen-backend/devices/vbd-3-51712/physical_device", "fd:1f")
    t.write("sys/bus/xen-backend/devices/vbd-4-51712/physical_device", "0:0")  # it has none yet
    return t.device("dm-31", "253:31", dm__name="vg-guest")


@row(RefusalReason.BELOW_ZRAM.sentence(subject="it", device="/dev/zram1"))
def a_device_that_zram_writes_back_to(t: Made) -> str:
    t.device("zram0", "251:0", backing_dev="none")
    t.device("zram1", "251:1", backing_dev="/dev/sdb")
    return t.device("sdb", "8:16")


@row(RefusalReason.BELOW_LOOP.sentence(subject="it", device="/dev/loop7"))
def a_device_below_a_loop_device(t: Made) -> str:
    t.device("loop7", "240:7", loop__backing_file="/dev/sdb")
    return t.device("sdb", "8:16")


@row(RefusalReason.BELOW_LOOP.sentence(subject="/dev/sdb below it", device="/dev/loop7"))
def an_array_whose_member_is_below_a_loop_device(t: Made) -> str:
    t.device("loop7", "240:7", loop__backing_file="/dev/sdb")
    return array(t)


@row(RefusalReason.HAS_HOLDER.sentence(subject="/dev/sdb below it", holder="dm-5"))
def a_loop_device_over_a_physical_volume(t: Made) -> str:
    t.device("sdb", "8:16")
    t.device("dm-5", "253:5", dm__name="vg-b")
    t.upon("dm-5", "sdb")
    return t.device("loop7", "240:7", loop__backing_file="/dev/sdb", loop__offset="1048576")


@row(RefusalReason.OPEN_FOR_WRITING.sentence(subject="it", pid=5, program="qemu-system-x86"))
def a_disk_of_a_virtual_machine(t: Made) -> str:
    device = t.device("sdb", "8:16")
    t.process(5, "qemu-system-x86", "/dev/sdb")
    return device


@row(RefusalReason.OPEN_FOR_WRITING.sentence(subject="/dev/sda below it", pid=5, program="dd"))
def a_volume_whose_disk_is_open_for_writing(t: Made) -> str:
    device = volume(t)
    t.process(5, "dd", "/dev/sda")
    return device


@row(RefusalReason.OPEN_FOR_WRITING.sentence(subject="it", pid=5, program="qemu-system-x86"))
def a_disk_that_a_virtual_machine_has_by_scsi_generic(t: Made) -> str:
    device = t.device("sdb", "8:16")
    t.node("dev/sg1", "21:1", stat.S_IFCHR)
    t.write("sys/devices/x/scsi_generic/sg1/dev", "21:1")
    t.link("sys/devices/x/scsi_generic/sg1/device/block/sdb", "sys/devices/x/sdb")
    t.link("sys/dev/char/21:1", "sys/devices/x/scsi_generic/sg1")
    t.process(5, "qemu-system-x86", "/dev/sg1")
    return device


@row(RefusalReason.OPEN_FOR_WRITING.sentence(subject="it", pid=5, program="fio"))
def an_nvme_namespace_that_is_driven_by_its_character_device(t: Made) -> str:
    device = nvme(t)
    t.node("dev/ng0n1", "237:0", stat.S_IFCHR)
    t.write("sys/devices/x/nvme-generic/ng0n1/dev", "237:0")
    t.link("sys/dev/char/237:0", "sys/devices/x/nvme-generic/ng0n1")
    t.process(5, "fio", "/dev/ng0n1")
    return device


@row(RefusalReason.OPEN_FOR_WRITING.sentence(subject="it", pid=9, program="mysqld"))
def an_nbd_device_that_another_has_open(t: Made) -> str:
    t.device("nbd0", "43:0", pid="711")
    t.process(711, "nbd-client", "/dev/nbd0")
    t.process(9, "mysqld", "/dev/nbd0")
    return "/dev/nbd0"


@pytest.mark.parametrize("name", ROWS)
def test_a_made_device_is_refused_for_its_reason_or_accepted(name: str, tmp_path: Path) -> None:
    make, reason = ROWS[name]
    made = Made(tmp_path)
    refused = made.judged(make(made))
    assert reason in refused if reason else refused == (), refused


def test_processes_that_may_not_be_inspected_are_reported(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.device("sdb", "8:16")
    made.judged("/dev/sdb")
    assert Surroundings.read(tmp_path).unseen == ""
    (tmp_path / "proc/1").rename(tmp_path / "proc/hidden")
    assert Surroundings.read(tmp_path).unseen == "/proc hides processes of other users: run the slave as root"


def test_a_mount_of_what_is_no_device_uses_the_number_of_its_filesystem_alone(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.write("dev/image", "")
    made.mount("0:98", "/served", "/dev/image", "fuse.image")
    made.write("proc/self/mountinfo", "\n".join(made.mounts))
    made.write("proc/swaps", "Filename Type\n")
    assert {kind for kind, *_ in Surroundings.read(made.root).uses} == {"block"}


@pytest.mark.parametrize("filesystem", ["overlay", "ext4"])
def test_files_in_use_are_known_by_their_inode_where_there_is_an_overlay(tmp_path: Path, filesystem: str) -> None:
    made = Made(tmp_path)
    made.mount("0:99", "/merged", "x", filesystem)
    made.write("f", "")
    made.process(77, "qemu", "/f")
    made.write("proc/self/mountinfo", "\n".join(made.mounts))
    made.write("proc/swaps", "Filename Type\n")
    around = Surroundings.read(made.root)
    status = (made.root / "f").stat()
    of_file = "file", status.st_dev, status.st_ino
    assert of_file in around.uses
    if filesystem == "overlay":
        assert around.twins == {status.st_ino & 0xFFFFFFFF: (of_file,)} and around.plain == {os.makedev(0, 21)}
    else:
        assert around.twins == {} and around.plain == frozenset()


@pytest.mark.parametrize(("filesystem", "is_plain"), [("fuse.image", True), ("overlay", False)])
def test_a_filesystem_that_is_mounted_while_uses_are_looked_for_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filesystem: str, is_plain: bool
) -> None:
    """Else it might be an overlay, whose files may be any with their number; so may one with an overlay's number."""
    made = Made(tmp_path)
    made.mount("0:99", "/merged", "x", "overlay")
    made.mount("0:98", "/earlier", "x", "ext4")
    made.write("proc/self/mountinfo", "\n".join(made.mounts))
    made.write("proc/swaps", "Filename Type\n")
    look = served_paths

    def mounted_meanwhile(root: Path) -> Iterator[ServedPath]:
        made.mount("0:97", "/served", "image", filesystem)
        made.mount("0:98", "/later", "x", filesystem)
        made.write("proc/self/mountinfo", "\n".join(made.mounts))
        return look(root)

    monkeypatch.setattr(write_gate, "served_paths", mounted_meanwhile)
    plain = Surroundings.read(made.root).plain
    assert {os.makedev(0, number) in plain for number in (97, 98)} == {is_plain}


@pytest.mark.parametrize("filesystem", ["erofs", "autofs", "fuse.archive", "overlay"])
def test_a_file_that_is_a_mounts_source_is_in_use_where_the_kernel_reads_it(tmp_path: Path, filesystem: str) -> None:
    """Others name a file, or a folder, that they may be asked about for ever, and that need not be theirs."""
    made = Made(tmp_path)
    made.mount("0:99", "/on", "/f", filesystem)
    made.write("f", "")
    made.write("proc/self/mountinfo", "\n".join(made.mounts))
    made.write("proc/swaps", "Filename Type\n")
    status = (made.root / "f").stat()
    found = Surroundings.read(made.root).uses_of(("file", status.st_dev, status.st_ino), 0)
    assert [use.reason for use in found] == [RefusalReason.MOUNTED] * (filesystem == "erofs")
