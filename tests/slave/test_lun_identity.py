"""Which LUN it is: the same after a restart of the machine, another when another stands in its place."""

import errno
import os
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ivypy.protocol.consent_check import FINGERPRINT, START, differences, lasting
from ivypy.protocol.parameters import Parameters
from ivypy.protocol.payload import Consent, Identity
from ivypy.protocol.refusals import RefusalReason
from ivypy.slave.devices import block_devices
from ivypy.slave.devices.block_devices import numbered
from ivypy.slave.gate.holds import hold
from ivypy.slave.gate.write_gate import Surroundings
from ivypy.slave.luns import lun_identity
from ivypy.slave.luns.lun_identity import _device, identity_of, machine
from ivypy.slave.luns.lun_target import find_target
from ivypy.slave.workloads.workloads import Workloads
from tests.support.devices import loops_alone, losetup
from tests.support.fake_engine import FakeEngine
from tests.support.loop_devices import agreed, loop_device, need, needs_loops, partitioned
from tests.support.refusals import found_in, refusals_in
from tests.support.sysfs_tree import QUEUE, SysfsTree
from tests.support.workloads import WRITE, workloads_on


def facts(path: str) -> dict[str, str]:
    return dict(agreed(path).identity.facts)


def of_tree(root: Path, name: str) -> tuple[tuple[str, str], ...]:
    """The facts of a device of a tree; its ends are not read there."""
    (device,) = (one for one in block_devices.all_devices(root) if one.name == name)
    return _device(device, "", -1, root)


def a_machine(root: Path, *, first: str, second: str, boot: str = "e1") -> Path:
    """Two disks with a partition each: one with a serial number, the other with nothing; `first` comes first."""
    tree = SysfsTree(root)
    for i, kind in enumerate((first, second)):
        name, minor = f"vd{'ab'[i]}", 16 * i
        more = {"serial": "S1"} if kind == "named" else {"diskseq": str(i + 3)}
        folder = tree.disk(f"pci0000:00/0000:00:0{i + 4}.0/virtio{kind}", name, f"254:{minor}", **more, **QUEUE)
        part = f"{name}1"
        tree.write(folder / part, size="1024", dev=f"254:{minor + 1}", partition="1", ro="0", start="2048",
                   uevent="DEVNAME=x\nPARTUUID=u-" + kind)  # fmt: skip
        (root / "dev" / part).touch()
    tree.write(root / "proc/sys/kernel/random", boot_id=boot)
    return root


def test_a_disk_and_its_partition_are_the_same_under_another_name_after_a_restart(tmp_path: Path) -> None:
    before = a_machine(tmp_path / "1", first="named", second="bare", boot="e1")
    after = a_machine(tmp_path / "2", first="bare", second="named", boot="e2")
    assert of_tree(before, "vda") == of_tree(after, "vdb") == (("serial", "S1"),)
    assert of_tree(before, "vda1") == of_tree(after, "vdb1")
    assert dict(of_tree(before, "vda1")) == {"serial": "S1", "PARTUUID": "u-named", "start": "2048"}
    assert of_tree(before, "vda1") != of_tree(after, "vda1"), "another disk's, at the same path"


def test_what_has_no_name_is_the_same_until_the_machine_starts_anew(tmp_path: Path) -> None:
    before = a_machine(tmp_path / "1", first="bare", second="named", boot="e1")
    after = a_machine(tmp_path / "2", first="bare", second="named", boot="e2")
    assert dict(of_tree(before, "vda")) == {"PCI path": "0000:00:04.0", "attachment": "3", START: "e1"}
    assert of_tree(before, "vda") != of_tree(after, "vda")
    assert of_tree(before, "vda1")[:3] == of_tree(before, "vda")


