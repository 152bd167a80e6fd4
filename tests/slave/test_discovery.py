"""LUNs and their attributes: against lsblk on this machine, and on trees of devices that it does not have."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from ivypy.protocol.lines import decode_line, encode_line
from ivypy.protocol.messages import Refused
from ivypy.protocol.payload import Lun, Notice, NoticeKind, Refusal
from ivypy.protocol.refusals import RefusalReason
from ivypy.slave.devices import block_devices, udev
from ivypy.slave.gate.write_gate import Surroundings
from ivypy.slave.luns import discovery
from ivypy.slave.luns.discovery import inspect_luns, list_luns
from ivypy.slave.luns.lun_target import LunTarget, find_target
from tests.support.devices import loops_alone
from tests.support.loop_devices import detach, found_files, loop_device, need, needs_loops, partitioned, run
from tests.support.sysfs_tree import QUEUE, SysfsTree

# lsblk's name for what we call otherwise, and how its value compares.
SAME = {"size": "size", "log-sec": "logical_block_size", "phy-sec": "physical_block_size", "rq-size": "nr_requests"}


def test_what_lsblk_lists_is_listed_with_the_same_attributes() -> None:
    need("lsblk")
    columns = "PATH,NAME,TYPE,SIZE,LOG-SEC,PHY-SEC,ROTA,SCHED,RQ-SIZE,RO,PKNAME"
    listed = flat(json.loads(run("lsblk", "-J", "-b", "-o", columns))["blockdevices"])
    ours = {str(d.path): d for d in block_devices.all_devices()}
    theirs = {entry["path"]: entry for entry in listed if entry["size"]}
    for path in ours.keys() | theirs.keys():
        if path.startswith(("/dev/loop", "/dev/zram")):
            continue  # other tests' devices come and go
        seen, expected = ours[path].attributes, theirs[path]
        for theirs_name, name in SAME.items():
            assert seen.get(name) == expected[theirs_name], (path, name)
        assert seen["rotational"] == int(expected["rota"])
        assert seen["read_only"] == int(expected["ro"])
        assert seen.get("scheduler") == expected["sched"]
        assert seen.get("partition_of") == (expected["pkname"] if expected["type"] == "part" else None)


def flat(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for entry in entries:
        children = entry.pop("children", [])
        found += [entry, *flat(children)]
    return found


@needs_loops
def test_loop_devices_and_their_partitions(shm: Path) -> None:
    need("sfdisk", "partx")
    with (
        loops_alone(),
        loop_device(shm, 64 << 20, "--sector-size", "4096") as loop,
        partitioned(loop, "16MiB") as (partition,),
    ):
        there, refusals = list_luns(True, ())
        assert refusals == []
        assert {loop, partition} <= {lun.path for lun in there}
        (disk, part), refusals = inspect_luns([loop, partition])
        assert refusals == []
        assert (disk.kind, disk.size, disk.block) == ("block", 64 << 20, 4096)
        assert disk.attributes["name"] == Path(loop).name
        assert (part.size, part.attributes["partition_of"]) == (16 << 20, Path(loop).name)
        assert "partition_of" not in disk.attributes
        assert disk.refusals[0] == RefusalReason.PARTITIONED.sentence(names=Path(partition).name, path=loop)
        assert part.refusals == ()


@needs_loops
def test_a_loop_device_without_a_backing_file_is_no_lun(shm: Path) -> None:
    with loops_alone(), loop_device(shm) as loop:
        detach(loop)
        assert loop not in {lun.path for lun in list_luns(True, ())[0]}


@pytest.fixture
def tree(tmp_path: Path) -> SysfsTree:
    return SysfsTree(tmp_path)


DRIVEN = {
    "kind": "block",
    "size": 1 << 20,
    "logical_block_size": 512,
    "physical_block_size": 4096,
    "rotational": 0,
    "scheduler": "mq-deadline",
    "nr_requests": 256,
    "read_only": 0,
}


def test_hardware_queues_are_counted_where_there_are_some(tree: SysfsTree) -> None:
    queues = {f"mq__{n}__cpu_list": f"{n}" for n in range(3)}
    tree.disk("virtual", "dm-0", "252:0", **QUEUE)
    tree.disk("pci0000:3a/nvme0", "nvme0n1", "259:0", **QUEUE, **queues)
    found = tree.attributes()
    assert "hw_queues" not in found["dm-0"]
    assert found["nvme0n1"]["hw_queues"] == 3


def test_a_san_lun_by_sysfs_alone(tree: SysfsTree) -> None:
    target = "pci0000:3a/0000:3b:00.0/host2/rport-2:0-1/target2:0:0/2:0:0:7"
    tree.disk(target, "sdq", "65:0", **QUEUE)
    device = tree.root / "sys/devices" / target
    tree.write(device, vendor="HITACHI ", model="OPEN-V          ", wwid="naa.60060e8007c31d000030c31d00000107")
    (device / "vpd_pg80").write_bytes(b"\0\x80\0\x0c50 0C31D0107")
    tree.write(tree.root / "sys/devices/pci0000:3a/0000:3b:00.0", numa_node="1")
    assert tree.attributes()["sdq"] == DRIVEN | {
        "path": "/dev/sdq",
        "name": "sdq",
        "vendor": "HITACHI",
        "model": "OPEN-V",
        "serial": "50 0C31D0107",
        "wwn": "0x60060e8007c31d000030c31d00000107",
        "transport": "fc",
        "numa_node": 1,
    }


def test_udev_attributes_take_precedence_over_sysfs(tree: SysfsTree) -> None:
    tree.disk("pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0", "sda", "8:0", **QUEUE)
    device = tree.root / "sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0"
    tree.write(device, vendor="ATA", model="Samsung SSD 860 ")
    tree.write(
        tree.root / "run/udev/data",
        **{
            "b8:0": "S:disk/by-path/pci-0000:00:17.0-ata-1\nS:disk/by-id/wwn-0x5002538e40a1b2c3\n"
            "S:disk/by-id/ata-Samsung_SSD_860_EVO_1TB_S3Z8NB0K\nW:4\nI:1\n"
            "E:ID_MODEL=Samsung_SSD_860_EVO_1TB\nE:ID_MODEL_ENC=Samsung\\x20SSD\\x20860\\x20EVO\\x201TB\\x20\\x20\n"
            "E:ID_SERIAL=Samsung_SSD_860_EVO_1TB_S3Z8NB0K\nE:ID_SERIAL_SHORT=S3Z8NB0K\n"
            "E:ID_WWN=0x5002538e40a1b2c3\nG:systemd"
        },
    )
    found = tree.attributes()["sda"]
    assert {name: found[name] for name in ("vendor", "model", "serial", "wwn", "transport", "by_id")} == {
        "vendor": "ATA",
        "model": "Samsung SSD 860 EVO 1TB",
        "serial": "S3Z8NB0K",
        "wwn": "0x5002538e40a1b2c3",
        "transport": "sata",
        "by_id": "ata-Samsung_SSD_860_EVO_1TB_S3Z8NB0K",
    }
    assert "numa_node" not in found


def test_nvme_with_its_hidden_path_and_fabrics(tree: SysfsTree) -> None:
    local = "pci0000:00/0000:5e:00.0/nvme/nvme0"
    tree.disk(local, "nvme0n1", "259:0", wwid="eui.0025385b21404321", **QUEUE)
    tree.write(
        tree.root / "sys/devices" / local,
        model="SAMSUNG MZQL2",
        serial="S64GNE0R",
        transport="pcie",
        numa_node="0",
    )
    tree.disk("virtual/nvme-fabrics/ctl/nvme1", "nvme1n1", "259:1", **QUEUE)
    tree.write(tree.root / "sys/devices/virtual/nvme-fabrics/ctl/nvme1", transport="tcp", numa_node="-1")
    hidden = tree.disk("pci0000:00/0000:5f:00.0/nvme/nvme2", "nvme2c2n1", "0:0", hidden="1", **QUEUE)
    assert hidden.exists()
    found = tree.attributes()
    assert found.keys() == {"nvme0n1", "nvme1n1"}
    first = found["nvme0n1"]
    assert (first["transport"], first["serial"], first["model"]) == ("nvme", "S64GNE0R", "SAMSUNG MZQL2")
    assert (first["wwn"], first["numa_node"]) == ("eui.0025385b21404321", 0)
    assert found["nvme1n1"]["transport"] == "nvme_tcp"
    assert "numa_node" not in found["nvme1n1"]


def test_a_multipath_map_has_its_own_name_and_its_paths_have_a_holder(tree: SysfsTree) -> None:
    folder = tree.root / "sys/devices/virtual/block/dm-3"
    tree.write(folder, size="2048", dev="253:3", dm__name="mpatha", dm__uuid="mpath-360060e8007c31d", **QUEUE)
    (tree.root / "sys/block/dm-3").symlink_to(folder)
    (tree.root / "dev/mapper").mkdir()
    (tree.root / "dev/mapper/mpatha").touch()
    path = tree.disk("pci0000:3a/host2/session4/target2:0:0/2:0:0:0", "sdb", "8:16", **QUEUE)
    (path / "holders/dm-3").mkdir(parents=True)
    found = {d.name: d for d in block_devices.all_devices(tree.root)}
    assert found["dm-3"].path == "/dev/mapper/mpatha"
    assert found["dm-3"].attributes["multipath"] == "mpatha"
    assert found["sdb"].holders == ("dm-3",)
    assert found["sdb"].attributes["transport"] == "iscsi"


def test_a_partition_has_the_queue_but_not_the_identity_of_its_disk(tree: SysfsTree) -> None:
    folder = tree.disk("pci0000:00/usb2/2-1/host9/target9:0:0/9:0:0:0", "sdc", "8:32", **QUEUE)
    tree.write(tree.root / "sys/devices/pci0000:00/usb2/2-1/host9/target9:0:0/9:0:0:0", vendor="Stick")
    tree.write(folder / "sdc1", size="1024", dev="8:33", partition="1", ro="0")
    (tree.root / "dev/sdc1").touch()
    found = tree.attributes()
    assert (found["sdc"]["vendor"], found["sdc"]["transport"]) == ("Stick", "usb")
    assert found["sdc1"] == DRIVEN | {"path": "/dev/sdc1", "name": "sdc1", "size": 512 << 10, "partition_of": "sdc"}


def test_stable_names_are_found_in_dev_where_udevs_database_is_missing(tree: SysfsTree) -> None:
    tree.disk("pci0000:00/virtio1", "vda", "254:0", serial="disk-7", **QUEUE)
    links = tree.root / "dev/disk/by-id"
    links.mkdir(parents=True)
    (links / "virtio-disk-7").symlink_to("../../vda")
    (links / "virtio-other").symlink_to("../../vdb")
    found = tree.attributes()["vda"]
    assert (found["by_id"], found["serial"], found["transport"]) == ("virtio-disk-7", "disk-7", "virtio")


def test_what_has_no_node_or_no_size_is_no_lun(tree: SysfsTree) -> None:
    tree.disk("virtual/a", "loop0", "7:0", **QUEUE)
    (tree.root / "dev/loop0").unlink()
    zram = tree.disk("virtual/b", "zram0", "252:0", **QUEUE)
    (zram / "size").write_text("0\n")
    assert tree.attributes() == {}


def test_a_name_in_udev_that_is_only_a_number_comes_last() -> None:
    links = ("disk/by-id/wwn-0x1", "disk/by-id/scsi-SHITACHI_OPEN-V_1", "disk/by-id/scsi-360060e8007c31d00")
    assert udev.Udev(links=links).by_id == "scsi-SHITACHI_OPEN-V_1"
    assert udev.Udev(links=links[:1]).by_id == "wwn-0x1"
    assert udev.Udev().by_id == ""


def test_files_by_globs(tmp_path: Path) -> None:
    for name, size in (("a1", 8192), ("a2", 4096), ("b", 4096), ("empty", 0)):
        (tmp_path / name).write_bytes(os.urandom(size))
    (tmp_path / "a3").mkdir()
    there, refusals = found_files(f"{tmp_path}/a*", f"{tmp_path}/b", f"{tmp_path}/a1", f"{tmp_path}/none*")
    assert refusals == []
    assert [(lun.path, lun.size) for lun in there] == [
        (f"{tmp_path}/a1", 8192),
        (f"{tmp_path}/a2", 4096),
        (f"{tmp_path}/b", 4096),
    ]
    first = there[0]
    assert isinstance(first, Lun)
    assert first.attributes["kind"] == "file"
    assert first.attributes["filesystem"]
    assert str(tmp_path).startswith(str(first.attributes["mount"]))
    assert (first.refusals, first.notices) == ((), ())


def test_a_path_that_is_no_file_is_refused_with_its_remedy(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    paths = [str(tmp_path / "missing"), str(tmp_path), str(tmp_path / "empty"), "/dev/null"]
    assert found_files(*paths) == (
        [],
        [
            Refusal(paths[0], RefusalReason.NOTHING_THERE.sentence(error="No such file or directory")),
            Refusal(paths[1], RefusalReason.FOLDER.sentence()),
            Refusal(paths[2], RefusalReason.EMPTY_FILE.sentence()),
            Refusal(paths[3], RefusalReason.NO_DEVICE_OR_FILE.sentence()),
        ],
    )


def test_a_lun_that_does_not_answer_is_listed_and_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a hung device does: a read of it does not come back."""
    for name in ("fine", "hung"):
        (tmp_path / name).write_bytes(b"x" * 4096)
    answer = threading.Event()
    real = discovery.inspect

    def look(path: str, *more: Any) -> list[Lun | Refusal]:
        if path.endswith("hung"):
            answer.wait(30)
        return real(path, *more)

    monkeypatch.setattr(discovery, "inspect", look)
    monkeypatch.setattr(discovery, "ANSWER_S", 0.2)
    try:
        fine, hung = found_files(f"{tmp_path}/*")[0]
        assert fine.refusals == () and fine.identity is not None and hung.identity is None
        said = RefusalReason.NO_ANSWER.sentence(seconds=0.2)
        assert (hung.refusals, hung.notices) == ((said,), (Notice(NoticeKind.NO_ANSWER, said),))
    finally:
        answer.set()