def test_volumes_are_known_by_their_managers_names(tmp_path: Path) -> None:
    tree = SysfsTree(tmp_path)
    for name, more in (("dm-0", {"dm__uuid": "LVM-abc", "dm__name": "v"}), ("md0", {"md__uuid": "1:2:3:4"})):
        folder = tree.root / "sys/devices/virtual/block" / name
        tree.write(folder, size="2048", dev=f"253:{len(name)}", diskseq="9", **more, **QUEUE)
        (tree.root / "sys/block" / name).symlink_to(folder)
        (tree.root / "dev" / name).touch()
    assert of_tree(tmp_path, "dm-0") == (("dm uuid", "LVM-abc"),)
    assert of_tree(tmp_path, "md0") == (("md uuid", "1:2:3:4"),)


class DeviceMapper:
    """The control device's ioctl for tables, as linux/dm-ioctl.h has it."""

    def __init__(self, tables: dict[tuple[int, int], list[tuple[int, int, str, str]]]) -> None:
        self.tables = tables

    def ioctl(self, fd: int, command: int, buffer: bytearray, mutate: bool) -> int:
        assert command == 0xC138FD0C and mutate and len(buffer) == struct.unpack_from("=I", buffer, 12)[0]
        assert buffer[:12] == struct.pack("=3I", 4, 0, 0) and struct.unpack_from("=I", buffer, 28)[0] & 0x10
        number = struct.unpack_from("=Q", buffer, 40)[0]
        table = self.tables.get((os.major(number), os.minor(number)))
        if table is None:
            raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))
        data = b""
        for start, length, kind, parameters in table:
            text = parameters.encode() + b"\0"
            text += bytes(-len(text) % 8)
            data += struct.pack("=QQiI16s", start, length, 0, len(data) + 40 + len(text), kind.encode()) + text
        full = 312 + len(data) > len(buffer)
        struct.pack_into("=IIiI", buffer, 16, 312, 0 if full else len(table), 0, 0x100 if full else 0)
        if not full:
            buffer[312 : 312 + len(data)] = data
        return 0


class TestTables:
    """Two disks and a volume on one of them; `dmsetup reload` puts it onto the other, under the same UUID."""

    def tree(self, root: Path, *, first: str = "named", second: str = "other", uuid: str = "LVM-abc") -> Path:
        tree = SysfsTree(root)
        for i, serial in enumerate((first, second)):
            name = f"vd{'ab'[i]}"
            folder = tree.disk(
                f"pci0000:00/0000:00:0{i + 4}.0/virtio{i}", name, f"254:{16 * i}", serial=serial, **QUEUE
            )
            (tree.root / "sys/dev/block").mkdir(parents=True, exist_ok=True)
            (tree.root / f"sys/dev/block/254:{16 * i}").symlink_to(folder)
        folder = tree.root / "sys/devices/virtual/block/dm-0"
        tree.write(folder, size="2048", dev="253:0", dm__uuid=uuid, dm__name="v", **QUEUE)
        (tree.root / "sys/block/dm-0").symlink_to(folder)
        (tree.root / "dev/dm-0").touch()
        for i in range(2):
            tree.write(folder / f"slaves/vd{'ab'[i]}", dev=f"254:{16 * i}")
        (tree.root / "dev/mapper").mkdir()
        (tree.root / "dev/mapper/control").touch()
        return root

    def facts(self, root: Path, monkeypatch: pytest.MonkeyPatch, *table: tuple[int, int, str, str]) -> dict[str, str]:
        with monkeypatch.context() as patch:
            patch.setattr("fcntl.ioctl", DeviceMapper({(253, 0): list(table)}).ioctl)
            return dict(of_tree(root, "dm-0"))

    def test_a_reloaded_table_is_another_volume(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        root = self.tree(tmp_path)
        before = self.facts(root, monkeypatch, (0, 2048, "linear", "254:0 0"))
        assert before.keys() == {"dm uuid", "table"}
        assert self.facts(root, monkeypatch, (0, 2048, "linear", "254:0 0")) == before
        for other in (
            [(0, 2048, "linear", "254:16 0")],
            [(0, 2048, "linear", "254:0 8")],
            [(0, 2048, "zero", "")],
            [(0, 1024, "linear", "254:0 0"), (1024, 1024, "linear", "254:16 0")],
        ):
            assert self.facts(root, monkeypatch, *other) != before

    def test_a_volume_stays_the_same_when_its_disks_have_other_numbers(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = self.tree(tmp_path / "1")
        after = self.tree(tmp_path / "2", first="other", second="named")
        here = self.facts(before, monkeypatch, (0, 2048, "linear", "254:0 384"))
        assert here == self.facts(after, monkeypatch, (0, 2048, "linear", "254:16 384"))
        assert here != self.facts(after, monkeypatch, (0, 2048, "linear", "254:0 384"))

    def test_a_long_table_is_read_whole(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        root = self.tree(tmp_path)
        many = [(i, 1, "linear", "254:0 0") for i in range(2047)]
        one, other = (self.facts(root, monkeypatch, *many, (2047, 1, "linear", f"254:0 {at}")) for at in (1, 2))
        assert one.keys() == other.keys() == {"dm uuid", "table"} and one != other

    def test_a_disk_is_looked_at_once_for_all_lines(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        root = self.tree(tmp_path)
        looks: list[int] = []

        def counted(number: int, root: Path) -> block_devices.BlockDevice | None:
            looks.append(number)
            return numbered(number, root)

        monkeypatch.setattr(lun_identity, "numbered", counted)
        self.facts(root, monkeypatch, *((i, 1, "linear", f"254:{i % 2 * 16} {i}") for i in range(100)))
        assert len(looks) == 2

    def test_a_key_has_no_part_in_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        root = self.tree(tmp_path)
        one, other = (
            self.facts(root, monkeypatch, (0, 2048, "crypt", f"aes-xts-plain64 {key} 0 254:0 32768"))
            for key in ("00ff", "11ee")
        )
        assert one == other

    def test_a_multipath_map_is_known_by_its_lun_alone(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        root = self.tree(tmp_path, uuid="mpath-3600")
        paths = "0 0 1 1 service-time 0 1 1 254:0 1"
        assert self.facts(root, monkeypatch, (0, 2048, "multipath", paths)) == {"dm uuid": "mpath-3600"}

    def test_who_may_not_read_the_table_knows_the_uuid(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        root = self.tree(tmp_path)
        monkeypatch.setattr("fcntl.ioctl", DeviceMapper({}).ioctl)
        assert dict(of_tree(root, "dm-0")) == {"dm uuid": "LVM-abc"}


Table = list[tuple[int, int, str, str]]
SERIALS = ("A", "B")


class TestStacks:
    """Volumes over volumes: dm-1, dm-2 ... by their UUID and table, over two disks at 254:0 and 254:16."""

    @pytest.fixture
    def tree(self, tmp_path: Path) -> SysfsTree:
        tree = SysfsTree(tmp_path)
        (tmp_path / "sys/dev/block").mkdir(parents=True)
        for i, serial in enumerate(SERIALS):
            place = f"pci0000:00/0000:00:0{i + 4}.0/virtio{i}"
            folder = tree.disk(place, f"vd{'ab'[i]}", f"254:{16 * i}", serial=serial, **QUEUE)
            (tmp_path / f"sys/dev/block/254:{16 * i}").symlink_to(folder)
        (tmp_path / "dev/mapper").mkdir()
        (tmp_path / "dev/mapper/control").touch()
        return tree

    def top(self, tree: SysfsTree, monkeypatch: pytest.MonkeyPatch, **stack: tuple[str, Table]) -> dict[str, str]:
        """The facts of the last of these, which are in order from below."""
        root, tables = tree.root, {}
        for minor, (name, (uuid, table)) in enumerate(stack.items()):
            folder = root / "sys/devices/virtual/block" / name
            tree.write(folder, size="2048", dev=f"253:{minor}", dm__uuid=uuid, dm__name=name, **QUEUE)
            tables[253, minor] = table
            for link in (root / "sys/block" / name, root / f"sys/dev/block/253:{minor}"):
                link.unlink(missing_ok=True)
                link.symlink_to(folder)
            (root / "dev" / name).touch()
            (folder / "slaves").mkdir(exist_ok=True)
            for line in table:
                for word in line[3].split():
                    below = root / "sys/dev/block" / word
                    if ":" in word and below.exists() and not (folder / "slaves" / below.resolve().name).exists():
                        (folder / "slaves" / below.resolve().name).symlink_to(below.resolve())
        with monkeypatch.context() as patch:
            patch.setattr("fcntl.ioctl", DeviceMapper(tables).ioctl)
            return dict(of_tree(root, name))

    @pytest.mark.parametrize("pool", ["LVM-pool-tpool", "stratis-1-private-pool"])
    def test_a_thin_volume_stays_the_same_while_its_pool_grows(
        self, tree: SysfsTree, monkeypatch: pytest.MonkeyPatch, pool: str
    ) -> None:
        """As by dmeventd, through what ivypy writes."""

        def thin(size: int, number: int, uuid: str = pool) -> dict[str, str]:
            return self.top(
                tree, monkeypatch, meta=("LVM-tmeta", [(0, size // 8, "linear", "254:16 0")]),
                data=("LVM-tdata", [(0, size, "linear", "254:0 2048")]),
                pool=(uuid, [(0, size, "thin-pool", f"253:0 253:1 128 {size // 128} 0")]),
                thin=("LVM-thin", [(0, 9000, "thin", f"253:2 {number}")]),
            )  # fmt: skip

        before = thin(1024, 1)
        assert before == thin(2048, 1)
        assert before["table"] == f"0+9000 thin {pool} 1"
        assert before != thin(1024, 2)
        assert before != thin(1024, 1, pool + "2")

    def test_a_volume_over_one_of_lvm_stays_while_that_is_moved_or_extended(
        self, tree: SysfsTree, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def encrypted(key: str, *lower: tuple[int, int, str, str]) -> dict[str, str]:
            over = (0, 2048, "crypt", f"aes-xts-plain64 {key} 0 253:0 32768")
            return self.top(tree, monkeypatch, below=("LVM-low", [*lower]), top=("CRYPT-LUKS2-u-v", [over]))

        before = encrypted("00", (0, 65536, "linear", "254:0 2048"))
        assert before == encrypted("00", (0, 65536, "linear", "254:16 2048")), "pvmove"
        extended = [(0, 65536, "linear", "254:0 2048"), (65536, 65536, "linear", "254:16 0")]
        assert before == encrypted("00", *extended), "lvextend"

    def test_of_another_device_below_the_mapped_sectors_count(
        self, tree: SysfsTree, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def over(*lower: tuple[int, int, str, str]) -> dict[str, str]:
            upper: Table = [(0, 1000, "linear", "253:0 500")]
            return self.top(tree, monkeypatch, below=("CRYPT-LUKS2-u-low", [*lower]), top=("LVM-top", upper))

        before = over((0, 2048, "crypt", "aes-xts-plain64 00 0 254:0 32768"))
        longer = (0, 4096, "crypt", "aes-xts-plain64 00 0 254:0 32768 1 allow_discards")
        assert before == over(longer)
        assert before != over((0, 2048, "crypt", "aes-xts-plain64 00 0 254:0 32776"))
        assert before != over((0, 2048, "crypt", "aes-xts-plain64 00 0 254:16 32768"))
        assert over((0, 2048, "linear", "254:0 0")) == over(
            (0, 1500, "linear", "254:0 0"), (1500, 9, "linear", "254:16 0")
        )
        assert over((0, 2048, "linear", "254:0 0")) != over(
            (0, 1499, "linear", "254:0 0"), (1499, 9, "linear", "254:16 0")
        )

    @pytest.mark.parametrize(
        ("kind", "one", "other"),
        [
            ("crypt", "aes 00 0 254:0 8", "aes 00 0 254:0 8 2 allow_discards no_read_workqueue"),
            (
                "cache",
                "254:0 254:16 254:0 128 1 writeback smq 0",
                "254:0 254:16 254:0 128 0 smq 2 migration_threshold 9",
            ),
            ("raid", "raid1 3 0 region_size 2048 1 - 254:0", "raid1 5 0 rebuild 0 region_size 4096 1 - 254:0"),
            ("mirror", "core 1 1024 1 254:0 8", "core 2 1024 nosync 1 254:0 8"),
            ("snapshot", "254:0 254:16 P 8", "254:0 254:16 N 8"),
        ],
    )
    def test_what_changes_in_use_does_not_count_and_the_device_does(
        self, tree: SysfsTree, monkeypatch: pytest.MonkeyPatch, kind: str, one: str, other: str
    ) -> None:
        def facts(words: str) -> dict[str, str]:
            return self.top(tree, monkeypatch, top=("LVM-top", [(0, 2048, kind, words)]))

        assert facts(one) == facts(other)
        assert facts(one) != facts(one.replace("254:0", "254:16"))

    def test_a_refusal_shows_what_a_volume_was_made_of_and_is(
        self, tree: SysfsTree, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before, after = (
            self.top(tree, monkeypatch, top=("LVM-top", [(0, 2048, "linear", f"254:0 {at}")])) for at in (0, 8)
        )
        ones, others = (Identity("m", 1 << 20, tuple(facts.items())) for facts in (before, after))
        had = "table 0+2048 linear (serial 'A') "
        assert differences(ones, others) == (had + "0", had + "8")


def test_a_machine_is_known_by_its_number_and_its_boards(tmp_path: Path) -> None:
    def one(name: str, number: str, board: str) -> str:
        root = tmp_path / name
        SysfsTree(root).write(root / "etc", **{"machine-id": number})
        if board:
            SysfsTree.write(SysfsTree.__new__(SysfsTree), root / "sys/class/dmi/id", product_uuid=board)
        return machine(root)

    a, clone, board = one("a", "n1", "b1"), one("b", "n1", "b2"), one("c", "n1", "b1")
    assert a == board != clone and len(a) == 16 and "n1" not in a
    assert machine(tmp_path / "none") == machine(tmp_path / "nowhere"), "its name, where it has no number"


def test_a_file_is_known_by_its_inode_and_birth(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(os.urandom(8192))
    first = agreed(str(path)).identity
    (tmp_path / "link").symlink_to(path)
    assert agreed(str(tmp_path / "link")).identity == first
    (tmp_path / "elsewhere").write_bytes(os.urandom(8192))
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    assert agreed(str(tmp_path / "link")).identity != first == agreed(str(path)).identity
    with open(path, "r+b") as file:
        file.write(b"other contents")
    assert agreed(str(path)).identity != first, "the user agreed to lose what was in it"
    assert lasting(agreed(str(path)).identity) == lasting(first)


def test_a_file_without_a_birth_is_known_by_its_ends_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lun_identity, "_birth", lambda path: "")
    path = tmp_path / "f"
    path.write_bytes(bytes(200_000))

    def ends() -> str:
        return dict(agreed(str(path)).identity.facts)[FINGERPRINT]

    first = ends()
    with open(path, "r+b") as file:
        file.seek(100_000)
        file.write(b"in its middle")
    assert ends() == first
    with open(path, "r+b") as file:
        file.seek(190_000)
        file.write(b"near its end")
    assert ends() != first


def test_a_device_replaced_during_inspection_has_no_identity(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 512)
    lun = find_target(str(tmp_path / "f"), Surroundings.read())
    (tmp_path / "g").write_bytes(b"y" * 512)
    (tmp_path / "g").rename(tmp_path / "f")
    with pytest.raises(OSError, match="its path became another's"):
        identity_of(lun)


@needs_loops
class TestLoops:
    def test_a_loop_device_is_identified_by_its_backing_file(self, shm: Path) -> None:
        images = [shm / "image", shm / "other"]
        for image in images:
            image.write_bytes(bytes(2 << 20))
        loop = losetup("-f", "--show", str(images[0]))
        found: list[Identity] = []
        first, second = map(str, images)
        attached = [(first,), (first,), (second,), (first, "-o", "512"), (first, "--sizelimit", "1M")]
        try:
            for backing, *options in attached:
                with loops_alone():
                    losetup("-d", loop)
                    losetup(*options, loop, backing)
                found.append(agreed(loop).identity)
        finally:
            losetup("-d", loop)
        assert found[0] == found[1], "attached anew"
        assert len(set(found)) == 4, "another image of the same size, an offset, a limit"

    def test_behind_one_whose_path_leads_nowhere_is_what_was_attached(self, shm: Path) -> None:
        """As from another mount namespace: the image's inode may be another file's by then."""
        with loop_device(shm) as loop:
            assert "born" in facts(loop)
            (backing,) = (one for one in shm.iterdir() if one.name.startswith("backing"))
            (shm / "link").hardlink_to(backing)
            backing.unlink()
            found = facts(loop)
            (shm / "link").rename(backing)
            assert "born" not in found and {"attachment", START, "backing file"} <= found.keys()

    def test_over_another_device_it_is_identified_by_that_device(self, shm: Path) -> None:
        """The node below stays the same, whatever it leads to."""
        images = [shm / "image", shm / "other"]
        for image in images:
            image.write_bytes(bytes(2 << 20))
        inner = losetup("-f", "--show", str(images[0]))
        outer = losetup("-f", "--show", inner)
        found: list[Identity] = []
        try:
            for image in (*images, images[0]):
                with loops_alone():
                    losetup("-d", outer)
                    losetup("-d", inner)
                    losetup(inner, str(image))
                    losetup(outer, inner)
                found.append(agreed(outer).identity)
        finally:
            losetup("-d", outer)
            losetup("-d", inner)
        assert found[0] == found[2] != found[1]

    def test_a_partition_is_known_by_its_disk_and_its_place(self, shm: Path) -> None:
        need("sfdisk", "partx")
        with loop_device(shm, 64 << 20) as loop, partitioned(loop, "8MiB", "8MiB") as (one, two):
            first, second = facts(one), facts(two)
            assert first["backing file"] == second["backing file"] == facts(loop)["backing file"]
            assert first["start"] != second["start"]

    def test_through_a_hold_it_is_the_same(self, shm: Path) -> None:
        with loop_device(shm) as loop:
            held = hold(loop)
            try:
                lun = find_target(loop, Surroundings.read())
                assert identity_of(lun, held) == agreed(loop).identity
            finally:
                os.close(held)


class TestKnownByItsContentsAlone:
    """A device that nobody named, on a kernel that does not count attachments."""

    @pytest.fixture
    def loop(self, shm: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
        monkeypatch.setattr(lun_identity, "_backing", lambda *_: ())
        monkeypatch.setattr(lun_identity, "_attached", lambda *_: ())
        with loop_device(shm) as path:
            yield path

    @needs_loops
    def test_our_own_writes_keep_the_identity_and_those_of_others_change_it(self, loop: str) -> None:
        workloads = Workloads(FakeEngine(), "null", [None])  # type: ignore[arg-type]
        asked = workloads_on(loop, WRITE, consent=True)
        assert facts(loop).keys() == {FINGERPRINT}
        for step in range(3):
            assert workloads.create(asked) == [], step
            assert workloads.start([0]) == []
            scribble(loop, 4096, os.urandom(512))  # as the engine does
            workloads.note_ended()
            assert workloads.delete([0]) == []
        scribble(loop, 8192, b"somebody")
        refusals = [refusal.reason for refusal in workloads.create(asked)]
        (another,) = (one for one in refusals if refusals_in(one) == {RefusalReason.ANOTHER_LUN})
        assert "(that had fingerprint " in another


def scribble(path: str, at: int, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)
        os.fsync(file.fileno())


def test_consent_without_identity_is_none(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(os.urandom(1 << 20))
    workloads = Workloads(FakeEngine(), "null", [None])  # type: ignore[arg-type]
    (asked,) = workloads_on(str(tmp_path / "f"), Parameters(), consent=True)
    assert asked.consent is not None
    empty = Consent(Identity(asked.consent.identity.machine, 1 << 20, ()), asked.consent.extents)
    (refusal,) = workloads.create([replace(asked, consent=empty)])
    assert found_in([refusal.reason]) == [RefusalReason.ANOTHER_LUN]