def test_a_path_whose_filesystem_does_not_answer_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fine").write_bytes(b"x" * 4096)
    answer = threading.Event()
    real = find_target

    def look(path: str, around: Surroundings, root: Path) -> LunTarget:
        if path.endswith("hung"):
            answer.wait(30)
        return real(path, around, root)

    monkeypatch.setattr(discovery, "find_target", look)
    monkeypatch.setattr(discovery, "ANSWER_S", 0.2)
    try:
        there, refusals = found_files(f"{tmp_path}/hung", f"{tmp_path}/f*")
        assert [lun.path for lun in there] == [f"{tmp_path}/fine"]
        said = RefusalReason.PATH_SILENT.sentence(seconds=0.2)
        assert refusals == [Refusal(f"{tmp_path}/hung", said)]
    finally:
        answer.set()


@needs_loops
def test_a_block_device_named_as_a_file_is_refused(shm: Path) -> None:
    with loop_device(shm) as loop:
        assert found_files(loop)[1] == [Refusal(loop, RefusalReason.DEVICE_AS_FILE.sentence(path=loop))]


@needs_loops
def test_a_device_is_named_by_any_path_that_leads_to_it_and_what_is_none_is_refused(shm: Path) -> None:
    (shm / "file").write_bytes(b"x" * 512)
    with loop_device(shm) as loop:
        (shm / "by-id").symlink_to(loop)
        good = [loop, f"{shm}/by-id"]
        bad = ["/dev/nope0", f"{shm}/file", "/dev/null"]
        there, refusals = list_luns(True, (), [*good, *bad])
        found = {lun.path: lun.named for lun in there if lun.named}
        assert found == {loop: tuple(good)}
        assert {refusal.what: refusal.reason for refusal in refusals} == {
            "/dev/nope0": RefusalReason.NOTHING_THERE.sentence(error="No such file or directory"),
            f"{shm}/file": RefusalReason.FILE_AS_DEVICE.sentence(),
            "/dev/null": RefusalReason.NO_DEVICE_OR_FILE.sentence(),
        }


def test_a_file_name_that_is_not_printable_utf8_is_refused(tmp_path: Path) -> None:
    for name in (b"good", b"bad\xff", b"line\nbreak"):
        with open(os.path.join(os.fsencode(tmp_path), name), "wb") as file:
            file.write(bytes(4096))
    found, refusals = list_luns(False, [f"{tmp_path}/*"])
    assert [Path(lun.path).name for lun in found] == ["good"]
    assert [refusal.reason for refusal in refusals] == [RefusalReason.NAME_UNPRINTABLE.sentence()] * 2
    assert decode_line(encode_line(Refused(1, tuple(refusals))))


@pytest.mark.parametrize(("nodes", "node"), [((1, 1), 1), ((0,), 0), ((0, 1), None), ((-1, -1), None), ((1, -1), None)])
def test_an_nvme_multipath_head_has_the_node_of_its_paths(
    tmp_path: Path, nodes: tuple[int, ...], node: int | None
) -> None:
    """It is below the subsystem, not below a device; with paths on two nodes, every thread is near one."""
    tree = SysfsTree(tmp_path)
    subsystem = tree.root / "sys/devices/virtual/nvme-subsystem/nvme-subsys0"
    head = subsystem / "nvme0n1"
    tree.write(head, size="2048", dev="259:0", **QUEUE)
    (head / "device").symlink_to("..")
    (tree.root / "sys/block/nvme0n1").symlink_to(head)
    (tree.root / "dev/nvme0n1").touch()
    for n, one in enumerate(nodes):
        device = tree.root / f"sys/devices/pci0000:{n}0/0000:{n}0:00.0"
        tree.write(device, numa_node=str(one))
        tree.write(device / f"nvme/nvme{n}", transport="pcie")
        tree.write(device / f"nvme/nvme{n}/nvme0c{n}n1", size="2048")
        (subsystem / f"nvme{n}").symlink_to(device / f"nvme/nvme{n}")
    assert tree.attributes()["nvme0n1"].get("numa_node") == node
